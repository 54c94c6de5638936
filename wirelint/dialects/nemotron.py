"""Nemotron's array in a `<TOOLCALL>` tag.

Lineage: NVIDIA's Llama-Nemotron (Super 49B v1.5) and Nemotron Nano 2; Nemotron 3 writes Qwen3-Coder's tags.

    <TOOLCALL>[{"name": "lookup", "arguments": {"city": "Graz"}}]</TOOLCALL>

Types come from the JSON. No ids. In the wild: the brackets missing, `arguments` encoded twice, the closer missing.
"""

from __future__ import annotations

import re

from wirelint.dialects import marked_json
from wirelint.dialects.family import Family, Reading
from wirelint.dialects.marked_json import Grammar, compiled, compiled_cut
from wirelint.dialects.openers import Opener, Run, maybe
from wirelint.dialects.reader import Reader

_GAP = Run(r"\s", 0, 3)
_TAG = ("TOOL", maybe("_"), "CALL", maybe("S"), _GAP, ">")
_START: Opener = ("<", _GAP, *_TAG)
_END: Opener = ("<", _GAP, "/", _GAP, *_TAG)
_GRAMMAR = Grammar(
    dialect="nemotron_toolcall",
    opener=compiled(_START),
    canonical=frozenset({"<TOOLCALL>"}),
    closer=re.compile(rf"{compiled(_END).pattern}|<TOOLCALL>(?!\s{{0,8}}[\[{{])"),
    cut_closer=compiled_cut(_END),
    tier="generic",
)


def _read(reader: Reader, position: int) -> Reading:
    return marked_json.read(reader, position, _GRAMMAR)


FAMILY = Family(
    "nemotron",
    rank=1,
    openers=(_START,),
    read=_read,
    speakers={_GRAMMAR.dialect: frozenset({"nemotron"})},
    closers={"TOOL_?CALLS?": _GRAMMAR.dialect},
    lone=frozenset({"TOOLCALL"}),
)
