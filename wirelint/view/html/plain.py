"""Values of the wire as JSON that every browser can read: parts, messages, tools. No markup is made of them here."""

from __future__ import annotations

import json
import re
from typing import TypeAlias

import orjson

from wirelint.model import (
    Choice,
    HostedCall,
    HostedResult,
    Json,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Rpc,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)

Object: TypeAlias = dict[str, Json]

_MOST_TEXT = 200_000
"""Characters of one text that a page holds; of a longer one the beginning."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def part(value: Part, base: str) -> Object:
    """A part: `kind`, and what it has of `text`, `name`, `id`. `at` is its place below `base`, or the whole pointer."""
    made: Object = {"at": relative(value.pointer, base)}
    match value:
        case Text(text):
            made |= {"kind": "text", "text": clip(text)}
        case Reasoning(text, _, opaque):
            made |= {"kind": "reasoning", "text": "" if opaque else clip(text)}
        case Refusal(text):
            made |= {"kind": "refusal", "text": clip(text)}
        case ToolCall(id_, name, arguments):
            made |= {"kind": "call", "text": clip(arguments.text), "name": name, "id": id_}
        case ToolResult(call_id, text, _, name, error):
            made |= {"kind": "result", "text": clip(text), "name": name, "id": call_id, "error": bool(error)}
        case HostedCall(id_, name):
            made |= {"kind": "hosted", "name": name, "id": id_}
        case HostedResult(call_id, _, kind):
            made |= {"kind": "hosted-result", "name": kind, "id": call_id}
        case Rpc(form, id_, method, said):
            text = "" if said is None else compact(said)
            made |= {"kind": "rpc", "name": method or form, "id": id_, "text": text}
        case Opaque(kind):
            made |= {"kind": "opaque", "name": kind}
    return made


def message(value: Message) -> Object:
    """A message of a history, the same wherever it stands: places are told from its own."""
    return {"role": value.role, "parts": [part(item, value.pointer) for item in value.parts]}


def declared(tools: tuple[Tool, ...]) -> Object:
    """The declared tools as one message; the schema of each is its text."""
    parts: list[Json] = []
    for tool in tools:
        text = compact(tool.schema) if tool.schema is not None else ""
        at = relative(tool.pointer, "/tools")
        parts.append({"kind": "tool", "at": at, "name": tool.name, "note": clip(tool.description), "text": text})
    return {"role": "tools", "parts": parts}


def choice(value: Choice) -> Object:
    """A candidate of a reply; its parts have their whole pointers."""
    return {
        "index": value.index,
        "parts": [part(item, "") for item in value.parts],
        "finish": value.finish_reason,
        "finishAt": value.finish_pointer,
    }


def relative(pointer: str, base: str) -> str:
    """A pointer told from `base`; one that does not lie below it stays whole, behind a `^`."""
    if pointer == base or pointer.startswith(f"{base}/"):
        return pointer[len(base) :]
    return f"^{pointer}"


def absolute(at: str, base: str) -> str:
    """The pointer of which `relative` made `at`."""
    return at[1:] if at.startswith("^") else base + at


def compact(value: Json) -> str:
    """A value of the wire as text."""
    try:
        return clip(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        return "(nested too deeply to be shown)"


def clip(text: str) -> str:
    left = len(text) - _MOST_TEXT
    return text if left <= 0 else f"{text[:_MOST_TEXT]}… (+{left} characters, left out of this page)"


def utf16(text: str, offset: int) -> int:
    """An offset in characters as JavaScript counts them."""
    offset = max(0, min(offset, len(text)))
    return offset if text.isascii() else offset + sum(char > "\uffff" for char in text[:offset])


def dump(value: Json) -> bytes:
    """JSON in UTF-8; lone surrogates, which no file can hold, become U+FFFD."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(_readable(value), ensure_ascii=False, separators=(",", ":")).encode()


def _readable(value: Json) -> Json:
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case dict():
            return {_SURROGATE.sub("\ufffd", name): _readable(item) for name, item in value.items()}
        case list():
            return [_readable(item) for item in value]
        case _:
            return value
