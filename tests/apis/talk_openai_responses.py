"""A `Talk` written as a request of OpenAI's Responses with its reply, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, in_pieces, sse

_STATUS = {
    "stop": ("completed", None),
    "tool": ("completed", None),
    "length": ("incomplete", "max_output_tokens"),
    "filter": ("incomplete", "content_filter"),
}
USAGE = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}


def record(talk: Talk, stream: bool) -> dict[str, Any]:
    body = request(talk) | ({"stream": True} if stream else {})
    return talk.answered("/v1/responses", body, streamed(response(talk), talk.step) if stream else response(talk))


def request(talk: Talk) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for turn in talk.history:
        match turn:
            case User(text):
                items.append({"role": "user", "content": [{"type": "input_text", "text": text}]})
            case Assistant(text, calls, thought):
                items += [reasoning(thought)] if thought else []
                items += [message(text)] if text else []
                items += [function_call(call) for call in calls]
            case Result(call_id, text, _):
                items.append({"type": "function_call_output", "call_id": call_id, "output": text})
    body: dict[str, Any] = {"model": talk.model, "input": items}
    if talk.system:
        body["instructions"] = talk.system
    if talk.tools:
        body["tools"] = [
            {"type": "function", "name": name, "description": described, "parameters": parameters, "strict": False}
            for name, described, parameters in talk.declared
        ]
    if talk.tool_choice is not None:
        body["tool_choice"] = talk.tool_choice
    return body


def reasoning(*thoughts: str, id_: str = "rs_01") -> dict[str, Any]:
    return {"id": id_, "type": "reasoning", "summary": [{"type": "summary_text", "text": one} for one in thoughts]}


def message(*texts: str, id_: str = "msg_01") -> dict[str, Any]:
    parts = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []} for text in texts]
    return {"id": id_, "type": "message", "status": "completed", "role": "assistant", "content": parts}


def function_call(call: Call, id_: str = "fc_01") -> dict[str, Any]:
    head = {"id": id_, "type": "function_call", "status": "completed"}
    named = {} if call.id is None else {"call_id": call.id}
    return {**head, **named, "name": call.name, "arguments": call.text}


def response(talk: Talk) -> dict[str, Any]:
    output = [reasoning(talk.reasoning)] if talk.reasoning else []
    output += [message(talk.text)] if talk.text else []
    output += [function_call(call, f"fc_0{n}") for n, call in enumerate(talk.calls, 1)]
    status, details = (None, None) if talk.reason is None else _STATUS.get(talk.reason, (talk.reason, None))
    return whole(output, status, details, model=talk.model)


def whole(
    output: Sequence[Mapping[str, Any]], status: str | None = "completed", details: str | None = None, **more: Any
) -> dict[str, Any]:
    """The body of a response."""
    return {
        "id": "resp_01",
        "object": "response",
        "created_at": 1767225600,
        "status": status,
        "error": None,
        "incomplete_details": None if details is None else {"reason": details},
        "model": "acme-1",
        "output": list(output),
        "usage": USAGE,
        **more,
    }


def streamed(body: Mapping[str, Any], step: int = 7, *, named: bool = True) -> str:
    """The same response as a stream of events, in the vendor's order."""
    return counted(events(body, step), named=named)


def counted(documents: Iterator[dict[str, Any]] | Sequence[dict[str, Any]], *, named: bool = True) -> str:
    """Events with their numbers in the sequence."""
    numbered = [{**document, "sequence_number": n} for n, document in enumerate(documents)]
    return sse(*numbered, done=False, named=named)


def events(body: Mapping[str, Any], step: int = 7) -> Iterator[dict[str, Any]]:
    begun = {**body, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(body["output"]):
        yield from item_events(item, index, step)
    status = body["status"] if body["status"] in ("completed", "incomplete", "failed") else "completed"
    yield {"type": f"response.{status}", "response": dict(body)}


def item_events(item: Mapping[str, Any], index: int, step: int = 7) -> Iterator[dict[str, Any]]:
    place = {"item_id": item.get("id"), "output_index": index}
    kind = item["type"]
    begun: dict[str, dict[str, Any]] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "custom_tool_call": {"input": ""},
    }
    first = {**item, **begun.get(kind, {})}
    if kind == "reasoning":
        first = {**item, **{name: [] for name in ("summary", "content") if name in item}}
    yield {"type": "response.output_item.added", "output_index": index, "item": first}
    for n, part in enumerate(item.get("summary", [])):
        at = {**place, "summary_index": n}
        yield {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}}
        yield from _text("response.reasoning_summary_text", at, "text", part["text"], step)
        yield {"type": "response.reasoning_summary_part.done", **at, "part": part}
    for n, part in enumerate(item.get("content", [])):
        at = {**place, "content_index": n}
        name = "refusal" if part["type"] == "refusal" else "text"
        yield {"type": "response.content_part.added", **at, "part": {**part, name: ""}}
        yield from _text(f"response.{part['type']}", at, name, part[name], step)
        for m, annotation in enumerate(part.get("annotations", ())):
            told = {"annotation_index": m, "annotation": annotation}
            yield {"type": "response.output_text.annotation.added", **at, **told}
        yield {"type": "response.content_part.done", **at, "part": part}
    if kind == "function_call":
        yield from _text("response.function_call_arguments", place, "arguments", item["arguments"], step)
    if kind == "custom_tool_call":
        yield from _text("response.custom_tool_call_input", place, "input", item["input"], step)
    yield {"type": "response.output_item.done", "output_index": index, "item": dict(item)}


def _text(stem: str, place: Mapping[str, Any], name: str, words: str, step: int) -> Iterator[dict[str, Any]]:
    yield from ({"type": f"{stem}.delta", **place, "delta": piece} for piece in in_pieces(words, step))
    yield {"type": f"{stem}.done", **place, name: words}
