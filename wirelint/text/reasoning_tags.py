"""The delimiters that models put around their reasoning, from `lexicon/reasoning_tags.toml`.

`thinking` searches for them. To add a notation, add its table there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from wirelint import lexicon

Place = Literal["edge", "inner", "orphan"]
"""`edge`: at the beginning of what is said, or after a tool block. `inner`: a pair that opens on a line of its own.
`orphan`: the closer alone, whose opener stood in the prompt."""


@dataclass(frozen=True, slots=True)
class ReasoningTag:
    """One notation. `families`: who is trained on it, by our own short words; empty for what prompts ask for.

    `native` tags are never prose; prompted ones are written by models without a reasoning channel too.
    """

    name: str
    families: tuple[str, ...]
    opener: str = ""
    closer: str = ""
    places: frozenset[Place] = frozenset({"edge", "inner", "orphan"})
    native: bool = True


def _tag(table: Mapping[str, Any]) -> ReasoningTag:
    fields = {**table, "families": tuple(table.get("families", ()))}
    if "places" in table:
        fields["places"] = frozenset(table["places"])
    return ReasoningTag(**fields)


_TABLES = lexicon.load("reasoning_tags")
REASONING_TAGS: tuple[ReasoningTag, ...] = tuple(map(_tag, _TABLES["tags"]))
ANSWER_TAGS: tuple[str, ...] = tuple(_TABLES["answers"])
SENTENCES: tuple[tuple[str, str, str], ...] = tuple((name, begin, end) for name, begin, end in _TABLES["sentences"])
"""Frames made of words: family, the expression of the beginning, the expression of the end."""
SENTENCE_HEADS: tuple[str, ...] = tuple(_TABLES["sentence_heads"])

FINAL_RESPONSE = re.compile(r"^\[BEGIN FINAL RESPONSE\]", re.MULTILINE)

CUT_TOKEN = re.compile(r"<(?:[|｜][^|｜<>\s]{0,40}[|｜]?)?\Z")
PLACE = re.compile(r"(?:\A|[\n>|\]])[ \t\r\n]*\Z")
"""What stands before a tag that opens in the middle: the beginning of its line, or the end of other markup."""
CUT_TAG = re.compile(r"(?:[<\[◁&]|to=)[^<>\[\]\n]{0,64}\Z")
MAY_OPEN = re.compile(r"[<\[◁]|to=")
