"""The grammar of many families: a marker, a JSON array of calls, mostly a closer. A family tells its own as data.

    MARKER [{"name": "lookup", "arguments": {"city": "Graz"}}, …] CLOSER

Where an array has no closer in its grammar it ends the block. What stands in for an array (one object, several in a row,
a fence around it) is read as a departure from the grammar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirelint.dialects import jsoncalls
from wirelint.dialects.family import Found, Reading, Skip
from wirelint.dialects.jsoncalls import KEYS, JsonCalls, Keys
from wirelint.dialects.openers import Opener, Piece, Run, cut_pattern, either, full_pattern
from wirelint.dialects.reader import Pattern, Reader
from wirelint.dialects.values import NativeCall, Tier

SPECIAL_END = re.compile(
    r"</s>|<\|(?:endoftext|end|eot_id|eom_id|im_end|end_of_text|assistant_end|END_OF_TURN_TOKEN)\|>"
)
"""The tokens that end a turn: no JSON goes on after them."""

_GAP = Run(r"\s", 0, 1)
_BARS = Run("|", 1, 2)
_BLANK = either("_", " ", "\\_")
_FENCE = re.compile(r"`{3,}[a-zA-Z]{0,8}\s*")
_FENCE_END = re.compile(r"\s*`{3,}")
_SURPLUS = re.compile(r"(?:\s{0,4}[}\],]){0,8}\s{0,4}[}\]]")
_NOTHING = re.compile(r"\[\s*\]")


@dataclass(frozen=True, slots=True)
class Grammar:
    """One dialect of this shape.

    `opener` and `closer` are found on shadow text; `canonical` are the openers as the model's own template writes them,
    and `closing` is the closer, when not all that `closer` matches is canonical.
    `cut_closer` matches a closer that the end of the text cuts off. `stop`: without a closer, what ends damaged JSON.
    `keys` are the keys that name a tool and its arguments. `tier`: with `sentinel` the opener counts on sight, even when
    no call can be read (`on_sight`); with `generic` its calls decide. `closed_only`: without its closer the block is some
    other dialect's. `idle`: names that say that no tool is called.
    """

    dialect: str
    opener: Pattern
    canonical: frozenset[str]
    closer: Pattern | None = None
    closing: str | None = None
    cut_closer: Pattern | None = None
    stop: Pattern = SPECIAL_END
    keys: Keys = KEYS
    tier: Tier = "sentinel"
    on_sight: bool = False
    closed_only: bool = False
    idle: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Section:
    """What has been read after an opener."""

    end: int
    fenced: bool = False
    closed: bool = False
    cut: bool = False
    odd: bool = False


def token(*words: Piece) -> Opener:
    """A special token such as `<|START_ACTION|>`, its bars doubled or set apart, its underscores escaped or lost."""
    joined: list[Piece] = []
    for word in words:
        joined += (_BLANK, word) if joined else (word,)
    return ("<", _GAP, _BARS, _GAP, *joined, _GAP, _BARS, _GAP, ">")


def compiled(opener: Opener) -> Pattern:
    return re.compile(full_pattern((opener,)))


def compiled_cut(opener: Opener) -> Pattern:
    """Matches an opener that the end of the text cuts off."""
    return re.compile(cut_pattern((opener,)))


def read(reader: Reader, position: int, grammar: Grammar) -> Reading:
    opener = reader.match(grammar.opener, position)
    if opener is None:
        return None
    canonical = reader.value(position, opener.end()) in grammar.canonical
    return read_body(reader, position, opener.end(), grammar, malformed=not canonical)


def read_body(reader: Reader, start: int, position: int, grammar: Grammar, *, malformed: bool = False) -> Reading:
    """The calls at `position`, of a block that begins at `start`."""
    section = _Section(position)
    at = reader.space(position)
    if reader.char(at) == "`" and (fence := reader.match(_FENCE, at)):
        at, section.fenced = fence.end(), True
    strangers = reader.strangers
    found = jsoncalls.read_calls(reader, at, grammar.closer or grammar.stop, (grammar.opener,), grammar.keys)
    if found is None:
        return _read_nothing(reader, start, at, section, grammar)
    section.end = found.end
    _close(reader, section, grammar, damaged=not found.canonical)
    calls = tuple(call for call in found.calls if call.name in reader.tools or call.name not in grammar.idle)
    reader.strangers = strangers or any(call.name not in reader.tools for call in calls)
    if not calls or reader.stand_ins(calls):
        return Skip(section.end)
    if not _counts(reader, calls, found, section, grammar):
        return None
    regular = found.array and found.values == 1 and found.canonical and section.closed
    malformed |= not regular or section.odd or section.fenced
    return Found(grammar.dialect, start, section.end, calls, grammar.tier, malformed)


def _read_nothing(reader: Reader, start: int, at: int, section: _Section, grammar: Grammar) -> Reading:
    """An opener without calls: an empty array, or nothing that can be read."""
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
        if damaged and (surplus := reader.match(_SURPLUS, section.end)):
            section.end = surplus.end()
        if section.fenced and (fence := reader.match(_FENCE_END, section.end)):
            section.end = fence.end()
        return
    at = reader.space(section.end)
    if closer := reader.match(grammar.closer, at):
        section.end, section.closed = closer.end(), True
        section.odd = grammar.closing is not None and reader.value(closer.start(), closer.end()) != grammar.closing
        return
    if reader.over and grammar.cut_closer is not None and reader.match(grammar.cut_closer, at):
        section.end, section.cut = reader.size, True
        return
    closing = jsoncalls.close(reader, section.end, grammar.closer)
    section.end, section.closed, section.odd = closing.end, closing.closed, closing.odd


def _counts(
    reader: Reader, calls: tuple[NativeCall, ...], found: JsonCalls, section: _Section, grammar: Grammar
) -> bool:
    if grammar.closed_only and not (section.closed or section.cut):
        return False
    if grammar.tier == "sentinel":
        return True
    known = any(call.name in reader.tools for call in calls)
    return known or (section.closed and found.canonical and all(call.complete for call in calls))
