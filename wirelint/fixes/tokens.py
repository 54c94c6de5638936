"""Tokens of chat templates go from the edges of a text, and what runs on past its end goes with them.

Theory of operation. At the beginning, white space, tokens and what may become one wait for the first thing that is said;
tokens that are certain by themselves are then taken off. Later a token waits for what follows it: nothing (it is at the
end, and goes when the text ends), or more text (the turn was over: under unsafe all that follows goes). Whatever is
undecided at the end of the text is decided by the whole of it, as the rule does.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from wirelint.events import Start
from wirelint.fix import RewriteContext
from wirelint.fixes.markup import open_code
from wirelint.fixes.text import MakeRepair, Pause, Pieces, TextBlock, TextRewriter
from wirelint.model import Request
from wirelint.text.control_tokens import TOKEN_FIRSTS, Framing, Occurrence, ends_in_token, find, may_hold_token
from wirelint.text.framing import Framer, certain_lead, remedy

_DECISIVE = re.compile(r"\s*\S{1,64}[\s<]|\s*\S{16}|\s{64}")
_CONTEXT = 96
_KEPT = 4096
_LONGEST_LEAD = 1024
"""Characters at the beginning or at the end of a text that may be framing."""
_MOST_LOOKS = 64
"""Tokens of one text that are looked into; a text with more of them is about tokens."""


class Stripper(TextRewriter):
    """Repairs the texts of a reply under LK102."""

    phase: ClassVar[float] = 3.2

    def __init__(
        self, context: RewriteContext, request: Request, repair: MakeRepair, *, safe: bool, unsafe: bool
    ) -> None:
        super().__init__(context, repair)
        self.framer = Framer(context.exchange, request)
        self.safe, self.unsafe = safe, unsafe
        self._calling: set[int] = set()

    def judge(self, strand: TextBlock) -> TokenJudge | None:
        if strand.start.kind not in ("text", "reasoning", "refusal") or strand.start.form == "opaque":
            return None
        return TokenJudge(self, strand)

    def meet(self, start: Start) -> None:
        if start.kind == "tool_call":
            self._calling.add(start.choice)

    def has_calls(self, choice: int) -> bool:
        """Whether the candidate has calls, as far as is known."""
        return choice in self._calling

    def record(
        self, strand: TextBlock, safety: Literal["safe", "unsafe"], title: str, before: str, event: int | None
    ) -> None:
        self.context.repairs.append(
            self.repair("response", safety, title, strand.start.pointer, event=event, before=before.strip())
        )


class TokenJudge:
    """Decides on one block. `_text` is all of it, `_shift` what was taken off its beginning."""

    def __init__(self, stripper: Stripper, strand: TextBlock) -> None:
        self._stripper = stripper
        self._strand = strand
        self._streamed = stripper.context.streamed
        self._state: Literal["start", "text", "token", "cut", "left"] = "start"
        self._pieces = Pieces()
        self._shift = 0
        self._from = 0
        self._row = (0, 0)
        """The first and the end of the tokens that stand in a row up to the last one that was looked at."""
        self._looks = 0
        self._swallowing = False
        self._dropped: list[str] = []
        self._dropped_size = 0
        self._title = ""
        self._framed: tuple[str, Framing | None] | None = None
        self._event: int | None = None

    def add(self, text: str) -> None:
        strand, start = self._strand, self._strand.length - len(text)
        match self._state:
            case "left":
                strand.sure = strand.length
                return
            case "cut":
                self._drop(text, start)
                return
            case "text" if strand.sure == start and self._is_calm(text):
                self._pieces.add(text)
                strand.sure = strand.length
                return
            case _:
                self._pieces.add(text)
        if self._streamed:
            self._look()
            if strand.length - strand.sure > _LONGEST_LEAD:
                self._state = "left"
                strand.sure = strand.length

    def note(self, text: str) -> bool:
        if self._state == "text":
            self._pieces.add(text)
        return self._state in ("text", "left")

    def pause(self, why: Pause) -> None:
        strand = self._strand
        if self._state == "cut":
            self._stripper.record(strand, "unsafe", self._title, "".join(self._dropped), self._event)
            self._state = "left"
            strand.busy = False
        elif self._state == "start" and why == "close" and self._is_bare():
            return  # a call after it shows that nothing was to be said
        elif self._state != "left":
            self._finish()
            self._state = "text"
        strand.sure = strand.length

    def give_up(self) -> None:
        if self._state != "cut":
            self._state = "left" if self._state == "token" or not self._streamed else self._state
            self._strand.sure = self._strand.length

    def leave(self) -> None:
        if self._state not in ("cut", "left"):
            self._look()
        if self._state != "cut":
            self._state = "left"
            self._strand.sure = self._strand.length

    # --- the text so far ----------------------------------------------------------------------------------------------

    def _text(self) -> str:
        return self._pieces.text()

    def _is_calm(self, text: str) -> bool:
        return not may_hold_token(text)

    # --- decisions ----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        waits = self._begin() if self._state == "start" else None
        if self._state != "start":
            waits = self._watch()
        if self._state == "cut":
            return
        strand = self._strand
        strand.sure = max(strand.sure, strand.length if waits is None else waits + self._shift)

    def _begin(self) -> int | None:
        """Waits for the first thing that is said, then takes off what is certain of the framing before it."""
        text = self._text()
        if len(text) > _LONGEST_LEAD:
            self._state = "text"
            return None
        tokens = find(text)
        end = _lead(text, tokens)
        rest = text[end:].lstrip()
        if not rest or ends_in_token(rest) or (tokens and end and not _DECISIVE.match(text, end) and len(rest) < 32):
            return 0
        if self._is_text and self._stripper.framer.residue_may_come(text):
            return 0
        self._state = "text"
        self._strip_lead(text)
        return None

    @property
    def _is_text(self) -> bool:
        return self._strand.start.kind == "text"

    def _strip_lead(self, text: str) -> None:
        if not self._stripper.safe:
            return
        if self._is_text and (word := self._stripper.framer.residue(text)):
            self._take_off(text, word, repr(text[:word].strip()))
            text = self._text()
        framing = self._stripper.framer.framing(text)
        lead = certain_lead(framing) if framing is not None else ()
        if not lead:
            return
        self._take_off(text, lead[-1].end, _listed(lead))

    def _take_off(self, text: str, end: int, what: str) -> None:
        strand = self._strand
        event = strand.frame_at(self._shift) if self._streamed else None
        self._stripper.record(strand, "safe", f"stripped {what} at the beginning", text[:end], event)
        after = end + len(text[end:]) - len(text[end:].lstrip())
        strand.cut(self._shift, self._shift + after)
        self._pieces.replace(text[after:])
        self._shift += after

    def _watch(self) -> int | None:
        """A token waits for what follows it."""
        text = self._text()
        start = max(self._strand.sure - self._shift, self._from)
        for token in find(text[start:]):
            place, end = start + token.start, start + token.end
            row, before = self._row
            self._row = (place if text[before:place].strip() or not before else row, end)
            if token.strength == "edge" and not self._is_last(text, end):
                continue
            if self._is_last(text, end) or not (_DECISIVE.match(text, end) or len(text) - end >= 32):
                self._state = "token"
                return self._row[0]  # what comes after it decides on those before it, too
            self._looks += 1
            if self._looks > _MOST_LOOKS:
                self._state = "left"
                return None
            match self._cuts(text, place):
                case "yes":
                    return None
                case "later":
                    self._state = "token"
                    return self._row[0]
                case "no":
                    self._from = end
        self._state = "text"
        return _cut_place(text, max(start, self._from))

    @staticmethod
    def _is_last(text: str, end: int) -> bool:
        """Whether nothing but tokens and white space follows so far."""
        rest = text[end:].strip()
        if not rest or ends_in_token(rest) > 0:
            return True
        return rest[0] in TOKEN_FIRSTS and _lead(rest, find(rest)) >= len(rest)

    def _cuts(self, text: str, place: int) -> Literal["yes", "no", "later"]:
        """Cuts the text where the turn was over, if it was. `later`: it stands in code if its backticks come again."""
        framing = self._framing(text) if self._stripper.unsafe else None
        done = remedy(text, framing, streamed=True, calls=False) if framing is not None else None
        if done is None or done.kind != "cut" or framing is None or framing.overrun is None:
            return "no"
        if done.trailing != place:  # another token, which has its own turn
            return "no"
        if open_code(text, place, framing.overrun.end):
            return "later"
        self._cut_at(text, self._end_before(text, done.trailing), framing.overrun.token)
        return "yes"

    def _framing(self, text: str) -> Framing | None:
        """The framing of a text, which many tokens of it ask for in turn; looking for it reads all markup in it."""
        if self._framed is None or self._framed[0] != text:
            self._framed = text, self._stripper.framer.framing(text)
        return self._framed[1]

    def _cut_at(self, text: str, place: int, token: str) -> None:
        strand = self._strand
        start = place + self._shift
        self._event = strand.frame_at(start) if self._streamed else None
        self._title = f"cut the text at {token}"
        self._state = "cut"
        strand.busy = True
        self._drop(text[place:], start)

    def _drop(self, text: str, start: int) -> None:
        strand = self._strand
        strand.cut(start, start + len(text))
        strand.sure = strand.length
        if self._dropped_size < _KEPT:
            self._dropped.append(text)
            self._dropped_size += len(text)

    def _is_bare(self) -> bool:
        """Whether there are tokens and nothing else."""
        text = self._text()
        return bool(text.strip()) and not text[_lead(text, find(text)) :].strip()

    def _finish(self) -> None:
        """The text is over: what waits is decided by all of it."""
        strand, text = self._strand, self._text()
        if self._state == "start":
            self._strip_lead_finally(text)
            text = self._text()
        framing = self._stripper.framer.framing(text)
        if framing is None:
            return
        done = remedy(text, framing, streamed=self._streamed, calls=self._stripper.has_calls(strand.choice))
        sure = strand.sure - self._shift
        if done is None or done.trailing < sure or (done.leading and strand.sure > self._shift):
            return
        if done.kind == "cut":
            if self._stripper.unsafe and framing.overrun is not None:
                self._cut_at(text, self._end_before(text, done.trailing), framing.overrun.token)
                self.pause("stop")
            return
        if not self._stripper.safe or (done.leading == 0 and done.trailing == len(text)):
            return
        edges = [
            edge for edge, there in (("the beginning", done.leading), ("the end", done.trailing < len(text))) if there
        ]
        title = f"stripped {_listed(framing.tokens)} at {' and '.join(edges)}"
        event = strand.frame_at(self._shift + (0 if done.leading else done.trailing)) if self._streamed else None
        gone = "\n".join(filter(None, (text[: done.leading].strip(), text[done.trailing :].strip())))
        self._stripper.record(strand, "safe", title, gone, event)
        kept = done.leading + len(text[done.leading :]) - len(text[done.leading :].lstrip()) if done.leading else 0
        strand.cut(self._shift, self._shift + kept)
        strand.cut(self._shift + done.trailing, self._shift + len(text))

    def _end_before(self, text: str, place: int) -> int:
        """Where the text ends when what is left at a cut is framing again."""
        while (framing := self._stripper.framer.framing(text[:place])) is not None:
            done = remedy(text[:place], framing, streamed=self._streamed, calls=False)
            if done is None or done.trailing >= place or done.trailing < self._strand.sure - self._shift:
                break
            place = done.trailing
        return place

    def _strip_lead_finally(self, text: str) -> None:
        """A beginning that is also the end, or a whole body: edges go together where there is nothing else."""
        framer = self._stripper.framer
        if self._is_text and self._stripper.framer.residue(text):
            self._strip_lead(text)
            return
        framing = framer.framing(text)
        first = framer.split(framing)[0] if framing is not None else None
        if first is not None and self._stripper.safe and text[first.leading :].strip():
            self._take_off(text, first.leading, _listed(first.tokens))


def _lead(text: str, tokens: tuple[Occurrence, ...]) -> int:
    """The end of the tokens at the beginning of a text."""
    end = 0
    for token in tokens:
        if text[end : token.start].strip():
            break
        end = token.end
    return end


def _cut_place(text: str, start: int) -> int | None:
    """Where the end of a text may begin a token."""
    place = ends_in_token(text[max(start, len(text) - _CONTEXT) :])
    return len(text) - place if place else None


def _listed(tokens: tuple[Occurrence, ...]) -> str:
    different = list(dict.fromkeys(token.token for token in tokens))
    more = f" and {len(different) - 4} more" if len(different) > 4 else ""
    return ", ".join(different[:4]) + more
