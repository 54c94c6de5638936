"""The grammar of many dialects: a marker, a JSON array of calls, and mostly a closer.

    MARKER [{"name": "lookup", "arguments": {"city": "Graz"}}, …] CLOSER

A dialect of this shape is a row of data (`Grammar`, the table `array` of a family). Without a closer in its grammar, the
array ends the block. One object, several in a row, or a fence around the array are read as departures from the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from wirelint.dialects import coercion, json_calls
from wirelint.dialects.json_calls import KEYS, JsonCalls, Keys
from wirelint.dialects.openers import cut_pattern, parse
from wirelint.dialects.reader import Match, Pattern, Reader
from wirelint.dialects.tables import Table, table
from wirelint.dialects.values import Found, NativeCall, Reading, Skip, Tier

_FENCE = re.compile(r"`{3,}[a-zA-Z]{0,8}\s*")
_FENCE_END = re.compile(r"\s*`{3,}")
_SURPLUS = re.compile(r"(?:\s{0,4}[}\],]){0,8}\s{0,4}[}\]]")
_NOTHING = re.compile(r"\[\s*\]")


@dataclass(frozen=True, slots=True)
class Grammar:
    """One dialect of this shape.

    `canonical`: the openers as the model's template writes them. `closing`: the closer as the template writes it, if
    `closer` matches more. `cut_closer`: matches a closer that the end of the text cuts off. `stop`: ends damaged JSON if
    there is no closer. `keys`: the keys of the tool's name and its arguments. `tier`: a `sentinel` counts on sight, even
    if no call can be read (`on_sight`); of a `generic` opener the calls decide. `closed_only`: without its closer the
    block belongs to another dialect. `idle`: names that mean that no tool is called.
    """

    dialect: str
    opener: Pattern
    stop: Pattern
    canonical: frozenset[str] = frozenset()
    closer: Pattern | None = None
    closing: str | None = None
    cut_closer: Pattern | None = None
    keys: Keys = KEYS
    tier: Tier = "sentinel"
    on_sight: bool = False
    closed_only: bool = False
    idle: frozenset[str] = frozenset()


def grammar(table: Table, row: str = "array") -> Grammar:
    """Return the grammar in a family's table."""
    data: dict[str, Any] = {"stop": "(?&turn_end)", **table.data[row]}
    if "cut_closer" in data:
        data["cut_closer"] = re.compile(cut_pattern([parse(table.source(data["cut_closer"]))]))
    for key in ("opener", "closer", "stop"):
        if key in data:
            data[key] = table.compile(data[key])
    if "keys" in data:
        data["keys"] = Keys(*data["keys"])
    for key in ("canonical", "idle"):
        data[key] = frozenset(data.get(key, ()))
    return Grammar(**data)


def row_reader(table: Table) -> Callable[[Reader, int], Reading]:
    """Return the reader of a family that is a row of data."""
    row = grammar(table)
    return lambda reader, position: read(reader, position, row)


@dataclass(slots=True)
class _Section:
    """What follows an opener, as far as it has been read."""

    end: int
    fenced: bool = False
    closed: bool = False
    cut: bool = False
    odd: bool = False


def read(reader: Reader, position: int, grammar: Grammar) -> Reading:
    """Read the block at an opener."""
    opener = reader.match(grammar.opener, position)
    if opener is None:
        return None
    canonical = reader.value(position, opener.end()) in grammar.canonical
    return read_body(reader, position, opener.end(), grammar, malformed=not canonical)


def read_body(reader: Reader, start: int, position: int, grammar: Grammar, *, malformed: bool = False) -> Reading:
    """Read the calls at `position`, of a block that begins at `start`."""
    section = _Section(position)
    at = reader.space(position)
    if reader.char(at) == "`" and (fence := reader.match(_FENCE, at)):
        at, section.fenced = fence.end(), True
    strangers = reader.strangers
    found = json_calls.read_calls(reader, at, grammar.closer or grammar.stop, (grammar.opener,), grammar.keys)
    if found is None:
        return _read_nothing(reader, start, at, section, grammar)
    section.end = found.end
    _close(reader, section, grammar, damaged=not found.canonical)
    calls = tuple(call for call in found.calls if call.name in reader.tools or call.name not in grammar.idle)
    reader.strangers = strangers or any(call.name not in reader.tools for call in calls)
    if not calls:
        return Skip(section.end)
    if not _counts(reader, calls, found, section, grammar):
        return Skip(section.end) if reader.stand_ins(calls) else None
    regular = found.array and found.values == 1 and found.canonical and section.closed
    malformed |= not regular or section.odd or section.fenced
    return reader.block(grammar.dialect, start, section.end, calls, grammar.tier, malformed)


def _read_nothing(reader: Reader, start: int, at: int, section: _Section, grammar: Grammar) -> Reading:
    """Read an opener without calls: an empty array, or nothing readable."""
    empty = reader.match(_NOTHING, at)
    if empty is None and not grammar.on_sight:
        return None
    if empty is not None:
        section.end = empty.end()
        _close(reader, section, grammar)
    if grammar.tier != "sentinel" or (grammar.closed_only and not section.closed):
        return None
    return Found(grammar.dialect, start, section.end, (), grammar.tier, malformed=True)


def _close(reader: Reader, section: _Section, grammar: Grammar, *, damaged: bool = False) -> None:
    if grammar.closer is None:
        section.closed = True
        if damaged:
            section.end = reader.after(_SURPLUS, section.end)
        if section.fenced:
            section.end = reader.after(_FENCE_END, section.end)
        return
    at = reader.space(section.end)
    if closer := reader.match(grammar.closer, at):
        section.end, section.closed = closer.end(), True
        section.odd = grammar.closing is not None and reader.value(closer.start(), closer.end()) != grammar.closing
    elif reader.over and grammar.cut_closer is not None and reader.match(grammar.cut_closer, at):
        section.end, section.cut = reader.size, True
    else:
        closing = json_calls.close(reader, section.end, grammar.closer)
        section.end, section.closed, section.odd = closing.end, closing.closed, closing.odd


def _counts(
    reader: Reader, calls: tuple[NativeCall, ...], found: JsonCalls, section: _Section, grammar: Grammar
) -> bool:
    if grammar.closed_only and not (section.closed or section.cut):
        return False
    if grammar.tier == "sentinel" or reader.declares_any(calls):
        return True
    return section.closed and found.canonical and all(call.complete for call in calls)


# -- phi ---------------------------------------------------------------------------------------------------------------

_PHI = table(__name__, "phi")
_FUNCTOOLS, _PHI_TOKENS = grammar(_PHI, "functools"), grammar(_PHI)
_FIREFUNCTION = replace(_FUNCTOOLS, dialect="firefunction_v2")


def read_phi(reader: Reader, position: int) -> Reading:
    if reader.match(_FUNCTOOLS.opener, position):
        spaced = _PHI.blank_before.search(reader.view.text[max(position - 2, 0) : position])
        return read(reader, position, _FIREFUNCTION if spaced else _FUNCTOOLS)
    return read(reader, position, _PHI_TOKENS)


# -- cohere ------------------------------------------------------------------------------------------------------------

_COHERE = table(__name__, "cohere")
_ACTION, _ACTION_FENCE = grammar(_COHERE), grammar(_COHERE, "fence")
_ROW = frozenset({"tool_call_id", "tool_name", "parameters"})


def read_cohere(reader: Reader, position: int) -> Reading:
    if opener := reader.match(_ACTION_FENCE.opener, position):
        return None if reader.match(_COHERE.react, opener.end()) else read(reader, position, _ACTION_FENCE)
    if reader.match(_COHERE.bare_list, position):
        return _read_bare_list(reader, position)
    return read(reader, position, _ACTION)


def _read_bare_list(reader: Reader, position: int) -> Reading:
    """Read the list without its tokens: of declared tools only, and whole."""
    decoded = reader.json(position)
    if decoded.failed or not isinstance(decoded.value, list):
        return None
    rows = [row for row in decoded.value if isinstance(row, dict) and row.keys() >= _ROW]
    calls, _ = json_calls.calls_of(reader, decoded.value, _ACTION.keys)
    if not calls or not len(calls) == len(rows) == len(decoded.value):
        return None
    if not all(_fits(reader, call) for call in calls):
        return None
    closer = reader.match(_COHERE.end, reader.space(decoded.end))
    end = closer.end() if closer is not None else decoded.end
    return Found(_ACTION.dialect, position, end, tuple(calls), "generic", malformed=True)


def _fits(reader: Reader, call: NativeCall) -> bool:
    tool = reader.tool(call.name)
    if tool is None or call.arguments is None:
        return False
    return tool.schema is None or call.arguments.keys() <= coercion.properties_of(tool.schema).keys()


# -- granite -----------------------------------------------------------------------------------------------------------

_GRANITE = table(__name__, "granite")
_GRANITE_TOKEN, _GRANITE_TAG = grammar(_GRANITE), grammar(_GRANITE, "tag")


def read_granite(reader: Reader, position: int) -> Reading:
    if opener := reader.match(_GRANITE.opener, position):
        return _read_granite_object(reader, opener)
    found = read(reader, position, _GRANITE_TOKEN) or read(reader, position, _GRANITE_TAG)
    return found if found is None or not _is_closed(reader, found) else None


def _is_closed(reader: Reader, found: Found | Skip) -> bool:
    """Return True if the block has a closer, which Granite's grammar does not."""
    if isinstance(found, Found) and not all(call.complete for call in found.calls):
        return reader.next(_GRANITE.any_closer, found.start) is not None
    return reader.match(_GRANITE.closer, found.end) is not None


def _read_granite_object(reader: Reader, opener: Match) -> Reading:
    found = json_calls.read_quoted(reader, opener.end())
    if found is not None:
        found.canonical &= not opener["joint"]
    else:
        at = reader.space(opener.end())
        found = json_calls.read_calls(reader, at, _GRANITE.any_closer, (_GRANITE.opener,))
    if found is None:
        return None
    closer = reader.match(_GRANITE.closer, found.end)
    if closer is not None and opener["joint"]:
        return None
    end = closer.end() if closer is not None else found.end
    whole = found.canonical and all(call.complete for call in found.calls)
    if not (reader.declares_any(found.calls) or whole):
        return None
    malformed = closer is not None or found.array or found.values > 1 or not found.canonical
    malformed |= not opener[0].startswith("<f")
    dialect = "granite_20b_fc" if opener["joint"] else "glaive_functioncall"
    return reader.block(dialect, opener.start(), end, found.calls, "generic", malformed)
