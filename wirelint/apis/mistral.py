"""Mistral's chat completions: `POST https://api.mistral.ai/v1/chat/completions`, and agents' (`/v1/agents/completions`).

OpenAI's shape, with these differences (source: the vendor's API reference and recordings):

- content may be a list of chunks; thinking is a chunk of type `thinking`, itself a list of text chunks. In a stream the
  answer that follows is plain text, which a client appends as a chunk behind it;
- a call comes in one piece, with an id of nine letters and digits; several in one delta may lack `index`, and are several;
- `tool_choice` may be `any`; finish reasons are also `model_length` and `error`;
- an error is the document itself, `{"object": "error", "message": …}`.

A reply does not show that it is Mistral's, and other hosts serve the same models in exactly OpenAI's shape. So the host
decides, or the user agent of the vendor's SDK.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from wirelint.apis import openai_chat
from wirelint.apis._choices import read_chat
from wirelint.apis.openai_chat import Piece
from wirelint.apis.reading import is_conversation, number, text
from wirelint.apis.spec import ApiSpec
from wirelint.apis.writing import text_of
from wirelint.events import Delta, Event, Frame
from wirelint.model import Json, Kind, Request

_HOST = "mistral.ai"
_CLIENTS = ("mistral-client", "mistralai")


def serves(path: str) -> bool:
    return path.endswith(("/chat/completions", "/agents/completions"))


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    if not serves(path):
        return False
    host = headers.get("host", "").partition(":")[0].lower()
    ours = host == _HOST or host.endswith(f".{_HOST}") or headers.get("user-agent", "").lower().startswith(_CLIENTS)
    return ours and is_conversation(body)


def claims_reply(document: Mapping[str, Json]) -> bool:
    return False  # a reply looks like OpenAI's


def read_request(body: Mapping[str, Json], path: str = "") -> Request:
    request = dataclasses.replace(read_chat(body), api="mistral.chat")
    if not body.get("agent_id"):
        return request
    # The server has an agent's instructions and tools.
    return dataclasses.replace(request, tools_known=False, on_server="before")


class Reader(openai_chat.Reader):
    def read_content(self, choice: int, content: Json, place: str, frame: Frame) -> None:
        if self.streamed and isinstance(content, str) and (choice, "reasoning", 0) in self.blocks:
            self.add_text(choice, "text", 0, f"{place}/1/text", content, frame)
        else:
            super().read_content(choice, content, place, frame)

    def read_call(self, choice: int, position: int, call: Mapping[str, Json], place: str, frame: Frame) -> None:
        if self.streamed and number(call.get("index")) is None:
            id_ = text(call.get("id"))
            known = (
                key[2]
                for key, block in self.blocks.items()
                if key[:2] == (choice, "tool_call") and id_ and self.labels.get(block, ("", ""))[0] == id_
            )
            call = {**call, "index": next(known, self.calls.get(choice, 0))}
        if call.get("id") == "null" and (choice, "tool_call", number(call.get("index")) or 0) in self.blocks:
            call = {**call, "id": None}  # the vendor's word for an id that it has sent before
        super().read_call(choice, position, call, place, frame)


def _thinking(deltas: Sequence[Delta]) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text_of(deltas)}]}


def _chunks(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def _is_thinking(chunk: Json) -> bool:
    return isinstance(chunk, dict) and "thinking" in chunk


class StreamWriter(openai_chat.StreamWriter):
    def rest(
        self, source: Mapping[str, Json], before: Sequence[Event], kept: set[Kind], choice: int
    ) -> dict[str, Json]:
        rest, chunks = super().rest(source, before, kept, choice), source.get("content")
        if not isinstance(chunks, list):
            return rest
        gone = {self.kind_of(event) for event in before} - kept
        return {
            **rest,
            "content": [one for one in chunks if ("reasoning" if _is_thinking(one) else "text") not in gone],
        }

    def put(self, delta: dict[str, Json], source: Mapping[str, Json], piece: Piece) -> None:
        thoughts, piece.reasoning = piece.reasoning, []
        kept = [chunk for chunk in _chunks(delta.get("content")) if _is_thinking(chunk)]
        super().put(delta, source, piece)
        if lead := [_thinking(thoughts)] if thoughts else kept:
            delta["content"] = [*lead, *(chunk for chunk in _chunks(delta.get("content")) if not _is_thinking(chunk))]


class WholeWriter(openai_chat.WholeWriter):
    def patch_text(self, message: dict[str, Json], source: Mapping[str, Json], piece: Piece, old: Piece) -> None:
        thoughts, before = piece.reasoning, old.reasoning
        piece.reasoning, old.reasoning = [], []
        super().patch_text(message, source, piece, old)
        changed = text_of(before) != text_of(thoughts)
        if not changed and text_of(old.text) == text_of(piece.text):
            return
        chunks = _chunks(source.get("content"))
        lead = [chunk for chunk in chunks if _is_thinking(chunk)]
        if changed:
            lead = [_thinking(thoughts)] if thoughts else []
        if lead or any(map(_is_thinking, chunks)):
            message["content"] = [*lead, *(one for one in _chunks(message.get("content")) if not _is_thinking(one))]


API = ApiSpec(
    name="mistral.chat",
    serves=serves,
    claims=claims,
    claims_reply=claims_reply,
    read_request=read_request,
    reply_reader=Reader,
    stream_writer=StreamWriter,
    whole_writer=WholeWriter,
    traits=dataclasses.replace(
        openai_chat.API.traits,
        reasoning_at="/choices/{}/message/content",
        reasoning="a thinking chunk",
        finish_reasons=frozenset({"stop", "length", "model_length", "tool_calls"}),
        id_model="A" * 9,
        text_only=False,
        always_reports_usage=True,
    ),
)
