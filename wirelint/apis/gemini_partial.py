"""Arguments of a function call that come value by value (`partialArgs`, Vertex AI), as the JSON text that they amount to.

Each piece has the place of a value (`$.address.lines[0]`) and the value, or a part of a string that goes on in the next
piece. Values come in the order of the document, so the text can be told while they come: what a piece leaves is opened,
closed or separated is written before its value. Source: the vendor's API reference (FunctionCall, PartialArg).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from wirelint.apis.gemini_schema import value_of
from wirelint.apis.reading import mappings, text
from wirelint.model import Json

_TOKEN = re.compile(r"\.([^.\[\]]+)|\[(\d{1,6})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialArguments:
    """The argument text of one call."""

    def __init__(self) -> None:
        self._path: list[str | int] | None = None
        self._in_string = False

    def add(self, pieces: Json) -> str:
        """The text that these pieces add."""
        return "".join(part for _, piece in mappings(pieces) for part in self._piece(piece))

    def end(self) -> str:
        """The text that completes the arguments."""
        if self._path is None:
            return "{}"
        text = self._leave(-1)
        self._path = None
        return text

    def _piece(self, piece: Mapping[str, Json]) -> Iterator[str]:
        path = _tokens(text(value_of(piece, "jsonPath")) or "")
        if not path:
            return
        kind = next((name for name in _VALUES if value_of(piece, name) is not None), "nullValue")
        value = value_of(piece, kind)
        string = value if isinstance(value, str) and kind == "stringValue" else None
        if not (self._in_string and path == self._path and string is not None):
            yield from self._go_to(path)
            if string is None:
                yield "null" if kind == "nullValue" else json.dumps(value, ensure_ascii=False)
                return
            yield '"'
            self._in_string = True
        yield json.dumps(string, ensure_ascii=False)[1:-1]
        if value_of(piece, "willContinue") is not True:
            self._in_string = False
            yield '"'

    def _go_to(self, path: list[str | int]) -> Iterator[str]:
        """What stands between the value before and the one at `path`."""
        shared = 0
        if self._path is not None:
            most = min(len(path), len(self._path)) - 1
            while shared < most and path[shared] == self._path[shared]:
                shared += 1
            yield self._leave(shared)
            yield ","
        else:
            yield _opening(path[0])
        self._path = path
        yield _key(path[shared])
        for token in path[shared + 1 :]:
            yield _opening(token) + _key(token)

    def _leave(self, shared: int) -> str:
        """Ends the string that is open and the containers inside of the one with that number."""
        assert self._path is not None
        quote, self._in_string = '"' if self._in_string else "", False
        return quote + "".join("]" if isinstance(token, int) else "}" for token in reversed(self._path[shared + 1 :]))


def _tokens(path: str) -> list[str | int]:
    found: list[str | int] = []
    for match in _TOKEN.finditer(path):
        name, number, one, two = match.groups()
        found.append(int(number) if number is not None else next(key for key in (name, one, two) if key is not None))
    return found


def _opening(token: str | int) -> str:
    return "[" if isinstance(token, int) else "{"


def _key(token: str | int) -> str:
    return "" if isinstance(token, int) else f"{json.dumps(token, ensure_ascii=False)}:"
