"""Quoted parts of a Markdown text (fenced and indented code, inline code, block quotes), and mentions of markup.

Theory of operation. A CommonMark parser (markdown-it-py) decides. Block tokens carry the lines of their text, and those
become offsets. Inline tokens carry no offsets: the backtick runs in the lines of an inline token are walked as
CommonMark does, and every span must have the content of a `code_inline` token of the parser; others are left out.
Parser rules that do not affect quotations are switched off, for speed. HTML is no quotation, so markup that CommonMark
takes for an HTML block is not quoted.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from wirelint import lexicon

_PHRASES = lexicon.Phrases("quoting")

_Kind = Literal["fence", "indented", "inline", "quote"]
_KINDS: dict[str, _Kind] = {"blockquote_open": "quote", "fence": "fence", "code_block": "indented"}

_PARSER = MarkdownIt("commonmark").disable(["emphasis", "link", "image", "reference"])
_LINE_END = re.compile(r"\r\n|\r|\n")
_TICKS = re.compile(r"`+")
# A block quote needs a `>` with nothing but blanks and list markers before it on its line.
_QUOTE = re.compile(r"^[ \t\d.)*+-]{0,64}>", re.MULTILINE)


class _Span(NamedTuple):
    start: int
    end: int
    kind: _Kind


def is_quoted(text: str, start: int, end: int) -> bool:
    """Return True if a span begins inside a fence, a block quote or inline code, or is indented code.

    If it begins in indented code, it must end in code too (in this block or, as in a list of markers, in a later one),
    because ordinary text may begin with four blanks.
    """
    spans = _spans(text)
    span = _span_at(spans, start)
    return span is not None and (span.kind != "indented" or _span_at(spans, max(end - 1, start)) is not None)


def _span_at(spans: tuple[_Span, ...], offset: int) -> _Span | None:
    place = bisect.bisect_right(spans, offset, key=lambda span: span.start)
    span = spans[place - 1] if place else None
    return span if span is not None and offset < span.end else None


def fence_is_whole_message(text: str) -> bool:
    """Return True if the text is one code block (a fence, closed or not, or indented code)."""
    if not _may_quote(text):
        return False
    tokens = _parse(text)
    return len(tokens) == 1 and tokens[0].type in ("fence", "code_block")


def _may_quote(text: str) -> bool:
    marks = ("`", "~~~", "    ", "\t")
    return any(mark in text for mark in marks) or _QUOTE.search(text) is not None


@lru_cache(maxsize=32)
def _parse(text: str) -> tuple[Token, ...]:
    return tuple(_PARSER.parse(text))


@lru_cache(maxsize=32)
def _spans(text: str) -> tuple[_Span, ...]:
    if not _may_quote(text):
        return ()
    starts = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text)]
    spans: list[_Span] = []
    quoted_until = 0  # the line after the outermost block quote that is open
    for token in _parse(text):
        if token.map is None or token.map[1] <= quoted_until:
            continue
        start, end = starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]
        if token.type == "blockquote_open":
            quoted_until = token.map[1]
        if kind := _KINDS.get(token.type):
            spans.append(_Span(start, end, kind))
        elif token.type == "inline" and token.children:
            spans += _code_spans(text, start, end, token.children)
    return tuple(sorted(spans))


def _code_spans(text: str, start: int, end: int, children: list[Token]) -> Iterator[_Span]:
    """Yield the inline code between two offsets. `children`: the parser's tokens for that text."""
    runs = [match.span() for match in _TICKS.finditer(text, start, end)]
    starts: dict[int, list[int]] = {}
    for first, after in runs:
        starts.setdefault(after - first, []).append(first)
    cursor, index = start, 0
    for child in children:
        if child.type == "html_inline":
            place = text.find(child.content, cursor, end)
            cursor = place + len(child.content) if place >= 0 else cursor
        size = len(child.markup)
        while child.type == "code_inline" and index < len(runs):
            first, after = runs[index]
            index += 1
            if first < cursor:
                continue
            first += _escaped(text, first)
            closers = starts.get(size, [])
            place = bisect.bisect_left(closers, after)
            if after - first != size or place == len(closers):
                continue
            # The parser removes indentation and folds line ends.
            if text[after : closers[place]].split() == child.content.split():
                cursor = closers[place] + size
                yield _Span(first, cursor, "inline")
                break


def _escaped(text: str, start: int) -> int:
    """Return 1 if the backtick at `start` is escaped by a backslash that is not escaped itself, else 0."""
    slashes = 0
    while slashes < start and text[start - slashes - 1] == "\\":
        slashes += 1
    return slashes % 2


# Mentions of markup: in code, in quotation marks, or beside a word that names its kind.

# In the middle of a sentence: `it ends with <|eom_id|>, not with <|eot_id|>.` A template puts tokens between lines and
# sentences.
_TOKENS = _PHRASES.text("tokens")
_GOES_ON = re.compile(rf"{_TOKENS}(?:[.,;:!?)](?=\s|\Z)| (?:[a-z]{{2,}}|a)\b)")
_REACH = 32
_TOKENS_REACH = 128
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」", "`": "`", "(": ")"}


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
    return is_quoted(text, start, end)
