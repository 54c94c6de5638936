"""Digests of texts, made in one go.

hashlib lets other threads run while it works on `HASHLIB_GIL_MINSIZE` bytes (2048) and more, and then waits for the
interpreter's lock like anybody else. The thread that writes captures would have it for 5 ms then, while a request waits for
a digest that takes a hundredth of that.
"""

from __future__ import annotations

import hashlib
from typing import Protocol

_AT_A_TIME = 2047


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


def short(text: str) -> bytes:
    """Twelve bytes (BLAKE2b)."""
    return _fed(hashlib.blake2b(digest_size=12), text)


def sha256(text: str) -> bytes:
    return _fed(hashlib.sha256(), text)


def _fed(made: _Digest, text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    for start in range(0, len(data), _AT_A_TIME):
        made.update(data[start : start + _AT_A_TIME])
    return made.digest()
