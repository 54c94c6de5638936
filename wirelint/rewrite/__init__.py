"""Repairs, carried out: replies while they pass, requests before they are sent. Bytes in, bytes out, no I/O."""

from __future__ import annotations

from wirelint.rewrite.recorded import Rewritten, rewrite_reply
from wirelint.rewrite.replies import Rewriting

__all__ = ["Rewriting", "Rewritten", "rewrite_reply"]
