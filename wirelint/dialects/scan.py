r"""The scan of a text for native tool-call markup: whole texts with `find`, text that is still arriving with `look`.

Theory of operation. A text is read in a few views (`reader`): the plain one, and those that undo an escaping. In each
view the openers of all families (`openers`) mark the places where markup may begin. There the families are tried in the
order of their ranks; many families share an opener, so the following bytes decide. The markup that a family reads
becomes a `Block`, and the search continues after it, so a marker inside an argument is never read as markup. Reading is
linear in the text (`reader`).

    Ok.\n<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>    plain view: `hermes_json`
    &lt;invoke name="look"&gt;…                                         view without entities: `anthropic_xml`
    [TOOL_<|im_end|>CALLS] [{"name": "look", …}]                        joined view: `mistral_array`
    <tool_call>{"name": "look", "arg                                    still arriving: open from `<` on

The same code reads text that is still arriving, up to the first place that may read differently later.

Quoted markup is found too: `text.quoting` finds code fences.
"""

from __future__ import annotations

import bisect
import importlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from wirelint.dialects.openers import Opener, OpenerIndex, full_pattern, length, may_go_on, parse
from wirelint.dialects.reader import (
    OPENER_REST,
    TURN_AFTER,
    ZERO_WIDTH,
    Block,
    Match,
    Reader,
    Reading,
    View,
    cut_escape,
    plain_view,
    tail_views,
    views,
)
from wirelint.dialects.tables import Table, files, load
from wirelint.lexicon import lazy_pattern
from wirelint.model import Tool

FAMILIES = sorted((one for file in files() for one in load(file).values()), key=lambda one: (one.rank, one.family))
"""All families, in the order in which they are tried at a shared opener."""


def _reader(table: Table) -> Callable[[Reader, int], Reading]:
    module = importlib.import_module(f"{__package__}.{table.file}")
    return getattr(module, f"read_{table.family}", None) or partial(module.read, grammar=module.grammar(table))


SPEAKERS = {dialect: speakers for family in FAMILIES for dialect, speakers in family.speakers.items()}
"""Per dialect, the model families that write it."""

_PROPER = {
    dialect: lazy_pattern(family.source(source), re.DOTALL)
    for family in FAMILIES
    for dialect, source in family.data.get("proper", {}).items()
}

_TAIL: Opener = parse(r"<\s{0,3}/\s{0,3}[\w:]{1,40}\s{0,3}>")
_HEADERS = [(*parse(r"^[ \t]{0,8}{tool}"), *ending) for family in FAMILIES for ending in family.after_name]
OPENERS = OpenerIndex((opener for family in FAMILIES for opener in family.openers), more=(_TAIL, *_HEADERS))
"""The openers of all families."""
_READERS = [
    (_reader(family), lazy_pattern(full_pattern(family.openers).replace("(?P<name>", "(?:"))) for family in FAMILIES
]
_CLOSERS = [(lazy_pattern(tags), dialect) for family in FAMILIES for tags, dialect in family.closers.items()]
_LONE = frozenset[str]().union(*(family.lone for family in FAMILIES))
_ANY_CLOSER = lazy_pattern(rf"<\s{{0,3}}/\s{{0,3}}(?:{'|'.join(tags.pattern for tags, _ in _CLOSERS)})\s{{0,3}}>")
_LONGEST = max(length(opener) for opener in (*OPENERS.openers, _TAIL))
_LONGEST_ESCAPE = 12  # one character as two escapes of a UTF-16 unit each
_TAGS = r"(?:[^<>{}\\\n]{0,160}<[^<>]{0,200}>)"
_ESCAPED_FRAME = lazy_pattern(
    rf'{_TAGS}{{1,6}}\s{{0,4}}\\n|{_TAGS}{{0,6}}[^<>{{}}\\\n]{{0,160}}<[^<>]{{0,64}}=\\"'
    r'|(?:[^{]{0,64}|[^{"]{0,256})\{\s{0,4}(?:\\["nrt]|&(?:quot|#34|#[xX]22);)'
    r"|[^<>{}\\&\n]{0,160}(?:\\u00[37][cC]|&(?:lt|#0{0,4}60|#[xX]0{0,4}3[cC]);)"
)
"""The head of escaped markup: openers, then an escape where a line, an attribute or JSON begins; or an escaped bracket."""
# Characters after an opener that may be part of an escape. If a text ends in them, the decoded view may still read
# markup.
_ESCAPES_AFTER = lazy_pattern(
    OPENER_REST.pattern + r'\s{0,4}(?:\\n(?:\\n|\s){0,8}[{\[<"\\]|(?:name=)?\\"[\w.:/ -]{1,128}\\"\s{0,4}/?>'
    r'|\{\s{0,4}\\"[^{}]{0,200}?:\s?\\"[\w.:/-]{1,128}\\")'
)


class Look(NamedTuple):
    """The markup in a text that is still arriving.

    `blocks`, in order, are final. From `open` on the text may read differently later; None if nothing is open. `begun` is
    the block at `open` so far, if any. `hopeful`: it may become a call of a declared tool.
    """

    blocks: tuple[Block, ...]
    open: int | None = None
    begun: Block | None = None
    hopeful: bool = False


def find(text: str, tools: Sequence[Tool] = (), start: int = 0) -> tuple[Block, ...]:
    """Return all markup in a text from `start` on, in order and without overlaps.

    `tools` are the declared tools, which decide names, types and doubtful cases. Calls of other tools are returned too.
    """
    for known in _LATEST if not start else ():
        if known[0] is text and known[1] is tools:
            return known[2]
    found = look(text, tools, start, over=True).blocks
    if not start:
        _LATEST[:] = (text, tools, found), *_LATEST[:3]
    return found


_LATEST: list[tuple[str, Sequence[Tool], tuple[Block, ...]]] = []
"""The last four texts that `find` searched as a whole, and their markup. Three rules search each reply, at up to 100 ms
per search."""


def look(text: str, tools: Sequence[Tool] = (), start: int = 0, *, over: bool = False) -> Look:
    """Read a text that is still arriving, or one that is over, from `start` on.

    `find` returns the same blocks first for any longer text.
    """
    result = Look(())
    for view in views(text, over=over):
        seen = _read_view(Reader(view, tools, over=over), start)
        if view.decoded:
            # Only markup that was escaped itself counts, not that with an escape inside a value.
            blocks = tuple(one for one in seen.blocks if _is_escaped(text, one.start, one.end))
            escaped = seen.open is None or _is_escaped(text, seen.open, len(text))
            seen = seen._replace(blocks=blocks) if escaped else Look(blocks)
        if view.joined:
            # In no complete block: a turn token that ends the last call cuts no opener.
            fresh = tuple(block for block in seen.blocks if not _is_read(block.start, result.blocks))
            seen = seen._replace(blocks=fresh)
            if seen.open is not None and _is_read(seen.open, result.blocks):
                seen = Look(seen.blocks)
        result = _nearer(result, seen)
    return result


def _nearer(one: Look, other: Look) -> Look:
    """Merge two readings, up to the first open place of both that is in no block of the other."""
    merged = _merge(list(one.blocks), list(other.blocks))
    for first in sorted((look for look in (one, other) if look.open is not None), key=lambda look: look.open or 0):
        blocks = [block for block in merged if block.start < (first.open or 0)]
        if not blocks or blocks[-1].end <= (first.open or 0):
            return first._replace(blocks=tuple(blocks))
    return Look(tuple(merged))


def _read_view(reader: Reader, start: int) -> Look:
    view, openers = reader.view, OPENERS.search(reader)
    blocks: list[Block] = []
    position = 0
    while mark := openers.next(position):
        reading = _read_from(reader, mark, start)
        if not (reader.over or view.decoded) and view.origin(mark.start()) >= start:
            if reading is None:
                reader.match(_ESCAPES_AFTER, mark.end())
            if reading is None or (reading.dialect and not reading.calls):
                reader.match(TURN_AFTER, mark.end())
        if reader.open:
            begun = _block(view, reading) if reading is not None and reading.dialect else None
            place = begun.start if begun is not None else max(view.origin(mark.start()), start)
            return Look(tuple(blocks), place, begun, hopeful=not reader.strangers)
        position = mark.start() + 1
        if reading is not None:
            position = reader.floor = reading.end
            blocks += [_block(view, reading)] if reading.dialect else []
    tail = _find_tail(reader) if reader.over else None
    # The plain view reads a tail without a token of the source in it.
    if tail and not (view.joined and view.end_origin(tail.end) - view.origin(tail.start) <= tail.end - tail.start):
        blocks.append(_block(view, tail))
    return Look(tuple(blocks))


def _read_from(reader: Reader, mark: Match, start: int) -> Reading:
    """Read the text at an opener, from `start` of the source on.

    An opener that reaches over `start` is read too: it may begin with white space or a token that has been sent.
    """
    origin = reader.view.origin
    reader.open = reader.strangers = False
    if reader.view.joined and not _is_cut(reader, mark):
        return None
    if origin(mark.start()) >= start:
        return _read(reader, mark.start())
    if origin(mark.end()) <= start:
        return None
    reading = _read(reader, mark.start())
    if reading is None or (reading.dialect and origin(reading.start) >= start):
        return reading
    reader.open = False
    return None


def _is_cut(reader: Reader, mark: Match) -> bool:
    """Return True if a turn token cut an opener, or follows it. The plain view reads all others."""
    rest, origin = OPENER_REST.match(reader.shadow, mark.end()), reader.view.origin
    end = rest.end() if rest is not None else mark.end()
    return origin(end) - origin(mark.start()) > end - mark.start()


def _read(reader: Reader, position: int) -> Reading:
    """Try the families at an opener. An undeclared tool counts only if no other family may read a declared one."""
    reading: Reading = None
    still_open = hopeful = strangers = False
    for read, openers in _readers_for(reader.shadow[position]):
        reader.open = reader.strangers = False
        if reader.match(openers, position) is not None:
            reading = read(reader, position)
        still_open |= reader.open
        hopeful |= reader.open and not reader.strangers
        strangers |= reader.strangers
        if reading is not None:
            break
    reader.open, reader.strangers = still_open, strangers and not hopeful
    return reading


@lru_cache(maxsize=256)
def _readers_for(character: str) -> Sequence[tuple[Callable[[Reader, int], Reading], re.Pattern[str]]]:
    """Return the readers of families with an opener that can begin with a character, each with their openers."""
    return [(read, openers) for read, openers in _READERS if may_go_on(openers, character, 0)]


def is_damaged(text: str, block: Block) -> bool:
    """Return True if a block departs from the notation of its dialect.

    Known for the dialects of models that only their vendors serve (`proper` in the tables): there the model did it.
    """
    proper = _PROPER.get(block.dialect)
    return proper is not None and proper.fullmatch(text, block.start, block.end) is None


# -- results of several views ------------------------------------------------------------------------------------------


def _block(view: View, found: Block) -> Block:
    return found._replace(start=view.origin(found.start), end=view.end_origin(found.end))


def _is_escaped(text: str, start: int, end: int) -> bool:
    return text[start] in "&\\" or _ESCAPED_FRAME.match(text, start, end) is not None


def _merge(found: list[Block], more: list[Block]) -> list[Block]:
    """Add the blocks of a further view; an escaped frame replaces a plain reading of its place."""
    if not more:
        return found
    kept: list[Block] = []
    queue = [*((block, True) for block in more), *((block, False) for block in found)]
    for block, decoded in sorted(queue, key=lambda entry: (entry[0].start, not entry[1])):
        before = kept[-1] if kept and kept[-1].end == block.start and kept[-1].dialect == block.dialect else None
        if decoded and before is not None and not before.calls and not before.complete:
            kept[-1] = block._replace(start=before.start)  # `<|calls_begin|>`, then a call
        elif not kept or block.start >= kept[-1].end:
            kept.append(block)
        elif decoded and not kept[-1].complete:
            kept[-1] = block
    return kept


def _is_read(place: int, known: Sequence[Block]) -> bool:
    before = bisect.bisect_right(known, place, key=lambda block: block.start) - 1
    return before >= 0 and known[before].complete and place < known[before].end


# -- openers, whole or cut off -----------------------------------------------------------------------------------------


def may_begin(text: str) -> bool:
    """Return True if a shadow may begin with a closer, or with an opener that begins with a literal, whole or cut.

    Openers with a tool's name are not considered.
    """
    if OPENERS.may_begin(text):
        return True
    before = _CLOSER_START.match(text)
    return before is not None and any(tags.match(text, before.end()) is not None for tags, _ in _CLOSERS)


def may_hold_markup(text: str, tools: Sequence[Tool] = ()) -> bool:
    """Return True if `find` may find anything."""
    return _may_hold(text, {tool.name for tool in tools}) and any(True for _ in _marks(text, tools))


def _may_hold(text: str, names: Collection[str]) -> bool:
    """Return True if any view of a text may have an opener or a closer: a cheap look, False for most clean text."""
    if "<" in text or "&" in text or "\\" in text:
        return True
    return bool(OPENERS.groups_in(text.lstrip(ZERO_WIDTH), names))


def has_opener(text: str, tools: Sequence[Tool] = (), start: int = 0) -> bool:
    """Return True if a text holds a complete opener at or after `start`."""
    may_hold = _may_hold(text, {tool.name for tool in tools})
    return may_hold and any(place >= start for place in _marks(text, tools, closers=False))


def next_opener(text: str, start: int = 0, tools: Sequence[Tool] = ()) -> int | None:
    """Return the offset of the first complete opener or closer at or after `start`, whether or not markup follows."""
    return min((place for place in _marks(text, tools) if place >= start), default=None)


def _marks(text: str, tools: Sequence[Tool], *, closers: bool = True) -> Iterator[int]:
    for view in views(text):
        openers, position = OPENERS.search(Reader(view, tools)), 0
        while mark := openers.next(position):
            yield view.origin(mark.start())
            position = mark.start() + 1
        for closer in _ANY_CLOSER.finditer(view.shadow) if closers else ():
            yield view.origin(closer.start())


def held_suffix(text: str, tools: Sequence[Tool] = (), *, cut: bool = False) -> int:
    """Return the length of the longest suffix that may become an opener with more text.

    `cut`: the text is the end of a longer text; its first character only shows whether a line begins after it. A
    complete opener is not held: `next_opener` finds it. With `tools`, their names at a line start are held too, since
    of a damaged call only a header such as `NAME:0` may be left before its arguments.
    """
    names = {tool.name for tool in tools}
    size = min(_LONGEST, len(text) - cut)
    held = max(cut_escape(text), _held(plain_view(text[-(size + 1) :]), size, names))
    size = min(_LONGEST * _LONGEST_ESCAPE, len(text) - cut)
    window = text[-(size + 1) :]  # one more character shows whether a line begins
    for view in tail_views(window) if any(character in window for character in "&\\<") else ():
        if inside := _held(view, size, names):
            held = max(held, inside + len(window) - len(view.source))
    return held


def _held(view: View, size: int, names: Collection[str]) -> int:
    """Return the length of the end of a view's source that may begin an opener; a source beyond `size` lacks its start."""
    start = 1 if len(view.source) > size else 0
    place = OPENERS.cut(view.shadow, max(start, len(view.shadow) - _LONGEST), names)
    return len(view.source) - view.origin(place) if place is not None else 0


# -- closing tags alone at the end of a text ---------------------------------------------------------------------------
# `Done.</parameter></function></tool_call>` holds no call, but users should not see the tags. Several known closers in
# a row count, or one alone on a line that is in `lone`, unless the text holds their opener: then they belong to a
# block.

_LONGEST_CLOSER = 64
_CONTROL_TOKEN = re.compile(r"(?:<\|[^|<>\s]{1,40}\|>|</s>|\[e~\[)\Z")
_CLOSER = re.compile(r"<\s{0,3}/\s{0,3}(?P<tag>[\w:]{1,40})\s{0,3}>\Z")
_CLOSER_START = re.compile(r"<\s{0,3}/\s{0,3}")


def _find_tail(reader: Reader) -> Reading:
    """Return the run of closers at the end of the text, after the reader's floor."""
    end = _back_over_space(reader, reader.size)
    while token := _CONTROL_TOKEN.search(reader.shadow, max(reader.floor, end - _LONGEST_CLOSER), end):
        end = _back_over_space(reader, token.start())
    tags: list[tuple[str, str | None]] = []
    start = at = end
    while closer := _CLOSER.search(reader.shadow, max(reader.floor, at - _LONGEST_CLOSER), at):
        known = [(closer["tag"], dialect) for names, dialect in _CLOSERS if names.fullmatch(closer["tag"])]
        if not known:
            break
        tags.append(known[0])
        start, at = closer.start(), _back_over_space(reader, closer.start())
    openers = (re.compile(rf"<\s{{0,3}}{tag}\b") for tag, _ in tags)
    if not tags or any(opener.search(reader.shadow, reader.floor, start) for opener in openers):
        return None
    line_start = reader.shadow.rfind("\n", reader.floor, start) + 1
    alone = not reader.shadow[max(line_start, reader.floor) : start].strip()
    if len(tags) == 1 and not (alone and tags[0][0] in _LONE):
        return None
    # The innermost closer names the dialect, unless several dialects share it.
    dialect = next((dialect for _, dialect in reversed(tags) if dialect is not None), None)
    return reader.block(dialect, start, end, (), "generic") if dialect is not None else None


def _back_over_space(reader: Reader, end: int) -> int:
    while end > reader.floor and reader.shadow[end - 1].isspace():
        end -= 1
    return end
