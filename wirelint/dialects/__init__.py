"""Native tool-call markup in text: found, read, and held back while it arrives.

Models call tools in notations of their own; a server that fails to parse one passes it on as text. Each family of
notations is one module of this package: what its markup begins with, and how to read it from there. To add a family,
write such a module with a `FAMILY` in it.

Theory of operation. A text is read in a few *views* (`shadow`), the plain one and those that undo an escaping. In
each, the openers of all families (`beginnings`) tell where markup may begin; there the families are asked in the
order of their ranks, and the bytes that follow decide whose it is, since many share an opener. What a family claims
becomes a `Block`, and the search goes on after it, so a marker inside an argument is never seen as markup. Reading is
linear in the text (`reader`).

A text that is still coming is read with the same code (`look`), up to the first place that may read differently later.

Quoting is not judged here: a block in a code fence is found too, and `text.quoting` tells where the fences are.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from wirelint.dialects.beginnings import Beginnings
from wirelint.dialects.family import Family, Found, Skip
from wirelint.dialects.openers import BLANKS, LINE_START, NAME, Opener, Run, begins_with, length, plain_pattern
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.shadow import ZERO_WIDTH, View, cut_escape, plain_view, tail_views, views
from wirelint.dialects.tails import Tails
from wirelint.dialects.values import Block, NativeCall, Tier
from wirelint.model import Tool

__all__ = [
    "BEGINNINGS",
    "FAMILIES",
    "SPEAKERS",
    "Block",
    "Look",
    "NativeCall",
    "Tier",
    "find",
    "has_opener",
    "held_suffix",
    "look",
    "may_begin",
    "may_hold_markup",
    "next_opener",
]


def _families() -> Iterator[Family]:
    for module in pkgutil.iter_modules(__path__):
        family = getattr(importlib.import_module(f"{__name__}.{module.name}"), "FAMILY", None)
        if isinstance(family, Family):
            yield family


FAMILIES: tuple[Family, ...] = tuple(sorted(_families(), key=lambda family: (family.rank, family.name)))
"""In the order in which they are asked about an opener that several share."""

SPEAKERS = {dialect: speakers for family in FAMILIES for dialect, speakers in family.speakers.items()}
"""Per dialect, the model families whose own notation it is."""

_TAIL: Opener = ("<", Run(r"\s", 0, 3), "/", Run(r"\s", 0, 3), Run(r"\w:", 1, 40), Run(r"\s", 0, 3), ">")
_TAILS = Tails(FAMILIES)
_HEADERS = [(LINE_START, BLANKS, NAME, *ending) for family in FAMILIES for ending in family.after_name]
BEGINNINGS = Beginnings((opener for family in FAMILIES for opener in family.openers), more=(_TAIL, *_HEADERS))
"""Where markup of any family may begin."""
_OPENERS = [(family, re.compile(plain_pattern(family.openers))) for family in FAMILIES]
_CLOSING = "|".join(tags for family in FAMILIES for tags in family.closers)
_CLOSER = re.compile(rf"<\s{{0,3}}/\s{{0,3}}(?:{_CLOSING})\s{{0,3}}>")
_LONGEST = max(length(opener) for opener in (*BEGINNINGS.openers, _TAIL))
_LONGEST_ESCAPE = 12  # one character as two escapes of a UTF-16 unit each
_ESCAPED_FRAME = re.compile(r'<[^<>]{0,200}>\s{0,4}\\n|<[^<>]{0,64}=\\"|[^{]{0,64}\{\s{0,4}\\"')
# What may make an escaped frame of what follows an opener; where a text ends in it, the decoded reading is still to come.
_ESCAPES_AFTER = re.compile(
    r'\s{0,4}(?:\\n(?:\\n|\s){0,8}[{\[<"\\]|\\"[\w.:/ -]{1,128}\\"\s{0,4}/?>'
    r'|\{\s{0,4}\\"[^{}]{0,200}?:\s?\\"[\w.:/-]{1,128}\\")'
)


class Look(NamedTuple):
    """What can be read of a text that is not over.

    `blocks` are those that no further text changes, in order. `open` is the first place from where on things may read
    differently later, None when there is none; `begun` is the block that stands there so far, if any. `hopeful`: a call of
    a declared tool may come of it.
    """

    blocks: tuple[Block, ...]
    open: int | None = None
    begun: Block | None = None
    hopeful: bool = False


def find(text: str, tools: Sequence[Tool] = (), start: int = 0) -> tuple[Block, ...]:
    """All markup in a text, in order and without overlaps; from `start` on, when what stands before has been read.

    `tools` are the declared tools: they decide names, types and the doubtful cases. Calls of tools that are not among
    them are returned too.
    """
    found: list[Block] = []
    for view in views(text):
        blocks = [_block(view, one) for one in _find_in(Reader(view, tools), start)]
        if view.decoded:
            blocks = [block for block in blocks if _was_escaped(text, block)]
        found = _merge(found, blocks)
    return tuple(found)


def look(text: str, tools: Sequence[Tool] = (), start: int = 0) -> Look:
    """What can be read of a text that is not over, from `start` on: `find` of any longer text finds the same blocks."""
    result = Look(())
    for view in views(text, over=False):
        seen = _look_in(view, tools, start)
        if view.decoded:
            blocks = tuple(block for block in seen.blocks if _was_escaped(text, block))
            escaped = seen.open is None or text[seen.open] in "&\\" or _ESCAPED_FRAME.match(text, seen.open)
            seen = seen._replace(blocks=blocks) if escaped else Look(blocks)
        result = _nearer(result, seen)
    return result


def _nearer(one: Look, other: Look) -> Look:
    """Two readings as one, up to the first open place of both."""
    first = min((look for look in (one, other) if look.open is not None), key=lambda look: look.open or 0, default=one)
    blocks = _merge(list(one.blocks), list(other.blocks))
    if first.open is not None:
        blocks = [block for block in blocks if block.start < first.open]
        if blocks and blocks[-1].end > first.open:
            return Look(tuple(blocks))
    return first._replace(blocks=tuple(blocks))


def _look_in(view: View, tools: Sequence[Tool], start: int) -> Look:
    reader = Reader(view, tools, over=False)
    openers = BEGINNINGS.search(reader)
    blocks: list[Block] = []
    position = 0
    while mark := openers.next(position):
        reading = _ask_from(reader, mark, start)
        if reading is None and not view.decoded and view.origin(mark.start()) >= start:
            reader.match(_ESCAPES_AFTER, mark.end())
        if reader.open:
            begun = _block(view, reading) if isinstance(reading, Found) else None
            place = begun.start if begun is not None else max(view.origin(mark.start()), start)
            return Look(tuple(blocks), place, begun, hopeful=not reader.strangers)
        position = _after(reader, mark.start(), reading)
        if isinstance(reading, Found):
            blocks.append(_block(view, reading))
    return Look(tuple(blocks))


def _after(reader: Reader, position: int, reading: Found | Skip | None) -> int:
    """Where to look on, after what a family said of an opener."""
    if reading is None:
        return position + 1
    reader.floor = reading.end
    return reading.end


def _may_begin(text: str, names: Collection[str]) -> bool:
    """Whether there can be an opener or a closer in any view of a text: a cheap look, False for most text that is clean."""
    if "<" in text or "&" in text or "\\" in text:
        return True
    return bool(BEGINNINGS.within(text.lstrip(ZERO_WIDTH), names))


def may_begin(text: str) -> bool:
    """Whether an opener that begins with a literal, or a closer, may stand at the beginning of a shadow.

    However that goes on. Openers in which the name of a tool takes the place of all words are left aside.
    """
    return BEGINNINGS.may_begin(text) or _TAILS.may_stand(text)


def may_hold_markup(text: str, tools: Sequence[Tool] = ()) -> bool:
    """Whether `find` can find anything at all."""
    if not _may_begin(text, {tool.name for tool in tools}):
        return False
    return any(True for view in views(text) for _ in _marks_in(Reader(view, tools)))


def held_suffix(text: str, tools: Sequence[Tool] = (), *, cut: bool = False) -> int:
    """The length of the longest suffix that may still become an opener, once more text has come.

    `cut`: the text is the end of a longer one, of which its first character shows what stood before.

    A complete opener is not held: it is found by `next_opener`. With `tools`, their names at the beginning of a line are
    held too, since a header such as `NAME:0` may be all that is left before a call's arguments.
    """
    names = {tool.name for tool in tools}
    size = min(_LONGEST, len(text) - cut)
    held = max(cut_escape(text), _held(plain_view(_end(text, size)), size, names))
    size = min(_LONGEST * _LONGEST_ESCAPE, len(text) - cut)
    window = _end(text, size)
    for view in tail_views(window) if any(character in window for character in "&\\<") else ():
        if inside := _held(view, size, names):
            held = max(held, inside + len(window) - len(view.source))
    return held


def _end(text: str, size: int) -> str:
    """The end of a text with one character more than is looked at, so that the beginning of a line can be told."""
    return text[-(size + 1) :]


def _held(view: View, size: int, names: Collection[str]) -> int:
    """How much of the end of a view's source may begin an opener; `size`: longer sources have been cut from the left."""
    start = 1 if len(view.source) > size else 0
    place = BEGINNINGS.cut(view.shadow, max(start, len(view.shadow) - _LONGEST), names)
    return len(view.source) - view.origin(place) if place is not None else 0


def has_opener(text: str, tools: Sequence[Tool] = (), start: int = 0) -> bool:
    """Whether a complete opener stands in a text, at or after `start`."""
    if not _may_begin(text, {tool.name for tool in tools}):
        return False
    return any(view.origin(place) >= start for view in views(text) for place in _openers_in(Reader(view, tools)))


def next_opener(text: str, start: int = 0, tools: Sequence[Tool] = ()) -> int | None:
    """The offset of the first complete opener or closer at or after `start`, whether or not markup follows."""
    places = (view.origin(place) for view in views(text) for place in _marks_in(Reader(view, tools)))
    return min((place for place in places if place >= start), default=None)


def _marks_in(reader: Reader) -> Iterator[int]:
    """The places of complete openers, then of closers."""
    yield from _openers_in(reader)
    for mark in _CLOSER.finditer(reader.shadow):
        yield mark.start()


def _openers_in(reader: Reader) -> Iterator[int]:
    openers, position = BEGINNINGS.search(reader), 0
    while mark := openers.next(position):
        yield mark.start()
        position = mark.start() + 1


def _find_in(reader: Reader, start: int = 0) -> Iterator[Found]:
    position = 0
    openers = BEGINNINGS.search(reader)
    while mark := openers.next(position):
        reading = _ask_from(reader, mark, start)
        position = _after(reader, mark.start(), reading)
        if isinstance(reading, Found):
            yield reading
    if tail := _TAILS.find(reader):
        yield tail


def _ask_from(reader: Reader, mark: Match, start: int) -> Found | Skip | None:
    """What stands at an opener, from `start` of the source on.

    An opener that reaches over `start` is asked about too: it may have had white space or a token in front of its block,
    which left with the text before.
    """
    origin = reader.view.origin
    reader.open = reader.strangers = False
    if reader.view.joined and origin(mark.end()) - origin(mark.start()) == len(mark[0]):
        return None  # no token cut this opener: the plain view reads it
    if origin(mark.start()) >= start:
        return _ask(reader, mark.start())
    if origin(mark.end()) <= start:
        return None
    reading = _ask(reader, mark.start())
    if reading is None or (isinstance(reading, Found) and origin(reading.start) >= start):
        return reading
    reader.open = False
    return None


def _ask(reader: Reader, position: int) -> Found | Skip | None:
    """What the families say of an opener. A stranger's name is no news while another family may read a declared one."""
    reading: Found | Skip | None = None
    still_open = hopeful = strangers = False
    for family, openers in _families_at(reader.shadow[position]):
        reader.open = reader.strangers = False
        if reader.match(openers, position) is not None:
            reading = family.read(reader, position)
        still_open |= reader.open
        hopeful |= reader.open and not reader.strangers
        strangers |= reader.strangers
        if reading is not None:
            break
    reader.open, reader.strangers = still_open, strangers and not hopeful
    return reading


@lru_cache(maxsize=256)
def _families_at(character: str) -> Sequence[tuple[Family, re.Pattern[str]]]:
    """The families with an opener that can begin with a character: asking all 40 takes most of the time of a search."""
    return [one for one in _OPENERS if any(begins_with(opener, character) for opener in one[0].openers)]


def _block(view: View, found: Found) -> Block:
    complete = bool(found.calls) and all(call.complete for call in found.calls)
    start, end = view.origin(found.start), view.origin(found.end)
    return Block(
        found.dialect,
        start,
        end,
        found.calls,
        complete,
        found.tier,
        malformed=found.malformed or view.decoded or view.joined,
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
        if decoded and kept and kept[-1].end == block.start and _opens(kept[-1], block):
            kept[-1] = replace(block, start=kept[-1].start)
        elif not kept or block.start >= kept[-1].end:
            kept.append(block)
        elif decoded and not kept[-1].complete:
            kept[-1] = block
    return kept


def _opens(one: Block, other: Block) -> bool:
    """Return True if a block is an opener alone, and the next one is what it opens: `<|calls_begin|>`, then a call."""
    return not one.calls and not one.complete and one.dialect == other.dialect


def _by_start(entry: tuple[Block, bool]) -> tuple[int, bool]:
    return entry[0].start, not entry[1]
