r"""Prefilter of a reply's text: it proves that no fix can begin in a piece of text.

Nearly all text of nearly all replies is prose or code. A rewriter needs such text for later decisions, but not at once:
it holds no marker, and its end begins none. The pipeline gives such text to the rewriters later, in one piece. Only
this module defines which text is harmless; extend it for a rewriter that acts on other text.

Openers that may occur anywhere (`<tool_call>`, `functions.`) are distinguished from those that open a line (`Action:`).
Brackets are frequent in code; the word after a bracket decides whether it can begin markup (`may_begin_markup`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache, lru_cache

from wirelint.dialects.openers import NAME, THOUGHT_ENDS, Anchor, heads, may_match, no_end, sentence_end, word_start
from wirelint.dialects.reader import ZERO_WIDTH, plain_view
from wirelint.dialects.scan import OPENERS, may_begin
from wirelint.fix import Rewriter
from wirelint.text.control_tokens import TOKEN
from wirelint.text.fabricated_results import LINE_HEADS, MARKERS
from wirelint.text.thinking import ANSWER_CLOSER, ANSWER_OPENER, ANY_TAG

# Brackets. Code, HTML and Markdown are full of them, and so is markup that leaks. A bracket and the first word after it
# (`<div`, `</li`, `[1`) rule out nearly all of the former and none of the latter: the patterns by which the rewriters
# find their markers are tried on that word. A text repeats the same few words, so results are cached.

MARKS = "<["
"""The brackets that are checked together with the word after them."""
_MARKUP = (TOKEN, ANY_TAG, ANSWER_OPENER, ANSWER_CLOSER, MARKERS)
_PIECE = re.compile(r"[<\[][<\[ \t/]{0,3}([\w:.-]{0,64})(?![\w:.-])[\s\S]?")
"""Bracket, blanks or the slash of a closing tag, a word, and the character after the word."""
_BEFORE_NAMES = {head[0] for opener in OPENERS.kinds[None] if NAME in opener for head in heads(opener)}


def may_begin_markup(text: str, at: int, names: Collection[str]) -> bool:
    """Return True if markup may begin at the bracket at an offset. `names`: those of the declared tools."""
    piece = _PIECE.match(text, at)
    if piece is None:
        return True
    if text[at + 1 : at + 2] == "/" and text[:at].rstrip()[-1:] in ("}", "]"):
        return True  # tags around JSON, which may be a call that a fabricated result follows
    word, end = piece[1], piece.end()
    cut = end == len(text) and end == piece.end(1)
    named = text[at] in _BEFORE_NAMES and (word in names or (cut and any(name.startswith(word) for name in names)))
    return named or not _begins_nothing(piece[0])


@lru_cache(maxsize=4096)
def _begins_nothing(piece: str) -> bool:
    shadow = plain_view(piece).shadow
    return not may_begin(shadow) and not any(may_match(pattern, shadow) for pattern in _MARKUP)


_ANYWHERE = "◁" + MARKS + ZERO_WIDTH
"""Characters that begin tags and tokens, and invisible characters that may be between them."""
_ESCAPES = ("&lt", "&#", '\\"', "\\/", "\\u")
"""Beginnings of escaped markup (`dialects.reader`)."""
_CUT_ESCAPES = (r"&[0-9a-zA-Z]{0,7}\Z", r"\\\Z")
"""Pattern sources of escapes that the end of a text cuts off: such an end is held back."""
_ESCAPED_LINE = "\\n"
"""An escape too, but it belongs to markup only after the end of a tag, with at most `_BLANKS_BEFORE` blanks between
them."""
_BLANKS_BEFORE = 4
_TOKENS = ("]~b]",)
"""Tokens of chat templates that hold none of these characters."""
_WORDS = ("to=",)
"""Further words that begin a token in the middle of a line."""
_GLUED = ("assistant",)
"""Further words that begin a header right after the end of a sentence, or on the next line."""
_TAILS = sorted({end[-5:] for end in THOUGHT_ENDS})
"""Last characters of the markup after which a text begins anew: enough to distinguish it from nearly all other text."""
_ENDS = "".join(sorted({tail[-1] for tail in _TAILS}))
_LINE_ENDS = "\n\r\x0b\x0c\x85\u2028\u2029"
_LINE_END = re.compile(f"[{_LINE_ENDS}]")
_BLANKS = re.compile(r"[ \t>*]*")
"""Blanks and marks of emphasis and quotations at the start of a line; they belong to the text after them."""
_TEXT_END = r"\Z"
REACH = 12
"""Characters before a text that decide whether an opener begins in it."""


class Prefilter:
    """Prefilter for the replies to one request. `names` are those of its tools: a line may begin with one of them.

    `_heads` are words that may open a line, in any case, by their first character. As one pattern, the names of a hundred
    tools take 50 ms to compile.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._openers, lines = _beginnings()
        self._names = frozenset(names)
        plain = [folded for head in (*lines, *self._names) if (folded := _folded(head.lstrip("*> ")))]
        self._longest = max(map(len, plain), default=0)
        self._heads = {
            first: tuple(head for head in plain if head[0] == first) for first in {head[0] for head in plain}
        }

    def may_start(self, text: str, inside: bool, before: str = "") -> bool:
        """Return True if an opener begins in a text, or may when more text has come.

        `inside`: the text continues in the middle of a line. `before` is the end of the text before it; if that has
        less than `REACH` characters, any text may precede them.
        """
        whole = before + text if before else text
        for found in self._openers.finditer(whole, len(before)):
            start = found.start()
            if whole[start] not in MARKS or may_begin_markup(whole, start, self._names):
                return True
        if not inside and text[0] not in _LINE_ENDS and self._opens_line(text, 0):
            return True
        if text.isprintable():  # no line end
            return False
        lines = text.rstrip(_LINE_ENDS)
        return any(self._opens_line(lines, end.end()) for end in _LINE_END.finditer(lines))

    def _opens_line(self, text: str, at: int) -> bool:
        """Return True if one of the heads opens the line at an offset, or may when more text has come."""
        blanks = _BLANKS.match(text, at)
        start = blanks.end() if blanks is not None else at
        line = _folded(text[start : start + self._longest])
        if not line:
            return True
        heads = self._heads.get(line[0])
        if heads is None:
            return False
        cut = start + self._longest > len(text)
        return line.startswith(heads) or (cut and any(head.startswith(line) for head in heads))


def _folded(text: str) -> str:
    """Return a text with its letters folded as `re.IGNORECASE` compares them."""
    return text.lower() if text.isascii() else text.casefold().replace("i\u0307", "i").replace("\u0131", "i")


def _openers(literals: Iterable[str], words: Iterable[str], glued: Iterable[str]) -> str:
    """Return the pattern source of all openers that may occur anywhere, whole or cut off by the end of the text."""
    # Each option begins with a literal character, so `re` is quick.
    options = [re.escape(mark) for mark in (*_ANYWHERE, *_ESCAPES)]
    # The tag before an escaped line end, as the markup before an end of a thought, may be in an earlier text.
    line = re.escape(_ESCAPED_LINE)
    behind = [rf"(?<={first}\s{{{size}}}{line})" for first in (r"\A", ">") for size in range(_BLANKS_BEFORE + 1)]
    options += [*map(_end, _ENDS), rf"{line}(?:{'|'.join(behind)})", *_CUT_ESCAPES]
    options += [no_end(first) + option for first, option in _options(literals).items()]
    for first, rest in _options(words).items():
        options.append(first + word_start(first) + rest.removeprefix(first))
    for first, rest in _options(glued).items():
        before = rf"(?:{sentence_end(first)}|(?<=\A{first})|(?<=\n{first}))"
        options.append(first + before + rest.removeprefix(first))
    return "|".join(options)


def _end(last: str) -> str:
    """Return the pattern source of the last character of markup that ends a thought, and may begin in an earlier text."""
    tails = [tail for tail in _TAILS if tail[-1] == last]
    cut = {tail[-size:] for tail in tails for size in range(1, len(tail))}
    behind = [rf"(?<=\A{re.escape(tail)})" for tail in sorted(cut)] + [rf"(?<={re.escape(tail)})" for tail in tails]
    return rf"{re.escape(last)}(?:{'|'.join(behind)})"


def _options(literals: Iterable[str]) -> dict[str, str]:
    """Return the sources of patterns of literals and of their beginnings at the end of a text, by first character."""
    rests: dict[str, list[str]] = {}
    for literal in sorted(literals):
        rests.setdefault(re.escape(literal[0]), []).append(literal[1:])
    return {
        first: first if "" in some else f"{first}(?:{'|'.join([*_options(some).values(), _TEXT_END])})"
        for first, some in rests.items()
    }


@cache
def _beginnings() -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return the pattern of openers that may occur anywhere, and the words that may open a line, without tools' names."""
    literals = {head for head in (*OPENERS.heads(None), *_TOKENS) if head[0] not in _ANYWHERE}
    words, glued = OPENERS.heads(Anchor.WORD) | set(_WORDS), OPENERS.heads(Anchor.SENTENCE) | set(_GLUED)
    lines = set(map(str.strip, OPENERS.heads(Anchor.LINE)))
    return re.compile(_openers(literals, words, glued)), (*lines, *LINE_HEADS)


prefilter_for = lru_cache(maxsize=64)(Prefilter)
"""Return the prefilter for requests that declare tools of certain names."""


def in_line(text: str, before: bool) -> bool:
    """Return True if a line has begun with more than white space after `text`. `before`: one had begun before `text`."""
    line = text.rpartition("\n")[2]
    return bool(line.strip()) or (before and line is text)


def is_patient(rewriter: Rewriter) -> bool:
    """Return True if a rewriter may get harmless text late: it is `patient`, or it ignores text."""
    return getattr(rewriter, "patient", False) or not getattr(rewriter, "heeds_text", True)
