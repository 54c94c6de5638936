"""Olmo 3's Python calls between tags, a line for each.

Lineage: the wrapper of Anthropic's notation, with Python inside.

    <function_calls>lookup(city='Graz')
    ping()</function_calls>

Types come from the literals, Python's or JSON's. No ids. A name and a parenthesis after the opener tell it from the invokes
that the same tag holds elsewhere.
"""

from __future__ import annotations

import re

from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import Run
from wirelint.dialects.pythoncalls import read_calls
from wirelint.dialects.reader import Reader

_DIALECT = "olmo3"
_GAP = Run(r"\s", 0, 3)
_START = re.compile(r"<\s{0,3}function_calls\s{0,3}>")
_END = re.compile(r"<\s{0,3}/\s{0,3}function_calls\s{0,3}>")
_OPENING = re.compile(r"\[\s{0,8}")
_CLOSING = re.compile(r"\s{0,8},?\s{0,8}\]")


def _read(reader: Reader, position: int) -> Reading:
    start = reader.match(_START, position)
    if start is None or position < reader.dead.get(_DIALECT, 0):
        return None
    at = reader.space(start.end())
    opening = reader.match(_OPENING, at)
    read = read_calls(reader, opening.end() if opening is not None else at, _END)
    if not read:
        return None
    calls = tuple(call.native(reader) for call in read)
    end = read[-1].end
    if opening is not None and (closing := reader.match(_CLOSING, end)):
        end = closing.end()
    tag = reader.match(_END, reader.space(end))
    end = tag.end() if tag is not None else end
    # A tag that is not closed is an aside in prose, unless a declared tool is called after it.
    if tag is None and not any(call.name in reader.tools for call in calls):
        reader.dead[_DIALECT] = end
        return None
    if reader.stand_ins(calls):
        return Skip(end)
    canonical = opening is None and tag is not None and " " not in start[0] + tag[0]
    malformed = not canonical or any(call.malformed for call in read)
    return Found(_DIALECT, position, end, calls, "generic", malformed)


FAMILY = Family(
    "olmo",
    rank=2,
    openers=(("<", _GAP, "function_calls", _GAP, ">"),),
    read=_read,
    speakers={_DIALECT: frozenset({"olmo"})},
)
