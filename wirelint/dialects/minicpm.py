"""MiniCPM's functions: names and parameters as attributes of short tags.

Lineage: MiniCPM 4 (its third tool format) → MiniCPM 5. The opener is also one that Qwen3-Coder's notation is damaged to;
`<param name=` tells them apart.

    <function name="lookup"><param name="city">Graz</param></function>

Values are text, typed by the declared schema; those of several lines may stand in `<![CDATA[…]]>`. No ids, no wrapper;
calls follow one another. In the wild: `<functionname=`, `<paramname=`, closers missing.
"""

from __future__ import annotations

from wirelint.dialects import invoke
from wirelint.dialects.family import Family, Found, Reading
from wirelint.dialects.openers import Opener, Run, either
from wirelint.dialects.reader import Reader

_DIALECT = "minicpm5_xml"
_GAP = Run(r"\s", 0, 3)
_CALL: Opener = ("<", _GAP, "function", Run(r"\s", 0, 4), "name", _GAP, "=")
_GRAMMAR = invoke.Grammar(
    dialect=_DIALECT,
    prefixed=_DIALECT,
    parameters=("param",),
    other_bodies=True,
    bare=True,
    spelling=invoke.spell(
        word="function",
        any_word="function",
        parameters=("param",),
        wrapper="(?:tool|function)_calls?",
        wrapper_end="(?:tool|function)_calls?",
        cdata=True,
    ),
    empty_tags=True,
)


def _read(reader: Reader, position: int) -> Reading:
    reading = invoke.read(reader, position, _GRAMMAR)
    if not isinstance(reading, Found) or any(call.name in reader.tools for call in reading.calls):
        return reading
    # Descriptions of interfaces have such elements too, indented or among others.
    line_start = position == 0 or reader.value(position - 1, position) == "\n"
    return reading if line_start else None


FAMILY = Family(
    "minicpm",
    rank=2,
    openers=(_CALL, ("<", either("tool_calls", "tool_call", "function_calls"), ">")),
    read=_read,
    speakers={_DIALECT: frozenset({"minicpm"})},
    closers={"param": _DIALECT},
)
