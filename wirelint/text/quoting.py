"""Quoted parts of a Markdown text: fenced and indented code, inline code, block quotes.

Theory of operation. A CommonMark parser (markdown-it-py) decides; nothing here guesses at Markdown. Block tokens carry the
lines they stand on, and those become offsets. Inline tokens carry no offsets: for each inline token, its lines are laid
back over the source, then the backtick runs of its source are walked as CommonMark does and every span must equal a
`code_inline` token of the parser; what does not is left out. Rules that cannot change what is quoted are switched off in
the parser, for speed. HTML is no quotation, so markup that begins with a tag is not quoted by being an HTML block.
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

_PARSER = MarkdownIt("commonmark").disable(["emphasis", "link", "image", "reference"])
_LINE_END = re.compile(r"\r\n|\r|\n")
_TICKS = re.compile(r"`+")
# A block quote needs a `>` with nothing but blanks and list markers before it on its line.
_QUOTE = re.compile(r"^[ \t\d.)*+-]{0,64}>", re.MULTILINE)


class _Span(NamedTuple):
    start: int
    end: int
    kind: _Kind


def quoted_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the quoted stretches as (start, end) offsets, in order and without overlaps."""
    return tuple((span.start, span.end) for span in _spans(text))


def is_quoted(text: str, start: int, end: int) -> bool:
    """Return True if the stretch is quoted: it begins inside a fence, a block quote or inline code, or is all indented
    code.

    Where it begins in indented code, it must end in code too (in the same block or, as in a list of markers, in a later
    one), because text that is not meant as code may well begin with four blanks.
    """
    spans = _spans(text)
    span = _span_at(spans, start)
    return span is not None and (span.kind != "indented" or _span_at(spans, max(end - 1, start)) is not None)


def _span_at(spans: tuple[_Span, ...], offset: int) -> _Span | None:
    place = bisect.bisect_right(spans, offset, key=lambda span: span.start)
    span = spans[place - 1] if place else None
    return span if span is not None and offset < span.end else None


def fence_is_whole_message(text: str) -> bool:
    """Return True if the text is nothing but one code block (a fence, closed or not, or indented code)."""
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
    lines = _Lines(text)
    spans: list[_Span] = []
    quoted_until = 0  # the line after the outermost block quote that is open
    for token in _parse(text):
        if token.map is None or token.map[1] <= quoted_until:
            continue
        match token.type:
            case "blockquote_open":
                quoted_until = token.map[1]
                spans.append(lines.span(token.map, "quote"))
            case "fence":
                spans.append(lines.span(token.map, "fence"))
            case "code_block":
                spans.append(lines.span(token.map, "indented"))
            case "inline":
                spans += _code_spans(lines, token)
    return tuple(sorted(spans))


class _Lines:
    """The lines of a text as the parser counts them, with their offsets."""

    def __init__(self, text: str) -> None:
        self.text = text
        ends = [match.span() for match in _LINE_END.finditer(text)]
        self.starts = [0, *(end for _, end in ends)]
        self.stops = [*(start for start, _ in ends), len(text)]

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, number: int) -> str:
        return self.text[self.starts[number] : self.stops[number]]

    def span(self, lines: list[int], kind: _Kind) -> _Span:
        first, after = lines
        end = self.starts[after] if after < len(self) else len(self.text)
        return _Span(self.starts[first], end, kind)


def _code_spans(lines: _Lines, token: Token) -> Iterator[_Span]:
    """Yield the inline code of one inline token."""
    children = token.children or []
    if token.map is None or not any(child.type == "code_inline" for child in children):
        return
    places = _lay_out(lines, token)
    if places is None:
        return
    for start, end in _walk(token.content, children):
        yield _Span(places.origin(start), places.origin(end - 1) + 1, "inline")


class _Places:
    """Offsets in the source of a token's content, line by line."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.origins: list[int] = []

    def origin(self, offset: int) -> int:
        line = bisect.bisect_right(self.starts, offset) - 1
        return self.origins[line] + offset - self.starts[line]


def _lay_out(lines: _Lines, token: Token) -> _Places | None:
    """Return the source offsets of a token's lines: the parser removed indentation and markers before, blanks after
    them.
    """
    places = _Places()
    number = token.map[0] if token.map is not None else 0
    offset = 0
    for content in token.content.split("\n"):
        source = lines.line(number) if number < len(lines) else ""
        wanted = content.strip()
        column = source.rfind(wanted) if source.rstrip().endswith(wanted) else source.find(wanted)
        if column < 0:
            return None
        lead = len(content) - len(content.lstrip())
        places.starts.append(offset)
        places.origins.append(lines.starts[number] + column - lead)
        offset += len(content) + 1
        number += 1
    return places


def _walk(content: str, children: list[Token]) -> Iterator[tuple[int, int]]:
    """Offsets of code spans in inline source, each verified against the parser's token."""
    runs = [match.span() for match in _TICKS.finditer(content)]
    by_length: dict[int, list[int]] = {}
    for start, end in runs:
        by_length.setdefault(end - start, []).append(start)
    cursor, index = 0, 0
    for child in children:
        if child.type == "html_inline":
            place = content.find(child.content, cursor)
            cursor = place + len(child.content) if place >= 0 else cursor
        if child.type != "code_inline":
            continue
        size = len(child.markup)
        while index < len(runs):
            start, end = runs[index]
            index += 1
            if start < cursor:
                continue
            start += _escaped(content, start)
            closers = by_length.get(size, [])
            place = bisect.bisect_left(closers, end)
            if end - start != size or place == len(closers):
                continue
            if _normal(content[end : closers[place]]) == child.content:
                cursor = closers[place] + size
                yield start, cursor
                break


def _escaped(content: str, start: int) -> int:
    """Return 1 if the backtick at `start` is escaped by a backslash that is not escaped itself, else 0."""
    slashes = 0
    while slashes < start and content[start - slashes - 1] == "\\":
        slashes += 1
    return slashes % 2


def _normal(code: str) -> str:
    """Return the content of a code span as CommonMark reads it (section 6.1)."""
    code = code.replace("\n", " ")
    if code.startswith(" ") and code.endswith(" ") and code.strip(" "):
        return code[1:-1]
    return code


# Markup that is spoken of: in code, in quotation marks, or with a word beside it that says what it is.

# In the middle of a sentence: `it ends with <|eom_id|>, not with <|eot_id|>.` What a template puts somewhere stands
# between lines and sentences.
_TOKENS = _PHRASES.text("tokens")
_GOES_ON = re.compile(rf"{_TOKENS}(?:[.,;:!?)](?=\s|\Z)| (?:[a-z]{{2,}}|a)\b)")
_REACH = 32
_TOKENS_REACH = 128
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」", "`": "`", "(": ")"}


def is_mention(text: str, start: int, end: int) -> bool:
    """Return True if the stretch is shown or named in the text rather than being there for what it does."""
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
