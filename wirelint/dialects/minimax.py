"""MiniMax's tags: invokes in a wrapper of their own, then tags marked by a token, with nested values.

Lineage: M1 wrote JSON in `<tool_calls>` (another family) → M2, 2.1, 2.5 and 2.7 took Claude's invokes into a namespace →
M3 puts a token before every tag of its own, so that other angle brackets are data, and tags parameters by their names.

    <minimax:tool_call>
    <invoke name="lookup">
    <parameter name="city">Graz</parameter>
    </invoke>
    </minimax:tool_call>

    ]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="lookup">]<]minimax[>[<city>Graz]<]minimax[>[</city>]<]minimax[>[</invoke>
    ]<]minimax[>[</tool_call>

Values are text as it stands, typed by the declared schema. In M3 objects are nested tags and arrays tags called `item`;
where no schema speaks, tags that are repeated make a list, and text beside tags is kept as `$text`. No ids. In the wild:
the wrapper's brackets gone, names in any quotes or none, tails without a head.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from wirelint.dialects import coercion, invoke, jsoncalls
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import BLANKS, LINE_START, SPACES, Opener, Run, maybe
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall
from wirelint.model import Json, Tool

_M2, _M3 = "minimax_m2", "minimax_m3"
_WRAPPER_END = re.compile(r"<\s{0,3}/\s{0,3}(?:minimax:)?tool_?calls?\s{0,3}>")
_SPELLING = invoke.spell(
    prefix="(?:minimax:|mm:|antml:)?",
    wrapper="minimax:tool_?calls?",
    wrapper_end="(?:minimax:)?tool_?calls?",
    wrappers=("minimax:tool_call",),
)
_BARE_WRAPPER = re.compile(r"(?m:^)[ \t]{0,8}(?P<name>minimax:tool_?calls?)>?\s{0,8}(?=<)")
_GRAMMAR = invoke.Grammar(
    dialect=_M2,
    prefixed=_M2,
    parameters=("parameter", "param", "argument", "arg"),
    other_bodies=True,
    bare=False,
    spelling=_SPELLING,
    tier="sentinel",
)
_BARE = replace(_GRAMMAR, spelling=replace(_SPELLING, wrapper=_BARE_WRAPPER), tier="generic")

_TOKEN = re.compile(r"\]<\]minimax\[>\[")
_MARK = re.compile(
    rf"{_TOKEN.pattern}(?P<gap>\s{{0,8}})(?:<(?P<close>/?)\s{{0,3}}(?P<tag>[\w.:$-]{{1,128}})"
    r"(?:\s{1,4}name\s?=\s?(?P<quote>[\"']?)(?P<name>[^\"'<>\n]{1,128})(?P=quote))?\s{0,3}>)?"
)
_CALLS = frozenset({"tool_call", "tool_calls"})
_DEEPEST = 32


def _read(reader: Reader, position: int) -> Reading:
    mark = reader.match(_MARK, position)
    if mark is not None:
        return _read_marked(reader, mark)
    reading = _read_objects(reader, position)
    for grammar in (_GRAMMAR, _BARE):
        if reading is None and reader.match(grammar.spelling.wrapper, position):
            reading = invoke.read(reader, position, grammar)
    return reading


def _read_objects(reader: Reader, position: int) -> Reading:
    """Objects where invokes belong."""
    wrapper = reader.match(_SPELLING.wrapper, position)
    if wrapper is None:
        return None
    found = jsoncalls.read_calls(reader, reader.space(wrapper.end()), _WRAPPER_END, (_SPELLING.wrapper,))
    if found is None:
        return None
    closing = jsoncalls.close(reader, found.end, _WRAPPER_END)
    if reader.stand_ins(found.calls):
        return Skip(closing.end)
    return Found(_M2, position, closing.end, tuple(found.calls), "sentinel", malformed=True)


# -- M3 ----------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Element:
    """A tag and what stands in it: text, tags, or both."""

    key: str
    tag: str
    text: str = ""
    children: list[_Element] = field(default_factory=list)


@dataclass(slots=True)
class _Section:
    """What has been read of a run of marked tags."""

    end: int
    calls: list[NativeCall] = field(default_factory=list)
    malformed: bool = False
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
        here = reader.match(_MARK, reader.space(section.end))
    if reader.stand_ins(section.calls):
        return Skip(section.end)
    malformed = section.malformed or not (section.calls and section.opened and section.closed)
    return Found(_M3, mark.start(), section.end, tuple(section.calls), "sentinel", malformed)


def _read_json(reader: Reader, section: _Section) -> None:
    """Objects where invokes belong."""
    found = jsoncalls.read_calls(reader, reader.space(section.end), _MARK)
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
    """All tags up to the end of the call; False when the text ends in it."""
    stack = [root]
    at = position
    while (token := reader.next(_TOKEN, at)) and (mark := reader.match(_MARK, token.start())):
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
    # What was not closed is not known.
    for above in stack[:-1]:
        above.children.pop()
    return False


def _open(stack: _Stack, mark: Match) -> None:
    element = _Element(mark["name"] or mark["tag"], mark["tag"])
    stack[-1].children.append(element)
    stack.append(element)


def _close(stack: _Stack, tag: str) -> bool:
    """Closes the innermost tag of that name, and with it what is open inside; True when the call itself is closed."""
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
    """An element as JSON, typed by what its parameter declares. `schema`: what references point into."""
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
    """What a reference stands for."""
    for _ in range(4):
        reference = declared.get("$ref") if isinstance(declared, dict) else None
        if not isinstance(reference, str):
            break
        declared = coercion.resolve(reference, schema)
    return declared


_GAP = Run(r"\s", 0, 3)
_TAG: Opener = ("minimax:tool", maybe("_"), "call", maybe("s"))

FAMILY = Family(
    "minimax",
    rank=1,
    openers=(
        ("<", _GAP, *_TAG, _GAP, ">"),
        (LINE_START, BLANKS, *_TAG, maybe(">"), SPACES, "<"),
        ("]<]minimax[>[",),
    ),
    read=_read,
    speakers={_M2: frozenset({"minimax"}), _M3: frozenset({"minimax"})},
    closers={"minimax:tool_call": _M2},
    lone=frozenset({"minimax:tool_call"}),
)
