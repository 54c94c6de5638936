"""Liquid's tokens around a list of Python calls.

Lineage: the pythonic list, between special tokens: LFM2, LFM2.5.

    <|tool_call_start|>[lookup(city="Graz"), ping()]<|tool_call_end|>

Types come from the literals. No ids. An array of JSON objects between the same tokens is accepted by its servers too (and
is what Pangu writes there). In the wild the end token is eaten, or a bracket is missing.
"""

from __future__ import annotations

import re

from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.jsoncalls import read_calls as read_json_calls
from wirelint.dialects.pythoncalls import read_calls
from wirelint.dialects.reader import Reader
from wirelint.dialects.values import NativeCall

_DIALECT = "lfm2"
_START = re.compile(r"<\|{1,2}tool_call_start\|{1,2}>")
_END = re.compile(r"<\|{1,2}tool_call_end\|{1,2}>")
_OPENING = re.compile(r"\[\s{0,8}")
_CLOSING = re.compile(r"\s{0,8},?\s{0,8}\]")
_JSON = re.compile(r"(?:\[\s{0,8})?\{")


def _read(reader: Reader, position: int) -> Reading:
    start = reader.match(_START, position)
    if start is None:
        return None
    at = reader.space(start.end())
    body = _read_json(reader, at) if reader.match(_JSON, at) else _read_python(reader, at)
    if body is None:
        return Found(_DIALECT, position, start.end(), (), "sentinel", malformed=True)
    calls, end, malformed = body
    token = reader.match(_END, reader.space(end))
    end = token.end() if token is not None else end
    malformed |= token is None or "||" in start[0] + token[0]
    if reader.stand_ins(calls):
        return Skip(end)
    return Found(_DIALECT, position, end, calls, "sentinel", malformed)


def _read_python(reader: Reader, at: int) -> tuple[tuple[NativeCall, ...], int, bool] | None:
    opening = reader.match(_OPENING, at)
    read = read_calls(reader, opening.end() if opening is not None else at, _END)
    if not read:
        return None
    calls = tuple(call.native(reader) for call in read)
    closing = reader.match(_CLOSING, read[-1].end)
    malformed = opening is None or closing is None or any(call.malformed for call in read)
    return calls, closing.end() if closing is not None else read[-1].end, malformed


def _read_json(reader: Reader, at: int) -> tuple[tuple[NativeCall, ...], int, bool] | None:
    found = read_json_calls(reader, at, _END, (_START,))
    if found is None:
        return None
    return tuple(found.calls), found.end, not (found.array and found.canonical and found.values == 1)


FAMILY = Family(
    "lfm",
    rank=1,
    openers=(("<|tool_call_start|>",), ("<||tool_call_start||>",)),
    read=_read,
    speakers={_DIALECT: frozenset({"lfm"})},
)
