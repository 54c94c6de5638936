"""DSML, the markup of DeepSeek's later models: invokes whose every tag carries a marker between full-width bars.

Lineage: Claude's invokes → DeepSeek V3.2 (`function_calls`) → V4 (`tool_calls`) → V4.1 (`calls`, and a blank before every
tag name). GigaChat 3.5 writes V4's grammar with a marker of its own, `GCML`.

    <｜DSML｜tool_calls>
    <｜DSML｜invoke name="lookup">
    <｜DSML｜parameter name="city" string="true">Graz</｜DSML｜parameter>
    <｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜tool_calls>

Types: text where `string="true"`, else JSON. Instead of parameters an invoke may hold a JSON object, or nothing, then also
as one self-closing tag. No ids. In the wild: other bars (`|`, `‖`), doubled, with blanks or missing on one side; blocks
called `toolcalls`, `tool`, `tool_use` or by the name of another generation; no block at all; no `string`; all arguments in
one parameter `arguments` or `input`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from wirelint.dialects import invoke, marked_json
from wirelint.dialects.family import Family, Found, Reading
from wirelint.dialects.openers import Opener, Run, either, full_pattern
from wirelint.dialects.reader import Match, Reader

_V3_2, _V4, _V4_1, _GIGACHAT = "deepseek_v3_2_dsml", "deepseek_v4_dsml", "deepseek_v4_1_dsml", "gigachat35_gcml"
_GAP = Run(r"\s", 0, 2)
_BLOCKS = (
    "function_calls",
    "function_call",
    "tool_calls",
    "tool_call",
    "toolcalls",
    "toolcall",
    "tool_use",
    "tool",
    "calls",
)
_WORDS = (*_BLOCKS, "invoke", "parameter")
_NAMES = either("DSML", "GCML")
_MARKER = either((Run("|", 1, 2), _GAP, _NAMES, _GAP, Run("|", 0, 2)), (_NAMES, _GAP, Run("|", 1, 2)))
_TAG: Opener = ("<", _GAP, Run("/", 0, 1), _GAP, _MARKER, _GAP, either(*_WORDS))

_BLOCK = f"(?:{'|'.join(_BLOCKS)})"
_LAX = r"\|{0,2}\s{0,2}(?:DSML|GCML)\s{0,2}\|{0,2}\s{0,2}"
_UNMARKED = re.compile(r"<(?:tool|function)_calls>\s{0,8}(?=<)")
_FIRST = re.compile(rf"<\s{{0,2}}(?P<end>/?)\s{{0,2}}{full_pattern(((_MARKER, _GAP),))}(?P<word>{'|'.join(_WORDS)})")
_MARKS = re.compile(
    r"(<\s{0,2}/?\s{0,2}[|｜‖]{0,2}\s{0,2}(?:DSML|GCML)\s{0,2}[|｜‖]{0,2})(?P<gap>\s{0,2})(?P<word>[a-z_]+)"
)
_PROPER = frozenset({"<｜DSML｜", "</｜DSML｜", "<｜GCML｜", "</｜GCML｜"})
# A tag that makes no call, and the closers after it.
_REMAINS = re.compile(
    rf"<\s{{0,2}}/?\s{{0,2}}{_LAX}[a-z_]{{1,16}}[^<>]{{0,256}}(?:>|\Z)"
    rf"(?:\s{{0,8}}<\s{{0,2}}/\s{{0,2}}{_LAX}[a-z_]{{1,16}}\s{{0,4}}(?:>|\Z))*(?:\s{{0,8}}<[^<>]{{0,256}}\Z)?"
)
_MARKED = invoke.Grammar(
    dialect=_V4,
    prefixed=_V4,
    parameters=("parameter", "param", "argument", "arg"),
    other_bodies=True,
    bare=False,
    spelling=invoke.spell(
        prefix=_LAX,
        closing_prefix=f"(?:{_LAX})?",
        wrapper=f"(?:{_LAX})?{_BLOCK}",
        wrapper_end=f"(?:{_LAX})?{_BLOCK}",
        wrappers=("|DSML|function_calls", "|DSML|tool_calls", "|DSML| calls", "|GCML|tool_calls"),
        json_body=True,
    ),
    empty_tags=True,
    tier="sentinel",
)
# Only the block is marked.
_PLAIN = replace(
    _MARKED, spelling=invoke.spell(wrapper=_LAX + _BLOCK, wrapper_end=f"(?:{_LAX})?{_BLOCK}", json_body=True)
)
_OBJECTS = marked_json.Grammar(
    dialect=_V4,
    opener=re.compile(rf"<\s{{0,2}}{_LAX}{_BLOCK}\s{{0,2}}>"),
    closer=re.compile(rf"<\s{{0,2}}/\s{{0,2}}(?:{_LAX})?{_BLOCK}\s{{0,2}}>"),
    canonical=frozenset(),
)


def _read(reader: Reader, position: int) -> Reading:
    unmarked = reader.match(_UNMARKED, position)
    first = reader.match(_FIRST, position if unmarked is None else unmarked.end())
    if first is None:
        return None
    reading = None if first["end"] else _read_block(reader, position)
    if reading is None and (remains := reader.match(_REMAINS, position)):
        reading = Found(_V4, position, remains.end(), (), "sentinel", malformed=True)
    if not isinstance(reading, Found):
        return reading
    marks = list(_MARKS.finditer(reader.view.text, reading.start, reading.end))
    odd = len({mark["gap"] for mark in marks}) > 1 or any(mark[1] not in _PROPER for mark in marks)
    return reading._replace(dialect=_dialect(marks, odd=odd), malformed=reading.malformed or odd)


def _read_block(reader: Reader, position: int) -> Reading:
    """Calls as the grammar has them, without their markers, or as JSON."""
    return (
        invoke.read(reader, position, _MARKED)
        or invoke.read(reader, position, _PLAIN)
        or marked_json.read(reader, position, _OBJECTS)
    )


def _dialect(marks: Sequence[Match], *, odd: bool) -> str:
    """The generation that the name of the block tells of, or the blank before a name where there is no block."""
    if "GCML" in marks[0][1]:
        return _GIGACHAT
    words = {marks[0]["word"], marks[-1]["word"]}
    if "function_calls" in words:
        return _V3_2
    block = words & set(_BLOCKS)
    return _V4_1 if "calls" in words or (not block and marks[0]["gap"] and not odd) else _V4


_DEEPSEEK = frozenset({"deepseek"})

FAMILY = Family(
    "dsml",
    rank=1,
    openers=(_TAG, ("<", either("tool_calls", "function_calls"), ">")),
    read=_read,
    speakers={_V3_2: _DEEPSEEK, _V4: _DEEPSEEK, _V4_1: _DEEPSEEK, _GIGACHAT: frozenset({"gigachat"})},
)
