"""Tags named after the tools and their parameters.

Lineage: Cline's system prompt (2024) → Roo, Kilo, Suna and other coding agents; models trained on their transcripts
write it without being asked.

    <read_file>
    <path>src/main.py</path>
    </read_file>

The names of the declared tools are all there is to know it by, and its openers are made of them. Types come from the
declared schema; no escaping, no ids. One line end on either side of a value is framing. In the wild: the closing tag
of a parameter missing, the call cut off, a JSON object inside, `<function><name>read_file</name>` around the
parameters, and `<tool_call><tool_name>read_file</tool_name><parameters>{…}</parameters></tool_call>`, parameters as
`<parameter name="path">`.

A tag alone is no call: many tools have names that HTML or an answer's own XML may use. Everything inside must be
parameters of the tool; one without parameters must be closed, and where its name is HTML, it must be the whole
message.
"""

from __future__ import annotations

import re
from functools import lru_cache

from wirelint.dialects import coercion, weak
from wirelint.dialects.family import Family, Found, Reading
from wirelint.dialects.openers import NAME, Run, either
from wirelint.dialects.reader import Match, Pattern, Reader
from wirelint.dialects.tagged import Body
from wirelint.dialects.values import NativeCall
from wirelint.model import Tool

_DIALECT = "tool_named_xml"
_GAP = Run(r"\s", 0, 2)
_TAG_NAME = re.compile(r"[A-Za-z_][\w.:-]{0,99}")
_TAG = re.compile(r"<\s{0,2}(?P<name>[A-Za-z_][\w.:-]{0,99})\s{0,2}(?P<empty>/)?>")
_PARAMETER = re.compile(r"<parameter(?:\s{1,4}name)?\s{0,4}=\s{0,4}[\"']?(?P<name>[\w.:-]{1,100})[\"']?\s{0,4}>")
_FUNCTION = re.compile(r"<function>\s{0,8}<name>\s{0,2}(?P<name>[\w.:/-]{1,128})\s{0,2}</name>")
_FUNCTION_END = re.compile(r"</function>")
_NAMED = re.compile(
    r"(?P<wrapper><tool_calls>\s{0,8})?<tool_call>\s{0,8}<tool_name>\s{0,2}(?P<name>[\w.:/-]{1,128})\s{0,2}</tool_name>\s{0,8}"
    r"<(?P<tag>parameters|arguments)>\s{0,8}"
)
_NAMED_END = re.compile(r"\s{0,8}</(?:parameters|arguments)>\s{0,8}</tool_call>")
_NAMED_NEXT = re.compile(r"\s{0,8}(?=<tool_call>)")
_WRAPPER_END = re.compile(r"\s{0,8}</tool_calls>")
_CUT_TAG = re.compile(r"<[^<>\n]{0,100}\Z")
_LINE_END = re.compile(r"\r?\n")
_HTML = frozenset({
    "a", "abbr", "address", "article", "aside", "audio", "b", "base", "blockquote", "body", "br", "button",
    "canvas", "caption", "center", "cite", "code", "col", "data", "datalist", "dd", "del", "details", "dfn",
    "dialog", "div", "dl", "dt", "em", "embed", "fieldset", "figure", "footer", "form", "h1", "h2", "h3", "h4",
    "h5", "h6", "head", "header", "hr", "html", "i", "iframe", "img", "input", "ins", "kbd", "label", "legend",
    "li", "link", "main", "map", "mark", "menu", "meta", "meter", "nav", "object", "ol", "option", "output",
    "p", "picture", "pre", "progress", "q", "s", "samp", "script", "search", "section", "select", "slot",
    "small", "source", "span", "strong", "style", "sub", "summary", "sup", "svg", "table", "tbody", "td",
    "template", "text", "textarea", "tfoot", "th", "thead", "time", "title", "tr", "track", "u", "ul", "var",
    "video",
})  # fmt: skip


def _read(reader: Reader, position: int) -> Reading:
    if function := reader.match(_FUNCTION, position):
        return _read_call(reader, function, function["name"], _FUNCTION_END, named=False)
    if named := reader.match(_NAMED, position):
        return _read_named(reader, named)
    tag = reader.match(_TAG, position)
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
    return Found(_DIALECT, opener.start(), body.end, (call,), "generic", malformed)


def _read_body(reader: Reader, start: int, tool: Tool, closer: Pattern) -> Body | None:
    """The parameters up to the closer of the call; None when something else stands between them."""
    body = Body(start)
    declared = coercion.properties_of(tool.schema)
    while True:
        at = reader.space(body.end)
        if ending := reader.match(closer, at):
            body.end, body.closed = ending.end(), True
            return body
        child = reader.match(_TAG, at)
        if child is not None and not child["empty"] and (child["name"] in declared or not declared):
            _read_parameter(reader, child, closer, body)
            if body.cut:
                return body
        elif parameter := reader.match(_PARAMETER, at):
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
    """What does not go on as a call may have been cut off; else all of it is something else."""
    body.malformed = True
    if body.empty:
        return None
    if reader.ended(at):
        body.end = at
        return body
    if reader.over and reader.match(_CUT_TAG, at):
        body.end, body.cut = reader.size, True
        return body
    return None


def _read_parameter(reader: Reader, child: Match, closer: Pattern, body: Body) -> None:
    own = _closer(child["name"] if child.re is _TAG else "parameter")
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
    begin = _LINE_END.match(value)
    if begin is None:
        return value
    value = value[begin.end() :]
    return value[: -len(begin[0])] if value.endswith(begin[0]) else value.rstrip(" \t").removesuffix(begin[0])


def _read_empty(reader: Reader, tag: Match) -> Reading:
    """`<refresh/>`: a tool that needs nothing, as the whole message."""
    tool = reader.tools[tag["name"]]
    if not _may_be_empty(reader, tool, tag.start(), tag.end()) or not weak.is_whole(reader, tag.start(), tag.end()):
        return None
    call = reader.call(tool.name, {}, complete=True)
    return Found(_DIALECT, tag.start(), tag.end(), (call,), "weak", malformed=True)


def _may_be_empty(reader: Reader, tool: Tool, start: int, end: int) -> bool:
    return not _lacks(tool, set()) and (tool.name not in _HTML or weak.is_whole(reader, start, end))


def _lacks(tool: Tool, keys: set[str]) -> bool:
    """Whether a parameter is missing that the tool requires."""
    required = tool.schema.get("required") if tool.schema is not None else None
    return isinstance(required, list) and any(key not in keys for key in required)


def _read_named(reader: Reader, opener: Match) -> Reading:
    """A name and a JSON object in tags of their own."""
    calls: list[NativeCall] = []
    end = opener.end()
    here: Match | None = opener
    while here is not None:
        tool = reader.tool(here["name"])
        decoded = reader.json(here.end())
        if decoded.failed or not weak.fits(tool, decoded.value):
            break
        closer = reader.match(_NAMED_END, decoded.end)
        calls.append(reader.call(here["name"], decoded.value, complete=True))
        end = closer.end() if closer is not None else decoded.end
        gap = reader.match(_NAMED_NEXT, end) if closer is not None else None
        here = reader.match(_NAMED, gap.end()) if gap is not None else None
    if not calls:
        return None
    if opener["wrapper"] and (wrapper := reader.match(_WRAPPER_END, end)):
        end = wrapper.end()
    return Found(_DIALECT, opener.start(), end, tuple(calls), "generic", malformed=True)


@lru_cache(maxsize=1024)
def _closer(name: str) -> Pattern:
    return re.compile(rf"<\s{{0,2}}/\s{{0,2}}{re.escape(name)}\s{{0,2}}>")


FAMILY = Family(
    "tool_named",
    rank=3,
    openers=(("<function>",), ("<tool_call>",), ("<tool_calls>",), ("<", _GAP, NAME, _GAP, either(">", "/>"))),
    read=_read,
    speakers={_DIALECT: frozenset()},
)
