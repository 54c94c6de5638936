"""Captures on disk: records and their format, redaction, the store, and the readers of capture files."""
