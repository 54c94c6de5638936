"""JSON-RPC 2.0 messages as the Model Context Protocol uses them, as parts of a request or a reply.

A call of a tool is a `ToolCall` whose id is that of the message, what it gave a `ToolResult`; every other message is an
`Rpc`. Ids are kept as JSON text, since `7` and `"7"` are different ids. Sources: JSON-RPC 2.0; the protocol's schema in its
revisions from 2024-11-05 to 2025-11-25.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from wirelint.apis.reading import mapping, mappings, text
from wirelint.model import Arguments, Json, Opaque, Part, Rpc, ToolCall, ToolResult

CALL = "tools/call"
METHODS = frozenset({
    "completion/complete",
    "elicitation/create",
    "logging/setLevel",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "roots/list",
    "sampling/createMessage",
    "server/discover",
    "tools/call",
    "tools/list",
    "notifications/cancelled",
    "notifications/elicitation/complete",
    "notifications/initialized",
    "notifications/message",
    "notifications/progress",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/roots/list_changed",
    "notifications/tasks/status",
    "notifications/tools/list_changed",
})  # fmt: skip
"""Methods that no other protocol on JSON-RPC has. `initialize`, `ping` and `tasks/…` are others' as well."""

_RESULTS = (
    ("tools", list),
    ("prompts", list),
    ("resources", list),
    ("resourceTemplates", list),
    ("contents", list),
    ("roots", list),
    ("serverInfo", dict),
)
"""Members by which the result of a method shows whose it is."""


def is_message(document: Mapping[str, Json]) -> bool:
    """Return True if a document is a message of JSON-RPC 2.0."""
    if document.get("jsonrpc") != "2.0":
        return False
    return isinstance(document.get("method"), str) or "result" in document or "error" in document


def is_ours(document: Mapping[str, Json]) -> bool:
    """Return True if a message alone shows that it is this protocol's."""
    if not is_message(document):
        return False
    method = document.get("method")
    if isinstance(method, str):
        if method == "initialize":  # the language server protocol has one too
            return "protocolVersion" in mapping(document.get("params"))
        return method in METHODS
    result = mapping(document.get("result"))
    if is_tool_result(result):
        return all("type" in block for _, block in mappings(result.get("content")))
    return any(isinstance(result.get(name), kind) for name, kind in _RESULTS)


def is_tool_result(result: Mapping[str, Json]) -> bool:
    return isinstance(result.get("content"), list)


def compact(value: Json) -> str:
    """JSON as short as it can be, for numbers of any size."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def id_of(message: Mapping[str, Json]) -> str | None:
    """The JSON text of a message's id."""
    value = message.get("id")
    return None if value is None else compact(value)


def parts_of(message: Mapping[str, Json], place: str) -> Iterator[Part]:
    """What a message says. `place` is the pointer of the message."""
    id_, method = id_of(message), text(message.get("method"))
    if method is not None:
        params = message.get("params")
        asked = mapping(params)
        if method == CALL and id_ is not None and (name := text(asked.get("name"))) is not None:
            given = asked.get("arguments")
            yield ToolCall(id_, name, Arguments.of({} if given is None else given), f"{place}/params")
        else:
            yield Rpc("notification" if id_ is None else "request", id_, method, params, f"{place}/method")
    elif "error" in message and message.get("error") is not None:
        yield Rpc("error", id_, "", message["error"], f"{place}/error")
    elif "result" in message:
        result = mapping(message["result"])
        if is_tool_result(result):
            yield from _result(id_, result, f"{place}/result")
        else:
            yield Rpc("result", id_, "", message["result"], f"{place}/result")


def _result(id_: str | None, result: Mapping[str, Json], place: str) -> Iterator[Part]:
    error = result.get("isError")
    yield ToolResult(id_, shown(result), place, None, error if isinstance(error, bool) else None)
    for n, block in mappings(result.get("content")):
        if _words(block) is None:
            yield Opaque(text(block.get("type")) or "", f"{place}/content/{n}")


def shown(result: Mapping[str, Json]) -> str:
    """The text of a tool's result; of one that is a value alone, that value."""
    lines = [words for _, block in mappings(result.get("content")) if (words := _words(block)) is not None]
    value = result.get("structuredContent")
    return compact(value) if not lines and value is not None else "\n".join(lines)


def _words(block: Mapping[str, Json]) -> str | None:
    words = text(block.get("text"))
    return words if words is not None else text(mapping(block.get("resource")).get("text"))
