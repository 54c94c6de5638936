"""Kimi K2's call tokens, and the invoke markup with `<arg>` that it falls back to.

Lineage: Moonshot's K2 template (K2, K2-Thinking, K2.5, K2.6). K3 has a notation of its own.

    <|tool_calls_section_begin|>
    <|tool_call_begin|>functions.lookup:0<|tool_call_argument_begin|>{"city": "Graz"}<|tool_call_end|>
    <|tool_calls_section_end|>

The header is the native id, `functions.NAME:N`, N counting through the conversation; the body is JSON, so types come from
it. In the wild: section tokens missing or singular, one token of a call missing, the header without `functions.` or as a
bare number, the dot as a space, tokens rendered as plain tags (`<tool_call_begin>`), or all tokens stripped so that
`functions.lookup:0{…}` is left. `<invoke name="lookup"><arg name="city">Graz</arg></invoke>` is seen behind gateways.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wirelint.dialects import coercion, invoke, jsontext
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.jsoncalls import read_calls
from wirelint.dialects.openers import WORD_START, Opener, Run, either, full_pattern, maybe, word_start
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall, Tier
from wirelint.model import Json

_DIALECT = "kimi_k2"
_INVOKE = invoke.Grammar(
    dialect="kimi_invoke_arg",
    prefixed="kimi_invoke_arg",
    parameters=("arg",),
    other_bodies=False,
    bare=True,
)

_GAP = Run(r"\s", 0, 1)
_BARS = Run("|", 0, 2)
_U = either("_", " ", "\\_")
_TOKEN_OPENER: Opener = (
    "<", Run("/", 0, 1), _GAP, _BARS, _GAP, "tool", _U,
    either(
        (either("calls", "call"), _U, "section", _U, either("begin", "end")),
        ("call", _U, either("begin", "end")),
        (maybe("call", _U), "arg", maybe("ument"), maybe("s"), maybe(_U, "begin")),
    ),
    _GAP, _BARS, _GAP, ">",
)  # fmt: skip
_STRIPPED_OPENER: Opener = (
    WORD_START, "functions", either(".", " "), Run(r"\w.-", 1, 128), ":", Run("0-9", 1, 6), Run(r"\s", 0, 4),
    either("{", "<"),
)  # fmt: skip

_TOKEN = re.compile(full_pattern((_TOKEN_OPENER,)))
_STRIPPED = re.compile(word_start() + r"(?P<id>functions[. ][\w.-]{1,128}:[0-9]{1,6})\s{0,4}(?=[{<])")
_HEADER_BEFORE = re.compile(
    r"(?:(?m:^)[ \t]*|(?<=>))(?P<id>(?:functions[. ])?[A-Za-z_][\w.-]{0,127}:[0-9]{1,6})\s{0,4}\Z"
)
_HEADER_LIMIT = 160
_HEADER = re.compile(rf"[^{{<\[\"]{{0,{_HEADER_LIMIT}}}")
_FOLLOWER = re.compile(rf"[^<]{{0,{_HEADER_LIMIT}}}")
_HEADER_SHAPE = re.compile(r"(?:functions?[. ]\s*)?[\w.:/-]{1,128}")
_FOREIGN_ID = re.compile(r"(?:call|toolu|fc|chatcmpl-tool)[_-][\w-]{4,64}")
_FENCE = re.compile(r"`{3,}[a-zA-Z]{0,8}\s*")
_SURPLUS = re.compile(r"(?:[\s}\]]{1,8}|\s{0,4}`{3,}\s{0,4})(?=<)")
_JSON_START = frozenset('{["')
_BODY_START = _JSON_START | {"<"}
_CANONICAL = frozenset(
    f"<|tool_{token}|>"
    for token in ("calls_section_begin", "call_begin", "call_argument_begin", "call_end", "calls_section_end")
)
_LFM2_START = re.compile(r"<\|tool_call_start\|>")
_LETTERS = re.compile(r"[^a-z]+")


@dataclass(slots=True)
class _Section:
    """What has been read of a run of tokens."""

    start: int
    end: int
    barred: bool
    calls: list[NativeCall] = field(default_factory=list)
    malformed: bool = False


def _read(reader: Reader, position: int) -> Reading:
    token = reader.match(_TOKEN, position)
    if token is not None:
        return _read_section(reader, token)
    if stripped := reader.match(_STRIPPED, position):
        return _read_stripped(reader, stripped)
    return invoke.read(reader, position, _INVOKE)


def _kind(token: Match) -> str:
    """`section_begin`, `begin`, `arg`, `arg_end`, `end` or `section_end`."""
    words = [word for word in _LETTERS.split(token[0]) if word]
    closing = "/" in token[0]
    if "section" in words:
        return "section_end" if closing else f"section_{words[-1]}"
    if any(word.startswith("arg") for word in words):
        return "arg_end" if closing else "arg"
    return "end" if closing else words[-1]


def _read_section(reader: Reader, token: Match) -> Reading:
    kind = _kind(token)
    if kind in ("begin", "end") and _is_foreign(reader, token, kind):
        return None
    section = _Section(token.start(), token.end(), barred="|" in token[0])
    if not section.barred and token.start() < reader.dead.get(_DIALECT, 0):
        return None
    section.malformed = kind != "section_begin"
    at = token.start()
    while token_here := reader.match(_TOKEN, at):
        kind = _kind(token_here)
        reader.work += len(token_here[0])
        section.malformed |= reader.value(token_here.start(), token_here.end()) not in _CANONICAL
        section.end = token_here.end()
        match kind:
            case "begin":
                _read_call(reader, token_here.end(), section)
            case "arg":
                _read_headless(reader, token_here, section)
            case "section_begin":
                _read_call(reader, token_here.end(), section, only_with_header=True)
            case "section_end":
                break
        at = reader.space(section.end)
    else:
        section.malformed = True
    return _finish(reader, section)


def _is_foreign(reader: Reader, token: Match, kind: str) -> bool:
    """LFM2 and Pangu close with `<|tool_call_end|>` too; DeepSeek and Step 3 have both tokens, with other bars."""
    if kind == "end" and reader.between(_LFM2_START, reader.floor, token.start()):
        return True
    if reader.value(token.start(), token.end()).isascii():
        return False
    follower = reader.match(_FOLLOWER, token.end())
    follower = reader.match(_TOKEN, follower.end()) if follower is not None else None
    return follower is None or _kind(follower) != "arg"


def _finish(reader: Reader, section: _Section) -> Reading:
    tier: Tier = "sentinel" if section.barred else "generic"
    if tier == "generic" and not any(call.complete or call.name in reader.tools for call in section.calls):
        reader.dead[_DIALECT] = section.end
        return None
    if reader.stand_ins(section.calls):
        return Skip(section.end)
    calls = tuple(section.calls)
    return Found(_DIALECT, section.start, section.end, calls, tier, section.malformed or not calls)


def _read_call(reader: Reader, start: int, section: _Section, *, only_with_header: bool = False) -> None:
    """A header and its body after a begin token, or after a section token when the begin token is missing."""
    at = reader.space(start)
    written = reader.match(_HEADER, at)
    stop = written.end() if written is not None else at
    header = reader.view.text[at:stop].strip()
    if not header and not only_with_header and reader.char(stop) == "{":
        _read_named(reader, stop, section)
        return
    if not header or "\n" in header:
        # Two begin tokens in a row: the first opened nothing.
        section.malformed |= not only_with_header
        return
    token = reader.match(_TOKEN, stop)
    if (token is None and reader.char(stop) not in _BODY_START) or (token is not None and _kind(token) != "arg"):
        if token is not None and _kind(token) == "begin":
            section.malformed, section.end = True, stop
        elif not only_with_header and not reader.open and _HEADER_SHAPE.fullmatch(header):
            section.calls.append(reader.call(header, None, complete=False, native_id=header))
            section.malformed, section.end = True, stop
        return
    section.malformed |= token is None or only_with_header or not header.startswith("functions.")
    _read_arguments(reader, token.end() if token is not None else stop, header, section)


def _read_named(reader: Reader, at: int, section: _Section) -> None:
    """An object with the name in it, where a header and its arguments belong."""
    found = read_calls(reader, at, _TOKEN)
    section.malformed = True
    if found is not None:
        section.calls += found.calls
        section.end = found.end
        _close_call(reader, section)


def _read_headless(reader: Reader, token: Match, section: _Section) -> None:
    """An argument token whose begin token is missing; its header may stand before the section that was found."""
    section.malformed = True
    header = ""
    if not section.calls and token.start() == section.start:
        floor = max(reader.floor, token.start() - _HEADER_LIMIT)
        before = _HEADER_BEFORE.search(reader.view.text[floor : token.start()])
        if before is not None:
            header = before["id"]
            if reader.tool(header) is not None:
                section.start = floor + before.start("id")
    _read_arguments(reader, token.end(), header, section)


def _read_stripped(reader: Reader, stripped: Match) -> Reading:
    section = _Section(stripped.start(), stripped.end(), barred=False, malformed=True)
    token = reader.match(_TOKEN, stripped.end())
    at = stripped.end()
    if token is not None:
        if _kind(token) != "arg":
            return None
        at, section.barred = token.end(), "|" in token[0]
    elif reader.char(at) != "{" or (reader.tool(stripped["id"]) is None and reader.json(at).failed):
        return None
    _read_arguments(reader, at, stripped["id"], section)
    while after := reader.match(_TOKEN, reader.space(section.end)):
        if not _kind(after).endswith("end"):
            break
        section.end = after.end()
    return _finish(reader, section)


def _read_arguments(reader: Reader, start: int, header: str, section: _Section) -> None:
    at = reader.space(start)
    section.end = start
    arguments: Json = None
    complete = True
    if reader.match(_TOKEN, at):  # no arguments at all
        arguments, section.malformed = {}, True
    else:
        arguments, complete = _read_object(reader, at, section)
    nameless = not header or header.isdecimal() or (_FOREIGN_ID.fullmatch(header) and header not in reader.tools)
    name = (_infer(reader, arguments) if nameless and isinstance(arguments, dict) else None) or header
    if nameless and arguments is None:  # no name has been read that could be a stranger's
        section.calls.append(NativeCall(header, None, header or None, complete=False))
    else:
        section.calls.append(reader.call(name, arguments, complete=complete, native_id=header or None))
    section.malformed |= not complete
    _close_call(reader, section)


def _close_call(reader: Reader, section: _Section) -> None:
    at = reader.space(section.end)
    if surplus := reader.match(_SURPLUS, at):
        at, section.malformed = surplus.end(), True
    closer = reader.match(_TOKEN, at)
    if closer is not None and _kind(closer) == "end":
        section.end = closer.end()
    else:
        section.malformed = True


def _read_object(reader: Reader, at: int, section: _Section) -> tuple[Json, bool]:
    if reader.char(at) == "`" and (fence := reader.match(_FENCE, at)):
        at, section.malformed = fence.end(), True
    decoded = reader.json(at) if reader.char(at) in _JSON_START else None
    if decoded is not None and not decoded.failed:
        section.end = decoded.end
        section.malformed |= not decoded.healthy
        if not isinstance(decoded.value, str):
            return decoded.value, True
        section.malformed = True
        try:
            return jsontext.loads(decoded.value), True
        except ValueError:
            return None, False
    stop = reader.next(_TOKEN, at)
    end = stop.start() if stop is not None else reader.size
    repaired = reader.repair(at, end)
    section.malformed = True
    section.end = end
    if repaired is None or (stop is None and repaired.missing):
        return None, False
    section.end = repaired.end if stop is None else end
    return repaired.value, True


def _infer(reader: Reader, arguments: dict[str, Json]) -> str | None:
    """The only declared tool that these arguments fit, for a call that lost its name."""
    fitting = []
    for tool in reader.tools.values():
        properties = coercion.properties_of(tool.schema)
        required = tool.schema.get("required") if tool.schema is not None else None
        needed = {key for key in required if isinstance(key, str)} if isinstance(required, list) else set()
        if properties and needed <= arguments.keys() <= properties.keys():
            fitting.append(tool.name)
    return fitting[0] if len(fitting) == 1 else None


FAMILY = Family(
    "kimi",
    rank=1,
    openers=(_TOKEN_OPENER, _STRIPPED_OPENER, *invoke.CALL_OPENERS, *invoke.WRAPPER_OPENERS),
    read=_read,
    closers={"arg": "kimi_invoke_arg"},
    speakers={_DIALECT: frozenset({"kimi"}), _INVOKE.dialect: frozenset({"kimi"})},
    after_name=((":", Run("0-9", 1, 6), Run(r"\s", 0, 4), *_TOKEN_OPENER),),
)
