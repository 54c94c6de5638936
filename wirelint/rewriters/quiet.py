r"""Text in which nothing that any rewriter looks for can begin.

Nearly all text of nearly all replies is prose or code. A rewriter has to know of it, for what it decides later, but not
now: no marker stands in it, and its end is the beginning of none. The chain hands such text to the rewriters later, in one
piece. What counts as quiet is said here, once; whoever makes a rewriter of text that acts on anything else has to say so
here. Two kinds of beginnings are told apart: those that may stand anywhere, and those that open a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from wirelint.dialects import BEGINNINGS
from wirelint.dialects.cuts import heads
from wirelint.dialects.openers import THOUGHT_ENDS, word_start
from wirelint.knowledge.invented import LINE_HEADS
from wirelint.repair import Rewriter

_ANYWHERE = "<[◁"
"""Characters that begin tags and tokens."""
_ESCAPES = "&\\\u200b\u2060\ufeff"
"""Characters that stand for others, or hide between them."""
_TOKENS = ("]~b]",)
"""Tokens of chat templates that hold none of these characters."""
_WORDS = ("to=",)
"""What else begins a token in the middle of a line, as a word."""
_BEFORE_ENDS = f"[{''.join(sorted({end[-2] for end in THOUGHT_ENDS}))}]"
_ENDS = ">]"
"""The last of the markup behind which a text begins anew, and what stands before it; the rest may have gone before."""
_LINE_ENDS = "\n\r\x0b\x0c\x85\u2028\u2029"
_BLANKS = r"[ \t>*#-]*+"
REACH = 12
"""Characters before a text that decide whether something begins in it."""


CLEAR, LOUD = -1, -2


class Quiet:
    """What is quiet where tools of certain names are declared: a line may begin with a name."""

    def __init__(self, names: Iterable[str]) -> None:
        kinds = BEGINNINGS.kinds
        literals = {head for opener in kinds.get("literal", ()) for head in heads(opener)}
        words = {head for opener in kinds.get("word", ()) for head in heads(opener)} | set(_WORDS)
        lines = {head.strip() for opener in kinds.get("line", ()) for head in heads(opener)}
        lines = {head.lstrip("*#> ").casefold() for head in (*lines, *LINE_HEADS, *names)} - {""}
        literals = {head for head in (*literals, *_TOKENS) if head[0] not in _ANYWHERE}
        self._loud = re.compile(_loud(literals, words, cut=True))
        self._whole = re.compile(_loud(literals, words, cut=False))
        # Blanks that open a line belong to what follows them.
        self._line = re.compile(rf"[{_LINE_ENDS}]{_BLANKS}(?:{any_of(lines, cut=True)}|\Z)", re.IGNORECASE)
        self._first = re.compile(rf"{_BLANKS}(?:{any_of(lines, cut=True)}|\Z)", re.IGNORECASE)
        self._opened = re.compile(rf"[{_LINE_ENDS}]?{_BLANKS}{any_of(lines)}", re.IGNORECASE)
        self._ends = re.compile(f"[{_LINE_ENDS}]")

    def __call__(self, text: str, inside: bool, before: str = "") -> int:
        """CLEAR for text that can wait, LOUD for text that cannot; `inside`: it goes on in the middle of a line.

        Between the two: the offset from which on the end of the text may begin something. More text will tell. `before`
        is the end of the text before it, `REACH` characters are enough.
        """
        begun = len(before)
        whole = before + text if before else text
        found = self._loud.search(whole, begun)
        place = CLEAR
        if found is not None:
            if self._whole.match(whole, found.start()) is not None:
                return LOUD
            place = found.start() - begun
        if not inside and text[0] not in _LINE_ENDS and self._first.match(text) is not None:
            return LOUD if self._opened.match(text) is not None else 0
        if self._ends.search(text) is None:
            return place
        line = self._line.search(text.rstrip(_LINE_ENDS))
        if line is None:
            return place
        if self._opened.match(text, line.start()) is not None:
            return LOUD
        return line.start() if place < 0 else min(place, line.start())


def _loud(literals: Iterable[str], words: Iterable[str], *, cut: bool) -> str:
    """A regular expression (source) for what may stand anywhere. Each option begins with a character, so `re` is quick."""
    options = [re.escape(mark) for mark in (*_ANYWHERE, *_ESCAPES)]
    options += [re.escape(end) + rf"(?:(?<=\A{re.escape(end)})|(?<={_BEFORE_ENDS}{re.escape(end)}))" for end in _ENDS]
    options += _options(literals, cut=cut).values()
    for first, rest in _options(words, cut=cut).items():
        options.append(first + word_start(first) + rest.removeprefix(first))
    return "|".join(options)


def any_of(literals: Iterable[str], *, cut: bool = False) -> str:
    """A regular expression (source) for any of some literals; with `cut`, also a beginning of one that ends the text."""
    return f"(?:{'|'.join(_options(literals, cut=cut).values()) or '(?!)'})"


def _options(literals: Iterable[str], *, cut: bool) -> dict[str, str]:
    """The same by the first character (source), as far as a literal that is a beginning of others tells of these, too."""
    rests: dict[str, list[str]] = {}
    for literal in sorted(literals):
        rests.setdefault(re.escape(literal[0]), []).append(literal[1:])
    return {first: first + _rest(some, cut=cut) for first, some in rests.items()}


def _rest(rests: Sequence[str], *, cut: bool) -> str:
    if "" in rests:
        return ""
    options = [*_options(rests, cut=cut).values(), *((r"\Z",) if cut else ())]
    return f"(?:{'|'.join(options)})"


@lru_cache(maxsize=64)
def quiet(names: frozenset[str]) -> Quiet:
    return Quiet(names)


def in_line(text: str, before: bool) -> bool:
    """Whether a line has begun with more than white space, after `text`; `before` says whether one had."""
    line = text.rpartition("\n")[2]
    return bool(line.strip()) or (before and line is text)


def is_patient(rewriter: Rewriter) -> bool:
    """Whether a rewriter may get quiet text late: it says so, or text is nothing to it at all."""
    return getattr(rewriter, "patient", False) or not getattr(rewriter, "heeds_text", True)
