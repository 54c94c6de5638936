"""Fix for `control-token-leak`: tokens of chat templates are removed from the edges of a text, and text after an end of
turn.

Theory of operation. At the beginning, white space, tokens and text that may become a token wait for the first word;
then tokens that are certain by themselves are removed (`<|im_start|>assistant\\nHello`). Later, a token waits for the
next text. If none follows, it is at the end and is removed when the text ends. If more text follows, the turn was over;
under `unsafe` everything after the token is cut: `Done.<|im_end|>\\n<|im_start|>user\\nThanks`. At the end of the text,
the function that the rule uses decides on all undecided text, given the whole text.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from wirelint.fix import RewriteContext
from wirelint.fixes.promote_markup import open_code
from wirelint.fixes.text import MakeRepair, Pause, TextBlock, TextBuffer, TextDecider, TextRewriter
from wirelint.model import Request
from wirelint.text import control_tokens
from wirelint.text.control_tokens import Framing, Occurrence, cut_token_length, end_of_lead, find, may_hold_token
from wirelint.text.escaping import listed
from wirelint.text.framing import Framer, Remedy, certain_lead, remedy
from wirelint.text.quoting import may_become_mention

_DECISIVE = re.compile(r"\s*\S{1,64}(?:\s+\S|<)|\s*\S{16}|\s{64}")
"""Text after a token that decides on it: a word and the character after it, as in `... and <|eot_id|>`."""
_FENCE_LINE = re.compile(r" {0,3}`{3,}[^`\n]*\Z")
"""A line that begins a fence, as far as it has arrived."""
_CONTEXT = 96
_KEPT = 4096
_LONGEST_LEAD = 1024
"""Characters at the beginning or at the end of a text that may be tokens."""
_MOST_LOOKS = 64
"""Tokens of one text that are examined; a text with more of them is about tokens."""


class TokenDecider(TextDecider):
    """Decides on one block.

    States: `start` before the first word, `text` after it, `token` while a token waits, `cut` while everything is removed.
    `_buffer` is the text without the `_shift` characters removed at its beginning.
    Tokens before `_from` are kept; `_row` is the start of the last row of tokens and the end of its last token so far.
    """

    def __init__(self, stripper: TokenStripper, block: TextBlock) -> None:
        super().__init__(stripper, block)
        self._stripper = stripper
        self._framer = stripper.framer
        self._state: Literal["start", "text", "token", "cut"] = "start"
        self._buffer = TextBuffer()
        self._shift = self._from = self._looks = 0
        self._row = (0, 0)
        self._dropped = self._title = ""
        self._framed: tuple[str, Framing | None] | None = None
        self._event: int | None = None

    def add(self, text: str) -> None:
        block = self.block
        start = block.length - len(text)
        if self._state == "cut":
            self._drop(text, start)
        else:
            self._buffer.add(text)
            if self._state == "text" and block.sure == start and not may_hold_token(text):
                self.let_go()
            elif self.streamed:
                self._look()
                if block.length - block.sure > _LONGEST_LEAD:
                    self.abandon(f"more than {_LONGEST_LEAD:,} characters of tokens were released unchanged")

    def pause(self, why: Pause) -> None:
        text = self._buffer.text() if self._state == "start" and why == "close" else ""
        if text.strip() and not text[end_of_lead(text, find(text)) :].strip():
            return  # only tokens so far: a call after them shows that no text was intended
        if self._state != "cut":
            self._state = "cut" if self._finish() else "text"
        if self._state == "cut" and why != "other":  # a call is no end: text after it is cut too
            self._record("unsafe", self._title, self._dropped, self._event)
            self.left, self.block.busy = True, False
        self.let_go()

    def give_up(self) -> None:
        if self._state != "cut":
            self.left = self._state == "token" or not self.streamed
            self.let_go()

    def leave(self) -> None:
        if self._state != "cut":
            self._look()
        if self._state != "cut":
            self.stop()

    # --- the beginning ------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        waits = self._begin() if self._state == "start" else None
        if self._state != "start":
            waits = self._watch()
        if self._state != "cut":
            block = self.block
            block.sure = max(block.sure, block.length if waits is None else waits + self._shift)

    def _begin(self) -> int | None:
        """Wait for the first word, then remove certain tokens before it. Return the offset from which text waits."""
        text = self._buffer.text()
        if len(text) > _LONGEST_LEAD:
            self._state = "text"
            return None
        tokens = find(text)
        end = end_of_lead(text, tokens)
        rest = text[end:].lstrip()
        if not rest or cut_token_length(rest) or (tokens and end and not _DECISIVE.match(text, end) and len(rest) < 32):
            return 0
        if self._is_text and self._framer.may_become_residue(text):
            return 0
        self._state = "text"
        self._strip_lead(text)
        return None

    @property
    def _is_text(self) -> bool:
        return self.block.start.kind == "text"

    def _strip_lead(self, text: str) -> None:
        if not self._stripper.safe:
            return
        if self._is_text and (word := self._framer.residue(text)):  # a header without its tokens: `assistant\n`
            self._take_off(text, word, repr(text[:word].strip()))
            text = self._buffer.text()
        framing = self._framer.framing(text)
        lead = certain_lead(framing) if framing is not None else ()
        if lead:
            self._take_off(text, lead[-1].end, named(lead))

    def _take_off(self, text: str, end: int, what: str) -> None:
        self._record("safe", f"stripped {what} at the beginning", text[:end], self.event_at(self._shift))
        after = end + len(text[end:]) - len(text[end:].lstrip())
        self.block.cut(self._shift, self._shift + after)
        self._buffer.replace(text[after:])
        self._shift += after

    # --- tokens in the middle -----------------------------------------------------------------------------------------

    def _watch(self) -> int | None:
        """Decide on tokens that are followed by text. Return the offset from which text waits."""
        text = self._buffer.text()
        start = max(self.block.sure - self._shift, self._from)
        for token in find(text[start:]):
            place, end = start + token.start, start + token.end
            row, before = self._row
            self._row = (place if text[before:place].strip() or not before else row, end)
            last = _is_last(text, end)
            if token.strength == "edge" and not last:
                continue
            if last or not (_DECISIVE.match(text, end) or len(text) - end >= 32):
                self._state = "token"
                return self._row[0]  # the text after it decides on the tokens before it too
            self._looks += 1
            if self._looks > _MOST_LOOKS:
                self.abandon(f"more than {_MOST_LOOKS} control tokens in one text; the rest was left unchanged")
                return None
            match self._cuts(text, place, token):
                case "yes":
                    return None
                case "later":
                    self._state = "token"
                    return self._row[0]
                case "no":
                    self._from = end
        self._state = "text"
        tail = cut_token_length(text[max(start, self._from, len(text) - _CONTEXT) :])
        return len(text) - tail if tail else None

    def _cuts(self, text: str, place: int, token: Occurrence) -> Literal["yes", "no", "later"]:
        """Cut the text at a token if the turn was over there. `later`: text that follows may quote the token."""
        if token.announces or not (token.ends_turn or token.other_speaker):
            return "no"  # no overrun begins with it
        if _FENCE_LINE.match(text, text.rfind("\n", 0, place) + 1):
            return "later"  # backticks in the rest of the line would make it no beginning of a fence
        # The framing is computed once for all tokens of a text, since it reads all markup.
        if self._stripper.unsafe and (self._framed is None or self._framed[0] != text):
            self._framed = text, self._framer.framing(text)
        framing = self._framed[1] if self._framed is not None else None
        done = remedy(text, framing, streamed=True, calls=False) if framing is not None else None
        if done is None or done.kind != "cut" or framing is None or framing.overrun is None:
            return "no"
        if done.trailing != place:  # another token
            return "no"
        last = framing.overrun
        if open_code(text, place, last.end) or may_become_mention(text, last.start, last.end):
            return "later"
        self._cut_at(text, self._end_before(text, done.trailing), last.token)
        return "yes"

    def _cut_at(self, text: str, place: int, token: str) -> None:
        start = place + self._shift
        self._event = self.event_at(start)
        self._title = f"cut the text at {token}"
        self._state = "cut"
        self._stripper.context.over[self.block.number] = start
        self.block.busy = True
        self._drop(text[place:], start)

    def _drop(self, text: str, start: int) -> None:
        self.block.cut(start, start + len(text))
        self.let_go()
        if len(self._dropped) < _KEPT:
            self._dropped += text

    # --- the end ------------------------------------------------------------------------------------------------------

    def _finish(self) -> bool:
        """Decide on all waiting text, given the whole text. Return True if the text is cut."""
        block, text = self.block, self._buffer.text()
        if self._state == "start":
            self._strip_whole_lead(text)
            text = self._buffer.text()
        framing = self._framer.framing(text)
        if framing is None:
            return False
        done = remedy(text, framing, streamed=self.streamed, calls=self._stripper.has_calls(block.choice))
        if done is None or done.trailing < block.sure - self._shift or (done.leading and block.sure > self._shift):
            return False
        if done.kind == "cut":
            if self._stripper.unsafe and framing.overrun is not None:
                self._cut_at(text, self._end_before(text, done.trailing), framing.overrun.token)
            return self._state == "cut"
        if not self._stripper.safe or (done.leading == 0 and done.trailing == len(text)):
            return False
        title = f"stripped {named_edges(text, framing, done)}"
        event = self.event_at(self._shift + (0 if done.leading else done.trailing))
        gone = "\n".join(filter(None, (text[: done.leading].strip(), text[done.trailing :].strip())))
        self._record("safe", title, gone, event)
        kept = done.leading + len(text[done.leading :]) - len(text[done.leading :].lstrip()) if done.leading else 0
        block.cut(self._shift, self._shift + kept)
        block.cut(self._shift + done.trailing, self._shift + len(text))
        return False

    def _end_before(self, text: str, place: int) -> int:
        """Return the new end of the text if the text before a cut ends in tokens as well."""
        while (framing := self._framer.framing(text[:place])) is not None:
            done = remedy(text[:place], framing, streamed=self.streamed, calls=False)
            if done is None or done.trailing >= place or done.trailing < self.block.sure - self._shift:
                break
            place = done.trailing
        return place

    def _strip_whole_lead(self, text: str) -> None:
        """Strip the beginning of a text that is over. Tokens at both edges go together if there is nothing else."""
        if self._is_text and self._framer.residue(text):
            self._strip_lead(text)
            return
        framing = self._framer.framing(text)
        first = self._framer.split(framing)[0] if framing is not None else None
        if first is not None and self._stripper.safe and text[first.leading :].strip():
            self._take_off(text, first.leading, named(first.tokens))

    def _record(self, safety: Literal["safe", "unsafe"], title: str, before: str, event: int | None) -> None:
        self._stripper.record(self.block, title, event=event, before=before.strip(), safety=safety)


def _is_last(text: str, end: int) -> bool:
    """Return True if only tokens and white space follow so far."""
    rest = text[end:].strip()
    if not rest or cut_token_length(rest) > 0:
        return True
    return rest[0] in control_tokens.TOKEN_FIRSTS and end_of_lead(rest, find(rest)) >= len(rest)


def named(tokens: tuple[Occurrence, ...]) -> str:
    """Return the different tokens, at most four of them by name."""
    return listed(list(dict.fromkeys(token.token for token in tokens)), 4)


def named_edges(text: str, framing: Framing, done: Remedy) -> str:
    """Return the tokens of a text and the edges at which a fix strips them: `<|im_end|> at the end`."""
    edges = (("the beginning", done.leading > 0), ("the end", done.trailing < len(text)))
    return f"{named(framing.tokens)} at {' and '.join(edge for edge, there in edges if there)}"


class TokenStripper(TextRewriter):
    """Removes tokens from the texts of a reply. `safe`, `unsafe`: the fixes that are permitted."""

    phase: ClassVar[float] = 3.2
    kinds = ("text", "reasoning", "refusal")
    decider = TokenDecider

    def __init__(
        self, context: RewriteContext, request: Request, repair: MakeRepair, *, safe: bool, unsafe: bool
    ) -> None:
        super().__init__(context, repair)
        self.framer = Framer(context.exchange, request)
        self.safe, self.unsafe = safe, unsafe
