"""An agent as clients of tool-calling APIs are written: it runs the calls that it is given, and nothing else.

It takes calls from where the API has them, looks at the finish reason, runs what is declared and fits the schema, tells the
model of what it could not run, and stops when a reply has no call. Text is text to it: markup is not a call.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jsonschema_rs

from wirelint.launch.demo.clients import add_piece
from wirelint.launch.demo.vendor import FAILED, MODEL

Wire = Callable[[bytes], tuple[str, bytes]]
"""Sends the body of a request; gives content type and body of the reply."""

Habit = Literal["plain", "imported", "strips ids", "prints parts"]
Json = dict[str, Any]

SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query", "limit"],
    "additionalProperties": False,
}
_TOOLS = [{"type": "function", "function": {"name": "search_notes", "description": "Searches.", "parameters": SCHEMA}}]
_VALID = jsonschema_rs.validator_for(SCHEMA)
_EXTRA = 3
"""Turns that an agent allows beyond one for each thing asked for."""


@dataclass(frozen=True, slots=True)
class Task:
    """What one run is to do: a search for each item. `habit` is what its client does to the history it sends."""

    items: tuple[str, ...]
    habit: Habit
    stream: bool


@dataclass(slots=True)
class Outcome:
    """What became of a run: calls that were run, calls that could not be, and how it ended."""

    succeeded: int = 0
    refused: int = 0
    finishes: tuple[str, ...] = ()


def run(task: Task, wire: Wire) -> Outcome:
    """Plays one conversation to its end."""
    messages = [*_past(task), {"role": "user", "content": _ask(task)}]
    outcome = Outcome()
    for _ in range(len(task.items) + _EXTRA):
        body = {"model": MODEL, "messages": messages, "tools": _TOOLS, "stream": task.stream}
        if task.stream:
            body["stream_options"] = {"include_usage": True}
        kind, reply = wire(json.dumps(body, ensure_ascii=False).encode())
        message, finish = _read_stream(reply) if kind.startswith("text/event-stream") else _read(reply)
        outcome.finishes += (finish,)
        if finish != "tool_calls" or not message["tool_calls"]:
            break
        messages.append(_kept(message, task.habit))
        for call, kept in zip(message["tool_calls"], messages[-1]["tool_calls"], strict=True):
            result = _call(call)
            succeeded = not result.startswith(FAILED)
            outcome.succeeded += succeeded
            outcome.refused += not succeeded
            messages.append({"role": "tool", "tool_call_id": kept["id"], "content": result})
    return outcome


def _ask(task: Task) -> str:
    return f"Search my notes, one search each: {', '.join(f'“{item}”' for item in task.items)}."


def _past(task: Task) -> list[Json]:
    """What came before: for some a conversation with another system, whose tool is not declared here."""
    if task.habit != "imported":
        return []
    call = {"id": "img_gen:0", "type": "function", "function": {"name": "img_gen", "arguments": '{"prompt": "a quay"}'}}
    return [
        {"role": "user", "content": "Draw me a quay."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "img_gen:0", "content": "quay.png"},
        {"role": "assistant", "content": "Here it is: quay.png"},
    ]


def _kept(message: Json, habit: Habit) -> Json:
    """The reply as this client keeps it."""
    content, calls = message["content"], message["tool_calls"]
    if habit == "strips ids":
        calls = [{**call, "id": "".join(filter(str.isalnum, call["id"]))} for call in calls]
    if habit == "prints parts":
        content = str([{"type": "text", "text": content}])
    return {"role": "assistant", "content": content, "tool_calls": calls}


def _call(call: Json) -> str:
    """The result of a call."""
    function = call["function"]
    if function["name"] != "search_notes":
        return f"{FAILED}there is no tool {function['name']}"
    try:
        arguments = json.loads(function["arguments"])
    except json.JSONDecodeError:
        return f"{FAILED}the arguments are not JSON"
    if not _VALID.is_valid(arguments):
        return f"{FAILED}the arguments do not fit"
    return f"2 notes on {arguments['query']}"


def _read(body: bytes) -> tuple[Json, str]:
    choice = json.loads(body)["choices"][0]
    message = choice["message"]
    return {"content": message["content"] or "", "tool_calls": message.get("tool_calls") or []}, choice["finish_reason"]


def _read_stream(body: bytes) -> tuple[Json, str]:
    text, finish = "", ""
    calls: dict[int, Json] = {}
    for line in body.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line.removeprefix("data: "))["choices"]:
            text += choice["delta"].get("content") or ""
            finish = choice.get("finish_reason") or finish
            for piece in choice["delta"].get("tool_calls") or ():
                add_piece(calls, piece)
    return {"content": text, "tool_calls": list(calls.values())}, finish
