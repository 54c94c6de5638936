"""The grammar shared by dialects that put the key and the value of every argument into separate tags.

    <tool_call>lookup
    <arg_key>city</arg_key>
    <arg_value>Graz</arg_value>
    </tool_call>

There is no escaping: a value ends at the first closing tag of values. In the wild the separators come as the two
characters `\\n`, tags of keys come twice or not at all or as another opener, closers are stray, doubled or missing.
Such an argument is the text between the remaining tags; an argument without its value makes the call incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from wirelint.dialects import python_calls
from wirelint.dialects.declared import properties_of
from wirelint.dialects.json_blocks import calls_of
from wirelint.dialects.reader import Calls, Match, Reader, Reading
from wirelint.dialects.tables import Table, table
from wirelint.dialects.tagged import Body, read_child, read_json, unframed
from wirelint.model import Tool

_GAP = r"(?:\s|\\[nrt]){0,16}"
_NAME = re.compile(rf"{_GAP}(?P<name>[\w.:/-]{{1,128}})")
_SPACE = re.compile(r"(?:\s|\\[nrt])*")
_CUT_TAG = re.compile(r"<[^<>]{0,64}\Z")


def _tags(family: Table) -> Table:
    """Return the patterns of a family; `pairs.toml` describes them."""
    return family.filled("tags", family.data["tags"])


@dataclass(slots=True)
class _Run(Calls):
    """The calls of one wrapper. A separator (`separated`) or a line end (`lined`) follows the name of one."""

    separated: bool = False
    lined: bool = False


def _read_call(reader: Reader, position: int, grammar: Table, run: _Run) -> bool:
    """Read the call whose name is at a position, right after its opening tag. Return False if none can follow."""
    name = reader.match(_NAME, position)
    if name is None:
        return False
    if reader.ended(name.end()):
        if reader.over and (reader.tool(name["name"]) is not None or "sure" in grammar.data):
            run.add(reader.call(name["name"], {}, complete=False), name.end())
        return False
    if reader.char(name.end()) == "(":
        return _read_python(reader, name, grammar, run)
    if not reader.over and reader.match(_CUT_TAG, name.end()):
        return False
    written, end = _split(reader, name, grammar)
    separator = reader.match(grammar.separator, end)
    end = separator.end() if separator is not None else end
    tool = reader.tool(written)
    known = "sure" in grammar.data or tool is not None
    if not known and not _may_be_stranger(reader, position, end, grammar):
        return False
    body = _read_body(reader, end, grammar, tool)
    if not known and (body.cut or body.empty or not body.closed):
        reader.dead[grammar.head] = body.end
        return False
    if body.empty and not body.closed and not body.cut:
        return False
    run.separated |= separator is not None
    run.lined |= reader.char(end) in ("\n", "\r", "\\")
    return run.add(reader.call(written, body.arguments(tool), complete=not body.cut), body.end)


def _read_run(reader: Reader, position: int, grammar: Table, *, wrapped: bool) -> _Run:
    """Read the calls at a position, and the closing tag of their wrapper."""
    run = _Run(position)
    at = _skip_space(reader, position)
    while (opener := reader.match(grammar.call, at)) and _read_call(reader, opener.end(), grammar, run):
        at = _skip_space(reader, run.end)
    at = _skip_space(reader, run.end)
    if run.calls and (closer := reader.match(grammar.outer, at) or (wrapped and reader.match(grammar.cut_closer, at))):
        run.end = closer.end()
    return run


def _read_python(reader: Reader, name: Match, grammar: Table, run: _Run) -> bool:
    """Read a call in Python's syntax in place of the tags: of a declared tool, and closed."""
    if reader.tool(name["name"]) is None or name.start() < reader.dead.get(_NAME, 0):
        return False
    read = python_calls.read_call(reader, name.start("name"), grammar.call_end)
    closer = reader.match(grammar.call_end, reader.space(read.end)) if read is not None and read.closed else None
    if read is None or closer is None:
        reader.dead[_NAME] = read.end if read is not None else name.end()
        return False
    call = read.native(reader)
    return call.complete and reader.fits(call) and run.add(call, closer.end())


def _split(reader: Reader, name: Match, grammar: Table) -> tuple[str, int]:
    """Return the name and its end: a key may be glued to it, its opening tag lost."""
    written = name["name"]
    if reader.match(grammar.key_end, name.end()) is None or written in reader.tools:
        return written, name.end()
    fitting = [
        tool.name
        for tool in reader.tools.values()
        if written.startswith(tool.name) and written[len(tool.name) :] in properties_of(tool.schema)
    ]
    if len(fitting) != 1:
        return written, name.end()
    return fitting[0], name.start("name") + len(fitting[0])


def _may_be_stranger(reader: Reader, position: int, end: int, grammar: Table) -> bool:
    """Return True if a closed call of an unknown tool may follow. A stretch without one is not read again."""
    if position < reader.dead.get(grammar.head, 0):
        return False
    at = _skip_space(reader, end)
    head = reader.match(grammar.head, at)
    if (head is None or not head["opened"]) and reader.char(at) != "{":
        return False
    return reader.next(grammar.call_end, end) is not None


def _read_body(reader: Reader, position: int, grammar: Table, tool: Tool | None) -> Body:
    """Read the arguments and the closing tag, or as much of them as there is."""
    body = Body(position)
    while _read_item(reader, grammar, body, tool):
        if body.cut:
            return body
    at = _skip(reader, grammar, body)
    while closer := reader.match(grammar.call_end, at):  # in the wild closers without end
        at = reader.space(closer.end()) if body.closed else closer.end()
        body.end, body.closed = closer.end(), True
    if body.closed:
        return body
    if reader.match(grammar.cut_closer, at):
        body.end, body.closed = reader.size, True
    elif reader.match(_CUT_TAG, at):
        body.cut_off(reader.size)
    return body


def _skip_space(reader: Reader, at: int) -> int:
    end = reader.after(_SPACE, at)
    reader.work += end - at
    return end


def _skip(reader: Reader, grammar: Table, body: Body) -> int:
    """Return the offset after separators and stray closers."""
    while stray := reader.match(grammar.stray, at := _skip_space(reader, body.end)):
        body.end = stray.end()
    return at


def _read_item(reader: Reader, grammar: Table, body: Body, tool: Tool | None) -> bool:
    at = _skip(reader, grammar, body)
    head = reader.match(grammar.head, at)
    if head is not None and (head["opened"] or (head["key"] and head["ended"])):
        _read_value(reader, head, grammar, body)
        return True
    if reader.match(grammar.key, at):
        _cut_short(reader, reader.first((grammar.call_end, grammar.call, grammar.outer), at), grammar, body)
        return True
    if body.empty and reader.char(at) == "{":
        return read_json(reader, at, grammar.call_end, grammar.call, body)
    return body.json is None and tool is not None and read_child(reader, at, tool, body)


def _read_value(reader: Reader, head: Match, grammar: Table, body: Body) -> None:
    start = head.end()
    end = reader.first((grammar.value_end, grammar.key), start)
    if end is not None and end.re == grammar.value_end and _is_own_closer(reader, head, end, grammar):
        _add(body, head, reader.value(start, end.start()), grammar)
        body.end = end.end()
        return
    # A value without its closer ends at the next tag, unless the closer may still arrive.
    stop = reader.first((grammar.key, grammar.call_end, grammar.outer, grammar.call), start)
    if stop is None or head["value"] is None:
        _cut_short(reader, stop, grammar, body)
        return
    _add(body, head, unframed(reader, start, stop.start()), grammar)
    body.end = stop.start()


def _cut_short(reader: Reader, stop: Match | None, grammar: Table, body: Body) -> None:
    """End the body with an argument that is not whole, at the end of its call."""
    body.cut_off(stop.end() if stop is not None and stop.re == grammar.call_end else reader.stop(stop))


def _is_own_closer(reader: Reader, head: Match, end: Match, grammar: Table) -> bool:
    """Return True if a closer is that of this value. Without an opening tag it must not reach into another call."""
    if head["value"] is not None:
        return True
    stop = reader.first((grammar.value_end, grammar.call_end, grammar.call), head.end())
    return stop is not None and stop.start() == end.start()


def _add(body: Body, head: Match, text: str, grammar: Table) -> None:
    key = head["key"].strip("\"'")
    if not key and not text.strip():  # tags around nothing
        return
    if not key:
        body.cut = True
    if key in body.keys and "first_wins" in grammar.data:
        return
    groups: Mapping[str, str | None] = head.groupdict()
    kind = groups.get("type")
    body.add(key, text, None if kind is None else "text" if kind == "string" else "json")


_GLM = table(__name__, "glm")
_GLM_TAGS = _tags(_GLM)
_NAME_LIMIT = 160
_SHORTEST_GLUED = 4


def read_glm(reader: Reader, position: int) -> Reading:
    opener = reader.match(_GLM.opener, position)
    if opener is None:
        # Arguments whose `<tool_call>` was lost, after the name of a declared tool, which may be glued to prose.
        if reader.match(_GLM_TAGS.key, position) is None or position < reader.dead.get("glm45", 0):
            return None
        floor = max(reader.floor, position - _NAME_LIMIT)
        before = _GLM.name_before.search(reader.shadow[floor:position])
        tool = _last_named(reader, before["name"]) if before is not None else None
        if before is None or tool is None:
            return None
        body = _read_body(reader, position, _GLM_TAGS, tool)
        # The first key may be still to come.
        if not (body.keys <= properties_of(tool.schema).keys() and (body.keys or reader.open)):
            reader.dead["glm45"] = body.end
            return None
        start = floor + before.end("name") - len(tool.name)
        call = reader.call(tool.name, body.arguments(tool), complete=not body.cut)
        dialect = "glm45" if before.end("name") < before.end() else "glm47"
        return reader.block(dialect, start, body.end, (call,), "generic")
    again = reader.follow(_GLM.opener, opener.end())
    doubled = again is not None and again[0] == opener[0]
    run = _Run(position)
    _read_call(reader, again.end() if again is not None and doubled else opener.end(), _GLM_TAGS, run)
    if not run.calls:
        return None
    dialect = "iquest_q1" if opener["tag"] == "iquest_tool_call" else "glm45" if run.lined else "glm47"
    return reader.block(dialect, position, run.end, run.calls, "generic")


def _last_named(reader: Reader, written: str) -> Tool | None:
    """Return the declared tool whose name ends a text."""
    if written in reader.tools:
        return reader.tools[written]
    names = [name for name in reader.tools if written.endswith(name)]
    name = max(names, key=len, default="")
    inside_word = written[: len(written) - len(name)][-1:].isalnum()
    if not name or (inside_word and len(name) < _SHORTEST_GLUED):
        return None
    return reader.tools[name]


_HY = table(__name__, "hy")
_HY_TAGS = _tags(_HY)


def read_hy(reader: Reader, position: int) -> Reading:
    wrapper = reader.match(_HY.wrapper, position)
    run = _read_run(reader, wrapper.end() if wrapper is not None else position, _HY_TAGS, wrapped=wrapper is not None)
    # Without the wrapper, the separator and a suffix the bytes are GLM's.
    if not run.calls or not (wrapper is not None or run.separated or reader.match(_HY.own, position)):
        return None
    return reader.block("hy_v3" if run.separated else "hy_v4", position, run.end, run.calls, "generic")


_IFM = table(__name__, "ifm")
_IFM_TAGS = _tags(_IFM)


def read_ifm(reader: Reader, position: int) -> Reading:
    wrapper = reader.match(_IFM.wrapper, position)
    at = wrapper.end() if wrapper is not None else position
    if wrapper is None and reader.match(_IFM_TAGS.call, position) is None:
        return None
    run: Calls = _read_run(reader, at, _IFM_TAGS, wrapped=wrapper is not None)
    run = run if run.calls else _read_objects(reader, at)
    return reader.block("k2_horizon_ifm", position, run.end, run.calls)


def _read_objects(reader: Reader, position: int) -> Calls:
    run = Calls(position)
    while opener := reader.follow(_IFM_TAGS.call, run.end):
        run.end = opener.end()
        at = reader.space(opener.end())
        decoded = reader.json(at) if reader.char(at) == "{" else None
        calls = calls_of(reader, decoded.value)[0] if decoded is not None else []
        if decoded is None or not calls:
            break
        run.calls += calls
        closer = reader.follow(_IFM_TAGS.call_end, decoded.end)
        run.end = closer.end() if closer is not None else decoded.end
        if closer is None:
            break
    run.end = reader.past(run.end, _IFM_TAGS.outer)
    return run


_SOLAR = table(__name__, "solar")
_SOLAR_TAGS = _tags(_SOLAR)


def read_solar(reader: Reader, position: int) -> Reading:
    opener = reader.match(_SOLAR.opener, position)
    if opener is None:
        return None
    run = _read_run(reader, position, _SOLAR_TAGS, wrapped=False)
    return reader.block("solar_open2", position, run.end if run.calls else opener.end(), run.calls)
