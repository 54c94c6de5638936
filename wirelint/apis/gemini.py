"""Gemini's `generateContent`, from the Gemini API and from Vertex AI.

Requests: `POST …/models/{model}:generateContent`, or `:streamGenerateContent` for a stream: server-sent events with
`?alt=sse`, a JSON array without. Every event is a reply of its own with more parts of the content; a function call comes
whole in one of them, and most have no id. There is no terminator: a stream of events is over when every candidate has a
finish reason, an array with its bracket. Members are in camel case; snake case is read as well. Code Assist puts all of it
into another body (`gemini_wrapper`). Source: the vendor's API
reference (GenerateContentResponse, Content, Part).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import orjson

from wirelint.apis.gemini_partial import PartialArguments
from wirelint.apis.gemini_request import (
    METHODS,
    arguments_of,
    hosted_name,
    kind_of,
    read_request,
    read_request_at,
    several,
)
from wirelint.apis.gemini_schema import member, value_of
from wirelint.apis.gemini_wrapper import is_wrapped, unwrapped
from wirelint.apis.gemini_writer import StreamWriter, WholeWriter
from wirelint.apis.reading import Documents, error_of, is_misshapen, mapping, mappings, misshapen, number, text, told
from wirelint.apis.spec import ApiSpec, History, Traits
from wirelint.events import (
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
from wirelint.model import Json, Kind

__all__ = ["NAME", "claims", "claims_reply", "read_request", "read_request_at", "reply_reader", "reply_writer"]

NAME = "google.generate_content"

_REASONS = {1: "STOP", 2: "MAX_TOKENS", 3: "SAFETY", 4: "RECITATION", 5: "OTHER"}
"""Finish reasons by number (`enum-encoding=int`), as far as both APIs number them alike."""
_UNSPECIFIED = frozenset({"", "FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"})
_HOSTED_EVIDENCE = ("groundingMetadata", "urlContextMetadata")
_REPLY = frozenset({"candidates", "promptFeedback", "prompt_feedback", "usageMetadata", "usage_metadata"})


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    _, colon, method = path.rpartition("/")[2].partition(":")
    if colon:
        return method in METHODS and (
            is_wrapped(body) or not isinstance(body.get("request"), dict) or "contents" in body
        )
    if path.endswith("/cachedContents") or "messages" in body:
        return False
    # Any path may serve this API behind a gateway.
    contents = body.get("contents")
    return isinstance(contents, list) and bool(contents) and all(_is_content(content) for content in contents)


def claims_reply(document: Mapping[str, Json]) -> bool:
    document, _ = unwrapped(dict(document))
    listed = [candidate for _, candidate in mappings(document.get("candidates"))]
    if any(_is_content(candidate.get("content")) for candidate in listed):
        return True
    versioned = any(name in document for name in ("modelVersion", "model_version", "responseId", "response_id"))
    return versioned and not _REPLY.isdisjoint(document) and "object" not in document


def reply_reader(*, streamed: bool) -> _Reader:
    return _Reader(streamed=streamed)


def reply_writer(*, streamed: bool) -> StreamWriter | WholeWriter:
    return StreamWriter() if streamed else WholeWriter()


def _is_broken(frame: Frame) -> bool:
    """Return True if nothing can be read of an array from a frame on."""
    return frame.data is None and any(kind == "broken-json" for kind, _ in frame.faults)


def _is_content(value: Json) -> bool:
    return isinstance(value, dict) and isinstance(value.get("parts"), list | dict)


@dataclass(slots=True)
class _Candidate:
    """`parts` counts them as a whole body would have them. `run`: the text or thought that the next part may go on with."""

    parts: int = 0
    run: tuple[Kind, int] | None = None
    open: tuple[int, PartialArguments] | None = None
    once: set[str] = field(default_factory=set)


class _Reader:
    """Frames to events. Text that comes in several events is one part, as long as nothing else comes between."""

    def __init__(self, *, streamed: bool) -> None:
        self._streamed = streamed
        self.documents = Documents()
        self._candidates: dict[int, _Candidate] = {}
        self._stopped: set[int] = set()
        self._head: tuple[str | None, str | None] = (None, None)
        self._count = 0
        self._array: bool | None = None
        self._inside = ""
        self._done = self._failed = False

    def read(self, frame: Frame) -> list[Event]:
        if self._array is None:
            self._array = self._streamed and frame.raw.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        if frame.data is None or not self._streamed:
            events = self._unframed(frame)
            if events is not None:
                return events
        reading = self.documents.read(frame)
        events = reading.violations
        self._failed = self._failed or (bool(self._array) and _is_broken(frame))
        for whole, place in reading.documents:
            document, self._inside = unwrapped(whole)
            if self._done and (document.get("candidates") or error_of(document)):
                events.append(StreamViolation("after-end", (frame.data or "")[:60], frame))
                continue
            events += self._document(document, place)
        if reading.done:
            self._done = True
            events.append(Done(frame))
        return told(frame, events)

    def close(self) -> list[Event]:
        events = self.documents.close()
        if not self._streamed or self._done or self._failed or not self._stopped:
            return events
        if self._array:
            events.append(StreamViolation("missing-end", "no closing bracket", None))
        elif self._candidates.keys() <= self._stopped and not events:
            events.append(Done(None))
        return events

    def _unframed(self, frame: Frame) -> list[Event] | None:
        """The events of a frame that is no event of a stream; None for all that is as usual.

        A whole body may be an array: of a stream that begins with an error. Errors in the midst of a stream of events come
        as bare JSON.
        """
        if self._streamed:
            raw = frame.raw.strip()
            if self._array and raw == b"]" and not self._done:
                self._done = True
                return [Done(frame)]
            if not raw.startswith(b"{"):
                return [Other(frame)] if not frame.faults else None
        elif not (frame.data or "").lstrip("\ufeff \t\r\n").startswith("["):
            return None
        try:
            value: Json = orjson.loads(frame.raw if self._streamed else frame.data or "")
        except orjson.JSONDecodeError:
            return None
        events: list[Event] = [StreamViolation(kind, detail, frame) for kind, detail in frame.faults]
        for _, document in several(value, ""):
            if (error := error_of(document)) is not None:
                self._failed = True
                events.append(Failure(error, frame))
        return told(frame, events)

    def _document(self, document: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        head = (text(value_of(document, "responseId")) or None, text(value_of(document, "modelVersion")) or None)
        if head != self._head and any(head):
            self._head = head
            yield ReplyMeta(*head, frame)
        if (error := error_of(document)) is not None:
            self._failed = True
            yield Failure(error, frame)
        for position, candidate in mappings(document.get("candidates")):
            index = number(candidate.get("index"))
            yield from self._candidate(position if index is None else index, candidate, frame)
        name, feedback = member(document, "promptFeedback")
        yield from self._blocked(mapping(feedback), f"{self._inside}/{name}", frame)
        if usage := mapping(value_of(document, "usageMetadata")):
            yield Usage(usage, frame)

    def _candidate(self, choice: int, body: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        known = self._candidates.setdefault(choice, _Candidate())
        place = f"{self._inside}/candidates/{choice}"
        parts = mapping(body.get("content")).get("parts")
        for position, part in enumerate(parts if isinstance(parts, list) else [parts]):
            if isinstance(part, dict):
                yield from self._part(choice, known, position, part, f"{place}/content/parts", frame)
        for evidence in _HOSTED_EVIDENCE:
            name, value = member(body, evidence)
            if value and evidence not in known.once:
                known.once.add(evidence)
                yield Start(self._new(), "hosted_result", f"{place}/{name}", choice, frame, name=evidence)
        name, given = member(body, "finishReason")
        reason = _word(given)
        if reason is not None:
            self._stopped.add(choice)
            yield Finish(choice, reason, f"{place}/{name}", frame)

    def _part(
        self, choice: int, known: _Candidate, position: int, part: Mapping[str, Json], place: str, frame: Frame
    ) -> Iterator[Event]:
        kind, name, value = kind_of(part)
        if kind == "text":
            yield from self._text(choice, known, position, part, place, frame)
            return
        if not kind:
            return
        inner = mapping(value)
        if kind == "functionCall" and self._streamed and (known.open is not None or _continues(inner)):
            yield from self._piece_of_call(choice, known, position, inner, f"{place}/{known.parts}/{name}", frame)
            return
        where = f"{place}/{self._place(known, position)}/{name}"
        known.run = None
        block, id_ = self._new(), text(inner.get("id")) or None
        match kind:
            case "functionCall":
                called, given = text(inner.get("name")) or None, arguments_of(inner)
                yield Start(block, "tool_call", where, choice, frame, None, id_, called, given, item=position)
            case "toolCall" | "executableCode":
                tool = hosted_name(kind, inner)
                yield Start(block, "hosted_call", where, choice, frame, id=id_, name=tool, item=position)
            case "toolResponse" | "codeExecutionResult":
                tool = hosted_name(kind, inner)
                yield Start(block, "hosted_result", where, choice, frame, id=id_, name=tool, item=position)
            case _:
                yield Start(block, "opaque", where, choice, frame, name=kind, item=position)

    def _text(
        self, choice: int, known: _Candidate, position: int, part: Mapping[str, Json], place: str, frame: Frame
    ) -> Iterator[Event]:
        kind: Kind = "reasoning" if part.get("thought") is True else "text"
        words = text(part.get("text"))
        if is_misshapen(part.get("text")):
            known.run = None
            where = f"{place}/{self._place(known, position)}/text"
            yield Start(self._new(), "opaque", where, choice, frame, name=misshapen(part["text"]), item=position)
            return
        if not words:
            if value_of(part, "thoughtSignature"):  # nobody reads it; text goes on after it as if it were not there
                where = f"{place}/{self._place(known, position)}"
                yield Start(self._new(), "reasoning", where, choice, frame, form="opaque", item=position)
            return
        if self._streamed and known.run is not None and known.run[0] == kind:
            yield Delta(known.run[1], words, frame, position)
            return
        block = self._new()
        known.run = (kind, block)
        yield Start(block, kind, f"{place}/{self._place(known, position)}/text", choice, frame, item=position)
        yield Delta(block, words, frame, position)

    def _piece_of_call(
        self, choice: int, known: _Candidate, position: int, call: Mapping[str, Json], place: str, frame: Frame
    ) -> Iterator[Event]:
        """A call whose arguments come value by value; the one of its pieces that does not say so ends it."""
        if known.open is None:
            known.open = (self._new(), PartialArguments())
            self._place(known, position)
            known.run = None
            id_, name = text(call.get("id")) or None, text(call.get("name")) or None
            yield Start(known.open[0], "tool_call", place, choice, frame, None, id_, name, item=position)
        block, arguments = known.open
        yield Delta(block, arguments.add(value_of(call, "partialArgs")), frame, position)
        if value_of(call, "willContinue") is not True:
            known.open = None
            yield Delta(block, arguments.end(), frame, position)
            yield Close(block, frame)

    def _blocked(self, feedback: Mapping[str, Json], place: str, frame: Frame) -> Iterator[Event]:
        """A prompt that was not answered: the reason stands in the place of candidates."""
        name, given = member(feedback, "blockReason")
        reason = _word(given)
        if reason is None or 0 in self._stopped:
            return
        self._stopped.add(0)
        block = self._new()
        yield Start(block, "refusal", f"{place}/{name}", 0, frame)
        yield Delta(block, text(value_of(feedback, "blockReasonMessage")) or reason, frame)
        yield Finish(0, reason, f"{place}/{name}", frame)

    def _place(self, known: _Candidate, position: int) -> int:
        """The number of a part that begins, in a whole body."""
        if not self._streamed:
            return position
        known.parts += 1
        return known.parts - 1

    def _new(self) -> int:
        self._count += 1
        return self._count - 1


def _continues(call: Mapping[str, Json]) -> bool:
    return value_of(call, "willContinue") is True or value_of(call, "partialArgs") is not None


def _word(reason: Json) -> str | None:
    """A reason that says something, as a word."""
    if isinstance(reason, int) and not isinstance(reason, bool):
        return _REASONS.get(reason, str(reason)) if reason else None
    return reason if isinstance(reason, str) and reason not in _UNSPECIFIED else None


API = ApiSpec(
    name=NAME,
    claims=claims,
    claims_reply=claims_reply,
    read_request=lambda body, path="": read_request_at(body, path),
    reply_reader=reply_reader,
    stream_writer=StreamWriter,
    whole_writer=WholeWriter,
    traits=Traits(
        ended="STOP",
        calls="STOP",
        finish_at="/candidates/{}/finishReason",
        text_at="/candidates/{}/content/parts",
        reasoning_at="/candidates/{}/content/parts",
        reasoning="a thought part",
        calls_at="/candidates/{}/content/parts",
        finish_reasons=frozenset({"STOP", "MAX_TOKENS", "LANGUAGE", "SAFETY"}),
        arguments="object",
        call_ids=False,
        call_index=False,
        id_model=None,
        framings=frozenset({"events", "array"}),
        head_everywhere=True,
        always_reports_usage=True,
    ),
    history=History(
        place="/contents",
        content="parts",
        call_id="id",
        result_id="id",
        arguments="args",
        blocks=True,
        next_message=True,
        counted=True,
    ),
)
