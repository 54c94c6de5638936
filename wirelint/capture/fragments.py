"""Secrets in streamed bodies, where one secret may be spread over many events.

Theory of operation. The documents of a stream (the data of its events, or its lines) are decoded, and every string in
them is put on a *channel*: its path, with the positions of list items replaced by their `index`, together with the
numbers by which events name their part (`output_index`, `content_index`, `item_id`). What a client concatenates is on
one channel. A channel is joined and searched as one text; of each secret the first fragment gets the mark, and the
others lose the characters that belong to it. Events, their order and their framing stay as they are.

Afterwards each document is searched by itself, for secrets that stand in one piece: errors, names and their values.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Iterator
from typing import NamedTuple

import orjson

from wirelint.capture.literals import (
    LITERAL,
    Scope,
    find_in_json,
    find_in_text,
    unescape,
    unescape_mapped,
)
from wirelint.capture.secrets import Span
from wirelint.model import Json

_LINE = re.compile(r"[^\r\n]*(\r\n|\n|\r|\Z)")
_DATA = re.compile(r"[ \t\ufeff]*data:[ ]?")
_PART_NUMBERS = ("index", "output_index", "content_index", "summary_index", "item_id")
_CONTAINERS = frozenset({"delta", "content_block"})
"""What begins in one of these goes on in the other: their names are no part of a channel."""

_DEEPEST = 40


class Edit(NamedTuple):
    """Characters `start` to `end` of a body are to be replaced. `secret` is None where nothing takes their place."""

    start: int
    end: int
    secret: str | None


class _Unit(NamedTuple):
    """One document of a stream: its text, and the offset in the body at which each of its lines begins."""

    lines: tuple[tuple[int, str], ...]

    @property
    def text(self) -> str:
        return self.lines[0][1] if len(self.lines) == 1 else "\n".join(line for _, line in self.lines)

    def place(self, position: int) -> int:
        """The offset in the body of a position in `text`."""
        for offset, line in self.lines[:-1]:
            if position <= len(line):
                return offset + position
            position -= len(line) + 1
        return self.lines[-1][0] + position


class _Fragment(NamedTuple):
    """One string of a channel: the `ordinal`-th string value of a unit, or (ordinal -1) the unit's whole text."""

    unit: _Unit
    ordinal: int
    text: str


def stream_edits(body: str, known: tuple[str, ...]) -> list[Edit]:
    """The edits that take all secrets out of an event stream, sorted."""
    units, rest = _split_events(body)
    return _edits(body, units, rest, known)


def lines_edits(body: str, known: tuple[str, ...]) -> list[Edit]:
    """The same for a body of one JSON document a line."""
    units = [
        _Unit(((match.start(), body[match.start() : match.start(1)]),))
        for match in _LINE.finditer(body)
        if match.start(1) > match.start()
    ]
    return _edits(body, units, [], known)


def looks_like_lines(body: str) -> bool:
    """Whether a body that begins like JSON is a sequence of documents, a line each."""
    first, _, second = body.lstrip().partition("\n")
    return second.lstrip().startswith("{") and first.rstrip().endswith("}") and _load(first) is not None


def _edits(body: str, units: list[_Unit], rest: list[tuple[int, str]], known: tuple[str, ...]) -> list[Edit]:
    edits = [edit for fragments in _channels(units) for edit in _channel_edits(fragments, known)]
    if scope := Scope.of(body, known):
        whole = [Edit(offset + span.start, offset + span.end, span.secret)
                 for offset, line in rest for span in find_in_text(line, scope)]  # fmt: skip
        for unit in units:
            text = unit.text
            found = find_in_text(text, scope) if _load(text) is None else find_in_json(text, scope)
            whole += [Edit(unit.place(span.start), unit.place(span.end), span.secret) for span in found]
        edits += _apart(whole, edits)
    edits.sort()
    return edits


def _apart(candidates: list[Edit], taken: list[Edit]) -> list[Edit]:
    """The candidates that do not touch what is edited already."""
    ordered = sorted(taken)
    result: list[Edit] = []
    position = 0
    for edit in sorted(candidates):
        while position < len(ordered) and ordered[position].end <= edit.start:
            position += 1
        if position == len(ordered) or ordered[position].start >= edit.end:
            result.append(edit)
    return result


def _split_events(body: str) -> tuple[list[_Unit], list[tuple[int, str]]]:
    """The documents of the events, and the lines that hold no data."""
    units: list[_Unit] = []
    rest: list[tuple[int, str]] = []
    data: list[tuple[int, str]] = []
    for match in _LINE.finditer(body):
        start, end = match.start(), match.start(1)
        field = _DATA.match(body, start, end)
        if field is not None:
            data.append((field.end(), body[field.end() : end]))
        elif start == end:
            units += _documents(data)
            data = []
        else:
            rest.append((start, body[start:end]))
    return units + _documents(data), rest


def _documents(data: list[tuple[int, str]]) -> list[_Unit]:
    """One document over all data lines of an event; or one a line, where the blank lines between events were lost."""
    lines = tuple(line for line in data if line[1].strip())
    if len(lines) < 2:
        return [_Unit(lines)] if lines else []
    whole = _Unit(lines)
    return [whole] if _load(whole.text) is not None else [_Unit((line,)) for line in lines]


def _load(text: str) -> Json:
    try:
        document: Json = orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
    return document


def _channels(units: list[_Unit]) -> Iterator[list[_Fragment]]:
    """The strings that belong together. A field that never changes (an id, a model) is no channel."""
    channels: dict[Hashable, list[_Fragment]] = {}
    for unit in units:
        document = _load(unit.text)
        if isinstance(document, dict):
            part = tuple(value for name in _PART_NUMBERS if isinstance(value := document.get(name), (str, int)))
            ordinals = itertools.count()
            for path, text in _strings(document, part, 0):
                channels.setdefault(path, []).append(_Fragment(unit, next(ordinals), text))
        elif document is None and unit.text.strip() != "[DONE]":
            channels.setdefault(None, []).append(_Fragment(unit, -1, unit.text))
    for fragments in channels.values():
        if len(fragments) > 1 and any(fragment.text != fragments[0].text for fragment in fragments):
            yield fragments


def _strings(value: Json, path: tuple[Hashable, ...], depth: int) -> Iterator[tuple[Hashable, str]]:
    """All string values in the order of the document, each with its channel."""
    if isinstance(value, str):
        yield path, value
    elif depth >= _DEEPEST:
        return
    elif isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, (str, dict, list)):
                yield from _strings(item, path if name in _CONTAINERS else (*path, name), depth + 1)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            index = item.get("index", position) if isinstance(item, dict) else position
            yield from _strings(item, (*path, index if isinstance(index, int) else position), depth + 1)


def _channel_edits(fragments: list[_Fragment], known: tuple[str, ...]) -> Iterator[Edit]:
    joined = "".join(fragment.text for fragment in fragments)
    scope = Scope.of(joined, known)
    spans = find_in_text(joined, scope) if scope else []
    if not spans:
        return
    start = first = 0
    for fragment in fragments:
        end = start + len(fragment.text)
        while first < len(spans) and spans[first].end <= start:
            first += 1
        touching = list(itertools.takewhile(lambda span: span.start < end, spans[first:]))  # noqa: B023
        if touching and fragment.text:
            yield from _fragment_edits(fragment, start, touching)
        start = end


def _fragment_edits(fragment: _Fragment, start: int, spans: list[Span]) -> Iterator[Edit]:
    """Edits for the part of each span that lies in this fragment, which begins at `start` of its channel."""
    located = _locate(fragment)
    if located is None:
        return
    offset, places = located
    for span in spans:
        first, last = max(span.start - start, 0), min(span.end - start, len(fragment.text))
        secret = span.secret if span.start >= start else None
        yield Edit(
            fragment.unit.place(offset + places[first]),
            fragment.unit.place(offset + places[last]),
            secret,
        )


def _locate(fragment: _Fragment) -> tuple[int, list[int] | range] | None:
    """Where a fragment's literal begins in its unit, and the raw offset there of each of its characters."""
    text = fragment.unit.text
    if fragment.ordinal < 0:
        return 0, range(len(text) + 1)
    values = [literal for literal in LITERAL.finditer(text) if not _is_key(text, literal.end())]
    ordered = [*values[fragment.ordinal : fragment.ordinal + 1], *values]
    for literal in ordered:
        raw = literal[1]
        if unescape(raw) == fragment.text:
            plain, places = unescape_mapped(raw)
            return (literal.start(1), places) if plain == fragment.text else None
    return None


def _is_key(text: str, position: int) -> bool:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return text[position : position + 1] == ":"
