"""Requests of OpenAI's Responses: instructions, input items, tools, tool choice.

A body may show the last stretch of a conversation alone (`previous_response_id`, `conversation`). Items that the model made
one after the other are one message, as in the APIs that have messages; each part keeps the place of its own item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from wirelint.apis.openai_responses_parts import RESULTS, Said, said, shown
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
    Refusal,
    Request,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}
_CLIENT_TOOLS: dict[str, str] = {
    "local_shell": "local_shell",
    "computer": "computer",
    "computer_use": "computer",
    "computer_use_preview": "computer",
    "apply_patch": "apply_patch",
}
"""Types of tools that the vendor defines and the client runs, and what their calls are named here."""
_LOADING = frozenset({"tool_search", "mcp"})
_SUMMARIES = frozenset({"compaction", "compaction_summary"})
"""Items that replace all that was said before them."""


def read_request(body: Mapping[str, Json]) -> Request:
    tools = tuple(_tools(body))
    parallel = body.get("parallel_tool_calls")
    on_server = _on_server(body)
    shown_all = not body.get("prompt") and (bool(tools) or on_server == "nothing")
    return Request(
        api="openai.responses",
        model=text(body.get("model")) or "",
        messages=tuple(_messages(body)),
        tools=tools,
        body=body,
        tool_choice=_tool_choice(body.get("tool_choice")),
        parallel_tool_calls=parallel if isinstance(parallel, bool) else None,
        stream=body.get("stream") is True or body.get("type") == "response.create",  # over a socket all replies are
        hosted=any(tool.hosted for tool in tools) or bool(body.get("prompt")),
        tools_known=shown_all and not any(tool.type in _LOADING for tool in tools),
        max_tokens=number(body.get("max_output_tokens")),
        on_server=on_server,
        previous=text(body.get("previous_response_id")) or None,
        stored=text(mapping(body.get("conversation")).get("id", body.get("conversation"))) or None,
    )


def _on_server(body: Mapping[str, Json]) -> Literal["nothing", "before", "anywhere"]:
    """Where the server holds items that the body lacks: a reference can stand for a call or a result in any place."""
    kinds = {text(item.get("type")) for _, item in mappings(body.get("input"))}
    if "item_reference" in kinds:
        return "anywhere"
    named = any(body.get(name) for name in ("previous_response_id", "conversation", "prompt"))
    return "before" if named or kinds & _SUMMARIES else "nothing"


# --- messages ---------------------------------------------------------------------------------------------------------


def _messages(body: Mapping[str, Json]) -> Iterator[Message]:
    if instructions := text(body.get("instructions")):
        yield Message("system", (Text(instructions, "/instructions"),), "/instructions")
    given = body.get("input")
    if isinstance(given, str):
        yield Message("user", (Text(given, "/input"),) if given else (), "/input")
        return
    turn: list[Part] = []
    began = ""
    for n, item in mappings(given):
        place = f"/input/{n}"
        message = _item(item, place)
        if message is None:
            continue
        if message.role == "assistant":
            began = began or place
            turn += message.parts
            continue
        if began:
            yield Message("assistant", tuple(turn), began)
            turn, began = [], ""
        yield message
    if began:
        yield Message("assistant", tuple(turn), began)


def _item(item: Mapping[str, Json], place: str) -> Message | None:
    kind = text(item.get("type")) or "message"
    if kind == "message":
        role = _ROLES.get(text(item.get("role")) or "", "user")
        parts = (_part(one) for one in said(item, place))
        return Message(role, tuple(part for part in parts if part is not None), place)
    if kind == "additional_tools":
        return None
    if kind in RESULTS and not (kind == "tool_search_output" and item.get("execution") != "client"):
        return Message("tool", (_result(kind, item, place),), place)
    if kind == "mcp_approval_response":
        return Message("user", (Opaque(kind, place),), place)
    parts = (_part(one) for one in said(item, place))
    return Message("assistant", tuple(part for part in parts if part is not None), place)


def _part(one: Said) -> Part | None:
    match one.kind:
        case "text":
            return Text(one.text, one.pointer) if one.text else None
        case "reasoning":
            return Reasoning(one.text, one.pointer, opaque=not one.text)
        case "refusal":
            return Refusal(one.text, one.pointer)
        case "tool_call":
            arguments = Arguments(one.text) if one.input is None else Arguments.of(one.input)
            return ToolCall(one.id, one.name, arguments, one.pointer, "custom" if one.form == "custom" else "function")
        case "hosted_call":
            return HostedCall(one.id, one.name, one.pointer)
        case "hosted_result":
            return HostedResult(one.id, one.pointer, one.name or "")
        case "opaque" | "tool_result" | "rpc":
            return Opaque(one.name or "", one.pointer)


def _result(kind: str, item: Mapping[str, Json], place: str) -> ToolResult:
    output = item.get("tools") if kind == "tool_search_output" else item.get("output")
    failed = True if kind == "apply_patch_call_output" and item.get("status") == "failed" else None
    return ToolResult(text(item.get("call_id")), shown(output), place, text(item.get("name")), failed)


# --- tools ------------------------------------------------------------------------------------------------------------


def _tools(body: Mapping[str, Json]) -> Iterator[Tool]:
    for n, tool in mappings(body.get("tools")):
        yield from _tool(tool, f"/tools/{n}")
    for n, item in mappings(body.get("input")):
        if item.get("type") in ("additional_tools", "tool_search_output"):
            for m, tool in mappings(item.get("tools")):
                yield from _tool(tool, f"/input/{n}/tools/{m}")


def _tool(tool: Mapping[str, Json], place: str) -> Iterator[Tool]:
    kind = text(tool.get("type")) or "function"
    inner = mapping(tool.get(kind)) or tool  # nested as in Chat Completions, where a gateway passes that on
    name, described = text(inner.get("name")), text(inner.get("description")) or ""
    if kind == "function":
        if name:
            yield Tool(name, place, described, schema(inner.get("parameters", inner.get("input_schema"))))
    elif kind == "custom":
        yield Tool(name or "", place, described, None, type="custom")
    elif kind == "namespace":
        for n, each in mappings(tool.get("tools")):
            yield from _tool(each, f"{place}/tools/{n}")
    elif kind in _CLIENT_TOOLS or kind.startswith("computer_use"):
        yield Tool(_CLIENT_TOOLS.get(kind, "computer"), place, described, None, type=kind)
    elif kind == "shell":
        environment = text(mapping(tool.get("environment")).get("type")) or ""
        yield Tool("shell", place, described, None, hosted=environment.startswith("container"), type=kind)
    elif kind == "tool_search":
        yield Tool(kind, place, described, schema(tool.get("parameters")), tool.get("execution") != "client", kind)
    else:
        yield Tool(name or kind, place, described, None, hosted=True, type=kind)


def _names(tools: Json) -> tuple[str, ...]:
    """The names of allowed tools, those of the provider left out; none when nothing is left."""
    return tuple(name for _, tool in mappings(tools) if (name := text(tool.get("name"))))


def _tool_choice(choice: Json) -> ToolChoice:
    match choice:
        case "none":
            return ToolChoice("none")
        case "required" | "any":
            return ToolChoice("required")
        case {"type": "allowed_tools"}:
            allowed = mapping(choice)
            return ToolChoice(
                "required" if allowed.get("mode") == "required" else "auto", names=_names(allowed.get("tools"))
            )
        case {"type": "mcp", "server_label": str()}:
            return ToolChoice("required")
        case {"name": str(name)} | {"function": {"name": str(name)}} | {"custom": {"name": str(name)}}:
            return ToolChoice("named", name)
        case {"type": str(kind)} if kind not in ("auto", "function", "custom"):
            return ToolChoice("named", "computer" if kind.startswith("computer") else kind)
        case _:
            return ToolChoice("auto")
