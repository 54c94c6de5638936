"""The framing of a turn in a reply's text, and what a fix may take off.

Theory of operation. `control_tokens` finds tokens and tells which of them frame a text; here the request has its say:
what it holds itself, what it asks about, and markup that is another rule's business do not count. A framing is then cut
in two: the tokens at the beginning that are certain by themselves, whatever follows, and the rest, which the whole text
decides on. That is how a stream can take off the former before it knows the latter.
"""

from __future__ import annotations

import bisect
import functools
from dataclasses import dataclass
from typing import Literal

from wirelint.apis.traits import is_raw
from wirelint.model import Exchange, Request
from wirelint.text import thinking
from wirelint.text.asking import asks_about_calls, asks_about_tokens, asks_for_dialogue, hears
from wirelint.text.control_tokens import (
    OPENS,
    PARTNERS,
    Framing,
    Occurrence,
    find,
    fits,
    frame,
    is_label,
    may_hold_token,
    residue,
    residue_may_come,
)
from wirelint.text.markup import call_spans
from wirelint.text.quoting import is_mention

_PROMPT_END = 200
_HEADER = 30
"""Characters that may stand in the header of a turn behind its first token."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A possible fix: `strip` the edges of the text off, or `cut` it at `trailing`. Offsets of the text that stays."""

    kind: Literal["strip", "cut"]
    leading: int
    trailing: int


class Framer:
    """Judge of the texts of one exchange. `framing` also takes a text that is not over yet."""

    def __init__(self, exchange: Exchange, request: Request) -> None:
        self._request = request
        self._model = exchange.model
        self._raw = is_raw(exchange.api, exchange.request)
        self._heard: dict[str, bool] = {}
        self._read: tuple[str, tuple[Occurrence, ...]] = ("", ())

    @functools.cached_property
    def _asked(self) -> bool:
        return asks_about_tokens(self._request) or asks_about_calls(self._request)

    @functools.cached_property
    def _plays_other(self) -> bool:
        """Return True if a raw prompt ends where another than the assistant is to speak, so that the model goes on as that
        one.
        """
        last = self._request.messages[-1].text[-_PROMPT_END:] if self._request.messages else ""
        for token in reversed(find(last)):
            if token.token in OPENS:
                return token.other_speaker and len(last[token.end :].strip()) <= _HEADER
        return False

    @functools.cached_property
    def labels(self) -> bool:
        """Return True if the name of a speaker that begins a line is framing: nobody asked for a text with speakers."""
        return (
            not self._raw and not asks_for_dialogue(self._request) and not hears(self._request, "ASSISTANT:", "Human:")
        )

    def framing(self, text: str, *, thoughts: bool = False) -> Framing | None:
        """Return the tokens of a text that frame it and that nobody asked for; with `thoughts` the marks of one as well.

        These go with it when it is moved (`think-leak`); one of them alone taken off would hide what it is.
        """
        if not may_hold_token(text):
            return None
        tokens = self._tokens(text)
        if not tokens:
            return None
        covered = tuple(call_spans(text, self._request))
        frames = covered if thoughts else (*covered, *_frame_of_a_thought(text, tokens, covered))
        tokens = tuple(token for token in tokens if not _is_inside(token, tuple(sorted(frames))))
        framing = frame(text, tokens if self._raw else self.unheard(text, tokens))
        if framing is None or ((self._asked or self._raw) and not runs_on(framing)):
            return None
        return None if self._raw and self._plays_other else framing

    def _tokens(self, text: str) -> tuple[Occurrence, ...]:
        """Return the tokens of a text that are no mentions. The last text is kept: two callers ask for it."""
        if self._read[0] is not text:
            self._read = (text, unspoken(text, find(text)))
        return self._read[1]

    def residue(self, text: str) -> int:
        """Return the length of a role's name that begins a text because the tokens around it were taken out."""
        word = residue(text, self._model)
        return word if word and (not is_label(text) or self.labels) else 0

    def residue_may_come(self, text: str) -> bool:
        return residue_may_come(text, self._model) and (not is_label(text) or self.labels)

    def unheard(self, text: str, tokens: tuple[Occurrence, ...]) -> tuple[Occurrence, ...]:
        """Tokens that the request does not hold; asked once for each spelling."""
        for token in tokens:
            if token.token not in self._heard:
                self._heard[token.token] = hears(self._request, token.token, text[token.start : token.end])
        return tuple(token for token in tokens if not self._heard[token.token])

    def split(self, framing: Framing) -> tuple[Framing | None, Framing | None]:
        """Return the certain tokens at the beginning, and the rest."""
        lead = certain_lead(framing)
        rest = framing.tokens[len(lead) :]
        simple = framing.at_edges and framing.overrun is None and not any(token.announces for token in framing.tokens)
        if not lead or simple or self._asked or self._raw:
            return None, framing
        end = lead[-1].end
        first = Framing(lead, end, max(framing.trailing, end))
        return first, Framing(rest, framing.leading, framing.trailing) if rest else None


def unspoken(text: str, tokens: tuple[Occurrence, ...]) -> tuple[Occurrence, ...]:
    """Return the tokens that are no mention, nor the other half of a pair that begins with one (`write <s>old</s>`)."""
    kept: list[Occurrence] = []
    shown: set[str] = set()
    for token in tokens:
        if is_mention(text, token.start, token.end):
            shown.add(token.token)
        elif token.strength != "edge" or PARTNERS.get(token.token) not in shown:
            kept.append(token)
    return tuple(kept)


def certain_lead(framing: Framing) -> tuple[Occurrence, ...]:
    """Return the tokens at the beginning that are framing whatever follows."""
    lead = [token for token in framing.tokens if token.end <= framing.leading]
    for place, token in enumerate(lead):
        beside = [other for other in lead[max(place - 1, 0) : place + 2] if other.token != token.token]
        in_a_row = any(other.strength == "sure" or fits(token.token, other.token) for other in beside)
        if (token.strength == "edge" and not in_a_row) or token.announces or token.other_speaker:
            return tuple(lead[:place])
    return tuple(lead)


def remedy(text: str, framing: Framing, *, streamed: bool, calls: bool) -> Remedy | None:
    """Return the possible fix of a framing; None when there is none.

    `streamed`: the beginning has gone out before its doubtful tokens are decided on, and the text before a doubtful one
    where the next speaker begins. `calls`: the candidate calls tools, so that its text may be empty.
    """
    overrun = framing.overrun
    if any(token.announces and (overrun is None or token.start <= overrun.start) for token in framing.tokens):
        return None  # what follows is a call or a thought: without the token it would pass for the answer
    if not text[framing.leading : framing.trailing].strip():
        return Remedy("strip", 0, 0) if calls and overrun is None else None
    leading = sum(token.end <= framing.leading for token in framing.tokens)
    doubtful = streamed and len(certain_lead(framing)) < leading
    if overrun is None:
        return Remedy("strip", framing.leading, framing.trailing) if framing.at_edges and not doubtful else None
    if not text[: overrun.start].strip() or (streamed and overrun.strength != "sure"):
        return None
    return Remedy("cut", 0, overrun.start)


def runs_on(framing: Framing) -> bool:
    """Return True if somebody else begins to speak: nobody who explains tokens does that."""
    return any(token.other_speaker for token in framing.tokens)


def _frame_of_a_thought(
    text: str, tokens: tuple[Occurrence, ...], covered: tuple[tuple[int, int], ...]
) -> list[tuple[int, int]]:
    """Return the spans of a thought's marks.

    The tokens directly behind belong to them: `<|end|><|start|>assistant<|channel|>final<|message|>`.
    """
    found = thinking.find(text, tuple(end for _, end in covered)) if tokens else None
    if found is None or not found.native:
        return []
    start, end = found.body[1], found.end
    for token in tokens:
        if token.start >= end and not text[end : token.start].strip():
            end = token.end
    return [(found.start, found.body[0]), *([(start, end)] if found.whole else [])]


def _is_inside(token: Occurrence, spans: tuple[tuple[int, int], ...]) -> bool:
    place = bisect.bisect_right(spans, token.start, key=lambda span: span[0]) - 1
    return place >= 0 and token.start < spans[place][1]
