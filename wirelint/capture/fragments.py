"""Secrets in streamed bodies, where one secret may be spread over many events.

Theory of operation. The documents of a stream (the data of its events, or its lines) are decoded, and every string in
them is put on a *channel*: its path, with the positions of list items replaced by their `index`, together with the
numbers by which events name their part (`output_index`, `content_index`, `item_id`). What a client concatenates is on
one channel. A channel is joined and searched as one text; of each secret the first fragment gets the mark, and the
others lose the characters that belong to it. Events, their order and their framing stay as they are.

Afterwards each document is searched by itself, for secrets that stand in one piece: errors, names and their values.

Before all that, a stream of the plain kind (a document a line) is only joined (`moulds`); where the quick look finds
neither the body nor any channel worth searching, nothing is searched, and no document is located in the body.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import orjson

from wirelint.capture.channels import Channels
from wirelint.capture.literals import (
    LITERAL,
    Scope,
    find_in_json,
    find_in_text,
    is_near,
    unescape,
    unescape_mapped,
)
from wirelint.capture.moulds import Joiner, is_key
from wirelint.capture.probe import harmless
from wirelint.capture.secrets import Span
from wirelint.model import Json
from wirelint.wire.json_array import ArrayStream

_LINE = re.compile(r"[^\r\n]*(\r\n|\n|\r|\Z)")
_DATA = re.compile(r"[ \t\ufeff]*data:[ ]?")
_OTHER_FIELDS = ("event:", ":", "id:", "retry:")
_BLOCK = 1 << 18
_ENDS = frozenset({" [DONE]", "[DONE]"})
APART = "\n,\n"
"""Between texts of which each is looked at by itself: no sign of a secret goes over a line end and a comma."""


class Edit(NamedTuple):
    """Characters `start` to `end` of a body are to be replaced. `secret` is None where nothing takes their place."""

    start: int
    end: int
    secret: str | None


class _Unit:
    """One document of a stream: its text, and the offset in the body at which each of its lines begins.

    What is worked out from them is kept: many fragments of one unit may ask.
    """

    def __init__(self, lines: Sequence[tuple[int, str]]) -> None:
        self._lines = lines

    @cached_property
    def text(self) -> str:
        return self._lines[0][1] if len(self._lines) == 1 else "\n".join([line for _, line in self._lines])

    @cached_property
    def _starts(self) -> list[int]:
        """The offset in `text` of each line."""
        return list(itertools.accumulate((len(line) + 1 for _, line in self._lines[:-1]), initial=0))

    def place(self, position: int) -> int:
        """The offset in the body of a position in `text`."""
        number = bisect.bisect_right(self._starts, position) - 1
        return self._lines[number][0] + position - self._starts[number]

    @cached_property
    def strings(self) -> Sequence[re.Match[str]]:
        """The literals of the strings that are no names of members, in order."""
        return [literal for literal in LITERAL.finditer(self.text) if not is_key(self.text, literal.end())]

    @cached_property
    def by_text(self) -> Mapping[str, re.Match[str]]:
        """The first of those literals that says a text."""
        return {unescape(literal[1]): literal for literal in reversed(self.strings)}


class _Fragment(NamedTuple):
    """One string of a channel: the `ordinal`-th string value of a unit, or (ordinal -1) the unit's whole text."""

    unit: _Unit
    ordinal: int
    text: str


def stream_edits(body: str, known: tuple[str, ...]) -> list[Edit]:
    """The edits that take all secrets out of an event stream, sorted."""
    others = set[str]()
    if _holds_nothing(body, known, (_event_documents(block, others) for block in _blocks(body)), others):
        return []
    units, rest = _split_events(body)
    return _edits(body, units, rest, known)


def is_harmless_stream(body: str) -> bool:
    """Return True if a quick look at an event stream proves that no shape and no name in it gives a secret away."""
    others = set[str]()
    looked = _look(body, (_event_documents(block, others) for block in _blocks(body)), others)
    return looked is not None and looked[1]


def lines_edits(body: str, known: tuple[str, ...]) -> list[Edit]:
    """The same for a body of one JSON document a line."""
    if _holds_nothing(body, known, (list(filter(None, block.split("\n"))) for block in _blocks(body)), set()):
        return []
    units = [
        _Unit(((match.start(), body[match.start() : match.start(1)]),))
        for match in _LINE.finditer(body)
        if match.start(1) > match.start()
    ]
    return _edits(body, units, [], known)


def array_edits(body: str, known: tuple[str, ...]) -> list[Edit]:
    """The same for a body of one JSON array that was streamed element by element."""
    stream, offset = ArrayStream(), 0
    units: list[_Unit] = []
    rest: list[tuple[int, str]] = []
    for frame in (*stream.feed(body.encode("utf-8", "surrogateescape")), *stream.close()):
        text = frame.raw.decode("utf-8", "surrogateescape")
        if frame.data is not None and text.endswith(frame.data):
            units.append(_Unit(((offset + len(text) - len(frame.data), frame.data),)))
        elif text.strip("[], \t\r\n"):
            rest.append((offset, text))
        offset += len(text)
    if not rest and _holds_nothing(body, known, [[unit.text for unit in units]], set()):
        return []
    return _edits(body, units, rest, known)


def _holds_nothing(
    body: str, known: tuple[str, ...], batches: Iterable[list[str] | None], others: Collection[str]
) -> bool:
    """Return True if a quick look at the body and at its joined channels proves that there is nothing to edit.

    `batches` are its documents, or None where its form is another; `others` is what else is there, when they have been
    taken.
    """
    looked = _look(body, batches, others)
    if looked is None:
        return False
    channels, clear = looked
    if clear:
        return not any(is_near(secret, text) for secret in known for text in (body, *channels))
    return not any(Scope.of(text, known) for text in itertools.chain(_blocks(body), channels))


def _look(body: str, batches: Iterable[list[str] | None], others: Collection[str]) -> tuple[list[str], bool] | None:
    """The joined channels of a body, and whether a quick look proves all of it harmless. None where its form is another."""
    if "\r" in body:
        return None
    joiner, clear = Joiner(), True
    try:
        for documents in batches:
            if documents is None:
                return None
            if joiner.parsed:  # of the batch before
                clear = clear and harmless(APART.join(joiner.parsed))
                joiner.parsed.clear()
            joiner.add_all(documents)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
    joiner.close()
    channels = ["".join(channel.texts) for channel in joiner.channels.moving()]
    return channels, clear and harmless(APART.join([*others, *joiner.parsed, *channels]))


def _event_documents(block: str, others: set[str]) -> list[str] | None:
    """The documents of a stream that has one on each line of data; None where it has not. Other lines are put aside."""
    documents: list[str] = []
    for line in block.split("\n"):
        if line.startswith("data: {"):
            documents.append(line[5:])
        elif not line:
            continue
        elif line.startswith("data:"):
            document = line[5:]
            if document in _ENDS or document.isspace() or not document:
                others.add(line)
            else:
                documents.append(document)
        elif line.startswith(_OTHER_FIELDS):
            others.add(line)
        else:
            return None
    return documents


def _blocks(body: str) -> Iterator[str]:
    """Some lines of a body at a time: a large one as a whole is in memory often enough."""
    start = 0
    while start < len(body):
        end = body.find("\n", start + _BLOCK)
        end = end if end >= 0 else len(body)
        yield body[start:end]
        start = end + 1


def looks_like_lines(body: str) -> bool:
    """Return True if a body that begins like JSON is a sequence of documents, a line each."""
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
    channels = Channels()
    owners: list[tuple[_Unit, int]] = []
    for unit in units:
        document = _load(unit.text)
        if document is not None:
            owners += ((unit, ordinal) for ordinal in range(channels.add(document)))
        elif unit.text.strip() != "[DONE]":
            channels.add_text(unit.text)
            owners.append((unit, -1))
    by_channel: defaultdict[int, list[tuple[_Unit, int]]] = defaultdict(list)
    for owner, place in zip(owners, channels.places, strict=True):
        by_channel[id(place)].append(owner)
    for channel in channels.moving():
        places = by_channel[id(channel)]
        yield [_Fragment(*owner, text) for owner, text in zip(places, channel.texts, strict=True)]


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
        last = first
        while last < len(spans) and spans[last].start < end:
            last += 1
        if last > first and fragment.text:
            yield from _fragment_edits(fragment, start, spans[first:last])
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
    unit, ordinal = fragment.unit, fragment.ordinal
    if ordinal < 0:
        return 0, range(len(unit.text) + 1)
    literal = unit.strings[ordinal] if ordinal < len(unit.strings) else None
    if literal is None or unescape(literal[1]) != fragment.text:
        literal = unit.by_text.get(fragment.text)
    if literal is None:
        return None
    plain, places = unescape_mapped(literal[1])
    return (literal.start(1), places) if plain == fragment.text else None
