"""Native tool-call markup in text: found, read, and held back while it arrives.

Models call tools in notations of their own; a server that fails to parse one passes it on as text. Each family of
notations is one module of this package: what its markup begins with, and how to read it from there. To add a family,
write such a module and name it in `FAMILIES`.

Theory of operation. A text is read in a few *views* (`shadow`), the plain one and those that undo an escaping. In each,
one regular expression made of all families' openers finds the places where markup may begin; there the families are
asked in the order of the table, and the bytes that follow decide whose it is, since many share an opener. What a family
claims becomes a `Block`, and the search goes on after it, so a marker inside an argument is never seen as markup. Reading
is linear in the text (`reader`).

Quoting is not judged here: a block in a code fence is found too, and `knowledge.quoting` tells where the fences are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from wirelint.dialects import anthropic, deepseek, hermes, kimi, qwen
from wirelint.dialects.family import Family, Found, Skip
from wirelint.dialects.openers import (
    BLANKS,
    LINE_START,
    Opener,
    Run,
    alphabet,
    cut_pattern,
    either,
    full_pattern,
    length,
)
from wirelint.dialects.reader import Reader
from wirelint.dialects.shadow import View, cut_escape, plain_view, tail_views, views
from wirelint.dialects.tails import Tails
from wirelint.dialects.values import Block, NativeCall, Tier
from wirelint.model import Tool

__all__ = ["FAMILIES", "Block", "NativeCall", "Tier", "find", "held_suffix", "marks", "may_hold_markup", "next_opener"]

FAMILIES: tuple[Family, ...] = (
    deepseek.FAMILY,
    kimi.FAMILY,
    qwen.FAMILY,
    hermes.FAMILY,
    anthropic.FAMILY,
)
"""In the order in which they are asked about an opener that several share."""

_TAIL: Opener = ("<", Run(r"\s", 0, 3), "/", Run(r"\s", 0, 3), Run(r"\w:", 1, 40), Run(r"\s", 0, 3), ">")
_TAILS = Tails(FAMILIES)
_OPENERS: tuple[Opener, ...] = tuple(dict.fromkeys(opener for family in FAMILIES for opener in family.openers))
_OPENER = re.compile(full_pattern(_OPENERS))
_CLOSING = "|".join(tags for family in FAMILIES for tags in family.closers)
_ANY_MARK = re.compile(rf"{_OPENER.pattern}|<\s{{0,3}}/\s{{0,3}}(?:{_CLOSING})\s{{0,3}}>")
_LONGEST = max(length(opener) for opener in (*_OPENERS, _TAIL))
_LONGEST_ESCAPE = 12  # one character as two escapes of a UTF-16 unit each
_ESCAPED_FRAME = re.compile(r'<[^<>]{0,200}>\s{0,4}\\n|<[^<>]{0,64}=\\"|[^{]{0,64}\{\s{0,4}\\"')


def find(text: str, tools: Sequence[Tool] = ()) -> tuple[Block, ...]:
    """All markup in a text, in order and without overlaps.

    `tools` are the declared tools: they decide names, types and the doubtful cases. Calls of tools that are not among
    them are returned too.
    """
    found: list[Block] = []
    if not may_hold_markup(text):
        return ()
    for view in views(text):
        blocks = [_block(view, one) for one in _find_in(Reader(view, tools))]
        if view.decoded:
            blocks = [block for block in blocks if _was_escaped(text, block)]
        found = _merge(found, blocks)
    return tuple(found)


def may_hold_markup(text: str) -> bool:
    """Whether `find` can find anything at all. Cheap, and False for almost all text that is clean."""
    if "<" not in text and "functions" not in text and "&" not in text and "\\" not in text:
        return any(opener in text for opener in ("antml:", "mm:", "function=")) and _ANY_MARK.search(text) is not None
    return any(_ANY_MARK.search(view.shadow) for view in views(text))


def held_suffix(text: str, tools: Sequence[Tool] = ()) -> int:
    """The length of the longest suffix that may still become an opener, once more text has come.

    A complete opener is not held: it is found by `next_opener`. With `tools`, their names at the beginning of a line are
    held too, since a header such as `NAME:0` may be all that is left before a call's arguments.
    """
    cuts = _cut_with(tuple(sorted(tool.name for tool in tools)))
    held = max(cut_escape(text), _held(plain_view(_end(text, _LONGEST)), _LONGEST, cuts))
    window = _end(text, _LONGEST * _LONGEST_ESCAPE)
    for view in tail_views(window) if "&" in window or "\\" in window else ():
        if cut := _held(view, _LONGEST * _LONGEST_ESCAPE, cuts):
            held = max(held, cut + len(window) - len(view.source))
    return held


def _end(text: str, size: int) -> str:
    """The end of a text with one character more than is looked at, so that the beginning of a line can be told."""
    return text[-(size + 1) :]


def _held(view: View, size: int, cuts: _Cut) -> int:
    """How much of the end of a view's source may begin an opener; `size`: longer sources have been cut from the left."""
    start = 1 if len(view.source) > size else 0
    for place in cuts.places.finditer(view.shadow, max(start, len(view.shadow) - _LONGEST)):
        if cuts.pattern.match(view.shadow, place.start()):
            return len(view.source) - view.origin(place.start())
    return 0


def next_opener(text: str, start: int = 0) -> int | None:
    """The offset of the first complete opener or closer at or after `start`, whether or not markup follows."""
    places = [_first_mark(view, start) for view in views(text)]
    return min((place for place in places if place is not None), default=None)


def marks(text: str) -> Iterator[tuple[int, int]]:
    """The places of all complete openers and closers, in order in each reading of the text: (start, end)."""
    for view in views(text):
        for mark in _ANY_MARK.finditer(view.shadow):
            yield view.origin(mark.start()), view.origin(mark.end())


def _first_mark(view: View, start: int) -> int | None:
    for mark in _ANY_MARK.finditer(view.shadow):
        if view.origin(mark.start()) >= start:
            return view.origin(mark.start())
    return None


def _find_in(reader: Reader) -> Iterator[Found]:
    position = 0
    while mark := _OPENER.search(reader.shadow, position):
        reader.work += mark.end() - position
        reading = _ask(reader, mark.start())
        match reading:
            case Found():
                yield reading
                reader.floor = position = reading.end
            case Skip():
                reader.floor = position = reading.end
            case None:
                position = mark.start() + 1
    reader.work += reader.size - position
    if tail := _TAILS.find(reader):
        yield tail


def _ask(reader: Reader, position: int) -> Found | Skip | None:
    for family in FAMILIES:
        reading = family.read(reader, position)
        if reading is not None:
            return reading
    return None


def _block(view: View, found: Found) -> Block:
    complete = bool(found.calls) and all(call.complete for call in found.calls)
    start, end = view.origin(found.start), view.origin(found.end)
    return Block(
        found.dialect, start, end, found.calls, complete, found.tier, malformed=found.malformed or view.decoded
    )


def _was_escaped(text: str, block: Block) -> bool:
    """Whether the markup itself was escaped, and not just something inside a value."""
    return text[block.start] in "&\\" or _ESCAPED_FRAME.match(text, block.start, block.end) is not None


def _merge(found: list[Block], more: list[Block]) -> list[Block]:
    """Blocks of a further view beside those found so far; an escaped frame beats a plain reading of the same place."""
    if not more:
        return found
    kept: list[Block] = []
    queue = sorted([*((block, False) for block in found), *((block, True) for block in more)], key=_by_start)
    for block, decoded in queue:
        if not kept or block.start >= kept[-1].end:
            kept.append(block)
        elif decoded and not kept[-1].complete:
            kept[-1] = block
    return kept


def _by_start(entry: tuple[Block, bool]) -> tuple[int, bool]:
    return entry[0].start, not entry[1]


class _Cut(NamedTuple):
    """What tells how much of the end of a text may begin an opener: where that can be, and whether it is so."""

    places: re.Pattern[str]
    pattern: re.Pattern[str]


@lru_cache(maxsize=64)
def _cut_with(names: tuple[str, ...]) -> _Cut:
    """With the names of tools, which may stand at the beginning of a line."""
    endings = [ending for family in FAMILIES for ending in family.after_name] if names else []
    headers: list[Opener] = [(LINE_START, BLANKS, either(*names), *ending) for ending in endings]
    openers = (*_OPENERS, _TAIL, *headers)
    # There are openers with a bracket, the word `functions`, and those at the beginning of a line. From where one begins
    # that is not complete, nothing stands up to the end that is in none of its kind.
    in_tag = alphabet(opener for opener in openers if isinstance(opener[0], str))
    in_line = alphabet(opener for opener in openers if opener[0] == LINE_START)
    places = rf"<(?=[{in_tag}]*+\Z)|(?<![\w.=/-])f|(?m:^)(?=[\s\S])(?=[{in_line}]*+\Z)"
    return _Cut(re.compile(places), re.compile(cut_pattern(openers)))
