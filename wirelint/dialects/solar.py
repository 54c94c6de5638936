"""Solar Open 2's call tokens, a key and a value for every argument.

Lineage: Upstage's Solar Pro wrote Hermes' JSON; Solar Open 2 has tokens of its own.

    <|tool_call:start|>lookup
    <|tool_arg:start|>city<|tool_arg:value|>Graz<|tool_arg:end|>
    <|tool_call:end|>

Values are text as it stands, typed by the declared schema; of an argument that is repeated the first counts. Calls follow
each other, no ids. An end token that is missing is made up for by the next start.
"""

from __future__ import annotations

import re

from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import Opener, either
from wirelint.dialects.openers import Run as Chars
from wirelint.dialects.pairs import pairs, read_run
from wirelint.dialects.reader import Reader

_DIALECT = "solar_open2"


def _token(word: str) -> str:
    return rf"<\s?\|{{1,2}}\s?tool_{word}\s?\|{{1,2}}\s?>"


_TAGS = pairs(
    key=_token("arg:start"),
    value=_token("arg:value"),
    value_end=_token("arg:end"),
    call=_token("call:start"),
    call_end=_token("call:end"),
    cut_closer=re.compile(r"<\|{1,2}tool_c[^<>]{0,32}\Z"),
    first_wins=True,
    sure=True,
)
_OPENER = re.compile(_token("call:(?:start|end)"))


def _read(reader: Reader, position: int) -> Reading:
    opener = reader.match(_OPENER, position)
    if opener is None:
        return None
    run = read_run(reader, position, _TAGS, wrapped=False)
    if reader.stand_ins(run.calls):
        return Skip(run.end)
    end = run.end if run.calls else opener.end()
    malformed = run.malformed or reader.value(position, opener.end()) != "<|tool_call:start|>"
    return Found(_DIALECT, position, end, tuple(run.calls), "sentinel", malformed or not run.calls)


_GAP, _BARS = Chars(r"\s", 0, 1), Chars("|", 0, 1)
_START: Opener = ("<", _GAP, "|", _BARS, _GAP, "tool_call:", either("start", "end"), _GAP, "|", _BARS, _GAP, ">")

FAMILY = Family(
    "solar",
    rank=1,
    openers=(_START,),
    read=_read,
    speakers={_DIALECT: frozenset({"solar"})},
)
