"""OpenAI Completions, the raw endpoint: a prompt in, the text that continues it out. Every inference server still has it.

Requests: `POST …/completions` with a `prompt`. Replies: a `text_completion` body or events of the same shape, `[DONE]` at
the end; `choices[].text`. The vendor's API reference (Completions) has the rest; servers add `reasoning` (OpenRouter).

The request is read as one message of a user: each prompt is one of its texts (several are completed side by side: prompt
`p` of `n` candidates each has choices `p·n` to `p·n + n - 1`), a prompt of token numbers is opaque. Whatever conversation
a template has written into the prompt stays text. Tools are read where somebody sent them, though nothing comes of them.
With `echo` the text of a reply begins with the prompt.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from wirelint.apis import openai_request
from wirelint.apis.openai_completions_writer import StreamWriter, WholeWriter
from wirelint.apis.reading import (
    Documents,
    error_of,
    is_misshapen,
    mapping,
    mappings,
    misshapen,
    number,
    refusal_of,
    stated_reason,
    text,
    told,
)
from wirelint.events import Delta, Done, Event, Failure, Finish, Frame, Other, ReplyMeta, Start, StreamViolation, Usage
from wirelint.model import Json, Kind, Message, Opaque, Part, Request, Text

__all__ = ["NAME", "claims", "claims_reply", "read_request", "reply_reader", "reply_writer"]

NAME = "openai.completions"

_REASONING = ("reasoning", "reasoning_content")


def serves(path: str) -> bool:
    """Return True if requests of this API come at a path at all."""
    # Mistral's fill-in-the-middle has such requests and the replies of a chat.
    return path.endswith("/completions") and not path.endswith(("/chat/completions", "/fim/completions"))


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    return "prompt" in body and serves(path)


def claims_reply(document: Mapping[str, Json]) -> bool:
    if document.get("object") == "text_completion":
        return True
    first = next((choice for _, choice in mappings(document.get("choices"))), {})
    return "object" not in document and "text" in first and "message" not in first and "delta" not in first


def read_request(body: Mapping[str, Json]) -> Request:
    return prompted(body, NAME, prompts(body.get("prompt"), "/prompt"))


def prompted(body: Mapping[str, Json], api: str, parts: Iterator[Part]) -> Request:
    """A request that is a prompt, with what it shares with those of the chat API."""
    said = tuple(parts)
    messages = (Message("user", said, said[0].pointer if len(said) == 1 else "/prompt"),) if said else ()
    return dataclasses.replace(openai_request.read_request(body), api=api, messages=messages)


def prompts(prompt: Json, place: str) -> Iterator[Part]:
    """The parts of a message: a text for each prompt; one that is given in token numbers is opaque."""
    if isinstance(prompt, str):
        if prompt:
            yield Text(prompt, place)
    elif isinstance(prompt, list):
        if prompt and all(number(token) is not None for token in prompt):
            yield Opaque("tokens", place)
            return
        for position, item in enumerate(prompt):
            yield from prompts(item, f"{place}/{position}") if isinstance(item, str) else _tokens(item, place, position)


def _tokens(item: Json, place: str, position: int) -> Iterator[Part]:
    if isinstance(item, list) and item:
        yield Opaque("tokens", f"{place}/{position}")


def reply_reader(*, streamed: bool) -> _Reader:
    return _Reader(streamed=streamed)


def reply_writer(*, streamed: bool) -> StreamWriter | WholeWriter:
    return StreamWriter() if streamed else WholeWriter()


class _Reader:
    """Frames to events: a block for the text of each candidate, and one for its reasoning where a server tells it."""

    def __init__(self, *, streamed: bool) -> None:
        self._streamed = streamed
        self.documents = Documents()
        self._blocks: dict[tuple[int, Kind], int] = {}
        self._head: tuple[str | None, str | None] = (None, None)
        self._finished = self._done = False

    def read(self, frame: Frame) -> list[Event]:
        if frame.data is None and not frame.faults:
            return [Other(frame)]
        reading = self.documents.read(frame)
        events = reading.offences
        for document, place in reading.documents:
            if self._done:
                if document.get("choices") or error_of(document) is not None:
                    events.append(StreamViolation("after-end", (frame.data or "")[:60], frame))
                continue  # clients have left
            events += self._document(document, place)
        if reading.done:
            self._done = True
            events.append(Done(frame))
        return told(frame, events)

    def close(self) -> list[Event]:
        events = self.documents.close()
        if self._streamed and self._finished and not self._done:
            events.append(StreamViolation("missing-end", "no [DONE]", None))
        return events

    def _document(self, document: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        head = (text(document.get("id")), text(document.get("model")))
        if head != self._head and any(head):
            self._head = head
            yield ReplyMeta(*head, frame)
        error = error_of(document)
        if error is None and not document.get("choices"):
            error = refusal_of(document)
        if error is not None:
            yield Failure(error, frame)
        for position, choice in mappings(document.get("choices")):
            index = number(choice.get("index"))
            yield from self._choice(position if index is None else index, choice, frame)
        if usage := mapping(document.get("usage")):
            yield Usage(usage, frame)

    def _choice(self, choice: int, body: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        thought = next((name for name in _REASONING if text(body.get(name))), None)
        if thought is not None:
            yield from self._say(choice, "reasoning", thought, body, frame)
        if text(body.get("text")):
            yield from self._say(choice, "text", "text", body, frame)
        elif is_misshapen(body.get("text")) and (choice, "opaque") not in self._blocks:
            block = self._blocks[choice, "opaque"] = len(self._blocks)
            yield Start(block, "opaque", f"/choices/{choice}/text", choice, frame, name=misshapen(body["text"]))
        if reason := stated_reason(body.get("finish_reason")):
            self._finished = True
            yield Finish(choice, reason, f"/choices/{choice}/finish_reason", frame)

    def _say(self, choice: int, kind: Kind, name: str, body: Mapping[str, Json], frame: Frame) -> Iterator[Event]:
        block = self._blocks.get((choice, kind))
        if block is None:
            block = self._blocks[choice, kind] = len(self._blocks)
            yield Start(block, kind, f"/choices/{choice}/{name}", choice, frame)
        yield Delta(block, text(body.get(name)) or "", frame)
