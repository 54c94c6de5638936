"""OpenAI Chat Completions, and the many servers that speak it (vLLM, SGLang, OpenRouter, Azure, DeepInfra, Ollama's `/v1`).

Requests: `POST …/chat/completions`. Replies: a `chat.completion` body, or `chat.completion.chunk` events with `[DONE]` at
the end. Source: the vendor's API reference (Chat), and recordings of compatible servers for what they do differently:
reasoning under `reasoning_content` (DeepSeek, vLLM) or `reasoning` (OpenRouter, Groq), keep-alive comments, a first chunk
without choices (Azure), a last one with nothing but usage, an error object in the middle of a stream.
"""

from __future__ import annotations

from collections.abc import Mapping

from wirelint.apis.openai_request import read_request, read_request_again
from wirelint.apis.openai_writer import StreamWriter, WholeWriter
from wirelint.apis.reading import (
    Documents,
    error_of,
    is_conversation,
    mapping,
    mappings,
    misshapen,
    number,
    refusal_of,
    stated_reason,
    text,
    told,
)
from wirelint.events import (
    CallUpdate,
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
from wirelint.model import Json, Kind

__all__ = ["NAME", "claims", "claims_reply", "read_request", "read_request_again", "reply_reader", "reply_writer"]

NAME = "openai.chat"

# Bodies of the same shape that belong to other APIs, or to calls that no model answers.
_OTHER_APIS = (
    *("/api/chat", "/v2/chat", "/messages", "/responses", "/converse", "/converse-stream", "/completions"),
    *("/count_tokens", "/batches", "/tokenize", "/embeddings", "/moderations", "/rerank"),
)
_REASONING = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
_SIMPLE = frozenset({"role", "content"})
"""The members of nearly every delta."""

_HOSTED_EVIDENCE = ("annotations", "executed_tools", "citations", "search_results")


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    if not is_conversation(body):
        return False
    if path.endswith("/chat/completions"):
        return True
    # Any path may serve this API behind a gateway; the shape decides, unless the path or a header says another API.
    return isinstance(body.get("model"), str) and not path.endswith(_OTHER_APIS) and "anthropic-version" not in headers


def claims_reply(document: Mapping[str, Json]) -> bool:
    kind = document.get("object")
    if isinstance(kind, str) and kind:
        return kind in ("chat.completion", "chat.completion.chunk")
    first = next((choice for _, choice in mappings(document.get("choices"))), {})
    return "message" in first or "delta" in first


def reply_reader(*, streamed: bool) -> _Reader:
    return _Reader(streamed=streamed)


def reply_writer(*, streamed: bool) -> StreamWriter | WholeWriter:
    return StreamWriter() if streamed else WholeWriter()


class _Reader:
    """Frames to events. Calls of a stream are told apart by index, and a missing index reads as 0, as clients read it."""

    def __init__(self, *, streamed: bool) -> None:
        self._streamed = streamed
        self.documents = Documents()
        self._blocks: dict[tuple[int, str, int], int] = {}
        self._count = 0
        self._calls: dict[int, int] = {}
        self._labels: dict[int, tuple[str, str]] = {}
        self._repeated: set[int] = set()
        self._given: tuple[Json, Json] = (None, None)
        self._head: tuple[str | None, str | None] = (None, None)
        self._begun = 0  # where the events of the document's choices begin in `_out`
        self._finished = False
        self._blank: set[int] = set()
        self._done = False
        self._counted = False
        self._out: list[Event] = []
        """Where the methods below put their events: a generator for each of them would cost more than they do."""

    def read(self, frame: Frame) -> list[Event]:
        if frame.data is None and not frame.faults:
            return [Other(frame)]
        reading = self.documents.read(frame)
        self._out = events = reading.offences
        for document, place in reading.documents:
            if self._done and (document.get("choices") or error_of(document)):
                events.append(StreamViolation("after-end", (frame.data or "")[:60], frame))
                document = {**document, "choices": None}  # clients have left
            elif self._done and document.get("usage") and not self._counted:
                events.append(StreamViolation("late-usage", "", frame))
            if self._done:
                document = {**document, "id": self._given[0], "model": self._given[1]}
            self._document(document, place)
        if frame.event == "error" and not reading.documents and frame.data:
            events.append(Failure(frame.data, frame))
        if reading.done:
            self._done = True
            events.append(Done(frame))
        return told(frame, events)

    def close(self) -> list[Event]:
        events = self.documents.close()
        if self._streamed and self._finished and not self._done:
            events.append(StreamViolation("missing-end", "no [DONE]", None))
        return events

    def _document(self, document: Mapping[str, Json], frame: Frame) -> None:
        given = (document.get("id"), document.get("model"))
        if given != self._given:  # it stands in every event
            self._given = given
            head = (text(given[0]), text(given[1]))
            if head != self._head and any(head):
                self._head = head
                self._out.append(ReplyMeta(*head, frame))
        error = error_of(document)
        if error is None and not document.get("choices"):
            error = dict(document) if frame.event == "error" else refusal_of(document)
        if error is not None:
            self._out.append(Failure(error, frame))
        self._begun = len(self._out)
        for position, choice in mappings(document.get("choices")):
            index = number(choice.get("index"))
            self._choice(position if index is None else index, choice, frame)
        if document.get("usage") or "x_groq" in document:
            self._use(document, frame)
        for field in ("citations", "search_results"):
            if document.get(field):
                self._once(0, field, f"/{field}", frame)

    def _use(self, document: Mapping[str, Json], frame: Frame) -> None:
        if usage := mapping(document.get("usage")) or mapping(mapping(document.get("x_groq")).get("usage")):
            self._counted = True
            self._out.append(Usage(usage, frame))

    def _choice(self, choice: int, body: Mapping[str, Json], frame: Frame) -> None:
        message = mapping(body.get("delta")) or mapping(body.get("message"))
        content = message.get("content")
        place = f"/choices/{choice}/message"
        simple = message.keys() <= _SIMPLE
        if not simple:
            self._reasoning(choice, message, place, frame)
        if content:
            self._content(choice, content, f"{place}/content", frame)
        if not simple:
            self._others(choice, message, place, frame)
        if body.get("error"):  # OpenRouter: what went wrong behind it, with the reason `error`
            self._out.append(Failure(body["error"], frame))
        if reason := stated_reason(body.get("finish_reason")):
            self._finished = True
            self._out.append(Finish(choice, reason, f"/choices/{choice}/finish_reason", frame))
        elif (written := text(body.get("finish_reason"))) is not None:
            self._reasonless(choice, written, frame)

    def _reasonless(self, choice: int, written: str, frame: Frame) -> None:
        """Report that the lack of a finish reason is written as text: "null" in each event, an empty text once."""
        if written or choice not in self._blank:
            self._blank.add(choice)
            detail = f"/choices/{choice}/finish_reason {written}"
            self._out.insert(self._begun, StreamViolation("written-null", detail, frame))

    def _others(self, choice: int, message: Mapping[str, Json], place: str, frame: Frame) -> None:
        """What a message has beside its text and reasoning."""
        if refusal := text(message.get("refusal")):
            self._text(choice, "refusal", 0, f"{place}/refusal", refusal, frame)
        for position, call in mappings(message.get("tool_calls")):
            self._call(choice, position, call, place, frame)
        if isinstance(legacy := message.get("function_call"), dict):
            self._legacy(choice, legacy, f"{place}/function_call", frame)
        for field in _HOSTED_EVIDENCE:
            if message.get(field):
                self._once(choice, field, f"{place}/{field}", frame)
        for field in ("audio", "images"):
            if message.get(field):
                self._once(choice, field, f"{place}/{field}", frame, "opaque")

    def _reasoning(self, choice: int, message: Mapping[str, Json], place: str, frame: Frame) -> None:
        # Servers that offer two names for it send the same text under both.
        for field in _REASONING:
            if piece := text(message.get(field)):
                self._text(choice, "reasoning", 0, f"{place}/{field}", piece, frame)
                return
        for _, detail in mappings(message.get("reasoning_details")):
            if piece := text(detail.get("text")) or text(detail.get("summary")):
                self._text(choice, "reasoning", 0, f"{place}/reasoning_details", piece, frame)

    def _content(self, choice: int, content: Json, place: str, frame: Frame) -> None:
        if isinstance(content, str):
            if content:
                self._text(choice, "text", 0, place, content, frame)
            return
        if not isinstance(content, list):
            self._once(choice, misshapen(content), place, frame, "opaque")
            return
        for position, part in mappings(content):
            slot = 0 if self._streamed else position  # in a stream every delta counts its parts from 0
            if piece := text(part.get("text")):
                self._text(choice, "text", slot, f"{place}/{position}/text", piece, frame, position)
            thinking = part.get("thinking")
            if isinstance(thinking, str) and thinking:
                self._text(choice, "reasoning", slot, f"{place}/{position}/thinking", thinking, frame, position)
            for _, thought in mappings(thinking):
                if piece := text(thought.get("text")):
                    self._text(choice, "reasoning", slot, f"{place}/{position}/thinking", piece, frame, position)

    def _text(self, choice: int, kind: Kind, slot: int, place: str, piece: str, frame: Frame, item: int = -1) -> None:
        key = (choice, kind, slot)
        block = self._blocks.get(key)
        if block is None:
            block = self._new(key)
            self._out.append(Start(block, kind, place, choice, frame, item=item))
        self._out.append(Delta(block, piece, frame, item))

    def _call(self, choice: int, position: int, call: Mapping[str, Json], place: str, frame: Frame) -> None:
        function = mapping(call.get("function"))
        custom = mapping(call.get("custom"))
        index = number(call.get("index")) if self._streamed else position
        id_, name = text(call.get("id")), text(function.get("name")) or text(custom.get("name"))
        arguments = function.get("arguments", custom.get("input"))
        key = (choice, "tool_call", index or 0)
        block = self._blocks.get(key)
        told = len(self._out)
        if block is None:
            block = self._new(key)
            ordinal = self._calls.get(choice, 0)
            self._calls[choice] = ordinal + 1
            # Snowflake puts a zero-valued `custom` beside every function.
            form = "custom" if (custom and not function) or call.get("type") == "custom" else "function"
            pointer = f"{place}/tool_calls/{ordinal}"
            self._labels[block] = (id_ or "", name or "")
            # The API has text here. An object, which some servers send, is kept as what it is.
            given = arguments if isinstance(arguments, dict | list) else None
            self._out.append(Start(block, "tool_call", pointer, choice, frame, index, id_, name, given, form, position))
            if given is not None:
                return
        elif index is None or self._is_news(block, id_, name):
            self._out.append(CallUpdate(block, index, id_, name, frame, position))
        elif id_ or name:
            told += self._again(block, name or id_ or "", frame)
            arguments = "" if arguments is None else arguments
        if isinstance(arguments, str):
            # An empty piece is one as well: where its call is taken out or numbered anew, it has to follow.
            if arguments or len(self._out) == told:
                self._out.append(Delta(block, arguments, frame, position))
        elif arguments is not None:
            self._out.append(Delta(block, _compact(arguments), frame, position))

    def _is_news(self, block: int, id_: str | None, name: str | None) -> bool:
        """Return True if an id or a name is given that is not the one given first."""
        known_id, known_name = self._labels[block]
        if (not id_ or id_ == known_id) and (not name or name == known_name):
            return False
        self._labels[block] = (known_id or id_ or "", known_name or name or "")
        return True

    def _again(self, block: int, what: str, frame: Frame) -> int:
        """Tells, once for each call, that its id or name is repeated. The number of events that it took."""
        if block in self._repeated:
            return 0
        self._repeated.add(block)
        self._out.append(StreamViolation("said-again", what, frame))
        return 1

    def _legacy(self, choice: int, call: Mapping[str, Json], place: str, frame: Frame) -> None:
        key = (choice, "legacy", 0)
        block = self._blocks.get(key)
        name, arguments = text(call.get("name")), text(call.get("arguments"))
        if block is None:
            if not name and not arguments:  # Snowflake sends an empty one beside every text
                self._out.insert(self._begun, StreamViolation("empty-call", place, frame))
                return
            block = self._new(key)
            self._out.append(Start(block, "tool_call", place, choice, frame, None, None, name, None, "legacy"))
        if arguments:
            self._out.append(Delta(block, arguments, frame))

    def _once(self, choice: int, field: str, place: str, frame: Frame, kind: Kind = "hosted_result") -> None:
        key = (choice, field, 0)
        if key not in self._blocks:
            self._out.append(Start(self._new(key), kind, place, choice, frame, name=field))

    def _new(self, key: tuple[int, str, int]) -> int:
        self._blocks[key] = self._count
        self._count += 1
        return self._blocks[key]


def _compact(value: Json) -> str:
    import orjson

    return orjson.dumps(value).decode()
