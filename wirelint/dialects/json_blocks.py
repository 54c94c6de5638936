"""Reader of JSON calls after a marker, in tags, or after a heading.

    MARKER [{"name": "lookup", "arguments": {"city": "Graz"}}, …] CLOSER

A dialect with an array between two markers is a row of data (`Grammar`, the table `array` of a family). Without a closer in
its grammar, the array ends the block. One object, several in a row, or a fence around the array are read too. Dialects
with special rules have separate readers: Phi, Cohere, Granite, Hermes' tags, `<tool_calls>`, GigaChat, RWKV, Mistral.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from wirelint.dialects import declared, json_calls
from wirelint.dialects.reader import Calls, Found, Match, NativeCall, Pattern, Reader, Reading, Skip, Tier
from wirelint.dialects.tables import Table, table

_FENCE = re.compile(r"`{3,}[a-zA-Z]{0,8}\s*")
_FENCE_END = re.compile(r"\s*`{3,}")
_SURPLUS = re.compile(r"(?:\s{0,4}[}\],]){0,8}\s{0,4}[}\]]")
_NOTHING = re.compile(r"\[\s*\]")


@dataclass(frozen=True, slots=True)
class Grammar:
    """The grammar of a dialect with an array between markers.

    `stop`: ends damaged JSON if there is no closer.
    `keys`: the keys of the tool's name and its arguments. `tier`: a `sentinel` counts on sight, even if no call can be read
    (`on_sight`); of a `generic` opener the calls decide. `closed_only`: without its closer the block belongs to another
    dialect. `idle`: names that mean that no tool is called.
    """

    dialect: str
    opener: Pattern
    stop: Pattern
    closer: Pattern | None = None
    keys: json_calls.Keys = json_calls.KEYS
    tier: Tier = "sentinel"
    on_sight: bool = False
    closed_only: bool = False
    idle: frozenset[str] = frozenset()


def grammar(table: Table, row: str = "array") -> Grammar:
    """Return the grammar in a family's table."""
    data: dict[str, Any] = {"stop": "(?&turn_end)", **table.data[row]}
    for key in ("opener", "closer", "stop"):
        if key in data:
            data[key] = table.compile(data[key])
    if "keys" in data:
        data["keys"] = json_calls.Keys(*data["keys"])
    return Grammar(**{**data, "idle": frozenset(data.get("idle", ()))})


def read(reader: Reader, position: int, grammar: Grammar) -> Reading:
    """Read the block at an opener."""
    opener = reader.match(grammar.opener, position)
    return read_array(reader, position, opener.end(), grammar) if opener is not None else None


def read_array(reader: Reader, start: int, position: int, grammar: Grammar) -> Reading:
    """Read the calls at `position`, of a block that begins at `start`."""
    at = reader.space(position)
    fence = reader.match(_FENCE, at) if reader.char(at) == "`" else None
    fenced, at = fence is not None, at if fence is None else fence.end()
    strangers = reader.strangers
    found = json_calls.read_calls(reader, at, grammar.closer or grammar.stop, (grammar.opener,), grammar.keys)
    if found is None:
        empty = reader.match(_NOTHING, at)
        if empty is None and not grammar.on_sight:
            return None
        found = json_calls.JsonCalls(position if empty is None else empty.end())
        if empty is not None:
            _close(reader, found, grammar, fenced=fenced)
        counts = grammar.tier == "sentinel" and (found.closed or not grammar.closed_only)
        return reader.block(grammar.dialect, start, found.end) if counts else None
    cut = _close(reader, found, grammar, fenced=fenced)
    calls = tuple(call for call in found.calls if call.name in reader.tools or call.name not in grammar.idle)
    reader.strangers = strangers or any(call.name not in reader.tools for call in calls)
    if not calls or reader.stand_ins(calls):
        return Skip(found.end)
    if grammar.closed_only and not (found.closed or cut):
        return None
    if grammar.tier == "generic" and not reader.declares_any(calls):
        whole = found.closed and found.canonical and all(call.complete for call in calls)
        if not whole:
            return None
    return reader.block(grammar.dialect, start, found.end, calls, grammar.tier)


def _close(reader: Reader, found: json_calls.JsonCalls, grammar: Grammar, *, fenced: bool) -> bool:
    """Read the closer; return True if the end of the text cuts it off."""
    if grammar.closer is None:
        found.closed = True
        if not found.canonical:
            found.end = reader.after(_SURPLUS, found.end)
        if fenced:
            found.end = reader.after(_FENCE_END, found.end)
        return False
    at = reader.space(found.end)
    if closer := reader.match(grammar.closer, at):
        found.end, found.closed = closer.end(), True
    elif reader.is_cut(grammar.closer, at):
        found.end = reader.size
        return True
    else:
        json_calls.close(reader, found, grammar.closer)
    return False


_PHI = table(__name__, "phi")
_FUNCTOOLS, _PHI_TOKENS = grammar(_PHI, "functools"), grammar(_PHI)
_FIREFUNCTION = replace(_FUNCTOOLS, dialect="firefunction_v2")


def read_phi(reader: Reader, position: int) -> Reading:
    if reader.match(_FUNCTOOLS.opener, position):
        spaced = _PHI.blank_before.search(reader.view.text[max(position - 2, 0) : position])
        return read(reader, position, _FIREFUNCTION if spaced else _FUNCTOOLS)
    return read(reader, position, _PHI_TOKENS)


_COHERE = table(__name__, "cohere")
_ACTION, _ACTION_FENCE = grammar(_COHERE), grammar(_COHERE, "fence")
_ROW = frozenset({"tool_call_id", "tool_name", "parameters"})


def read_cohere(reader: Reader, position: int) -> Reading:
    if opener := reader.match(_ACTION_FENCE.opener, position):
        return None if reader.match(_COHERE.react, opener.end()) else read(reader, position, _ACTION_FENCE)
    if reader.match(_COHERE.bare_list, position) is None:
        return read(reader, position, _ACTION)
    # The list without its tokens: of declared tools only, and whole.
    decoded = reader.json(position)
    if decoded.failed or not isinstance(decoded.value, list):
        return None
    rows = [row for row in decoded.value if isinstance(row, dict) and row.keys() >= _ROW]
    calls, _ = json_calls.calls_of(reader, decoded.value, _ACTION.keys)
    if not calls or not len(calls) == len(rows) == len(decoded.value) or not all(map(reader.fits, calls)):
        return None
    return reader.block(_ACTION.dialect, position, reader.past(decoded.end, _COHERE.end), calls, "generic")


_GRANITE = table(__name__, "granite")
_GRANITE_TOKEN, _GRANITE_TAG = grammar(_GRANITE), grammar(_GRANITE, "tag")


def read_granite(reader: Reader, position: int) -> Reading:
    opener = reader.match(_GRANITE.opener, position)
    if opener is None:
        reading = read(reader, position, _GRANITE_TOKEN) or read(reader, position, _GRANITE_TAG)
        # A block with a closer, which Granite's own grammar lacks, is another family's.
        if isinstance(reading, Found) and not all(call.complete for call in reading.calls):
            return reading if reader.next(_GRANITE.any_closer, reading.start) is None else None
        return reading if reading and reader.match(_GRANITE.closer, reading.end) is None else None
    found = json_calls.read_quoted(reader, opener.end())
    if found is not None:
        found.canonical &= not opener["joint"]
    else:
        found = json_calls.read_calls(reader, reader.space(opener.end()), _GRANITE.any_closer, (_GRANITE.opener,))
    if found is None:
        return None
    closer = reader.match(_GRANITE.closer, found.end)
    if closer is not None and opener["joint"]:
        return None
    whole = found.canonical and all(call.complete for call in found.calls)
    if not (reader.declares_any(found.calls) or whole):
        return None
    end = closer.end() if closer is not None else found.end
    dialect = "granite_20b_fc" if opener["joint"] else "glaive_functioncall"
    return reader.block(dialect, opener.start(), end, found.calls, "generic")


_HERMES = table(__name__, "hermes")
_OTHERS = ("function_call", "function_calls")


def read_hermes(reader: Reader, position: int) -> Reading:
    opener = reader.match(_HERMES.opener, position)
    if opener is None:
        return _read_orphan(reader, position)
    at, ernie = _skip_newlines(reader, opener.end())
    for pattern in (_HERMES.opener, _HERMES.fence):  # a repeated opener, a fence
        if extra := reader.match(pattern, at):
            at, more = _skip_newlines(reader, extra.end())
            ernie |= more
    weak = bool(opener["weak"] or opener["request"])
    if weak and reader.match(_HERMES.call_keys, at) is None:
        return None
    found = json_calls.read_calls(reader, at, _HERMES.weak_closer if weak else _HERMES.closer, (_HERMES.opener,))
    if found is None:
        return None
    at, more = _skip_newlines(reader, found.end)
    ernie |= more
    found.end = at if ernie else found.end
    _close_tag(reader, found, opener, weak=weak)
    longcat = opener["tag"] == "longcat_tool_call"
    dialect = "longcat" if longcat else "ernie45" if ernie and not weak else "hermes_json"
    known = reader.declares_any(found.calls)
    if weak or known:
        counts = known and (found.closed or not weak)
    else:  # of unknown tools, arrays and tokens of other notations need their closer
        needs_closer = opener["tag"] in _OTHERS or found.array or opener["barred"]
        counts = (longcat or any(call.complete for call in found.calls)) and (found.closed or not needs_closer)
    return (
        reader.block(dialect, position, found.end, found.calls, "sentinel" if longcat else "generic")
        if counts
        else None
    )


def _skip_newlines(reader: Reader, at: int) -> tuple[int, bool]:
    """Return the offset after white space and tokens of line ends, and whether such tokens, which ERNIE has, came."""
    at = reader.space(at)
    token = reader.match(_HERMES.newline_token, at)
    return (token.end(), True) if token is not None else (at, False)


def _close_tag(reader: Reader, found: json_calls.JsonCalls, opener: Match, *, weak: bool) -> None:
    json_calls.close(reader, found, _HERMES.weak_closer if weak else _HERMES.closer)
    if found.closed:
        while more := reader.match(_HERMES.closer, found.end):
            found.end = more.end()
        return
    again = reader.follow(_HERMES.opener, found.end)
    # A second opener instead of the closer: no JSON follows that it could open.
    if again is not None and again[0] == opener[0] and reader.char(reader.space(again.end())) not in ("{", "["):
        found.end, found.closed = again.end(), True
    elif reader.over:
        found.end = reader.past(found.end, _HERMES.cut_closer)


def _read_orphan(reader: Reader, position: int) -> Reading:
    """Read an object whose `<tool_call>` was lost: nothing but its closer distinguishes it from a JSON answer."""
    start = reader.space(position)
    if reader.char(start) != "{" or start < reader.dead.get("hermes_json", 0):
        return None
    decoded = reader.json(start)
    reader.dead["hermes_json"] = decoded.end
    closer = None if decoded.failed else reader.follow(_HERMES.closer, decoded.end)
    calls = json_calls.calls_of(reader, decoded.value)[0] if closer is not None else []
    if closer is None or not calls:
        return None
    return reader.block("longcat" if "longcat" in closer[0] else "hermes_json", start, closer.end(), calls, "generic")


# -- tool_calls --------------------------------------------------------------------------------------------------------

_TOOL_CALLS = table(__name__, "tool_calls")


def read_tool_calls(reader: Reader, position: int) -> Reading:
    if opener := reader.match(_TOOL_CALLS.opener, position):
        found = json_calls.read_enclosed(reader, opener.end(), _TOOL_CALLS.closer, (_TOOL_CALLS.opener,))
        if found is None:
            return None
        whole = found.closed and all(call.complete for call in found.calls)
        if not (reader.declares_any(found.calls) or whole or reader.stand_ins(found.calls)):
            return None
        end = found.end if found.closed or not reader.over else reader.past(found.end, _TOOL_CALLS.cut_closer)
        return reader.block("tool_calls_array" if found.array else "minimax_m1", position, end, found.calls, "generic")
    wrapper = reader.match(_TOOL_CALLS.wrapper, position)
    run, closed = Calls(wrapper.end() if wrapper is not None else position), wrapper is not None
    while closed and (inner := reader.follow(_TOOL_CALLS.inner, run.end)):  # objects in separate tags
        found = json_calls.read_calls(reader, inner.end(), _TOOL_CALLS.closer, (_TOOL_CALLS.inner,))
        if found is None:
            break
        json_calls.close(reader, found, _TOOL_CALLS.inner_closer)
        run, closed = Calls(found.end, run.calls + found.calls), found.closed
    if not reader.declares_any(run.calls):
        return None
    return reader.block("tool_calls_array", position, reader.past(run.end, _TOOL_CALLS.closer), run.calls, "generic")


_GIGACHAT = table(__name__, "gigachat")
# What may follow the tokens if they call: a sentence about them continues in another way.
_BEGINNINGS = ("", "\n", "\r", "{", "[", "`")


def read_gigachat(reader: Reader, position: int) -> Reading:
    if marker := reader.match(_GIGACHAT.function_call, position):
        return _read_after_tokens(reader, position, marker)
    header = reader.match(_GIGACHAT.header, position)
    if header is not None and (header["sep"] or header["role"]):
        return _read_after_tokens(reader, position, header)
    line = reader.match(_GIGACHAT.line, position) if reader.tools else None
    return _read_line(reader, line) if line is not None else None


def _read_after_tokens(reader: Reader, position: int, header: Match) -> Reading:
    """Read the call after tokens that only GigaChat has."""
    at = reader.after(_GIGACHAT.fence, header.end())
    found = json_calls.read_calls(reader, reader.space(at), _GIGACHAT.stop, (_GIGACHAT.next,))
    if found is None:
        called = reader.char(header.end()) in _BEGINNINGS
        return reader.block("gigachat3", position, header.end()) if called else None
    end = reader.after(_GIGACHAT.surplus, found.end)
    end = reader.after(_GIGACHAT.fence_end, end) if at > header.end() else end
    return reader.block("gigachat3", position, end, found.calls)


def _read_line(reader: Reader, line: Match) -> Reading:
    """Read the words without their tokens, at a line start: calls of declared tools, or nothing."""
    if line.start() < reader.dead.get("gigachat3", 0):
        return None
    found = json_calls.read_calls(reader, line.end(), _GIGACHAT.stop, (_GIGACHAT.next,))
    if found is not None and all(call.name in reader.tools for call in found.calls):
        end = reader.after(_GIGACHAT.surplus, found.end)
        return reader.block("gigachat3", line.start(), end, found.calls, "generic")
    stop = reader.first((_GIGACHAT.stop, _GIGACHAT.next), line.end())
    reader.dead["gigachat3"] = found.end if found is not None else reader.stop(stop)
    return None


_RWKV = table(__name__, "rwkv")


def read_rwkv(reader: Reader, position: int) -> Reading:
    heading = reader.match(_RWKV.heading, position)
    found = json_calls.read_calls(reader, heading.end(), _RWKV.ticks) if heading is not None else None
    if heading is None or found is None:
        return None
    closer = reader.match(_RWKV.fence_end, found.end) if heading["fence"] else None
    if not (closer or reader.declares_any(found.calls)):
        return None
    end = closer.end() if closer is not None else found.end
    return reader.block("rwkv_markdown", position, end, found.calls, "generic")


_MISTRAL = table(__name__, "mistral")
_ARRAY = grammar(_MISTRAL)
_HEADER_LIMIT = 240


def read_mistral(reader: Reader, position: int) -> Reading:
    start = reader.match(_MISTRAL.start, position)
    if start is None:
        return _read_stripped(reader, position) or _read_bare(reader, position)
    reading = _read_marked(reader, position, start)
    if isinstance(reading, Found) and reading.calls:
        return reading._replace(end=reader.after(_MISTRAL.slashed, reading.end))
    return reading


def _read_marked(reader: Reader, position: int, start: Match) -> Reading:
    end = reader.after(_MISTRAL.more, start.end()) if start["closed"] else start.end()
    if reader.match(_MISTRAL.array_start, end):
        return read_array(reader, position, end, _ARRAY)
    header = reader.match(_MISTRAL.header, end)  # a name, perhaps an id
    if header is None:
        return _read_cut(reader, position, end) if start["closed"] else None
    arguments = json_calls.read_arguments(reader, header.end(), _MISTRAL.stop)
    # Undoing escapes breaks arguments that were encoded twice; the marker has nothing to escape.
    if not arguments.complete and (reader.view.decoded or _is_description(reader, header, arguments.end)):
        return None
    call = reader.call(header["name"], arguments.value, complete=arguments.complete, native_id=header["id"] or None)
    dialect = "mistral_v11" if header["id"] is not None else "mistral_v13"
    return reader.block(dialect, position, arguments.end, (call,))


def _is_description(reader: Reader, header: Match, end: int) -> bool:
    """Return True if unreadable arguments only describe arguments: `{...}`, `{json}`."""
    if json_calls.ELLIPSIS.search(reader.view.text, header.end(), end):
        return True
    return reader.tool(header["name"]) is None and not (
        reader.ended(end) and (reader.ended(header.end()) or reader.match(_MISTRAL.plausible, header.end()))
    )


def _read_cut(reader: Reader, start: int, position: int) -> Reading:
    """Read a marker at the end of the text or near it, maybe with a declared name after it."""
    at = reader.space(position)
    if reader.ended(at):
        return reader.block("mistral_array", start, position)
    name = reader.match(_MISTRAL.name, at)
    cut = reader.is_cut(_MISTRAL.header, at)
    if name is None or not (cut or at == position):
        return None
    if reader.open:
        return None  # the name may go on
    calls: tuple[NativeCall, ...] = ()
    if reader.tool(name[0]) is not None:
        calls = (reader.call(name[0], None, complete=False),)
    if not calls and not (cut and at == position):
        return None
    return reader.block("mistral_v13", start, reader.size if cut else name.end(), calls)


def _read_stripped(reader: Reader, position: int) -> Reading:
    """Read `lookup[ARGS]{…}` at a line start, of a declared tool: the marker was lost."""
    if reader.match(_MISTRAL.inner_token, position) is None:
        return None
    floor = max(reader.floor - 1, position - _HEADER_LIMIT, 0)
    before = _MISTRAL.name_before.search(reader.view.text[floor:position])
    if (
        before is None
        or floor + before.start() < reader.floor
        or (floor and not before.start())
        or reader.tool(before["name"]) is None
    ):
        return None
    body = reader.match(_MISTRAL.body, position)
    if body is None:
        # The block begins at the name, also while the rest is still open.
        begun = (reader.call(before["name"], None, complete=False),)
        start = floor + before.start("name")
        return reader.block("mistral_v13", start, position, begun, "generic") if reader.open else None
    arguments = json_calls.read_arguments(reader, body.end(), _MISTRAL.stop)
    native_id = body["id"] or before["id"]
    call = reader.call(before["name"], arguments.value, complete=arguments.complete, native_id=native_id)
    dialect = "mistral_v11" if native_id is not None else "mistral_v13"
    return reader.block(dialect, floor + before.start("name"), arguments.end, (call,), "generic")


def _read_bare(reader: Reader, position: int) -> Reading:
    """Read `lookup{…}` as the whole message: a server has dropped the special tokens."""
    if not reader.tools or not reader.begins(position):
        return None
    run = Calls(position)
    while name := _MISTRAL.named(reader, "bare", run.end):
        decoded = reader.json(name.end())
        if decoded.failed or not declared.fits(reader.tool(name["name"]), decoded.value):
            return None
        run.add(reader.call(name["name"], decoded.value, complete=True), decoded.end)
    if not run.calls or not reader.is_whole(position, run.end):
        return None
    return reader.block("mistral_v13", position, run.end, run.calls, "weak")
