"""Bounded caches of pure functions of texts, and digests of texts.

An agent sends its whole history with every turn, so without a cache a function of a text of the history runs again on
every turn. The caches are bounded by entries and by characters; the least recently used text is dropped first.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, TypeVarTuple

# hashlib releases the interpreter's lock (GIL) for `HASHLIB_GIL_MINSIZE` bytes (2048) and more. The thread that writes
# captures would then hold the GIL for 5 ms, a hundred times as long as the digest takes. So smaller pieces are hashed.

_AT_A_TIME = 2047


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


def short(text: str) -> bytes:
    """Return a BLAKE2b digest of twelve bytes."""
    return _fed(hashlib.blake2b(digest_size=12), text)


def sha256(text: str) -> bytes:
    return _fed(hashlib.sha256(), text)


def _fed(made: _Digest, text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    for start in range(0, len(data), _AT_A_TIME):
        made.update(data[start : start + _AT_A_TIME])
    return made.digest()


Ts = TypeVarTuple("Ts")
T = TypeVar("T")

_MOST_ENTRIES = 8192
_MOST_CHARACTERS = 4 << 20
_LONGEST = _MOST_CHARACTERS // 16
"""Characters of the longest cached text, so that one text does not drop many others."""


class _Memory(Generic[T]):
    """The most recent results by arguments, with at most `characters` of text together."""

    def __init__(self, entries: int, characters: int) -> None:
        self._entries, self._characters = entries, characters
        self._answers: OrderedDict[tuple[str, object], T] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[str, object]) -> T | None:
        with self._lock:
            answer = self._answers.get(key)
            if answer is not None:
                self._answers.move_to_end(key)
            return answer

    def put(self, key: tuple[str, object], answer: T) -> None:
        with self._lock:
            if key not in self._answers:
                self._size += len(key[0])
            self._answers[key] = answer
            while len(self._answers) > self._entries or self._size > self._characters:
                (text, _), _ = self._answers.popitem(last=False)
                self._size -= len(text)


def remembered(asked: Callable[[str, *Ts], T]) -> Callable[[str, *Ts], T]:
    """Cache a pure function of a text and further hashable arguments. Its results are never None and not modified."""
    memory: _Memory[T] = _Memory(_MOST_ENTRIES, _MOST_CHARACTERS)

    @functools.wraps(asked)
    def answer(text: str, *others: *Ts) -> T:
        if len(text) > _LONGEST:
            return asked(text, *others)
        key = (text, others)
        known = memory.get(key)
        if known is None:
            known = asked(text, *others)
            memory.put(key, known)
        return known

    return answer
