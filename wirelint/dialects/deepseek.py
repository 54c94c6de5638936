"""DeepSeek's call tokens, of the generations that put JSON between them.

Lineage: V2.5 and V3 (with R1) name a type first and fence the JSON; V3.1 drops both. From V3.2 on the markup is DSML,
which is another family.

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>lookup
    ```json
    {"city": "Graz"}
    ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

    <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>lookup<｜tool▁sep｜>{"city": "Graz"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>

Types come from the JSON. No ids. In the wild: ASCII or doubled bars, `_`, `\\_` or a space for `▁`, the call's begin token
missing, the end tokens eaten as stop tokens, the older body under the newer model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wirelint.dialects import jsontext
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import Opener, Run, either, full_pattern, maybe
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall
from wirelint.model import Json

_FENCED, _PLAIN = "deepseek_v3", "deepseek_v3_1"
_GAP = Run(r"\s", 0, 1)
_BARS = Run("|", 1, 2)
_U = either("_", " ", "\\_")
_TOKEN_OPENER: Opener = (
    "<", _GAP, _BARS, _GAP, "tool", _U,
    either(
        ("calls", maybe(_U, either("begin", "end"))),
        ("call", _U, either("begin", "end")),
        "sep",
    ),
    _GAP, _BARS, _GAP, ">",
)  # fmt: skip

_TOKEN = re.compile(full_pattern((_TOKEN_OPENER,)))
_BODY_OPENER = re.compile(r"<\s?\|{1,2}\s?tool(?:_| |\\_)(?P<sep>sep|(?:call(?:_| |\\_))?arg)")
# Step 3 puts its own tags between the same tokens.
_STEP_AFTER = re.compile(rf"(?:{_TOKEN.pattern}\s{{0,4}}(?:function)?\s{{0,4}}){{1,4}}<steptml:")
_STEP_BEFORE = re.compile(rf"</steptml:[a-z]{{1,16}}>\s{{0,4}}(?:{_TOKEN.pattern}\s{{0,4}}){{0,3}}\Z")
_NAME = re.compile(r"[^\S\n]*(?P<name>[\w.:/-]{1,128})\s*(?=\Z|`{3}|\{|<|\n)")
_FENCE = re.compile(r"`{3,}[a-zA-Z]{0,8}[^\S\n]*\n?")
_FENCE_END = re.compile(r"\s*`{3,}")
_HEADER_LIMIT = 160
_HEADER_STOP = re.compile(r"[<{`\n]")
_TYPES = frozenset({"function", "custom", "tool"})


@dataclass(slots=True)
class _Section:
    """What has been read of a run of tokens."""

    end: int
    calls: list[NativeCall] = field(default_factory=list)
    fenced: bool | None = None
    malformed: bool = False
    opened: bool = False


def _read(reader: Reader, position: int) -> Reading:
    token = _TOKEN.match(reader.shadow, position)
    if token is None or not _is_ours(reader, token):
        return None
    section = _Section(token.start())
    section.malformed = _kind(token) != "calls_begin"
    at = token.start()
    while here := _TOKEN.match(reader.shadow, at):
        section.malformed |= not _canonical(reader, here)
        section.end = here.end()
        match _kind(here):
            case "calls_begin" | "calls":
                section.opened = True
                _read_call(reader, here.end(), section, begun=False)
            case "call_begin":
                _read_call(reader, here.end(), section, begun=True)
            case "calls_end":
                break
        at = reader.space(section.end)
    else:
        section.malformed = True
    if reader.stand_ins(section.calls):
        return Skip(section.end)
    calls = tuple(section.calls)
    dialect = _FENCED if section.fenced else _PLAIN
    return Found(dialect, position, section.end, calls, "sentinel", section.malformed or not calls)


def _is_ours(reader: Reader, token: Match) -> bool:
    """Kimi K2 (`<|tool_call_begin|>`) and Step 3 (with underscores) have tokens that only the bytes around tell apart."""
    if _STEP_AFTER.match(reader.shadow, token.start()):
        return False
    if _STEP_BEFORE.search(reader.shadow[max(reader.floor, token.start() - _HEADER_LIMIT) : token.start()]):
        return False
    written = reader.value(token.start(), token.end())
    if _kind(token) not in ("call_begin", "call_end"):
        return True
    body = reader.next(_BODY_OPENER, token.end())
    if body is not None and _kind(token) == "call_begin" and body.start() - token.end() <= _HEADER_LIMIT:
        return body["sep"] == "sep"
    return not written.isascii() or "tool_" not in written


def _kind(token: Match) -> str:
    words = re.findall(r"[a-z]+", token[0])
    return "_".join(words[1:])


def _canonical(reader: Reader, token: Match) -> bool:
    written = reader.value(token.start(), token.end())
    return written.startswith("<｜") and "▁" in written and "｜｜" not in written


def _read_call(reader: Reader, start: int, section: _Section, *, begun: bool) -> None:
    """`TYPE<sep>NAME` and a fence, or `NAME<sep>` and JSON."""
    at = reader.space(start)
    limit = min(at + _HEADER_LIMIT, reader.size)
    stop = _HEADER_STOP.search(reader.shadow, at, limit)
    edge = stop.start() if stop is not None else limit
    first = reader.view.text[at:edge].strip()
    separator = _TOKEN.match(reader.shadow, reader.space(edge))
    if separator is None or _kind(separator) != "sep":
        if first and begun and edge < reader.size and reader.shadow[edge] in "{`":
            section.malformed = True
            _read_body(reader, edge, first, section)
        elif first and begun:
            section.calls.append(reader.call(first, None, complete=False))
            section.end = edge
        return
    section.malformed |= not begun or not _canonical(reader, separator)
    section.end = separator.end()
    name = _NAME.match(reader.shadow, separator.end())
    if first in _TYPES and name is not None:
        section.fenced = True if section.fenced is None else section.fenced
        _read_body(reader, name.end(), name["name"], section)
    else:
        _read_body(reader, separator.end(), first, section)


def _read_body(reader: Reader, start: int, name: str, section: _Section) -> None:
    at = reader.space(start)
    fence = _FENCE.match(reader.shadow, at)
    if fence is not None:
        section.fenced = True if section.fenced is None else section.fenced
        at = reader.space(fence.end())
    elif section.fenced is None:
        section.fenced = False
    arguments, complete, section.end = _read_object(reader, at, section)
    if fence is not None and (fence_end := _FENCE_END.match(reader.shadow, section.end)):
        section.end = fence_end.end()
    section.calls.append(reader.call(name, arguments, complete=complete))
    closer = _TOKEN.match(reader.shadow, reader.space(section.end))
    if closer is not None and _kind(closer) == "call_end":
        section.malformed |= not _canonical(reader, closer)
        section.end = closer.end()
    else:
        section.malformed = True


def _read_object(reader: Reader, at: int, section: _Section) -> tuple[Json, bool, int]:
    """The arguments, whether they are complete, and where they end."""
    decoded = reader.json(at) if at < reader.size and reader.shadow[at] in '{["' else None
    if decoded is not None and not decoded.failed:
        section.malformed |= not decoded.healthy
        if not isinstance(decoded.value, str):
            return decoded.value, True, decoded.end
        section.malformed = True
        try:
            return jsontext.loads(decoded.value), True, decoded.end
        except ValueError:
            return None, False, decoded.end
    section.malformed = True
    stop = reader.next(_TOKEN, at)
    if stop is not None and stop.start() == at:
        return {}, True, at
    end = stop.start() if stop is not None else reader.size
    repaired = reader.repair(at, end)
    if repaired is None or (stop is None and repaired.missing):
        return None, False, end
    return repaired.value, True, repaired.end if stop is None else end


FAMILY = Family("deepseek", openers=(_TOKEN_OPENER,), read=_read)
