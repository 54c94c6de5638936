"""A `Talk` written as a request of Cohere's chat, version 2, with its reply, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, functions, in_pieces, sse

_FINISH = {"stop": "COMPLETE", "tool": "TOOL_CALL", "length": "MAX_TOKENS", "filter": "ERROR"}
_CHOICES = {"required": "REQUIRED", "any": "REQUIRED", "none": "NONE"}
_BILLED = {"billed_units": {"input_tokens": 11, "output_tokens": 7}, "tokens": {"input_tokens": 11, "output_tokens": 7}}
_ID = "5d2f7c1a-88e4-4b0f-9a63-1c7d5e90ab24"


def record(talk: Talk, streamed: bool) -> dict[str, Any]:
    body = {"model": talk.model, "messages": list(_messages(talk)), "stream": streamed, **functions(talk)}
    if talk.tool_choice is not None:
        body["tool_choice"] = _CHOICES.get(talk.tool_choice, talk.tool_choice)
    return talk.answered("/v2/chat", body, _stream(talk) if streamed else _whole(talk))


def _reason(talk: Talk) -> dict[str, Any]:
    return {} if talk.reason is None else {"finish_reason": talk.reason_in(_FINISH)}


def _whole(talk: Talk) -> dict[str, Any]:
    blocks = [{"type": "thinking", "thinking": talk.reasoning}] if talk.reasoning else []
    blocks += [{"type": "text", "text": talk.text}] if talk.text else []
    message: dict[str, Any] = {"role": "assistant", "content": blocks}
    if talk.calls:
        message["tool_calls"] = [_call(call) for call in talk.calls]
    return {"id": _ID, "message": message, **_reason(talk), "usage": _BILLED}


def _stream(talk: Talk) -> str:
    begin = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    events: list[Any] = [{"id": _ID, "type": "message-start", "delta": {"message": begin}}]
    index = 0
    for kind, said in (("thinking", talk.reasoning), ("text", talk.text)):
        if said:
            events.append(content(index, *in_pieces(said, talk.step), kind=kind))
            index += 1
    for number, call in enumerate(talk.calls):
        events.append(called(number, call.name, call.id or "", *in_pieces(call.text, talk.step)))
    end = {"type": "message-end", "delta": {**_reason(talk), "usage": _BILLED}}
    return stream(*events, end)


def _call(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}


def _messages(talk: Talk) -> Iterator[dict[str, Any]]:
    if talk.system:
        yield {"role": "system", "content": talk.system}
    for turn in talk.history:
        match turn:
            case User(text):
                yield {"role": "user", "content": text}
            case Assistant(text, calls, reasoning):
                plan = {"tool_plan": reasoning} if reasoning else {}
                said = {"content": [{"type": "text", "text": text}]} if text else {}
                made = {"tool_calls": [_call(call) for call in calls]} if calls else {}
                yield {"role": "assistant", **plan, **said, **made}
            case Result(call_id, text, _):
                document = {"type": "document", "document": {"data": text}}
                yield {"role": "tool", "tool_call_id": call_id, "content": [document]}


def event(kind: str, index: int | None = None, **message: Any) -> dict[str, Any]:
    number = {} if index is None else {"index": index}
    return {"type": kind, **number, **({"delta": {"message": message}} if message else {})}


def content(index: int, *pieces: str, kind: str = "text") -> list[dict[str, Any]]:
    return [
        event("content-start", index, content={"type": kind, kind: ""}),
        *(event("content-delta", index, content={kind: piece}) for piece in pieces),
        event("content-end", index),
    ]


def called(index: int, name: str, id_: str, *pieces: str) -> list[dict[str, Any]]:
    call = {"id": id_, "type": "function", "function": {"name": name, "arguments": ""}}
    return [
        event("tool-call-start", index, tool_calls=call),
        *(event("tool-call-delta", index, tool_calls={"function": {"arguments": piece}}) for piece in pieces),
        event("tool-call-end", index),
    ]


def stream(*events: Any) -> str:
    flat = [one for event_ in events for one in (event_ if isinstance(event_, list) else [event_])]
    return sse(*flat, named=True) + "data: [DONE]\n\n"
