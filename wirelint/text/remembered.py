"""Bounded caches of pure functions of texts, and digests of texts.

An agent sends its whole history with every turn, so without a cache a function of a text of the history runs again on
every turn. The caches are bounded; the least recently used text is dropped first.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

# hashlib releases the interpreter's lock (GIL) for `HASHLIB_GIL_MINSIZE` bytes (2048) and more. The thread that writes
# captures would then hold the GIL for 5 ms, a hundred times as long as the digest takes. So smaller pieces are hashed.

_AT_A_TIME = 2047


def short(text: str) -> bytes:
    """Return a BLAKE2b digest of twelve bytes."""
    made = hashlib.blake2b(digest_size=12)
    _feed(made.update, text)
    return made.digest()


def sha256(text: str) -> bytes:
    made = hashlib.sha256()
    _feed(made.update, text)
    return made.digest()


def _feed(update: Callable[[bytes], None], text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    for start in range(0, len(data), _AT_A_TIME):
        update(data[start : start + _AT_A_TIME])


Ts = TypeVarTuple("Ts")
T = TypeVar("T")
_TIERS = ((512, 8192), (8 << 10, 512), (256 << 10, 16))
"""Lengths of texts, and the number of results that are cached for texts up to each: four million characters of text each.
A longer text is not cached, so that one text does not drop many others."""


def remembered(asked: Callable[[str, *Ts], T]) -> Callable[[str, *Ts], T]:
    """Cache a pure function of a text and further hashable arguments. Its results are not modified."""
    tiers = [(longest, functools.lru_cache(most)(asked)) for longest, most in _TIERS]

    @functools.wraps(asked)
    def answer(text: str, *others: *Ts) -> T:
        for longest, cached in tiers:
            if len(text) <= longest:
                return cached(text, *others)
        return asked(text, *others)

    return answer
