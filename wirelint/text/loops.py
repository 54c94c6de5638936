r"""Looping text: a model that repeats tags and tokens up to its token limit, and one that continues as the user.

At each place where markup may begin, all dialects are tried, for some 50 microseconds; a repair takes far longer. The
text after it is read piece by piece: an argument, a key, a bracket, at some 3 microseconds each. Both are counted; after
`MOST_MARKS` marks, or `MOST_SEPARATORS` separators after the first mark, or some of both, rules and fixes treat the rest of
the text as plain. A note reports this (`note_on`). A normal reply has a few dozen marks; code has a separator in 14
characters, JSON in 9.

A *mark* is a bracket with the first letters of an opener, a closer or a token of `wirelint.dialects`, `control_tokens` or
`thinking` (`<tool_`, `</think`, `[/INS`, `&lt;invo`), one of their words (`functions.`), or such a word at a line start
(`Action:`); also a fence around JSON, and each of many brackets in a row. HTML and code have next to none. A *separator* is
a bracket, comma, colon or equals sign.

The count depends on the text alone: it is taken at each `STEP`-th character, for the marks and separators that are `REACH`
characters before it, so that streamed and whole texts become plain at the same character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from wirelint.dialects.openers import NAME, Anchor, any_of, expand, first_letters, word_start
from wirelint.dialects.scan import FAMILIES, OPENERS
from wirelint.model import Choice, Part, Reasoning, Refusal, Reply, Text
from wirelint.text.control_tokens import EDGES, SURE
from wirelint.text.fabricated_results import LINE_HEADS
from wirelint.text.prose import Cues
from wirelint.text.quoting import is_mention
from wirelint.text.thinking import TAG_TABLES

MOST_MARKS = 256
MOST_SEPARATORS = 8192
STEP = 512
REACH = 80
"""Number of characters, from the start of a mark, that are enough to identify it."""
_BEFORE = 16
"""Characters before a mark that decide whether a word begins there."""
_LEAD = 4
_WEIGHT = MOST_SEPARATORS // MOST_MARKS
"""Number of separators that take as long as a mark."""
_SEPARATORS = "()[]{},:="
_GAP = r"[\s|｜‖/]{0,8}"
_ESCAPES = {"<": (("<", ""), ("&", "(?:lt|#0{0,4}60|#[xX]0{0,4}3[cC]);"), (r"\\", "u003[cC]"))}
"""Spellings of a bracket: its first character and the rest, as sources of regular expressions."""
_OPENING = "<[]◁✿`*"
_FIRSTS = "<[]◁✿`*&\\\"'\n"
"""First characters of the marks that are no words."""
_FENCED = r"`(?=``(?:tool_[a-z]|[a-zA-Z_]{0,16}\s{0,16}[{\[]))"
_NAMED_TAG = r"<(?=[a-z:]{1,16}\s{0,4}[a-z_]{0,5}name\s{0,2}=|[\w:.-]{0,24}calls?\s{0,3}>)"
_KEYS = r"""["'](?=(?:arguments|parameters|tool_(?:calls|name|call_id|uses)|recipient_name)["'])"""


class MarkCount:
    """Counter of the marks in a text that is still arriving. `plain_from`: the offset of the plain rest, once known."""

    __slots__ = ("_most", "_names", "_next", "_pieces", "_start", "_weight", "length", "plain_from")

    def __init__(self, names: frozenset[str] = frozenset(), times: int = 1) -> None:
        """`names`: the declared tools, which some dialects use as tags. `times` multiplies the limits."""
        self._names, self._most = names, times * MOST_SEPARATORS
        self._pieces: list[str] = []
        self._start = self._next = self._weight = self.length = 0
        """`_pieces` begin at `_start`; `_weight` is that of the text before `_next`."""
        self.plain_from: int | None = None

    def add(self, text: str) -> int | None:
        """Add more of the text; return `plain_from`."""
        for start in range(0, len(text), STEP):
            if self.plain_from is not None:
                break
            piece = text[start : start + STEP]
            before = self.length
            self.length += len(piece)
            self._pieces.append(piece)
            if before // STEP != self.length // STEP:
                self._read(self.length - self.length % STEP)
        return self.plain_from

    def _read(self, step: int) -> None:
        """Count up to `REACH` characters before a step."""
        text = "".join(self._pieces)
        start, end = self._next - self._start, step - REACH - self._start
        marks = _places(text, start, end, self._names)
        begin = start if self._weight else min(marks, default=end)
        self._weight += len(marks) * _WEIGHT + _count(text, _SEPARATORS, begin, end)
        if self._weight > self._most:
            self.plain_from = step
        self._next = self._start + end
        kept = max(end - _BEFORE, 0)
        self._start += kept
        self._pieces = [text[kept:]]


@lru_cache(maxsize=8)
def plain_from(text: str, names: frozenset[str] = frozenset()) -> int | None:
    """Return the offset of the plain rest of a whole text; None without one, which is usual."""
    marks = _count(text, _FIRSTS) + _count(text, _WORD_CUES)
    if len(text) < STEP or marks * _WEIGHT + _count(text, _SEPARATORS) <= MOST_SEPARATORS:
        return None
    return MarkCount(names).add(text)


def note_on(offset: int) -> str:
    """Return the note on a reply with a text that is treated as plain from an offset on."""
    return (
        f"more than {MOST_MARKS} tags and tokens, or {MOST_SEPARATORS:,} brackets and separators after one, in a text of"
        f" the reply; from its character {offset:,} on it was neither judged nor changed"
    )


def _count(text: str, sought: Iterable[str], start: int = 0, end: int | None = None) -> int:
    return sum([text.count(one, start, end) for one in sought])


def _places(text: str, start: int, end: int, names: frozenset[str]) -> list[int]:
    """Return the offsets of marks between two offsets, in order."""
    marks, words = _patterns()
    found = [match.start() for match in marks.finditer(text, start) if match.start() < end]
    if _count(text, _WORD_CUES):
        found += [match.start() for match in words.finditer(text, start) if match.start() < end]
    if names:
        named = _named(frozenset([name[0] for name in names if name]))
        found += [match.start() for match in named.finditer(text, start) if match.start() < end and match[1] in names]
    return sorted(set(found))


@lru_cache(maxsize=64)
def _named(firsts: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of names after brackets or at line starts. `firsts`: first characters of names."""
    firsts_ = "".join(map(re.escape, sorted(firsts)))
    return re.compile(rf"(?:\A|[<>\[\n])(?=[\s/|]{{0,8}}([{firsts_}][\w.:-]{{0,63}}))")


_WORD_CUES = ("to=", "functions", "functools", "multi_tool_use", "function call")


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of marks and of words, which most texts lack."""
    after: dict[str, set[str]] = {}
    leads = [(literal[0], literal[1:].lstrip("|/ ")[:_LEAD]) for literal in _literals()]
    for opener in OPENERS.kinds[None]:
        for one in () if NAME in opener else expand(opener):
            first = str(one[0])
            leads += [(first[0], lead) for lead in first_letters((first[1:], *one[1:]))]
    for bracket, lead in leads:
        if bracket in _OPENING and any(map(str.isalnum, lead)) and not (lead.isalpha() and len(lead) < 3):
            after.setdefault(bracket, set()).add(lead)
    options = [
        f"{first}(?={rest}{_GAP}{any_of(some)})"
        for bracket, some in sorted(after.items())
        for first, rest in _ESCAPES.get(bracket, ((re.escape(bracket), ""),))
    ]
    lines = sorted(set(map(str.strip, OPENERS.heads(Anchor.LINE))) - {"{"})
    options.append(rf"\n(?=[ \t>*#-]{{0,8}}{any_of((*lines, *LINE_HEADS))})")
    options += [r"<(?=<{7})", r"\[(?=\[{7})", _FENCED, _NAMED_TAG, _KEYS]
    words = [rf"{first}{word_start(first)}(?={re.escape(cue[1:])})" for cue in _WORD_CUES for first in cue[0]]
    return re.compile("|".join(options)), re.compile("|".join(words))


def _literals() -> Iterator[str]:
    """Yield tokens, tags and closers, with their brackets."""
    yield from SURE | EDGES
    for table in TAG_TABLES:
        yield table["name"]
        for pattern in (table.get("opener", ""), table.get("closer", "")):
            yield from (re.sub(r"\\(.)", r"\1", one) for one in re.findall(r"(?:\\[<>|\[\]]|[\w<>:◁▷/ ])+", pattern))
    for closer in (one for family in FAMILIES for one in family.closers):
        yield from ("<" + name for name in re.sub(r"\(\?:|\)", "|", closer).split("|") if name)


def without_loops(reply: Reply, names: frozenset[str]) -> Reply:
    """Return the reply without the plain rests of its texts; the object itself if there are none, which is usual."""
    choices: list[Choice] = []
    for choice in reply.choices:
        parts = tuple([_without_rest(part, names) for part in choice.parts])
        same = all(one is other for one, other in zip(parts, choice.parts, strict=True))
        choices.append(choice if same else replace(choice, parts=parts))
    same = all(one is other for one, other in zip(choices, reply.choices, strict=True))
    return reply if same else replace(reply, choices=tuple(choices))


def _without_rest(part: Part, names: frozenset[str]) -> Part:
    if isinstance(part, Text | Reasoning | Refusal) and (end := plain_from(part.text, names)) is not None:
        return replace(part, text=part.text[:end])
    return part


# An answer that continues as the user, without the tokens between the turns: `\n\nHuman: …`, a line `user`.
#
# Plays, interviews and tables have labels of speakers too. Only two forms count: a text that ends with the label of the
# next speaker, and a user's whole turn after an answer without labels, followed by the assistant's turn or ending in a
# question.

_LABEL = re.compile(r"\n\n(?:###[ ])?(?P<label>Human|USER|H|Instruction):(?=\s|\Z)")
_LINE = re.compile(r"(?<=[.!?…)\]\"'”*`|])[ \t]*\n+(?P<label>user)[ \t]*\n+(?=\S+[ \t]+\S+[ \t]+\S)")
_ANSWERS = {
    "Human": re.compile(r"\n\n(?:###[ ])?Assistant:"),
    "H": re.compile(r"\n\nA:"),
    "USER": re.compile(r"\n+ASSISTANT:"),
    "Instruction": re.compile(r"\n\n### (?:Response|Answer):"),
    "user": re.compile(r"\n(?:assistant|model)[ \t]*\n"),
}
# `Robot: Hello.`, `**Anna:** Hello.`, `- Human: slow`: a label before.
_NAMED = re.compile(r"^[ \t]*(?:[-*•>#]+[ \t]*)?\**[A-Z][\w.’' -]{0,30}\**:", re.MULTILINE)
_MARKS = Cues("\n\nHuman:", "\n\nUSER:", "\n\nH:", "\n\n### ", "\nuser")
_SENTENCE_END = (".", "!", "?", "…", "。", "？", "！")
_LONGEST_TURN = 2000


@dataclass(frozen=True, slots=True)
class Runaway:
    """The start of the next speaker's turn, which lasts to the end of the text."""

    label: str
    start: int


def find_runaway(text: str) -> Runaway | None:
    """Return the place from which on a text continues as the user; None without one, or if it may be intended."""
    if not _MARKS.occur_in(text):
        return None
    for pattern in (_LABEL, _LINE):
        match = pattern.search(text)
        if match is None or not text[: match.start()].strip() or _NAMED.search(text[: match.start()]):
            continue
        label, start = match["label"], match.start("label")
        if is_mention(text, start, match.end()) or not _is_turn(text[match.end() :], label):
            continue
        return Runaway(label, start)
    return None


def _is_turn(rest: str, label: str) -> bool:
    if not rest.strip():
        return label in ("Human", "USER")
    if len(rest.split(maxsplit=3)) < 3:
        return False
    answer = _ANSWERS[label].search(rest, 0, _LONGEST_TURN)
    if answer is not None:
        return rest[: answer.start()].rstrip().endswith(_SENTENCE_END)
    return len(rest) <= _LONGEST_TURN and rest.rstrip().endswith("?") and label != "H"
