"""GigaChat 3's calls: a message of their own kind, with an object in it.

Lineage: Sber's GigaChat 3, whose messages are joined by a token and headed by who speaks → the 10B models, with one
token in place of the header. GigaChat 3.5 writes tags in DeepSeek's manner (another family).

    Looking.<|message_sep|>

    function call<|role_sep|>
    {"name": "lookup", "arguments": {"city": "Graz"}}

    <|function_call|>{"name": "lookup", "arguments": {"city": "Graz"}}

Types come from the JSON. No ids, one call a message; the tokens that end the turn are no part of it. In the wild: the
first token missing, since a chat template may have written it, or both, where a server leaves out special tokens. What
is left then, `function call` and an object at the beginning of a line, counts for a declared tool.
"""

from __future__ import annotations

import re

from wirelint.dialects import jsoncalls
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.jsoncalls import JsonCalls
from wirelint.dialects.marked_json import SPECIAL_END, compiled, token
from wirelint.dialects.openers import BLANKS, LINE_START, SPACES, WORD_START, Opener, either
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import Tier

_DIALECT = "gigachat3"
_WORDS = "function call"
_SEPARATED: Opener = (*token("message", "sep"), SPACES, _WORDS)
_HEADED: Opener = (WORD_START, _WORDS, BLANKS, *token("role", "sep"))
_TOKEN: Opener = token("function", "call")
_BARE: Opener = (LINE_START, BLANKS, _WORDS, SPACES, "{", SPACES, either('"name"', "'name'"))

_HEADER = re.compile(
    rf"(?:(?P<sep>{compiled(token('message', 'sep')).pattern})\s{{0,8}})?"
    rf"{_WORDS}[ \t]{{0,8}}(?P<role>{compiled(token('role', 'sep')).pattern})?"
)
_FUNCTION_CALL = compiled(_TOKEN)
_LINE = re.compile(rf"[ \t]{{0,8}}{_WORDS}\s{{0,8}}(?=\{{)")
_FENCE = re.compile(r"\s{0,8}`{3,}[a-zA-Z]{0,8}")
_FENCE_END = re.compile(r"\s{0,8}`{3,}")
_SURPLUS = re.compile(r"[}\]]{1,4}")
_STOP = re.compile(rf"{SPECIAL_END.pattern}|{compiled(token('message', 'sep')).pattern}")
_NEXT = re.compile(rf"{_FUNCTION_CALL.pattern}|{_WORDS}{compiled(token('role', 'sep')).pattern}")
_CANONICAL = re.compile(r"<\|message_sep\|>\n\nfunction call<\|role_sep\|>\n|<\|function_call\|>")
# What may stand after the tokens when they call: a sentence about them goes on otherwise.
_BEGINNINGS = ("", "\n", "\r", "{", "[", "`")


def _read(reader: Reader, position: int) -> Reading:
    if marker := reader.match(_FUNCTION_CALL, position):
        return _read_call(reader, position, marker)
    header = reader.match(_HEADER, position)
    if header is not None and (header["sep"] or header["role"]):
        return _read_call(reader, position, header)
    line = reader.match(_LINE, position) if reader.tools else None
    return _read_line(reader, line) if line is not None else None


def _read_call(reader: Reader, position: int, header: Match) -> Reading:
    """The call after tokens that only GigaChat has."""
    fence = reader.match(_FENCE, header.end())
    at = reader.space(header.end() if fence is None else fence.end())
    found = jsoncalls.read_calls(reader, at, _STOP, (_NEXT,))
    if found is None:
        called = reader.char(header.end()) in _BEGINNINGS
        return Found(_DIALECT, position, header.end(), (), "sentinel", malformed=True) if called else None
    canonical = fence is None and _CANONICAL.fullmatch(reader.value(position, at)) is not None
    return _found(reader, position, found, "sentinel", fenced=fence is not None, malformed=not canonical)


def _read_line(reader: Reader, line: Match) -> Reading:
    """The words without their tokens, at the beginning of a line: a call of declared tools, or nothing."""
    if line.start() < reader.dead.get(_DIALECT, 0):
        return None
    found = jsoncalls.read_calls(reader, line.end(), _STOP, (_NEXT,))
    if found is not None and all(call.name in reader.tools for call in found.calls):
        return _found(reader, line.start(), found, "generic", fenced=False, malformed=True)
    stop = reader.first((_STOP, _NEXT), line.end())
    reader.dead[_DIALECT] = found.end if found is not None else stop.start() if stop is not None else reader.size
    return None


def _found(reader: Reader, start: int, found: JsonCalls, tier: Tier, *, fenced: bool, malformed: bool) -> Reading:
    end = found.end
    for rest in (_SURPLUS, *((_FENCE_END,) if fenced else ())):
        if more := reader.match(rest, end):
            end, malformed = more.end(), True
    if reader.stand_ins(found.calls):
        return Skip(end)
    proper = found.canonical and found.values == 1 and not found.array
    return Found(_DIALECT, start, end, tuple(found.calls), tier, malformed or not proper)


FAMILY = Family(
    "gigachat",
    rank=2,
    openers=(_SEPARATED, _HEADED, _TOKEN, _BARE),
    read=_read,
    speakers={_DIALECT: frozenset({"gigachat"})},
)
