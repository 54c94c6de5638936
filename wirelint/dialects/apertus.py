"""Apertus: an array of objects with one key each, the tool's name.

Lineage: Apertus (Swiss AI, 2025) alone.

    <|tools_prefix|>[{"lookup": {"city": "Graz"}}, {"ping": {}}]<|tools_suffix|>

Types come from the JSON. No ids. In the wild: the suffix eaten as a stop token, the usual `name` and `arguments` inside.
"""

from __future__ import annotations

from wirelint.dialects import marked_json
from wirelint.dialects.family import Family, Reading
from wirelint.dialects.jsoncalls import Keys
from wirelint.dialects.marked_json import Grammar, compiled, compiled_cut, token
from wirelint.dialects.reader import Reader

_START, _END = token("tools", "prefix"), token("tools", "suffix")
_GRAMMAR = Grammar(
    dialect="apertus",
    opener=compiled(_START),
    canonical=frozenset({"<|tools_prefix|>"}),
    closer=compiled(_END),
    closing="<|tools_suffix|>",
    cut_closer=compiled_cut(_END),
    keys=Keys("", "", keyed=True),
    on_sight=True,
)


def _read(reader: Reader, position: int) -> Reading:
    return marked_json.read(reader, position, _GRAMMAR)


FAMILY = Family("apertus", rank=1, openers=(_START,), read=_read, speakers={_GRAMMAR.dialect: frozenset({"apertus"})})
