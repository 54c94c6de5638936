"""Edits of places in a JSON text: all bytes outside of the edits are kept.

Theory of operation. The pointers of all edits become one tree. The text is walked along that tree: only containers on the
way to an edit are read member by member (`text.pointers`). The walk returns splices (start, end, new text), which are
disjoint; sorted and joined with the text between them, they form the new body. Order of members, white space, the
spelling of numbers, escapes and repeated keys are kept.

Of repeated keys the last counts, as for every decoder: that one is replaced or entered. Removing a member removes all
its repetitions, since otherwise an earlier one would take effect.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from typing import NamedTuple

import orjson

from wirelint.fix import Edit
from wirelint.model import Json
from wirelint.text.pointers import Member, members, skip_blanks, skip_value, tokens

_LONE = re.compile(r"[\ud800-\udfff]")
_NULL = b"null"
_BOM = "\ufeff"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class _Splice(NamedTuple):
    start: int
    end: int
    text: str


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
    do not exist are ignored, and so is the removal of the whole body. Raises ValueError if the body is not JSON, or if a
    pointer is not a JSON Pointer (RFC 6901).
    """
    if not edits:
        return body
    text = body.decode("utf-8", "surrogateescape")
    start = skip_blanks(text, text.startswith(_BOM))
    try:
        splices = _splices(text, _tree(edits), start, skip_value(text, start))
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


def _splices(text: str, node: _Node, start: int, end: int) -> list[_Splice]:
    """Return the splices in the value from `start` to `end`."""
    if node.edit is not None or not node.children or not text.startswith(("{", "["), start):
        return [] if node.edit is None or node.goes else [_Splice(start, end, _write(node.edit.value))]
    named = text.startswith("{", start)
    inserted: list[_Splice] = []
    inner: dict[str, list[_Splice]] = {}
    items: list[tuple[Member, bool]] = []
    for member in members(text, start):
        child = node.children.get(member.name)
        goes = child is not None and child.goes
        if child is not None:
            if child.before and not (named or goes):
                before = "".join(f"{_write(value)}," for value in child.before)
                inserted.append(_Splice(member.start, member.start, before))
            inner[member.name] = _splices(text, child, member.value, member.end)
        items.append((member, goes))
    new = [
        f"{_write(key)}:{_write(child.edit.value)}"
        for key, child in node.children.items()
        if named and key not in inner and child.edit is not None and child.edit.op == "replace"
    ]
    return [*inserted, *itertools.chain(*inner.values()), *_rearrange(items, start + 1, end - 1, new)]


def _rearrange(items: Sequence[tuple[Member, bool]], opened: int, closed: int, new: Sequence[str]) -> list[_Splice]:
    """Return the splices that remove the items marked True with their commas, and append new ones before `closed`."""
    last = max((number for number, (_, goes) in enumerate(items) if not goes), default=None)
    if last is None:
        return [_Splice(opened, closed, ",".join(new))] if items or new else []
    pairs = itertools.pairwise(items[: last + 1])
    splices = [_Splice(item.start, after.start, "") for (item, goes), (after, _) in pairs if goes]
    if new or last + 1 < len(items):
        splices.append(_Splice(items[last][0].end, items[-1][0].end, "".join(f",{one}" for one in new)))
    return splices
