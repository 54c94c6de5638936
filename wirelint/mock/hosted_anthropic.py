"""Claude where others host it: Anthropic's bodies at the paths of Bedrock and of Vertex AI, in which the model stands.

Vertex streams the events as they are; Bedrock carries each in a message of an AWS event stream, base64 in JSON.
https://docs.anthropic.com/en/api/claude-on-amazon-bedrock
"""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from urllib.parse import unquote

from wirelint.mock.answer import Event
from wirelint.mock.anthropic import Anthropic
from wirelint.mock.api import Envelope
from wirelint.mock.framing import encode_message
from wirelint.mock.plan import Ask, Reply, dump_json
from wirelint.model import Json


class VertexAnthropic(Anthropic):
    name = "anthropic.messages"
    path = r"/.*/models/(?P<model>[^/:]+):(?P<verb>rawPredict|streamRawPredict)"
    _streams = "streamRawPredict"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        found = re.fullmatch(self.path, target.partition("?")[0])
        model, verb = (unquote(found["model"]), found["verb"]) if found else ("", "")
        ask = super().read_request({**body, "model": model}, target)
        return replace(ask, stream=ask.stream or verb == self._streams)


class BedrockAnthropic(VertexAnthropic):
    path = r"/model/(?P<model>.+)/(?P<verb>invoke|invoke-with-response-stream)"
    ping = encode_message(Event("ping", "{}", "ping"))
    _streams = "invoke-with-response-stream"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        return replace(super().read_request(body, target), framing="messages")

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        return [_carry(event) for event in super().make_events(replies, ask, envelope)]

    def make_error_events(self, status: int, message: str) -> list[Event]:
        kind = "throttlingException" if status == 429 else "modelStreamErrorException"
        value: Json = {"message": message}
        return [Event("error", dump_json(value), kind)]


def _carry(event: Event) -> Event:
    return Event(event.tag, dump_json({"bytes": base64.b64encode(event.data.encode()).decode()}), "chunk")
