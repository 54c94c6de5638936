"""Mistral's chat completions: `POST https://api.mistral.ai/v1/chat/completions`, and agents' (`/v1/agents/completions`).

OpenAI's shape, with these differences (source: the vendor's API reference and recordings):

- content may be a list of chunks; thinking is a chunk of type `thinking`, itself a list of text chunks. In a stream the
  answer after the thinking is plain text, which a client appends as a further chunk;
- a call comes in one piece, with an id of nine letters and digits; calls in one delta without an `index` are separate
  calls;
- `tool_choice` may be `any`; finish reasons are also `model_length` and `error`;
- an error is the document itself, `{"object": "error", "message": …}`.

The body does not identify Mistral's API, and other hosts serve the same models in exactly OpenAI's shape. So the host
decides, or the user agent of the vendor's SDK.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from wirelint.apis import openai_chat
from wirelint.apis._choices import read_chat
from wirelint.apis.reading import ApiSpec, is_conversation, number, text
from wirelint.events import Frame
from wirelint.model import Json, Request

_HOST = "mistral.ai"
_CLIENTS = ("mistral-client", "mistralai")


def claims(path: str, headers: Mapping[str, str], body: Mapping[str, Json]) -> bool:
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
            call = {**call, "id": None}  # the vendor's word for an id sent in an earlier delta
        super().read_call(choice, position, call, place, frame)


class StreamWriter(openai_chat.StreamWriter):
    thinks_in_content = True


class WholeWriter(openai_chat.WholeWriter):
    thinks_in_content = True


API = ApiSpec(
    name="mistral.chat",
    paths=re.compile(r"/(?:chat|agents)/completions\Z"),
    claims=claims,
    claims_reply=claims_reply,
    read_request=read_request,
    reply_reader=Reader,
    stream_writer=StreamWriter,
    whole_writer=WholeWriter,
)
