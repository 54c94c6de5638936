"""Python in a `tool_code` fence, and what is seen of Gemini's own calls when its server fails to read them.

Lineage: Gemini's code mode, with its namespace `default_api` → the prompt format of Gemma 2 and 3, without it.

    ```tool_code
    lookup(city='Graz')
    ```

    ```tool_code
    print(default_api.lookup(city='Graz'))
    ```

Types come from the literals. No ids; a line for each call. Leaks of Gemini lose the fence, or keep its word on a line of
its own; `call:default_api:lookup{city:Graz}` is another notation of its server (that of Gemma's tokens), and
`declaration:default_api:lookup{…}` a tool repeated instead of called, which is reported and never made a call. What
stands outside a fence counts for declared tools.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wirelint.dialects import pythoncalls
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.gemma import read_body
from wirelint.dialects.openers import BLANKS, LINE_START, Run, either
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall

_FENCED, _API = "gemma_tool_code", "gemini_default_api"
_FENCE = re.compile(r"`{3,8}tool_code(?:[ \t]{0,4}\r?\n|\s)\s{0,8}")
_FENCE_END = re.compile(r"\s{0,8}`{3,8}")
_WORD = re.compile(r"[ \t]{0,8}tool_code[ \t]{0,4}\r?\n\s{0,8}")
_OPENING = re.compile(r"\[\s{0,8}")
_CLOSING = re.compile(r"\s{0,8},?\s{0,8}\]")
_LEAD = re.compile(
    r"(?P<target>[A-Za-z_]\w{0,63}\s{0,3}=\s{0,3})?(?P<print>print\s{0,3}\(\s{0,8})?(?P<api>default_api\.)?(?=[A-Za-z_])"
)
_NAMESPACE = re.compile(r"(?:print\s{0,3}\(\s{0,8})?default_api\.")
_LEAD_END = re.compile(r"\s{0,8}\)")
_ECHO = re.compile(r"print\s{0,3}\(\s{0,3}[A-Za-z_][\w.]{0,64}\s{0,3}\)")
_ASIDE = re.compile(r"#[^\n]*\n")
_SEPARATOR = re.compile(r"\s{0,8}[,;]")
_BLANKS = re.compile(r"[ \t]{0,8}")
_CONTROL = re.compile(r"<ctrl\d{2,3}>")
_NOTATION = re.compile(r"(?P<kind>call|declaration):default_api:(?P<name>[A-Za-z_][\w.-]{0,127})\s{0,3}(?=\{)")


@dataclass(slots=True)
class _Lines:
    """The calls of some lines. `api`: the namespace is named."""

    end: int
    calls: list[NativeCall] = field(default_factory=list)
    api: bool = False
    malformed: bool = False


def _read(reader: Reader, position: int) -> Reading:
    if fence := reader.match(_FENCE, position):
        return _read_fence(reader, fence)
    at = position
    if blanks := reader.match(_BLANKS, position):
        at = blanks.end()
    if control := reader.match(_CONTROL, at):
        at = control.end()
    if notation := reader.match(_NOTATION, at):
        return _read_notation(reader, position, notation)
    word = reader.match(_WORD, position)
    start = word.end() if word is not None else at
    return _read_bare(reader, position, start) if reader.match(_NAMESPACE, start) else None


def _read_fence(reader: Reader, fence: Match) -> Reading:
    if fence.start() < reader.dead.get(_FENCED, 0):
        return None
    at = reader.space(fence.end())
    opening = reader.match(_OPENING, at)
    lines = _read_lines(reader, opening.end() if opening is not None else at)
    if not lines.calls:
        return None
    if opening is not None and (closing := reader.match(_CLOSING, lines.end)):
        lines.end = closing.end()
    closer = reader.match(_FENCE_END, lines.end)
    reader.dead[_FENCED] = lines.end
    if closer is None and not any(call.name in reader.tools for call in lines.calls):
        return None
    end = closer.end() if closer is not None else lines.end
    if reader.stand_ins(lines.calls):
        return Skip(end)
    dialect = _API if lines.api else _FENCED
    malformed = lines.malformed or closer is None or opening is not None
    return Found(dialect, fence.start(), end, tuple(lines.calls), "generic", malformed)


def _read_bare(reader: Reader, position: int, at: int) -> Reading:
    """Lines without a fence: of declared tools, in the namespace, and with nothing else on the last of them."""
    if position < reader.dead.get(_API, 0):
        return None
    lines = _read_lines(reader, at)
    if not lines.calls:
        return None
    reader.dead[_API] = lines.end
    blanks = reader.match(_BLANKS, lines.end)
    ends_line = reader.char(blanks.end() if blanks is not None else lines.end) in ("", "\n", "\r", "`")
    known = all(call.name in reader.tools for call in lines.calls)
    if not (known and ends_line):
        return None
    return Found(_API, position, lines.end, tuple(lines.calls), "generic", malformed=True)


def _read_lines(reader: Reader, position: int) -> _Lines:
    lines = _Lines(position)
    at = position
    while True:
        while aside := reader.match(_ASIDE, at):
            at = reader.space(aside.end())
        if lines.calls and (echo := reader.match(_ECHO, at)):
            lines.end, lines.malformed = echo.end(), True
            at = reader.space(echo.end())
            continue
        end = _read_line(reader, at, lines)
        if end is None:
            return lines
        separator = reader.match(_SEPARATOR, end)
        at = reader.space(separator.end() if separator is not None else end)


def _read_line(reader: Reader, at: int, lines: _Lines) -> int | None:
    """One call and its offset of end; None when nothing more can follow."""
    lead = reader.match(_LEAD, at)
    call = pythoncalls.read_call(reader, lead.end()) if lead is not None else None
    if lead is None or call is None or call.name == "print":
        return None
    name = call.name.removeprefix("default_api.")
    lines.calls.append(call.native(reader, name))
    lines.api |= lead["api"] is not None
    lines.end = call.end
    lines.malformed |= (
        call.malformed or lead["target"] is not None or (lead["print"] is None) == (lead["api"] is not None)
    )
    if not call.closed:
        return None
    if lead["print"] is not None:
        closing = reader.match(_LEAD_END, call.end)
        lines.malformed |= closing is None
        lines.end = closing.end() if closing is not None else call.end
    return lines.end


def _read_notation(reader: Reader, position: int, notation: Match) -> Reading:
    tool = reader.tool(notation["name"])
    if tool is None or position < reader.dead.get(_NOTATION, 0):
        return None
    body = read_body(reader, notation.end(), tool, (_NOTATION,))
    reader.dead[_NOTATION] = body.end
    called = notation["kind"] == "call"
    call = reader.call(
        notation["name"],
        body.arguments if called else None,
        complete=called and body.complete and body.arguments is not None,
    )
    closer = reader.match(_CONTROL, body.end)
    return Found(_API, position, closer.end() if closer is not None else body.end, (call,), "generic", malformed=True)


FAMILY = Family(
    "gemma_code",
    rank=1,
    openers=(
        ("```tool_code", either("\n", "\r", " ")),
        (LINE_START, BLANKS, "tool_code", Run(r" \t", 0, 2), either("\n", "\r\n")),
        (LINE_START, BLANKS, "print", Run(" ", 0, 1), "(", Run(" ", 0, 1), "default_api."),
        (LINE_START, BLANKS, "default_api."),
        (LINE_START, BLANKS, either("call", "declaration"), ":default_api:"),
        ("<ctrl", Run(r"\d", 2, 3), ">", either("call", "declaration"), ":default_api:"),
    ),
    read=_read,
    speakers={_FENCED: frozenset({"gemma"}), _API: frozenset({"gemini"})},
)
