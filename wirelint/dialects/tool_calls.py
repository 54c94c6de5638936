"""JSON in a `<tool_calls>` tag: an array, or an object a line.

Lineage: Jamba 1.5 (AI21) → Hunyuan A13B and Apriel 1.5, all with an array. MiniMax M1 and Text-01 have the same tag around
an object per line; MiniMax M2 writes tags of its own (another family).

    <tool_calls>[{"name": "lookup", "arguments": {"city": "Graz"}}]</tool_calls>

    <tool_calls>
    {"name": "lookup", "arguments": {"city": "Graz"}}
    </tool_calls>

Types come from the JSON. No ids. In the wild: brackets that are too many or missing, a fence inside, no closing tag, every
object in a `<tool_call>` of its own.
"""

from __future__ import annotations

import re

from wirelint.dialects import jsoncalls
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import Run, either, maybe
from wirelint.dialects.reader import Reader
from wirelint.dialects.values import NativeCall

_ARRAY, _LINES = "tool_calls_array", "minimax_m1"
_WORD = r"(?:tools?_?calls|tools_?call)"
_OPENER = re.compile(
    rf"<\s{{0,3}}(?P<tag>{_WORD})\s{{0,3}}>\s{{0,16}}(?P<fence>`{{3,}}[a-zA-Z]{{0,8}}\s{{0,16}})?(?=[\[{{])"
)
_CLOSER = re.compile(rf"<\s{{0,3}}/\s{{0,3}}(?:{_WORD}|tool_?call)\s{{0,3}}>")
_WRAPPER = re.compile(rf"<\s{{0,3}}{_WORD}\s{{0,3}}>")
_INNER = re.compile(r"<\s{0,3}tool_call\s{0,3}>\s{0,16}(?=\{)")
_INNER_CLOSER = re.compile(r"<\s{0,3}/\s{0,3}tool_call\s{0,3}>")
_CUT_CLOSER = re.compile(r"<\s{0,3}/\s{0,3}[a-z_]{0,12}\Z|<\Z")


def _read(reader: Reader, position: int) -> Reading:
    opener = reader.match(_OPENER, position)
    if opener is None:
        return _read_tagged(reader, position)
    found = jsoncalls.read_calls(reader, opener.end(), _CLOSER, (_OPENER,))
    if found is None:
        return None
    closing = jsoncalls.close(reader, found.end, _CLOSER)
    if reader.stand_ins(found.calls):
        return Skip(closing.end)
    known = any(call.name in reader.tools for call in found.calls)
    if not known and not (closing.closed and all(call.complete for call in found.calls)):
        return None
    end = closing.end
    if not closing.closed and reader.over and reader.match(_CUT_CLOSER, reader.space(end)):
        end = reader.size
    proper = found.canonical and opener["tag"] == "tool_calls" and not opener["fence"]
    proper &= found.values == 1 or not found.array
    whole = closing.closer is not None and not closing.odd and closing.closer[0] == "</tool_calls>"
    dialect = _ARRAY if found.array else _LINES
    return Found(dialect, position, end, tuple(found.calls), "generic", not (proper and whole))


def _read_tagged(reader: Reader, position: int) -> Reading:
    """Objects in tags of their own."""
    wrapper = reader.match(_WRAPPER, position)
    calls: list[NativeCall] = []
    end = at = wrapper.end() if wrapper is not None else position
    while wrapper is not None and (inner := reader.match(_INNER, reader.space(at))):
        found = jsoncalls.read_calls(reader, inner.end(), _CLOSER, (_INNER,))
        if found is None:
            break
        calls += found.calls
        end = found.end
        closing = jsoncalls.close(reader, end, _INNER_CLOSER)
        if not closing.closed:
            break
        end = at = closing.end
    if not calls or not any(call.name in reader.tools for call in calls):
        return None
    if closer := reader.match(_CLOSER, reader.space(end)):
        end = closer.end()
    return Found(_ARRAY, position, end, tuple(calls), "generic", malformed=True)


_GAP = Run(r"\s", 0, 3)
_TAG = either(("tool", maybe("s"), maybe("_"), "calls"), ("tools", maybe("_"), "call"))

FAMILY = Family(
    "tool_calls",
    rank=2,
    openers=(("<", _GAP, _TAG, _GAP, ">"),),
    read=_read,
    speakers={_ARRAY: frozenset({"jamba", "hunyuan", "apriel"}), _LINES: frozenset({"minimax"})},
    closers={"tool_calls": None},
)
