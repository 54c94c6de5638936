"""A `Talk` written as a request of Mistral's chat completions with its reply, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.build import Talk

_HOST = "api.mistral.ai"


def record(talk: Talk, stream: bool) -> dict[str, Any]:
    """OpenAI's shape at Mistral's host, with its content lists."""
    made = talk.record("openai.chat", stream)
    made["request"]["url"] = f"https://{_HOST}/v1/chat/completions"
    response = made["response"]
    if stream:
        events = [_event(event) for event in response["body"].split("\n\n") if event]
        response["body"] = "".join(f"{event}\n\n" for event in events)
    else:
        response["body"] = json.dumps(_whole(json.loads(response["body"])), ensure_ascii=False)
    return made


def _event(event: str) -> str:
    if event == "data: [DONE]":
        return event
    document = json.loads(event.removeprefix("data: "))
    for choice in document["choices"]:
        delta = choice["delta"]
        if thought := delta.pop("reasoning_content", None):
            delta["content"] = [_thinking(thought)]
    return f"data: {json.dumps(document, ensure_ascii=False)}"


def _whole(document: dict[str, Any]) -> Mapping[str, Any]:
    for choice in document["choices"]:
        message = choice["message"]
        if thought := message.pop("reasoning_content", None):
            text = message["content"]
            message["content"] = [_thinking(thought), *([{"type": "text", "text": text}] if text else [])]
    return document


def _thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
