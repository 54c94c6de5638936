"""Requests of Gemini's `generateContent`: system instruction, contents, function declarations, tool config.

The model, and whether the reply is to be a stream, stand in the path: `…/models/{model}:streamGenerateContent`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

import orjson

from wirelint.apis.gemini_schema import camel, json_schema, member, value_of
from wirelint.apis.gemini_wrapper import REQUEST, is_wrapped, message_moved, moved
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

METHODS = ("generateContent", "streamGenerateContent")
_PATH = re.compile(r"/(?:models|tunedModels|endpoints)/([^/:]+):(\w+)/?\Z")
_ROLES: dict[str, Role] = {"model": "assistant", "assistant": "assistant", "function": "tool", "tool": "tool"}
_ROLES |= {"system": "system"}
_CLIENT_TOOLS = frozenset({"functionDeclarations", "computerUse"})
_UNSEEN_TOOLS = frozenset({"computerUse", "mcpServers"})
"""Kinds of tools whose names the body does not show."""
_MODES: dict[Json, str] = {1: "AUTO", 2: "ANY", 3: "NONE"}
_MEDIA = ("inlineData", "fileData")
_SAID = ("output", "result", "content", "return_value", "error", "call_error")
"""The members under which clients put what a function gave; the first two are the vendor's own."""


def read_request(body: Mapping[str, Json]) -> Request:
    return read_request_at(body, "")


def read_request_at(body: Mapping[str, Json], path: str) -> Request:
    if is_wrapped(body):
        return _read_wrapped(body, path)
    found = _PATH.search(path)
    tools = tuple(_tools(body.get("tools")))
    kinds = {tool.type for tool in tools}
    cached = bool(value_of(body, "cachedContent"))
    return Request(
        api="google.generate_content",
        model=unquote(found[1]) if found is not None else (text(body.get("model")) or "").removeprefix("models/"),
        messages=(*_system(body), *_messages(body.get("contents"))),
        tools=tools,
        body=body,
        tool_choice=_tool_choice(mapping(value_of(mapping(value_of(body, "toolConfig")), "functionCallingConfig"))),
        stream=found is not None and found[2] == "streamGenerateContent",
        hosted=any(tool.hosted for tool in tools),
        tools_known=not (cached or kinds & _UNSEEN_TOOLS),
        max_tokens=number(value_of(mapping(value_of(body, "generationConfig")), "maxOutputTokens")),
        on_server="before" if cached else "nothing",
    )


def _read_wrapped(body: Mapping[str, Json], path: str) -> Request:
    """A request within another one, which names the model."""
    inner = read_request_at(mapping(body.get("request")), path)
    return dataclasses.replace(
        inner,
        model=text(body.get("model")) or inner.model,
        messages=tuple(message_moved(message, REQUEST) for message in inner.messages),
        tools=tuple(moved(tool, REQUEST) for tool in inner.tools),
        body=body,
        stream=path.rstrip("/").endswith(":streamGenerateContent"),
    )


def several(value: Json, place: str) -> Iterator[tuple[str, dict[str, Json]]]:
    """The objects of an array with their places; an object alone is taken for an array of one, as the vendor takes it."""
    if isinstance(value, dict):
        yield place, value
    for n, item in mappings(value):
        yield f"{place}/{n}", item


def _system(body: Mapping[str, Json]) -> Iterator[Message]:
    name, value = member(body, "systemInstruction")
    place = f"/{name}"
    if isinstance(value, str):
        parts: tuple[Part, ...] = (Text(value, place),) if value else ()
    else:
        parts = tuple(_parts(mapping(value).get("parts"), f"{place}/parts"))
    if parts:
        yield Message("system", parts, place)


def _messages(contents: Json) -> Iterator[Message]:
    for place, content in several(contents, "/contents"):
        role = _ROLES.get(text(content.get("role")) or "", "user")
        yield Message(role, tuple(_parts(content.get("parts"), f"{place}/parts")), place)


def _parts(parts: Json, place: str) -> Iterator[Part]:
    for where, part in several(parts, place):
        yield from read_part(part, where)


def read_part(part: Mapping[str, Json], place: str) -> Iterator[Part]:
    """What a part of a content says: one part, and more of them where a function's result has files with it."""
    kind, name, value = kind_of(part)
    inner = mapping(value)
    match kind:
        case "text":
            words = text(value) or ""
            if words:
                yield Reasoning(words, f"{place}/text") if part.get("thought") is True else Text(words, f"{place}/text")
            elif value_of(part, "thoughtSignature"):
                yield Reasoning("", place, opaque=True)
        case "functionCall":
            called = Arguments.of(arguments_of(inner))
            yield ToolCall(text(inner.get("id")) or None, text(inner.get("name")), called, f"{place}/{name}")
        case "functionResponse":
            yield _result(inner, f"{place}/{name}")
            for n, media in mappings(inner.get("parts")):
                yield Opaque(kind_of(media)[0], f"{place}/{name}/parts/{n}")
        case "toolCall" | "executableCode":
            yield HostedCall(text(inner.get("id")), hosted_name(kind, inner), f"{place}/{name}")
        case "toolResponse" | "codeExecutionResult":
            yield HostedResult(text(inner.get("id")), f"{place}/{name}", hosted_name(kind, inner))
        case "":
            return
        case _:
            yield Opaque(kind, f"{place}/{name}")


_KINDS = (
    "text", "functionCall", "functionResponse", *_MEDIA, "executableCode", "codeExecutionResult", "toolCall",
    "toolResponse",
)  # fmt: skip
_BESIDE = frozenset({"thought", "thoughtSignature", "thought_signature", "partMetadata", "part_metadata"})


def kind_of(part: Mapping[str, Json]) -> tuple[str, str, Json]:
    """What kind of part it is, the name of the member that says so as it is written, and that member's value.

    A part that has a signature and nothing else is a text without words.
    """
    for kind in _KINDS:
        name, value = member(part, kind)
        if value is not None:
            return kind, name, value
    for name, value in part.items():
        if name not in _BESIDE and value is not None:
            return name, name, value
    return ("text", "text", "") if value_of(part, "thoughtSignature") else ("", "", None)


def hosted_name(kind: str, inner: Mapping[str, Json]) -> str:
    """The tool of the provider that a part is about."""
    if kind in ("executableCode", "codeExecutionResult"):
        return "code_execution"
    return (text(value_of(inner, "toolType")) or kind).lower()


def arguments_of(call: Mapping[str, Json]) -> Json:
    """The arguments of a call; one without any leaves them out."""
    given = call.get("args")
    return {} if given is None else given


def _result(response: Mapping[str, Json], place: str) -> ToolResult:
    said = response.get("response")
    inner = mapping(said)
    flag = value_of(inner, "isError")
    failed = flag if isinstance(flag, bool) else True if inner.get("error") and not inner.get("output") else None
    id_, name = text(response.get("id")), text(response.get("name"))
    return ToolResult(id_ or None, _shown(said), place, name, failed)


def _shown(response: Json) -> str:
    """What a function gave, as text: the object that the API asks for is only a wrapper where it holds one text."""
    if isinstance(response, dict):
        told = [value for key, value in response.items() if key in _SAID]
        if len(told) == 1 and (len(response) == 1 or isinstance(told[0], list)):
            return _words(told[0])
        if len(response) == 1:
            (value,) = response.values()
            return value if isinstance(value, str) else _compact(response)
    return _words(response)


def _words(value: Json) -> str:
    if isinstance(value, str):
        return value
    texts = [text(item.get("text")) for _, item in mappings(value)]
    if texts and isinstance(value, list) and len(texts) == len(value) and all(one is not None for one in texts):
        return "\n".join(one for one in texts if one is not None)
    return _compact(value)


def _compact(value: Json) -> str:
    return "" if value is None else orjson.dumps(value).decode()


def _tools(tools: Json) -> Iterator[Tool]:
    for place, tool in several(tools, "/tools"):
        name, declared = member(tool, "functionDeclarations")
        for where, function in several(declared, f"{place}/{name}"):
            yield from _function(function, where)
        for kind, value in tool.items():
            if kind == name or value is None or value is False:
                continue
            said = camel(kind)
            yield Tool(said, f"{place}/{kind}", "", None, hosted=said not in _CLIENT_TOOLS, type=said)


def _function(function: Mapping[str, Json], place: str) -> Iterator[Tool]:
    name = text(function.get("name"))
    if not name:
        return
    described = text(function.get("description")) or ""
    shaped = schema(value_of(function, "parametersJsonSchema")) or json_schema(function.get("parameters"))
    yield Tool(name, place, described, shaped)


def _tool_choice(config: Mapping[str, Json]) -> ToolChoice:
    mode = config.get("mode")
    if isinstance(mode, int) and not isinstance(mode, bool):
        mode = _MODES.get(mode)
    named = value_of(config, "allowedFunctionNames")
    names = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    match text(mode):
        case "NONE":
            return ToolChoice("none")
        case "ANY" if len(names) == 1:
            return ToolChoice("named", names[0])
        case "ANY":
            return ToolChoice("required", names=tuple(names))
        case "VALIDATED":
            return ToolChoice("auto", names=tuple(names))
        case _:
            return ToolChoice("auto")
