"""JSON objects between tags or after a heading, one call each: Hermes and those who write nearly the same."""

from __future__ import annotations

from dataclasses import dataclass

from wirelint.dialects.json_calls import JsonCalls, calls_of, close, read_calls
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Found, NativeCall, Reading, Skip, Tier

# -- hermes ------------------------------------------------------------------------------------------------------------

_HERMES = table(__name__, "hermes")
_OTHERS = ("function_call", "function_calls")


@dataclass(slots=True)
class _Tag:
    """One tag, without its calls, as far as it has been read."""

    opener: Match
    end: int
    malformed: bool = False
    closed: bool = False
    ernie: bool = False

    @property
    def weak(self) -> bool:
        return bool(self.opener["weak"] or self.opener["request"])

    @property
    def dialect(self) -> str:
        if self.opener["tag"] == "longcat_tool_call":
            return "longcat"
        return "ernie45" if self.ernie and not self.weak else "hermes_json"


def read_hermes(reader: Reader, position: int) -> Reading:
    opener = reader.match(_HERMES.opener, position)
    if opener is None:
        return _read_orphan(reader, position)
    tag = _Tag(opener, opener.end(), malformed=opener["tag"] not in ("tool_call", "longcat_tool_call"))
    at = _skip_space(reader, tag, tag.end)
    for pattern in (_HERMES.opener, _HERMES.fence):  # a repeated opener, a fence
        if extra := reader.match(pattern, at):
            at, tag.malformed = _skip_space(reader, tag, extra.end()), True
    if tag.weak and reader.match(_HERMES.call_keys, at) is None:
        return None
    closer = _HERMES.weak_closer if tag.weak else _HERMES.closer
    found = read_calls(reader, at, closer, (_HERMES.opener,))
    if found is None:
        return None
    tag.malformed |= found.array or found.values > 1 or not found.canonical
    tag.end = found.end
    _close_tag(reader, tag)
    if not _counts(reader, tag, found):
        return None
    tier: Tier = "sentinel" if tag.dialect == "longcat" else "generic"
    return reader.block(tag.dialect, position, tag.end, found.calls, tier, tag.malformed)


def _skip_space(reader: Reader, tag: _Tag, at: int) -> int:
    at = reader.space(at)
    if token := reader.match(_HERMES.newline_token, at):
        at, tag.ernie, tag.malformed = token.end(), True, True
    return at


def _close_tag(reader: Reader, tag: _Tag) -> None:
    end = _skip_space(reader, tag, tag.end)
    tag.end = end if tag.ernie else tag.end
    closing = close(reader, tag.end, _HERMES.weak_closer if tag.weak else _HERMES.closer)
    if closing.closer is not None:
        tag.end, tag.closed = closing.end, True
        tag.malformed |= closing.odd or closing.closer[0].strip("</> ") != tag.opener["tag"]
        while more := reader.match(_HERMES.closer, tag.end):
            tag.end, tag.malformed = more.end(), True
        return
    tag.malformed = True
    at = reader.space(tag.end)
    again = reader.match(_HERMES.opener, at)
    # The opener once more in the place of the closer: nothing follows that it could open.
    if again is not None and again[0] == tag.opener[0] and reader.char(reader.space(again.end())) not in ("{", "["):
        tag.end, tag.closed = again.end(), True
    elif reader.over and reader.match(_HERMES.cut_closer, at):
        tag.end = reader.size


def _counts(reader: Reader, tag: _Tag, found: JsonCalls) -> bool:
    known = reader.declares_any(found.calls)
    if tag.weak or known:
        return known and (tag.closed or not tag.weak)
    whole = any(call.complete for call in found.calls) or tag.dialect == "longcat"
    # Of unknown tools: arrays and tokens of other notations need their closer.
    needs_closer = tag.opener["tag"] in _OTHERS or found.array or tag.opener["barred"]
    return whole and (tag.closed or not needs_closer)


def _read_orphan(reader: Reader, position: int) -> Reading:
    """Read an object whose `<tool_call>` was lost: nothing but its closer distinguishes it from a JSON answer."""
    start = reader.space(position)
    if reader.char(start) != "{" or start < reader.dead.get("hermes_json", 0):
        return None
    decoded = reader.json(start)
    reader.dead["hermes_json"] = decoded.end
    closer = None if decoded.failed else reader.match(_HERMES.closer, reader.space(decoded.end))
    if closer is None:
        return None
    calls, _ = calls_of(reader, decoded.value)
    if not calls:
        return None
    dialect = "longcat" if "longcat" in closer[0] else "hermes_json"
    return reader.block(dialect, start, closer.end(), calls, "generic", malformed=True)


# -- tool_calls --------------------------------------------------------------------------------------------------------

_TOOL_CALLS = table(__name__, "tool_calls")


def read_tool_calls(reader: Reader, position: int) -> Reading:
    opener = reader.match(_TOOL_CALLS.opener, position)
    if opener is None:
        return _read_tagged(reader, position)
    found = read_calls(reader, opener.end(), _TOOL_CALLS.closer, (_TOOL_CALLS.opener,))
    if found is None:
        return None
    closing = close(reader, found.end, _TOOL_CALLS.closer)
    if reader.stand_ins(found.calls):
        return Skip(closing.end)
    whole = closing.closed and all(call.complete for call in found.calls)
    if not (reader.declares_any(found.calls) or whole):
        return None
    end = closing.end
    if not closing.closed and reader.over and reader.match(_TOOL_CALLS.cut_closer, reader.space(end)):
        end = reader.size
    proper = found.canonical and opener["tag"] == "tool_calls" and not opener["fence"]
    proper &= found.values == 1 or not found.array
    proper &= closing.closer is not None and not closing.odd and closing.closer[0] == "</tool_calls>"
    dialect = "tool_calls_array" if found.array else "minimax_m1"
    return Found(dialect, position, end, tuple(found.calls), "generic", not proper)


def _read_tagged(reader: Reader, position: int) -> Reading:
    """Read objects in tags of their own."""
    wrapper = reader.match(_TOOL_CALLS.wrapper, position)
    calls: list[NativeCall] = []
    end = at = wrapper.end() if wrapper is not None else position
    while wrapper is not None and (inner := reader.match(_TOOL_CALLS.inner, reader.space(at))):
        found = read_calls(reader, inner.end(), _TOOL_CALLS.closer, (_TOOL_CALLS.inner,))
        if found is None:
            break
        calls += found.calls
        end = found.end
        closing = close(reader, end, _TOOL_CALLS.inner_closer)
        if not closing.closed:
            break
        end = at = closing.end
    if not reader.declares_any(calls):
        return None
    if closer := reader.match(_TOOL_CALLS.closer, reader.space(end)):
        end = closer.end()
    return Found("tool_calls_array", position, end, tuple(calls), "generic", malformed=True)


# -- gigachat ----------------------------------------------------------------------------------------------------------

_GIGACHAT = table(__name__, "gigachat")
# What may follow the tokens if they call: a sentence about them goes on otherwise.
_BEGINNINGS = ("", "\n", "\r", "{", "[", "`")


def read_gigachat(reader: Reader, position: int) -> Reading:
    if marker := reader.match(_GIGACHAT.function_call, position):
        return _read_marked(reader, position, marker)
    header = reader.match(_GIGACHAT.header, position)
    if header is not None and (header["sep"] or header["role"]):
        return _read_marked(reader, position, header)
    line = reader.match(_GIGACHAT.line, position) if reader.tools else None
    return _read_line(reader, line) if line is not None else None


def _read_marked(reader: Reader, position: int, header: Match) -> Reading:
    """Read the call after tokens that only GigaChat has."""
    fence = reader.match(_GIGACHAT.fence, header.end())
    at = reader.space(header.end() if fence is None else fence.end())
    found = read_calls(reader, at, _GIGACHAT.stop, (_GIGACHAT.next,))
    if found is None:
        called = reader.char(header.end()) in _BEGINNINGS
        return Found("gigachat3", position, header.end(), (), "sentinel", malformed=True) if called else None
    canonical = fence is None and _GIGACHAT.canonical.fullmatch(reader.value(position, at)) is not None
    return _gigachat_block(reader, position, found, "sentinel", fenced=fence is not None, malformed=not canonical)


def _read_line(reader: Reader, line: Match) -> Reading:
    """Read the words without their tokens, at a line start: calls of declared tools, or nothing."""
    if line.start() < reader.dead.get("gigachat3", 0):
        return None
    found = read_calls(reader, line.end(), _GIGACHAT.stop, (_GIGACHAT.next,))
    if found is not None and all(call.name in reader.tools for call in found.calls):
        return _gigachat_block(reader, line.start(), found, "generic", fenced=False, malformed=True)
    stop = reader.first((_GIGACHAT.stop, _GIGACHAT.next), line.end())
    reader.dead["gigachat3"] = found.end if found is not None else reader.stop(stop)
    return None


def _gigachat_block(
    reader: Reader, start: int, found: JsonCalls, tier: Tier, *, fenced: bool, malformed: bool
) -> Reading:
    end = found.end
    for rest in (_GIGACHAT.surplus, *((_GIGACHAT.fence_end,) if fenced else ())):
        if more := reader.match(rest, end):
            end, malformed = more.end(), True
    malformed |= not (found.canonical and found.values == 1 and not found.array)
    return reader.block("gigachat3", start, end, found.calls, tier, malformed)


# -- rwkv --------------------------------------------------------------------------------------------------------------

_RWKV = table(__name__, "rwkv")


def read_rwkv(reader: Reader, position: int) -> Reading:
    heading = reader.match(_RWKV.heading, position)
    found = read_calls(reader, heading.end(), _RWKV.ticks) if heading is not None else None
    if heading is None or found is None:
        return None
    closer = reader.match(_RWKV.fence_end, found.end) if heading["fence"] else None
    if not (closer or reader.declares_any(found.calls)):
        return None
    end = closer.end() if closer is not None else found.end
    canonical = found.canonical and closer is not None and heading[0].startswith("**Tool Call:**") and not found.array
    return reader.block("rwkv_markdown", position, end, found.calls, "generic", not canonical)
