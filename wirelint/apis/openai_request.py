"""Requests of OpenAI Chat Completions: messages, tools, tool choice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import orjson

from wirelint.apis.declared import Declared
from wirelint.apis.reading import mapping, mappings, number, schema, text
from wirelint.model import (
    Arguments,
    Json,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Request,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
_PLAIN = frozenset({"role", "content"})
"""The members of most messages."""
_REASONING = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
_LIMITS = ("max_completion_tokens", "max_tokens", "max_new_tokens")
_ASKING = frozenset({"stream_options", "usage"})
"""The members by which token counts are asked for, and nothing else is said."""
_UNSEEN_TOOLS = frozenset({"tool_search", "mcp", "namespace"})
"""Types of tools whose names the body does not show."""
_SEARCHES = frozenset({"web_search_options", "plugins", "search_parameters", "data_sources"})
_SEARCHING = re.compile(r":online|-search-preview|-search-api|sonar|compound")
"""In the names of models."""


def read_request(body: Mapping[str, Json]) -> Request:
    return _read(body, _messages(body), _tools(body))


def read_request_again(body: Mapping[str, Json], before: Request) -> Request:
    """A request that differs from another one in some of its outermost members; the others are the very same objects."""
    other = before.body
    names = body.keys() | other.keys()
    if not [name for name in names if body.get(name) is not other.get(name) and name not in _ASKING]:
        return before.but(body=body, wants_usage=_wants_usage(body))
    messages = before.messages if _shares(body, before.body, "messages") else _messages(body)
    tools = before.tools if _shares(body, before.body, "tools", "functions") else _tools(body)
    return _read(body, messages, tools)


def _shares(body: Mapping[str, Json], other: Mapping[str, Json], *names: str) -> bool:
    return all(body.get(name) is other.get(name) for name in names)


def _read(body: Mapping[str, Json], messages: tuple[Message, ...], tools: tuple[Tool, ...]) -> Request:
    model = text(body.get("model")) or ""
    parallel = body.get("parallel_tool_calls")
    return Request(
        api="openai.chat",
        model=model,
        messages=messages,
        tools=tools,
        body=body,
        tool_choice=_tool_choice(body.get("tool_choice", body.get("function_call"))),
        parallel_tool_calls=parallel if isinstance(parallel, bool) else None,
        stream=body.get("stream") is True,
        hosted=True in [tool.hosted for tool in tools] or _searches(body, model),
        tools_known=_UNSEEN_TOOLS.isdisjoint([tool.type for tool in tools]),
        max_tokens=_limit(body),
        wants_usage=_wants_usage(body),
    )


def _limit(body: Mapping[str, Json]) -> int | None:
    for name in _LIMITS:
        if (most := number(body.get(name))) is not None:
            return most
    return None


def _wants_usage(body: Mapping[str, Json]) -> bool | None:
    """OpenAI's `stream_options.include_usage`, or OpenRouter's `usage.include`."""
    for member, name in (("stream_options", "include_usage"), ("usage", "include")):
        if member in body and isinstance(wish := mapping(body[member]).get(name), bool):
            return wish
    return None


def _searches(body: Mapping[str, Json], model: str) -> bool:
    """Return True if the provider was asked to use tools of its own outside of `tools`."""
    asked = not _SEARCHES.isdisjoint(body) and any(body.get(field) for field in _SEARCHES)
    return asked or _SEARCHING.search(model) is not None


def _message(message: Mapping[str, Json], place: str) -> Message:
    role = _ROLES.get(text(message.get("role")) or "", "user")
    content = message.get("content")
    if role == "tool":
        return Message(role, (_result(message, place),), place)
    if isinstance(content, str) and message.keys() == _PLAIN:
        return Message(role, (Text(content, f"{place}/content"),) if content else (), place)
    parts: list[Part] = []
    for field in _REASONING:
        if thought := text(message.get(field)):
            parts.append(Reasoning(thought, f"{place}/{field}"))
            break
    parts += _content(content, f"{place}/content")
    if refusal := text(message.get("refusal")):
        parts.append(Refusal(refusal, f"{place}/refusal"))
    parts += [_call(call, f"{place}/tool_calls/{n}") for n, call in mappings(message.get("tool_calls"))]
    legacy = mapping(message.get("function_call"))
    if legacy.get("name") or legacy.get("arguments"):  # Go clients send an empty one with every message
        arguments = Arguments(text(legacy.get("arguments")) or "")
        parts.append(ToolCall(None, text(legacy.get("name")), arguments, f"{place}/function_call", "legacy"))
    return Message(role, tuple(parts), place)


def _content(content: Json, place: str) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield Text(content, place)
        return
    for n, part in mappings(content):
        kind = text(part.get("type")) or ""
        words = text(part.get("text"))
        if kind == "thinking" or kind == "reasoning":
            yield Reasoning(_joined(part.get("thinking", words)), f"{place}/{n}")
        elif kind == "refusal":
            yield Refusal(text(part.get("refusal")) or "", f"{place}/{n}")
        elif words is not None:
            if words:
                yield Text(words, f"{place}/{n}/text")
        else:
            yield Opaque(kind, f"{place}/{n}")


def _joined(content: Json) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(words for _, part in mappings(content) if (words := text(part.get("text"))) is not None)


def _result(message: Mapping[str, Json], place: str) -> ToolResult:
    content = message.get("content")
    shown = _joined(content) if isinstance(content, str | list) else _compact(content)
    return ToolResult(text(message.get("tool_call_id")), shown, place, text(message.get("name")))


def _call(call: Mapping[str, Json], place: str) -> ToolCall:
    custom = mapping(call.get("custom"))
    function = custom or mapping(call.get("function"))
    given = function.get("input") if custom else function.get("arguments")
    arguments = Arguments(given or "") if given is None or isinstance(given, str) else Arguments.of(given)
    return ToolCall(
        text(call.get("id")), text(function.get("name")), arguments, place, "custom" if custom else "function"
    )


def _messages(body: Mapping[str, Json]) -> tuple[Message, ...]:
    return tuple([_message(message, f"/messages/{n}") for n, message in mappings(body.get("messages"))])


def _tools(body: Mapping[str, Json]) -> tuple[Tool, ...]:
    tools = _declared(body.get("tools"))
    functions = body.get("functions")
    return (*tools, *_functions(functions)) if functions else tools


def _functions(functions: Json) -> Iterator[Tool]:
    for n, function in mappings(functions):
        if name := text(function.get("name")):
            described = text(function.get("description")) or ""
            yield Tool(name, f"/functions/{n}", described, schema(function.get("parameters")))


def _tool(tool: Mapping[str, Json], place: str) -> Tool | None:
    kind = text(tool.get("type")) or "function"
    inner = mapping(tool.get(kind)) or tool
    name = text(inner.get("name"))
    described = text(inner.get("description")) or ""
    if kind == "custom":
        return Tool(name or "", place, described, None, type="custom")
    if kind == "function" or "parameters" in inner or "input_schema" in inner:
        return (
            Tool(name, place, described, schema(inner.get("parameters", inner.get("input_schema")))) if name else None
        )
    return Tool(name or kind, place, described, None, hosted=True, type=kind)


@Declared
def _declared(tools: Json) -> tuple[Tool, ...]:
    return tuple([found for n, tool in mappings(tools) if (found := _tool(tool, f"/tools/{n}")) is not None])


def _tool_choice(choice: Json) -> ToolChoice:
    match choice:
        case "none":
            return ToolChoice("none")
        case "required" | "any":
            return ToolChoice("required")
        case {"type": "allowed_tools"}:
            allowed = mapping(mapping(choice).get("allowed_tools"))
            return ToolChoice(
                "required" if allowed.get("mode") == "required" else "auto", names=_names(allowed.get("tools"))
            )
        case {"function": {"name": str(name)}} | {"custom": {"name": str(name)}} | {"name": str(name)}:
            return ToolChoice("named", name)
        case _:
            return ToolChoice("auto")


def _names(tools: Json) -> tuple[str, ...]:
    """The names of allowed tools; none when one of them is told otherwise than by its name."""
    names = [text(mapping(tool.get(text(tool.get("type")) or "")).get("name")) for _, tool in mappings(tools)]
    return tuple(name for name in names if name) if all(names) else ()


def _compact(value: Json) -> str:
    return "" if value is None else orjson.dumps(value).decode()
