"""The framing of a turn in a reply's text, and the tokens that a fix may remove.

Theory of operation. `control_tokens` finds the tokens that frame a text. The request overrides that: tokens that it holds
or asks about do not count, and neither does markup of other rules. A framing has two parts: tokens at the start that
are certain for any text after them, and the rest, which depends on the whole text. So a stream can remove the first
part before the second one is known.
"""

from __future__ import annotations

import bisect
import functools
from dataclasses import dataclass
from typing import Literal

from wirelint.apis.traits import is_raw
from wirelint.model import Exchange, Request
from wirelint.text import control_tokens, thinking
from wirelint.text.asking import asks_about_calls, asks_about_tokens, asks_for_dialogue, request_holds
from wirelint.text.control_tokens import Framing, Occurrence
from wirelint.text.markup import call_spans
from wirelint.text.quoting import is_mention

_PROMPT_END = 200
_HEADER = 30
"""Upper bound for the characters of a turn's header after its first token."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A possible fix: `strip` the edges of the text, or `cut` it at `trailing`. The kept text lies between the offsets."""

    kind: Literal["strip", "cut"]
    leading: int
    trailing: int


class Framer:
    """Finder of framing in the texts of one exchange. `framing` also accepts a text that is still arriving."""

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
        """Return True if a raw prompt ends with the header of another speaker's turn, which the model continues."""
        last = self._request.messages[-1].text[-_PROMPT_END:] if self._request.messages else ""
        for token in reversed(control_tokens.find(last)):
            if token.token in control_tokens.OPENS:
                return token.other_speaker and len(last[token.end :].strip()) <= _HEADER
        return False

    @functools.cached_property
    def labels(self) -> bool:
        """Return True if the label of a speaker at a line start is framing: the request wants no text with speakers."""
        asks = self._raw or asks_for_dialogue(self._request)
        return not (asks or request_holds(self._request, "ASSISTANT:", "Human:"))

    def framing(self, text: str, *, thoughts: bool = False) -> Framing | None:
        """Return the unwanted tokens that frame a text; with `thoughts` also the delimiters of reasoning.

        `think-leak` moves reasoning with its delimiters; one delimiter removed alone would hide the reasoning.
        """
        if not control_tokens.may_hold_token(text):
            return None
        if self._read[0] is not text:  # the rule asks twice for one text
            self._read = (text, without_mentions(text, control_tokens.find(text)))
        tokens = self._read[1]
        if not tokens:
            return None
        covered = tuple(call_spans(text, self._request))
        frames = covered if thoughts else (*covered, *_frame_of_a_thought(text, tokens, covered))
        tokens = tuple(token for token in tokens if not _is_inside(token, tuple(sorted(frames))))
        framing = control_tokens.frame(text, tokens if self._raw else self.not_in_request(text, tokens))
        if framing is None:
            return None
        # No explanation of tokens contains the turn of another speaker.
        if (self._asked or self._raw) and not any(token.other_speaker for token in framing.tokens):
            return None
        return None if self._raw and self._plays_other else framing

    def residue(self, text: str) -> int:
        """Return the length of a role's name at the start of a text, left when the tokens around it were removed."""
        word = control_tokens.residue(text, self._model)
        return word if word and (not control_tokens.is_label(text) or self.labels) else 0

    def may_become_residue(self, text: str) -> bool:
        framed = not control_tokens.is_label(text) or self.labels
        return framed and control_tokens.may_become_residue(text, self._model)

    def not_in_request(self, text: str, tokens: tuple[Occurrence, ...]) -> tuple[Occurrence, ...]:
        for token in tokens:
            if token.token not in self._heard:
                self._heard[token.token] = request_holds(self._request, token.token, text[token.start : token.end])
        return tuple(token for token in tokens if not self._heard[token.token])

    def split(self, framing: Framing) -> tuple[Framing | None, Framing | None]:
        """Return the certain tokens at the start, and the rest."""
        lead = certain_lead(framing)
        rest = framing.tokens[len(lead) :]
        simple = framing.at_edges and framing.overrun is None and not any(token.announces for token in framing.tokens)
        if not lead or simple or self._asked or self._raw:
            return None, framing
        end = lead[-1].end
        first = Framing(lead, end, max(framing.trailing, end))
        return first, Framing(rest, framing.leading, framing.trailing) if rest else None


def without_mentions(text: str, tokens: tuple[Occurrence, ...]) -> tuple[Occurrence, ...]:
    """Return the tokens without mentions, and without the closers of pairs that begin with one (`write <s>old</s>`)."""
    kept: list[Occurrence] = []
    shown: set[str] = set()
    for token in tokens:
        if is_mention(text, token.start, token.end):
            shown.add(token.token)
        elif token.strength != "edge" or control_tokens.PARTNERS.get(token.token) not in shown:
            kept.append(token)
    return tuple(kept)


def certain_lead(framing: Framing) -> tuple[Occurrence, ...]:
    """Return the tokens at the start that are framing for any text after them."""
    lead = [token for token in framing.tokens if token.end <= framing.leading]
    for place, token in enumerate(lead):
        beside = [other for other in lead[max(place - 1, 0) : place + 2] if other.token != token.token]
        in_a_row = any(other.strength == "sure" or control_tokens.fits(token.token, other.token) for other in beside)
        if (token.strength == "edge" and not in_a_row) or token.announces or token.other_speaker:
            return tuple(lead[:place])
    return tuple(lead)


def remedy(text: str, framing: Framing, *, streamed: bool, calls: bool) -> Remedy | None:
    """Return the possible fix of a framing; None without one.

    `streamed`: the text before a doubtful token has been sent. `calls`: the candidate calls tools, so its text may be
    empty.
    """
    overrun = framing.overrun
    if any(token.announces and (overrun is None or token.start <= overrun.start) for token in framing.tokens):
        return None  # a call or reasoning follows: without the token it would pass for the answer
    if not text[framing.leading : framing.trailing].strip():
        return Remedy("strip", 0, 0) if calls and overrun is None else None
    leading = sum(token.end <= framing.leading for token in framing.tokens)
    doubtful = streamed and len(certain_lead(framing)) < leading
    if overrun is None:
        return Remedy("strip", framing.leading, framing.trailing) if framing.at_edges and not doubtful else None
    if not text[: overrun.start].strip() or (streamed and overrun.strength != "sure"):
        return None
    return Remedy("cut", 0, overrun.start)


def _frame_of_a_thought(
    text: str, tokens: tuple[Occurrence, ...], covered: tuple[tuple[int, int], ...]
) -> list[tuple[int, int]]:
    """Return the spans of the delimiters of reasoning.

    Tokens directly after them are included: `<|end|><|start|>assistant<|channel|>final<|message|>`.
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
