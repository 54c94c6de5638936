r"""Raw endpoints, a prompt in, its continuation out: OpenAI Completions, which every server still offers, and DeepInfra's.

Requests: `POST …/completions` with a `prompt`. Replies: a `text_completion` body or events of the same shape, `[DONE]` at
the end. Source: the vendor's API reference (Completions); servers add `reasoning` (OpenRouter).

    data: {"object":"text_completion","choices":[{"index":0,"text":"Hi","finish_reason":null}]}

The request reads as one message of a user. Each prompt is one of its texts; several are completed side by side (prompt `p`
of `n` candidates each has choices `p·n` to `p·n + n - 1`). A prompt of token numbers is opaque. A conversation that a
template wrote into the prompt stays text. Tools are read if the client sent them, though the endpoint ignores them. With
`echo` the text of a reply begins with the prompt.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

from wirelint.apis._choices import (
    REASONING,
    ChoiceReader,
    ChoiceStreamWriter,
    ChoiceWholeWriter,
    ChoiceWriter,
    read_chat,
)
from wirelint.apis.reading import DONE, ApiSpec, ReplyReader, ReplyWriter, error_of, misshapen_text, stated_reason
from wirelint.apis.writing import BodyWriter, finish_of, frame_document, framed, groups, same, text_of, with_other_lines
from wirelint.events import Delta, Done, Event, Finish, Frame, Other, Start, StreamViolation
from wirelint.jsonvalues import mapping, mappings, number, text
from wirelint.model import Json, Kind, Message, Opaque, Part, Request, Text


def claims_reply(document: Mapping[str, Json]) -> bool:
    if document.get("object") == "text_completion":
        return True
    first = next((choice for _, choice in mappings(document.get("choices"))), {})
    return "object" not in document and "text" in first and "message" not in first and "delta" not in first


def read_prompt(body: Mapping[str, Json], name: str) -> Request:
    """Return a request whose prompts are in the member `name`, with the members that it shares with the chat API."""
    parts = tuple(_prompts(body.get(name), f"/{name}", is_one=False))
    messages = (Message("user", parts, parts[0].pointer if len(parts) == 1 else "/prompt"),) if parts else ()
    return dataclasses.replace(read_chat(body), messages=messages)


def _prompts(prompt: Json, place: str, *, is_one: bool) -> Iterator[Part]:
    """Yield a text for each prompt, and an opaque part for one in token numbers. `is_one`: a list is one prompt."""
    if isinstance(prompt, str) and prompt:
        yield Text(prompt, place)
    elif isinstance(prompt, list) and prompt and (is_one or all(number(token) is not None for token in prompt)):
        yield Opaque("tokens", place)
    elif isinstance(prompt, list):
        for position, item in enumerate(prompt):
            yield from _prompts(item, f"{place}/{position}", is_one=True)


class Reader(ChoiceReader):
    """Reader of replies: a block for the text of each candidate, and one for its reasoning if the server sends it."""

    def read_choice(self, choice: int, body: Mapping[str, Json]) -> None:
        place = f"/choices/{choice}"
        name = next((name for name in REASONING if text(body.get(name))), None)
        if name is not None:
            self.add_text(choice, "reasoning", 0, f"{place}/{name}", text(body[name]) or "")
        if words := text(body.get("text")):
            self.add_text(choice, "text", 0, f"{place}/text", words)
        elif wrong := misshapen_text(body.get("text")):
            self.add_once(choice, wrong, f"{place}/text", "opaque")
        if reason := stated_reason(body.get("finish_reason")):
            self.add_finish(choice, reason)


def check_form(out: Sequence[Event], *kinds: Kind) -> None:
    """Raise ValueError if a block is of another kind than these. The reply then passes unchanged."""
    for event in out:
        if isinstance(event, Start) and event.kind not in kinds:
            raise ValueError(f"a raw completion has no {event.kind}")


class _Writer(ChoiceWriter):
    reasoning = "reasoning"

    def note(self, out: Sequence[Event]) -> None:
        check_form(out, "text", "reasoning", "opaque")
        super().note(out)

    def choice(self, choice: Mapping[str, Json], before: Sequence[Event], after: Sequence[Event]) -> dict[str, Json]:
        """Return a candidate with the text, reasoning and finish reason of `after`."""
        row = {**choice, "text": self.text_for(after, "text")}
        if self.text_for(before, "text") != row["text"] and row.get("logprobs") is not None:
            row["logprobs"] = None  # they belong to the old tokens
        thought = self.text_for(after, "reasoning")
        if self.text_for(before, "reasoning") != thought:
            row = {name: value for name, value in row.items() if name not in REASONING}
            if thought:
                row[self.reasoning] = thought
        finish = finish_of(after)
        row["finish_reason"] = finish.reason if finish is not None else None
        return row


class StreamWriter(_Writer, ChoiceStreamWriter):
    empty_choice = {"text": "", "logprobs": None, "finish_reason": None}  # noqa: RUF012 - never changed

    def choices(self, choice: Mapping[str, Json], before: Sequence[Event], after: Sequence[Event]) -> list[Json]:
        if after:
            return [self.choice(choice, before, after)]
        return [] if before else [dict(choice)]


class WholeWriter(_Writer, ChoiceWholeWriter):
    pass


API = ApiSpec(
    "openai.completions",
    lambda _path, _headers, body: "prompt" in body,
    claims_reply,
    lambda body, _path: read_prompt(body, "prompt"),
    Reader,
    StreamWriter,
    WholeWriter,
    paths=re.compile(r"(?<!/chat)(?<!/fim)/completions\Z"),
)


# --- DeepInfra's own inference API ------------------------------------------------------------------------------------

# A prompt in, the text that continues it out. Requests: `POST …/v1/inference/{org}/{model}` with `input`. Replies: a body
# with `results[].generated_text`, or events with a `token` each, the last of which may repeat the whole text as
# `generated_text`, and `[DONE]`. Only `details.finish_reason`, if present, has the finish reason. Source: the vendor's
# documentation (Inference), and its clients, which read the text of every token, special ones included.
#
#     data: {"token":{"id":12,"text":" Hi","logprob":0.0,"special":false},"generated_text":null,"details":null}

_MODEL = re.compile(r"/v1/inference/(?P<model>[^/]+/[^/]+(?:/[^/]+)?)\Z")
_FAILED = frozenset({"failed", "error", "deleted"})
_COUNTS = ("num_tokens", "num_input_tokens", "num_output_tokens", "estimated_cost")


def _is_deepinfra_reply(document: Mapping[str, Json]) -> bool:
    if "inference_status" in document:
        return any("generated_text" in result for _, result in mappings(document.get("results")))
    return "generated_text" in document and "text" in mapping(document.get("token"))


def _deepinfra_request(body: Mapping[str, Json], path: str) -> Request:
    found = _MODEL.search(path)
    return read_prompt(body if found is None else {**body, "model": unquote(found["model"])}, "input")


class DeepInfraReader(ReplyReader):
    """Reader of replies: a block of text for each result, of which a stream has one."""

    has_done_marker = True

    def read_document(self, document: dict[str, Json]) -> Iterator[Event]:
        if self.is_done:
            yield self.violation("after-end", (self.frame.data or "")[:60])
            return  # clients have left
        yield from self.meta(text(document.get("request_id")), None)
        yield from self.failure(_error_of(document))
        if "token" in document:
            words = text(mapping(document.get("token")).get("text"))
            if not self.count:
                words = words or text(document.get("generated_text"))  # the whole text in one event
                yield Start(self.next_block(), "text", "/results/0/generated_text", 0, self.frame)
            if words:
                yield Delta(0, words, self.frame)
            yield from self._finish(0, document)
        for position, result in mappings(document.get("results")):
            yield Start(position, "text", f"/results/{position}/generated_text", position, self.frame, item=position)
            if words := text(result.get("generated_text")):
                yield Delta(position, words, self.frame, position)
            yield from self._finish(position, result)
        yield from self.usage(_usage_of(document))

    def _finish(self, choice: int, holder: Mapping[str, Json]) -> Iterator[Event]:
        if reason := stated_reason(mapping(holder.get("details")).get("finish_reason")):
            yield Finish(choice, reason, f"/results/{choice}/details/finish_reason", self.frame)


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


class DeepInfraStreamWriter(ReplyWriter):
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


class DeepInfraWholeWriter(BodyWriter):
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


DEEPINFRA = ApiSpec(
    "deepinfra.inference",
    lambda _path, _headers, body: isinstance(body.get("input"), str),
    _is_deepinfra_reply,
    _deepinfra_request,
    DeepInfraReader,
    DeepInfraStreamWriter,
    DeepInfraWholeWriter,
    paths=_MODEL,
)
