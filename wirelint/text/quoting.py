"""Quoted parts of a Markdown text (fenced and indented code, inline code, block quotes), and mentions of markup.

Theory of operation. A CommonMark parser (markdown-it-py) finds the blocks. Block tokens carry the lines of their text,
and those become offsets. Inline code, for which the parser gives no offsets, is found by CommonMark's rule: a run of
backticks is closed by the next run of as many in the same paragraph. HTML is no quotation, so markup that CommonMark
takes for an HTML block is not quoted.
"""

from __future__ import annotations

import bisect
import logging
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from wirelint import lexicon

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_PHRASES = lexicon.Phrases("quoting")

Kind = Literal["fence", "indented", "inline", "quote", "html", "unread"]
_KINDS: dict[str, Kind] = {"blockquote_open": "quote", "fence": "fence", "code_block": "indented", "html_block": "html"}

MOST_LINES = 2048
"""Lines of one text that are parsed, at 4-8 microseconds each. The lines after them count as quoted."""
_LINE_END = re.compile(r"\r\n|\r|\n")
_TICKS = re.compile(r"`+")
# What begins inline code (a run of backticks) or hides its marks: an escape, a URL in brackets, a tag.
_INLINE = re.compile(
    r"""\\[\\`]|(?P<ticks>`+)|<[A-Za-z][\w+.-]{1,31}:[^\s<>]*>|</?[A-Za-z](?:[^<>`"']|"[^"]*"|'[^']*'){0,256}>"""
)
_MARKS = ("`", "~~~")
_BEGINS_BLOCK = re.compile(r"(?:\A|[\r\n])[ \d>*+.)-]{0,64}[<>]")
"""A tag or a block quote at a line start or in a list item."""
_BEGINS_INDENTED = re.compile(r"(?:\A|[\r\n])[ \d>*+.)-]*?(?:    |\t)")
"""Four columns of white space at a line start, or after the marks of lists and block quotes there."""


class Span(NamedTuple):
    """A quoted part of a text, or an HTML block. `unread`: the lines beyond `MOST_LINES`."""

    start: int
    end: int
    kind: Kind


def is_quoted(text: str, start: int, end: int) -> bool:
    """Return True if a span begins inside a fence, a block quote or inline code, or is indented code.

    If it begins in indented code, it must end in code too (in this block or, as in a list of markers, in a later one),
    because ordinary text may begin with four blanks.
    """
    found = _quotation_at(text, start)
    return found is not None and (found.kind != "indented" or _quotation_at(text, max(end - 1, start)) is not None)


def _quotation_at(text: str, offset: int) -> Span | None:
    found = spans(text)
    place = bisect.bisect_right(found, offset, key=lambda span: span.start)
    span = found[place - 1] if place else None
    return span if span is not None and offset < span.end and span.kind != "html" else None


def fence_is_whole_message(text: str) -> bool:
    """Return True if the text is one code block (a fence, closed or not, or indented code)."""
    first = next(iter(spans(text)), None)
    if first is None or (first.start, first.end) != (0, len(text)):
        return False
    return first.kind == "indented" or (first.kind == "fence" and text.lstrip(" ")[0] in "`~")


def is_unread(text: str, offset: int) -> bool:
    """Return True if an offset is beyond the lines that are parsed."""
    if text.count("\n") + text.count("\r") < MOST_LINES:  # the parser reads a text in 5 ms, this takes 5 microseconds
        return False
    return any(span.kind == "unread" and span.start <= offset for span in spans(text)[-1:])


def may_hold_spans(text: str) -> bool:
    """Return False if a text surely has neither quoted parts nor HTML blocks."""
    if any(mark in text for mark in _MARKS):
        return True
    if ("    " in text or "\t" in text) and _BEGINS_INDENTED.search(text) is not None:
        return True
    return ("<" in text or ">" in text) and _BEGINS_BLOCK.search(text) is not None


@lru_cache(maxsize=64)
def spans(text: str) -> tuple[Span, ...]:
    """Return the quoted parts and the HTML blocks of a text, in order. Parts inside a block quote are left out."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    unread = starts[MOST_LINES] if len(starts) > MOST_LINES else len(text)
    found = list(_parsed(text[:unread], [*starts[:MOST_LINES], unread])) if may_hold_spans(text[:unread]) else []
    return (*sorted(found), Span(unread, len(text), "unread")) if unread < len(text) else tuple(sorted(found))


@cache
def _parser() -> MarkdownIt:
    """Return the parser. Its import takes 40 ms, and few texts of few captures need it."""
    from markdown_it import MarkdownIt

    # mitmproxy turns on the debug messages of all libraries; this parser writes one for each rule and line.
    logging.getLogger("markdown_it").setLevel(logging.INFO)
    # Inline rules take most of the parser's time.
    return MarkdownIt("commonmark").disable(["inline", "text_join"], ignoreInvalid=True)


def _parsed(text: str, starts: list[int]) -> Iterator[Span]:
    quoted_until = 0  # the line after the outermost block quote that is open
    for token in _parser().parse(text):
        if token.map is None or token.map[1] <= quoted_until:
            continue
        start, end = starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]
        if token.type == "blockquote_open":
            quoted_until = token.map[1]
        if kind := _KINDS.get(token.type):
            yield Span(start, end, kind)
        elif token.type == "inline" and "`" in token.content:
            runs: dict[int, list[int]] = {}
            for run in _TICKS.finditer(text, start, end):
                runs.setdefault(len(run[0]), []).append(run.start())
            after = start
            while (found := _INLINE.search(text, after, end)) is not None:
                after = found.end()
                size = len(found["ticks"] or "")
                closers = runs.get(size, [])
                place = bisect.bisect_left(closers, after)
                if place < len(closers):
                    after = closers[place] + size
                    yield Span(found.start(), after, "inline")


# Mentions of markup: in code, in quotation marks, or beside a word that names its kind.

# In the middle of a sentence: `it ends with <|eom_id|>, not with <|eot_id|>.` A template puts tokens between lines and
# sentences.
_TOKENS = _PHRASES.text("tokens")
_GOES_ON = re.compile(rf"{_TOKENS}(?:[.,;:!?)](?=\s|\Z)| (?:[a-z]{{2,}}|a)\b)")
_REACH = 32
_TOKENS_REACH = 128
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」", "`": "`", "(": ")"}
_MAY_MENTION = re.compile(r"(?:[.,;:!?)]|[ \t]+[\w<>/|｜`\[◁…]{0,32})?\Z")
"""The beginning of text that makes a mention of the markup before it."""
_DELIMITERS = re.compile(
    r"(?m)^[ \t]*+(?P<left>\|)?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+(?P<right>\|)?[ \t]*+$"
)
"""The second row of a table: `|---|:--|`."""
_BAR = re.compile(r"(?<!<)\|(?!>)")
_LONGEST_ROW = 512
_LONGEST_TABLE = 4096


def is_mention(text: str, start: int, end: int) -> bool:
    """Return True if a span of markup is quoted or mentioned."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before in _QUOTES and after == _QUOTES[before]:
        return True
    if _PHRASES["before"].search(text, max(start - _REACH, 0), start) or _PHRASES["after"].match(
        text, end, end + _REACH
    ):
        return True
    in_sentence = _PHRASES["word_before"].search(text, max(start - _TOKENS_REACH, 0), start)
    if in_sentence and _GOES_ON.match(text, end, end + _TOKENS_REACH):
        return True
    return _is_in_cell(text, start, end) or is_quoted(text, start, end)


def may_become_mention(text: str, start: int, end: int) -> bool:
    """Return True if later text may decide whether a span of markup is a mention."""
    if end == len(text) or _MAY_MENTION.match(text, end):
        return True
    if len(text) - end > 2 * _LONGEST_ROW or _is_in_cell(text, start, end):
        return False
    return _is_in_cell(f"{text}-|\n|-|", start, end)


def _is_in_cell(text: str, start: int, end: int) -> bool:
    """Return True if a span is in a row of a table: `| </think> | closes the reasoning |`."""
    floor, ceiling = max(start - _LONGEST_ROW, 0), end + _LONGEST_ROW
    row, stop = text.rfind("\n", floor, start) + 1 or floor, text.find("\n", end, ceiling)
    after = text[end : stop if stop >= 0 else ceiling].strip()
    bars = _BAR.search(text, row, start) is not None, _BAR.search(after) is not None
    if not any(bars):
        return False
    above = text[max(text.rfind("\n\n", 0, row), row - _LONGEST_TABLE, 0) : row]
    delimiters = next((one for one in _DELIMITERS.finditer(above) if "|" in one[0]), None)
    if delimiters is None:  # the row may be the head of the table
        return stop >= 0 and all(bars) and _DELIMITERS.match(text, stop + 1) is not None
    before = text[row:start].strip()
    ends = bars[1] or not (after or delimiters["right"] or before[-1:] != "|")
    return ends and (bars[0] or not (before or delimiters["left"]))
