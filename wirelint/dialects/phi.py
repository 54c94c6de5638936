"""Calls as an array after `functools`, or between the tokens of Phi's tool turn.

Lineage: FireFunction-v2 (Fireworks, on Llama 3) begins its answer with a blank and ` functools[…]`; Phi-4-mini and
Phi-4-multimodal took the word over without the blank, and have tokens besides, which their published template writes.

    functools[{"name": "lookup", "arguments": {"city": "Graz"}}]
    <|tool_call|>[{"name": "lookup", "arguments": {"city": "Graz"}}]<|/tool_call|>

Types come from the JSON. No ids, no closer for `functools`. Granite 3 opens with `<|tool_call|>` as well and has no closer:
without one the bytes are its own. In the wild: `parameters` for `arguments`, single quotes, one object for the array.
"""

from __future__ import annotations

import re
from dataclasses import replace

from wirelint.dialects import marked_json
from wirelint.dialects.family import Family, Reading
from wirelint.dialects.marked_json import Grammar, compiled, compiled_cut
from wirelint.dialects.openers import WORD_START, Opener, Run, word_start
from wirelint.dialects.reader import Reader

_START = marked_json.token("tool", "call")
_WORD: Opener = (WORD_START, "functools", Run(" ", 0, 1), "[", Run(r"\s", 0, 8), "{")

_FUNCTOOLS = Grammar(
    dialect="phi4_functools",
    # Python has `functools.reduce`, and no subscript of the module.
    opener=re.compile(rf"{word_start()}functools ?(?=\[\s{{0,8}}\{{)"),
    canonical=frozenset({"functools"}),
    tier="generic",
)
_FIREFUNCTION = replace(_FUNCTOOLS, dialect="firefunction_v2")
_TOKENS = Grammar(
    dialect="phi4_tool_call",
    opener=compiled(_START),
    canonical=frozenset({"<|tool_call|>"}),
    closer=re.compile(r"<\s?(?:\|{1,2}\s?/|/\s?\|{1,2})\s?tool(?:_| |\\_)call\s?\|{0,2}\s?>"),
    closing="<|/tool_call|>",
    cut_closer=compiled_cut(("<|/tool_call|>",)),
    closed_only=True,
)
_BLANK_BEFORE = re.compile(r"(?:\A|\s) \Z")


def _read(reader: Reader, position: int) -> Reading:
    if reader.match(_FUNCTOOLS.opener, position):
        spaced = _BLANK_BEFORE.search(reader.view.text[max(position - 2, 0) : position])
        return marked_json.read(reader, position, _FIREFUNCTION if spaced else _FUNCTOOLS)
    return marked_json.read(reader, position, _TOKENS)


FAMILY = Family(
    "phi",
    rank=1,
    openers=(_WORD, _START),
    read=_read,
    speakers={
        "phi4_functools": frozenset({"phi"}),
        "phi4_tool_call": frozenset({"phi"}),
        "firefunction_v2": frozenset({"firefunction"}),
    },
)
