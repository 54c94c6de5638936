"""A `Talk` written as a request of Ollama's chat with its reply, whole and as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, exchange, functions, in_pieces

_STATUS = {"stop": "stop", "tool": "stop", "length": "length", "filter": "stop"}
_MODEL = {"created_at": "2026-01-05T10:00:00.5Z"}
_COUNTS = {"total_duration": 81, "prompt_eval_count": 11, "eval_count": 7}


def record(talk: Talk, stream: bool) -> dict[str, Any]:
    body = {"model": talk.model, "messages": list(_messages(talk)), **functions(talk)}
    if talk.tool_choice is not None:
        body["tool_choice"] = talk.tool_choice
    return finished(talk, "/api/chat", body, pieces(talk, "content"), stream, chat=True)


def finished(
    talk: Talk, path: str, body: dict[str, Any], said: list[dict[str, Any]], stream: bool, *, chat: bool
) -> dict[str, Any]:
    """The record of a request and of a reply that says these pieces."""
    words = "content" if chat else "response"
    if not stream:  # a stream is what comes unless it is declined
        body["stream"] = False
        said = [{name: _joined([one[name] for one in said if name in one]) for one in said for name in one}]
    lines = [_line(talk, {words: "", **piece}, chat=chat) for piece in said]
    why = {} if talk.reason is None else {"done_reason": talk.reason_in(_STATUS)}
    end = {"done": True, **why, **_COUNTS}
    lines = [*lines, {**_line(talk, {words: ""}, chat=chat), **end}] if stream else [{**lines[0], **end}]
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    body.update(talk.request)
    kind = "application/x-ndjson" if stream else "application/json; charset=utf-8"
    return exchange(path, body, text if stream else text.strip(), content_type=kind, status=talk.status)


def pieces(talk: Talk, words: str) -> list[dict[str, Any]]:
    """What the lines of a stream say."""
    said: list[dict[str, Any]] = [{"thinking": piece} for piece in in_pieces(talk.reasoning, talk.step)]
    said += [{words: piece} for piece in in_pieces(talk.text, talk.step)]
    said += [{"tool_calls": [_call(call, index)]} for index, call in enumerate(talk.calls)]
    return said or [{}]


def _joined(values: list[Any]) -> Any:
    return "".join(values) if isinstance(values[0], str) else [one for value in values for one in value]


def _line(talk: Talk, said: dict[str, Any], *, chat: bool) -> dict[str, Any]:
    head = {"model": talk.model, **_MODEL}
    return {**head, **({"message": {"role": "assistant", **said}} if chat else said), "done": False}


def _call(call: Call, index: int | None = None) -> dict[str, Any]:
    number = {} if index is None else {"index": index}
    try:
        arguments = json.loads(call.text)
    except json.JSONDecodeError:
        arguments = call.text
    return {"function": {**number, "name": call.name, "arguments": arguments}}


def _messages(talk: Talk) -> Iterator[dict[str, Any]]:
    if talk.system:
        yield {"role": "system", "content": talk.system}
    names: dict[str | None, str] = {}
    for turn in talk.history:
        match turn:
            case User(text):
                yield {"role": "user", "content": text}
            case Assistant(text, calls, reasoning):
                names.update({call.id: call.name for call in calls})
                thought = {"thinking": reasoning} if reasoning else {}
                made = {"tool_calls": [_call(call) for call in calls]} if calls else {}
                yield {"role": "assistant", "content": text, **thought, **made}
            case Result(call_id, text, _):
                yield {"role": "tool", "tool_name": names.get(call_id, ""), "content": text}
