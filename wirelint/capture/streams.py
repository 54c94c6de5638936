r"""Secrets in streamed bodies, where one secret may be spread over many events.

Theory of operation. The framers of `wirelint.wire` cut a body into frames. Every string in the documents of the frames
belongs to a *channel*: the member names on the way to the string, with the positions of list items replaced by their
`index`, under the numbers by which a document names its part (`output_index`, `content_index`, `item_id`). A client
concatenates the strings of a channel:

    data: {"index":0,"delta":{"partial_json":"{\"key\": \"sk-pr"}}
    data: {"index":0,"delta":{"partial_json":"oj-Zq81LmN0pXv72RtYc5Wb\"}"}}

A channel is joined and searched as one text, also in fields that no API reader knows. The first fragment of a secret gets
the mark, and the others lose the characters of the secret. Then each document is searched by itself, for secrets in one
piece: errors, and values under names such as `api_key`. Events, their order and their framing stay.

Nearly every body is free of secrets, and `is_clean` proves that from its bytes and from the joined channels. A session
collects the channels while it reads the reply (`StreamStrings`), so that such a body is not parsed a second time. Only a
body that is not proved clean, or that no session has read, is cut into frames here.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from wirelint.apis.reading import IGNORED, Decoded
from wirelint.capture.secrets import (
    LITERAL,
    Scope,
    Span,
    find_in_json,
    find_in_text,
    harmless,
    is_near,
    merge,
    unescape,
    unescape_mapped,
)
from wirelint.events import Frame
from wirelint.jsonvalues import decode_json
from wirelint.model import Json
from wirelint.wire import Framing, Sniffer
from wirelint.wire.aws_eventstream import content_of, looks_like_messages, split, with_content

_LINE = re.compile(r"[^\r\n]+")
_DATA = re.compile(r"[ \t\ufeff]*data:[ ]?")
_BLANKS = "\ufeff \t\r\n"
_COLON = re.compile(r"[ \t\r\n]*:")
_PART_NUMBERS = ("index", "output_index", "content_index", "summary_index", "item_id")
_CONTAINERS = frozenset({"delta", "content_block"})
"""A text that begins in one of these members continues in the other: their names are no part of a channel."""

_DEEPEST = 40
_BLOCK = 1 << 18
"""Bytes of a stream that `is_clean` searches at a time, up to the next blank line. This limits the size of its
copies."""


class Edit(NamedTuple):
    """Characters `start` to `end` of frame number `frame` are to be replaced. Without a `secret` they are removed."""

    frame: int
    start: int
    end: int
    secret: str | None


class ByteEdit(NamedTuple):
    """`size` bytes replaced the bytes `start` to `end` of a body."""

    start: int
    end: int
    size: int


class Body:
    """A body cut into frames, with the text of each frame."""

    def __init__(self, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.framing: Framing
        self.frames: list[Frame] = []
        if looks_like_messages(body[:12]):
            messages, rest = split(body)
            self.framing = "messages"
            for number, raw in enumerate(messages):
                self.frames.append(Frame(number, raw, None, content_of(raw).decode("utf-8", "surrogateescape")))
            if rest:
                self.frames.append(Frame(len(messages), rest, None, None, (("cut-event", ""),)))
            return
        sniffer = Sniffer(headers or {})
        self.frames = [*sniffer.feed(body), *sniffer.close()]
        self.framing = sniffer.framing

    def text(self, number: int) -> str:
        """Return the text of a frame: its bytes, or the payload of an AWS message."""
        frame = self.frames[number]
        if self.framing == "messages" and frame.data is not None:
            return frame.data
        return frame.raw.decode("utf-8", "surrogateescape")

    def apply(self, edits: list[Edit], mark: Callable[[str], str]) -> tuple[bytes, list[ByteEdit]]:
        """Return the edited body, and the places of the edits in its bytes; an AWS message changes as a whole."""
        pieces: list[bytes] = []
        made: list[ByteEdit] = []
        by_frame = {number: list(group) for number, group in itertools.groupby(edits, lambda edit: edit.frame)}
        begin = 0
        for number, frame in enumerate(self.frames):
            raw = frame.raw
            if number in by_frame:
                raw, places = _edited(self.text(number), by_frame[number], mark)
                if self.framing == "messages" and frame.data is not None:
                    raw = with_content(frame.raw, raw)
                    places = [ByteEdit(0, len(frame.raw), len(raw))]
                made += [ByteEdit(begin + place.start, begin + place.end, place.size) for place in places]
            pieces.append(raw)
            begin += len(frame.raw)
        return b"".join(pieces), made


def _edited(text: str, edits: list[Edit], mark: Callable[[str], str]) -> tuple[bytes, list[ByteEdit]]:
    pieces: list[bytes] = []
    made: list[ByteEdit] = []
    position = place = 0
    for edit in edits:
        between = text[position : edit.start].encode("utf-8", "surrogateescape")
        removed = len(text[edit.start : edit.end].encode("utf-8", "surrogateescape"))
        replacement = mark(edit.secret).encode() if edit.secret is not None else b""
        pieces += between, replacement
        place += len(between)
        made.append(ByteEdit(place, place + removed, len(replacement)))
        place += removed
        position = edit.end
    pieces.append(text[position:].encode("utf-8", "surrogateescape"))
    return b"".join(pieces), made


def find_in_body(body: Body, known: tuple[str, ...]) -> list[Edit]:
    """Return the edits that remove all secrets from a body, sorted."""
    documents = _documents(body)
    strings = StreamStrings()
    fragments: defaultdict[int, list[_Fragment]] = defaultdict(list)
    for document in documents if body.framing != "whole" else ():
        _collect(document, strings, fragments)
    edits = [edit for channel in strings.moving() for edit in _channel_edits(fragments[id(channel)], known)]
    edits += _apart(_edits_in_one_piece(body, documents, known), edits)
    return sorted(edits)


def is_clean(body: bytes, strings: StreamStrings, known: tuple[str, ...]) -> bool:
    """Return True if a quick search proves that a stream holds no secret. `strings` are all strings of the stream."""
    return not any(
        any(is_near(secret, text) for secret in known) or not harmless(text)
        for text in itertools.chain(_blocks(body), strings.joined())
    )


def _blocks(body: bytes) -> Iterator[str]:
    """Yield the text of a stream, some frames at a time. No sign of a secret crosses the end of a frame."""
    if looks_like_messages(body[:12]):
        messages, rest = split(body)
        body = b"\n\n".join([*map(content_of, messages), rest])
    start = 0
    while start < len(body):
        end = body.find(b"\n\n", start + _BLOCK) + 2
        end = end if end > 1 else len(body)
        yield body[start:end].decode("utf-8", "surrogateescape")
        start = end


# --- documents ---------------------------------------------------------------------------------------------------------


class _Document:
    """One document of a stream. `lines` are its lines with their offsets in the text of its frame."""

    def __init__(self, frame: int, lines: Sequence[tuple[int, str]]) -> None:
        self.frame, self._lines = frame, lines
        self.text = "\n".join(line for _, line in lines)
        self._starts = list(itertools.accumulate((len(line) + 1 for _, line in lines[:-1]), initial=0))

    def place(self, position: int) -> int:
        """Return the offset in the frame's text of a position in the document."""
        number = bisect.bisect_right(self._starts, position) - 1
        return self._lines[number][0] + position - self._starts[number]

    @cached_property
    def strings(self) -> Sequence[re.Match[str]]:
        """The string literals that are no member names, in order."""
        return [literal for literal in LITERAL.finditer(self.text) if not _COLON.match(self.text, literal.end())]

    @cached_property
    def by_text(self) -> Mapping[str, re.Match[str]]:
        return {unescape(literal[1]): literal for literal in reversed(self.strings)}


def _documents(body: Body) -> list[_Document]:
    documents: list[_Document] = []
    for number, frame in enumerate(body.frames):
        text, data = body.text(number), frame.data
        match body.framing:
            case "events":
                documents += _event_documents(number, text)
            case "lines":
                documents += [_Document(number, [line]) for line in _lines(text) if line[1].strip()]
            case "whole":
                documents.append(_Document(number, [(len(text) - len(data := text.lstrip(_BLANKS)), data)]))
            case _ if data and text.endswith(data):
                documents.append(_Document(number, [(len(text) - len(data), data)]))
    return documents


def _event_documents(number: int, text: str) -> list[_Document]:
    """Return one document over all data lines; one for each line if the blank lines between events are lost."""
    fields = ((start, line, _DATA.match(line)) for start, line in _lines(text))
    data = ((start + name.end(), line[name.end() :]) for start, line, name in fields if name is not None)
    lines = [(start, value) for start, value in data if value.strip()]
    document = _Document(number, lines)
    if len(lines) > 1 and decode_json(document.text) is None:
        return [_Document(number, [line]) for line in lines]
    return [document] if lines else []


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty with their offsets."""
    return ((match.start(), match[0]) for match in _LINE.finditer(text))


# --- channels ----------------------------------------------------------------------------------------------------------


class _Channel(dict[Hashable, "_Channel"]):
    """The strings at one place of the documents, in order, and the places below.

    `texts` is empty until the strings differ: a field with one value (an id, a model) carries no text, and is counted.
    """

    __slots__ = ("_count", "_first", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._first, self._count = "", 0

    def __missing__(self, name: Hashable) -> _Channel:
        below = self[name] = _Channel()
        return below

    def add(self, text: str) -> None:
        if self.texts:
            self.texts.append(text)
        elif self._count and text != self._first:
            self.texts = [*itertools.repeat(self._first, self._count), text]
        else:
            self._first = text
            self._count += 1


Emit = Callable[[_Channel, str], None]


class StreamStrings:
    """The strings of a stream's documents by channel. A session adds the frames of a reply while it reads them.

    `size` counts the bytes of sound frames. Members that no reader looks at (`IGNORED`: padding, times) are no channels.
    """

    def __init__(self) -> None:
        self.size = 0
        self._parts, self._broken = _Channel(), _Channel()

    def add(self, frame: Frame, last: Decoded) -> None:
        """Add a frame. `last` is the last frame that was one document, with that document."""
        if last.frame is frame:
            self.size += len(frame.raw)
            if last.document is not None:
                self.add_document(last.document)
        elif not frame.faults and not (frame.data or "").strip():  # a comment, as a rule
            self.size += len(frame.raw)

    def covers(self, body: bytes) -> bool:
        """Return True if all bytes of a body were added. Frames with damaged or several documents are not."""
        return self.size == len(body)

    def add_document(self, document: dict[str, Json], emit: Emit = _Channel.add) -> None:
        """Call `emit` with the channel and each string of a document, in the order of the document."""
        part = tuple([number for name in _PART_NUMBERS if isinstance(number := document.get(name), (str, int))])
        _walk(document, self._parts[part], emit, 0)

    def add_broken(self, text: str, emit: Emit = _Channel.add) -> None:
        """Add the text of a document that is no JSON: a part of one, as a rule."""
        emit(self._broken, text)

    def moving(self) -> Iterator[_Channel]:
        """Yield the channels whose strings differ."""
        waiting = [self._broken]
        for part in self._parts.values():
            waiting += [channel for name, channel in part.items() if name not in IGNORED]
            if part.texts:
                yield part
        while waiting:
            channel = waiting.pop()
            waiting += channel.values()
            if channel.texts:
                yield channel

    def joined(self) -> Iterator[str]:
        """Yield the text of each channel whose strings differ."""
        return ("".join(channel.texts) for channel in self.moving())


def _walk(items: dict[str, Json] | list[Json], channel: _Channel, emit: Emit, depth: int) -> None:
    pairs: Iterable[tuple[str | int, Json]] = items.items() if isinstance(items, dict) else enumerate(items)
    # A decoder makes values of exact types, and `type` is faster than `isinstance`.
    for name, item in pairs:
        if type(item) is str:
            emit(channel if name in _CONTAINERS else channel[name], item)
        elif type(item) is dict and depth < _DEEPEST:
            if type(name) is int and type(index := item.get("index")) is int:
                name = index
            _walk(item, channel if name in _CONTAINERS else channel[name], emit, depth + 1)
        elif type(item) is list and depth < _DEEPEST:
            _walk(item, channel if name in _CONTAINERS else channel[name], emit, depth + 1)


# --- edits -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fragment:
    """One string of a channel: the string literal number `ordinal` of a document, or (ordinal -1) its whole text."""

    document: _Document
    ordinal: int
    text: str

    def locate(self) -> tuple[int, Sequence[int]] | None:
        """Return the offset of the literal in its document, and the raw offset from there of each of its characters."""
        document, ordinal = self.document, self.ordinal
        if ordinal < 0:
            return 0, range(len(document.text) + 1)
        literal = document.strings[ordinal] if ordinal < len(document.strings) else None
        if literal is None or unescape(literal[1]) != self.text:
            literal = document.by_text.get(self.text)
        if literal is None:
            return None
        plain, places = unescape_mapped(literal[1])
        return (literal.start(1), places) if plain == self.text else None


def _collect(document: _Document, strings: StreamStrings, found: Mapping[int, list[_Fragment]]) -> None:
    """Add the strings of a document to their channels, and to the fragments of each channel (by its identity)."""
    ordinals = itertools.count()

    def emit(channel: _Channel, text: str) -> None:
        channel.add(text)
        found[id(channel)].append(_Fragment(document, next(ordinals), text))

    value = decode_json(document.text)
    if isinstance(value, dict):
        strings.add_document(value, emit)
    elif value is None and document.text.strip() != "[DONE]":
        ordinals = itertools.count(-1)
        strings.add_broken(document.text, emit)


def _channel_edits(fragments: list[_Fragment], known: tuple[str, ...]) -> Iterator[Edit]:
    joined = "".join(fragment.text for fragment in fragments)
    scope = Scope.of(joined, known)
    spans = find_in_text(joined, scope) if scope else []
    if not spans:
        return
    start = 0
    for fragment in fragments:
        end = start + len(fragment.text)
        first = bisect.bisect_right(spans, start, key=lambda span: span.end)
        last = bisect.bisect_left(spans, end, key=lambda span: span.start)
        if last > first and fragment.text:
            yield from _fragment_edits(fragment, start, spans[first:last])
        start = end


def _fragment_edits(fragment: _Fragment, start: int, spans: list[Span]) -> Iterator[Edit]:
    """Yield edits for the part of each span that lies in this fragment, which begins at `start` of its channel."""
    if (located := fragment.locate()) is None:
        return
    (offset, places), document = located, fragment.document
    for span in spans:
        first, last = max(span.start - start, 0), min(span.end - start, len(fragment.text))
        secret = span.secret if span.start >= start else None
        begin, end = document.place(offset + places[first]), document.place(offset + places[last])
        yield Edit(document.frame, begin, end, secret)


def _edits_in_one_piece(body: Body, documents: list[_Document], known: tuple[str, ...]) -> Iterator[Edit]:
    """Yield edits for secrets within one document, and in the lines of a frame beside its documents."""
    held: defaultdict[int, list[_Document]] = defaultdict(list)
    for document in documents:
        held[document.frame].append(document)
    for number in range(len(body.frames)):
        text = body.text(number)
        # The data lines of one document have `data:` between them, which may hide a name from its value.
        lines = [document.text for document in held[number]] if body.framing != "whole" else []
        scope = Scope.of("\n".join([text, *lines]), known)
        if not scope:
            continue
        for document in held[number]:
            for start, end, secret in _in_document(document.text, scope):
                yield Edit(number, document.place(start), document.place(end), secret)
        beside = [] if held[number] else [(0, text)]
        if body.framing == "events":
            beside = [line for line in _lines(text) if not _DATA.match(line[1])]
        for place, line in beside:
            for start, end, secret in find_in_text(line, scope):
                yield Edit(number, place + start, place + end, secret)


def _in_document(text: str, scope: Scope) -> list[Span]:
    if text.lstrip()[:1] not in ("{", "["):
        return find_in_text(text, scope)
    spans = find_in_json(text, scope)
    # In a text that is cut off or no JSON, a secret may be outside of string literals.
    return spans if decode_json(text) is not None else merge([*spans, *find_in_text(text, scope)])


def _apart(candidates: Iterable[Edit], taken: list[Edit]) -> list[Edit]:
    """Return the candidates that overlap no edit of `taken`."""
    ordered = sorted(taken)
    result: list[Edit] = []
    for edit in sorted(candidates):
        place = bisect.bisect_right(ordered, edit[:2], key=lambda one: one[::2])  # the first that ends after its start
        if place == len(ordered) or ordered[place][:2] >= edit[::2]:
            result.append(edit)
    return result
