"""What decides on reasoning in one block of text: where a thought begins, where it ends, what of it may go on at once."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from wirelint.fix import MOST_HELD
from wirelint.fixes.text import Pause, Pieces, TextBlock
from wirelint.text.markup import call_spans
from wirelint.text.reasoning_tags import CUT_TAG, CUT_TOKEN, MAY_OPEN, PLACE
from wirelint.text.thinking import (
    LONE_CLOSER,
    LONE_CLOSER_CUT,
    NATIVE,
    Tag,
    Thinking,
    beginning,
    ends_residue,
    find,
    is_spoken_of,
    may_hold_thinking,
    may_open,
    opener_at,
    repeated,
    residue_head,
)

if TYPE_CHECKING:
    from wirelint.fixes.move_reasoning import Mover
from wirelint.text.thinking import ANSWER_CLOSER, ANSWER_OPENER, CUT_ANSWER_CLOSER, CUT_ANSWER_OPENER

# The tag that some models put around the answer after a thought: `<think>…</think><answer>…</answer>`.

_LONGEST_TAG = 16


class AnswerTag:
    """Where such a tag may open (`awaited`, right after a thought), or that one has and its end is to come (`open`)."""

    __slots__ = ("_sought", "state")

    def __init__(self) -> None:
        self.state: Literal["none", "awaited", "open"] = "none"
        self._sought = 0

    def after_thought(self, *, at_beginning: bool) -> None:
        """A thought is gone, and the text begins anew, or goes on."""
        self._sought = 0
        if at_beginning:
            self.state = "awaited"

    def opener(self, text: str, *, final: bool) -> re.Match[str] | None:
        """The tag, if the text begins with it. The state tells whether it may still come."""
        opener = ANSWER_OPENER.match(text)
        if opener is not None or (text and (final or not CUT_ANSWER_OPENER.match(text))):
            self.state = "none"
        return opener

    def opened(self) -> None:
        self.state, self._sought = "open", 0

    def closer(self, text: str) -> re.Match[str] | None:
        closer = ANSWER_CLOSER.search(text, self._sought)
        if closer is not None:
            self.state = "none"
        return closer

    def cut_closer(self, text: str) -> int | None:
        """Where the end of a text may begin the closing tag."""
        self._sought = max(len(text) - _LONGEST_TAG, 0)
        place = text.rfind("<", self._sought)
        return place if place >= 0 and CUT_ANSWER_CLOSER.match(text, place) else None


_DECISIVE = re.compile(r"\s*[^\s<]{1,64}[\s<]|\s*[^\s<]{16}")
"""A word after an opener: from it one can tell whether the tag is spoken of."""
_ROLES = ("assistant", "model", "ai")
_CONTEXT = 128
_LONGEST_HEAD = 128
_LONGEST_LEAD = 1024
_MOST_LOOKS = 256
_KEPT = 4096
"""Characters of a thought that are kept for the record."""
_MOST_PAIRS = 64
"""Tags in the middle of one text that are looked into, and stretches of reasoning that are moved."""


class ThoughtJudge:
    """Decides on one text block.

    `_pieces` is the text without the thoughts that were moved; an offset in its end is `_shift` less than in the block.
    """

    def __init__(self, mover: Mover, strand: TextBlock) -> None:
        self._mover = mover
        self._strand = strand
        self._state: Literal["start", "text", "pair", "thought", "left"] = "start"
        self._pieces = Pieces()
        self._shift = 0
        self._tag: Tag | None = None
        self._from = self._checked = 0
        self._pairs = self._looks = self._moved = self._thought_size = 0
        self._tail = self._markup = ""
        self._leading = self._swallowing = self._leaving = False
        self._lone = False
        """Whether all that has come waits for a closing tag without an opening one."""
        self._ended = not mover.context.streamed
        """Whether such a tag was taken out, or need not be looked for."""
        self._answer = AnswerTag()
        self._thought: list[str] = []
        self._event: int | None = None

    def add(self, text: str) -> None:
        strand = self._strand
        if self._state == "left":
            strand.sure = strand.length
            return
        if self._swallowing and self._state == "text":
            text = self._drop_space(text, strand.length - len(text))
        if self._state == "thought":
            self._pass_on(text)
            return
        calm = self._state == "text" and strand.sure == strand.length - len(text)
        self._keep(text)
        if calm and self._is_calm(text):
            strand.sure = strand.length
            return
        if self._state == "pair" and not self._may_end(text):
            self._limit()
            return
        self._decide(final=False)
        self._limit()

    def note(self, text: str) -> bool:
        if self._state == "left":
            return True
        if self._state != "text" or self._swallowing or self._answer.state == "open":
            return False
        self._keep(text)
        return True

    def pause(self, why: Pause) -> None:
        if self._state == "left":
            return
        if self._state == "thought":
            self._pass_on("", final=True)
            self._end_thought("", 0)
            self._state = "left" if self._leaving else "text"
        elif why == "close" and self._state == "pair" and self._residue and self._mover.context.streamed:
            return  # a call right after it shows that all of it was thought
        else:
            self._decide(final=True)
        self._strand.sure = self._strand.length

    def give_up(self) -> None:
        if self._state in ("start", "pair"):
            self._leave()
        self._strand.sure = self._strand.length

    def leave(self) -> None:
        if self._state not in ("thought", "left"):
            self._decide(final=False)
        self._leaving, self._lone = True, False
        if self._state != "thought":
            self._leave()

    @property
    def _residue(self) -> bool:
        """Whether what waits is a frame made of words."""
        return self._tag is None and not self._lone

    def _leave(self) -> None:
        """Lets all that waits go; a closing tag that is still to come can be taken out all the same."""
        self._state = "text" if self._lone else "left"
        self._lone = False
        self._strand.sure = self._strand.length

    # --- the text so far ----------------------------------------------------------------------------------------------

    def _keep(self, text: str) -> None:
        self._pieces.add(text)
        self._tail = (self._tail + text)[-_CONTEXT:]

    def _is_calm(self, text: str) -> bool:
        """Whether no tag can have come with a delta, or begin at its end."""
        window = self._tail if len(text) <= _CONTEXT // 2 else self._tail + text
        if not MAY_OPEN.search(window):
            return True
        if self._answer.state == "open":
            return False
        return not may_hold_thinking(window) and not CUT_TAG.search(window, max(len(window) - _LONGEST_HEAD, 0))

    def _limit(self) -> None:
        if self._strand.length - self._strand.sure > MOST_HELD:
            self._give_up(f"reasoning of more than {MOST_HELD} characters was released as it came")

    def _give_up(self, note: str) -> None:
        if note not in self._mover.context.notes:
            self._mover.context.notes.append(note)
        self._leave()

    def _may_end(self, text: str) -> bool:
        window = self._tail if len(text) < _CONTEXT // 2 else self._tail + text
        if self._lone:
            return LONE_CLOSER.search(window) is not None
        if self._tag is None:
            return ends_residue(window[-len(text) - 64 :])
        return self._tag.closer.search(window) is not None

    # --- decisions ----------------------------------------------------------------------------------------------------

    def _decide(self, *, final: bool) -> None:
        """Decides on the text as far as it can be decided on."""
        while True:
            if self._moved > _MOST_PAIRS:
                self._give_up(
                    f"more than {_MOST_PAIRS} stretches of reasoning in one text; the rest was left as it came"
                )
                return
            before = self._state, self._shift
            waits = self._begin(final=final) if self._state == "start" else self._watch(final=final)
            if self._state == "thought":
                return
            if waits is not None or (self._state, self._shift) == before:
                break
        self._strand.sure = max(self._strand.sure, self._strand.length if waits is None else waits + self._shift)

    def _begin(self, *, final: bool) -> int | None:
        """At the beginning of what is said. The offset from which on all waits; None when the beginning is over."""
        if self._swallowing:
            self._swallow()
        if self._answer.state == "awaited" and self._awaits_answer(final=final):
            return 0
        text = self._pieces.text()
        if self._mover.context.streamed and len(text) > _LONGEST_LEAD and self._looks > _MOST_LOOKS:
            self._state = "text"
            return None
        self._looks += 1
        found = self._find(text)
        if found is not None and found.whole and self._applies(found):
            self._move(found)
            return None
        start = beginning(text)
        opened = opener_at(text, start)
        if opened is not None:
            tag, end = opened
            thought = found or Thinking(tag.name, "opened", start, len(text), (end, len(text)), False, tag.native)
            decided = final or _DECISIVE.match(text, end) is not None
            if found is not None and decided and self._mover.live and self._applies(found):
                self._open(tag, text, start, end)
                return None
            if not final and self._applies(replace(thought, whole=True)):
                self._wait_for(tag, start)
                if not decided or is_spoken_of(text, end):
                    self._state = "start" if not decided else "pair"
                return 0
        elif not final and (self._is_undecided(text, start) or self._is_inside()):
            return 0
        self._state = "text"
        return None

    def _is_inside(self) -> bool:
        """Whether the text most likely begins inside a thought; its end is then waited for."""
        mover = self._mover
        if self._ended or not mover.inside or mover.has_reasoning(self._strand.choice):
            return False
        self._lone, self._tag, self._from, self._state = True, None, 0, "pair"
        return True

    def _is_undecided(self, text: str, start: int) -> bool:
        rest = len(text) - start
        if not rest:
            return True
        if rest <= _LONGEST_HEAD and (may_open(text, start) or CUT_TOKEN.match(text, start)):
            return True
        if text[:start].strip() and any(role.startswith(text[start:]) for role in _ROLES):
            return True
        head = residue_head(text, start, self._mover.context.exchange.model)
        if head:
            self._tag, self._from, self._state = None, start, "pair"
        return head is not False

    def _awaits_answer(self, *, final: bool) -> bool:
        """Right after a thought: takes off a tag around the answer. Whether it may be one whose rest is to come."""
        text = self._pieces.text()
        opener = self._answer.opener(text, final=final)
        if opener is not None and self._mover.unwraps(opener[0]):
            self._answer.opened()
            self._take_out(0, opener.end())
            self._mover.unwrapped(self._strand, opener[0], self._event_at(self._shift - 1))
            self._swallow()
        return bool(text) and self._answer.state == "awaited"

    def _take_out(self, start: int, end: int) -> None:
        """Takes a tag out of the text. What stands before it is decided, and nothing of it has left."""
        strand, text = self._strand, self._pieces.text()
        strand.cut(start + self._shift, end + self._shift)
        self._pieces.replace(text[:start] + text[end:])
        self._shift += end - start
        strand.sure = max(strand.sure, start + self._shift)

    def _watch(self, *, final: bool) -> int | None:
        """In the middle: what may be the end of a tag around the answer waits, and what may be a thought."""
        place = None
        if self._answer.state == "open" and self._state == "text":
            text = self._pieces.text()
            closer = self._answer.closer(text)
            inner = self._find(text) if closer is not None else None
            if closer is not None and (inner is None or inner.start > closer.start()):
                self._take_out(closer.start(), closer.end())
            elif closer is None and not final:
                place = self._answer.cut_closer(text)
        waits = self._watch_thoughts(final=final)
        return waits if place is None else place if waits is None else min(place, waits)

    def _watch_thoughts(self, *, final: bool) -> int | None:
        """A tag that opens where a thought may stand waits for its end."""
        text = self._pieces.text()
        if self._state == "pair":
            found = self._find(text)
            undecided = self._lone and not final and found is not None and found.end == len(text)
            if found is not None and not undecided and self._may_move(found, final=final):
                self._state, self._ended, self._lone = "text", self._ended or self._lone, False
                self._move(found)
                return None
            if not final and (undecided or not self._closed(text)):
                return self._from
            self._lone = False
            self._state, self._checked = "text", self._from + 1
            self._pairs += 1
        if final or self._pairs > _MOST_PAIRS:
            found = self._find(text) if final and self._pairs <= _MOST_PAIRS else None
            if found is not None and self._may_move(found, final=final):
                self._move(found)
            elif found is not None and final:
                self._drop_closer(text, found)
            return None
        for mark in MAY_OPEN.finditer(text, self._checked):
            place = mark.start()
            if not self._ended and (closer := LONE_CLOSER.match(text, place)) is not None:
                if closer.end() == len(text):
                    self._checked = place
                    return place
                found = self._find(text)
                if found is not None and found.end == closer.end() and self._drop_closer(text, found):
                    return self._watch_thoughts(final=False)
                self._ended = True  # the first one decides
            elif not self._ended and len(text) - place <= _LONGEST_HEAD and LONE_CLOSER_CUT.match(text, place):
                self._checked = place
                return place
            if not PLACE.search(text, max(place - 64, 0), place):
                continue
            tag = next((tag for tag in NATIVE if tag.opener.match(text, place)), None)
            if tag is not None:
                self._wait_for(tag, place)
                return self._watch_thoughts(final=False)
            if len(text) - place <= _LONGEST_HEAD and any(tag.cut_opener.match(text, place) for tag in NATIVE):
                self._checked = place
                return place
        self._checked = len(text)
        return None

    def _drop_closer(self, text: str, found: Thinking) -> bool:
        """Takes out the end of a thought that has left as text. Whether it was one."""
        if self._ended or found.evidence != "closed" or not self._applies(found):
            return False
        closer = LONE_CLOSER.search(text, found.body[1])
        if closer is None or closer.start() + self._shift < self._strand.sure:
            return False
        self._ended = True
        event = self._event_at(closer.start() + self._shift)
        self._take_out(closer.start(), closer.end())
        self._mover.dropped(self._strand, closer[0], event)
        self._checked = closer.start()
        return True

    def _may_move(self, found: Thinking, *, final: bool) -> bool:
        if found.start + self._shift < self._strand.sure or not self._applies(found):
            return False
        return found.whole or (final and found.evidence == "residue" and self._mover.has_calls(self._strand.choice))

    def _closed(self, text: str) -> bool:
        if self._lone:
            return LONE_CLOSER.search(text) is not None
        if self._tag is None:
            return ends_residue(text[self._from :])
        opener = self._tag.opener.match(text, self._from)
        return opener is None or self._tag.closer.search(text, opener.end()) is not None

    def _wait_for(self, tag: Tag, start: int) -> None:
        self._state, self._tag, self._from = "pair", tag, start

    def _find(self, text: str) -> Thinking | None:
        if not may_hold_thinking(text):
            return None
        return find(text, (end for _, end in call_spans(text, self._mover.request)))

    def _applies(self, found: Thinking) -> bool:
        return self._mover.applies(found, self._mover.has_reasoning(self._strand.choice))

    def _move(self, found: Thinking) -> None:
        """Takes a thought of which both ends are known out of the text."""
        strand, text, shift = self._strand, self._pieces.text(), self._shift
        self._moved += 1
        self._event = self._event_at(found.start + shift)
        body = text[slice(*found.body)]
        lead = found.body[0] + len(body) - len(body.lstrip())
        head, rest = text[: found.start], text[found.end :]
        leads = found.start == beginning(text)  # what stands before it is the framing of the turn
        first = 0 if leads or not head.strip() else found.start
        swallow = leads or not head.strip() or head[-1].isspace()
        after = found.end + (len(rest) - len(rest.lstrip()) if swallow else 0)
        strand.cut(first + shift, lead + shift)
        strand.move(lead + shift, found.body[1] + shift)
        strand.cut(found.body[1] + shift, after + shift)
        self._mover.record(strand, found.tag, text[found.start : found.end], body, self._event)
        self._pieces.replace(text[:first] + text[after:])
        self._shift += after - first
        self._checked = first
        self._swallowing = swallow and after == len(text)
        self._state = "text" if text[:first].strip() else "start"
        self._answer.after_thought(at_beginning=self._state == "start")

    def _swallow(self) -> None:
        """White space after a thought that is gone, where the text begins anew."""
        self._pieces.replace(self._drop_space(self._pieces.text(), self._shift))

    def _drop_space(self, text: str, start: int) -> str:
        """The same wherever the rest of the text begins."""
        rest = text.lstrip()
        gone = len(text) - len(rest)
        self._strand.cut(start, start + gone)
        self._strand.sure = max(self._strand.sure, start + gone)
        self._shift += gone
        self._swallowing = not rest
        return rest

    def _event_at(self, offset: int) -> int | None:
        return self._strand.frame_at(offset) if self._mover.context.streamed else None

    # --- a thought that is passed on while it comes -------------------------------------------------------------------

    def _open(self, tag: Tag, text: str, start: int, end: int) -> None:
        self._state, self._tag = "thought", tag
        self._strand.busy = True
        self._event = self._event_at(start + self._shift)
        self._markup, self._thought, self._thought_size = text[start:end], [], 0
        self._strand.cut(self._shift, end + self._shift)  # with the framing of the turn, if it stands before it
        self._strand.sure = end + self._shift
        self._pieces.replace("")
        self._leading, self._tail = True, ""
        self._pass_on(text[end:])

    def _pass_on(self, text: str, *, final: bool = False) -> None:
        """More of a thought; what may begin its closer waits in `_tail`."""
        strand, tag = self._strand, self._tag
        assert tag is not None
        window = self._tail + text
        start = strand.sure
        if self._leading:
            rest = window.lstrip()
            gone = len(window) - len(rest)
            strand.cut(start, start + gone)
            start, window, self._leading = start + gone, rest, not rest
            if end := repeated(window, tag, 0):
                end += len(window[end:]) - len(window[end:].lstrip())
                strand.cut(start, start + end)
                start, window, self._leading = start + end, window[end:], end == len(window)
            if not final and tag.cut_opener.match(window):
                strand.sure, self._tail, self._leading = start, window, True
                return
        closer = tag.closer.search(window)
        if closer is not None:
            self._think(window[: closer.start()], start)
            strand.sure = start + closer.start()
            self._end_thought(window[closer.start() : closer.end()], len(closer[0]))
            if self._leaving:
                self._leave()
                return
            self._shift = strand.sure
            self._state, self._swallowing, self._checked = "start", True, 0
            self._answer.after_thought(at_beginning=True)
            self._pieces.replace("")
            self._tail = ""
            if rest := window[closer.end() :]:
                self._keep(rest)
            self._decide(final=final)
            return
        cut = len(window) if final else self._cut(window, tag)
        self._think(window[:cut], start)
        strand.sure = start + cut
        self._tail = window[cut:]

    def _cut(self, window: str, tag: Tag) -> int:
        for mark in re.finditer(r"[<\[◁&]", window[-_LONGEST_HEAD:]):
            place = max(len(window) - _LONGEST_HEAD, 0) + mark.start()
            if tag.cut_closer.match(window, place):
                return place
        return len(window)

    def _think(self, text: str, start: int) -> None:
        self._strand.move(start, start + len(text))
        if self._thought_size < _KEPT:
            self._thought.append(text)
            self._thought_size += len(text)

    def _end_thought(self, closer: str, size: int) -> None:
        strand, tag = self._strand, self._tag
        assert tag is not None
        self._moved += 1
        strand.busy = False
        strand.cut(strand.sure, strand.sure + size)
        strand.sure += size
        thought = "".join(self._thought)
        self._mover.record(strand, tag.name, self._markup + thought + closer, thought, self._event)
