"""Repair of replies while they pass, and of requests before they are sent. Bytes in, bytes out, no I/O."""

from __future__ import annotations

from wirelint.rewrite.stream import ReplyStream, Rewritten, rewrite_reply

__all__ = ["ReplyStream", "Rewritten", "rewrite_reply"]
