r"""DeepInfra's own inference API for models of text: a prompt in, the text that continues it out.

Requests: `POST …/v1/inference/{org}/{model}` with `input`. Replies: a body with `results[].generated_text`, or events with
a `token` each, the last of which may repeat the whole text as `generated_text`, and `[DONE]`. Only `details.finish_reason`,
if present, has the finish reason. Source: the vendor's documentation (Inference), and its clients, which read the text
of every token, special ones included.

    data: {"token":{"id":12,"text":" Hi","logprob":0.0,"special":false},"generated_text":null,"details":null}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

from wirelint.apis.openai_completions import check_form, read_prompt
from wirelint.apis.reading import DONE, ApiSpec, ReplyReader, error_of, mapping, mappings, stated_reason, text
from wirelint.apis.writing import WholeWriter as BaseWriter
from wirelint.apis.writing import frame_document, framed, groups, same, text_of, with_other_lines
from wirelint.events import Delta, Done, Event, Failure, Finish, Frame, Other, Start, StreamViolation, Usage
from wirelint.model import Json, Request

_MODEL = re.compile(r"/v1/inference/(?P<model>[^/]+/[^/]+(?:/[^/]+)?)\Z")
_FAILED = frozenset({"failed", "error", "deleted"})
_COUNTS = ("num_tokens", "num_input_tokens", "num_output_tokens", "estimated_cost")


def claims_reply(document: Mapping[str, Json]) -> bool:
    if "inference_status" in document:
        return any("generated_text" in result for _, result in mappings(document.get("results")))
    return "generated_text" in document and "text" in mapping(document.get("token"))


def read_request(body: Mapping[str, Json], path: str = "") -> Request:
    found = _MODEL.search(path)
    return read_prompt(
        body if found is None else {**body, "model": unquote(found["model"])}, "deepinfra.inference", "input"
    )


class Reader(ReplyReader):
    """Reader of replies: a block of text for each result, of which a stream has one."""

    has_done_marker = True

    def __init__(self, *, streamed: bool) -> None:
        super().__init__(streamed=streamed)
        self._begun = False

    def read_document(self, document: dict[str, Json], frame: Frame, *, alone: bool) -> Iterator[Event]:
        if self.is_done:
            yield StreamViolation("after-end", (frame.data or "")[:60], frame)
            return  # clients have left
        yield from self.meta(text(document.get("request_id")), None, frame)
        if (error := _error_of(document)) is not None:
            yield Failure(error, frame)
        if "token" in document:
            yield from self._token(document, frame)
        for position, result in mappings(document.get("results")):
            yield Start(position, "text", f"/results/{position}/generated_text", position, frame, item=position)
            if words := text(result.get("generated_text")):
                yield Delta(position, words, frame, position)
            yield from _finish(position, result, frame)
        if usage := _usage_of(document):
            yield Usage(usage, frame)

    def _token(self, document: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        words = text(mapping(document.get("token")).get("text"))
        if not self._begun:
            words = words or text(document.get("generated_text"))  # the whole text in one event
            self._begun = True
            yield Start(0, "text", "/results/0/generated_text", 0, frame)
        if words:
            yield Delta(0, words, frame)
        yield from _finish(0, document, frame)


def _finish(choice: int, holder: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
    if reason := stated_reason(mapping(holder.get("details")).get("finish_reason")):
        yield Finish(choice, reason, f"/results/{choice}/details/finish_reason", frame)


def _error_of(document: Mapping[str, Json]) -> Json:
    if (error := error_of(document)) is not None:
        return error
    if "results" not in document and "token" not in document and document.get("detail"):
        return document["detail"]  # FastAPI's form of a refused request
    status = mapping(document.get("inference_status"))
    return status if text(status.get("status")) in _FAILED else None


def _usage_of(document: Mapping[str, Json]) -> dict[str, Json]:
    counts = {name: document[name] for name in _COUNTS if document.get(name) is not None}
    status = mapping(document.get("inference_status"))
    counts.update({name: status[name] for name in ("tokens_input", "tokens_generated") if status.get(name) is not None})
    return counts


class StreamWriter:
    """Writer of streams whose text was cut or extended. The API has no form for other changes."""

    def __init__(self) -> None:
        self._changed = False
        self._sent = ""

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        document = frame_document(frame)
        repeats = self._changed and bool(text(document.get("generated_text")))
        if same(events, out) and not repeats:
            self._sent += text_of(out)
            return frame.raw
        check_form(out, "text")
        self._changed = self._changed or text_of(events) != text_of(out)
        made: list[bytes] = []
        for place, _, group in groups(frame, events, out):
            made += self._group(place, group, document if place is frame else {})
        has_more = document.get("generated_text") or document.get("details") or _usage_of(document)
        if has_more and not any(event.frame is frame for event in out):
            made += self._group(frame, [], document)
        return with_other_lines(frame, made)

    def close(self, out: Sequence[Event]) -> bytes:
        check_form(out, "text")
        return b"".join(self._group(Frame(0, b"", None, None), out, {}))

    def _group(self, frame: Frame, out: Sequence[Event], document: Mapping[str, Json]) -> Iterator[bytes]:
        words = text_of(out)
        self._sent += words
        if document:
            made = dict(document)
            if "token" in document:
                made["token"] = {**mapping(document.get("token")), "text": words}
            if text(document.get("generated_text")) is not None:
                made["generated_text"] = self._sent
            yield framed(made)
        elif words:
            token: dict[str, Json] = {"id": None, "text": words, "logprob": None, "special": False}
            yield framed({"token": token, "generated_text": None})
        elif any(isinstance(event, (Other, StreamViolation)) for event in out):
            yield frame.raw
        if any(isinstance(event, Done) for event in out):
            yield framed(None, data=DONE)


class WholeWriter(BaseWriter):
    def patch(self, document: dict[str, Json], events: Sequence[Event], out: Sequence[Event]) -> dict[str, Json]:
        check_form(out, "text")
        known = {event.block: event.choice for event in (*events, *out) if isinstance(event, Start)}

        def words_of(these: Sequence[Event], choice: int) -> str:
            return text_of(event for event in these if isinstance(event, Delta) and known[event.block] == choice)

        listed = document.get("results")
        results: list[Json] = list(listed) if isinstance(listed, list) else []
        for position, result in mappings(results):
            if words_of(events, position) != words_of(out, position):
                results[position] = {**result, "generated_text": words_of(out, position)}
        return {**document, "results": results}


API = ApiSpec(
    name="deepinfra.inference",
    paths=_MODEL,
    claims=lambda _path, _headers, body: isinstance(body.get("input"), str),
    claims_reply=claims_reply,
    read_request=read_request,
    reply_reader=Reader,
    stream_writer=StreamWriter,
    whole_writer=WholeWriter,
)
