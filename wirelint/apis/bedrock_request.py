"""Requests of Bedrock's Converse: system, messages, tools, tool choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

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

_ROLES: dict[str, Role] = {"assistant": "assistant", "system": "system"}
_OPTIONS = ("inferenceConfig", "toolConfig", "schemaVersion", "system", "additionalModelRequestFields")


def has_blocks(body: Mapping[str, Json]) -> bool:
    """Whether a body has the messages of Converse, lists of blocks without a type, and one of its options beside them."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not any(name in body for name in _OPTIONS):
        return False
    blocks = [block for _, message in mappings(messages) for _, block in mappings(message.get("content"))]
    return bool(blocks) and not any("type" in block for block in blocks)


def read_request(body: Mapping[str, Json], model: str = "", *, stream: bool = False) -> Request:
    config = mapping(body.get("toolConfig"))
    tools = tuple(_tools(config.get("tools")))
    stored = "promptVariables" in body or ":prompt/" in model  # a stored prompt brings its own messages and tools
    return Request(
        api="bedrock.converse",
        model=model or text(body.get("modelId")) or "",
        messages=(*_system(body.get("system")), *_messages(body.get("messages"))),
        tools=tools,
        body=body,
        tool_choice=_tool_choice(mapping(config.get("toolChoice"))),
        stream=stream,
        hosted=any(tool.hosted for tool in tools),
        tools_known=not stored,
        max_tokens=number(mapping(body.get("inferenceConfig")).get("maxTokens")),
        on_server="before" if stored else "nothing",
    )


def _system(system: Json) -> Iterator[Message]:
    parts = tuple(_blocks(system, "/system", "system"))
    if parts:
        yield Message("system", parts, "/system")


def _messages(messages: Json) -> Iterator[Message]:
    for n, message in mappings(messages):
        place = f"/messages/{n}"
        role = _ROLES.get(text(message.get("role")) or "", "user")
        yield Message(role, tuple(_blocks(message.get("content"), f"{place}/content", role)), place)


def _blocks(content: Json, place: str, role: Role) -> Iterator[Part]:
    if isinstance(content, str):  # the API wants a list; a string is what clients of other APIs send
        if content:
            yield Text(content, place)
        return
    for n, block in mappings(content):
        part = _block(block, f"{place}/{n}", role)
        if part is not None:
            yield part


def _block(block: Mapping[str, Json], place: str, role: Role) -> Part | None:
    if isinstance(words := block.get("text"), str):
        return Text(words, f"{place}/text") if words else None
    if call := mapping(block.get("toolUse")):
        id_, name = text(call.get("toolUseId")), text(call.get("name"))
        if call.get("type") == "server_tool_use":
            return HostedCall(id_, name, place)
        given = call.get("input")
        return ToolCall(id_, name, Arguments("") if given is None else Arguments.of(given), place)
    if result := mapping(block.get("toolResult")):
        if role == "assistant":
            return HostedResult(text(result.get("toolUseId")), place, text(result.get("type")) or "toolResult")
        status = text(result.get("status"))
        failed = status == "error" if status is not None else None
        return ToolResult(text(result.get("toolUseId")), _shown(result.get("content")), place, None, failed)
    if thought := mapping(block.get("reasoningContent")):
        said = text(mapping(thought.get("reasoningText")).get("text"))
        pointer = f"{place}/reasoningContent/reasoningText/text"
        return Reasoning(said, pointer) if said else Reasoning("", place, opaque=True)
    if guarded := text(mapping(mapping(block.get("guardContent")).get("text")).get("text")):
        return Text(guarded, f"{place}/guardContent/text/text")
    if cited := mappings(mapping(block.get("citationsContent")).get("content")):
        return Text("".join(text(part.get("text")) or "" for _, part in cited), f"{place}/citationsContent/content")
    if "cachePoint" in block:
        return None  # a mark for the provider's cache, and nothing that a model sees
    return Opaque(next(iter(block), ""), place)


def _shown(content: Json) -> str:
    """The textual content of a result: its texts, and its JSON as text."""
    if isinstance(content, str):
        return content
    shown: list[str] = []
    for _, part in mappings(content):
        if isinstance(words := part.get("text"), str):
            shown.append(words)
        elif "json" in part:
            shown.append(orjson.dumps(part["json"]).decode())
    return "\n".join(shown)


def _tools(tools: Json) -> Iterator[Tool]:
    for n, tool in mappings(tools):
        place = f"/toolConfig/tools/{n}"
        if spec := mapping(tool.get("toolSpec")):
            declared = schema(mapping(spec.get("inputSchema")).get("json"))
            yield Tool(text(spec.get("name")) or "", place, text(spec.get("description")) or "", declared)
        elif system := mapping(tool.get("systemTool")):
            yield Tool(text(system.get("name")) or "systemTool", place, hosted=True, type="systemTool")


def _tool_choice(choice: Mapping[str, Json]) -> ToolChoice:
    match choice:
        case {"any": _}:
            return ToolChoice("required")
        case {"tool": {"name": str(name)}}:
            return ToolChoice("named", name)
        case _:
            return ToolChoice("auto")
