"""Grok's `<xai:function_call>`, which comes out as text when a call goes astray.

Lineage: xAI's own tag with Claude's parameters inside. The cards of Grok's web page (`<xai:tool_usage_card>`) tell of tools
that ran on xAI's servers: they are markup that no reader should see, and no calls.

    <xai:function_call name="lookup">
    <parameter name="city">Graz</parameter>
    </xai:function_call>

Values are text; the declared schema types them, else JSON that is not a string. No ids; calls follow one another. In the
wild: cut off at the end of what was written, closed by `</xai:function_call">`, blanks inside the tags.
"""

from __future__ import annotations

import re
from dataclasses import replace

from wirelint.dialects import invoke, marked_json
from wirelint.dialects.family import Family, Found, Reading
from wirelint.dialects.openers import Opener, Run, maybe
from wirelint.dialects.reader import Reader

_DIALECT = "xai_function_call"
_GAP = Run(r"\s", 0, 3)
_CLOSING: Opener = ("<", _GAP, "/", _GAP, "xai:function_call")

_CARD = re.compile(r"<\s{0,3}xai:tool_usage_card\s{0,3}>\s{0,8}(?=<\s{0,3}xai:)")
_CARD_END = re.compile(r"<\s{0,3}/\s{0,3}xai:tool_usage_card\s{0,3}>")
_OBJECT = re.compile(r"<\s{0,3}xai:function_calls?\s{0,3}>\s{0,8}(?=[{\[`])")
# Closers that are cut off or damaged, as the end of what was written.
_LAST_CLOSER = re.compile(
    r"(?:<\s{0,3}/\s{0,3}(?:xai:)?parameter\s{0,3}>\s{0,8})?<\s{0,3}/\s{0,3}xai:function_calls?\s{0,3}(?:\"\s{0,3}>?)?"
)
_GRAMMAR = invoke.Grammar(
    dialect=_DIALECT,
    prefixed=_DIALECT,
    parameters=("parameter", "param", "argument", "arg"),
    other_bodies=True,
    bare=True,
    spelling=invoke.spell(
        prefix="xai:",
        closing_prefix="(?:xai:)?",
        word="function_call",
        any_word="function_call",
        parameter_prefix="(?:xai:)?",
        wrapper="(?:xai:)?function_calls",
        wrapper_end="(?:xai:)?function_calls",
    ),
    tier="sentinel",
)
_PLAIN = replace(
    _GRAMMAR,
    bare=False,
    spelling=invoke.spell(
        word="function_call",
        any_word="function_call",
        wrapper="function_calls",
        wrapper_end="function_calls",
    ),
    tier="generic",
)
_OBJECTS = marked_json.Grammar(
    dialect=_DIALECT,
    opener=_OBJECT,
    closer=re.compile(r"<\s{0,3}/\s{0,3}xai:function_calls?\"?\s{0,3}>"),
    canonical=frozenset(),
)


def _read(reader: Reader, position: int) -> Reading:
    if card := reader.match(_CARD, position):
        end = reader.next(_CARD_END, card.end())
        return Found(_DIALECT, position, reader.size if end is None else end.end(), (), "sentinel", malformed=True)
    if reader.match(_OBJECT, position):
        return marked_json.read(reader, position, _OBJECTS)
    last = reader.match(_LAST_CLOSER, position)
    if last is not None and reader.ended(reader.space(last.end())):
        return Found(_DIALECT, position, last.end(), (), "sentinel", malformed=True)
    return invoke.read(reader, position, _GRAMMAR) or invoke.read(reader, position, _PLAIN)


FAMILY = Family(
    "grok",
    rank=1,
    openers=(
        ("<", _GAP, "xai:function_call"),
        ("<", _GAP, "function_call", Run(r"\s", 1, 4), "name", _GAP, "="),
        ("<", _GAP, "function_calls", _GAP, ">"),
        ("<", _GAP, "xai:tool_usage_card", _GAP, ">"),
        _CLOSING,
        ("<", _GAP, "/", _GAP, maybe("xai:"), "parameter", _GAP, ">", Run(r"\s", 0, 8), *_CLOSING),
    ),
    read=_read,
    speakers={_DIALECT: frozenset({"grok"})},
    closers={"xai:function_calls?": _DIALECT},
    lone=frozenset({"xai:function_call", "xai:function_calls"}),
)
