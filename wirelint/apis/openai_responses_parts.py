"""The items of OpenAI's Responses: what each of them holds, in a reply's `output` and in a request's `input` alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import orjson

from wirelint.apis.reading import is_misshapen, mapping, mappings, misshapen, text
from wirelint.model import Json, Kind

_TEXTS = frozenset({"output_text", "input_text", "text", "summary_text", "reasoning_text"})

CALLS: dict[str, tuple[str, str]] = {
    "function_call": ("arguments", ""),
    "custom_tool_call": ("input", ""),
    "local_shell_call": ("action", "local_shell"),
    "shell_call": ("action", "shell"),
    "computer_call": ("action", "computer"),
    "apply_patch_call": ("operation", "apply_patch"),
    "tool_search_call": ("arguments", "tool_search"),
}
"""Calls that the client may have to run: the member that holds their arguments, and their name where it has none."""

RESULTS = frozenset({
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "shell_call_output",
    "computer_call_output",
    "apply_patch_call_output",
    "tool_search_output",
})  # fmt: skip

SPOKEN_CALLS = ("function_call", "custom_tool_call")
"""Calls whose arguments are text, and come as text in a stream."""


class Said(NamedTuple):
    """A part of an item: what begins a block, and all of its text."""

    kind: Kind
    pointer: str
    text: str = ""
    id: str | None = None
    name: str | None = None
    input: Json = None
    form: str = "function"


def said(item: Mapping[str, Json], place: str) -> Iterator[Said]:
    """What an item says, whose place in the body is `place`."""
    kind = text(item.get("type")) or "message"
    match kind:
        case "message":
            yield from content(item.get("content"), f"{place}/content")
        case "reasoning":
            yield from _thoughts(item, place)
        case _ if kind in CALLS:
            yield from _call(kind, item, place)
        case "mcp_approval_request" | "compaction" | "item_reference":
            yield Said("opaque", place, id=text(item.get("id")), name=kind)
        case _ if kind in RESULTS:  # in a reply: of tools that the provider ran
            yield Said("hosted_result", place, id=text(item.get("call_id")), name=kind)
        case _ if kind.endswith("_call") or kind == "mcp_list_tools":
            name = text(item.get("name")) or kind.removesuffix("_call")
            yield Said("hosted_call", place, id=text(item.get("id")), name=name)
            for field in ("output", "outputs", "results", "result", "tools"):
                if item.get(field):
                    yield Said("hosted_result", f"{place}/{field}", id=text(item.get("id")), name=kind)
        case _:
            yield Said("opaque", place, id=text(item.get("id")), name=kind)


def content(value: Json, place: str) -> Iterator[Said]:
    """The parts of a message."""
    if isinstance(value, str):
        yield Said("text", place, value)
    for n, part in mappings(value):
        kind = text(part.get("type")) or ""
        if kind in _TEXTS and is_misshapen(part.get("text")):
            yield Said("opaque", f"{place}/{n}/text", name=misshapen(part["text"]))
        elif kind in _TEXTS:
            words = text(part.get("text")) or ""
            yield Said("reasoning" if kind == "reasoning_text" else "text", f"{place}/{n}/text", words)
        elif kind == "refusal":
            yield Said("refusal", f"{place}/{n}/refusal", text(part.get("refusal")) or "")
        else:
            yield Said("opaque", f"{place}/{n}", name=kind)


def _thoughts(item: Mapping[str, Json], place: str) -> Iterator[Said]:
    """A summary for people, the thoughts themselves (open models), or neither: then they are known to exist, no more."""
    told = False
    for field in ("summary", "content"):
        for n, part in mappings(item.get(field)):
            if words := text(part.get("text")):
                told = True
                yield Said("reasoning", f"{place}/{field}/{n}/text", words)
    if not told:
        yield Said("reasoning", place, id=text(item.get("id")), form="opaque")


def _call(kind: str, item: Mapping[str, Json], place: str) -> Iterator[Said]:
    field, name = CALLS[kind]
    id_ = text(item.get("call_id"))
    named = text(item.get("name")) or name or None
    if is_hosted(item):
        yield Said("hosted_call", place, id=id_ or text(item.get("id")), name=named)
        return
    given = item.get(field)
    if kind == "computer_call" and given is None:
        given = item.get("actions")
    form = "custom" if kind == "custom_tool_call" else "function"
    if isinstance(given, str):
        yield Said("tool_call", place, given, id_, named, None, form)
    else:
        yield Said("tool_call", place, "", id_, named, given, form)


def is_hosted(item: Mapping[str, Json]) -> bool:
    """Return True if the provider runs a call of a kind that a client can be asked to run."""
    match item.get("type"):
        case "tool_search_call":
            return item.get("execution") != "client"
        case "shell_call":
            return (text(mapping(item.get("environment")).get("type")) or "").startswith("container")
        case _:
            return False


def shown(output: Json) -> str:
    """The text of a result: a string, the text parts of a list, or else the JSON itself."""
    if isinstance(output, str):
        return output
    if output is None:
        return ""
    parts = mappings(output)
    texts = [words for _, part in parts if (words := text(part.get("text"))) is not None]
    if parts and (texts or all(isinstance(part.get("type"), str) for _, part in parts)):
        return "\n".join(texts)
    return orjson.dumps(output).decode()
