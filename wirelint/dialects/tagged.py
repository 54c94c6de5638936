"""The grammar shared by XML-ish dialects: an opening tag that names the tool, parameter tags, closing tags.

These dialects have no escaping: a value ends at the first closing tag of its own parameter, whatever stands before it.
Where that closer is missing (the next parameter begins first, or the call ends), the value ends there, without the
line end that framed it. Instead of parameter tags a body may hold a JSON object, or tags named after the parameters of
a declared tool.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from wirelint.dialects import coercion
from wirelint.dialects.coercion import Hint
from wirelint.dialects.reader import Match, Pattern, Reader
from wirelint.model import Json, Tool

_CHILD = re.compile(r"<\s{0,3}([A-Za-z_][\w.-]{0,63})\s{0,3}>")
_CUT_CLOSER = re.compile(r"<\s{0,3}/\s{0,3}[\w:]{0,32}\s{0,3}\Z")
_CUT_OPENER = re.compile(r"<[^<>]{0,256}\Z")
_LOOSE_OPENER = re.compile(r"<\s|\s[>=]|=\s|[a-z_]name\s*=")
_HINTS: dict[str | None, Hint] = {"true": "text", "false": "json"}
_FRAME_START = re.compile(r"\r?\n")


@dataclass(frozen=True, slots=True)
class Tags:
    """`parameter` has the group `key` and may have `hint`; the closers have none.

    `call` finds the next call of the same grammar. `framing`: `lines` when one line end on either side of a value belongs
    to the markup (Qwen3-Coder), else `none`.
    """

    call: Pattern
    parameter: Pattern
    parameter_end: Pattern
    call_end: Pattern
    wrapper_end: Pattern
    framing: Literal["none", "lines"]


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
        return coercion.type_arguments(self.raw, tool)


def read_body(reader: Reader, position: int, tags: Tags, tool: Tool | None) -> Body:
    """Reads up to the end of the call, or as far as the grammar holds."""
    body = Body(position)
    while _read_item(reader, reader.space(body.end), tags, tool, body):
        if body.cut:
            return body
    at = reader.space(body.end)
    if closer := tags.call_end.match(reader.shadow, at):
        body.end, body.closed = closer.end(), True
    elif _CUT_CLOSER.match(reader.shadow, at):
        body.end, body.malformed = reader.size, True
    elif body.raw and _CUT_OPENER.match(reader.shadow, at):
        body.end, body.cut, body.malformed = reader.size, True, True
    else:
        body.malformed = True
    return body


def _read_item(reader: Reader, at: int, tags: Tags, tool: Tool | None, body: Body) -> bool:
    """One parameter, or what stands in its place."""
    if opener := tags.parameter.match(reader.shadow, at):
        _read_parameter(reader, opener, tags, body)
        return True
    if body.empty and reader.shadow[at : at + 1] == "{":
        return _read_json(reader, at, tags, body)
    return body.json is None and tool is not None and _read_child(reader, at, tool, tags, body)


def _read_parameter(reader: Reader, opener: Match, tags: Tags, body: Body) -> None:
    start = opener.end()
    closer = reader.next(tags.parameter_end, start)
    follower = reader.next(tags.parameter, start)
    key = opener["key"].strip()
    body.malformed |= _LOOSE_OPENER.search(opener[0]) is not None
    hint = _HINTS.get(opener.groupdict().get("hint"))
    if closer is not None and (follower is None or closer.start() < follower.start()):
        body.add(key, _framed(reader, start, closer.start(), tags), hint)
        body.end = closer.end()
        body.malformed |= any(character.isspace() for character in closer[0])
        return
    stops = (follower, *(reader.next(end, start) for end in (tags.call_end, tags.wrapper_end, tags.call)))
    stop = min((match.start() for match in stops if match is not None), default=None)
    body.malformed = True
    if stop is None:
        body.end, body.cut = reader.size, True
        return
    body.add(key, _unframed(reader, start, stop), hint)
    body.end = stop


def _read_json(reader: Reader, at: int, tags: Tags, body: Body) -> bool:
    decoded = reader.json(at)
    if decoded.failed:
        stop, other = reader.next(tags.call_end, at), reader.next(tags.call, at)
        if stop is None or (other is not None and other.start() < stop.start()):
            return False
        repaired = reader.repair(at, stop.start())
        if repaired is None:
            return False
        decoded = repaired
    body.malformed = True
    body.json, body.end = decoded.value, decoded.end
    return isinstance(decoded.value, dict)


def _read_child(reader: Reader, at: int, tool: Tool, tags: Tags, body: Body) -> bool:
    """A parameter written as a tag of its own name: `<command>ls</command>`."""
    opener = _CHILD.match(reader.shadow, at)
    if opener is None or opener[1] not in coercion.properties_of(tool.schema):
        return False
    start = opener.end()
    closer = reader.next(re.compile(rf"<\s{{0,3}}/\s{{0,3}}{re.escape(opener[1])}\s{{0,3}}>"), start)
    body.malformed = True
    if closer is None:
        body.end, body.cut = reader.size, True
        return True
    body.add(opener[1], _framed(reader, start, closer.start(), tags))
    body.end = closer.end()
    return True


def _framed(reader: Reader, start: int, end: int, tags: Tags) -> str:
    if tags.framing == "none":
        return reader.value(start, end)
    begin = _FRAME_START.match(reader.shadow, start, end)
    start = begin.end() if begin is not None else start
    # The line end after the value is of the same kind as the one before it: a lone CR can be data.
    line_end = begin[0] if begin is not None else "\n"
    if end - start >= len(line_end) and reader.shadow.endswith(line_end, start, end):
        end -= len(line_end)
    return reader.value(start, end)


def _unframed(reader: Reader, start: int, end: int) -> str:
    """A value whose closer is missing: what stands before the next tag, without the line end and the indentation."""
    value = reader.value(start, end).rstrip(" \t")
    begin = _FRAME_START.match(value)
    value = value[begin.end() :] if begin else value
    return value.removesuffix("\n").removesuffix("\r") if value.endswith("\n") else value
