"""The grammar shared by XML-ish dialects: an opening tag that names the tool, parameter tags, closing tags.

These dialects have no escaping: a value ends at the first closing tag of its own parameter, whatever stands before it.
Where that closer is missing (the next parameter begins first, or the call ends), the value ends there, without the line
end that framed it. Instead of parameter tags a body may hold a JSON object, or tags named after the parameters of a
declared tool.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from wirelint.dialects import coercion, weak
from wirelint.dialects.coercion import Hint
from wirelint.dialects.reader import Match, Pattern, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Calls, Found, NativeCall, Reading
from wirelint.model import Json, Tool

_CHILD = re.compile(r"<\s{0,3}([A-Za-z_][\w.-]{0,63})\s{0,3}>")
CUT_CLOSER = re.compile(r"<\s{0,3}/\s{0,3}[\w:]{0,32}\s{0,3}\Z")
CUT_OPENER = re.compile(r"<[^<>]{0,256}\Z")
_UNREAD = re.compile(r"<[^<>/]{0,16}(?:param|arg)")
_LOOSE_OPENER = re.compile(r"<\s|\s[>=]|=\s|[a-z_]name\s*=|\bstring\s?=(?!\"(?:true|false)\")")
_LOOSE_CLOSER = re.compile(r"<\s|/\s|[\s\"]>")
_CDATA = re.compile(r"\s{0,8}<!\[CDATA\[")
_CDATA_END = re.compile(r"\]\]>\s{0,8}")
_HINTS: dict[str, Hint] = {"true": "text", "false": "json"}
_FRAME_START = re.compile(r"\r?\n")

Framing: TypeAlias = Literal["none", "lines"]


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of a dialect.

    `parameter` has the group `key` and may have `hint` and `odd` (attributes that are not in the grammar); the closers
    have none. `call` finds the next call of the same grammar. `framing`: `lines` if one line end on either side of a value
    belongs to the markup (Qwen3-Coder). `json_body`: the grammar allows an object in place of the parameters.
    `other_end`: a closer that counts if the proper one is missing. `cdata`: values may stand in `<![CDATA[…]]>`.
    """

    call: Pattern
    parameter: Pattern
    parameter_end: Pattern
    call_end: Pattern
    wrapper_end: Pattern
    framing: Framing
    json_body: bool = False
    other_end: Pattern | None = None
    cdata: bool = False

    @property
    def stops(self) -> tuple[Pattern, ...]:
        """The patterns that end a value whose closer is missing."""
        ends = (self.parameter, self.call_end, self.wrapper_end, self.call)
        return ends if self.other_end is None else (self.other_end, *ends)


@dataclass(slots=True)
class Body:
    """The inside of a call. `raw` holds (parameter, text, hint); `json` an object in their place.

    `verbatim`: a value stands in a CDATA section, so nothing in the call is escaped.
    """

    end: int
    raw: list[tuple[str, str, Hint]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    json: Json = None
    closed: bool = False
    cut: bool = False
    malformed: bool = False
    verbatim: bool = False

    @property
    def empty(self) -> bool:
        return not self.raw and self.json is None

    def add(self, key: str, text: str, hint: Hint = None) -> None:
        self.malformed |= key in self.keys
        self.keys.add(key)
        self.raw.append((key, text, hint))

    def cut_off(self, end: int) -> None:
        """End the body at `end` with an argument that is not whole."""
        self.end, self.cut, self.malformed = end, True, True

    def arguments(self, tool: Tool | None) -> Json:
        if self.json is not None:
            return self.json
        return coercion.type_arguments(self.raw if self.verbatim else coercion.unescaped(self.raw), tool)


def read_body(reader: Reader, position: int, tags: Tags, tool: Tool | None) -> Body:
    """Read up to the end of the call, or as far as the grammar holds."""
    body = Body(position)
    while _read_item(reader, reader.space(body.end), tags, tool, body):
        if body.cut:
            return body
    at = reader.space(body.end)
    if closer := reader.match(tags.call_end, at):
        body.end, body.closed = closer.end(), True
        body.malformed |= _LOOSE_CLOSER.search(closer[0]) is not None
    elif reader.match(CUT_CLOSER, at):
        body.end, body.malformed = reader.size, True
    elif body.raw and reader.match(CUT_OPENER, at):
        body.cut_off(reader.size)
    else:
        body.malformed = True
        body.cut = bool(body.raw) and reader.match(_UNREAD, at) is not None  # an argument that would be lost
    return body


def _read_item(reader: Reader, at: int, tags: Tags, tool: Tool | None, body: Body) -> bool:
    """Read one parameter, or what stands in its place."""
    if opener := reader.match(tags.parameter, at):
        _read_parameter(reader, opener, tags, body)
        return True
    if body.empty and reader.char(at) == "{":
        return read_json(reader, at, tags.call_end, tags.call, body, proper=tags.json_body)
    return body.json is None and tool is not None and read_child(reader, at, tool, body, framing=tags.framing)


def _read_parameter(reader: Reader, opener: Match, tags: Tags, body: Body) -> None:
    start = opener.end()
    key = opener["key"].strip()
    groups = opener.groupdict()
    hint = _HINTS.get((groups.get("hint") or "").lower())
    body.malformed |= _LOOSE_OPENER.search(opener[0]) is not None or bool(groups.get("odd"))
    if tags.cdata and (section := reader.match(_CDATA, start)):
        _read_cdata(reader, section.end(), key, tags, body)
        return
    end = reader.first((tags.parameter_end, tags.parameter), start)
    if end is not None and end.re is tags.parameter_end:
        body.add(key, _framed(reader, start, end.start(), tags.framing), hint)
        body.end = end.end()
        body.malformed |= _LOOSE_CLOSER.search(end[0]) is not None
        return
    # Without a closer of its own a value ends where anything else does, unless the closer is still to come.
    coming = end is None and not reader.over
    stop = None if coming else reader.first(tags.stops, start)
    if stop is None:
        body.cut_off(reader.size)
        return
    body.malformed = True
    body.add(key, unframed(reader, start, stop.start()), hint)
    body.end = stop.end() if stop.re is tags.other_end else stop.start()


def _read_cdata(reader: Reader, start: int, key: str, tags: Tags, body: Body) -> None:
    end = reader.next(_CDATA_END, start)
    if end is None:
        body.cut_off(reader.size)
        return
    body.add(key, reader.value(start, end.start()))
    body.verbatim = True
    closer = reader.match(tags.parameter_end, end.end())
    body.end = end.end() if closer is None else closer.end()
    body.malformed |= closer is None


def read_json(reader: Reader, at: int, call_end: Pattern, call: Pattern, body: Body, *, proper: bool = False) -> bool:
    """Read a JSON object in place of parameters; a damaged one reaches to the end of its call.

    `proper`: the grammar allows it.
    """
    decoded = reader.json(at)
    body.malformed |= not (proper and decoded.healthy)
    if decoded.failed:
        stop = reader.first((call_end, call), at)
        if stop is None or stop.re is not call_end:
            return False
        repaired = reader.repair(at, stop.start())
        if repaired is None:
            return False
        decoded = repaired
    body.json, body.end = decoded.value, decoded.end
    return isinstance(decoded.value, dict)


def read_child(reader: Reader, at: int, tool: Tool, body: Body, *, framing: Framing) -> bool:
    """Read a parameter in a tag of its own name: `<command>ls</command>`."""
    opener = reader.match(_CHILD, at)
    if opener is None or opener[1] not in coercion.properties_of(tool.schema):
        return False
    start = opener.end()
    closer = reader.next(re.compile(rf"<\s{{0,3}}/\s{{0,3}}{re.escape(opener[1])}\s{{0,3}}>"), start)
    body.malformed = True
    if closer is None:
        body.cut_off(reader.size)
        return True
    body.add(opener[1], _framed(reader, start, closer.start(), framing))
    body.end = closer.end()
    return True


def _framed(reader: Reader, start: int, end: int, framing: Framing) -> str:
    if framing == "none":
        return reader.value(start, end)
    begin = _FRAME_START.match(reader.shadow, start, end)
    start = begin.end() if begin is not None else start
    # The line end after the value is the same as before it: a lone CR can be data.
    line_end = begin[0] if begin is not None else "\n"
    if end - start >= len(line_end) and reader.shadow.endswith(line_end, start, end):
        end -= len(line_end)
    return reader.value(start, end)


def unframed(reader: Reader, start: int, end: int) -> str:
    """Return a value whose closer is missing: up to the next tag, without the line end and the indentation."""
    value = reader.value(start, end).rstrip(" \t")
    begin = _FRAME_START.match(value)
    value = value[begin.end() :] if begin else value
    return value.removesuffix("\n").removesuffix("\r") if value.endswith("\n") else value


# -- qwen --------------------------------------------------------------------------------------------------------------

_QWEN = table(__name__, "qwen")
_WRAPPERS = {"tool_call": "qwen3_coder_xml", "seed:tool_call": "seed_oss_xml"}


def _qwen_tags(framing: Framing) -> Tags:
    return Tags(_QWEN.function, _QWEN.parameter, _QWEN.parameter_end, _QWEN.function_end, _QWEN.wrapper_end, framing)


_LINES, _VERBATIM = _qwen_tags("lines"), _qwen_tags("none")


@dataclass(slots=True)
class _QwenCalls(Calls):
    """The functions of one wrapper. `compact`: nothing stands between the tags, as MiMo writes them."""

    compact: bool = False


def read_qwen(reader: Reader, position: int) -> Reading:
    wrapper = reader.match(_QWEN.wrapper, position)
    at = reader.space(wrapper.end()) if wrapper is not None else position
    tag = wrapper["tag"] if wrapper is not None else ""
    dialect = _WRAPPERS.get(tag, "qwen3_coder_xml")
    run = _QwenCalls(at, malformed=tag not in _WRAPPERS)
    run.compact = wrapper is not None and at == wrapper.end() and dialect != "seed_oss_xml"
    while opener := _next_function(reader, at, bare_allowed=wrapper is not None and not run.calls):
        read = _read_function(reader, opener, run, wrapped=wrapper is not None)
        if read is None:
            break
        call, body = read
        run.calls.append(call)
        run.end = body.end
        run.malformed |= body.malformed
        if not call.complete:
            break
        at = reader.space(body.end)
    if not run.calls:
        return None
    at = reader.space(run.end)
    if closer := reader.match(_QWEN.wrapper_end, at):
        run.end = closer.end()
    else:
        run.malformed = True
        if wrapper is not None and not reader.ended(at) and reader.match(_QWEN.cut_closer, at):
            run.end = reader.size
    dialect = "mimo_xml" if run.compact else dialect
    return reader.block(dialect, position, run.end, run.calls, "generic", run.malformed)


def _next_function(reader: Reader, at: int, *, bare_allowed: bool) -> Match | None:
    opener = reader.match(_QWEN.function, at)
    return reader.match(_QWEN.bare_name, at) if opener is None and bare_allowed else opener


def _read_function(reader: Reader, opener: Match, run: _QwenCalls, *, wrapped: bool) -> tuple[NativeCall, Body] | None:
    if reader.ended(opener.end()):  # the name may go on
        return None
    groups = opener.groupdict()
    written = groups["name"] or groups.get("text") or ""
    tool = reader.tool(written)
    canonical = opener[0].startswith("<function=") and opener[0].endswith(">") and not groups.get("quote")
    run.malformed |= not canonical
    run.compact &= canonical and reader.char(opener.end()) == "<"
    tags = _VERBATIM if run.compact else _LINES
    if not wrapped and reader.char(reader.space(opener.end())) == "{":
        return None  # <function=NAME>{…}</function> belongs to Llama 3.1 and Functionary
    # An unknown tool counts only if its call is closed; a stretch that was read in vain is not read again.
    if tool is None and (reader.next(tags.call_end, opener.end()) is None or opener.start() < reader.dead.get(tags, 0)):
        return None
    body = read_body(reader, opener.end(), tags, tool)
    ended = body.closed or (wrapped and reader.match(_QWEN.wrapper_end, reader.space(body.end)) is not None)
    if tool is None and (body.cut or not ended or (body.empty and not wrapped)):
        reader.dead[tags] = body.end
        return None
    if body.empty and not body.cut and not (ended and (wrapped or canonical)):
        return None
    return reader.call(written, body.arguments(tool), complete=not body.cut), body


# -- beam --------------------------------------------------------------------------------------------------------------

_BEAM = table(__name__, "beam")
_CHANNELS = ("analysis", "commentary", "final")
_BEAM_TAGS = Tags(_BEAM.start, _BEAM.parameter, _BEAM.parameter_end, _BEAM.message_end, _BEAM.message_end, "lines")


def read_beam(reader: Reader, position: int) -> Reading:
    run = Calls(position)
    header = reader.match(_BEAM.header, position)
    while header is not None:
        body = _read_message(reader, header, run)
        run.end = body.end
        run.malformed |= body.malformed or _BEAM.proper.fullmatch(header[0]) is None
        further = body.closed and reader.value(run.end - len("<|end|>"), run.end) == "<|end|>"
        header = reader.match(_BEAM.header, reader.space(run.end)) if further else None
    if run.calls:
        return reader.block("beam_rfl", position, run.end, run.calls, "sentinel", run.malformed)
    if reader.match(_BEAM.lost, position) is None:
        return None
    body = read_body(reader, position, _BEAM_TAGS, None)  # without the header nothing shows which tool is called
    return Found("beam_rfl", position, body.end, (), "generic", malformed=True) if body.raw else None


def _read_message(reader: Reader, header: Match, run: Calls) -> Body:
    name = header["name"]
    for channel in _CHANNELS:  # `lookup<|channel|>analysis` without the token
        if name.removesuffix(channel) in reader.tools:
            name = name.removesuffix(channel)
    tool = reader.tool(name)
    body = read_body(reader, header.end(), _BEAM_TAGS, tool)
    complete = not body.cut and (body.closed or not body.empty)
    run.calls.append(reader.call(name, body.arguments(tool), complete=complete))
    return body


# -- cwm ---------------------------------------------------------------------------------------------------------------

_CWM = table(__name__, "cwm")


def read_cwm(reader: Reader, position: int) -> Reading:
    opener = reader.match(_CWM.opener, position)
    if opener is None:
        return None
    stop = reader.first((_CWM.closer, _CWM.next), opener.end())
    end = reader.stop(stop)
    closed = stop is not None and stop.re is _CWM.closer
    head = reader.match(_CWM.name, opener.end())
    if head is None or head.end() > end:
        return None
    if reader.ended(head.end()) and not reader.over:
        return None  # the name may go on
    name, start, odd = head["name"], head.end(), False
    if reader.resolve(name) not in reader.tools and reader.resolve(opener["label"]) in reader.tools:
        name, start, odd = opener["label"], opener.end(), True
    tool = reader.tool(name)
    if tool is None and not closed:
        return None
    arguments = _cwm_arguments(tool, reader.value(start, end).strip())
    # A command that is cut off looks like one whose closer is missing; JSON does not.
    call = reader.call(name, arguments, complete=arguments is not None)
    malformed = odd or not closed or arguments is None
    reading = reader.block("cwm_tool_block", position, end, (call,), "generic", malformed)
    return reading._replace(end=stop.end()) if isinstance(reading, Found) and stop is not None and closed else reading


def _cwm_arguments(tool: Tool | None, text: str) -> Json:
    if not text:
        return {}
    if text.startswith("{"):
        return weak.read_object(text)
    return weak.bound(tool, text) if tool is not None and tool.schema is not None else {"command": text}
