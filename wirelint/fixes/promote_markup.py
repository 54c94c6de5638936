"""Fix for `xml-leak`: native markup in the text of a reply becomes structured calls.

Theory of operation. The text is read as it arrives (`dialects.look`). While an opener may still become a call of a declared
tool, the text from there on is held back: `<tool_call>{"name":"look`. A run of sibling blocks waits until other text
follows or the text ends. Then the rule's own function decides, on the text so far. Markup that cannot become a call of
a declared tool is forwarded, but is still read again from its start, so that a marker inside its arguments is not read
as a call.

A promoted run is removed from the text, and the prose continues at once. The calls follow at the end of the candidate,
because a reply that turns out to have structured calls must not get more of them: then the markup is put back as text,
or dropped if it duplicates a structured call. Markup in reasoning counts only if nothing follows the reasoning, so
everything from the run on waits there.

A text may end within a call that the next text completes (two content blocks of Anthropic, two parts of Gemini). Then the
end of the first text and the next text are held back, up to the next event. If both together are a call, the next text
becomes a part of the first block; otherwise all events follow unchanged.

Each scan reads the undecided text again. Scans happen when something may have closed, and otherwise so rarely that they
stay linear in the text. Quotation is checked on the whole text so far, within a separate budget.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from wirelint.apis.traits import Ending, ending, traits
from wirelint.dialects.openers import THOUGHT_ENDS, may_go_on
from wirelint.dialects.reader import CONTROL, Block, NativeCall
from wirelint.dialects.scan import Look, find, has_opener, held_suffix, look, next_opener
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Finish, Frame, Start, part_of
from wirelint.fix import MOST_HELD, RewriteContext
from wirelint.fixes.calls import make_call
from wirelint.fixes.text import Candidate, MakeRepair, Pause, TextBlock, TextBuffer, TextDecider, TextRewriter
from wirelint.history.id_demands import mint_where_used
from wirelint.jsonvalues import write
from wirelint.model import Choice, Part, Reasoning, Refusal, Request, Text, ToolCall
from wirelint.text import markup
from wirelint.text.escaping import amount
from wirelint.text.quoting import is_quoted, is_unread

PUT_BACK = "markup beside structured calls came back as text, at the end of what was already sent"
_MOST_PENDING = 16 * MOST_HELD
_HONEST: frozenset[Ending] = frozenset({"length", "filtered", "refused", "paused", "failed"})
"""Endings that are kept, since they mean more than a complete reply."""
_CONTEXT = 256
"""Characters before undecided text that are read with it, since an opener depends on them."""
_HEADER = 600
_SCANS = 6
_SLACK = 1 << 16
_THOUGHT_END = THOUGHT_ENDS[0]
_INNER = 4
"""Openers after the first one that are examined while the first may still be a call of an undeclared tool."""
_CLOSING = re.compile(r"[>}\])\n`]|&gt;")
_AFTER = re.compile(r"(?:[\s}\],)\"'`*”’»]|\\[nrt]?)*")
"""Text between a call and the end of the quotation around it."""


# --- quotation in a text that is still arriving -----------------------------------------------------------------------

_PARSES = 4
_LONGEST_PARAGRAPH = 2048
_QUOTE_MARK = re.compile(r"[`\t]|~~~| {4}|(?m:^)[ \d.)*+-]{0,64}>")
_FENCE_LINE = re.compile(r"^[ \t>]{0,8}(?:`{3,}|~{3,})[ \t]*$", re.MULTILINE)
_TICKS = re.compile(r"`+")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")


class Quotation(TextBuffer):
    """The text of one block so far, with leaks masked, and its quoted parts."""

    __slots__ = ("_fenced_from", "_maskable", "_parsed", "_parsed_size", "_quotes")

    def __init__(self) -> None:
        super().__init__()
        self._quotes = False
        self._parsed = self._parsed_size = 0
        self._fenced_from = -1
        self._maskable = markup.MOST_MASKED

    def mask(self, start: int, end: int) -> None:
        """Mask a leak, so that quotation marks in it do not count for later text."""
        so_far = self.text()
        if self._maskable and markup.may_quote(so_far, start, end):
            self._maskable -= 1
            self.replace(markup.masked(so_far, start, end))

    def is_quoted(self, offset: int) -> bool:
        """Return True if the text at an offset is quoted, by the text so far. An open fence is parsed once."""
        so_far = self.text()
        if self._fenced_from >= 0:
            if not _FENCE_LINE.search(so_far[self._fenced_from : offset]):
                return True
            self._fenced_from = -1
        start = self.readable_from(offset)
        if start is None or is_unread(so_far, offset):
            return True
        shown = so_far[start:]
        if markup.OWN_FENCE.match(so_far, offset):  # the leak begins a fence, which does not quote it
            shown = f"{so_far[start:offset]}x"
        if not is_quoted(shown, offset - start, offset - start + 1):
            return False
        if start == 0 and is_quoted(so_far + "\n\nx", len(so_far) + 2, len(so_far) + 3):
            self._fenced_from = offset
        return True

    def readable_from(self, offset: int) -> int | None:
        """Return the offset from which to read the text to check quotation at an offset; None if the text counts as
        quoted, unread.

        Usually that is the beginning. A text without fences that was read too often is read from its last paragraph.
        """
        so_far = self.text()
        if len(so_far) != self._parsed_size:
            fresh = so_far[max(self._parsed_size - 80, 0) :]
            self._quotes = self._quotes or _QUOTE_MARK.search(fresh) is not None
            self._parsed_size = len(so_far)
            self._parsed += len(so_far) if self._quotes else 0
        if self._parsed <= _PARSES * len(so_far) + _SLACK:
            return 0
        if "```" in so_far or "~~~" in so_far:
            return None
        return max(so_far.rfind("\n\n", 0, offset), offset - _LONGEST_PARAGRAPH, 0)


def open_code(text: str, start: int, end: int) -> int:
    """Return the number of backticks of inline code that opens before `start` and may close after `end`; 0 for none.

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


# --- the decision on one block ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Promotion:
    """A run of markup that was removed from the text. `place`: its offset in the text without the removed runs.

    `frame`: the last one that had arrived; as long as it waits, its bytes and those of the markup have not left.
    """

    block: TextBlock
    text: str
    calls: tuple[NativeCall, ...]
    event: int | None
    place: int
    frame: Frame | None


class MarkupDecider(TextDecider):
    """Decides on the markup in one block.

    `_buffer` is the end of the text, from offset `_base` on; `_fresh`: part of it was not scanned yet. The text is
    read up to offset `_read`; the text between `_read` and `sure` was sent undecided. `_names` are the tools of a run
    that is `_parked`: it waits for the part after the block. `_complete`: the open markup may be complete. `_why`: the
    last pause; from a stop on, the arguments of all structured calls are complete.
    """

    def __init__(self, promoter: MarkupPromoter, block: TextBlock) -> None:
        super().__init__(promoter, block)
        self._promoter = promoter
        self._request = promoter.request
        self._base = self._read = 0
        self._buffer = ""
        self._quotation = Quotation()
        self._fresh = self._open = self._swallowing = self._said = self._complete = self._parked = False
        self._why: Pause | None = None
        self._names: set[str] = set()
        self._last: Promotion | None = None
        self._scanned = self._last_size = self._fences = 0
        self._in_reasoning = block.start.kind == "reasoning"
        self._answers = not self._in_reasoning

    @property
    def is_open(self) -> bool:
        return self._open and not self.left

    def add(self, text: str) -> None:
        block = self.block
        if self._answers and not text.isspace():
            self._promoter.spoken.add(block.choice)
            self._answers = False
        self._quotation.add(text)
        if self._swallowing and not self._open:
            text = self._swallow(text)
        text = self._after_thought(text)
        if not self._open and self._said and not self._fresh and not self._swallowing:
            window = self._buffer + text
            if not has_opener(window, self._request.tools, block.sure - self._base):
                self._read = block.sure = max(block.sure, block.length - self._held(window))
                self._buffer = window[-_CONTEXT - (block.length - block.sure) :]
                self._base = block.length - len(self._buffer)
                return
        self._buffer += text
        self._fresh = True
        if not self.streamed:
            return  # the text is scanned at its end
        if self._is_due(text):
            self._scan(final=False)
        if block.length - block.sure > MOST_HELD:
            self.abandon(f"markup of more than {MOST_HELD} characters was released unchanged")
        elif self._scanned > 4 * (_SCANS * block.length + _SLACK):
            self.abandon("text full of tags without calls was left unchanged")

    def pause(self, why: Pause) -> None:
        if self._in_reasoning and why != "stop":
            if self._fresh:
                self._scan(final=False)
            if why != "close" or not self._open:  # else the next part decides
                self._release()
            return
        self._why = why
        if self._parked and self._may_park and self._names <= self._promoter.names(self.block.choice):
            return
        self._parked = False
        self._scan(final=True)
        if not self._parked:
            self._release()

    def give_up(self) -> None:
        if self.block.sure < self.block.length:
            self.left = self._open
            self._release()

    def leave(self) -> None:
        self._parked = False
        self._scan(final=False)
        self.left = True
        self._release()

    def cut_off(self) -> tuple[str, int] | None:
        """Return the end of the text with a call of a declared tool that it cuts off, and the place of the call there."""
        block = self.block
        if self.left or block.start.kind != "text" or not (self._fresh or block.sure < block.length):
            return None
        self._scan(final=False)
        if self._complete or block.sure == block.length:
            return None
        # An opener at the end is not `_open` yet.
        seen = look(self._buffer, self._request.tools, self._read - self._base)
        if seen.open is None or not seen.hopeful or self._quotation.is_quoted(self._base + seen.open):
            return None
        return self._buffer, seen.open

    def _release(self) -> None:
        self.let_go()
        self._read = self.block.length
        self._open = self._fresh = False
        self._trim()

    @property
    def _may_park(self) -> bool:
        return self._why != "stop" and self.streamed

    def _park(self, run: tuple[Block, ...], text: str) -> bool:
        """Return True if a run at the end of its text waits: for the next part, or for the arguments of equal calls."""
        if not self._may_park or text[run[-1].end :].strip() or not all(block.complete for block in run):
            return False
        self._names = {call.name for block in run for call in block.calls}
        known = self._promoter.names(self.block.choice)
        self._parked = self._why == "close" if not known else self._names <= known
        return self._parked

    def _held(self, window: str) -> int:
        return held_suffix(window, self._request.tools, cut=len(window) < self.block.length)

    def _swallow(self, text: str) -> str:
        """Remove white space after a promoted run that white space, or nothing, precedes. Return the rest of the text."""
        rest = text.lstrip()
        block = self.block
        gone = len(text) - len(rest)
        start = block.length - len(text)
        block.cut(start, start + gone)
        if self._last is not None:
            self._last.text += text[:gone]
        if block.sure == start:
            self._read = block.sure = start + gone
        self._buffer += text[:gone]
        self._swallowing = not rest
        return rest

    def _after_thought(self, text: str) -> str:
        """Return the text, with the closing tag that `think-leak` removed before an answer that begins in it.

        A call without a tag of its own counts right after that tag, which takes the place of characters that were read.
        """
        place, end = self._promoter.context.answers.get(self.block.number, -1), self.block.length
        at = place - self._base
        start = end - len(text)
        if not start <= place < end or at < len(_THOUGHT_END) or (self._open and self.block.sure < start):
            return text
        whole, before = self._buffer + text, len(self._buffer)
        whole = whole[: at - len(_THOUGHT_END)] + _THOUGHT_END + whole[at:]
        self._buffer = whole[:before]
        return whole[before:]

    def _is_due(self, text: str) -> bool:
        """Return True if something may have closed, or there is much more text than at the last scan."""
        size = self.block.length - self._base
        if not self._open or size >= self._last_size + max(self._last_size >> 1, 256):
            return True
        block = self.block
        if self._scanned > _SCANS * block.length + _SLACK:
            return False
        return self._complete or block.length - block.sure <= _HEADER or _CLOSING.search(text) is not None

    def _trim(self) -> None:
        keep = max(min(self.block.sure, self._read) - self._base - _CONTEXT, 0)
        self._base += keep
        self._buffer = self._buffer[keep:]

    def _scan(self, *, final: bool) -> None:
        self._fresh = False
        block, text, base = self.block, self._buffer, self._base
        self._scanned += len(text)
        self._last_size = len(text)
        if not (self._said or final or text.strip()):
            return
        waits = self._decide(text, base, final=final)
        if not (self._said or (final and not self._parked) or text[:waits].strip()):
            waits = 0  # white space at the beginning waits for the next text
        decided = block.regions[-1].end if block.regions else 0
        block.sure = max(block.sure, decided, base + waits)
        self._said = self._said or block.sure > 0
        self._trim()

    def _decide(self, text: str, base: int, *, final: bool) -> int:
        """Return the offset in the buffer up to which the text may leave."""
        start = self._read - base
        seen = Look(find(text, self._request.tools, start)) if final else look(text, self._request.tools, start)
        end = len(text) - (0 if final else self._held(text))
        blocks = tuple(block for block in seen.blocks if block.start < end)
        seen = seen if seen.open is not None and seen.open < end else Look(blocks)
        self._complete = self._open = False
        runs = list(markup.siblings(text, seen.blocks))
        for run in runs:
            last = run is runs[-1]
            if final and last and self._park(run, text):
                return self._wait(run[0].start, base)
            if not final and (self._waits_for_end(run) or (last and self._may_grow(text, run, seen, end))):
                start = self._wait(run[0].start, base)
                if not self._is_declared(run) or self._quotation.is_quoted(base + start):
                    return end
                self._complete = run[-1].complete
                return start
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
        """Return where a call of a declared tool may begin after the opener at `start`, which begins none; else `end`."""
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

    def _is_declared(self, run: tuple[Block, ...]) -> bool:
        names = {tool.name for tool in self._request.client_tools}
        return all(call.name in names for block in run for call in block.calls)

    def _may_grow(self, text: str, run: tuple[Block, ...], seen: Look, end: int) -> bool:
        """Return True if later text may belong to the last run, or change the quotation around it."""
        after = run[-1].end
        if seen.open is not None:
            return CONTROL.fullmatch(text, after, seen.open) is not None
        if _AFTER.fullmatch(text, after, end) is not None or may_go_on(CONTROL, text, after):
            return True
        return open_code(text, run[0].start, after) > 0

    def _waits_for_end(self, run: tuple[Block, ...]) -> bool:
        """Return True for calls in reasoning, which count only if nothing follows the reasoning."""
        if not self._in_reasoning or self.block.choice in self._promoter.spoken:
            return False
        return self._is_declared(run) and all(block.complete for block in run)

    def _settle(self, run: tuple[Block, ...], text: str, base: int, *, over: bool) -> int:
        """Decide on a run. Return the offset after it, and after white space and end-of-turn tokens that go with it."""
        block, promoter = self.block, self._promoter
        start, end = run[0].start, run[-1].end
        if base + start < block.sure:
            return end  # it has been sent
        so_far, origin = self._quotation.text(), self._quotation.readable_from(base + start)
        if origin is None:
            return end
        self._fences += markup.OWN_FENCE.match(text, start) is not None
        if self._fences > markup.MOST_MASKED:
            promoter.warn(f"more than {markup.MOST_MASKED} calls in fences in one text; the rest was left unchanged")
            return end
        moved = base - origin
        placed = tuple(one._replace(start=one.start + moved, end=one.end + moved) for one in run)
        structured = promoter.calls(block.choice)
        part = _part(block.start, so_far[origin:])
        parts: tuple[Part, ...] = (part, *structured)
        if isinstance(part, Reasoning) and block.choice in promoter.spoken:
            parts = (*parts, Text("…", ""))
        leak = markup.judge(self._request, Choice(block.choice, parts, None, ""), part, placed)
        if leak is not None:
            self._quotation.mask(base + start, base + end)
        if leak is None or not (leak.promotable or self._may_be_duplicate(leak.declared, run, structured)):
            return end
        calls = tuple(call for one in run for call in one.calls)
        place = base + start - block.gone
        frame = block.latest.frame if block.latest is not None else None
        promotion = Promotion(block, text[start:end], calls, self.event_at(base + start), place, frame)
        if not promoter.promote(promotion):
            return end
        before = so_far[: base + start]
        block.cut(0 if not before.strip() else base + start, base + end)
        last = over and text[end:].strip() and CONTROL.fullmatch(text, end) is not None
        if last or not before.strip() or before[-1].isspace():
            after = len(text) if last else end + len(text[end:]) - len(text[end:].lstrip())
            block.cut(base + end, base + after)
            promotion.text += text[end:after]
            self._last = promotion
            self._swallowing = after == len(text)
            end = after
        return end

    def _may_be_duplicate(self, declared: bool, run: tuple[Block, ...], structured: Sequence[ToolCall]) -> bool:
        """Return True if structured calls may equal the markup. In a stream their arguments may still be arriving."""
        calls = [call for block in run for call in block.calls]
        if not (declared and structured and calls) or self._in_reasoning or not all(block.complete for block in run):
            return False
        if self.streamed and self._why != "stop":
            return {call.name for call in calls} <= {call.name for call in structured}
        return markup.are_among(calls, structured)


def _part(start: Start, text: str) -> markup.Said:
    made: dict[str, Callable[[str, str], markup.Said]] = {"reasoning": Reasoning, "refusal": Refusal}
    return made.get(start.kind, Text)(text, start.pointer)


# --- the rewriter -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Cut:
    """A text that ends within a call, and the next text so far.

    `before`: the end of the first text, with the call at `place`. `events` are held back: the end of the first text, the
    start of the next one, its `number`, and its deltas.
    """

    block: TextBlock
    before: str
    place: int
    events: list[Event] = field(default_factory=list)
    number: int | None = None
    text: str = ""
    next_look: int = 16

    def is_over(self, request: Request) -> bool:
        """Return True if the next text, which is examined at each doubling of its size, cannot continue the call."""
        if len(self.text) < self.next_look:
            return False
        self.next_look = 2 * len(self.text)
        if len(self.text) + self.block.length - self.block.sure > MOST_HELD:
            return True
        seen = look(self.before + self.text, request.tools, self.place)
        return not seen.blocks and not (seen.open == self.place and seen.hopeful)


class MarkupPromoter(TextRewriter):
    """Turns the markup in a reply into calls. `spoken`: candidates that have begun to answer in text."""

    phase: ClassVar[float] = 3.1
    kinds = ("text", "reasoning", "refusal")
    decider = MarkupDecider

    def __init__(self, context: RewriteContext, request: Request, repair: MakeRepair) -> None:
        super().__init__(context, repair)
        self.request = request
        self.spoken: set[int] = set()
        self._pending: dict[int, list[Promotion]] = {}
        self._pending_size = 0
        self._structured: dict[int, tuple[Start, list[str]]] = {}
        """The received parts of the reply's structured calls, by block: the start, and the texts of the arguments."""
        self._looked_ahead = False
        self._cut: _Cut | None = None
        self._has_texts = False

    def _text_of(self, event: Event) -> TextBlock | None:
        return super()._text_of(event) if self._cut is None else None

    def forget(self) -> None:
        super().forget()
        self._cut = None

    def push(self, event: Event) -> Iterable[Event]:
        if not self._looked_ahead:  # in a whole body all calls are known from the beginning
            self._looked_ahead = True
            events = () if self.context.streamed else self.context.frame_events
            self._has_texts = sum(isinstance(one, Start) and one.kind == "text" for one in events) > 1
            for one in events:
                self._note_call(one)
        if self.context.streamed:
            self._note_call(event)
        return self._after_cut(event) if self._cut is not None else self._before_cut(event)

    def release(self) -> Iterable[Event]:
        return [*super().release(), *self._continue(joins=False)]

    def leave(self) -> Iterable[Event]:
        return [*super().leave(), *self._continue(joins=False)]

    # --- calls that are cut off at the end of a text ------------------------------------------------------------------

    def _before_cut(self, event: Event) -> Iterable[Event]:
        """Hold the end of a text within a call back; the beginning of the next text, if the API has no such ends."""
        block = None
        if isinstance(event, Close):
            block = self._blocks.get(event.block)
        elif isinstance(event, Start) and event.kind == "text":
            block = next(reversed(self._candidate(event.choice).blocks), None)
        if block is None or block.closed or not (self.context.streamed or self._has_texts):
            return super().push(event)
        begun = block.decider.cut_off() if isinstance(block.decider, MarkupDecider) else None
        if begun is None:
            return super().push(event)
        self._cut = _Cut(block, *begun)
        return self._after_cut(event)

    def _after_cut(self, event: Event) -> Iterable[Event]:
        """Hold the next text back until it shows whether it continues the call, at its end at the latest."""
        cut = self._cut
        assert cut is not None
        match event:
            case Close(number) if number == cut.block.start.block and not cut.events:
                pass
            case Start(kind="text", choice=choice) if choice == cut.block.choice and cut.number is None:
                cut.number = event.block
            case Delta(number, text) if number == cut.number:
                cut.text += text
                if cut.is_over(self.request):
                    cut.events.append(event)
                    return self._continue(joins=False)
            case Close(number) if number == cut.number:
                pass  # a structured call after it shows that the markup stays
            case _ if self._passes(event, cut):
                return super().push(event)
            case _:
                called = isinstance(event, Start) and event.kind == "tool_call"
                return [*self._continue(joins=not called and self._completes(cut)), *self.push(event)]
        cut.events.append(event)
        return ()

    def _passes(self, event: Event, cut: _Cut) -> bool:
        """Return True for an event of no candidate, or of another one."""
        match event:
            case Start(choice=choice) | Finish(choice=choice):
                return choice != cut.block.choice
            case Delta(number) | Close(number) | CallUpdate(number):
                return number != cut.number and self._homes.get(number) != cut.block.choice
            case _:
                events = self.context.frame_events
                return not isinstance(event, Done) and (self.context.streamed or events[-1] is not event)

    def _completes(self, cut: _Cut) -> bool:
        """Return True if the next text completes the call, and the whole can be promoted."""
        text, choice = cut.before + cut.text, cut.block.choice
        block = markup.complete_at(text, cut.place, self.request.tools) if cut.number is not None else None
        if block is None:
            return False
        part = _part(cut.block.start, text)
        leak = markup.judge(self.request, Choice(choice, (part, *self.calls(choice)), None, ""), part, (block,))
        return leak is not None and leak.promotable

    def _continue(self, *, joins: bool) -> Iterable[Event]:
        """Return the events for what was held back. `joins`: the next text becomes a part of the block before it."""
        cut, self._cut = self._cut, None
        if cut is None:
            return ()
        if joins and cut.number is not None:
            self._blocks[cut.number], self._homes[cut.number] = cut.block, cut.block.choice
        own = [event for event in cut.events if isinstance(event, Delta | Close) and event.block == cut.number]
        return [one for event in (own if joins else cut.events) for one in super(MarkupPromoter, self).push(event)]

    def _note_call(self, event: Event) -> None:
        if isinstance(event, Start) and event.kind == "tool_call":
            self._structured.setdefault(event.block, (event, []))
        elif isinstance(event, Delta) and event.block in self._structured:
            self._structured[event.block][1].append(event.text)

    def meet(self, start: Start) -> None:
        self._note_call(start)

    def names(self, choice: int) -> set[str]:
        return {start.name or "" for start, _ in self._structured.values() if start.choice == choice}

    def calls(self, choice: int) -> tuple[ToolCall, ...]:
        """Return the received structured calls of a candidate but for empty ones; the last one may be incomplete."""
        begun = [(start, "".join(texts)) for start, texts in self._structured.values() if start.choice == choice]
        made = (part_of(start, text) for start, text in begun)
        return tuple(part for part in made if isinstance(part, ToolCall) and not part.is_empty)

    def promote(self, promotion: Promotion) -> bool:
        """Accept a run, unless its candidate has ended or too many runs wait."""
        if self._candidate(promotion.block.choice).ended:
            return False
        self._pending_size += len(promotion.text)
        if self.context.streamed and self._pending_size > _MOST_PENDING:
            return False
        self._pending.setdefault(promotion.block.choice, []).append(promotion)
        return True

    # --- the end of a candidate ---------------------------------------------------------------------------------------

    def ending(self, candidate: Candidate, event: Event) -> Iterable[Event]:
        promotions = self._pending.pop(candidate.number, [])
        structured = self.calls(candidate.number)
        if structured or not promotions:
            for promotion in promotions:
                if markup.are_among(promotion.calls, structured):
                    self._record(promotion, "dropped the markup of", "")
                elif promotion.place <= self.context.over.get(promotion.block.number, promotion.place):
                    if self.context.streamed:
                        self.warn(PUT_BACK)
                    yield from self._as_text(promotion, event.frame)
            yield event
            return
        for promotion in promotions:
            lines = []
            for call in promotion.calls:
                id_ = mint_where_used(self.context, call.name)
                arguments = call.arguments or {}
                lines.append(f"{call.name}({write(arguments)}){f' as {id_}' if id_ is not None else ''}")
                yield from make_call(self.context, promotion.block.choice, call.name, id_, arguments, event.frame)
            self._record(promotion, "promoted", "\n".join(lines))
        own = traits(self.request.api)
        if not isinstance(event, Finish):
            if own.has_reason_for_calls:
                yield Finish(candidate.number, own.calls, own.finish_at.format(candidate.number), event.frame)
            yield event
        elif not own.has_reason_for_calls or event.reason == own.calls or ending(event.reason) in _HONEST:
            yield event
        else:
            yield event._replace(reason=own.calls)

    def dying(self, candidate: Candidate) -> Iterable[Event]:
        for promotion in self._pending.pop(candidate.number, []):
            yield from self._as_text(promotion, None)

    def _as_text(self, promotion: Promotion, frame: Frame | None) -> Iterator[Event]:
        block, frame = promotion.block, frame or promotion.frame or promotion.block.start.frame
        if block.opened and not block.closed and block.number not in self.context.over:
            yield Delta(block.number, promotion.text, frame)
            return
        number = self.context.new_block()  # also if another rewriter cuts all later text of the block
        yield block.start._replace(block=number, frame=frame, wire_index=None, item=-1)
        yield Delta(number, promotion.text, frame)
        yield Close(number, frame)

    def _record(self, promotion: Promotion, what: str, after: str) -> None:
        names = ", ".join(dict.fromkeys(call.name for call in promotion.calls))
        title = f"{what} {amount(len(promotion.calls), 'call')} of {names}"
        self.record(promotion.block, title, event=promotion.event, before=promotion.text.strip(), after=after)
