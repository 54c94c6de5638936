"""DeepInfra's own inference API for models of text: a prompt in, the text that continues it out.

Requests: `POST …/v1/inference/{org}/{model}` with `input`. Replies: a body with `results[].generated_text`, or events with
a `token` each, the last of which may repeat the whole text as `generated_text`, and `[DONE]`. Nothing tells why a text
ended but `details.finish_reason`, where it is given. Source: the vendor's documentation (Inference), and what its clients
read: the text of every token, special ones included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

from wirelint.apis.openai_completions import prompted, prompts
from wirelint.apis.openai_completions_writer import FormError
from wirelint.apis.reading import DONE, Documents, error_of, mapping, mappings, stated_reason, text, told
from wirelint.apis.writing import document_of, dump, framed, groups, other_lines, same
from wirelint.events import Delta, Done, Event, Failure, Finish, Frame, Other, ReplyMeta, Start, StreamViolation, Usage
from wirelint.model import Json, Request

__all__ = ["NAME", "claims", "claims_reply", "read_request", "read_request_at", "reply_reader", "reply_writer"]

NAME = "deepinfra.inference"

_MODEL = re.compile(r"/v1/inference/(?P<model>[^/]+/[^/]+(?:/[^/]+)?)\Z")
_FAILED = frozenset({"failed", "error", "deleted"})
_COUNTS = ("num_tokens", "num_input_tokens", "num_output_tokens", "estimated_cost")


def serves(path: str) -> bool:
    """Return True if requests of this API come at a path at all."""
    return _MODEL.search(path) is not None


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    return isinstance(body.get("input"), str) and serves(path)


def claims_reply(document: Mapping[str, Json]) -> bool:
    if "inference_status" in document:
        return any("generated_text" in result for _, result in mappings(document.get("results")))
    return "generated_text" in document and "text" in mapping(document.get("token"))


def read_request(body: Mapping[str, Json]) -> Request:
    return prompted(body, NAME, prompts(body.get("input"), "/input"))


def read_request_at(body: Mapping[str, Json], path: str) -> Request:
    found = _MODEL.search(path)
    return read_request(body if found is None else {**body, "model": unquote(found["model"])})


def reply_reader(*, streamed: bool) -> _Reader:
    return _Reader(streamed=streamed)


def reply_writer(*, streamed: bool) -> _StreamWriter | _WholeWriter:
    return _StreamWriter() if streamed else _WholeWriter()


def _place(choice: int) -> str:
    return f"/results/{choice}/generated_text"


class _Reader:
    """Frames to events: a block of text for each result, of which a stream has one."""

    def __init__(self, *, streamed: bool) -> None:
        self._streamed = streamed
        self.documents = Documents()
        self._begun = self._done = False
        self._id: str | None = None

    def read(self, frame: Frame) -> list[Event]:
        if frame.data is None and not frame.faults:
            return [Other(frame)]
        reading = self.documents.read(frame)
        events = reading.offences
        for document, place in reading.documents:
            if self._done:
                events.append(StreamViolation("after-end", (frame.data or "")[:60], frame))
                continue  # clients have left
            events += self._document(document, place)
        if reading.done:
            self._done = True
            events.append(Done(frame))
        return told(frame, events)

    def close(self) -> list[Event]:
        return self.documents.close()

    def _document(self, document: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        id_ = text(document.get("request_id"))
        if id_ is not None and id_ != self._id:
            self._id = id_
            yield ReplyMeta(id_, None, frame)
        if (error := _error_of(document)) is not None:
            yield Failure(error, frame)
        if "token" in document:
            yield from self._token(document, frame)
        for position, result in mappings(document.get("results")):
            yield Start(position, "text", _place(position), position, frame, item=position)
            if words := text(result.get("generated_text")):
                yield Delta(position, words, frame, position)
            if reason := stated_reason(mapping(result.get("details")).get("finish_reason")):
                yield Finish(position, reason, f"/results/{position}/details/finish_reason", frame)
        if usage := _usage_of(document):
            yield Usage(usage, frame)

    def _token(self, document: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        words = text(mapping(document.get("token")).get("text"))
        if not words and not self._begun:
            words = text(document.get("generated_text"))  # all of it in one event
        if not self._begun:
            self._begun = True
            yield Start(0, "text", _place(0), 0, frame)
        if words:
            yield Delta(0, words, frame)
        if reason := stated_reason(mapping(document.get("details")).get("finish_reason")):
            yield Finish(0, reason, "/results/0/details/finish_reason", frame)


def _error_of(document: Mapping[str, Json]) -> Json:
    if (error := error_of(document)) is not None:
        return error
    if "results" not in document and "token" not in document and document.get("detail"):
        return document["detail"]  # what its web framework says of a request that it refuses
    status = mapping(document.get("inference_status"))
    return status if status.get("status") in _FAILED else None


def _usage_of(document: Mapping[str, Json]) -> dict[str, Json]:
    counts = {name: document[name] for name in _COUNTS if document.get(name) is not None}
    status = mapping(document.get("inference_status"))
    counts.update({name: status[name] for name in ("tokens_input", "tokens_generated") if status.get(name) is not None})
    return counts


class _Writer:
    """Texts that were cut or completed; the API has a form for nothing else."""

    @staticmethod
    def check(out: Sequence[Event]) -> None:
        for event in out:
            if isinstance(event, Start) and event.kind != "text":
                raise FormError(event.kind)


class _StreamWriter(_Writer):
    def __init__(self) -> None:
        self._changed = False
        self._said = ""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        document = document_of(frame)
        told_again = self._changed and bool(text(document.get("generated_text")))
        if same(events, out) and not told_again:
            self._said += _text_of(out)
            return frame.raw
        self.check(out)
        self._changed = self._changed or _text_of(events) != _text_of(out)
        made: list[bytes] = []
        for place, group in groups(frame, out):
            made += self._group(place, group, own=place is frame)
        if not any(event.frame is frame for event in out) and _keeps(document):
            made += self._group(frame, [], own=True)
        return (other_lines(frame) if made else b"") + b"".join(made)

    def close(self, out: Sequence[Event]) -> bytes:
        self.check(out)
        words = _text_of(out)
        made = [framed(_event(words))] if words else []
        return b"".join([*made, *(framed(None, data=DONE) for event in out if isinstance(event, Done))])

    def _group(self, frame: Frame, out: Sequence[Event], *, own: bool) -> Iterator[bytes]:
        document = document_of(frame) if own else {}
        words = _text_of(out)
        self._said += words
        if document:
            yield framed(self._patched(document, words))
        elif words:
            yield framed(_event(words))
        elif any(isinstance(event, (Other, StreamViolation)) for event in out):
            yield frame.raw
        if any(isinstance(event, Done) for event in out):
            yield framed(None, data=DONE)

    def _patched(self, document: Mapping[str, Json], words: str) -> dict[str, Json]:
        made = dict(document)
        if "token" in document:
            made["token"] = {**mapping(document.get("token")), "text": words}
        if text(document.get("generated_text")) is not None:
            made["generated_text"] = self._said
        return made


class _WholeWriter(_Writer):
    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        document = document_of(frame)
        if same(events, out) or not document:
            return frame.raw
        self.check(out)
        known = {event.block: event for event in (*events, *out) if isinstance(event, Start)}
        results: list[Json] = []
        listed = document.get("results")
        for position, result in enumerate(listed if isinstance(listed, list) else []):
            texts = [
                "".join(e.text for e in these if isinstance(e, Delta) and known[e.block].choice == position)
                for these in (events, out)
            ]
            if isinstance(result, dict) and texts[0] != texts[1]:
                result = {**result, "generated_text": texts[1]}
            results.append(result)
        return dump({**document, "results": results})

    def close(self, out: Sequence[Event]) -> bytes:
        return b""  # a whole body has nothing after it


def _text_of(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


def _keeps(document: Mapping[str, Json]) -> bool:
    """Return True if an event says something beside its token."""
    return bool(document.get("generated_text") or document.get("details") or _usage_of(document))


def _event(words: str) -> dict[str, Json]:
    return {"token": {"id": None, "text": words, "logprob": None, "special": False}, "generated_text": None}
