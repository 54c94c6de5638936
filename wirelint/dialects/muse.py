"""ATEM, the markup of the Muse models: invokes with a prefix, in a message addressed to the tool.

Lineage: Claude's invokes, with the prefix `atem:`, inside message headers after the manner of Harmony.

     to=lookup<|message|><atem:function_calls>
    <atem:invoke name="lookup">
    <atem:parameter name="city">Graz</atem:parameter>
    </atem:invoke>
    </atem:function_calls><|eom|>

Values are text; the declared schema types them, else JSON that is not a string. No ids. `<|eom|>` or `<|eot|>` ends the
message. In the wild: the namespace of a name doubled (`calendar.calendar`), header tokens or the wrapper stripped.
"""

from __future__ import annotations

import re
from dataclasses import replace

from wirelint.dialects import invoke
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import WORD_START, Opener, Run, either, maybe
from wirelint.dialects.reader import Reader

_DIALECT = "muse_atem"
_GAP = Run(r"\s", 0, 3)
_TAG: Opener = ("<", _GAP, "atem:", either("function_call", "invoke"))

_HEADER = re.compile(
    r"(?:<\|start\|>assistant\s{0,2})?to=[\w.:/-]{1,128}\s{0,2}(?P<message><\|message\|>)?\s{0,8}(?=<\s{0,3}atem:)"
)
_END = re.compile(r"\s{0,4}<\|(?:eom|eot)\|>")
_OPENED = re.compile(r"<\s{0,3}atem:function_calls?\s{0,3}>")
_GRAMMAR = invoke.Grammar(
    dialect=_DIALECT,
    prefixed=_DIALECT,
    parameters=("parameter", "param", "argument", "arg"),
    other_bodies=True,
    bare=False,
    spelling=invoke.spell(
        prefix="atem:",
        closing_prefix="(?:atem:)?",
        wrapper="atem:function_calls?",
        wrapper_end="(?:atem:)?function_calls?",
        wrappers=("atem:function_calls",),
    ),
    tier="sentinel",
)
# Inside of its message or wrapper a call counts without the prefix too.
_PLAIN = replace(
    _GRAMMAR,
    spelling=invoke.spell(wrapper="(?:atem:)?function_calls?", wrapper_end="(?:atem:)?function_calls?"),
)


def _read(reader: Reader, position: int) -> Reading:
    header = reader.match(_HEADER, position)
    at = position if header is None else header.end()
    opened = reader.match(_OPENED, at)
    reading = invoke.read(reader, at, _GRAMMAR)
    if reading is None and opened is not None:
        reading = invoke.read(reader, at, _PLAIN)
    if reading is None:
        if opened is None or reader.char(opened.end()) not in ("", "\n", "<"):
            return None
        reading = Found(_DIALECT, at, opened.end(), (), "sentinel", malformed=True)
    end = reader.match(_END, reading.end)
    reading = reading._replace(end=reading.end if end is None else end.end())
    if isinstance(reading, Skip):
        return reading
    addressed = header is not None and header["message"] is not None
    return reading._replace(start=position, malformed=reading.malformed or not addressed)


FAMILY = Family(
    "muse",
    rank=1,
    openers=(
        _TAG,
        (WORD_START, "to=", Run(r"\w.:/-", 1, 128), Run(r"\s", 0, 2), maybe("<|message|>"), Run(r"\s", 0, 8), *_TAG),
        ("<|start|>assistant", Run(r"\s", 0, 2), "to=", Run(r"\w.:/-", 1, 128), Run(r"\s", 0, 2), "<|message|>",
         Run(r"\s", 0, 8), *_TAG),
    ),
    read=_read,
    speakers={_DIALECT: frozenset({"muse"})},
    closers={r"atem:(?:parameter|invoke|function_calls)": _DIALECT},
    lone=frozenset({"atem:invoke", "atem:function_calls"}),
)  # fmt: skip
