"""Granite's calls, and Glaive's: JSON behind an opener that nothing closes.

Lineage: Glaive's function-calling data set (2023; FireFunction v1 and many small models were trained on it) quotes the
arguments, `'{…}'`, as a string that is no JSON; granite-20b-functioncalling (IBM, 2024) has an object in their place.
Granite 3.0 writes an array behind a special token, 3.1 to 3.3 behind the same word as plain text. Granite 4 is Hermes.

    <functioncall> {"name": "lookup", "arguments": '{"city": "Graz"}'}
    <function_call> {"name": "lookup", "arguments": {"city": "Graz"}}
    <|tool_call|>[{"name": "lookup", "arguments": {"city": "Graz"}}]
    <tool_call>[{"name": "lookup", "arguments": {"city": "Graz"}}]

Types come from the JSON. No ids. A block ends with its JSON; with a closer after it the bytes are Hermes' or Phi's.
"""

from __future__ import annotations

import re
from dataclasses import replace

from wirelint.dialects import marked_json
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.jsoncalls import read_calls, read_quoted
from wirelint.dialects.marked_json import Grammar, compiled, token
from wirelint.dialects.openers import Opener, Run, either
from wirelint.dialects.reader import Match, Reader

_ARRAY, _CALL, _GLAIVE = "granite3_array", "granite_20b_fc", "glaive_functioncall"
_GAP = Run(r"\s", 0, 3)
_BARRED: Opener = token("tool", "call")
_PLAIN: Opener = ("<", _GAP, "tool_call", _GAP, ">")

_TOKEN = Grammar(
    dialect=_ARRAY,
    opener=re.compile(rf"{compiled(_BARRED).pattern}(?=\s{{0,4}}\[)"),
    canonical=frozenset({"<|tool_call|>"}),
    on_sight=True,
)
_TAG = replace(
    _TOKEN,
    opener=re.compile(rf"{compiled(_PLAIN).pattern}(?=\s{{0,4}}\[)"),
    canonical=frozenset({"<tool_call>"}),
    tier="generic",
    on_sight=False,
)
_OPENER = re.compile(r"<\s{0,3}function(?P<joint>_?)call\s{0,3}>(?=\s{0,4}[{\[])")
_CLOSER = re.compile(r"[\s}\],]*(?:<\s{0,3}/\s{0,3}(?:tool|function)_?calls?\s{0,3}>|<\|?/\|?tool_call\|?>)")
_ANY_CLOSER = re.compile(r"<\s{0,3}/\s{0,3}(?:tool|function)_?calls?\s{0,3}>|<\|?/\|?tool_call\|?>")


def _read(reader: Reader, position: int) -> Reading:
    if opener := reader.match(_OPENER, position):
        return _read_object(reader, opener)
    found = marked_json.read(reader, position, _TOKEN) or marked_json.read(reader, position, _TAG)
    return found if found is None or not _is_closed(reader, found) else None


def _is_closed(reader: Reader, found: Found | Skip) -> bool:
    """Whether the block has a closer, which is not in Granite's grammar."""
    if isinstance(found, Found) and not all(call.complete for call in found.calls):
        return reader.next(_ANY_CLOSER, found.start) is not None
    return reader.match(_CLOSER, found.end) is not None


def _read_object(reader: Reader, opener: Match) -> Reading:
    found = read_quoted(reader, opener.end())
    if found is not None:
        found.canonical &= not opener["joint"]
    else:
        found = read_calls(reader, reader.space(opener.end()), _ANY_CLOSER, (_OPENER,))
    if found is None:
        return None
    closer = reader.match(_CLOSER, found.end)
    if closer is not None and opener["joint"]:
        return None
    end = closer.end() if closer is not None else found.end
    known = any(call.name in reader.tools for call in found.calls)
    if not (known or (found.canonical and all(call.complete for call in found.calls))):
        return None
    if reader.stand_ins(found.calls):
        return Skip(end)
    malformed = closer is not None or found.array or found.values > 1 or not found.canonical
    malformed |= not opener[0].startswith("<f")
    dialect = _CALL if opener["joint"] else _GLAIVE
    return Found(dialect, opener.start(), end, tuple(found.calls), "generic", malformed)


FAMILY = Family(
    "granite",
    rank=2,
    openers=(_BARRED, _PLAIN, ("<", _GAP, either("function_call", "functioncall"), _GAP, ">")),
    read=_read,
    speakers={_ARRAY: frozenset({"granite"}), _CALL: frozenset({"granite"}), _GLAIVE: frozenset({"glaive"})},
)
