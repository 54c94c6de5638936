"""MiniMax's invokes in a wrapper, and the marked tags of MiniMax M3 with nested values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from wirelint.dialects import coercion, invoke, json_calls
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Calls, Reading
from wirelint.model import Json, Tool

_MINIMAX = table(__name__, "minimax")
_M2 = invoke.grammar(_MINIMAX)
_M2_BARE = replace(_M2, spelling=replace(_M2.spelling, wrapper=_MINIMAX.bare_wrapper), tier="generic")
_CALLS = frozenset({"tool_call", "tool_calls"})
_DEEPEST = 32


def read_minimax(reader: Reader, position: int) -> Reading:
    mark = reader.match(_MINIMAX.mark, position)
    if mark is not None:
        return _read_marked(reader, mark)
    reading = _read_objects(reader, position)
    for grammar in (_M2, _M2_BARE):
        if reading is None and reader.match(grammar.spelling.wrapper, position):
            reading = invoke.read(reader, position, grammar)
    return reading


def _read_objects(reader: Reader, position: int) -> Reading:
    """Read objects in place of invokes."""
    wrapper = reader.match(_M2.spelling.wrapper, position)
    if wrapper is None:
        return None
    found = json_calls.read_calls(reader, reader.space(wrapper.end()), _MINIMAX.wrapper_end, (_M2.spelling.wrapper,))
    if found is None:
        return None
    closing = json_calls.close(reader, found.end, _MINIMAX.wrapper_end)
    return reader.block("minimax_m2", position, closing.end, found.calls, "sentinel", malformed=True)


# -- M3 ----------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Element:
    """A tag with its content: text, tags, or both."""

    key: str
    tag: str
    text: str = ""
    children: list[_Element] = field(default_factory=list)


@dataclass(slots=True)
class _Section(Calls):
    """The calls in a run of marked tags."""

    opened: bool = False
    closed: bool = False


_Stack: TypeAlias = list[_Element]


def _read_marked(reader: Reader, mark: Match) -> Reading:
    section = _Section(mark.end())
    here: Match | None = mark
    while here is not None and not section.closed:
        section.end = here.end()
        section.malformed |= bool(here["gap"])
        if here["tag"] in _CALLS:
            section.opened |= not here["close"]
            section.closed = bool(here["close"])
            if not section.closed:
                _read_json(reader, section)
        elif here["tag"] == "invoke" and not here["close"] and here["name"]:
            _read_invoke(reader, here, section)
            if not section.calls[-1].complete:
                break
        else:  # a tag whose call was taken away
            section.malformed = True
        here = reader.match(_MINIMAX.mark, reader.space(section.end))
    malformed = section.malformed or not (section.calls and section.opened and section.closed)
    return reader.block("minimax_m3", mark.start(), section.end, section.calls, "sentinel", malformed)


def _read_json(reader: Reader, section: _Section) -> None:
    """Read objects in place of invokes."""
    found = json_calls.read_calls(reader, reader.space(section.end), _MINIMAX.mark)
    if found is not None:
        section.calls += found.calls
        section.end, section.malformed = found.end, True


def _read_invoke(reader: Reader, opener: Match, section: _Section) -> None:
    written = opener["name"].strip()
    tool = reader.tool(written)
    root = _Element("", "invoke")
    complete = _read_elements(reader, opener.end(), root, section)
    section.calls.append(reader.call(written, _arguments(root, tool), complete=complete))


def _read_elements(reader: Reader, position: int, root: _Element, section: _Section) -> bool:
    """Read all tags up to the end of the call; False if the text ends in it."""
    stack = [root]
    at = position
    while (token := reader.next(_MINIMAX.token, at)) and (mark := reader.match(_MINIMAX.mark, token.start())):
        text = reader.value(at, mark.start())
        section.end = at = mark.end()
        section.malformed |= bool(mark["gap"])
        tag = mark["tag"]
        if tag is None or (not mark["close"] and (tag == "invoke" or tag in _CALLS or len(stack) > _DEEPEST)):
            section.malformed, section.end = True, mark.start()
            return tag is not None and len(stack) == 1
        stack[-1].text += text
        if not mark["close"]:
            section.malformed |= bool(mark["name"])
            _open(stack, mark)
            continue
        if tag in _CALLS and not any(element.tag == tag for element in stack):
            section.malformed, section.end = True, mark.start()
            return True
        section.malformed |= stack[-1].tag != tag
        if _close(stack, tag):
            return True
    section.end, section.malformed = reader.size, True
    if len(stack) == 1 and not reader.value(at, reader.size).strip():
        return bool(root.children)  # the text ends between two arguments
    # Values of tags that are not closed are unknown.
    for above in stack[:-1]:
        above.children.pop()
    return False


def _open(stack: _Stack, mark: Match) -> None:
    element = _Element(mark["name"] or mark["tag"], mark["tag"])
    stack[-1].children.append(element)
    stack.append(element)


def _close(stack: _Stack, tag: str) -> bool:
    """Close the innermost tag of that name and all tags inside; return True if the call itself is closed."""
    if not any(element.tag == tag for element in stack):
        return False
    while stack and stack.pop().tag != tag:
        pass
    return not stack


def _arguments(root: _Element, tool: Tool | None) -> dict[str, Json]:
    schema = tool.schema if tool is not None else None
    value = _object(root, schema, schema)
    return coercion.unwrap(value, coercion.properties_of(schema))


def _value(element: _Element, declared: Json, schema: Json) -> Json:
    """Return an element as JSON, typed by its parameter's schema. `schema`: the root that references point into."""
    declared = _resolved(declared, schema)
    types = coercion.types_of(declared, schema)
    if not element.children:
        if not element.text.strip() and "string" not in types and types & {"array", "object"}:
            return [] if "array" in types else {}
        return coercion.coerce(element.text, declared, schema)
    only_items = all(child.key == "item" for child in element.children)
    if "array" in types or (only_items and "object" not in types):
        items = declared.get("items") if isinstance(declared, dict) else None
        return [_value(child, items, schema) for child in element.children]
    return _object(element, declared, schema)


def _object(element: _Element, declared: Json, schema: Json) -> dict[str, Json]:
    properties = coercion.properties_of(declared)
    found: dict[str, Json] = {}
    repeated: set[str] = set()
    for child in element.children:
        value = _value(child, properties.get(child.key), schema)
        before = found.get(child.key)
        if child.key in repeated and isinstance(before, list):
            before.append(value)
        elif child.key in found:
            repeated.add(child.key)
            found[child.key] = [before, value]
        else:
            found[child.key] = value
    if element.text.strip() and element.tag != "invoke":
        found["$text"] = element.text.strip()
    return found


def _resolved(declared: Json, schema: Json) -> Json:
    """Return the schema that a reference points to."""
    for _ in range(4):
        reference = declared.get("$ref") if isinstance(declared, dict) else None
        if not isinstance(reference, str):
            break
        declared = coercion.resolve(reference, schema)
    return declared
