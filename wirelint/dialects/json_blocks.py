"""Calls written as JSON, `{"name": …, "arguments": {…}}`: alone, after a marker, in tags, or after a heading.

    MARKER [{"name": "lookup", "arguments": {"city": "Graz"}}, …] CLOSER

`calls_of` reads a decoded value, in the keys of the notation or others that models use. `read_calls` reads the values at a
position, one after another, alone or in an array, and damaged ones up to the closer or the next opener of their notation;
`read_enclosed` reads that closer too. `read_arguments` reads the object of one call whose name is outside of it.

A dialect with an array between two markers is a row of data (`Grammar`, the table `array` of a family). Without a closer in
its grammar, the array ends the block. One object, several in a row, or a fence around the array are read too. Dialects
with special rules have separate readers: Phi, Cohere, Granite, Hermes' tags, `<tool_calls>`, GigaChat, RWKV, Mistral.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from wirelint.dialects import declared, jsontext
from wirelint.dialects.reader import Arguments, Calls, Match, NativeCall, Pattern, Reader, Reading, Tier, is_name
from wirelint.dialects.tables import ARGUMENT_KEYS, NAME_KEYS, Table, tables
from wirelint.model import Json, Tool

_PHI, _COHERE, _GRANITE, _HERMES, _TOOL_CALLS, _GIGACHAT, _RWKV, _MISTRAL = tables(
    __name__, "phi", "cohere", "granite", "hermes", "tool_calls", "gigachat", "rwkv", "mistral"
)
_ENVELOPES = ("function", "tool_call", "function_call")
_ARGUMENT_KEYS = (*ARGUMENT_KEYS, "params", "function_args", "tool_input", "action_input")
_ID_KEYS = ("id", "tool_call_id", "call_id")
_FRAMING = frozenset({*NAME_KEYS, *_ID_KEYS, "type", "index"})
_WRITTEN_NAME = re.compile(
    r"""["'](?:name|tool_name|function|function_name)["']\s{0,4}:\s{0,4}["']([\w.:/-]{1,128})["']"""
)
_WRITTEN_KEY = re.compile(r"""\{\s{0,8}["']([\w.:/-]{1,128})["']\s{0,4}:\s{0,4}\{""")
ELLIPSIS = re.compile(r"[{\[:,]\s{0,4}(?:\.\.\.|…)")  # `{...}`: a description of a call
_VALUE = re.compile(r"[\[{]")
_FURTHER = re.compile(r"\{|\[\s{0,16}\{")  # not the bracket of `[TOOL_CALLS]` or of a footnote
_SURPLUS = re.compile(r"[\s}\],]*")
_DOUBLED = re.compile(r"\{\s{0,4}(?=\{)")
_QUOTED = re.compile(
    r"\s{0,4}\{\s{0,4}[\"'](?:tool_|function_)?name[\"']\s{0,4}:\s{0,4}[\"'](?P<name>[\w.:/-]{1,128})[\"']\s{0,4},"
    r"\s{0,4}[\"'](?:arguments|parameters)[\"']\s{0,4}:\s{0,4}(?P<quote>[\"'])(?=\s{0,4}\{)"
)
_QUOTED_END = {quote: re.compile(rf"\s{{0,4}}{quote}\s{{0,4}}\}}") for quote in "\"'"}
_FENCE_END = re.compile(r"\s*`{3,}\s*")


class Keys(NamedTuple):
    """The keys that a notation uses; others are read too, as departures from it.

    `keyed`: the only key is the tool's name, and its value the arguments.
    """

    name: str = "name"
    arguments: str = "arguments"
    keyed: bool = False


KEYS = Keys()


@dataclass(slots=True)
class JsonCalls(Calls):
    """The result of `read_calls`: that many `values` side by side.

    `array`: the first value is one. `canonical`: all of it in the notation's own keys, and valid JSON. `closed`: the closer
    of the notation follows. `cut`: of the last call only the name can be read.
    """

    values: int = 0
    array: bool = False
    canonical: bool = True
    closed: bool = False
    cut: bool = False

    def extend(self, calls: list[NativeCall], end: int, *, canonical: bool) -> None:
        self.calls += calls
        self.values += 1
        self.canonical &= canonical
        self.end = end


def read_arguments(
    reader: Reader, position: int, stop: Pattern, *, starts: str = '{"', to_stop: bool = False
) -> Arguments:
    """Read the arguments at a position. `stop`: the text that may follow them in the notation, and ends damaged ones.

    Nothing before a stop means no arguments. At the end of the text an object must be whole. `starts`: the characters
    that JSON may begin with. `to_stop`: damaged arguments reach to the stop.
    """
    if reader.char(position) and reader.char(position) in starts:
        decoded = reader.json(position)
        if not decoded.failed:
            value = decoded.value
            if isinstance(value, str):  # encoded twice
                try:
                    value = jsontext.loads(value)
                except ValueError:
                    value = None
            return Arguments(value, decoded.end, isinstance(value, dict))
    stopped = reader.next(position, stop)
    if stopped is not None and stopped.start() == position:
        return Arguments({}, position, complete=True)
    return reader.rescue(position, stop, to_stop=to_stop)


def calls_of(reader: Reader, value: Json, keys: Keys = KEYS) -> tuple[list[NativeCall], bool]:
    """Return the calls in a JSON value (an object, or an array of objects), and whether all are canonical."""
    given = value if isinstance(value, list) else [value]
    items: list[Json] = []
    for item in given:
        several = keys.keyed and isinstance(item, dict) and len(item) > 1 and item.keys() <= reader.tools.keys()
        items += [{key: one} for key, one in item.items()] if several and isinstance(item, dict) else [item]
    read = [_call_of(reader, item, keys) for item in items]
    found = [call for call, _ in read if call is not None]
    return found, len(found) == len(given) and all(canonical for _, canonical in read)


def read_calls(
    reader: Reader, position: int, closer: Pattern, openers: tuple[Pattern, ...] = (), keys: Keys = KEYS
) -> JsonCalls | None:
    """Read the calls at a position; None if nothing there can be a call. `closer` and `openers` end damaged values.

    The last call may be incomplete, if the text ends in it or if it is unreadable beyond its name.
    """
    found = JsonCalls(position, array=reader.char(position) == "[")
    at = position
    if doubled := reader.match(_DOUBLED, at):  # `{{…}}`, as templates escape a bracket
        at, found.canonical = doubled.end(), False
    while reader.match(_FURTHER if found.values else _VALUE, at):
        decoded = reader.json(at)
        if decoded.failed:
            _read_damaged(reader, at, found, (closer, *openers), keys)
            break
        calls, canonical = calls_of(reader, decoded.value, keys)
        if not calls:
            break
        found.extend(calls, decoded.end, canonical=canonical and decoded.healthy)
        at = _after_comma(reader, decoded.end)
    return found if found.calls else None


def read_quoted(reader: Reader, position: int) -> JsonCalls | None:
    """Read a call with arguments between quotes of either kind, which may contain such quotes: `'{"a": 1}'`."""
    head = reader.match(_QUOTED, position)
    if head is None:
        return None
    decoded = reader.json(reader.space(head.end()))
    tail = reader.match(_QUOTED_END[head["quote"]], decoded.end) if not decoded.failed else None
    if decoded.failed or not (tail or reader.ended(decoded.end) or head["quote"] == "'"):
        return None
    found = JsonCalls(position)
    call = reader.call(head["name"], decoded.value, complete=True)
    found.extend([call], tail.end() if tail else decoded.end, canonical=decoded.healthy and tail is not None)
    return found


def read_enclosed(
    reader: Reader, position: int, closer: Pattern, openers: tuple[Pattern, ...] = ()
) -> JsonCalls | None:
    """Read the calls after the white space at a position, and their closer."""
    found = read_calls(reader, reader.space(position), closer, openers)
    if found is not None:
        close(reader, found, closer)
    return found


def close(reader: Reader, found: JsonCalls, closer: Pattern) -> None:
    """Read the closer after the calls, past surplus brackets and the end of a fence."""
    ending = reader.match(closer, reader.after(_FENCE_END, reader.after(_SURPLUS, found.end)))
    if ending is not None:
        found.end, found.closed = ending.end(), True


def _after_comma(reader: Reader, position: int) -> int:
    at = reader.space(position)
    return reader.space(at + 1) if reader.char(at) in (",", ";") else at


def _read_damaged(reader: Reader, at: int, found: JsonCalls, stops: tuple[Pattern, ...], keys: Keys) -> None:
    stop = reader.next(at, *stops)
    end = reader.stop(stop)
    closed = stop is not None and stop.re == stops[0]
    # Without a closer only the outermost brackets may be missing: then the arguments themselves are whole.
    if _read_repaired(reader, at, found, keys, end, missing=end if closed else 1 + found.array):
        return
    inside = reader.char(at) == "["
    at = reader.space(at + 1) if inside else at
    while inside and reader.char(at) == "{":  # the elements before the damage are whole
        decoded = reader.json(at)
        calls = [] if decoded.failed else calls_of(reader, decoded.value, keys)[0]
        if not calls:
            break
        found.extend(calls, decoded.end, canonical=False)
        at = _after_comma(reader, decoded.end)
    if quoted := read_quoted(reader, at):
        found.extend(quoted.calls, quoted.end, canonical=False)
        return
    found.canonical = False
    written = (_WRITTEN_KEY if keys.keyed else _WRITTEN_NAME).search(reader.view.text, at, end)
    if written is not None and not ELLIPSIS.search(reader.view.text, at, end):
        found.cut = True
        found.extend([reader.call(written[1], None, complete=False)], end, canonical=False)


def _read_repaired(reader: Reader, at: int, found: JsonCalls, keys: Keys, end: int, *, missing: int) -> bool:
    repaired = reader.repair(at, end)
    if repaired is None or repaired.missing > missing:
        return False
    if repaired.missing and missing < end and not _has_arguments(repaired.value, keys):
        return False  # cut off before its arguments
    calls, _ = calls_of(reader, repaired.value, keys)
    if calls:
        found.extend(calls, repaired.end, canonical=False)
    return bool(calls)


def _has_arguments(value: Json, keys: Keys) -> bool:
    """Return True if the last call of a value reaches its arguments."""
    last = value[-1] if isinstance(value, list) and value else value
    inner = last.get("function") if isinstance(last, dict) else None
    call = inner if isinstance(inner, dict) else last
    return isinstance(call, dict) and (keys.keyed or any(key in call for key in (keys.arguments, *_ARGUMENT_KEYS)))


def _call_of(reader: Reader, value: Json, keys: Keys) -> tuple[NativeCall | None, bool]:
    if not isinstance(value, dict):
        return None, False
    if keys.keyed and len(value) == 1:
        ((only, item),) = value.items()
        under = _decoded(item)
        if is_name(only) and isinstance(under, dict):
            return reader.call(only, under, complete=True), isinstance(item, dict)
    # OpenAI's own shape, {"type": "function", "function": {…}}, and models' variants of it.
    inner = next((value[key] for key in _ENVELOPES if isinstance(value.get(key), dict)), None)
    if isinstance(inner, dict) and "name" in inner:
        call, _ = _call_of(reader, {**_ids(value), **inner}, keys)
        return call, False
    name = next((value[key] for key in (keys.name, *NAME_KEYS) if isinstance(value.get(key), str)), None)
    if not isinstance(name, str) or not is_name(name) or _is_declaration(value):
        return None, False
    tool = reader.tool(name)
    key = next((key for key in (keys.arguments, *_ARGUMENT_KEYS) if key in value), None)
    if key is None and tool is None:
        return None, False
    arguments = _decoded(value[key]) if key is not None else _beside(value, tool)
    canonical = key == keys.arguments and keys.name in value and isinstance(value[key], dict)
    if isinstance(arguments, dict) and tool is not None:
        arguments = declared.unwrap(arguments, declared.properties_of(tool.schema))
    identifier = next(iter(_ids(value).values()), None)
    native_id = identifier if isinstance(identifier, str) else None
    return reader.call(name, arguments, complete=True, native_id=native_id), canonical


def _ids(value: dict[str, Json]) -> dict[str, Json]:
    return {key: value[key] for key in _ID_KEYS if isinstance(value.get(key), str)}


def _beside(value: dict[str, Json], tool: Tool | None) -> Json:
    arguments = {key: item for key, item in value.items() if key not in _FRAMING}
    properties = declared.properties_of(tool.schema) if tool is not None else {}
    return arguments if arguments.keys() <= properties.keys() else None


def _decoded(arguments: Json) -> Json:
    """Decode arguments that were encoded twice; null and an empty text mean none."""
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        return arguments
    return jsontext.whole_value(arguments.strip()) if arguments.strip() else {}


def _is_declaration(value: dict[str, Json]) -> bool:
    """Return True for a tool's declaration, as system prompts list them in `<tools>`."""
    schema = value.get("parameters") or value.get("input_schema")
    if "description" in value or not isinstance(schema, dict):
        return "description" in value
    # A parameter may be named `properties`.
    return isinstance(schema.get("properties"), dict) and (schema.get("type") == "object" or "required" in schema)


# -- blocks -------------------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"`{3,}[a-zA-Z]{0,8}\s*")
_CLOSING_FENCE = re.compile(r"\s*`{3,}")
_SURPLUS_BRACKETS = re.compile(r"(?:\s{0,4}[}\],]){0,8}\s{0,4}[}\]]")
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
    keys: Keys = KEYS
    tier: Tier = "sentinel"
    on_sight: bool = False
    closed_only: bool = False
    idle: frozenset[str] = frozenset()


def grammar(table: Table, row: str = "array") -> Grammar:
    data: dict[str, Any] = {"stop": "(?&turn_end)", **table.data[row]}
    for key in ("opener", "closer", "stop"):
        if key in data:
            data[key] = table.compile(data[key])
    if "keys" in data:
        data["keys"] = Keys(*data["keys"])
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
    found = read_calls(reader, at, grammar.closer or grammar.stop, (grammar.opener,), grammar.keys)
    if found is None:
        empty = reader.match(_NOTHING, at)
        if empty is None and not grammar.on_sight:
            return None
        found = JsonCalls(position if empty is None else empty.end())
        if empty is not None:
            _close(reader, found, grammar, fenced=fenced)
        counts = grammar.tier == "sentinel" and (found.closed or not grammar.closed_only)
        return reader.block(grammar.dialect, start, found.end) if counts else None
    cut = _close(reader, found, grammar, fenced=fenced)
    calls = tuple(call for call in found.calls if call.name in reader.tools or call.name not in grammar.idle)
    reader.strangers = strangers or any(call.name not in reader.tools for call in calls)
    if not calls or reader.stand_ins(calls):
        return reader.block("", start, found.end)
    if grammar.closed_only and not (found.closed or cut):
        return None
    if grammar.tier == "sentinel":
        return reader.block(grammar.dialect, start, found.end, calls)
    whole = found.closed and found.canonical and all(call.complete for call in calls)
    return reader.generic_block(grammar.dialect, start, found.end, calls, sure=whole)


def _close(reader: Reader, found: JsonCalls, grammar: Grammar, *, fenced: bool) -> bool:
    """Read the closer; return True if the end of the text cuts it off."""
    if grammar.closer is None:
        found.closed = True
        if not found.canonical:
            found.end = reader.after(_SURPLUS_BRACKETS, found.end)
        if fenced:
            found.end = reader.after(_CLOSING_FENCE, found.end)
        return False
    at = reader.space(found.end)
    if closer := reader.match(grammar.closer, at):
        found.end, found.closed = closer.end(), True
    elif reader.is_cut(grammar.closer, at):
        found.end = reader.size
        return True
    else:
        close(reader, found, grammar.closer)
    return False


_FUNCTOOLS, _PHI_TOKENS = grammar(_PHI, "functools"), grammar(_PHI)
_FIREFUNCTION = replace(_FUNCTOOLS, dialect="firefunction_v2")


def read_phi(reader: Reader, position: int) -> Reading:
    if reader.match(_FUNCTOOLS.opener, position) is None:
        return read(reader, position, _PHI_TOKENS)
    spaced = _PHI.blank_before.search(reader.view.text[max(position - 2, 0) : position])
    return read(reader, position, _FIREFUNCTION if spaced else _FUNCTOOLS)


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
    calls, _ = calls_of(reader, decoded.value, _ACTION.keys)
    if not calls or not len(calls) == len(rows) == len(decoded.value) or not all(map(reader.fits, calls)):
        return None
    return reader.block(_ACTION.dialect, position, reader.past(decoded.end, _COHERE.end), calls, "generic")


_GRANITE_TOKEN, _GRANITE_TAG = grammar(_GRANITE), grammar(_GRANITE, "tag")


def read_granite(reader: Reader, position: int) -> Reading:
    opener = reader.match(_GRANITE.opener, position)
    if opener is None:
        reading = read(reader, position, _GRANITE_TOKEN) or read(reader, position, _GRANITE_TAG)
        # A block with a closer, which Granite's own grammar lacks, is another family's.
        if reading is not None and reading.calls and not reading.complete:
            return reading if reader.next(reading.start, _GRANITE.any_closer) is None else None
        return reading if reading and reader.match(_GRANITE.closer, reading.end) is None else None
    found = read_quoted(reader, opener.end())
    if found is not None:
        found.canonical &= not opener["joint"]
    else:
        found = read_calls(reader, reader.space(opener.end()), _GRANITE.any_closer, (_GRANITE.opener,))
    if found is None:
        return None
    closer = reader.match(_GRANITE.closer, found.end)
    if closer is not None and opener["joint"]:
        return None
    dialect = "granite_20b_fc" if opener["joint"] else "glaive_functioncall"
    end = closer.end() if closer else found.end
    return reader.generic_block(dialect, position, end, found.calls, sure=found.canonical and found.complete)


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
    found = read_calls(reader, at, _HERMES.weak_closer if weak else _HERMES.closer, (_HERMES.opener,))
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
    tier: Tier = "sentinel" if longcat else "generic"
    return reader.block(dialect, position, found.end, found.calls, tier) if counts else None


def _skip_newlines(reader: Reader, at: int) -> tuple[int, bool]:
    """Return the offset after white space and tokens of line ends, and whether such tokens, which ERNIE has, came."""
    at = reader.space(at)
    token = reader.match(_HERMES.newline_token, at)
    return (token.end(), True) if token is not None else (at, False)


def _close_tag(reader: Reader, found: JsonCalls, opener: Match, *, weak: bool) -> None:
    close(reader, found, _HERMES.weak_closer if weak else _HERMES.closer)
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
    if reader.char(start) != "{" or start < reader.dead["hermes_json"]:
        return None
    decoded = reader.json(start)
    reader.dead["hermes_json"] = decoded.end
    closer = None if decoded.failed else reader.follow(_HERMES.closer, decoded.end)
    calls = calls_of(reader, decoded.value)[0] if closer is not None else []
    if closer is None or not calls:
        return None
    return reader.block("longcat" if "longcat" in closer[0] else "hermes_json", start, closer.end(), calls, "generic")


def read_tool_calls(reader: Reader, position: int) -> Reading:
    if opener := reader.match(_TOOL_CALLS.opener, position):
        found = read_enclosed(reader, opener.end(), _TOOL_CALLS.closer, (_TOOL_CALLS.opener,))
        if found is None:
            return None
        end = found.end if found.closed or not reader.over else reader.past(found.end, _TOOL_CALLS.cut_closer)
        dialect = "tool_calls_array" if found.array else "minimax_m1"
        sure = (found.closed and found.complete) or reader.stand_ins(found.calls)
        return reader.generic_block(dialect, position, end, found.calls, sure=sure)
    wrapper = reader.match(_TOOL_CALLS.wrapper, position)
    run, closed = Calls(wrapper.end() if wrapper is not None else position), wrapper is not None
    while closed and (inner := reader.follow(_TOOL_CALLS.inner, run.end)):  # objects in separate tags
        found = read_calls(reader, inner.end(), _TOOL_CALLS.closer, (_TOOL_CALLS.inner,))
        if found is None:
            break
        close(reader, found, _TOOL_CALLS.inner_closer)
        run.calls += found.calls
        run.end, closed = found.end, found.closed
    end = reader.past(run.end, _TOOL_CALLS.closer)
    return reader.generic_block("tool_calls_array", position, end, run.calls, sure=False)


# What may follow the tokens if they call: a sentence about them continues in another way.
_BEGINNINGS = ("", "\n", "\r", "{", "[", "`")


def read_gigachat(reader: Reader, position: int) -> Reading:
    header = reader.match(_GIGACHAT.header, position)
    if header is None:
        return None
    # Without their tokens the words are a call of declared tools at a line start, or nothing.
    marked = header["marked"] is not None
    if not marked and (not reader.tools or position < reader.dead["gigachat3"]):
        return None
    at = reader.after(_GIGACHAT.fence, header.end())
    found = read_calls(reader, reader.space(at), _GIGACHAT.stop, (_GIGACHAT.next,))
    if found is not None and (marked or all(call.name in reader.tools for call in found.calls)):
        end = reader.after(_GIGACHAT.surplus, found.end)
        end = reader.after(_GIGACHAT.fence_end, end) if at > header.end() else end
        return reader.block("gigachat3", position, end, found.calls, "sentinel" if marked else "generic")
    if marked:
        called = reader.char(header.end()) in _BEGINNINGS
        return reader.block("gigachat3", position, header.end()) if called else None
    stop = reader.next(header.end(), _GIGACHAT.stop, _GIGACHAT.next)
    reader.dead["gigachat3"] = found.end if found is not None else reader.stop(stop)
    return None


def read_rwkv(reader: Reader, position: int) -> Reading:
    heading = reader.match(_RWKV.heading, position)
    found = read_calls(reader, heading.end(), _RWKV.ticks) if heading is not None else None
    if heading is None or found is None:
        return None
    end = reader.after(_RWKV.fence_end, found.end) if heading["fence"] else found.end
    return reader.generic_block("rwkv_markdown", position, end, found.calls, sure=end > found.end)


_ARRAY = grammar(_MISTRAL)
_HEADER_LIMIT = 240


def read_mistral(reader: Reader, position: int) -> Reading:
    start = reader.match(_MISTRAL.start, position)
    if start is None:
        return _read_stripped(reader, position) or _read_bare(reader, position)
    reading = _read_marked(reader, position, start)
    if reading is not None and reading.calls:
        return reading._replace(end=reader.after(_MISTRAL.slashed, reading.end))
    return reading


def _read_marked(reader: Reader, position: int, start: Match) -> Reading:
    end = reader.after(_MISTRAL.more, start.end()) if start["closed"] else start.end()
    if reader.match(_MISTRAL.array_start, end):
        return read_array(reader, position, end, _ARRAY)
    header = reader.match(_MISTRAL.header, end)  # a name, perhaps an id
    if header is None:
        return _read_cut(reader, position, end) if start["closed"] else None
    arguments = read_arguments(reader, header.end(), _MISTRAL.stop)
    # Undoing escapes breaks arguments that were encoded twice; the marker has nothing to escape.
    if not arguments.complete and (reader.view.decoded or _is_description(reader, header, arguments.end)):
        return None
    call = reader.call(header["name"], arguments.value, complete=arguments.complete, native_id=header["id"] or None)
    dialect = "mistral_v11" if header["id"] is not None else "mistral_v13"
    return reader.block(dialect, position, arguments.end, (call,))


def _is_description(reader: Reader, header: Match, end: int) -> bool:
    """Return True if unreadable arguments only describe arguments: `{...}`, `{json}`."""
    if ELLIPSIS.search(reader.view.text, header.end(), end):
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
    calls = [reader.call(name[0], None, complete=False)] if reader.tool(name[0]) is not None else []
    if not calls and not (cut and at == position):
        return None
    return reader.block("mistral_v13", start, reader.size if cut else name.end(), calls)


def _read_stripped(reader: Reader, position: int) -> Reading:
    """Read `lookup[ARGS]{…}` at a line start, of a declared tool: the marker was lost."""
    if reader.match(_MISTRAL.inner_token, position) is None:
        return None
    floor = max(reader.floor - 1, position - _HEADER_LIMIT, 0)
    before = _MISTRAL.name_before.search(reader.view.text[floor:position])
    if before is None or floor + before.start() < reader.floor or (floor and not before.start()):
        return None
    if reader.tool(before["name"]) is None:
        return None
    body = reader.match(_MISTRAL.body, position)
    if body is None:
        # The block begins at the name, also while the rest is still open.
        begun = (reader.call(before["name"], None, complete=False),)
        start = floor + before.start("name")
        return reader.block("mistral_v13", start, position, begun, "generic") if reader.open else None
    arguments = read_arguments(reader, body.end(), _MISTRAL.stop)
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
