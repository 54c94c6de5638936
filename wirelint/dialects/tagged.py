"""The grammar shared by XML-ish dialects: an opening tag that names the tool, parameter tags, closing tags.

These dialects have no escaping: a value ends at the first closing tag of its own parameter, whatever stands before it.
Where that closer is missing (the next parameter begins first, or the call ends), the value ends there, without the
line end that framed it. Instead of parameter tags a body may hold a JSON object, or tags named after the parameters of
a declared tool.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from wirelint.dialects import coercion
from wirelint.dialects.coercion import Hint
from wirelint.dialects.reader import Match, Pattern, Reader
from wirelint.model import Json, Tool

_CHILD = re.compile(r"<\s{0,3}([A-Za-z_][\w.-]{0,63})\s{0,3}>")
_CUT_CLOSER = re.compile(r"<\s{0,3}/\s{0,3}[\w:]{0,32}\s{0,3}\Z")
_CUT_OPENER = re.compile(r"<[^<>]{0,256}\Z")
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
    """`parameter` has the group `key` and may have `hint` and `odd` (what is not in the grammar); the closers have none.

    `call` finds the next call of the same grammar. `framing`: `lines` when one line end on either side of a value belongs
    to the markup (Qwen3-Coder), else `none`. `json_body`: an object in place of the parameters is in the grammar too.
    `other_end`: a closer that counts where the proper one is missing. `cdata`: values may stand in `<![CDATA[…]]>`.
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
        """What ends a value whose closer is missing."""
        ends = (self.parameter, self.call_end, self.wrapper_end, self.call)
        return ends if self.other_end is None else (self.other_end, *ends)


@dataclass(slots=True)
class Body:
    """The inside of a call. `raw` holds (parameter, text, hint); `json` an object that stood in their place."""

    end: int
    raw: list[tuple[str, str, Hint]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    json: Json = None
    closed: bool = False
    cut: bool = False
    malformed: bool = False
    verbatim: bool = False
    """Whether a value stands in a CDATA section, so that nothing in the call is escaped."""

    @property
    def empty(self) -> bool:
        return not self.raw and self.json is None

    def add(self, key: str, text: str, hint: Hint = None) -> None:
        self.malformed |= key in self.keys
        self.keys.add(key)
        self.raw.append((key, text, hint))

    def arguments(self, tool: Tool | None) -> Json:
        if self.json is not None:
            return self.json
        return coercion.type_arguments(self.raw if self.verbatim else coercion.unescaped(self.raw), tool)


def read_body(reader: Reader, position: int, tags: Tags, tool: Tool | None) -> Body:
    """Reads up to the end of the call, or as far as the grammar holds."""
    body = Body(position)
    while _read_item(reader, reader.space(body.end), tags, tool, body):
        if body.cut:
            return body
    at = reader.space(body.end)
    if closer := reader.match(tags.call_end, at):
        body.end, body.closed = closer.end(), True
        body.malformed |= _LOOSE_CLOSER.search(closer[0]) is not None
    elif reader.match(_CUT_CLOSER, at):
        body.end, body.malformed = reader.size, True
    elif body.raw and reader.match(_CUT_OPENER, at):
        body.end, body.cut, body.malformed = reader.size, True, True
    else:
        body.malformed = True
        body.cut = bool(body.raw) and reader.match(_UNREAD, at) is not None  # an argument that would be lost
    return body


def _read_item(reader: Reader, at: int, tags: Tags, tool: Tool | None, body: Body) -> bool:
    """One parameter, or what stands in its place."""
    if opener := reader.match(tags.parameter, at):
        _read_parameter(reader, opener, tags, body)
        return True
    if body.empty and reader.char(at) == "{":
        return read_json(reader, at, tags.call_end, tags.call, body, proper=tags.json_body)
    return body.json is None and tool is not None and read_child(reader, at, tool, body, framing=tags.framing)


def _read_parameter(reader: Reader, opener: Match, tags: Tags, body: Body) -> None:
    start = opener.end()
    key = opener["key"].strip()
    body.malformed |= _LOOSE_OPENER.search(opener[0]) is not None
    groups = opener.groupdict()
    hint = _HINTS.get((groups.get("hint") or "").lower())
    body.malformed |= bool(groups.get("odd"))
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
    body.malformed = True
    if stop is None:
        body.end, body.cut = reader.size, True
        return
    body.add(key, unframed(reader, start, stop.start()), hint)
    body.end = stop.end() if stop.re is tags.other_end else stop.start()


def _read_cdata(reader: Reader, start: int, key: str, tags: Tags, body: Body) -> None:
    end = reader.next(_CDATA_END, start)
    if end is None:
        body.end, body.cut, body.malformed = reader.size, True, True
        return
    body.add(key, reader.value(start, end.start()))
    body.verbatim = True
    closer = reader.match(tags.parameter_end, end.end())
    body.end = end.end() if closer is None else closer.end()
    body.malformed |= closer is None


def read_json(reader: Reader, at: int, call_end: Pattern, call: Pattern, body: Body, *, proper: bool = False) -> bool:
    """A JSON object in place of parameters, up to the end of its call where it is damaged.

    `proper`: the grammar has it.
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
    """A parameter written as a tag of its own name: `<command>ls</command>`."""
    opener = reader.match(_CHILD, at)
    if opener is None or opener[1] not in coercion.properties_of(tool.schema):
        return False
    start = opener.end()
    closer = reader.next(re.compile(rf"<\s{{0,3}}/\s{{0,3}}{re.escape(opener[1])}\s{{0,3}}>"), start)
    body.malformed = True
    if closer is None:
        body.end, body.cut = reader.size, True
        return True
    body.add(opener[1], _framed(reader, start, closer.start(), framing))
    body.end = closer.end()
    return True


def _framed(reader: Reader, start: int, end: int, framing: Framing) -> str:
    if framing == "none":
        return reader.value(start, end)
    begin = _FRAME_START.match(reader.shadow, start, end)
    start = begin.end() if begin is not None else start
    # The line end after the value is of the same kind as the one before it: a lone CR can be data.
    line_end = begin[0] if begin is not None else "\n"
    if end - start >= len(line_end) and reader.shadow.endswith(line_end, start, end):
        end -= len(line_end)
    return reader.value(start, end)


def unframed(reader: Reader, start: int, end: int) -> str:
    """A value whose closer is missing: what stands before the next tag, without the line end and the indentation."""
    value = reader.value(start, end).rstrip(" \t")
    begin = _FRAME_START.match(value)
    value = value[begin.end() :] if begin else value
    return value.removesuffix("\n").removesuffix("\r") if value.endswith("\n") else value
