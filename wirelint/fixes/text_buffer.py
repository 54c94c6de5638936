"""A text that arrives piece by piece, and is put together only when somebody looks at all of it."""

from __future__ import annotations

_LOOSE = 256


class Pieces:
    __slots__ = ("_joined", "_late")

    def __init__(self) -> None:
        self._joined: list[str] = []
        self._late: list[str] = []

    def add(self, text: str) -> None:
        self._late.append(text)
        if len(self._late) >= _LOOSE:
            self._joined.append("".join(self._late))
            self._late.clear()

    def text(self) -> str:
        if self._late or len(self._joined) > 1:
            self._joined = ["".join((*self._joined, *self._late))]
            self._late.clear()
        return self._joined[0] if self._joined else ""

    def replace(self, text: str) -> None:
        """Another text in the place of all that there is."""
        self._joined = [text] if text else []
        self._late.clear()
