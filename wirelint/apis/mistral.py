"""Mistral's chat completions: `POST https://api.mistral.ai/v1/chat/completions`, and agents' (`/v1/agents/completions`).

OpenAI's shape, read and written as such, with these differences (source: the vendor's API reference and recordings):

- content may be a list of chunks; thinking is a chunk of type `thinking`, itself a list of text chunks. In a stream the
  answer that follows is plain text, which a client appends as a chunk behind it;
- a call comes in one piece, with an id of nine letters and digits; several in one delta may lack `index`, and are several;
- `tool_choice` may be `any`; finish reasons are also `model_length` and `error`;
- an error is the document itself, `{"object": "error", "message": …}`.

A reply says nowhere that it is Mistral's, and other hosts serve the same models in OpenAI's very shape, so what counts is
the host, or the name by which the vendor's SDK introduces itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from wirelint.apis import openai_chat, openai_writer
from wirelint.apis.openai_parts import Piece
from wirelint.apis.openai_request import read_request as read_openai
from wirelint.apis.reading import is_conversation, number, text
from wirelint.apis.writing import text_of
from wirelint.events import Delta, Event, Frame
from wirelint.model import Json, Request

__all__ = ["NAME", "claims", "claims_reply", "read_request", "reply_reader", "reply_writer"]

NAME = "mistral.chat"

_HOST = "mistral.ai"
_CLIENTS = ("mistral-client", "mistralai")


def serves(path: str) -> bool:
    """Return True if requests of this API come at a path at all."""
    return path.endswith(("/chat/completions", "/agents/completions"))


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
    if not serves(path):
        return False
    host = headers.get("host", "").partition(":")[0].lower()
    ours = host == _HOST or host.endswith(f".{_HOST}") or headers.get("user-agent", "").lower().startswith(_CLIENTS)
    return ours and is_conversation(body)


def claims_reply(document: Mapping[str, Json]) -> bool:
    return False  # nothing in it tells it from OpenAI's


def read_request(body: Mapping[str, Json]) -> Request:
    request = dataclasses.replace(read_openai(body), api=NAME)
    if not body.get("agent_id"):
        return request
    # An agent's instructions and tools are on the server.
    return dataclasses.replace(request, tools_known=False, on_server="before")


def reply_reader(*, streamed: bool) -> _Reader:
    return _Reader(streamed=streamed)


def reply_writer(*, streamed: bool) -> StreamWriter | WholeWriter:
    return StreamWriter() if streamed else WholeWriter()


class _Reader(openai_chat._Reader):
    def _content(self, choice: int, content: Json, place: str, frame: Frame) -> None:
        if self._streamed and isinstance(content, str) and content and (choice, "reasoning", 0) in self._blocks:
            self._text(choice, "text", 0, f"{place}/1/text", content, frame)
            return
        super()._content(choice, content, place, frame)

    def _call(self, choice: int, position: int, call: Mapping[str, Json], place: str, frame: Frame) -> None:
        if self._streamed and number(call.get("index")) is None:
            id_ = text(call.get("id"))
            known = (key[2] for key, block in self._blocks.items() if key[:2] == (choice, "tool_call") and id_
                     and self._labels.get(block, ("", ""))[0] == id_)  # fmt: skip
            call = {**call, "index": next(known, self._calls.get(choice, 0))}
        if call.get("id") == "null" and (choice, "tool_call", number(call.get("index")) or 0) in self._blocks:
            call = {**call, "id": None}  # the word by which the vendor leaves out an id that it has told
        super()._call(choice, position, call, place, frame)


def _thinking(deltas: Sequence[Delta]) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text_of(deltas)}]}


def _chunks(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def _is_thinking(chunk: Json) -> bool:
    return isinstance(chunk, dict) and "thinking" in chunk


class StreamWriter(openai_writer.StreamWriter):
    def _rest(
        self, source: Mapping[str, Json], before: Sequence[Event], after: Sequence[Event], choice: int
    ) -> dict[str, Json]:
        rest = super()._rest(source, before, after, choice)
        chunks = source.get("content")
        if not isinstance(chunks, list):
            return rest
        gone = {self._kind(event) for event in before} - self._kept(before, after)
        kept = [chunk for chunk in chunks if ("reasoning" if _is_thinking(chunk) else "text") not in gone]
        return {**rest, "content": kept}

    def _say(self, said: dict[str, Json], source: Mapping[str, Json], piece: Piece) -> None:
        thoughts, piece.reasoning = piece.reasoning, []
        kept = [chunk for chunk in _chunks(said.get("content")) if _is_thinking(chunk)]
        super()._say(said, source, piece)
        if lead := [_thinking(thoughts)] if thoughts else kept:
            said["content"] = [*lead, *(chunk for chunk in _chunks(said.get("content")) if not _is_thinking(chunk))]


class WholeWriter(openai_writer.WholeWriter):
    def _text(
        self, message: dict[str, Json], source: Mapping[str, Json], piece: Piece, before: Sequence[Event]
    ) -> None:
        thoughts, piece.reasoning = piece.reasoning, []
        old = [event for event in before if isinstance(event, Delta) and self._kind(event) == "reasoning"]
        texts = [event for event in before if isinstance(event, Delta) and self._kind(event) == "text"]
        super()._text(message, source, piece, [event for event in before if event not in old])
        if text_of(old) == text_of(thoughts) and text_of(texts) == text_of(piece.text):
            return
        kept = [chunk for chunk in _chunks(source.get("content")) if _is_thinking(chunk)]
        if text_of(old) != text_of(thoughts):
            kept = [_thinking(thoughts)] if thoughts else []
        rest = [chunk for chunk in _chunks(message.get("content")) if not _is_thinking(chunk)]
        if kept:
            message["content"] = [*kept, *rest]
        elif any(_is_thinking(chunk) for chunk in _chunks(source.get("content"))):
            message["content"] = rest
