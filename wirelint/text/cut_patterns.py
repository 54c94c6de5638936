r"""Expressions for what the end of a text cuts off of a match, derived from the expression of the whole.

A stream holds back what may become a delimiter. The expressions are those of short delimiters: literals, classes, bounded
repetition, groups without nesting, positive look-ahead, alternatives. Each alternative becomes a row of its own, and a row
`ab[cd]` becomes `(?:\Z|a(?:\Z|b\Z))`: what has come in full is not cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ATOM = re.compile(
    r"\(\?=(?P<ahead>(?:[^()]|\([^()]*\))*)\)|\((?:\?:)?(?P<group>[^()]*)\)\??|\[[^\]]*\](?:\{\d+,\d+\}|\?)?|\\?.(?:\{\d+,\d+\}|\?)?"
)


def cut(pattern: str) -> str:
    """A pattern for the non-empty beginnings of what `pattern` matches, at the end of a text."""
    return "(?=[\\s\\S])(?:" + "|".join(_cut_row(option) for option in _options(pattern)) + ")"


def _options(pattern: str) -> Iterator[str]:
    """The alternatives of a pattern, groups and what they look ahead to written out."""
    depth, start = 0, 0
    for place, character in enumerate(pattern):
        if pattern[place - 1 : place] == "\\":
            continue
        depth += (character in "([") - (character in ")]")
        if character == "|" and not depth:
            yield from _options(pattern[start:place])
            start = place + 1
    row = pattern[start:]
    group = next((atom for atom in _ATOM.finditer(row) if atom["ahead"] or atom["group"]), None)
    if group is None:
        yield row
        return
    inner = group["ahead"] or group["group"]
    for option in (*_options(inner), *([""] if group[0].endswith("?") else ())):
        yield from _options(row[: group.start()] + option + row[group.end() :])


def _cut_row(row: str) -> str:
    pattern = ""
    for atom in reversed([atom[0] for atom in _ATOM.finditer(row)]):
        pattern = f"(?:\\Z|{atom}{pattern})" if pattern else r"\Z"
    return pattern
