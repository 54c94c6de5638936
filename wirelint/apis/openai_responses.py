"""OpenAI Responses, from the vendor and from the servers that imitate it (Azure, OpenRouter, vLLM, DeepSeek, LM Studio).

Requests: `POST …/responses`. Replies: a `response` body whose `output` is a list of items, or typed events: per item
`response.output_item.added`, its deltas, `response.output_item.done`, and last `response.completed` (`.incomplete`,
`.failed`) with the whole body once more. Source: the vendor's API reference (Responses, Streaming events), and recordings
of compatible servers for what they do differently: no event names, no sequence numbers, `[DONE]` at the end, comments
before the first event, items that are never streamed and stand in the last event alone.

There is no finish reason on the wire. Here it is `status` (`completed`, `failed`, `cancelled`), or for a reply that is
`incomplete` the reason in `incomplete_details` (`max_output_tokens`, `content_filter`), else that word itself.

`Delta.item` is the offset of a delta's text in its block: a writer can tell by it which part of the text, that is repeated
when the block ends, became what.
"""

from __future__ import annotations

from collections.abc import Mapping

from wirelint.apis.openai_responses_parts import SPOKEN_CALLS, Said, said
from wirelint.apis.openai_responses_request import read_request
from wirelint.apis.openai_responses_whole import WholeWriter
from wirelint.apis.openai_responses_writer import StreamWriter
from wirelint.apis.reading import Documents, error_of, mapping, mappings, number, text, told
from wirelint.apis.spec import ApiSpec, History, Traits
from wirelint.events import (
    CallUpdate,
    Close,
    Delta,
    Done,
    Event,
    Failure,
    Finish,
    Frame,
    Other,
    ReplyMeta,
    Start,
    StreamViolation,
    Usage,
)
from wirelint.model import Arguments, Json, Kind

__all__ = ["NAME", "claims", "claims_reply", "read_request", "reply_reader", "reply_writer"]

NAME = "openai.responses"

_OTHER_APIS = (
    "/embeddings",
    "/moderations",
    "/rerank",
    "/input_tokens",
    "/compact",
    "/completions",
    "/messages",
    "/tokenize",
)
_ITEMS = frozenset({"message", "function_call", "function_call_output", "reasoning", "custom_tool_call_output"})

_DELTAS: dict[str, tuple[Kind, str, str]] = {
    "response.output_text": ("text", "content_index", "/content/{}/text"),
    "response.refusal": ("refusal", "content_index", "/content/{}/refusal"),
    "response.reasoning_text": ("reasoning", "content_index", "/content/{}/text"),
    "response.reasoning_summary_text": ("reasoning", "summary_index", "/summary/{}/text"),
    "response.function_call_arguments": ("tool_call", "", ""),
    "response.custom_tool_call_input": ("tool_call", "", ""),
}
"""What comes in deltas: its kind, the member that numbers it within its item, its place in the item."""
_WORDS = ("text", "refusal", "arguments", "input")
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_HEADS = frozenset({"response.created", "response.in_progress", "response.queued"})


def serves(path: str) -> bool:
    """Return True if requests of this API come at a path at all."""
    return path.endswith("/responses") or not path.endswith(_OTHER_APIS)


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    if path.endswith("/responses"):
        return "messages" not in body and any(name in body for name in ("input", "prompt", "previous_response_id"))
    # Any path may serve this API behind a gateway; a list of typed items is of no other.
    items = mappings(body.get("input"))
    if not items or "messages" in body or not serves(path) or not isinstance(body.get("model"), str):
        return False
    return all(isinstance(item.get("role"), str) or item.get("type") in _ITEMS for _, item in items)


def claims_reply(document: Mapping[str, Json]) -> bool:
    kind = document.get("type")
    if isinstance(kind, str) and kind.startswith("response."):
        # A realtime session has events of the same names, each with an id of its own.
        return "event_id" not in document
    return document.get("object") == "response" and isinstance(document.get("output"), list)


def reply_reader(*, streamed: bool) -> _Reader:
    return _Reader(streamed=streamed)


def reply_writer(*, streamed: bool) -> StreamWriter | WholeWriter:
    return StreamWriter() if streamed else WholeWriter()


class _Reader:
    """Frames to events. A block is known by its place; what was streamed is not read again where it is repeated."""

    def __init__(self, *, streamed: bool) -> None:
        self._streamed = streamed
        self.documents = Documents()
        self._blocks: dict[str, int] = {}
        self._lengths: list[int] = []
        self._labels: dict[int, tuple[str | None, str | None]] = {}
        self._places: dict[str, int] = {}
        self._names: dict[int, str | None] = {}  # the id that each item began with; None once another came for it
        self._given: dict[str, str] = {}  # by call: the arguments that it was announced with
        self._shared: dict[str, int] = {}  # by the id of a call's item: the number of the first item that has it
        self._begun: set[int] = set()
        self._told: set[int] = set()
        self._ended: set[int] = set()
        self._owed: set[int] = set()  # items of the model's own that have begun and not ended
        self._next = 0
        self._head: tuple[str | None, str | None] = (None, None)
        self._done = False
        self._out: list[Event] = []

    def read(self, frame: Frame) -> list[Event]:
        if frame.data is None and not frame.faults:
            return [Other(frame)]
        reading = self.documents.read(frame)
        self._out = events = reading.violations
        for document, place in reading.documents:
            before = len(events)
            if self._streamed:
                self._event(document, place, alone=len(reading.documents) == 1)
            else:
                self._response(document, place)
            if len(events) == before:
                events.append(Other(place))
        return told(frame, events)

    def close(self) -> list[Event]:
        return self.documents.close()

    # --- a stream -----------------------------------------------------------------------------------------------------

    def _event(self, document: Mapping[str, Json], frame: Frame, *, alone: bool) -> None:
        kind = text(document.get("type")) or ""
        if alone and frame.event and frame.event != kind and frame.event.startswith("response."):
            self._out.append(StreamViolation("event-mismatch", f"event {frame.event}, type {kind}", frame))
        if self._done and kind.startswith("response."):
            self._out.append(StreamViolation("after-end", kind, frame))
            return  # clients have left
        stem, _, verb = kind.rpartition(".")
        match kind:
            case _ if verb in ("delta", "done") and stem in _DELTAS:
                self._text(stem, document, frame, delta=verb == "delta")
            case "response.output_item.added":
                self._added(document, frame)
            case "response.output_item.done":
                self._item_done(document, frame)
            case _ if kind in _HEADS:
                self._facts(mapping(document.get("response")), frame)
            case _ if kind in _ENDS:
                self._end(kind, mapping(document.get("response")), frame)
            case "error":
                self._out.append(Failure(error_of(document) or dict(document), frame))
            case "" if document.get("object") == "response":
                self._response(document, frame)
            case _ if not kind.startswith("response.") and error_of(document) is not None:
                self._out.append(Failure(error_of(document), frame))
            case _:
                pass

    def _text(self, stem: str, document: Mapping[str, Json], frame: Frame, *, delta: bool) -> None:
        kind, numbered, within = _DELTAS[stem]
        index = self._index(document)
        self._hold(index, document.get("item_id"), frame)
        pointer = f"/output/{index}" + within.format(number(document.get(numbered)) or 0)
        given = document.get("delta") if delta else next((document[w] for w in _WORDS if w in document), None)
        words = text(given) or ""
        if not delta and (not words or self._length(pointer)):
            return
        if index not in self._begun:
            self._begun.add(index)
            self._out.append(StreamViolation("undeclared-part", f"{stem} for output item {index}, never added", frame))
        if pointer not in self._blocks:
            form = "custom" if stem.startswith("response.custom") else "function"
            name = text(document.get("name"))
            self._start(Said(kind, pointer, name=name, form=form), index, frame)
        if delta and words and (given := self._given.pop(pointer, "")):
            if Arguments(given).mapping is None and not (words.startswith(given) or given.startswith(words)):
                words = given + words  # the item was added with the beginning of its arguments, and this goes on
            else:
                self._out.append(StreamViolation("repeated-start", f"{pointer} {given}", frame))
        self._say(pointer, words, frame)

    def _added(self, document: Mapping[str, Json], frame: Frame) -> None:
        index = number(document.get("output_index"))
        index = self._next if index is None else index
        item = mapping(document.get("item"))
        anew = index in self._begun
        if anew:
            self._out.append(StreamViolation("restarted-part", f"output item {index}", frame))
        self._begun.add(index)
        self._next = max(self._next, index + 1)
        if item.get("type") in ("message", *SPOKEN_CALLS):
            self._owed.add(index)
        if id_ := text(item.get("id")):
            self._places[id_] = index
            self._names[index] = None if anew else id_
        for one in said(item, f"/output/{index}"):
            # Of anything else it is not known yet what it will hold.
            if one.kind == "hosted_call" or (one.kind == "tool_call" and item.get("type") in SPOKEN_CALLS):
                if one.pointer not in self._blocks:
                    given = one.text if one.form == "function" and one.text.strip() else ""
                    if given:
                        self._given[one.pointer] = given
                    self._share(one, index, item, frame)
                    self._start(one, index, frame, given)
                elif one.kind == "tool_call":
                    self._label(one, index, frame, anew=anew)

    def _item_done(self, document: Mapping[str, Json], frame: Frame) -> None:
        item = mapping(document.get("item"))
        index = self._index(document, item)
        self._hold(index, item.get("id"), frame)
        self._begun.add(index)
        self._next = max(self._next, index + 1)
        self._item(index, item, frame)
        self._ended.add(index)
        self._owed.discard(index)
        if (block := self._blocks.get(f"/output/{index}")) is not None:
            self._out.append(Close(block, frame))

    def _end(self, kind: str, response: Mapping[str, Json], frame: Frame) -> None:
        self._response({"status": kind.removeprefix("response."), **response}, frame)
        if kind == "response.completed" and self._owed:
            self._out.append(StreamViolation("unfinished-part", f"output item {min(self._owed)} was never done", frame))
        self._done = True
        self._out.append(Done(frame))

    def _index(self, document: Mapping[str, Json], item: Mapping[str, Json] | None = None) -> int:
        index = number(document.get("output_index"))
        if index is not None:
            return index
        id_ = text(document.get("item_id")) or text((item or {}).get("id")) or ""
        return self._places.get(id_, max(self._next - 1, 0))

    def _hold(self, index: int, id_: Json, frame: Frame) -> None:
        """Holds the id under which an event speaks of an item to that which the item began with."""
        began = self._names.get(index)
        if id_ != began and began and id_ and isinstance(id_, str):
            self._names[index] = None  # once is enough
            self._out.append(StreamViolation("other-item", f"{began} {id_}", frame))

    # --- a body, and what is read of both -----------------------------------------------------------------------------

    def _response(self, response: Mapping[str, Json], frame: Frame) -> None:
        self._facts(response, frame)
        if (error := error_of(response)) is not None:
            self._out.append(Failure(error, frame))
        for index, item in mappings(response.get("output")):
            if index not in self._ended:
                self._item(index, item, frame)
        status = text(response.get("status"))
        details = text(mapping(response.get("incomplete_details")).get("reason"))
        if status == "incomplete" and details:
            self._out.append(Finish(0, details, "/incomplete_details/reason", frame))
        elif status in ("completed", "incomplete", "failed", "cancelled"):
            self._out.append(Finish(0, status, "/status", frame))
        if usage := mapping(response.get("usage")):
            self._out.append(Usage(usage, frame))

    def _facts(self, response: Mapping[str, Json], frame: Frame) -> None:
        head = (text(response.get("id")), text(response.get("model")))
        if head != self._head and any(head):
            self._head = head
            self._out.append(ReplyMeta(*head, frame))

    def _item(self, index: int, item: Mapping[str, Json], frame: Frame) -> None:
        """An item that is complete: what of it has not been told."""
        for one in said(item, f"/output/{index}"):
            if one.pointer not in self._blocks:
                if not one.text and (one.kind in ("text", "refusal") or (one.form == "opaque" and index in self._told)):
                    continue
                self._share(one, index, item, frame)
                self._start(one, index, frame)
            elif one.kind == "tool_call":
                self._label(one, index, frame)
            if one.text and not self._length(one.pointer):
                self._say(one.pointer, one.text, frame)

    def _share(self, one: Said, index: int, item: Mapping[str, Json], frame: Frame) -> None:
        """Compare the id of a call's item with the ids of the calls before it."""
        id_ = text(item.get("id"))
        if one.kind == "tool_call" and id_ is not None and self._shared.setdefault(id_, index) != index:
            self._out.append(StreamViolation("shared-item", f"{one.pointer} /output/{self._shared[id_]} {id_}", frame))

    def _start(self, one: Said, index: int, frame: Frame, given: str = "") -> None:
        block = self._blocks[one.pointer] = len(self._lengths)
        self._lengths.append(0)
        self._told.add(index)
        self._labels[block] = (one.id, one.name)
        self._out.append(
            Start(block, one.kind, one.pointer, 0, frame, index, one.id, one.name, one.input, one.form, index, given)
        )

    def _label(self, one: Said, index: int, frame: Frame, *, anew: bool = False) -> None:
        """Tells of an id or a name that is not the one given before. `anew`: the item was announced once more."""
        block = self._blocks[one.pointer]
        id_, name = self._labels[block]
        if (one.id and one.id != id_) or (one.name and one.name != name):
            self._labels[block] = (one.id or id_, one.name or name)
            # The number of the item says which call it is: a name that is repeated begins no other one.
            self._out.append(CallUpdate(block, index, one.id, one.name if anew or one.name != name else None, frame))

    def _say(self, pointer: str, words: str, frame: Frame) -> None:
        block = self._blocks[pointer]
        self._out.append(Delta(block, words, frame, self._lengths[block]))
        self._lengths[block] += len(words)

    def _length(self, pointer: str) -> int:
        block = self._blocks.get(pointer)
        return 0 if block is None else self._lengths[block]


API = ApiSpec(
    name=NAME,
    serves=serves,
    claims=claims,
    claims_reply=claims_reply,
    read_request=lambda body, path="": read_request(body),
    reply_reader=reply_reader,
    stream_writer=StreamWriter,
    whole_writer=WholeWriter,
    traits=Traits(
        ended="completed",
        calls="completed",
        finish_at="/status",
        text_at="/output",
        reasoning_at="/output",
        reasoning="a reasoning item",
        calls_at="/output",
        ends_repeat=True,
        always_reports_usage=True,
    ),
    history=History("/input", None, "call_id", "call_id", "arguments"),
)
