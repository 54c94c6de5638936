"""Prose of a text: code, quotations and block quotes masked, the rest cut into sentences.

Theory of operation. A mask has the length of the text, so its offsets are offsets of the text. `quoting` finds blocks
(fences, indented code, block quotes, HTML) and code spans; a scan of the rest finds quotation marks. Masked characters
keep the line structure and become one of two letters that no pattern of prose matches: `CODE` inside a code span,
`QUOTE` inside quotations and blocks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial

from wirelint import lexicon
from wirelint.text.quoting import may_hold_spans, spans
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
        for word in self.words:  # noqa: SIM110, since a generator takes twice as long, 800 times per reply
            if word in text:
                return True
        return False


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
MOST_SENTENCES = 512
"""Upper bound for the sentences of one text: the first and the last ones. Each costs up to 40 microseconds if it is a
claim; a page has 30."""
_LONGEST_SENTENCE = 1 << 14
"""Number of characters of one sentence that are read. A page of ideographs without a full stop takes 50 ms."""
_SAYS_NOTHING = f" \t\r\n.{QUOTE}"
_VISIBLE = re.compile(r"[^\r\n]+")
_QUOTES = "\"“„«「『‘'"
"""First characters of quotations."""
_SOFT_BREAK = re.compile(r"(?<=[^\s.!?:;。！？…|\ue002])\n(?=[^\W\d_A-ZÄÖÜ])")
_BOUNDARY = re.compile(r"[.!?…]+(?=[\"')\]*_”»]*(?:\s|$))[\"')\]*_”»]*|[。！？]+[」』”]?|\n+")
_ENDS = ".!?…。！？\n"
"""The characters that begin a match of `_BOUNDARY`."""
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,2}[.)])\s+(?!\s)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a text. `masked` is `text[start:end]` with quotations and code masked and line ends as spaces."""

    masked: str
    start: int
    end: int
    bullet: bool = False

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end

    @property
    def question(self) -> bool:
        return self.masked.rstrip(" )*_\"'”»").endswith(("?", "？"))


@dataclass(frozen=True, slots=True)
class Prose:
    """A text with its mask and its sentences. `fenced`: it holds a code fence. `unread`: parts beyond a limit."""

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
    unread = [f"characters after the first {_LONGEST:,}"] if len(text) > _LONGEST else []
    text = text[:_LONGEST]
    masked = mask(text)
    flat = _SOFT_BREAK.sub(" ", masked) if "\n" in masked else masked
    cuts = itertools.pairwise([0, *_ends(flat), len(flat)])
    parts = [(start, end) for start, end in cuts if flat[start:end].strip(_SAYS_NOTHING)]
    if len(parts) > MOST_SENTENCES:
        unread.append(f"sentences between the first and the last {MOST_SENTENCES // 2}")
        parts = [*parts[: MOST_SENTENCES // 2], *parts[-MOST_SENTENCES // 2 :]]
    sentences = [_sentence(flat, start, end) for start, end in parts]
    if any(len(sentence.masked) == _LONGEST_SENTENCE for sentence in sentences):
        unread.append(f"characters of a sentence after the first {_LONGEST_SENTENCE:,}")
    return Prose(text, masked, tuple(sentences), "```" in text or "~~~" in text, tuple(unread))


def unread(text: str) -> tuple[str, ...]:
    """Return, in words, the parts of a text that are beyond a limit and were not read."""
    if len(text) < _LONGEST_SENTENCE and sum(map(text.count, _ENDS)) < MOST_SENTENCES:
        return ()
    return read(text).unread


def unquoted(text: str) -> str:
    """Return the text with fences, indented code, block quotes and code spans masked, but not HTML and quotation marks.

    Use it for tags, which CommonMark takes for HTML blocks.
    """
    return _masked(text, html=False)


def mask(text: str) -> str:
    """Return the text with blocks and quotations as `QUOTE` and code spans as `CODE`, of the same length."""
    shown = _masked(text)
    if not any(mark in shown for mark in _QUOTES):
        return shown
    return _PHRASES["quoted"].sub(lambda found: found[0][0] + QUOTE * (len(found[0]) - 2) + found[0][-1], shown)


def _masked(text: str, *, html: bool = True) -> str:
    if not may_hold_spans(text):
        return text
    pieces: list[str] = []
    done = 0
    for start, end, kind in spans(text):
        letter, size = QUOTE, 0
        if kind == "inline":
            letter, size = CODE, len(text[start:end]) - len(text[start:end].lstrip("`"))
        if kind != "html" or html:
            hidden = _VISIBLE.sub(partial(_in_letters, letter), text[start + size : end - size])
            pieces += [text[done : start + size], hidden]
            done = end - size
    return "".join(pieces) + text[done:]


def _in_letters(letter: str, found: re.Match[str]) -> str:
    return letter * len(found[0])


def _ends(masked: str) -> Iterator[int]:
    start = 0
    for found in _BOUNDARY.finditer(masked):
        if found[0] == "." and _is_inside(masked, start, found.start()):
            continue
        start = found.end()
        yield start


def _is_inside(masked: str, start: int, stop: int) -> bool:
    """Return True for a full stop at `stop` that ends no sentence: of an abbreviation, an initial or an ordinal."""
    before = masked[max(start, stop - 8) : stop]
    if _PHRASES["abbreviated"].search(before) or _is_short(before, masked, stop + 1):
        return True
    number = _ORDINAL.search(masked, max(start, stop - _LONGEST_NUMBER), stop)
    return number is not None and (_is_in_brackets(masked, start, stop) or _goes_on(masked, stop + 1))


def _is_short(before: str, masked: str, end: int) -> bool:
    """Return True for an initial before a name, or a short word before one in lower case: "J. Hollis", "9:30 a.m. in"."""
    word = _WORD.match(masked, end)
    if word is None:
        return False
    return bool(_SHORT.search(before) if word[1].islower() else _INITIAL.search(before) and len(word[1]) > _SHORT_START)


def _is_in_brackets(masked: str, start: int, stop: int) -> bool:
    """Return True for an ordinal in brackets: "(3. Etage)"."""
    start = max(start, stop - _LONGEST_BRACKETS)
    return masked.rfind("(", start, stop) > masked.rfind(")", start, stop)


_LONGEST_BRACKETS = 80
_INITIAL = re.compile(r"(?:\A|[\s(.])[A-ZÀ-ÖØ-ÞА-Я]\Z")
_SHORT = re.compile(r"(?<![\w-])[^\W\d_]{1,3}\Z")
_SHORT_START = 3
"""Letters of words that rather begin a sentence than a name: "Take plan B. You can ..."."""
_ORDINAL = re.compile(r"(?<![\w.,])(?:\d{1,2}(?:\.\d\d)?|\d{4})\Z")
_LONGEST_NUMBER = 5


def _goes_on(masked: str, end: int) -> bool:
    """Return True if a month or a word in lower case follows: "am 11. März", "am 14.05. war", "2028. március 8."."""
    word = _WORD.match(masked, end)
    return word is not None and (word[1][0].islower() or word[1].casefold() in _months())


_WORD = re.compile(r" {1,2}([^\W\d_]{1,20})")


@cache
def _months() -> frozenset[str]:
    """Return the names of months, but for `may`, which begins an English question."""
    return frozenset(name for names in lexicon.load("dates")["months"] for name in names.split()) - {"may"}


def _sentence(masked: str, start: int, end: int) -> Sentence:
    piece = masked[start:end]
    bullet = _BULLET.match(piece)
    skipped = bullet.end() if bullet else len(piece) - len(piece.lstrip())
    body = piece[skipped:][:_LONGEST_SENTENCE]
    return Sentence(body.rstrip().replace("\n", " "), start + skipped, start + len(piece.rstrip()), bullet is not None)


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
