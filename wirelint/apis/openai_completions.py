r"""OpenAI Completions, the raw endpoint: a prompt in, its continuation out. Every inference server still offers it.

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

from wirelint.apis._choices import (
    REASONING,
    ChoiceReader,
    ChoiceStreamWriter,
    ChoiceWholeWriter,
    ChoiceWriter,
    read_chat,
)
from wirelint.apis.reading import ApiSpec, is_misshapen, mappings, misshapen, number, stated_reason, text
from wirelint.apis.writing import finish_of
from wirelint.events import Event, Frame, Start
from wirelint.model import Json, Kind, Message, Opaque, Part, Request, Text


def claims_reply(document: Mapping[str, Json]) -> bool:
    if document.get("object") == "text_completion":
        return True
    first = next((choice for _, choice in mappings(document.get("choices"))), {})
    return "object" not in document and "text" in first and "message" not in first and "delta" not in first


def read_request(body: Mapping[str, Json], path: str = "") -> Request:
    return read_prompt(body, "openai.completions", "prompt")


def read_prompt(body: Mapping[str, Json], api: str, name: str) -> Request:
    """Return a request whose prompts are in the member `name`, with the members that it shares with the chat API."""
    parts = tuple(_prompts(body.get(name), f"/{name}"))
    messages = (Message("user", parts, parts[0].pointer if len(parts) == 1 else "/prompt"),) if parts else ()
    return dataclasses.replace(read_chat(body), api=api, messages=messages)


def _prompts(prompt: Json, place: str) -> Iterator[Part]:
    """Yield a text for each prompt, and an opaque part for one in token numbers."""
    if isinstance(prompt, str) and prompt:
        yield Text(prompt, place)
    elif isinstance(prompt, list) and prompt and all(number(token) is not None for token in prompt):
        yield Opaque("tokens", place)
    elif isinstance(prompt, list):
        for position, item in enumerate(prompt):
            if isinstance(item, str) and item:
                yield Text(item, f"{place}/{position}")
            elif isinstance(item, list) and item:
                yield Opaque("tokens", f"{place}/{position}")


class Reader(ChoiceReader):
    """Reader of replies: a block for the text of each candidate, and one for its reasoning if the server sends it."""

    def read_choice(self, choice: int, body: Mapping[str, Json], frame: Frame) -> None:
        place = f"/choices/{choice}"
        name = next((name for name in REASONING if text(body.get(name))), None)
        if name is not None:
            self.add_text(choice, "reasoning", 0, f"{place}/{name}", text(body[name]) or "", frame)
        if words := text(body.get("text")):
            self.add_text(choice, "text", 0, f"{place}/text", words, frame)
        elif is_misshapen(body.get("text")):
            self.add_once(choice, misshapen(body["text"]), f"{place}/text", frame, "opaque")
        if reason := stated_reason(body.get("finish_reason")):
            self.add_finish(choice, reason, frame)


class FormError(ValueError):
    """A change that the API cannot express. The reply then passes unchanged."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(f"a raw completion has no {kind}")


def check_form(out: Sequence[Event], *kinds: Kind) -> None:
    """Raise FormError if a block is of another kind than these."""
    for event in out:
        if isinstance(event, Start) and event.kind not in kinds:
            raise FormError(event.kind)


class _Writer(ChoiceWriter):
    def __init__(self) -> None:
        super().__init__()
        self.reasoning = "reasoning"

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
    name="openai.completions",
    # Mistral's fill-in-the-middle has such requests and the replies of a chat.
    paths=re.compile(r"(?<!/chat)(?<!/fim)/completions\Z"),
    claims=lambda _path, _headers, body: "prompt" in body,
    claims_reply=claims_reply,
    read_request=read_request,
    reply_reader=Reader,
    stream_writer=StreamWriter,
    whole_writer=WholeWriter,
)
