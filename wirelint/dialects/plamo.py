"""PLaMo 3's tool requests, spelt out in tokens around name and arguments.

Lineage: PLaMo 3 (Preferred Networks, 2025) alone. Each token is several pieces of the vocabulary, so a stream may split
it anywhere.

    <|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|>
    <|plamo:begin_tool_name:plamo|>lookup<|plamo:end_tool_name:plamo|>
    <|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{"city": "Graz"}
    <|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>

(in one line). Types come from the JSON. No ids. In the wild: outer tokens missing, the closing ones eaten by a stop token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wirelint.dialects.arguments import read_arguments
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import Opener, Run, either, full_pattern
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall

_DIALECT = "plamo3"
_GAP = Run(r"\s", 0, 1)
_BARS = Run("|", 1, 2)
_U = either("_", " ", "\\_")
_OPENER: Opener = (
    "<", _GAP, _BARS, _GAP, "plamo:begin", _U, "tool", _U, either("requests", "request", "name", "arguments"), ":plamo",
    _GAP, _BARS, _GAP, ">",
)  # fmt: skip
_ANY: Opener = (
    "<", _GAP, _BARS, _GAP, "plamo:", either("begin", "end"), _U, "tool", _U,
    either("requests", "request", "name", "arguments"), ":plamo", _GAP, _BARS, _GAP, ">",
)  # fmt: skip
_TOKEN = re.compile(full_pattern((_ANY,)))
_CANONICAL = re.compile(r"<\|plamo:(?:begin|end)_tool_[a-z]+:plamo\|>")
_CONSTRAINT = re.compile(r"(?:<\s?\|{1,2}plamo:constrain\|{1,2}\s?>)?\s*(?:json\s*)?<\s?\|{1,2}plamo:msg\|{1,2}\s?>\s*")
_BARE_TYPE = re.compile(r"(?:<\|plamo:constrain\|>)?\s*json\s*(?=\{)")
_NAME = re.compile(r"\s*([\w.:/-]{1,128})\s*(?=<)")
_LAST_NAME = re.compile(r"\s*([\w.:/-]{1,128})\s*\Z")
_CUT_TOKEN = re.compile(r"<(?:\|(?:plamo(?::\w{0,24}(?::\w{0,6}\|?)?)?)?)?\Z")


@dataclass(slots=True)
class _Section:
    """What has been read of a run of tokens."""

    end: int
    tokens: list[str] = field(default_factory=list)
    calls: list[NativeCall] = field(default_factory=list)
    name: str | None = None
    malformed: bool = False


def _read(reader: Reader, position: int) -> Reading:
    first = reader.match(_TOKEN, position)
    if first is None:
        return None
    section = _Section(position)
    at = position
    while here := reader.match(_TOKEN, at):
        kind = _kind(here)
        section.tokens.append(kind)
        section.malformed |= _CANONICAL.fullmatch(reader.value(here.start(), here.end())) is None
        section.end = here.end()
        match kind:
            case "begin_name":
                _read_name(reader, section)
            case "begin_arguments":
                _read_arguments(reader, section)
            case "end_requests":
                break
        at = reader.space(section.end)
    if reader.over and reader.match(_CUT_TOKEN, at):
        section.end = reader.size
    return _finish(reader, position, section)


def _kind(token: Match) -> str:
    words = re.findall(r"[a-z]+", token[0])
    return f"{words[1]}_{words[3]}"


def _finish(reader: Reader, position: int, section: _Section) -> Reading:
    if section.name is not None:  # a name without arguments
        section.calls.append(reader.call(section.name, None, complete=False))
    if reader.stand_ins(section.calls):
        return Skip(section.end)
    request = ["begin_request", "begin_name", "end_name", "begin_arguments", "end_arguments", "end_request"]
    regular = section.tokens == ["begin_requests", *request * len(section.calls), "end_requests"]
    malformed = section.malformed or not section.calls or not regular
    return Found(_DIALECT, position, section.end, tuple(section.calls), "sentinel", malformed)


def _read_name(reader: Reader, section: _Section) -> None:
    if section.name is not None:
        section.calls.append(reader.call(section.name, None, complete=False))
        section.name = None
    name = reader.match(_NAME, section.end)
    if name is None and reader.over:
        name = reader.match(_LAST_NAME, section.end)
    if name is None:
        section.malformed = True
        return
    section.name, section.end = name[1], name.end()


def _read_arguments(reader: Reader, section: _Section) -> None:
    at = reader.space(section.end)
    constraint = reader.match(_CONSTRAINT, at)
    if constraint is None:
        section.malformed = True
        constraint = reader.match(_BARE_TYPE, at)
    at = constraint.end() if constraint is not None else at
    arguments = read_arguments(reader, at, _TOKEN)
    complete = arguments.complete and section.name is not None
    section.calls.append(reader.call(section.name or "", arguments.value, complete=complete))
    section.end = arguments.end
    section.malformed |= not arguments.canonical
    section.name = None


FAMILY = Family("plamo", rank=1, openers=(_OPENER,), read=_read, speakers={_DIALECT: frozenset({"plamo"})})
