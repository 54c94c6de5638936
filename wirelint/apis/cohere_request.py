"""Requests of Cohere's chat, version 2: messages, tools, tool choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

from wirelint.apis.reading import mapping, mappings, number, schema, text
from wirelint.model import (
    Arguments,
    Json,
    Message,
    Opaque,
    Part,
    Reasoning,
    Request,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

NAME = "cohere.chat"
_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool"}


def read_request(body: Mapping[str, Json]) -> Request:
    return Request(
        api=NAME,
        model=text(body.get("model")) or "",
        messages=tuple(_message(message, f"/messages/{n}") for n, message in mappings(body.get("messages"))),
        tools=tuple(_tools(body.get("tools"))),
        body=body,
        tool_choice=_tool_choice(body.get("tool_choice")),
        stream=body.get("stream") is True,
        max_tokens=number(body.get("max_tokens")),
    )


def _message(message: Mapping[str, Json], place: str) -> Message:
    role = _ROLES.get(text(message.get("role")) or "", "user")
    content = message.get("content")
    if role == "tool":
        return Message(role, (ToolResult(text(message.get("tool_call_id")), _shown(content), place),), place)
    parts: list[Part] = []
    if plan := text(message.get("tool_plan")):
        parts.append(Reasoning(plan, f"{place}/tool_plan"))
    parts += _content(content, f"{place}/content")
    for n, call in mappings(message.get("tool_calls")):
        function = mapping(call.get("function"))
        given = function.get("arguments")
        arguments = Arguments(given or "") if given is None or isinstance(given, str) else Arguments.of(given)
        parts.append(ToolCall(text(call.get("id")), text(function.get("name")), arguments, f"{place}/tool_calls/{n}"))
    return Message(role, tuple(parts), place)


def _content(content: Json, place: str) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield Text(content, place)
        return
    for n, part in mappings(content):
        kind = text(part.get("type")) or ""
        if (words := text(part.get("thinking"))) is not None:
            yield Reasoning(words, f"{place}/{n}/thinking")
        elif (words := text(part.get("text"))) is not None:
            if words:
                yield Text(words, f"{place}/{n}/text")
        else:
            yield Opaque(kind, f"{place}/{n}")


def _shown(content: Json) -> str:
    """What a tool gave: text, or documents of which each is text or an object."""
    if isinstance(content, str) or content is None:
        return content or ""
    lines: list[str] = []
    for _, part in mappings(content):
        words = text(part.get("text"))
        document = part.get("document")
        data = mapping(document).get("data", document)
        lines.append(words if words is not None else data if isinstance(data, str) else _compact(data))
    return "\n".join(lines) if lines or content == [] else _compact(content)


def _compact(value: Json) -> str:
    return "" if value is None else orjson.dumps(value).decode()


def _tools(tools: Json) -> Iterator[Tool]:
    for n, tool in mappings(tools):
        function = mapping(tool.get("function"))
        if name := text(function.get("name")):
            described = text(function.get("description")) or ""
            yield Tool(name, f"/tools/{n}", described, schema(function.get("parameters")))


def _tool_choice(choice: Json) -> ToolChoice:
    match choice.upper() if isinstance(choice, str) else choice:
        case "NONE":
            return ToolChoice("none")
        case "REQUIRED":
            return ToolChoice("required")
        case _:
            return ToolChoice("auto")
