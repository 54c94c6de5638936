"""Where in a conversation a finding stands, and which characters there are its evidence.

A finding has a JSON Pointer and, at best, a span. Its part is the one at that place, else the nearest above or below. Where
no span is given, the evidence is what the message quotes, if that stands in the part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wirelint.model import Json
from wirelint.rule import Finding
from wirelint.view.html.plain import Object, absolute, utf16

_QUOTED = re.compile(r"`([^`]+)`|'([^']+)'|\"([^\"]+)\"")
_SHORTEST = 3
_FIELDS = {
    **dict.fromkeys(("arguments", "input", "args", "parameters"), "text"),
    **dict.fromkeys(("id", "call_id", "tool_call_id", "tool_use_id"), "id"),
    "name": "name",
}


class Turn(NamedTuple):
    """What a side of the page shows at one place: a message, or a candidate of the reply."""

    pointer: str
    parts: Sequence[Json]


class Place(NamedTuple):
    """The turn, and the part in it (None: the turn as a whole)."""

    turn: int
    part: int | None


def place(finding: Finding, turns: Sequence[Turn]) -> Place | None:
    """The place of a finding among the turns of its side; None when it stands nowhere in them."""
    pointer = finding.pointer
    if not pointer:
        return None
    best: tuple[int, Place] | None = None
    for number, turn in enumerate(turns):
        for spot, at in _spots(number, turn):
            near = _nearness(pointer, at)
            if near and (best is None or near > best[0]):
                best = near, spot
    return best[1] if best is not None else None


def mark(finding: Finding, part: Object) -> list[Json] | None:
    """The evidence in a part: the field, and where it begins and ends there, as JavaScript counts. None: all of it."""
    texts = {name: value for name in ("text", "name", "id") if isinstance(value := part.get(name), str) and value}
    text = texts.get("text", "")
    if finding.span is not None and text:
        start, end = finding.span
        if start < end and start < len(text):
            return ["text", utf16(text, start), utf16(text, end)]
    field = _FIELDS.get((finding.pointer or "").rpartition("/")[2])
    if field in ("name", "id") and field in texts:
        return [field, 0, utf16(texts[field], len(texts[field]))]
    for quoted in _quotes(finding.message):
        for name in ("id", "name"):
            if texts.get(name) == quoted:
                return [name, 0, utf16(quoted, len(quoted))]
        start = text.find(quoted)
        if start >= 0:
            return ["text", utf16(text, start), utf16(text, start + len(quoted))]
    return None


def _spots(number: int, turn: Turn) -> Iterator[tuple[Place, str]]:
    for count, part in enumerate(turn.parts):
        if isinstance(part, dict):
            yield Place(number, count), absolute(str(part["at"]), turn.pointer)
    if turn.pointer:
        yield Place(number, None), turn.pointer


def _nearness(pointer: str, at: str) -> int:
    """How near a place is to a pointer: 0 is elsewhere. The place itself is nearest; above it counts more than below."""
    if at == pointer:
        return 1 << 30
    if at and pointer.startswith(f"{at}/"):
        return (1 << 20) + len(at)
    return (1 << 19) - len(at) if at.startswith(f"{pointer}/") else 0


def _quotes(message: str) -> Iterator[str]:
    """What a message quotes, and the beginnings of what it quotes shortened."""
    for found in _QUOTED.finditer(message):
        whole = next(group for group in found.groups() if group)
        for text in (whole, whole.partition("…")[0]):
            if len(text) >= _SHORTEST:
                yield text
