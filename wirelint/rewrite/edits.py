"""Edits of places in a JSON text: all bytes outside of the edits are kept.

Theory of operation. The pointers of all edits become one tree. The text is walked once along that tree: only containers
on the way to an edit are parsed member by member, and every other value is skipped by the scanner of the `json` module,
in C. The walk returns splices (start, end, new text), which are disjoint; sorted and joined with the text between them,
they form the new body. Order of members, white space, the spelling of numbers, escapes and repeated keys are kept.

Of repeated keys the last counts, as for every decoder: that one is replaced or entered. Removing a member removes all
its repetitions, since otherwise an earlier one would take effect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import NamedTuple

import orjson

from wirelint.fix import Edit
from wirelint.model import Json
from wirelint.text.pointers import skip_blanks, skip_value, tokens

_LONE = re.compile(r"[\ud800-\udfff]")
_NULL = b"null"
_BOM = "\ufeff"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class _Splice(NamedTuple):
    start: int
    end: int
    text: str


class _Item(NamedTuple):
    """A member or an element: from the first character of its key or value to the last of its value."""

    start: int
    end: int
    goes: bool


class _Node:
    """A place that an edit names, or a container around one. Edits below an edited place are dropped."""

    __slots__ = ("before", "children", "edit")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.edit: Edit | None = None
        self.before: list[Json] = []

    @property
    def goes(self) -> bool:
        return self.edit is not None and self.edit.op == "remove"


def apply(body: bytes, edits: Sequence[Edit]) -> bytes:
    """Return the body with edits made at the places of their pointers; the same object if nothing changes.

    `body` is JSON in UTF-8, with or without a byte order mark. Of several edits at one place the last counts. An edit
    inside a part that is removed or replaced is dropped, and so is an insertion before a removed element. Several
    insertions at one place keep their order. `replace` adds a member that its object lacks. Edits of other places that
    do not exist are ignored, and so is the removal of the whole body. Raises ValueError if the read part of the body is
    not JSON, or if a pointer is not a JSON Pointer (RFC 6901).
    """
    if not edits:
        return body
    text = body.decode("utf-8", "surrogateescape")
    try:
        _, splices = _Walk(text).value(_tree(edits), skip_blanks(text, text.startswith(_BOM)))
    except RecursionError as error:
        raise ValueError("JSON that is nested too deeply") from error
    if not splices:
        return body
    pieces: list[str] = []
    position = 0
    for start, end, new in sorted(splices):
        pieces += (text[position:start], new)
        position = end
    made = "".join((*pieces, text[position:])).encode("utf-8", "surrogateescape")
    return body if made == body else made


def _tree(edits: Sequence[Edit]) -> _Node:
    root = _Node()
    for edit in edits:
        node = root
        for token in tokens(edit.pointer):
            node = node.children.setdefault(token, _Node())
        if edit.op == "insert":
            node.before.append(edit.value)
        else:
            node.edit = edit
    if root.goes:
        root.edit = None
    return root


def _write(value: Json) -> str:
    """Return a value as compact JSON text. Lone surrogates are escaped, since UTF-8 cannot hold them."""
    try:
        written = orjson.dumps(value)
    except TypeError:  # lone surrogates, and integers of more than 64 bits
        written = _NULL
    if _NULL not in written:  # orjson writes null for NaN and infinity
        return written.decode()
    return _LONE.sub(lambda lone: f"\\u{ord(lone[0]):04x}", _encode(value))


class _Walk:
    def __init__(self, text: str) -> None:
        self.text = text

    def value(self, node: _Node, start: int) -> tuple[int, list[_Splice]]:
        """Return the offset after the value that begins at `start`, and the splices in it."""
        if node.edit is None and node.children and self.text.startswith(("{", "["), start):
            return self._container(node, start)
        end = skip_value(self.text, start)
        return end, [] if node.edit is None or node.goes else [_Splice(start, end, _write(node.edit.value))]

    def _container(self, node: _Node, start: int) -> tuple[int, list[_Splice]]:
        named = self.text.startswith("{", start)
        closer = "}" if named else "]"
        inserted: list[_Splice] = []
        inner: dict[str, list[_Splice]] = {}
        items: list[_Item] = []
        position = skip_blanks(self.text, start + 1)
        while items or not self.text.startswith(closer, position):
            first = position
            key, position = self._key(first) if named else (str(len(items)), first)
            child = node.children.get(key)
            if child is None:
                position = skip_value(self.text, position)
            else:
                if child.before and not (named or child.goes):
                    inserted.append(_Splice(first, first, "".join(f"{_write(value)}," for value in child.before)))
                position, inner[key] = self.value(child, position)
            items.append(_Item(first, position, child is not None and child.goes))
            position = skip_blanks(self.text, position)
            if not self.text.startswith(",", position):
                break
            position = skip_blanks(self.text, position + 1)
        self._expect(closer, position)
        new = [
            f"{_write(key)}:{_write(child.edit.value)}"
            for key, child in node.children.items()
            if named and key not in inner and child.edit is not None and child.edit.op == "replace"
        ]
        splices = [*inserted, *(splice for found in inner.values() for splice in found)]
        return position + 1, splices + _rearrange(items, start + 1, position, new)

    def _key(self, start: int) -> tuple[str, int]:
        """Return the name of the member that begins at `start`, and the offset of its value."""
        self._expect('"', start)
        key, position = scanstring(self.text, start + 1, False)
        position = skip_blanks(self.text, position)
        self._expect(":", position)
        return key, skip_blanks(self.text, position + 1)

    def _expect(self, wanted: str, position: int) -> None:
        if not self.text.startswith(wanted, position):
            raise ValueError(f"no {wanted!r} at character {position}")


def _rearrange(items: Sequence[_Item], opened: int, closed: int, new: Sequence[str]) -> list[_Splice]:
    """Return the splices that remove items with their commas and append new ones between the brackets."""
    last = max((number for number, item in enumerate(items) if not item.goes), default=None)
    if last is None:
        return [_Splice(opened, closed, ",".join(new))] if items or new else []
    splices = []
    run: int | None = None
    for item in items[: last + 1]:
        if item.goes:
            run = item.start if run is None else run
        elif run is not None:
            splices.append(_Splice(run, item.start, ""))
            run = None
    if new or last + 1 < len(items):
        splices.append(_Splice(items[last].end, items[-1].end, "".join(f",{one}" for one in new)))
    return splices
