"""Rewriters that repair replies in transit, and edits of requests. The rules create them."""
