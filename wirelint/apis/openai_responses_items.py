"""Items of OpenAI Responses, which a reply's `output` and a request's `input` share: their parts, calls and results.

{"type":"function_call","id":"fc_1","call_id":"call_1","name":"look","arguments":"{}"}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hi"}]}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from wirelint.apis.reading import compact, is_misshapen, mapping, mappings, misshapen, text
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
"""Calls that the client may have to run: the member with their arguments, and their name if the item has none."""
BUILT_IN = frozenset(name for _, name in CALLS.values() if name)
"""Names of calls whose items have a type of their own and no name, so that they can be neither renamed nor removed."""
RESULTS = frozenset({*(f"{kind}_output" for kind in CALLS if kind != "tool_search_call"), "tool_search_output"})
STREAMED_CALLS = ("function_call", "custom_tool_call")
"""Calls whose arguments are text, and arrive as deltas in a stream."""


class ItemPart(NamedTuple):
    """A part of an item: the start of a block, and its whole text."""

    kind: Kind
    pointer: str
    text: str = ""
    id: str | None = None
    name: str | None = None
    input: Json = None
    form: str = "function"


def item_parts(item: Mapping[str, Json], place: str) -> Iterator[ItemPart]:
    """Yield the parts of an item. `place`: its pointer in the body."""
    kind = text(item.get("type")) or "message"
    match kind:
        case "message":
            yield from _content(item.get("content"), f"{place}/content")
        case "reasoning":
            yield from _reasoning(item, place)
        case _ if kind in CALLS:
            yield _call(kind, item, place)
        case "mcp_approval_request" | "compaction" | "item_reference":
            yield ItemPart("opaque", place, id=text(item.get("id")), name=kind)
        case _ if kind in RESULTS:  # in a reply: of a tool that the provider ran
            yield ItemPart("hosted_result", place, id=text(item.get("call_id")), name=kind)
        case _ if kind.endswith("_call") or kind == "mcp_list_tools":
            name = text(item.get("name")) or kind.removesuffix("_call")
            yield ItemPart("hosted_call", place, id=text(item.get("id")), name=name)
            for member in ("output", "outputs", "results", "result", "tools"):
                if item.get(member):
                    yield ItemPart("hosted_result", f"{place}/{member}", id=text(item.get("id")), name=kind)
        case _:
            yield ItemPart("opaque", place, id=text(item.get("id")), name=kind)


def _content(value: Json, place: str) -> Iterator[ItemPart]:
    if isinstance(value, str):
        yield ItemPart("text", place, value)
    for n, part in mappings(value):
        kind = text(part.get("type")) or ""
        if kind in _TEXTS and is_misshapen(part.get("text")):
            yield ItemPart("opaque", f"{place}/{n}/text", name=misshapen(part["text"]))
        elif kind in _TEXTS:
            words = text(part.get("text")) or ""
            yield ItemPart("reasoning" if kind == "reasoning_text" else "text", f"{place}/{n}/text", words)
        elif kind == "refusal":
            yield ItemPart("refusal", f"{place}/{n}/refusal", text(part.get("refusal")) or "")
        else:
            yield ItemPart("opaque", f"{place}/{n}", name=kind)


def _reasoning(item: Mapping[str, Json], place: str) -> Iterator[ItemPart]:
    """Yield summaries and reasoning text (open models); an opaque part if the item has neither."""
    found = [
        ItemPart("reasoning", f"{place}/{member}/{n}/text", words)
        for member in ("summary", "content")
        for n, part in mappings(item.get(member))
        if (words := text(part.get("text")))
    ]
    yield from found or [ItemPart("reasoning", place, id=text(item.get("id")), form="opaque")]


def _call(kind: str, item: Mapping[str, Json], place: str) -> ItemPart:
    member, name = CALLS[kind]
    id_, named = text(item.get("call_id")), text(item.get("name")) or name or None
    if _is_hosted(item):
        return ItemPart("hosted_call", place, id=id_ or text(item.get("id")), name=named)
    given = item.get(member)
    if kind == "computer_call" and given is None:
        given = item.get("actions")
    form = "custom" if kind == "custom_tool_call" else "function"
    if isinstance(given, str):
        return ItemPart("tool_call", place, given, id_, named, None, form)
    return ItemPart("tool_call", place, "", id_, named, given, form)


def _is_hosted(item: Mapping[str, Json]) -> bool:
    """Return True if the provider runs this call, although clients may have to run its type."""
    match item.get("type"):
        case "tool_search_call":
            return item.get("execution") != "client"
        case "shell_call":
            return (text(mapping(item.get("environment")).get("type")) or "").startswith("container")
        case _:
            return False


def result_text(output: Json) -> str:
    """Return the text of a result: a string, the text parts of a list, or else the JSON itself."""
    if isinstance(output, str):
        return output
    parts = mappings(output)
    texts = [words for _, part in parts if (words := text(part.get("text"))) is not None]
    if parts and (texts or all(isinstance(part.get("type"), str) for _, part in parts)):
        return "\n".join(texts)
    return compact(output)
