"""The calls of the dots models: Claude's invokes, or a JSON object, in a wrapper of their own.

    <dots_function_call>
    <invoke name="lookup">
    <parameter name="city">Graz</parameter>
    </invoke>
    </dots_function_call>

    <dots_function_call>
    {"name": "lookup", "arguments": {"city": "Graz"}}
    </dots_function_call>

Values in tags are text, typed by the declared schema. No ids. Invokes without the wrapper are Claude's to any reader.
"""

from __future__ import annotations

import re

from wirelint.dialects import invoke, jsoncalls
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import Run, maybe
from wirelint.dialects.reader import Match, Reader

_DIALECT = "dots_function_call"
_GAP = Run(r"\s", 0, 3)
_WRAPPER = re.compile(r"<\s{0,3}dots_function_calls?\s{0,3}>\s{0,8}")
_WRAPPER_END = re.compile(r"<\s{0,3}/\s{0,3}dots_function_calls?\s{0,3}>")
_FENCE = re.compile(r"`{3,}[a-zA-Z]{0,8}\s{0,8}")
_BEGINNINGS = ("", "\n", "<", "{", "[")
_GRAMMAR = invoke.Grammar(
    dialect=_DIALECT,
    prefixed=_DIALECT,
    parameters=("parameter", "param", "argument", "arg"),
    other_bodies=True,
    bare=False,
    spelling=invoke.spell(
        wrapper="dots_function_calls?",
        wrapper_end="dots_function_calls?",
        wrappers=("dots_function_call",),
    ),
    tier="sentinel",
)


def _read(reader: Reader, position: int) -> Reading:
    wrapper = reader.match(_WRAPPER, position)
    if wrapper is None:
        return None
    fence = reader.match(_FENCE, wrapper.end())
    reading = _read_objects(reader, wrapper, wrapper.end() if fence is None else fence.end())
    if reading is None:
        reading = invoke.read(reader, position, _GRAMMAR)
    if reading is not None:
        return reading
    # The tag is nobody else's: what cannot be read in it is a call all the same, unless a sentence goes on after it.
    end = position + len(wrapper[0].rstrip())
    return Found(_DIALECT, position, end, (), "sentinel", True) if reader.char(end) in _BEGINNINGS else None


def _read_objects(reader: Reader, wrapper: Match, at: int) -> Reading:
    found = jsoncalls.read_calls(reader, at, _WRAPPER_END, (_WRAPPER,))
    if found is None:
        return None
    closing = jsoncalls.close(reader, found.end, _WRAPPER_END)
    if reader.stand_ins(found.calls):
        return Skip(closing.end)
    proper = found.canonical and not found.array and found.values == 1 and at == wrapper.end()
    odd = not closing.closed or closing.odd or not proper
    return Found(_DIALECT, wrapper.start(), closing.end, tuple(found.calls), "sentinel", odd)


FAMILY = Family(
    "dots",
    rank=2,
    openers=(("<", _GAP, "dots_function_call", maybe("s"), _GAP, ">"),),
    read=_read,
    speakers={_DIALECT: frozenset({"dots"})},
    closers={"dots_function_calls?": _DIALECT},
    lone=frozenset({"dots_function_call"}),
)
