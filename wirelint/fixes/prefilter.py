r"""Text in which nothing that any rewriter looks for can begin.

Nearly all text of nearly all replies is prose or code. A rewriter has to know of it, for what it decides later, but not
now: no marker stands in it, and its end is the beginning of none. The chain hands such text to the rewriters later, in one
piece. What counts as quiet is said here, once; whoever makes a rewriter of text that acts on anything else has to say so
here. Two kinds of beginnings are told apart: those that may stand anywhere, and those that open a line. Of brackets, of
which code is full, it is told by what follows them whether they can begin anything (`marks`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache, lru_cache

from wirelint.dialects import OPENERS, may_begin
from wirelint.dialects.openers import NO_TAG, THOUGHT_ENDS, goes_on, has_name, heads, word_start
from wirelint.dialects.views import ZERO_WIDTH, plain_view
from wirelint.fix import Rewriter
from wirelint.text.control_tokens import may_become_token
from wirelint.text.fabricated_results import LINE_HEADS, may_become_marker
from wirelint.text.prose import Cues
from wirelint.text.thinking import may_become_tag

# What stands at a bracket: most of them begin nothing that any rewriter looks for.
#
# Theory of operation. Code, HTML and Markdown are full of brackets, and so is markup that leaks. What follows a bracket, up
# to the end of the first word, tells nearly all of the former from all of the latter. Whether it does is asked of the very
# patterns by which the rewriters find their markers, as a beginning of which that little text may stand or not; and since
# the same few words stand behind the brackets of a text again and again, it is seldom asked twice.

MARKS = "<["
"""The brackets that are told so."""
_PIECE = re.compile(r"[<\[][<\[ \t/]{0,3}([\w:.-]{0,64})(?![\w:.-])[\s\S]?")
"""As much of a text as is looked at: blanks, or the sign of an end, a word, and the character behind it."""
_BEFORE_NAMES = {head[0] for opener in OPENERS.kinds["literal"] if has_name(opener) for head in heads(opener)}


def look(text: str, at: int, names: Collection[str]) -> bool | None:
    """Whether something may begin at a bracket, where tools of certain names are declared. None: more text will tell."""
    piece = _PIECE.match(text, at)
    if piece is None:
        return True
    word, end = piece[1], piece.end()
    cut = end == len(text) and end == piece.end(1)
    named = text[at] in _BEFORE_NAMES and (word in names or (cut and any(name.startswith(word) for name in names)))
    if not named and _begins_nothing(piece[0]):
        return False
    return None if cut else True


@lru_cache(maxsize=4096)
def _begins_nothing(piece: str) -> bool:
    shadow = plain_view(piece).shadow
    if may_begin(shadow):
        return False
    return not (may_become_token(shadow) or may_become_tag(shadow) or may_become_marker(shadow))


_ANYWHERE = "◁" + MARKS + ZERO_WIDTH
"""Characters that begin tags and tokens, and such as hide between them."""
_ESCAPES = ("&lt", "&#", '\\"', "\\/", "\\u")
"""What escapes of markup begin with (`dialects.views`)."""
_CUT_ESCAPES = (r"&[0-9a-zA-Z]{0,7}\Z", r"\\\Z")
"""Any escape (source) that the end of a text may cut off: it is held there."""
_ESCAPED_LINE = "\\n"
"""An escape as well, but of markup only behind the end of a tag, with no more blanks between them than these."""
_BLANKS_BEFORE = 4
_TOKENS = ("]~b]",)
"""Tokens of chat templates that hold none of these characters."""
_WORDS = ("to=",)
"""What else begins a token in the middle of a line, as a word."""
_TAILS = sorted({end[-5:] for end in THOUGHT_ENDS})
"""The last of the markup behind which a text begins anew: enough to tell it from nearly all else."""
_ENDS = "".join(sorted({tail[-1] for tail in _TAILS}))
_QUOTE = '"'
_LINE_ENDS = "\n\r\x0b\x0c\x85\u2028\u2029"
_LINE_END = re.compile(f"[{_LINE_ENDS}]")
_BLANKS = re.compile(r"[ \t>*#-]*")
"""Blanks that open a line belong to what follows them."""
REACH = 12
"""Characters before a text that decide whether something begins in it."""


CLEAR, LOUD = -1, -2


class _Heads:
    """What a line may begin with, whatever its case, behind blanks.

    Looked up by its first character: as a regular expression, the names of a hundred tools take 50 ms to compile.
    """

    def __init__(self, heads: Iterable[str]) -> None:
        self._by_first: dict[str, tuple[str, ...]] = {}
        self._longest = 0
        for head in heads:
            self._add(head)

    def _add(self, head: str) -> None:
        plain = _folded(head.lstrip("*#> "))
        if plain:
            self._by_first[plain[0]] = (*self._by_first.get(plain[0], ()), plain)
            self._longest = max(self._longest, len(plain))

    def with_names(self, names: Iterable[str]) -> _Heads:
        heads = _Heads(())
        heads._by_first, heads._longest = self._by_first.copy(), self._longest
        for name in names:
            heads._add(name)
        return heads

    def stands(self, text: str, at: int) -> bool:
        """Whether one of them stands in a line that begins here."""
        _, line = self._line(text, at)
        return bool(line) and line.startswith(self._by_first.get(line[0], ()))

    def may_stand(self, text: str, at: int) -> bool:
        """The same, or the text ends before that can be told."""
        start, line = self._line(text, at)
        if not line:
            return True
        heads = self._by_first.get(line[0])
        if heads is None:
            return False
        cut = start + self._longest > len(text)
        return line.startswith(heads) or (cut and any(head.startswith(line) for head in heads))

    def _line(self, text: str, at: int) -> tuple[int, str]:
        """Where a line goes on behind its blanks, and as much of it as may be a head."""
        blanks = _BLANKS.match(text, at)
        start = blanks.end() if blanks is not None else at
        return start, _folded(text[start : start + self._longest])


class Quiet:
    """What is quiet where tools of certain names are declared: a line may begin with a name."""

    def __init__(self, names: Iterable[str]) -> None:
        self._loud, self._whole, self._cues, self._marks, heads = _beginnings()
        self._names = frozenset(names)
        self._heads = heads.with_names(self._names)
        self.may_begin = self._loud.search
        """Where something may begin in a text that goes on in the middle of a line and ends in the same; from an offset on,
        before which its own `REACH` characters stand."""

    def may_hold(self, text: str) -> bool:
        """Whether a whole text may hold anything that is not quiet: a much quicker look at a long one."""
        if text[:1] in _ENDS or self._cues.stand_in(text) or self._heads.stands(text, 0):
            return True
        if self._marks.stand_in(text):
            for mark in _MARK.finditer(text):
                if mark[0] not in MARKS or look(text, mark.start(), self._names) is not False:
                    return True
        stands, at = self._heads.stands, 0
        for line in text.splitlines(keepends=True)[:-1]:  # at least where lines end for the look below
            at += len(line)
            if stands(text, at):
                return True
        return False

    def __call__(self, text: str, inside: bool, before: str = "") -> int:
        """CLEAR for text that can wait, LOUD for text that cannot; `inside`: it goes on in the middle of a line.

        Between the two: the offset from which on the end of the text may begin something. More text will tell. `before`
        is the end of the text before it, `REACH` characters are enough.
        """
        begun = len(before)
        whole = before + text if before else text
        place = CLEAR
        for found in self._loud.finditer(whole, begun):
            start = found.start()
            if whole[start] in MARKS:
                begins = look(whole, start, self._names)
                if begins is False:
                    continue
                if begins:
                    return LOUD
            elif self._whole.match(whole, start) is not None:
                return LOUD
            place = start - begun
            break
        heads = self._heads
        if not inside and text[0] not in _LINE_ENDS and heads.may_stand(text, 0):
            return LOUD if heads.stands(text, 0) else 0
        if _LINE_END.search(text) is None:
            return place
        lines = text.rstrip(_LINE_ENDS)
        for end in _LINE_END.finditer(lines):
            if heads.may_stand(lines, end.end()):
                if heads.stands(text, end.end()):
                    return LOUD
                return end.start() if place < 0 else min(place, end.start())
        return place


def _folded(text: str) -> str:
    """A text whose letters are equal where a regular expression without regard to case takes them for equal."""
    return text.lower() if text.isascii() else text.casefold().replace("i\u0307", "i").replace("\u0131", "i")


def _loud(literals: Iterable[str], words: Iterable[str], *, cut: bool) -> str:
    """A regular expression (source) for what may stand anywhere. Each option begins with a character, so `re` is quick."""
    options = [re.escape(mark) for mark in (*_ANYWHERE, *_ESCAPES)]
    options += [*map(_end, _ENDS), _escaped_line(), *(_CUT_ESCAPES if cut else ())]
    options += [NO_TAG * (first == ">") + option for first, option in _options(literals, cut=cut).items()]
    for first, rest in _options(words, cut=cut).items():
        options.append(first + word_start(first) + rest.removeprefix(first))
    return "|".join(options)


def _end(last: str) -> str:
    """A regular expression (source) for where a thought may end. The rest of it may stand in a text before this one."""
    tails = [tail for tail in _TAILS if tail[-1] == last]
    cut = {tail[-size:] for tail in tails for size in range(1, len(tail))}
    behind = [rf"(?<=\A{re.escape(tail)})" for tail in sorted(cut)] + [rf"(?<={re.escape(tail)})" for tail in tails]
    return rf"{re.escape(last)}(?:{'|'.join(behind)})"


def _escaped_line() -> str:
    """The same for the escape of a line end that follows a tag, or may: what stands before it may be in another text."""
    line = re.escape(_ESCAPED_LINE)
    behind = [rf"(?<={first}\s{{{size}}}{line})" for first in (r"\A", ">") for size in range(_BLANKS_BEFORE + 1)]
    return rf"{line}(?:{'|'.join(behind)})"


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


def _heads_of_kinds() -> tuple[set[str], set[str], set[str]]:
    """What begins anything anywhere, as a word, and at the beginning of a line."""
    kinds = OPENERS.kinds
    literals = {head for opener in kinds.get("literal", ()) for head in heads(opener)}
    words = {head for opener in kinds.get("word", ()) for head in heads(opener)} | set(_WORDS)
    lines = {head.strip() for opener in kinds.get("line", ()) for head in heads(opener)}
    return {head for head in (*literals, *_TOKENS) if head[0] not in _ANYWHERE}, words, lines


@cache
def _beginnings() -> tuple[re.Pattern[str], re.Pattern[str], Cues, Cues, _Heads]:
    """What is loud, or may become so; what is loud, and strings of which one stands in whatever is; those that tell only
    where to look; what a line may begin with. All of it whatever tools there are."""
    literals, words, lines = _heads_of_kinds()
    return (
        re.compile(_loud(literals, words, cut=True)),
        re.compile(_loud(literals, words, cut=False)),
        Cues(*sorted({*_ANYWHERE}.difference(MARKS)), *_ESCAPES, *sorted(literals | words), *_TAILS),
        Cues(*MARKS, _ESCAPED_LINE),
        _Heads(sorted((*lines, *LINE_HEADS))),
    )


@cache
def still() -> bytes:
    """What fits text in JSON in which nothing begins, whatever stands before it in its line: a regular expression (source).

    It holds no character but ASCII and no escape, none with which anything begins, and no word that may become one of
    those that do. That is most of prose, cut as models cut it.
    """
    literals, words, _ = _heads_of_kinds()
    marks = {head[0] for head in (*literals, *_ANYWHERE, *_ESCAPES, *_ENDS) if head[0].isascii()}
    begun = {first: option.replace(r"\Z", _QUOTE) for first, option in _options(words, cut=True).items()}
    firsts = "".join(sorted(begun))
    none = rf"{_QUOTE}\\\x00-\x1f\x7f-\xff{re.escape(''.join(sorted(marks)))}{firsts}"
    word = rf"(?:(?<=\w)|{goes_on(_QUOTE)}|(?!{'|'.join(sorted(begun.values()))}))[{firsts}]"
    return rf"(?:[^{none}]++|{word})++".encode("ascii")


_MARK = re.compile(rf"[{re.escape(MARKS)}]|{_escaped_line()}")
"""What in a text is told by what stands around it."""


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
