"""Requests of Anthropic Messages: system, messages, tools, tool choice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import orjson

from wirelint.apis.declared import Declared
from wirelint.apis.reading import mapping, mappings, number, schema, text
from wirelint.model import (
    Arguments,
    HostedCall,
    HostedResult,
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

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool"}
# Vendor-defined tools are dated types. These run at the client and have a schema that only the model knows.
_CLIENT_TYPES = re.compile(r"(bash|text_editor|computer|memory)_\d{8}$")
_UNSEEN_TOOLS = re.compile(r"tool_search_tool|mcp_toolset")


def hosted_result(kind: str) -> bool:
    """Return True if a block type is a result of a tool that the provider ran (`web_search_tool_result`, …)."""
    return kind.endswith("_tool_result")


def read_request(body: Mapping[str, Json]) -> Request:
    tools = _tools(body.get("tools"))
    choice = mapping(body.get("tool_choice"))
    disabled = choice.get("disable_parallel_tool_use")
    elsewhere = bool(body.get("mcp_servers") or body.get("container"))
    previous = _previous(body)
    compacted = any(block.get("type") == "compaction" for block in _first_blocks(body.get("messages")))
    return Request(
        api="anthropic.messages",
        model=text(body.get("model")) or "",
        messages=(*_system(body.get("system")), *_messages(body.get("messages"))),
        tools=tools,
        body=body,
        tool_choice=_tool_choice(choice),
        parallel_tool_calls=not disabled if isinstance(disabled, bool) else None,
        stream=body.get("stream") is True,
        hosted=elsewhere or any(tool.hosted for tool in tools),
        # A message thread keeps the tools that it was created with, and refuses to get them again.
        tools_known=previous is None and not any(_UNSEEN_TOOLS.match(tool.type) for tool in tools),
        max_tokens=number(body.get("max_tokens")),
        on_server="before" if previous is not None or compacted else "nothing",
        previous=previous or None,
    )


def _previous(body: Mapping[str, Json]) -> str | None:
    """The id of the reply from which a message thread continues (`thread.previous_message_id`); None without a thread."""
    thread = mapping(body.get("thread"))
    return text(thread.get("previous_message_id")) or "" if thread.get("type") == "continue" else None


def _first_blocks(messages: Json) -> list[dict[str, Json]]:
    first = messages[0] if isinstance(messages, list) and messages else None
    return [block for _, block in mappings(mapping(first).get("content"))]


def _system(system: Json) -> Iterator[Message]:
    parts = tuple(_blocks(system, "/system"))
    if parts:
        yield Message("system", parts, "/system")


def _messages(messages: Json) -> Iterator[Message]:
    for n, message in mappings(messages):
        place = f"/messages/{n}"
        role = _ROLES.get(text(message.get("role")) or "", "user")
        yield Message(role, tuple(_blocks(message.get("content"), f"{place}/content")), place)


def _blocks(content: Json, place: str) -> Iterator[Part]:
    if isinstance(content, str):
        if content:
            yield Text(content, place)
        return
    for n, block in mappings(content):
        part = _block(block, f"{place}/{n}")
        if part is not None:
            yield part


def _block(block: Mapping[str, Json], place: str) -> Part | None:
    kind = text(block.get("type")) or ""
    match kind:
        case "text":
            words = text(block.get("text"))
            return Text(words, f"{place}/text") if words else None
        case "thinking":
            return Reasoning(text(block.get("thinking")) or "", f"{place}/thinking")
        case "redacted_thinking":
            return Reasoning("", place, opaque=True)
        case "tool_use":
            return ToolCall(text(block.get("id")), text(block.get("name")), _input(block.get("input")), place)
        case "tool_result":
            error = block.get("is_error")
            shown = _shown(block.get("content"))
            flag = error if isinstance(error, bool) else None
            return ToolResult(text(block.get("tool_use_id")), shown, place, None, flag)
        case "server_tool_use" | "mcp_tool_use":
            return HostedCall(text(block.get("id")), text(block.get("name")), place)
        case _ if hosted_result(kind):
            return HostedResult(text(block.get("tool_use_id")), place, kind)
        case _:
            return Opaque(kind, place)


def _input(value: Json) -> Arguments:
    return Arguments("") if value is None else Arguments.of(value)


def _shown(content: Json) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(words for _, part in mappings(content) if (words := text(part.get("text"))) is not None)
    return "" if content is None else orjson.dumps(content).decode()


def _tool(tool: Mapping[str, Json], place: str) -> Tool:
    kind = text(tool.get("type")) or "custom"
    name = text(tool.get("name")) or text(mapping(tool.get("function")).get("name")) or kind
    described = text(tool.get("description")) or ""
    declared = schema(tool.get("input_schema")) or schema(mapping(tool.get("function")).get("parameters"))
    hosted = kind not in ("custom", "function") and declared is None and _CLIENT_TYPES.match(kind) is None
    return Tool(name, place, described, declared, hosted, kind)


@Declared
def _tools(tools: Json) -> tuple[Tool, ...]:
    return tuple([_tool(tool, f"/tools/{n}") for n, tool in mappings(tools)])


def _tool_choice(choice: Mapping[str, Json]) -> ToolChoice:
    match choice:
        case {"type": "none"}:
            return ToolChoice("none")
        case {"type": "any"}:
            return ToolChoice("required")
        case {"type": "tool", "name": str(name)}:
            return ToolChoice("named", name)
        case _:
            return ToolChoice("auto")
