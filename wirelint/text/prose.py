"""Prose of a text: code, quotations and block quotes masked, the rest cut into sentences.

Theory of operation. A mask has the length of the text, so its offsets are offsets of the text. A CommonMark parser finds
blocks (fences, indented code, block quotes, HTML); a scan of the rest finds code spans and quotation marks. Masked
characters keep the line structure and become one of two letters that no pattern of prose matches: `CODE` inside a code
span, `QUOTE` inside quotations and blocks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from markdown_it import MarkdownIt

from wirelint import lexicon
from wirelint.text.remembered import short

_PHRASES = lexicon.Phrases("prose")

# A first test of a long text: case-insensitive patterns read every character and take a hundred times longer.

_MARKS = ".,!?:;*()"
_SPACES = str.maketrans(dict.fromkeys(_MARKS, " "))


class Cues:
    """Strings for a cheap first test of a text."""

    __slots__ = ("words",)

    def __init__(self, *words: str) -> None:
        self.words = words

    def occur_in(self, text: str) -> bool:
        """Return True if a text holds one of the strings."""
        return any(word in text for word in self.words)


def mentions(text: str, *groups: tuple[str, ...]) -> bool:
    """Return True if a text holds one string of each group in any case. The strings are in lower case."""
    lower = text.lower()
    for cues in groups:
        for cue in cues:
            if cue in lower:
                break
        else:
            return False
    return True


def has_word_of(text: str, words: frozenset[str]) -> bool:
    """Return True if a text holds one of some lower-case words in any case, between white space or punctuation."""
    return not words.isdisjoint(_said(text))


@lru_cache(maxsize=8)
def _said(text: str) -> frozenset[str]:
    """Return the words of a text, with and without punctuation; cached, since several rules look for words."""
    said = set(text.lower().split())  # most words of a long text are repeated
    for word in [word for word in said if not word.isalnum()]:
        said.update(word.translate(_SPACES).split())
    return frozenset(said)


CODE = "\ue001"
QUOTE = "\ue002"

_LONGEST = 200_000
_MOST_LINES = 2048
"""Lines of one text that are parsed as Markdown, which takes 4-8 microseconds for each."""
MOST_SENTENCES = 512
"""Upper bound for the sentences of one text: the first and the last ones. Each costs up to 40 microseconds if it is a
claim; a page has 30."""
_LONGEST_SENTENCE = 1 << 14
"""Characters of one sentence that are read. A page of ideographs without a full stop takes 50 ms."""
_SURELY_READ = 4096
"""Characters that no limit leaves out."""
_BLOCKS = frozenset({"fence", "code_block", "blockquote_open", "html_block"})
_BLOCK_MARKS = ("```", "~~~", "    ", "\t")
_BEGINS_BLOCK = re.compile(r"(?:\A|[\r\n])[ \d>*+.)-]*[<>]")
"""A tag or a block quote at a line start or in a list item."""
_TICKS = re.compile(r"`+")
_PARAGRAPH = re.compile(r"(\n[ \t]*\n)")
_QUOTES = "\"“„«「『‘'"
"""First characters of quotations."""
_SOFT_BREAK = re.compile(r"(?<=[^\s.!?:;。！？…|\ue002])\n(?=[^\W\d_A-ZÄÖÜ])")
_BOUNDARY = re.compile(r"[.!?…]+(?=[\"')\]*_”»]*(?:\s|$))[\"')\]*_”»]*|[。！？]+[」』”]?|\n+")
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)])\s+(?!\s)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a text. `masked` is `text[start:end]` with quotations and code masked and line ends as spaces."""

    masked: str
    start: int
    end: int
    bullet: bool = False

    @property
    def question(self) -> bool:
        return self.masked.rstrip(" )*_\"'”»").endswith(("?", "？"))


@dataclass(frozen=True, slots=True)
class Prose:
    """A text with its mask and its sentences. `fenced`: it holds a code fence. `unread`: parts that a limit leaves out."""

    text: str
    masked: str
    sentences: tuple[Sentence, ...]
    fenced: bool
    unread: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        """The number of characters outside of quotations, code and white space."""
        return sum(1 for character in self.masked if character not in (CODE, QUOTE) and not character.isspace())


@lru_cache(maxsize=64)
def read(text: str) -> Prose:
    """Return the prose of a text; of a long one its first `_LONGEST` characters and `MOST_SENTENCES` sentences."""
    unread = [f"characters behind the first {_LONGEST:,}"] if len(text) > _LONGEST else []
    text = text[:_LONGEST]
    masked = mask(text)
    if _may_hold_blocks(text) and len(text.splitlines()) > _MOST_LINES:
        unread.append(f"lines behind the first {_MOST_LINES:,}")
    flat = _SOFT_BREAK.sub(" ", masked) if "\n" in masked else masked
    sentences = list(_sentences(flat))
    if len(sentences) > MOST_SENTENCES:
        unread.append(f"sentences between the first and the last {MOST_SENTENCES // 2}")
        sentences = [*sentences[: MOST_SENTENCES // 2], *sentences[-MOST_SENTENCES // 2 :]]
    if any(len(sentence.masked) == _LONGEST_SENTENCE for sentence in sentences):
        unread.append(f"characters of a sentence behind the first {_LONGEST_SENTENCE:,}")
    return Prose(text, masked, tuple(sentences), "```" in text or "~~~" in text, tuple(unread))


def unread(text: str) -> tuple[str, ...]:
    """Return the parts of a text that a limit leaves out."""
    return read(text).unread if len(text) > _SURELY_READ else ()


def unquoted(text: str) -> str:
    """Return the text with fences, indented code, block quotes and code spans masked, but not HTML and quotation marks.

    Use it for tags, which CommonMark takes for HTML blocks.
    """
    shown = _mask_blocks(text, _BLOCKS - {"html_block"})
    return _mask_spans(shown) if "`" in shown else shown


def mask(text: str) -> str:
    """Return the text with blocks and quotations as `QUOTE` and code spans as `CODE`, of the same length."""
    shown = _mask_blocks(text) if _may_hold_blocks(text) else text
    if "`" in shown:
        shown = _mask_spans(shown)
    if not any(mark in shown for mark in _QUOTES):
        return shown
    return _PHRASES["quoted"].sub(lambda found: found[0][0] + QUOTE * (len(found[0]) - 2) + found[0][-1], shown)


def _may_hold_blocks(text: str) -> bool:
    """Return True if the text may have a block: a fence, indented code, or a line that begins with a quote or a tag."""
    if any(mark in text for mark in _BLOCK_MARKS):
        return True
    return ("<" in text or ">" in text) and _BEGINS_BLOCK.search(text) is not None


def _mask_blocks(text: str, kinds: frozenset[str] = _BLOCKS) -> str:
    """Mask blocks of some kinds. Of a text with too many lines the rest counts as a block, since it is not parsed."""
    lines = text.splitlines(keepends=True)
    if len(lines) > _MOST_LINES:
        shown = "".join(lines[:_MOST_LINES])
        rest = re.sub(r"[^\n\r]+", lambda line: QUOTE * len(line[0]), text[len(shown) :])
        return _mask_blocks(shown, kinds) + rest
    for token in _parser().parse(text):
        if token.type in kinds and token.map:
            for number in range(token.map[0], min(token.map[1], len(lines))):
                lines[number] = re.sub(r"[^\n\r]", QUOTE, lines[number])
    joined = "".join(lines)
    return joined if len(joined) == len(text) else text


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    # Inline rules are not needed here and take most of the time.
    return MarkdownIt("commonmark").disable(["inline", "text_join"], ignoreInvalid=True)


def _mask_spans(text: str) -> str:
    """Mask code spans by CommonMark's rule: the next run of as many backticks in the paragraph closes a run."""
    return "".join(_mask_paragraph(piece) if "`" in piece else piece for piece in _PARAGRAPH.split(text))


def _mask_paragraph(text: str) -> str:
    runs = list(_TICKS.finditer(text))
    closers: list[int | None] = [None] * len(runs)
    latest: dict[int, int] = {}
    for position in range(len(runs) - 1, -1, -1):
        size = len(runs[position][0])
        closers[position] = latest.get(size)
        latest[size] = position
    pieces: list[str] = []
    done = at = 0
    while at < len(runs):
        closer = closers[at]
        if closer is None:
            at += 1
            continue
        start, end = runs[at].end(), runs[closer].start()
        pieces += [text[done:start], re.sub(r"[^\n]", CODE, text[start:end])]
        done, at = end, closer + 1
    return "".join(pieces) + text[done:]


def _sentences(masked: str) -> Iterator[Sentence]:
    for start, end in itertools.pairwise([0, *_ends(masked), len(masked)]):
        yield from _sentence(masked, start, end)


def _ends(masked: str) -> Iterator[int]:
    start = 0
    for found in _BOUNDARY.finditer(masked):
        if found[0] == "." and _PHRASES["abbreviated"].search(masked[max(start, found.start() - 8) : found.start()]):
            continue
        start = found.end()
        yield start


def _sentence(masked: str, start: int, end: int) -> Iterator[Sentence]:
    piece = masked[start:end]
    if not piece.strip(f" \t\r\n.{QUOTE}"):
        return
    bullet = _BULLET.match(piece)
    skipped = bullet.end() if bullet else len(piece) - len(piece.lstrip())
    body = piece[skipped:][:_LONGEST_SENTENCE]
    yield Sentence(body.rstrip().replace("\n", " "), start + skipped, start + len(piece.rstrip()), bullet is not None)


# Summaries of earlier messages: a client whose history is too long requests a summary and continues with it, with its
# own words around the summary. So a summary is recognised by its long lines.

_SHORTEST = 200
_LINE = 40
_MOST_KEPT = 4
_MOST_READ = 400
_SAYS_SO = _PHRASES.words("says_so")


def summary_lines(answer: str) -> tuple[bytes, ...]:
    """Return digests of the longest lines of an answer that may be a summary; none of a short answer."""
    if len(answer) < _SHORTEST:
        return ()
    lines = sorted({line.strip() for line in answer.splitlines()}, key=lambda line: (-len(line), line))
    return tuple(short(line) for line in lines[:_MOST_KEPT] if len(line) >= _LINE)


def quoted_lines(text: str) -> Iterator[bytes]:
    """Yield digests of the lines of a text that says that it summarises earlier messages."""
    if len(text) < _SHORTEST or not mentions(text, _SAYS_SO):
        return
    lines = [stripped for line in text.splitlines() if len(stripped := line.strip()) >= _LINE]
    yield from dict.fromkeys(map(short, lines[:_MOST_READ]))
