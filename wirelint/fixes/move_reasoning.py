"""Fix for `think-leak`: reasoning in the visible text of a reply moves to the field that the API has for it.

Theory of operation. At the beginning of a text, after white space and the header of a turn, a few characters show
whether reasoning opens there (`<think>\\nThe user`). If so, it is sent as reasoning while it arrives, since a user
waits for it; only text that may begin the closing tag is held back. After that tag the text begins again. A tag that
opens in the middle counts only with its closing tag, so a thought there waits for its end. Reasoning without an opening
tag is recognised only at its end (`…so 4.</think>The answer`). It moves if none of it has been sent: in a whole body,
within one event, or if the last reply of the same model began in a thought, so that the stream waited for the end. In
all other cases it has been sent as text, and only the tag is removed. Delimiters made of words
(`assistantanalysis…assistantfinal`) are treated like pairs of tags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, Literal

from wirelint.apis.traits import traits
from wirelint.dialects.openers import cut_at, is_cut
from wirelint.events import Close, Delta, Event, Frame, Start
from wirelint.fix import MOST_HELD, RewriteContext
from wirelint.fixes.text import MakeRepair, Pause, TextBlock, TextBuffer, TextDecider, TextRewriter
from wirelint.model import Request
from wirelint.text import thinking
from wirelint.text.asking import instructions_hold
from wirelint.text.markup import call_spans
from wirelint.text.quoting import may_become_mention
from wirelint.text.thinking import Tag, Thinking

Applies = Callable[[Thinking, bool], bool]
"""Return True if the rule reports a thought, given whether the candidate has a reasoning part."""

_DECISIVE = re.compile(r"\s*[^\s<]{1,64}[\s<]|\s*[^\s<]{16}")
"""A word after an opener. It shows whether the text is about the tag."""
_ROLES = ("assistant", "model", "ai")
_CONTEXT = 128
_LONGEST_LEAD = 1024
_LONGEST_ANSWER_TAG = 16
_MOST_LOOKS = 256
_MOST_PAIRS = 64
"""Tags in the middle of one text that are examined, and stretches of reasoning that are moved."""
_KEPT = 4096
"""Characters of a thought that are kept for the record."""


class ThoughtDecider(TextDecider):
    """Decides on one text block.

    States: `start` at the beginning of the answer, `text` after it, `pair` while a thought waits for its end, `thought`
    while one is sent as reasoning. `_buffer` is the text without moved thoughts;
    an offset in its end is `_shift` less than in the block. `_lone`: all text waits for a closing tag without an
    opening one; `_ended`: such a tag was removed, or is not searched. `_checked`: the middle of the text was examined
    up to here.
    """

    def __init__(self, mover: ReasoningMover, block: TextBlock) -> None:
        super().__init__(mover, block)
        self._mover = mover
        self._state: Literal["start", "text", "pair", "thought"] = "start"
        self._buffer = TextBuffer()
        self._shift = 0
        self._call_ends: list[int] | None = None
        """Offsets in `_buffer` at which native call markup ends; None if the buffer has not been searched."""
        self._tag: Tag | None = None
        self._from = self._checked = 0
        self._pairs = self._looks = self._moved = self._drops = 0
        self._tail = self._markup = self._thought = ""
        self._leading = self._swallowing = self._leaving = self._lone = self._awaits_more = False
        self._ended = not self.streamed
        self._answer: Literal["none", "awaited", "open"] = "none"
        """State of a tag around the answer, as in `<think>…</think><answer>…</answer>`: right after a thought it may open,
        and once it has opened, its end is searched from `_sought` on."""
        self._sought = 0
        self._event: int | None = None

    def add(self, text: str) -> None:
        block = self.block
        if self._swallowing and self._state == "text":
            text = self._drop_space(text, block.length - len(text))
        if self._state == "thought":
            self._pass_on(text)
            return
        calm = self._state == "text" and block.sure == block.length - len(text)
        self._keep(text)
        if calm and self._is_calm(text):
            self.let_go()
            return
        if self._state != "pair" or self._may_end(text):
            self._decide(final=False)
        if block.length - block.sure > MOST_HELD:
            self.abandon(f"reasoning of more than {MOST_HELD} characters was released unchanged")

    def pause(self, why: Pause) -> None:
        residue = self._state == "pair" and self._tag is None and not self._lone  # a frame made of words waits
        if self._state == "thought":
            self._pass_on("", final=True)
            self._end_thought("")
            self._buffer.replace("")
            self._shift, self._checked, self._tail = self.block.sure, 0, ""
            self._state, self.left = "text", self._leaving
        elif why == "close" and self.streamed and (self._awaits_more or residue):
            return  # a call right after it shows that all of it was reasoning
        else:
            self._decide(final=True)
        self.let_go()

    def give_up(self) -> None:
        if self._state in ("start", "pair"):
            self.stop()
        self.let_go()

    def leave(self) -> None:
        if self._state != "thought":
            self._decide(final=False)
        self._leaving, self._lone = True, False
        if self._state != "thought":
            self.stop()

    def stop(self) -> None:
        """Release all waiting text. A closing tag that arrives later can still be removed."""
        if self._lone:
            self._state, self._lone = "text", False
            self.let_go()
        else:
            super().stop()

    # --- the text so far ----------------------------------------------------------------------------------------------

    def _keep(self, text: str) -> None:
        self._buffer.add(text)
        self._call_ends = None
        self._tail = (self._tail + text)[-_CONTEXT:]

    def _window(self, text: str) -> str:
        """Return the end of the text so far, which includes `text`."""
        return self._tail if len(text) <= _CONTEXT // 2 else self._tail + text

    def _is_calm(self, text: str) -> bool:
        """Return True if no tag can be complete in a delta, or begin at its end."""
        window = self._window(text)
        if not thinking.MAY_OPEN.search(window):
            return True
        if self._answer == "open":
            return False
        return not thinking.may_hold_thinking(window) and not thinking.CUT_TAG.search(
            window, max(len(window) - thinking.LONGEST_TAG, 0)
        )

    def _may_end(self, text: str) -> bool:
        window = self._window(text)
        if self._lone:
            return thinking.LONE_CLOSER.search(window) is not None
        if self._tag is None:
            return thinking.ends_residue(window[-len(text) - 64 :])
        return self._tag.closer.search(window) is not None

    def _find(self, text: str) -> Thinking | None:
        if not thinking.may_hold_thinking(text):
            return None
        return thinking.find(text, self._ends_of_calls(text))

    def _ends_of_calls(self, text: str) -> Iterator[int]:
        """Yield the offsets at which calls end in the buffer's text. One search serves all thoughts of a text."""
        if self._call_ends is None:
            self._call_ends = [end for _, end in call_spans(text, self._mover.request)]
        yield from self._call_ends

    def _shorten(self, start: int, end: int) -> None:
        text, gone = self._buffer.text(), end - start
        self._buffer.replace(text[:start] + text[end:])
        self._shift += gone
        if self._call_ends is not None:
            self._call_ends = [one if one <= start else one - gone for one in self._call_ends if not start < one < end]

    def _applies(self, found: Thinking) -> bool:
        return self._mover.applies(found, self._mover.has_reasoning(self.block.choice))

    # --- decisions ----------------------------------------------------------------------------------------------------

    def _decide(self, *, final: bool) -> None:
        while True:
            if self._moved > _MOST_PAIRS:
                self.abandon(f"more than {_MOST_PAIRS} stretches of reasoning in one text; the rest was left unchanged")
                return
            before = self._state, self._shift
            waits = self._begin(final=final) if self._state == "start" else self._watch(final=final)
            if self._state == "thought":
                return
            if waits is not None or (self._state, self._shift) == before:
                break
        self.block.sure = max(self.block.sure, self.block.length if waits is None else waits + self._shift)

    def _begin(self, *, final: bool) -> int | None:
        """Decide at the beginning of the answer. Return the offset from which text waits; None if the beginning is over."""
        if self._swallowing:
            self._buffer.replace(self._drop_space(self._buffer.text(), self._shift))
        if self._answer == "awaited" and self._awaits_answer(final=final):
            return 0
        text = self._buffer.text()
        if self.streamed and len(text) > _LONGEST_LEAD and self._looks > _MOST_LOOKS:
            self._mover.warn(
                "reasoning may precede the answer, but where it ends is unknown; the text was left unchanged"
            )
            self._state = "text"
            return None
        self._looks += 1
        found = self._find(text)
        self._awaits_more = False
        goes_on = (
            self.streamed
            and not final
            and found is not None
            and found.evidence == "residue"
            and not thinking.ends_residue(text)
        )
        if found is not None and found.whole and not goes_on and self._applies(found):
            if not self._may_be_answer(found):
                if self.streamed and not final and self._may_be_mention(found):
                    return 0
                self._move(found)
                return None
            if self.streamed and not final:
                self._awaits_more = True
                return 0
            self._ended = False
            self._state = "text"
            self._drop_closer(text, found)
            return None
        start = thinking.beginning(text)
        opened = next(thinking.openers_at(text, start), None)
        if opened is not None:
            tag, end = opened[0], opened[1].end()
            thought = found or Thinking(tag.name, "opened", start, len(text), (end, len(text)), False, tag.native)
            decided = final or _DECISIVE.match(text, end) is not None
            if found is not None and decided and self._mover.live and self._applies(found):
                self._open(tag, text, start, end)
                return None
            if not final and self._applies(replace(thought, whole=True)):
                self._wait_for(tag, start)
                if not decided:
                    self._state = "start"
                return 0
        elif not final and (self._is_undecided(text, start) or self._is_inside()):
            return 0
        self._state = "text"
        return None

    def _is_inside(self) -> bool:
        """Return True if the text most likely begins inside a thought, and start to wait for its end."""
        mover = self._mover
        if self._ended or not mover.inside or mover.has_reasoning(self.block.choice):
            return False
        self._lone, self._tag, self._from, self._state = True, None, 0, "pair"
        return True

    def _is_undecided(self, text: str, start: int) -> bool:
        """Return True if the text so far may still open a thought."""
        rest = len(text) - start
        if not rest:
            return True
        if rest <= thinking.LONGEST_TAG and (
            is_cut(thinking.ANY_TAG, text, start) or thinking.CUT_TOKEN.match(text, start)
        ):
            return True
        if text[:start].strip() and any(role.startswith(text[start:]) for role in _ROLES):
            return True
        head = thinking.residue_head(text, start, self._mover.context.exchange.model)
        if head:
            self._tag, self._from, self._state = None, start, "pair"
        return head is not False

    def _awaits_answer(self, *, final: bool) -> bool:
        """Remove a tag around the answer right after a thought. Return True if the rest of a tag may still arrive."""
        text = self._buffer.text()
        opener = thinking.ANSWER_OPENER.match(text)
        if opener is not None or (text and (final or not is_cut(thinking.ANSWER_OPENER, text))):
            self._answer = "none"
        closer = opener[0].replace("<", "</") if opener is not None else ""
        if opener is not None and not instructions_hold(self._mover.request, opener[0], closer):
            self._answer, self._sought = "open", 0
            self._take_out(0, opener.end())
            title = f"removed the {opener[0]} tag around the answer"
            self._mover.record(self.block, title, event=self.event_at(self._shift - 1), before=opener[0])
            self._buffer.replace(self._drop_space(self._buffer.text(), self._shift))
        return bool(text) and self._answer == "awaited"

    def _take_out(self, start: int, end: int) -> None:
        """Remove a tag. The text before it is decided, and no character of the tag has been sent."""
        block = self.block
        block.cut(start + self._shift, end + self._shift)
        self._shorten(start, end)
        block.sure = max(block.sure, start + self._shift)

    def _watch(self, *, final: bool) -> int | None:
        """Decide in the middle of a text. Return the offset from which text waits."""
        place = None
        if self._answer == "open" and self._state == "text":
            text = self._buffer.text()
            closer = thinking.ANSWER_CLOSER.search(text, self._sought)
            if closer is not None:
                self._answer = "none"
                inner = self._find(text)
                if inner is None or inner.start > closer.start():
                    self._take_out(closer.start(), closer.end())
            elif not final:
                self._sought = max(len(text) - _LONGEST_ANSWER_TAG, 0)
                place = cut_at(thinking.ANSWER_CLOSER, text, self._sought)
        waits = self._watch_thoughts(final=final)
        return min((one for one in (place, waits) if one is not None), default=None)

    def _watch_thoughts(self, *, final: bool) -> int | None:
        """Decide on thoughts in the middle. A tag that opens where a thought may begin waits for its end."""
        text = self._buffer.text()
        if self._state == "pair":
            found = self._find(text)
            undecided = self._lone and not final and found is not None and self._may_be_mention(found)
            if found is not None and not undecided and self._may_move(found, final=final):
                self._state, self._ended, self._lone = "text", self._ended or self._lone, False
                self._move(found)
                return None
            if not final and (undecided or not self._is_closed(text)):
                return self._from
            self._lone = False
            self._state, self._checked = "text", self._from + 1
            self._pairs += 1
        if final or self._pairs > _MOST_PAIRS:
            found = self._find(text) if final and self._pairs <= _MOST_PAIRS else None
            if found is not None and self._may_move(found, final=final):
                self._move(found)
            elif found is not None:
                self._drop_closer(text, found)
            return None
        for mark in thinking.MAY_OPEN.finditer(text, self._checked):
            place, short = mark.start(), len(text) - mark.start() <= thinking.LONGEST_TAG
            if not self._ended and (closer := thinking.LONE_CLOSER.match(text, place)) is not None:
                if may_become_mention(text, place, closer.end()):
                    self._checked = place
                    return place
                found = self._find(text)
                if found is not None and found.end == closer.end() and self._drop_closer(text, found):
                    return self._watch_thoughts(final=False)
                self._ended = True  # only the first one counts
            elif not self._ended and short and is_cut(thinking.LONE_CLOSER, text, place):
                self._checked = place
                return place
            if not thinking.PLACE.search(text, max(place - 64, 0), place):
                continue
            if thinking.NATIVE_OPENER.match(text, place):
                self._wait_for(next(tag for tag in thinking.NATIVE if tag.opener.match(text, place)), place)
                return self._watch_thoughts(final=False)
            if short and is_cut(thinking.NATIVE_OPENER, text, place):
                self._checked = place
                return place
        self._checked = len(text)
        return None

    def _drop_closer(self, text: str, found: Thinking) -> bool:
        """Remove a lone closing tag whose thought stays in the text. Return True if one was removed."""
        if self._ended or found.evidence != "closed" or not self._applies(found):
            return False
        closer = thinking.LONE_CLOSER.search(text, found.body[1])
        if closer is None or closer.start() + self._shift < self.block.sure:
            return False
        self._drops += 1
        self._ended = self._drops == _MOST_PAIRS
        event = self.event_at(closer.start() + self._shift)
        sent = found.start + self._shift < self.block.sure
        self._mover.context.answers[self.block.number] = closer.start() + self._shift - self.block.gone
        self._take_out(closer.start(), closer.end())
        why = "the reasoning before it was already sent as text" if sent else "no answer follows it"
        title = f"dropped {closer[0]}; {why}"
        self._mover.record(self.block, title, event=event, before=closer[0])
        self._checked = closer.start()
        return True

    def _may_move(self, found: Thinking, *, final: bool) -> bool:
        if found.start + self._shift < self.block.sure or not self._applies(found):
            return False
        if self._may_be_answer(found):
            return False
        return found.whole or (final and found.evidence == "residue" and self._mover.has_calls(self.block.choice))

    def _may_be_mention(self, found: Thinking) -> bool:
        """Return True if later text may show that a lone closing tag is a mention."""
        text = self._buffer.text()
        closer = thinking.LONE_CLOSER.search(text, found.body[1]) if found.evidence == "closed" else None
        return closer is not None and may_become_mention(text, *closer.span())

    def _may_be_answer(self, found: Thinking) -> bool:
        """Return True if only a lone closing tag shows that the reply is a thought, as in `It is 4.</think>`."""
        if found.evidence != "closed" or self._lone:
            return False
        text, mover = self._buffer.text(), self._mover
        rest = text[: found.start] + text[found.end :]
        return not (rest.strip() or mover.has_calls(self.block.choice))

    def _is_closed(self, text: str) -> bool:
        if self._lone:
            return thinking.LONE_CLOSER.search(text) is not None
        if self._tag is None:
            return thinking.ends_residue(text[self._from :])
        opener = self._tag.opener.match(text, self._from)
        return opener is None or self._tag.closer.search(text, opener.end()) is not None

    def _wait_for(self, tag: Tag, start: int) -> None:
        self._state, self._tag, self._from = "pair", tag, start

    def _move(self, found: Thinking) -> None:
        block, text, shift = self.block, self._buffer.text(), self._shift
        self._moved += 1
        self._event = self.event_at(found.start + shift)
        body = text[slice(*found.body)]
        lead = found.body[0] + len(body) - len(body.lstrip())
        head, rest = text[: found.start], text[found.end :]
        leads = found.start == thinking.beginning(text) or not head.strip()  # only the header of a turn may precede it
        first = 0 if leads else found.start
        swallow = leads or head[-1].isspace()
        after = found.end + (len(rest) - len(rest.lstrip()) if swallow else 0)
        block.cut(first + shift, lead + shift)
        block.cut(lead + shift, found.body[1] + shift, moves=True)
        block.cut(found.body[1] + shift, after + shift)
        self._mover.record_thought(block, found.tag, text[found.start : found.end], body, self._event)
        self._shorten(first, after)
        self._checked = first
        self._swallowing = swallow and after == len(text)
        self._state = "text" if text[:first].strip() else "start"
        self._sought = 0
        self._answer = "awaited" if self._state == "start" else self._answer

    def _drop_space(self, text: str, start: int) -> str:
        """Cut the white space at the beginning of `text`, which begins at this offset of the block."""
        rest = text.lstrip()
        gone = len(text) - len(rest)
        self._call_ends = None
        self.block.cut(start, start + gone)
        self.block.sure = max(self.block.sure, start + gone)
        self._shift += gone
        self._swallowing = not rest
        return rest

    # --- a thought that is sent while it arrives ----------------------------------------------------------------------

    def _open(self, tag: Tag, text: str, start: int, end: int) -> None:
        block = self.block
        self._state, self._tag = "thought", tag
        block.busy = True
        self._event = self.event_at(start + self._shift)
        self._markup, self._thought = text[start:end], ""
        block.cut(self._shift, end + self._shift)  # with the header of a turn before the tag
        block.sure = end + self._shift
        self._buffer.replace("")
        self._leading, self._tail = True, ""
        self._pass_on(text[end:])

    def _pass_on(self, text: str, *, final: bool = False) -> None:
        """Move more of a thought. Text that may begin its closing tag waits in `_tail`."""
        block, tag = self.block, self._tag
        assert tag is not None
        window = self._tail + text
        if self._leading:
            gone = len(window) - len(window.lstrip())
            if end := thinking.repeated(window[gone:], tag, 0):  # `<think><think>`
                gone += end + len(window[gone + end :]) - len(window[gone + end :].lstrip())
            block.cut(block.sure, block.sure + gone)
            block.sure += gone
            window = window[gone:]
            self._leading = not window
            if not final and is_cut(tag.opener, window):
                self._tail, self._leading = window, True
                return
        closer = tag.closer.search(window)
        if closer is not None:
            self._think(window[: closer.start()])
            self._end_thought(closer[0])
            if self._leaving:
                self.stop()
                return
            self._shift = block.sure
            self._state, self._swallowing, self._checked = "start", True, 0
            self._answer, self._sought = "awaited", 0
            self._buffer.replace("")
            self._tail = ""
            if rest := window[closer.end() :]:
                self._keep(rest)
            self._decide(final=final)
            return
        cut = None if final else cut_at(tag.closer, window, max(len(window) - thinking.LONGEST_TAG, 0))
        cut = len(window) if cut is None else cut
        self._think(window[:cut])
        self._tail = window[cut:]

    def _think(self, text: str) -> None:
        block = self.block
        block.cut(block.sure, block.sure + len(text), moves=True)
        block.sure += len(text)
        if len(self._thought) < _KEPT:
            self._thought += text

    def _end_thought(self, closer: str) -> None:
        block, tag = self.block, self._tag
        assert tag is not None
        self._moved += 1
        block.busy = False
        block.cut(block.sure, block.sure + len(closer))
        block.sure += len(closer)
        self._mover.record_thought(block, tag.name, self._markup + self._thought + closer, self._thought, self._event)


class ReasoningMover(TextRewriter):
    phase: ClassVar[float] = 3.0
    decider = ThoughtDecider

    def __init__(
        self, context: RewriteContext, request: Request, repair: MakeRepair, applies: Applies, live: bool, inside: bool
    ) -> None:
        """`live`: a thought may be sent before its end has arrived. `inside`: replies of this model begin in a
        thought."""
        super().__init__(context, repair)
        self.request = request
        self.applies = applies
        self.live = live
        self.inside = inside
        self.api = traits(request.api)
        self._own: dict[int, int] = {}
        """The reasoning block of each candidate."""
        self._open: dict[int, int] = {}
        """The reasoning block that gets the thoughts of each text block."""
        self._ends: dict[int, tuple[str, int]] = {}
        """By reasoning block: the text block and the place in it where the last thought ended."""

    def meet(self, start: Start) -> None:
        super().meet(start)
        if start.kind == "reasoning" and start.form != "opaque":
            self._own.setdefault(start.choice, start.block)

    def has_calls(self, choice: int) -> bool:
        return super().has_calls(choice) or self._comes("tool_call", choice)

    def has_reasoning(self, choice: int) -> bool:
        return choice in self._own or self._comes("reasoning", choice)

    def _comes(self, kind: str, choice: int) -> bool:
        """Return True if a whole body holds a part of this kind anywhere."""
        events = () if self.context.streamed else self.context.frame_events
        return any(isinstance(event, Start) and event.kind == kind and event.choice == choice for event in events)

    def moved(self, block: TextBlock, text: str, offset: int, frame: Frame | None) -> Iterable[Event]:
        choice, has_blocks = block.choice, self.api.has_block_events
        number = self._open.get(block.start.block) if has_blocks else self._own.get(choice)
        if number is None:
            if has_blocks and block.opened:
                yield Close(block.number, frame)
                block.opened = False
                block.number = self.context.new_block()
                block.start = block.start._replace(block=block.number, wire_index=None, item=-1)
            number = self.context.new_block()
            yield Start(number, "reasoning", (self.api.reasoning_at or "").format(choice), choice, frame)
            if not has_blocks:
                self._own[choice] = number
        elif self._ends.get(number) != (block.start.pointer, offset):
            yield Delta(number, "\n\n", frame)  # another thought
        self._open[block.start.block] = number
        self._ends[number] = block.start.pointer, offset + len(text)
        yield Delta(number, text, frame)

    def landed(self, block: TextBlock, frame: Frame | None) -> Iterable[Event]:
        number = self._open.pop(block.start.block, None)
        if number is not None and self.api.has_block_events:
            yield Close(number, frame)

    def record_thought(self, block: TextBlock, tag: str, markup: str, thought: str, event: int | None) -> None:
        thought = thought.strip()
        moved = f"moved {len(thought)} characters of reasoning to {self.api.reasoning}"
        title = moved if thought else f"dropped the empty {tag} block"
        self.record(block, title, event=event, before=markup.strip(), after=thought)
