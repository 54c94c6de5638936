"""What decides on markup in one block of text: where it begins, whether it is a call, and when that is certain.

Theory of operation. The text is read as it comes (`dialects.look`): what no further text changes is decided on at
once; from the first place on that may read differently later, the text is held back, as long as a call of a declared
tool may come of it. A run of sibling blocks waits until something follows that is no sibling, or the text ends. Then
the rule's own judgement decides on the text so far. What may read differently but can become no call of a declared
tool leaves, and is read again from there all the same, so that a marker inside its arguments is not taken for a call.

Each scan reads what is undecided once more; scans come when something may have closed, and are otherwise so far apart that
together they stay linear in the text. What is quoted is told by the whole text so far, within a budget of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wirelint.dialects import Block, Look, NativeCall, find, has_opener, held_suffix, look, next_opener
from wirelint.dialects.openers import may_go_on
from wirelint.events import Start
from wirelint.fix import MOST_HELD
from wirelint.fixes.text import Pause, TextBlock
from wirelint.model import Choice, Part, Reasoning, Refusal, Text, ToolCall
from wirelint.text.markup import BETWEEN, Said, judge, siblings

if TYPE_CHECKING:
    from wirelint.fixes.promote_markup import Promoter
from wirelint.text.markup import MOST_MASKED, OWN_FENCE, masked, may_quote
from wirelint.text.quoting import is_quoted

# What is quoted in a text that is still coming, told by all of it so far, within a budget.

_PARSES = 4
_LONGEST_PARAGRAPH = 2048
_LOOSE = 256
"""Pieces that are kept one by one; small strings weigh ten times what is in them."""
_QUOTATION_SLACK = 1 << 16
_QUOTE_MARK = re.compile(r"[`\t]|~~~| {4}|(?m:^)[ \d.)*+-]{0,64}>")
_FENCE_LINE = re.compile(r"^[ \t>]{0,8}(?:`{3,}|~{3,})[ \t]*$", re.MULTILINE)
_TICKS = re.compile(r"`+")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")


class Quotation:
    """The text of one block. Offsets count its characters from its beginning."""

    def __init__(self) -> None:
        self._whole: list[str] = []
        self._late: list[str] = []
        self._quotes = False
        self._parsed = self._parsed_size = 0
        self._fenced_from = -1
        self._maskable = MOST_MASKED

    def add(self, text: str) -> None:
        self._late.append(text)
        if len(self._late) >= _LOOSE:
            self._whole.append("".join(self._late))
            self._late.clear()

    def mask(self, start: int, end: int) -> None:
        """Makes a leak plain: what stands in it quotes nothing that comes after it."""
        so_far = self.text()
        if self._maskable and may_quote(so_far, start, end):
            self._maskable -= 1
            self._whole = [masked(so_far, start, end)]

    def is_quoted(self, offset: int) -> bool:
        """Whether what begins here is quoted, by the text so far. A fence that is open is parsed once."""
        if self._fenced_from >= 0:
            since = self.text()[self._fenced_from : offset]
            if not _FENCE_LINE.search(since):
                return True
            self._fenced_from = -1
        so_far, start = self.text(), self.readable_from(offset)
        if start is None:
            return True
        shown = so_far[start:]
        if OWN_FENCE.match(so_far, offset):  # it begins a fence, which does not quote it
            shown = f"{so_far[start:offset]}x"
        if not is_quoted(shown, offset - start, offset - start + 1):
            return False
        if start == 0 and is_quoted(so_far + "\n\nx", len(so_far) + 2, len(so_far) + 3):
            self._fenced_from = offset
        return True

    def readable_from(self, offset: int) -> int | None:
        """From where the text is read to tell what is quoted at an offset; None: it counts as quoted, unread.

        Mostly that is the beginning. A text that was read too often is read by paragraphs, if it has no fences.
        """
        so_far = self.text()
        if len(so_far) != self._parsed_size:
            fresh = so_far[max(self._parsed_size - 80, 0) :]
            self._quotes = self._quotes or _QUOTE_MARK.search(fresh) is not None
            self._parsed_size = len(so_far)
            self._parsed += len(so_far) if self._quotes else 0
        if self._parsed <= _PARSES * len(so_far) + _QUOTATION_SLACK:
            return 0
        if "```" in so_far or "~~~" in so_far:
            return None
        return max(so_far.rfind("\n\n", 0, offset), offset - _LONGEST_PARAGRAPH, 0)

    def text(self) -> str:
        """All of the text, leaks made plain."""
        if self._late or len(self._whole) > 1:
            self._whole = ["".join((*self._whole, *self._late))]
            self._late.clear()
        return self._whole[0] if self._whole else ""


def open_code(text: str, start: int, end: int) -> int:
    """The number of backticks of inline code that begins before `start` and may yet be closed behind `end`; 0 for none.

    Inline code ends with its paragraph.
    """
    if "`" not in text or _PARAGRAPH_END.search(text, end):
        return 0
    begin = 0
    for paragraph in _PARAGRAPH_END.finditer(text, 0, start):
        begin = paragraph.end()
    opened = 0
    for ticks in _TICKS.finditer(text, begin, start):
        size = len(ticks[0])
        opened = 0 if opened == size else opened or size
    closed = bool(opened) and re.search(rf"(?<!`)`{{{opened}}}(?!`)", text[end:]) is not None
    return 0 if closed else opened


_CONTEXT = 256
"""Characters before what is undecided that are read with it, for what stands before an opener."""
_HEADER = 600
_SCANS = 6
_INNER = 4
"""Openers behind the first one that are looked into while that one may still be a call of an undeclared tool."""
_SLACK = 1 << 16
_CLOSING = re.compile(r"[>}\])\n`]|&gt;")
_AFTER = re.compile(r"(?:[\s}\],)\"'`*”’»]|\\[nrt]?)*")
"""What may stand between a call and the end of the quotation that it is in."""


@dataclass(slots=True)
class Promotion:
    """A run that has left the text. `text` is what stood there."""

    strand: TextBlock
    text: str
    calls: tuple[NativeCall, ...]
    start: int
    event: int | None


class MarkupJudge:
    """Decides on one block. `_base` is the offset in the block at which `_buffer` begins.

    `_read` is the offset up to which reading is done. What stands between it and `sure` has left, undecided.
    """

    def __init__(self, promoter: Promoter, strand: TextBlock) -> None:
        self._promoter = promoter
        self._strand = strand
        self._request = promoter.request
        self._base = self._read = 0
        self._buffer = ""
        self._fresh: list[str] = []
        self._fresh_size = 0
        self._quotation = Quotation()
        self._open = self._left = self._swallowing = self._said = self._exact = False
        self._complete = self._parking = self._parked = self._closing = False
        self._names: set[str] = set()
        self._last: Promotion | None = None
        self._scanned = self._last_size = 0
        self._whole_body = not promoter.context.streamed
        self._answers = strand.start.kind != "reasoning"

    @property
    def is_open(self) -> bool:
        """Whether something has begun that may read differently as more text comes."""
        return self._open and not self._left

    def add(self, text: str) -> None:
        strand = self._strand
        if self._left:
            strand.sure = strand.length
            return
        if self._answers and not text.isspace():
            self._promoter.spoken.add(strand.choice)
            self._answers = False
        self._quotation.add(text)
        if self._swallowing and not self._open:
            text = self._swallow(text)
        if not self._open and self._said and not self._fresh and not self._swallowing:
            window = self._buffer + text
            if not has_opener(window, self._request.tools, strand.sure - self._base):
                self._read = strand.sure = max(strand.sure, strand.length - self._held(window))
                waiting = strand.length - strand.sure
                self._buffer = window[-_CONTEXT - waiting :]
                self._base = strand.length - len(self._buffer)
                return
        self._fresh.append(text)
        self._fresh_size += len(text)
        if self._whole_body:
            return  # all of the text is here: it is read when it is over
        if self._is_due(text):
            self._scan(final=False)
        if strand.length - strand.sure > MOST_HELD:
            self._leave(f"markup of more than {MOST_HELD} characters was released as it came")
        elif self._scanned > 4 * (_SCANS * strand.length + _SLACK):
            self._leave("text full of tags that lead nowhere was left as it came")

    def note(self, text: str) -> bool:
        if self._left:
            return True
        if self._open or self._fresh or self._swallowing or self._answers or self._whole_body or not self._said:
            return False
        self._quotation.add(text)
        self._read = self._strand.length + len(text)
        self._buffer = (self._buffer + text)[-_CONTEXT:]
        self._base = self._read - len(self._buffer)
        return True

    def _leave(self, note: str) -> None:
        if note not in self._promoter.context.notes:
            self._promoter.context.notes.append(note)
        self._left = True
        self._release()

    def pause(self, why: Pause) -> None:
        if self._left:
            return
        if self._strand.start.kind == "reasoning" and why != "stop":
            if self._fresh:
                self._scan(final=False)
            if why == "close" and self._open:
                return  # what follows decides
            self._release()
            return
        self._closing = why == "close"
        self._parking = why != "stop" and self._promoter.context.streamed
        if self._parked and self._may_go_on_waiting():
            return
        self._parked = False
        self._exact = why == "stop"
        self._scan(final=True)
        if not self._parked:
            self._release()

    def _may_go_on_waiting(self) -> bool:
        return self._parking and self._names <= self._promoter.names(self._strand.choice)

    def _park(self, run: tuple[Block, ...], text: str) -> bool:
        """Whether a run at the end of its text waits: for what comes next, or for the arguments of calls like its own."""
        if not self._parking or text[run[-1].end :].strip() or not all(block.complete for block in run):
            return False
        self._names = {call.name for block in run for call in block.calls}
        known = self._promoter.names(self._strand.choice)
        self._parked = self._closing if not known else self._names <= known
        return self._parked

    def give_up(self) -> None:
        if self._strand.sure < self._strand.length:
            self._left = self._open
            self._release()

    def leave(self) -> None:
        if not self._left:
            self._parked = False
            self._scan(final=False)
            self._left = True
            self._release()

    def _release(self) -> None:
        self._read = self._strand.sure = self._strand.length
        self._open = False
        self._join()
        self._trim()

    def _held(self, window: str) -> int:
        return held_suffix(window, self._request.tools, cut=len(window) < self._strand.length)

    def _swallow(self, text: str) -> str:
        """White space after markup that is gone, where white space stands before it too."""
        rest = text.lstrip()
        strand = self._strand
        gone = len(text) - len(rest)
        start = strand.length - len(text)
        strand.cut(start, start + gone)
        if self._last is not None:
            self._last.text += text[:gone]
        if strand.sure == start:
            self._read = strand.sure = start + gone
        self._join()
        self._buffer += text[:gone]
        self._swallowing = not rest
        return rest

    def _is_due(self, text: str) -> bool:
        """Whether to look again: something may have closed, or there is a good deal more than the last time."""
        size = len(self._buffer) + self._fresh_size
        if not self._open:
            return True
        if size >= self._last_size + max(self._last_size >> 1, 256):
            return True
        if self._scanned > _SCANS * self._strand.length + _SLACK:
            return False
        waiting = self._strand.length - self._strand.sure
        return self._complete or waiting <= _HEADER or _CLOSING.search(text) is not None

    def _join(self) -> None:
        if self._fresh:
            self._buffer += "".join(self._fresh)
            self._fresh.clear()
            self._fresh_size = 0

    def _trim(self) -> None:
        keep = max(min(self._strand.sure, self._read) - self._base - _CONTEXT, 0)
        self._base += keep
        self._buffer = self._buffer[keep:]

    def _scan(self, *, final: bool) -> None:
        self._join()
        strand, text, base = self._strand, self._buffer, self._base
        self._scanned += len(text)
        self._last_size = len(text)
        if not (self._said or final or text.strip()):
            return
        waits = self._decide(text, base, final=final)
        if not (self._said or (final and not self._parked) or text[:waits].strip()):
            waits = 0  # white space at the beginning waits for what it belongs to
        decided = strand.regions[-1].end if strand.regions else 0
        strand.sure = max(strand.sure, decided, base + waits)
        self._said = self._said or strand.sure > 0
        self._trim()

    def _decide(self, text: str, base: int, *, final: bool) -> int:
        """The offset up to which the text may leave."""
        start = self._read - base
        seen = Look(find(text, self._request.tools, start)) if final else look(text, self._request.tools, start)
        end = len(text) - (0 if final else self._held(text))
        seen = _before(seen, end)
        self._complete = self._open = False
        runs = list(siblings(text, seen.blocks))
        for run in runs:
            last = run is runs[-1]
            if final and (self._waits_for_end(run, final=True) or (last and self._park(run, text))):
                return self._wait(run[0].start, base)
            if not final and (self._waits_for_end(run, final=False) or (last and self._may_grow(text, run, seen, end))):
                return self._wait_for(run, text, base, end)
            self._read = base + self._settle(run, text, base, over=final)
        if seen.open is None:
            self._read = base + end
            return end
        self._read = base + seen.open
        self._open = True
        if self._quotation.is_quoted(self._read):
            return end
        if not seen.hopeful:
            return self._inner_call(text, seen.open, end)
        self._complete = seen.begun is not None and seen.begun.complete
        return seen.open

    def _inner_call(self, text: str, start: int, end: int) -> int:
        """Return where a call of a declared tool may begin behind an opener of an undeclared one, else `end`.

        `<tool_call>so <tool_call>{"name": "declared", …`: the first opener may turn out to begin nothing.
        """
        tools = self._request.tools
        for _ in range(_INNER):
            place = next_opener(text, start + 1, tools)
            if place is None or place >= end:
                return end
            self._scanned += len(text)
            seen = look(text, tools, place)
            if seen.blocks or (seen.open is not None and seen.hopeful):
                return place
            if seen.open is None:
                return end
            start = seen.open
        return end

    def _wait(self, start: int, base: int) -> int:
        self._open = True
        self._read = base + start
        return start

    def _wait_for(self, run: tuple[Block, ...], text: str, base: int, end: int) -> int:
        """Holds a run back that may have more siblings, or an end of the quotation it is in, if anything can come of it."""
        start = self._wait(run[0].start, base)
        names = {tool.name for tool in self._request.client_tools}
        if all(call.name in names for block in run for call in block.calls) and not self._quotation.is_quoted(
            base + start
        ):
            self._complete = run[-1].complete
            return start
        return end

    def _may_grow(self, text: str, run: tuple[Block, ...], seen: Look, end: int) -> bool:
        """Whether what may still come belongs to the last run, or changes what it stands in."""
        after = run[-1].end
        if seen.open is not None:
            return BETWEEN.fullmatch(text, after, seen.open) is not None
        if _AFTER.fullmatch(text, after, end) is not None or may_go_on(BETWEEN, text, after):
            return True
        opened = open_code(text, run[0].start, after)
        return 0 < opened < 3

    def _waits_for_end(self, run: tuple[Block, ...], *, final: bool) -> bool:
        """In reasoning a run counts only if nothing comes after the reasoning."""
        if final or self._strand.start.kind != "reasoning" or self._strand.choice in self._promoter.spoken:
            return False
        names = {tool.name for tool in self._request.client_tools}
        return all(call.name in names for block in run for call in block.calls) and all(b.complete for b in run)

    def _settle(self, run: tuple[Block, ...], text: str, base: int, *, over: bool) -> int:
        """Decides on a run; the offset behind it, and behind what goes with it: white space, the tokens of a turn's end."""
        strand = self._strand
        start, end = run[0].start, run[-1].end
        if base + start < strand.sure:
            return end  # it has left
        so_far, origin = self._quotation.text(), self._quotation.readable_from(base + start)
        if origin is None:
            return end
        moved = base - origin
        placed = tuple(replace(block, start=block.start + moved, end=block.end + moved) for block in run)
        promoter, choice = self._promoter, strand.choice
        structured = promoter.calls(choice)
        part = _part(strand.start, so_far[origin:])
        parts: tuple[Part, ...] = (part,) if not structured else (part, *structured)
        if isinstance(part, Reasoning) and choice in promoter.spoken:
            parts = (*parts, Text("…", ""))
        leak = judge(self._request, Choice(choice, parts, None, ""), part, placed)
        if leak is not None:
            self._quotation.mask(base + start, base + end)
        if leak is None or not (leak.promotable or self._may_be_duplicate(leak.declared, run, structured)):
            return end
        event = strand.frame_at(base + start) if promoter.context.streamed else None
        calls = tuple(call for block in run for call in block.calls)
        promotion = Promotion(strand, text[start:end], calls, base + start, event)
        if not promoter.promote(promotion):
            return end
        before = so_far[: base + start]
        cut_from = 0 if not before.strip() else base + start
        strand.cut(cut_from, base + end)
        last = over and text[end:].strip() and BETWEEN.fullmatch(text, end) is not None
        if last or not before.strip() or before[-1].isspace():
            after = len(text) if last else end + len(text[end:]) - len(text[end:].lstrip())
            strand.cut(base + end, base + after)
            promotion.text += text[end:after]
            self._last = promotion
            self._swallowing = after == len(text)
            end = after
        return end

    def _may_be_duplicate(self, declared: bool, run: tuple[Block, ...], structured: Sequence[ToolCall]) -> bool:
        """Whether a structured call beside the markup may say the same. In a stream its arguments are still to come."""
        if not declared or not structured or self._strand.start.kind == "reasoning":
            return False
        calls = [call for block in run for call in block.calls]
        if not calls or not all(block.complete for block in run):
            return False
        if self._promoter.context.streamed and not self._exact:
            return {call.name for call in calls} <= {call.name for call in structured}
        made = [(call.name, call.arguments.mapping) for call in structured]
        return all((call.name, call.arguments) in made for call in calls)


def _before(seen: Look, end: int) -> Look:
    """What can be read before an offset from which on another opener may begin."""
    blocks = tuple(block for block in seen.blocks if block.start < end)
    return seen if seen.open is not None and seen.open < end else Look(blocks)


def _part(start: Start, text: str) -> Said:
    match start.kind:
        case "reasoning":
            return Reasoning(text, start.pointer)
        case "refusal":
            return Refusal(text, start.pointer)
        case _:
            return Text(text, start.pointer)
