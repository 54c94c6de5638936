"""Text of prompts and replies: prose, quotations, template tokens, reasoning tags and markup in it."""
