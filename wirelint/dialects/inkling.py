"""Inkling's tool messages: a header with the tool's name, then an object that names it again.

Lineage: Inkling alone.

    <|message_model|>lookup<|content_invoke_tool_json|>{"name":"lookup","args":{"city":"Graz"}}<|end_message|>

Several calls are several messages. Types come from the JSON. No ids. In the wild: the last token eaten as a stop token, the
message token dropped, the arguments alone for the object. The text form, `<|content_invoke_tool_text|>`, is only told.
"""

from __future__ import annotations

import re

from wirelint.dialects import jsoncalls
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.jsoncalls import Keys
from wirelint.dialects.marked_json import SPECIAL_END
from wirelint.dialects.openers import Opener, Run, cut_pattern, either, maybe
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall
from wirelint.model import Json

_DIALECT = "inkling"
_KEYS = Keys("name", "args")
_CONTENT: Opener = ("<", Run("|", 1, 2), "content_invoke_tool", either("_json", "_text"), Run("|", 1, 2), ">")
_HEADER: Opener = (
    "<", Run("|", 1, 2), "message_model", Run("|", 1, 2), ">", Run(r"\s", 0, 2), Run(r"\w.:/-", 0, 128), Run(r"\s", 0, 2),
    *_CONTENT,
)  # fmt: skip
_START = re.compile(
    r"(?:<\|{1,2}message_model\|{1,2}>\s{0,2}(?P<name>[\w.:/-]{0,128})\s{0,2})?"
    r"<\|{1,2}content_invoke_tool_(?P<form>json|text)\|{1,2}>"
)
_CANONICAL = re.compile(r"<\|message_model\|>[\w.:/-]+<\|content_invoke_tool_json\|>")
_CLOSER_OPENER: Opener = ("<", Run("|", 1, 2), "end", maybe("_of"), "_message", Run("|", 1, 2), ">")
_CLOSER = re.compile(r"<\|{1,2}end(?:_of)?_message\|{1,2}>")
_CUT_CLOSER = re.compile(cut_pattern((_CLOSER_OPENER,)))
_STOP = re.compile(rf"{_CLOSER.pattern}|<\|{{1,2}}message_\w{{1,16}}\|{{1,2}}>|{SPECIAL_END.pattern}")


def _read(reader: Reader, position: int) -> Reading:
    start = reader.match(_START, position)
    if start is None:
        return None
    calls, end, malformed = _read_calls(reader, start)
    malformed |= _CANONICAL.fullmatch(reader.value(start.start(), start.end())) is None
    at = reader.space(end)
    if closer := reader.match(_CLOSER, at):
        end = closer.end()
    else:
        malformed = True
        if reader.over and reader.match(_CUT_CLOSER, at):
            end = reader.size
    if reader.stand_ins(calls):
        return Skip(end)
    return Found(_DIALECT, position, end, tuple(calls), "sentinel", malformed or not calls)


def _read_calls(reader: Reader, start: Match) -> tuple[list[NativeCall], int, bool]:
    """The call (or several, which no template writes), where it ends, and whether it departs from the grammar."""
    at = reader.space(start.end())
    name = start["name"] or ""
    if start["form"] == "json" and reader.char(at) in ("{", "["):
        if name and (alone := _arguments_alone(reader, at, name)):
            return [alone[0]], alone[1], True
        found = jsoncalls.read_calls(reader, at, _STOP, (_START,), _KEYS)
        if found is not None:
            regular = found.canonical and len(found.calls) == 1 and not found.array
            return found.calls, found.end, not regular
    stop = reader.next(_STOP, at)
    end = stop.start() if stop is not None else reader.size
    return ([reader.call(name, None, complete=False)] if name else []), end, True


def _arguments_alone(reader: Reader, at: int, name: str) -> tuple[NativeCall, int] | None:
    """An object that is the arguments themselves, under a header that says whose."""
    decoded = reader.json(at)
    if decoded.failed or not isinstance(decoded.value, dict) or _names(decoded.value):
        return None
    return reader.call(name, decoded.value, complete=True), decoded.end


def _names(value: dict[str, Json]) -> bool:
    return isinstance(value.get("name"), str) and ("args" in value or "arguments" in value or len(value) == 1)


FAMILY = Family(
    "inkling",
    rank=1,
    openers=(_HEADER, _CONTENT),
    read=_read,
    speakers={_DIALECT: frozenset({"inkling"})},
)
