"""Pangu: an array of calls between two tokens that its vocabulary had left unnamed.

Lineage: openPangu (Huawei, 2025).

    [unused11][{"name": "lookup", "arguments": {"city": "Graz"}}][unused12]

Types come from the JSON. No ids. Newer templates write `<|tool_call_start|>` and `<|tool_call_end|>`, LFM2's notation.
BERT's vocabulary has entries of these names, so the marker counts with an array only.
"""

from __future__ import annotations

import re

from wirelint.dialects import marked_json
from wirelint.dialects.family import Family, Reading
from wirelint.dialects.marked_json import Grammar
from wirelint.dialects.openers import Run
from wirelint.dialects.reader import Reader

_GRAMMAR = Grammar(
    dialect="pangu_unused",
    opener=re.compile(r"\[unused ?11\]"),
    canonical=frozenset({"[unused11]"}),
    closer=re.compile(r"\[unused ?12\]"),
    closing="[unused12]",
    cut_closer=re.compile(r"\[(?:u(?:n(?:u(?:s(?:e(?:d(?:1(?:2)?)?)?)?)?)?)?)?\Z"),
)


def _read(reader: Reader, position: int) -> Reading:
    return marked_json.read(reader, position, _GRAMMAR)


FAMILY = Family(
    "pangu",
    rank=1,
    openers=(("[unused", Run(" ", 0, 1), "11]"),),
    read=_read,
    speakers={_GRAMMAR.dialect: frozenset({"pangu"})},
)
