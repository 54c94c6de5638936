"""Functionary's recipients: who a stretch of the message is for, a line with a tool's name or `all`.

Lineage: MeetKai's prompt formats. v2 has tokens for the header; v3.2 has only `>>>` between stretches; v3.1 follows Llama's
custom tag, which is another family.

    <|from|>assistant
    <|recipient|>lookup
    <|content|>{"city": "Graz"}<|stop|>

    all
    Looking.>>>lookup
    {"city": "Graz"}>>>ping
    {}

Types come from the JSON; the recipient `python` takes raw code. No ids. Of v3.2 the template has written the first `>>>`,
so a message begins with the recipient: that counts for a declared tool, parameters of its own, and nothing but calls after
it.
"""

from __future__ import annotations

import re

from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.llama import code_arguments, is_code
from wirelint.dialects.openers import NAME, SPACES, TEXT_START, Run, either
from wirelint.dialects.pythoncalls import around_names, fits
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall

_LINES, _TOKENS = "functionary_v3_2", "functionary_v2"
_NAME = r"[A-Za-z_][\w.:/-]{0,127}"
_BLANKS = Run(r" \t", 0, 4)

_HEADER = re.compile(
    rf"(?P<from><\|from\|>\s{{0,4}}assistant\s{{0,4}})?<\|recipient\|>\s{{0,4}}(?P<name>{_NAME})\s{{0,4}}(?P<content><\|content\|>)?"
)
_STOP = re.compile(r"<\|stop\|>")
_NEXT_HEADER = re.compile(r"<\|(?:from|recipient|stop)\|>")
_TOKEN = re.compile(r"<\|(?:from|recipient)\|>")

_NEXT = r"(?<!>)>>>[ \t]{0,4}"
_AFTER_NAME = r"[ \t]{0,4}\r?\n\s{0,8}(?=\{)"
_AFTER_PYTHON = r"[ \t]{0,4}\r?\n"
_TO_ALL = re.compile(r"all[ \t]{0,4}\r?\n")
_TOKEN_OF_GLM = re.compile(r"\s{0,4}<\|(?:observation|assistant|user)\|>")
_CUT_BODY = re.compile(r"\{\s{0,8}(?:\"[^\"\\]{0,64}(?:\"\s{0,8}:|\Z)|\Z)")
_PYTHON = ("python",)


def _read(reader: Reader, position: int) -> Reading:
    if header := reader.match(_HEADER, position):
        return _read_section(reader, header)
    if token := reader.match(_TOKEN, position):
        return Found(_TOKENS, position, token.end(), (), "sentinel", malformed=True)
    return _read_line(reader, position) if reader.tools else None


# -- v2 ----------------------------------------------------------------------------------------------------------------


def _read_section(reader: Reader, header: Match) -> Reading:
    at = reader.space(header.end())
    if header["name"] == "all":
        return Found(_TOKENS, header.start(), header.end(), (), "sentinel", malformed=False)
    if header["content"] is None and reader.char(at) != "{":
        return Found(_TOKENS, header.start(), header.end(), (), "sentinel", malformed=True)
    call, end, malformed = _read_body(reader, header["name"], at)
    stop = reader.match(_STOP, reader.space(end))
    end = stop.end() if stop is not None else end
    malformed |= stop is None or header["content"] is None
    if reader.stand_ins([call]):
        return Skip(end)
    return Found(_TOKENS, header.start(), end, (call,), "sentinel", malformed)


def _read_body(reader: Reader, name: str, at: int) -> tuple[NativeCall, int, bool]:
    """The call of a section, where its body ends, and whether it is damaged."""
    decoded = reader.json(at)
    if not decoded.failed:
        return reader.call(name, decoded.value, complete=True), decoded.end, not decoded.healthy
    stop = reader.next(_NEXT_HEADER, at)
    end = stop.start() if stop is not None else reader.size
    if reader.resolve(name) in _PYTHON and is_code(code := reader.value(at, end).strip()):
        return reader.call(name, code_arguments(reader, name, code), complete=stop is not None), end, False
    repaired = reader.repair(at, end)
    if repaired is None or (repaired.missing and stop is None):
        return reader.call(name, None, complete=False), end, True
    return reader.call(name, repaired.value, complete=True), end, True


# -- v3.2 --------------------------------------------------------------------------------------------------------------


def _read_line(reader: Reader, position: int) -> Reading:
    """A recipient and its call, at the beginning of the message or after `>>>`."""
    first = reader.begins(position)
    at = reader.space(position) if first else position
    before = f"(?:{_NEXT})?" if first else _NEXT
    names = tuple(sorted(reader.tools))
    if first and reader.match(_TO_ALL, at):
        return _read_all(reader, position, at, names)
    if header := reader.match(around_names(names, before, _AFTER_NAME), at):
        return _read_call(reader, position, header, names)
    if "python" in reader.tools and (header := reader.match(around_names(_PYTHON, before, _AFTER_PYTHON), at)):
        return _read_code(reader, position, header)
    return None


def _read_all(reader: Reader, position: int, at: int, names: tuple[str, ...]) -> Reading:
    """The recipient of the text before the calls; a word like others when none comes."""
    if reader.next(around_names(names, _NEXT, _AFTER_PYTHON), at) is None:
        return None
    to_all = reader.match(_TO_ALL, at)
    end = to_all.end() if to_all is not None else at
    return Found(_LINES, position, end, (), "weak", malformed=False)


def _read_call(reader: Reader, position: int, header: Match, names: tuple[str, ...]) -> Reading:
    if position < reader.dead.get(_LINES, 0):
        return None
    decoded = reader.json(header.end())
    if decoded.failed:
        repaired = reader.repair(header.end(), reader.size)
        reader.dead[_LINES] = reader.size
        if repaired is None or repaired.missing:
            return _read_cut(reader, position, header)
        decoded = repaired
    call = reader.call(header["name"], decoded.value, complete=True)
    reader.dead[_LINES] = decoded.end
    if not (call.complete and fits(reader, call) and _ends_stretch(reader, decoded.end, names)):
        return None
    return Found(_LINES, position, decoded.end, (call,), "weak", not decoded.healthy)


def _ends_stretch(reader: Reader, end: int, names: tuple[str, ...]) -> bool:
    """Whether another recipient follows, or nothing does. GLM-4 has the same lines, and tokens of its own after them."""
    if reader.match(around_names(names, rf"\s{{0,4}}{_NEXT}", _AFTER_PYTHON), end):
        return True
    return reader.match(_TOKEN_OF_GLM, end) is None and reader.concludes(end)


def _read_cut(reader: Reader, position: int, header: Match) -> Reading:
    """A call whose JSON the text ends in."""
    if reader.match(_CUT_BODY, header.end()) is None:
        return None
    call = reader.call(header["name"], None, complete=False)
    return Found(_LINES, position, reader.size, (call,), "weak", malformed=True)


def _read_code(reader: Reader, position: int, header: Match) -> Reading:
    """The rest of the message as code, if it is."""
    at = reader.space(header.end())
    if reader.ended(at) or position < reader.dead.get(_PYTHON, 0):
        return None
    reader.dead[_PYTHON] = reader.size
    reader.ended(reader.size)
    code = reader.value(at, reader.size).rstrip()
    call = reader.call("python", code_arguments(reader, "python", code), complete=True)
    if not is_code(code) or not fits(reader, call):
        return None
    return Found(_LINES, position, reader.size, (call,), "weak", malformed=False)


_LINE_END = (_BLANKS, either("\n", "\r\n"))

FAMILY = Family(
    "functionary",
    rank=4,
    openers=(
        ("<|from|>",),
        ("<|recipient|>",),
        (">>>", _BLANKS, NAME, *_LINE_END),
        (TEXT_START, SPACES, NAME, *_LINE_END, SPACES, "{"),
        (TEXT_START, SPACES, "all", *_LINE_END),
        (TEXT_START, SPACES, "python", *_LINE_END),
    ),
    read=_read,
    speakers={_TOKENS: frozenset({"functionary"}), _LINES: frozenset({"functionary"})},
)
