r"""Ollama's own API: `POST …/api/chat` and `POST …/api/generate`.

Replies are JSON lines, since `stream` is true unless the request declines; with `stream: false` one such document is
the body. Each line holds a piece of the message. The last one, with `done: true`, has the finish reason and token counts.
Source: the vendor's API reference, and recordings of servers from 0.1 to 0.12.

    {"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}
    {"model":"m","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"eval_count":2}

Differences from other APIs: a call comes in one piece, its arguments an object, without an id (recent servers send one);
its `index` is its position in the reply, and older servers leave it out; a reply with calls ends with `stop`; an error is a
string, in a line of its own once the stream has begun. `generate` has no messages: `prompt` in, `response` out, and
`raw: true` means that the prompt is already the output of the model's template.

Theory of operation of the writers. A line holds a piece of everything: thinking, text, calls, in that order. A frame whose
events are unchanged is forwarded unchanged. From any other, the members that events represent are removed and rebuilt
from the events, one line for each piece; other members (model, time, counts, unknown ones) are kept in their line. The
line that ends a reply holds no content, like the vendor's: earlier content goes into separate lines. Calls are numbered
by their position in the reply if their line has a number, and have an id if they came with one.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from wirelint.apis._choices import read_chat
from wirelint.apis.reading import ApiSpec, ReplyReader, ReplyWriter, error_of, misshapen, stated_reason, words_of
from wirelint.apis.writing import (
    MADE,
    BodyWriter,
    block_events,
    dump,
    finish_of,
    frame_document,
    groups,
    same,
    set_or_drop,
    text_of,
    without_violations,
)
from wirelint.events import Delta, Done, Event, Failure, Finish, Frame, Other, ReplyMeta, Start, Usage
from wirelint.jsonvalues import mapping, mappings, number, text
from wirelint.model import Arguments, Json, Kind, Message, Opaque, Part, Request, Text

_COUNTS = ("prompt_eval_count", "eval_count")
_REASONS = {"tool_calls": "stop", "function_call": "stop"}
"""OpenAI's finish reasons, which rewriters use, in Ollama's words."""
_ORDER = {"reasoning": 0, "text": 1, "refusal": 1, "tool_call": 2}


def _prompt(body: Mapping[str, Json]) -> Iterator[Message]:
    if system := text(body.get("system")):
        yield Message("system", (Text(system, "/system"),), "/system")
    prompt, images = text(body.get("prompt")), body.get("images")
    parts: list[Part] = [Text(prompt, "/prompt")] if prompt else []
    parts += [Opaque("image", f"/images/{n}") for n, _ in enumerate(images if isinstance(images, list) else ())]
    if parts:
        yield Message("user", tuple(parts), "/prompt")


class Reader(ReplyReader):
    """Reader of replies. Text and thinking are one block each; every entry of `tool_calls` is a separate call."""

    def __init__(self, place: str, *, streamed: bool) -> None:
        """`place`: pointer of the object with the model's message; empty for the document itself."""
        super().__init__(streamed=streamed)
        self._place = place
        self._blocks: dict[str, int] = {}
        self._calls = 0

    def read_document(self, document: dict[str, Json]) -> Iterator[Event]:
        if self.is_done:
            yield self.violation("after-end", (self.frame.data or "")[:60])
            return  # clients have left
        yield from self.meta(None, text(document.get("model")))
        yield from self.failure(error_of(document))
        yield from self._message(mapping(document.get("message")) if self._place else document)
        if reason := stated_reason(document.get("done_reason")):
            yield Finish(0, reason, "/done_reason", self.frame)
        yield from self.usage({name: document[name] for name in _COUNTS if number(document.get(name)) is not None})
        if document.get("done") is True:
            self.is_done = True
            yield Done(self.frame)

    def _message(self, message: Mapping[str, Json]) -> Iterator[Event]:
        name = "content" if self._place else "response"
        kinds: tuple[tuple[Kind, str], ...] = (("reasoning", "thinking"), ("text", name))
        for kind, member in kinds:
            if piece := text(message.get(member)):
                yield from self._begin(kind, member)
                yield Delta(self._blocks[member], piece, self.frame)
        if (other := message.get(name)) and not isinstance(other, str):
            yield from self._begin("opaque", name, misshapen(other))
            yield Delta(self._blocks[name], words_of(other), self.frame)
        for position, call in mappings(message.get("tool_calls")):
            yield from self._call(position, call)
        if message.get("images"):
            yield from self._begin("opaque", "images")

    def _begin(self, kind: Kind, member: str, name: str = "") -> Iterator[Event]:
        if member not in self._blocks:
            self._blocks[member] = self.next_block()
            yield Start(self._blocks[member], kind, f"{self._place}/{member}", 0, self.frame, name=name or member)

    def _call(self, position: int, call: Mapping[str, Json]) -> Iterator[Event]:
        function = mapping(call.get("function"))
        given = function.get("arguments")
        ordinal, self._calls = self._calls, self._calls + 1
        block, pointer = self.next_block(), f"{self._place}/tool_calls/{ordinal}"
        id_, name, words = text(call.get("id")), text(function.get("name")), text(given)
        value = None if words is not None else given
        # A call is complete in its line, so its position is its number, even if `index` differs.
        yield Start(block, "tool_call", pointer, 0, self.frame, ordinal, id_, name, value, item=position)
        if words:
            yield Delta(block, words, self.frame, position)


_Piece: TypeAlias = "tuple[list[Event], list[Event], dict[int, list[Event]]]"
"""The content of one message: thinking, text, and the events of each call."""


class _Writer:
    def __init__(self, place: str) -> None:
        self._chat = bool(place)
        self._words = "content" if place else "response"
        self._starts: dict[int, Start] = {}
        self._numbers: dict[int, int] = {}

    def _note(self, events: Sequence[Event], out: Sequence[Event]) -> None:
        """Record the blocks that start, and number the calls that leave."""
        for event in (*events, *out):
            if type(event) is Start:
                self._starts.setdefault(event.block, event)
        for event in out:
            if type(event) is Start and event.kind == "tool_call":
                self._numbers.setdefault(event.block, len(self._numbers))

    def _is_renumbered(self, out: Sequence[Event]) -> bool:
        return any(type(e) is Start and e.kind == "tool_call" and self._numbers[e.block] != e.wire_index for e in out)

    def _message(self, document: Mapping[str, Json]) -> dict[str, Json]:
        return mapping(document.get("message")) if self._chat else dict(document)

    def _pieces(self, out: Sequence[Event], *, joined: bool) -> list[_Piece]:
        """Return the content in pieces, each in the order thinking, text, calls. `joined`: in one piece."""
        pieces: list[_Piece] = [([], [], {})]
        for event in out:
            start = self._starts.get(event.block) if isinstance(event, (Start, Delta)) else None
            order = _ORDER.get(start.kind) if start is not None else None
            if start is None or order is None or (order < 2 and not isinstance(event, Delta)):
                continue
            if not joined and any(pieces[-1][order + 1 :]):
                pieces.append(([], [], {}))
            thinking, words, calls = pieces[-1]
            (thinking, words, calls.setdefault(start.block, []) if order == 2 else [])[order].append(event)
        return [piece for piece in pieces if any(piece)]

    def _with(
        self, document: Mapping[str, Json], message: Mapping[str, Json], piece: _Piece, source: Mapping[str, Json]
    ) -> dict[str, Json]:
        """Return a document whose message has the content of a piece. `source`: the message that the events were read
        from. The message of `generate` is the document itself.
        """
        made: dict[str, Json] = {**({"role": "assistant"} if self._chat else {}), **message}
        thinking, words, calls = piece
        made[self._words] = text_of(words)
        items = dict(mappings(source.get("tool_calls")))
        entries: list[Json] = [self._entry(items, block, events) for block, events in calls.items()]
        members: dict[str, Json] = {"thinking": text_of(thinking), "tool_calls": entries}
        for name, value in members.items():
            made.pop(name, None)
            set_or_drop(made, name, value)
        return {**document, "message": made} if self._chat else made

    def _entry(self, items: Mapping[int, dict[str, Json]], block: int, events: Sequence[Event]) -> Json:
        start = self._starts[block]
        own = items.get(start.item, {}) if block < MADE else {}
        function = dict(mapping(own.get("function")))
        begins = next((event for event in events if isinstance(event, Start)), start)
        if "index" in function or not own:
            function["index"] = self._numbers.get(block, len(self._numbers))
        function["name"] = begins.name or ""
        words = text_of(events)
        value = Arguments(words).mapping if words else {} if begins.input is None else begins.input
        # Text if the upstream sent arguments that are no object.
        function["arguments"] = words if value is None or isinstance(function.get("arguments"), str) else value
        known = {"id": begins.id} if begins.id is not None and (own.get("id") is not None or not own) else {}
        return {**own, "function": function, **known}


def _with_reason(made: dict[str, Json], out: Sequence[Event], source: Mapping[str, Json]) -> dict[str, Json]:
    if (finish := finish_of(out)) is None:
        return made
    known = finish.reason == source.get("done_reason")
    return {**made, "done_reason": finish.reason if known else _REASONS.get(finish.reason, finish.reason)}


class StreamWriter(_Writer, ReplyWriter):
    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._shell: dict[str, Json] = {}
        """The members that every line of this reply has beside the message."""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        self._note(events, out)
        if same(events, out) and not self._is_renumbered(out):
            if not self._shell:
                self._remember(frame_document(frame))
            return frame.raw
        return b"".join(part for each in groups(frame, events, out) for part in self._group(*each))

    def close(self, out: Sequence[Event]) -> bytes:
        self._note((), out)
        made = [dump(line) + b"\n" for line in self._lines({}, [], out)]
        return b"".join(made) if any(not isinstance(event, (Other, ReplyMeta)) for event in out) else b""

    def _remember(self, document: Mapping[str, Json]) -> None:
        shell = {name: document[name] for name in ("model", "created_at") if name in document}
        self._shell = shell if not document or shell else {"model": ""}

    def _group(self, frame: Frame, own: Sequence[Event], out: Sequence[Event]) -> Iterator[bytes]:
        document = frame_document(frame)
        if document:
            self._remember(document)
        elif same(own, out) or any(isinstance(event, Other) for event in out):
            yield frame.raw
            return
        if document and same(without_violations(own), without_violations(out)) and not self._is_renumbered(out):
            yield (frame.data or "").encode() + b"\n"
        else:
            yield from (dump(line) + b"\n" for line in self._lines(document, own, out))

    def _lines(
        self, document: Mapping[str, Json], own: Sequence[Event], out: Sequence[Event]
    ) -> Iterator[dict[str, Json]]:
        """Yield the lines to write for one line of the upstream."""
        shell, source = self._shell, self._message(document) if document else {}
        ends = any(isinstance(event, (Finish, Done)) for event in out)
        is_sent = ends or any(
            isinstance(event, (Failure, Usage)) or (isinstance(event, Start) and event.kind == "opaque")
            for event in out
        )
        rest = {name: value for name, value in source.items() if name not in (self._words, "thinking", "tool_calls")}
        pieces = self._pieces(out, joined=False)
        if not document or ends:
            for piece in pieces:
                yield {**self._with(shell, {} if self._chat else shell, piece, source), "done": False}
            if is_sent:
                ending = {"done": False, **(document or shell)}
                last = self._with(ending, rest if rest or self._chat else ending, ([], [], {}), {})
                yield _with_reason({**last, "done": True} if ends else last, out, ending)
            return
        for place, piece in enumerate(pieces):
            yield self._with(document, rest if place == 0 or not self._chat else {}, piece, source)
        if not pieces and (is_sent or not own):
            has_words = self._words in source or any(isinstance(event, Start) for event in out)
            yield self._with(document, rest, ([], [], {}), source) if has_words else dict(document)


class WholeWriter(BodyWriter, _Writer):
    def patch(self, document: dict[str, Json], events: Sequence[Event], out: Sequence[Event]) -> dict[str, Json]:
        self._note(events, out)
        changed = dict(document)
        if not same(block_events(events), block_events(out)):
            source = self._message(document)
            piece = next(iter(self._pieces(out, joined=True)), ([], [], {}))
            changed = self._with(document, source, piece, source)
        return _with_reason(changed, out, document)


def _spec(name: str, end: str, place: str) -> ApiSpec:
    """Return the API at paths with this end. `place`: pointer of the object with the model's message."""

    def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
        messages = body.get("messages")
        return isinstance(body.get("model"), str) and (isinstance(messages, list) if place else messages is None)

    def claims_reply(document: Mapping[str, Json]) -> bool:
        message = isinstance(document.get("message"), dict) if place else isinstance(document.get("response"), str)
        return message and isinstance(document.get("done"), bool)

    def read_request(body: Mapping[str, Json], path: str = "") -> Request:
        request = read_chat(body)
        return dataclasses.replace(
            request,
            messages=request.messages if place else tuple(_prompt(body)),
            stream=body.get("stream") is not False,
            hosted=False,
            max_tokens=number(mapping(body.get("options")).get("num_predict")),
        )

    return ApiSpec(
        name,
        claims,
        claims_reply,
        read_request,
        partial(Reader, place),
        partial(StreamWriter, place),
        partial(WholeWriter, place),
        paths=re.compile(rf"{end}\Z"),
    )


CHAT_API = _spec("ollama.chat", "/api/chat", "/message")
GENERATE_API = _spec("ollama.generate", "/api/generate", "")
