"""Pieces of text that a model may repeat: openers and closers of all dialects, tokens of chat templates, tags of reasoning,
and marks of Markdown, JSON and event streams. Those of wirelint come from its own tables, so new dialects are included."""

from __future__ import annotations

import functools
import re

from tests.dialects.writers import SOUP
from tests.tables import tables
from wirelint.dialects.openers import Anchor, Either, Name, Opener, Run
from wirelint.dialects.scan import FAMILIES
from wirelint.text.control_tokens import EDGES, SURE
from wirelint.text.thinking import SENTENCE_HEADS, TAG_TABLES

_MARKS: list[str] = tables(__file__)["marks"]
_BODY = '{"name": "look", "arguments": {"q": "a'


def _written(opener: Opener, most: bool) -> str:
    """An opener as text: the first options and as few characters of each class as can be, or the last and some more."""
    return "".join(_piece(piece, most) for piece in opener)


def _piece(piece: object, most: bool) -> str:
    match piece:
        case str():
            return piece
        case Run(chars, least, longest):
            return _one_of(chars) * min(longest, max(least, 3 if most else 0))
        case Either(options):
            return _written(options[-1 if most else 0], most)
        case Name():
            return "look"
        case Anchor.LINE:
            return "\n"
        case Anchor.WORD:
            return " "
        case Anchor.SENTENCE:
            return "."
        case Anchor.TEXT:
            return ""
    raise TypeError(piece)


@functools.cache
def _one_of(chars: str) -> str:
    pattern = re.compile(f"[{chars}]")
    return next(one for one in 'a0 _-:/="|<>{[(\n\t' + "".join(map(chr, range(1, 0x10000))) if pattern.match(one))


def _plain(pattern: str) -> str:
    """A text that a simple regular expression of literals fits: groups, classes and repetitions are read off roughly."""
    text = re.sub(r"\(\?[=:!<]+[^()]*\)|\[\^[^]]*\](?:\{[\d,]+\})?|\\s\?|\\n\?|\?", "", pattern)
    text = re.sub(r"\([^()|]*\|?[^()]*\)", "", text).replace("\\s", " ").replace("\\n", "\n")
    return re.sub(r"\\(.)", r"\1", text).split("|<")[0]


@functools.cache
def units() -> tuple[str, ...]:
    found: list[str] = [*_MARKS, *sorted(SURE | EDGES), *SENTENCE_HEADS, *SOUP.values()]
    for family in FAMILIES:
        for opener in family.openers:
            for begun in (_written(opener, most=False), _written(opener, most=True)):
                found += (begun, begun[: len(begun) // 2 + 1], begun + _BODY)
        found += (f"</{_plain(closer)}>" for closer in family.closers)
        found += ("\nlook" + _written(ending, most=False) for ending in family.after_name)
    for tag in TAG_TABLES:
        begins = _plain(tag["opener"]) if "opener" in tag else tag["name"]
        ends = _plain(tag["closer"]) if "closer" in tag else f"</{tag['name'][1:]}"
        found += (begins, ends, f"{begins}a{ends}", f"\n{begins}\n", f"{ends}\n\n")
    return tuple(dict.fromkeys(unit for unit in found if unit))
