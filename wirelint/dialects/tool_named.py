"""Tags named after the declared tools and their parameters: `<read_file><path>a.py</path></read_file>`."""

from __future__ import annotations

import re
from functools import lru_cache

from wirelint.dialects import coercion, weak
from wirelint.dialects.reader import Match, Pattern, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.tagged import Body
from wirelint.dialects.values import Found, NativeCall, Reading
from wirelint.model import Tool

_XML = table(__name__, "tool_named")
_HTML = frozenset(_XML.data["html"])


def read_tool_named(reader: Reader, position: int) -> Reading:
    if function := reader.match(_XML.function, position):
        return _read_call(reader, function, function["name"], _XML.function_end, named=False)
    if named := reader.match(_XML.wrapped, position):
        return _read_named(reader, named)
    tag = reader.match(_XML.tag, position)
    if tag is None or tag["name"] not in reader.tools:
        return None
    if tag["empty"]:
        return _read_empty(reader, tag)
    return _read_call(reader, tag, tag["name"], _closer(tag["name"]), named=True)


def _read_call(reader: Reader, opener: Match, name: str, closer: Pattern, *, named: bool) -> Reading:
    tool = reader.tool(name)
    if tool is None:
        return None
    body = _read_body(reader, opener.end(), tool, closer)
    if body is None or (body.empty and not body.closed):
        return None
    if body.empty and not _may_be_empty(reader, tool, opener.start(), body.end):
        return None
    arguments = body.arguments(tool)
    if not weak.fits(tool, arguments):
        return None
    whole = not body.cut and (body.closed or not _lacks(tool, body.keys))
    call = reader.call(name, arguments, complete=whole)
    malformed = body.malformed or not named or not body.closed
    return Found("tool_named_xml", opener.start(), body.end, (call,), "generic", malformed)


def _read_body(reader: Reader, start: int, tool: Tool, closer: Pattern) -> Body | None:
    """Read the parameters up to the closer of the call; None if anything else stands between them."""
    body = Body(start)
    declared = coercion.properties_of(tool.schema)
    while True:
        at = reader.space(body.end)
        if ending := reader.match(closer, at):
            body.end, body.closed = ending.end(), True
            return body
        child = reader.match(_XML.tag, at)
        if child is not None and not child["empty"] and (child["name"] in declared or not declared):
            _read_parameter(reader, child, closer, body)
            if body.cut:
                return body
        elif parameter := reader.match(_XML.parameter, at):
            body.malformed = True
            _read_parameter(reader, parameter, closer, body)
            if body.cut:
                return body
        elif reader.char(at) == "{" and body.empty:
            if not _read_json(reader, at, body):
                return None
        else:
            return _ended(reader, at, body)


def _ended(reader: Reader, at: int, body: Body) -> Body | None:
    """Return the body if the text cuts it off here; None if it is no call."""
    body.malformed = True
    if body.empty:
        return None
    if reader.ended(at):
        body.end = at
        return body
    if reader.over and reader.match(_XML.cut_tag, at):
        body.end, body.cut = reader.size, True
        return body
    return None


def _read_parameter(reader: Reader, child: Match, closer: Pattern, body: Body) -> None:
    own = _closer(child["name"] if child.re is _XML.tag else "parameter")
    stop = reader.first((own, closer), child.end())
    body.malformed |= any(character.isspace() for character in child[0])
    if stop is None:
        body.add(child["name"], "")
        body.raw.pop()
        body.end, body.cut = reader.size, True
    elif stop.re is own:
        body.add(child["name"], _framed(reader, child.end(), stop.start()))
        body.end = stop.end()
    else:  # its closer is missing
        body.malformed = True
        body.add(child["name"], reader.value(child.end(), stop.start()).strip())
        body.end = stop.start()


def _read_json(reader: Reader, at: int, body: Body) -> bool:
    decoded = reader.json(at)
    if decoded.failed or not isinstance(decoded.value, dict):
        return False
    body.json, body.end, body.malformed = decoded.value, decoded.end, True
    return True


def _framed(reader: Reader, start: int, end: int) -> str:
    value = reader.value(start, end)
    begin = _XML.line_end.match(value)
    if begin is None:
        return value
    value = value[begin.end() :]
    return value[: -len(begin[0])] if value.endswith(begin[0]) else value.rstrip(" \t").removesuffix(begin[0])


def _read_empty(reader: Reader, tag: Match) -> Reading:
    """Read `<refresh/>`: a tool without required parameters, as the whole message."""
    tool = reader.tools[tag["name"]]
    if not _may_be_empty(reader, tool, tag.start(), tag.end()) or not weak.is_whole(reader, tag.start(), tag.end()):
        return None
    call = reader.call(tool.name, {}, complete=True)
    return Found("tool_named_xml", tag.start(), tag.end(), (call,), "weak", malformed=True)


def _may_be_empty(reader: Reader, tool: Tool, start: int, end: int) -> bool:
    return not _lacks(tool, set()) and (tool.name not in _HTML or weak.is_whole(reader, start, end))


def _lacks(tool: Tool, keys: set[str]) -> bool:
    """Return True if a required parameter is missing."""
    required = tool.schema.get("required") if tool.schema is not None else None
    return isinstance(required, list) and any(key not in keys for key in required)


def _read_named(reader: Reader, opener: Match) -> Reading:
    """Read a name and a JSON object in tags of their own."""
    calls: list[NativeCall] = []
    end = opener.end()
    here: Match | None = opener
    while here is not None:
        tool = reader.tool(here["name"])
        decoded = reader.json(here.end())
        if decoded.failed or not weak.fits(tool, decoded.value):
            break
        closer = reader.match(_XML.wrapped_end, decoded.end)
        calls.append(reader.call(here["name"], decoded.value, complete=True))
        end = closer.end() if closer is not None else decoded.end
        gap = reader.match(_XML.wrapped_next, end) if closer is not None else None
        here = reader.match(_XML.wrapped, gap.end()) if gap is not None else None
    if not calls:
        return None
    if opener["wrapper"] and (wrapper := reader.match(_XML.wrapper_end, end)):
        end = wrapper.end()
    return Found("tool_named_xml", opener.start(), end, tuple(calls), "generic", malformed=True)


@lru_cache(maxsize=1024)
def _closer(name: str) -> Pattern:
    return re.compile(rf"<\s{{0,2}}/\s{{0,2}}{re.escape(name)}\s{{0,2}}>")
