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
TOKEN_OPENER: Opener = (
    "<", _GAP, _BARS, _GAP, "tool", _U,
    either(
        ("calls", maybe(_U, either("begin", "end"))),
        ("call", _U, either("begin", "end")),
        "sep",
    ),
    _GAP, _BARS, _GAP, ">",
)  # fmt: skip

TOKEN = re.compile(full_pattern((TOKEN_OPENER,)))
# What the header after a begin token leads to tells whose it is: Kimi's goes on to the arguments.
_LEADS_TO = re.compile(
    rf"(?:{TOKEN.pattern}\s{{0,4}}){{1,3}}[^<]{{0,160}}<\s?\|{{1,2}}\s?tool(?:_| |\\_)(?P<sep>sep|(?:call(?:_| |\\_))?arg)"
)
# Step 3 puts its own tags between the same tokens.
_STEP_AFTER = re.compile(rf"(?:{TOKEN.pattern}\s{{0,4}}(?:function\s{{0,4}})?){{1,4}}<\s{{0,3}}(?:steptml:|invoke\s)")
_HEADER = re.compile(r"[^<{`\n]{0,160}")
_NAME = re.compile(r"[^\S\n]*(?P<name>[\w.:/-]{1,128})(?P<space>\s*)")
_TICKS = re.compile(r"`{3}")
_FENCE = re.compile(r"`{3,}[a-zA-Z]{0,8}[^\S\n]*\n?")
_FENCE_END = re.compile(r"\s*`{3,}")
_TYPES = frozenset({"function", "custom", "tool"})


@dataclass(slots=True)
class _Section:
    """What has been read of a run of tokens."""

    end: int
    calls: list[NativeCall] = field(default_factory=list)
    fenced: bool | None = None
    malformed: bool = False


def _read(reader: Reader, position: int) -> Reading:
    token = reader.match(TOKEN, position)
    if token is None or not _is_ours(reader, token):
        return None
    section = _Section(token.start())
    section.malformed = kind(token) != "calls_begin"
    at = token.start()
    while here := reader.match(TOKEN, at):
        section.malformed |= not _canonical(reader, here)
        section.end = here.end()
        match kind(here):
            case "calls_begin" | "calls":
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
    if reader.match(_STEP_AFTER, token.start()):
        return False
    if kind(token) not in ("call_begin", "call_end"):
        return True
    if kind(token) == "call_begin":
        before = reader.open
        if leads := reader.match(_LEADS_TO, token.start()):
            return bool(leads["sep"] == "sep")
        if reader.open and not before:  # not to be told yet: nobody else should make a name of its beginning
            return True
    written = reader.value(token.start(), token.end())
    return not written.isascii() or "tool_" not in written


def kind(token: Match) -> str:
    """`calls_begin`, `calls`, `call_begin`, `sep`, `call_end` or `calls_end`."""
    words = re.findall(r"[a-z]+", token[0])
    return "_".join(words[1:])


def _canonical(reader: Reader, token: Match) -> bool:
    written = reader.value(token.start(), token.end())
    return written.startswith("<｜") and "▁" in written and "｜｜" not in written


def _read_call(reader: Reader, start: int, section: _Section, *, begun: bool) -> None:
    """`TYPE<sep>NAME` and a fence, or `NAME<sep>` and JSON."""
    at = reader.space(start)
    header = reader.match(_HEADER, at)
    edge = header.end() if header is not None else at
    first = header[0].strip() if header is not None else ""
    separator = reader.match(TOKEN, reader.space(edge))
    if separator is None or kind(separator) != "sep":
        _read_unseparated(reader, edge, first if begun else "", section)
        return
    section.malformed |= not begun or not _canonical(reader, separator)
    section.end = separator.end()
    if first not in _TYPES:
        _read_body(reader, separator.end(), first, section)
        return
    name = reader.match(_NAME, separator.end())
    if reader.open:  # the name is still to come, or may go on
        return
    if name is not None and ("\n" in name["space"] or _ends_name(reader, name.end())):
        section.fenced = True if section.fenced is None else section.fenced
        _read_body(reader, name.end(), name["name"], section)
    elif reader.char(reader.space(separator.end())) == "{":
        _read_body(reader, separator.end(), first, section)
    else:
        section.malformed = True


def _ends_name(reader: Reader, at: int) -> bool:
    return reader.char(at) in ("", "{", "<") or reader.match(_TICKS, at) is not None


def _read_unseparated(reader: Reader, edge: int, name: str, section: _Section) -> None:
    """A name that the body follows at once, or nothing."""
    if not name or " " in name or reader.open:  # what is there of a name may be its beginning, or a type
        return
    if reader.char(edge) in ("{", "`"):
        section.malformed = True
        _read_body(reader, edge, name, section)
    else:
        section.calls.append(reader.call(name, None, complete=False))
        section.end = edge


def _read_body(reader: Reader, start: int, name: str, section: _Section) -> None:
    at = reader.space(start)
    fence = reader.match(_FENCE, at)
    if fence is not None:
        section.fenced = True if section.fenced is None else section.fenced
        at = reader.space(fence.end())
    elif section.fenced is None:
        section.fenced = False
    arguments, complete, section.end = _read_object(reader, at, section)
    if fence is not None and (fence_end := reader.match(_FENCE_END, section.end)):
        section.end = fence_end.end()
    section.calls.append(reader.call(name, arguments, complete=complete))
    closer = reader.match(TOKEN, reader.space(section.end))
    if closer is not None and kind(closer) == "call_end":
        section.malformed |= not _canonical(reader, closer)
        section.end = closer.end()
    else:
        section.malformed = True


def _read_object(reader: Reader, at: int, section: _Section) -> tuple[Json, bool, int]:
    """The arguments, whether they are complete, and where they end."""
    decoded = reader.json(at) if reader.char(at) in ("{", "[", '"') else None
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
    stop = reader.next(TOKEN, at)
    if stop is not None and stop.start() == at:
        return {}, True, at
    end = stop.start() if stop is not None else reader.size
    repaired = reader.repair(at, end)
    if repaired is None or (stop is None and repaired.missing):
        return None, False, end
    return repaired.value, True, repaired.end if stop is None else end


FAMILY = Family(
    "deepseek",
    rank=1,
    openers=(TOKEN_OPENER,),
    read=_read,
    speakers={_FENCED: frozenset({"deepseek"}), _PLAIN: frozenset({"deepseek"})},
)
