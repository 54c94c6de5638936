"""Repairs, carried out: replies while they pass, requests before they are sent. Bytes in, bytes out, no I/O."""

from __future__ import annotations

from wirelint.rewrite.replies import Rewriting, Rewritten, rewrite_reply

__all__ = ["Rewriting", "Rewritten", "rewrite_reply"]
