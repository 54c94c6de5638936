r"""The grammar shared by XML-ish dialects: an opening tag that names the tool, parameter tags, closing tags.

These dialects have no escaping: a value ends at the first closing tag of its own parameter, even inside a string. If
that closer is missing (the next parameter begins first, or the call ends), the value ends there, without the line end
that framed it. Instead of parameter tags a body may hold a JSON object, or tags named after the parameters of a
declared tool.

Other dialects put the key and the value of every argument into separate tags.

    <tool_call>lookup
    <arg_key>city</arg_key>
    <arg_value>Graz</arg_value>
    </tool_call>

In the wild the separators come as the two
characters `\n`, tags of keys come twice or not at all or as another opener, closers are stray, doubled or missing.
Such an argument is the text between the remaining tags; an argument without its value makes the call incomplete.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from wirelint.dialects import declared, jsontext, python_calls
from wirelint.dialects.declared import Hint, properties_of
from wirelint.dialects.json_blocks import calls_of
from wirelint.dialects.reader import Calls, Match, Pattern, Reader, Reading
from wirelint.dialects.tables import Table, tables
from wirelint.model import Json, Tool

_QWEN, _BEAM, _CWM, _XML = tables(__name__, "qwen", "beam", "cwm", "tool_named")
_GLM, _HY, _IFM, _SOLAR = tables(__name__, "glm", "hy", "ifm", "solar")
_CHILD = re.compile(r"<\s{0,3}([A-Za-z_][\w.-]{0,63})\s{0,3}>")
_CUT_CLOSER = re.compile(r"<\s{0,3}/\s{0,3}[\w:]{0,32}\s{0,3}\Z")
_CUT_OPENER = re.compile(r"<[^<>]{0,256}\Z")
_UNREAD = re.compile(r"<[^<>/]{0,16}(?:param|arg)")
_CDATA = re.compile(r"\s{0,8}<!\[CDATA\[")
_CDATA_END = re.compile(r"\]\]>\s{0,8}")
_HINTS: dict[str, Hint] = {"true": "text", "false": "json"}
_FRAME_START = re.compile(r"\r?\n")


@dataclass(slots=True)
class Body:
    """The inside of a call. `raw` holds (parameter, text, hint); `json` an object in their place.

    `framed`: one line end on either side of a value belongs to the markup (Qwen3-Coder). `verbatim`: a value is in a CDATA
    section, so nothing in the call is escaped.
    """

    end: int
    framed: bool = False
    raw: list[tuple[str, str, Hint]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    json: Json = None
    closed: bool = False
    cut: bool = False
    verbatim: bool = False

    @property
    def empty(self) -> bool:
        return not self.raw and self.json is None

    def add(self, key: str, text: str, hint: Hint = None) -> None:
        self.keys.add(key)
        self.raw.append((key, text, hint))

    def cut_off(self, end: int) -> None:
        """End the body at `end` with an argument that is not whole."""
        self.end, self.cut = end, True

    def arguments(self, tool: Tool | None) -> Json:
        if self.json is not None:
            return self.json
        return declared.type_arguments(self.raw if self.verbatim else declared.unescaped(self.raw), tool)


def read_body(reader: Reader, position: int, tags: Table, tool: Tool | None, *, framed: bool = False) -> Body:
    """Read up to the end of the call, or up to the first text that the grammar does not allow.

    `tags` has the patterns `call`, which finds the next call of the same grammar, `call_end`, `wrapper_end`, `parameter`
    with the group `key` and maybe `hint`, `parameter_end`, and `other_end`, a closer that counts if the proper one is
    missing. With `cdata`, values may be in `<![CDATA[…]]>`.
    """
    body = Body(position, framed)
    while _read_item(reader, reader.space(body.end), tags, tool, body):
        if body.cut:
            return body
    at = reader.space(body.end)
    if closer := reader.match(tags.call_end, at):
        body.end, body.closed = closer.end(), True
    elif reader.match(_CUT_CLOSER, at):
        body.end = reader.size
    elif body.raw and reader.match(_CUT_OPENER, at):
        body.cut_off(reader.size)
    else:
        body.cut = bool(body.raw) and reader.match(_UNREAD, at) is not None  # an argument that would be lost
    return body


def _read_item(reader: Reader, at: int, tags: Table, tool: Tool | None, body: Body) -> bool:
    if opener := reader.match(tags.parameter, at):
        _read_parameter(reader, opener, tags, body)
        return True
    if body.empty and reader.char(at) == "{":
        return read_json(reader, at, tags.call_end, tags.call, body)
    return body.json is None and tool is not None and read_child(reader, at, tool, body)


def _read_parameter(reader: Reader, opener: Match, tags: Table, body: Body) -> None:
    start = opener.end()
    key = opener["key"].strip()
    hint = _HINTS.get((opener.groupdict().get("hint") or "").lower())
    if "cdata" in tags.data and (section := reader.match(_CDATA, start)):
        end = reader.next(section.end(), _CDATA_END)
        if end is None:
            body.cut_off(reader.size)
            return
        body.add(key, reader.value(section.end(), end.start()))
        body.verbatim = True
        body.end = reader.after(tags.parameter_end, end.end())
        return
    end = reader.next(start, tags.parameter_end, tags.parameter)
    if end is not None and end.re == tags.parameter_end:
        body.add(key, _value(reader, start, end.start(), framed=body.framed), hint)
        body.end = end.end()
        return
    # A value without its closer ends at the next tag, unless the closer may still arrive.
    coming = end is None and not reader.over
    stops = (tags.other_end, tags.parameter, tags.call_end, tags.wrapper_end, tags.call)
    stop = None if coming else reader.next(start, *stops)
    if stop is None:
        body.cut_off(reader.size)
        return
    body.add(key, unframed(reader, start, stop.start()), hint)
    body.end = stop.end() if stop.re == tags.other_end else stop.start()


def read_json(reader: Reader, at: int, call_end: Pattern, call: Pattern, body: Body) -> bool:
    """Read a JSON object in place of parameters; a damaged one reaches to the end of its call."""
    decoded = reader.json(at)
    if decoded.failed:
        stop = reader.next(at, call_end, call)
        if stop is None or stop.re != call_end:
            return False
        repaired = reader.repair(at, stop.start())
        if repaired is None:
            return False
        decoded = repaired
    body.json, body.end = decoded.value, decoded.end
    return isinstance(decoded.value, dict)


def read_child(reader: Reader, at: int, tool: Tool, body: Body) -> bool:
    """Read a parameter in a tag with the parameter's name: `<command>ls</command>`."""
    opener = reader.match(_CHILD, at)
    if opener is None or opener[1] not in declared.properties_of(tool.schema):
        return False
    start = opener.end()
    closer = reader.next(start, _closer(opener[1]))
    if closer is None:
        body.cut_off(reader.size)
        return True
    body.add(opener[1], _value(reader, start, closer.start(), framed=body.framed))
    body.end = closer.end()
    return True


def _value(reader: Reader, start: int, end: int, *, framed: bool) -> str:
    """Return the value between two tags, if it is `framed` without a line end on either side."""
    if not framed:
        return reader.value(start, end)
    begin = _FRAME_START.match(reader.shadow, start, end)
    start = begin.end() if begin is not None else start
    # The line end after the value equals the one before it: a lone CR can be data.
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


_WRAPPERS = {"tool_call": "qwen3_coder_xml", "seed:tool_call": "seed_oss_xml"}


@dataclass(slots=True)
class _QwenCalls(Calls):
    """The functions of one wrapper. `compact`: nothing is between the tags, as MiMo writes them."""

    compact: bool = False


def read_qwen(reader: Reader, position: int) -> Reading:
    wrapper = reader.match(_QWEN.wrapper, position)
    at = reader.space(wrapper.end()) if wrapper is not None else position
    dialect = _WRAPPERS.get(wrapper["tag"] if wrapper is not None else "", "qwen3_coder_xml")
    run = _QwenCalls(at, compact=wrapper is not None and at == wrapper.end() and dialect != "seed_oss_xml")
    while opener := reader.match(_QWEN.call, at) or (
        reader.match(_QWEN.bare_name, at) if wrapper is not None and not run.calls else None
    ):
        if not _read_function(reader, opener, run, wrapped=wrapper is not None):
            break
        at = reader.space(run.end)
    if not run.calls:
        return None
    closers = (_QWEN.wrapper_end, *((_QWEN.cut_closer,) if wrapper is not None else ()))
    end = reader.past(run.end, *closers)
    return reader.block("mimo_xml" if run.compact else dialect, position, end, run.calls, "generic")


def _read_function(reader: Reader, opener: Match, run: _QwenCalls, *, wrapped: bool) -> bool:
    """Read one call. Return False if none can follow."""
    if reader.ended(opener.end()):  # the name may go on
        return False
    groups = opener.groupdict()
    written = groups["name"] or groups.get("text") or ""
    tool = reader.tool(written)
    canonical = opener[0].startswith("<function=") and opener[0].endswith(">") and not groups.get("quote")
    run.compact &= canonical and reader.char(opener.end()) == "<"
    if not wrapped and reader.char(reader.space(opener.end())) == "{":
        return False  # <function=NAME>{…}</function> belongs to Llama 3.1 and Functionary
    # An unknown tool counts only if its call is closed; a stretch that was read in vain is not read again.
    if tool is None and (reader.next(opener.end(), _QWEN.call_end) is None or opener.start() < reader.dead[_QWEN]):
        return False
    body = read_body(reader, opener.end(), _QWEN, tool, framed=not run.compact)
    ended = body.closed or (wrapped and reader.match(_QWEN.wrapper_end, reader.space(body.end)) is not None)
    if tool is None and (body.cut or not ended or (body.empty and not wrapped)):
        reader.dead[_QWEN] = body.end
        return False
    counts = not body.empty or body.cut or (ended and (wrapped or canonical))
    return counts and run.add(reader.call(written, body.arguments(tool), complete=not body.cut), body.end)


_CHANNELS = ("analysis", "commentary", "final")


def read_beam(reader: Reader, position: int) -> Reading:
    run = Calls(position)
    header = reader.match(_BEAM.header, position)
    while header is not None:
        name = header["name"]
        for channel in _CHANNELS:  # `lookup<|channel|>analysis` without the token
            if name.removesuffix(channel) in reader.tools:
                name = name.removesuffix(channel)
        tool = reader.tool(name)
        body = read_body(reader, header.end(), _BEAM, tool, framed=True)
        complete = not body.cut and (body.closed or not body.empty)
        run.add(reader.call(name, body.arguments(tool), complete=complete), body.end)
        further = body.closed and reader.value(run.end - len("<|end|>"), run.end) == "<|end|>"
        header = reader.follow(_BEAM.header, run.end) if further else None
    if run.calls:
        return reader.block("beam_rfl", position, run.end, run.calls)
    if reader.match(_BEAM.lost, position) is None:
        return None
    body = read_body(
        reader, position, _BEAM, None, framed=True
    )  # without the header nothing shows which tool is called
    return reader.block("beam_rfl", position, body.end, (), "generic") if body.raw else None


def read_cwm(reader: Reader, position: int) -> Reading:
    opener = reader.match(_CWM.opener, position)
    if opener is None:
        return None
    stop = reader.next(opener.end(), _CWM.closer, _CWM.next)
    end = reader.stop(stop)
    closed = stop is not None and stop.re == _CWM.closer
    head = reader.match(_CWM.name, opener.end())
    if head is None or head.end() > end:
        return None
    if reader.ended(head.end()) and not reader.over:
        return None  # the name may go on
    name, start = head["name"], head.end()
    if reader.resolve(name) not in reader.tools and reader.resolve(opener["label"]) in reader.tools:
        name, start = opener["label"], opener.end()
    tool = reader.tool(name)
    if tool is None and not closed:
        return None
    text = reader.value(start, end).strip()
    arguments: Json = {"command": text} if text else {}
    if text.startswith("{"):
        arguments = jsontext.whole_value(text)
    elif text and tool is not None and tool.schema is not None:
        arguments = declared.bind(tool, text)
    # A command that is cut off looks like one whose closer is missing; JSON does not.
    call = reader.call(name, arguments, complete=isinstance(arguments, dict))
    return reader.block("cwm_tool_block", position, stop.end() if stop and closed else end, (call,), "generic")


_HTML = frozenset(_XML.data["html"])


def read_tool_named(reader: Reader, position: int) -> Reading:
    if function := reader.match(_XML.function, position):
        return _read_call(reader, function, function["name"], _XML.function_end)
    if named := reader.match(_XML.wrapped, position):
        run = Calls(named.end())
        here: Match | None = named
        while here is not None:
            tool = reader.tool(here["name"])
            decoded = reader.json(here.end())
            if decoded.failed or not declared.fits(tool, decoded.value):
                break
            end = reader.after(_XML.wrapped_end, decoded.end)
            run.add(reader.call(here["name"], decoded.value, complete=True), end)
            gap = reader.match(_XML.wrapped_next, end) if end > decoded.end else None
            here = reader.match(_XML.wrapped, gap.end()) if gap is not None else None
        if not run.calls:
            return None
        end = reader.after(_XML.wrapper_end, run.end) if named["wrapper"] else run.end
        return reader.block("tool_named_xml", named.start(), end, run.calls, "generic")
    tag = reader.match(_XML.tag, position)
    if tag is None or tag["name"] not in reader.tools:
        return None
    if tag["empty"]:  # `<refresh/>`: a tool without required parameters, as the whole message
        tool = reader.tools[tag["name"]]
        if declared.required(tool) or not reader.is_whole(tag.start(), tag.end()):
            return None
        call = reader.call(tool.name, {}, complete=True)
        return reader.block("tool_named_xml", tag.start(), tag.end(), (call,), "weak")
    return _read_call(reader, tag, tag["name"], _closer(tag["name"]))


def _read_call(reader: Reader, opener: Match, name: str, closer: Pattern) -> Reading:
    tool = reader.tool(name)
    if tool is None:
        return None
    body = _read_parameters(reader, opener.end(), tool, closer)
    if body is None:
        return None
    if body.empty and (
        not body.closed
        or declared.required(tool)
        or (tool.name in _HTML and not reader.is_whole(opener.start(), body.end))
    ):
        return None
    arguments = body.arguments(tool)
    whole = not body.cut and (body.closed or body.keys.issuperset(declared.required(tool)))
    call = reader.call(name, arguments, complete=whole)
    fits = declared.fits(tool, arguments)
    return reader.block("tool_named_xml", opener.start(), body.end, (call,), "generic") if fits else None


def _read_parameters(reader: Reader, start: int, tool: Tool, closer: Pattern) -> Body | None:
    """Read the parameters up to the closer of the call; None if anything else is between them."""
    body = Body(start)
    properties = declared.properties_of(tool.schema)
    while not body.cut:
        at = reader.space(body.end)
        if ending := reader.match(closer, at):
            body.end, body.closed = ending.end(), True
            return body
        child = reader.match(_XML.tag, at)
        if child is not None and (child["empty"] or (properties and child["name"] not in properties)):
            child = None
        if parameter := child or reader.match(_XML.parameter, at):
            own = _closer(parameter["name"] if parameter.re == _XML.tag else "parameter")
            stop = reader.next(parameter.end(), own, closer)
            if stop is None:
                body.keys.add(parameter["name"])
                body.cut_off(reader.size)
            elif stop.re == own:
                body.add(parameter["name"], _without_frame(reader.value(parameter.end(), stop.start())))
                body.end = stop.end()
            else:  # its closer is missing
                body.add(parameter["name"], reader.value(parameter.end(), stop.start()).strip())
                body.end = stop.start()
        elif reader.char(at) == "{" and body.empty:
            if not read_json(reader, at, closer, closer, body):
                return None
        elif body.empty:
            return None
        elif reader.ended(at):
            body.end = at
            return body
        elif reader.over and reader.match(_XML.cut_tag, at):
            body.cut_off(reader.size)
        else:
            return None
    return body


def _without_frame(value: str) -> str:
    """Return a value without the line ends around it; the last one may be indented."""
    begin = _FRAME_START.match(value)
    if begin is None:
        return value
    value = value[begin.end() :]
    return value[: -len(begin[0])] if value.endswith(begin[0]) else value.rstrip(" \t").removesuffix(begin[0])


@lru_cache(maxsize=1024)
def _closer(name: str) -> Pattern:
    return re.compile(rf"<\s{{0,3}}/\s{{0,3}}{re.escape(name)}\s{{0,3}}>")


# -- keys and values in tags of their own ---------------------------------------------------------------------------------

_GAP = r"(?:\s|\\[nrt]){0,16}"
_NAME = re.compile(rf"{_GAP}(?P<name>[\w.:/-]{{1,128}})")
_SPACE = re.compile(r"(?:\s|\\[nrt])*")
_CUT_TAG = re.compile(r"<[^<>]{0,64}\Z")


_GLM_TAGS, _HY_TAGS, _IFM_TAGS, _SOLAR_TAGS = (
    family.filled("tags", family.data["tags"]) for family in (_GLM, _HY, _IFM, _SOLAR)
)
"""The patterns of the families; `tagged.toml` describes them."""


@dataclass(slots=True)
class _Run(Calls):
    """The calls of one wrapper. A separator (`separated`) or a line end (`lined`) follows the name of one."""

    separated: bool = False
    lined: bool = False


def _read_pair_call(reader: Reader, position: int, grammar: Table, run: _Run) -> bool:
    """Read the call whose name is at a position, right after its opening tag. Return False if none can follow."""
    name = reader.match(_NAME, position)
    if name is None:
        return "objects" in grammar.data and _read_object(reader, position, grammar, run)
    if reader.ended(name.end()):
        if reader.over and (reader.tool(name["name"]) is not None or "sure" in grammar.data):
            run.add(reader.call(name["name"], {}, complete=False), name.end())
        return False
    if reader.char(name.end()) == "(":
        # Python's syntax in place of the tags: of a declared tool, and closed.
        if reader.tool(name["name"]) is None or name.start() < reader.dead[_NAME]:
            return False
        read = python_calls.read_call(reader, name.start("name"), grammar.call_end)
        closer = reader.follow(grammar.call_end, read.end) if read is not None and read.closed else None
        if read is None or closer is None:
            reader.dead[_NAME] = read.end if read is not None else name.end()
            return False
        call = read.native(reader)
        return call.complete and reader.fits(call) and run.add(call, closer.end())
    if not reader.over and reader.match(_CUT_TAG, name.end()):
        return False
    written, end = _split(reader, name, grammar)
    separator = reader.match(grammar.separator, end)
    end = separator.end() if separator is not None else end
    tool = reader.tool(written)
    known = "sure" in grammar.data or tool is not None
    if not known and not _may_be_stranger(reader, position, end, grammar):
        return False
    body = _read_pairs(reader, end, grammar, tool)
    if not known and (body.cut or body.empty or not body.closed):
        reader.dead[grammar.head] = body.end
        return False
    if body.empty and not body.closed and not body.cut:
        return False
    run.separated |= separator is not None
    run.lined |= reader.char(end) in ("\n", "\r", "\\")
    return run.add(reader.call(written, body.arguments(tool), complete=not body.cut), body.end)


def _read_object(reader: Reader, position: int, grammar: Table, run: _Run) -> bool:
    """Read a call that is a JSON object, with the name inside. Return False if none can follow."""
    at = reader.space(position)
    decoded = reader.json(at) if reader.char(at) == "{" else None
    calls = calls_of(reader, decoded.value)[0] if decoded is not None else []
    if decoded is None or not calls:
        return False
    run.calls += calls
    run.end = reader.past(decoded.end, grammar.call_end)
    return run.end > decoded.end


def _read_run(reader: Reader, position: int, grammar: Table, *, wrapped: bool) -> _Run:
    """Read the calls at a position, and the closing tag of their wrapper."""
    run = _Run(position)
    while opener := reader.match(grammar.call, reader.after(_SPACE, run.end)):
        if not _read_pair_call(reader, opener.end(), grammar, run):
            break
    at = reader.after(_SPACE, run.end)
    if run.calls and (closer := reader.match(grammar.outer, at) or (wrapped and reader.match(grammar.cut_closer, at))):
        run.end = closer.end()
    return run


def _split(reader: Reader, name: Match, grammar: Table) -> tuple[str, int]:
    """Return the name and its end: a key may be glued to it, its opening tag lost."""
    written = name["name"]
    if reader.match(grammar.key_end, name.end()) is None or written in reader.tools:
        return written, name.end()
    begun = (tool for tool in reader.tools.values() if written.startswith(tool.name))
    fitting = [tool.name for tool in begun if written[len(tool.name) :] in properties_of(tool.schema)]
    return (fitting[0], name.start("name") + len(fitting[0])) if len(fitting) == 1 else (written, name.end())


def _may_be_stranger(reader: Reader, position: int, end: int, grammar: Table) -> bool:
    """Return True if a closed call of an unknown tool may follow. A stretch without one is not read again."""
    if position < reader.dead[grammar.head]:
        return False
    at = reader.after(_SPACE, end)
    head = reader.match(grammar.head, at)
    if (head is None or not head["opened"]) and reader.char(at) != "{":
        return False
    return reader.next(end, grammar.call_end) is not None


def _read_pairs(reader: Reader, position: int, grammar: Table, tool: Tool | None) -> Body:
    """Read the arguments and the closing tag, or as much of them as there is."""
    body = Body(position)
    while _read_pair(reader, grammar, body, tool):
        if body.cut:
            return body
    at = _skip(reader, grammar, body)
    while closer := reader.match(grammar.call_end, at):  # in the wild closers without end
        at = reader.space(closer.end()) if body.closed else closer.end()
        body.end, body.closed = closer.end(), True
    if not body.closed and reader.match(grammar.cut_closer, at):
        body.end, body.closed = reader.size, True
    elif not body.closed and reader.match(_CUT_TAG, at):
        body.cut_off(reader.size)
    return body


def _skip(reader: Reader, grammar: Table, body: Body) -> int:
    """Return the offset after separators and stray closers."""
    while stray := reader.match(grammar.stray, at := reader.after(_SPACE, body.end)):
        body.end = stray.end()
    return at


def _read_pair(reader: Reader, grammar: Table, body: Body, tool: Tool | None) -> bool:
    at = _skip(reader, grammar, body)
    head = reader.match(grammar.head, at)
    if head is not None and (head["opened"] or (head["key"] and head["ended"])):
        _read_value(reader, head, grammar, body)
        return True
    if reader.match(grammar.key, at):
        _cut_short(reader, reader.next(at, grammar.call_end, grammar.call, grammar.outer), grammar, body)
        return True
    if body.empty and reader.char(at) == "{":
        return read_json(reader, at, grammar.call_end, grammar.call, body)
    return body.json is None and tool is not None and read_child(reader, at, tool, body)


def _read_value(reader: Reader, head: Match, grammar: Table, body: Body) -> None:
    start = head.end()
    end = reader.next(start, grammar.value_end, grammar.key)
    if end is not None and end.re == grammar.value_end and _is_own_closer(reader, head, end, grammar):
        _add(body, head, reader.value(start, end.start()), grammar)
        body.end = end.end()
        return
    # A value without its closer ends at the next tag, unless the closer may still arrive.
    stop = reader.next(start, grammar.key, grammar.call_end, grammar.outer, grammar.call)
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
    stop = reader.next(head.end(), grammar.value_end, grammar.call_end, grammar.call)
    return stop is not None and stop.start() == end.start()


def _add(body: Body, head: Match, text: str, grammar: Table) -> None:
    key = head["key"].strip("\"'")
    if not key and not text.strip():  # tags around nothing
        return
    body.cut |= not key
    if key in body.keys and "first_wins" in grammar.data:
        return
    kind = head.groupdict().get("type")
    body.add(key, text, None if kind is None else "text" if kind == "string" else "json")


_NAME_LIMIT = 160
_SHORTEST_GLUED = 4


def read_glm(reader: Reader, position: int) -> Reading:
    opener = reader.match(_GLM.opener, position)
    if opener is None:
        # Arguments whose `<tool_call>` was lost, after the name of a declared tool, which may be glued to prose.
        if reader.match(_GLM_TAGS.key, position) is None or position < reader.dead["glm45"]:
            return None
        floor = max(reader.floor, position - _NAME_LIMIT)
        before = _GLM.name_before.search(reader.shadow[floor:position])
        tool = _last_named(reader, before["name"]) if before is not None else None
        if before is None or tool is None:
            return None
        body = _read_pairs(reader, position, _GLM_TAGS, tool)
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
    _read_pair_call(reader, again.end() if again is not None and doubled else opener.end(), _GLM_TAGS, run)
    if not run.calls:
        return None
    dialect = "iquest_q1" if opener["tag"] == "iquest_tool_call" else "glm45" if run.lined else "glm47"
    return reader.block(dialect, position, run.end, run.calls, "generic")


def _last_named(reader: Reader, written: str) -> Tool | None:
    """Return the declared tool whose name ends a text."""
    if written in reader.tools:
        return reader.tools[written]
    name = max((name for name in reader.tools if written.endswith(name)), key=len, default="")
    inside_word = written[: len(written) - len(name)][-1:].isalnum()
    return None if not name or (inside_word and len(name) < _SHORTEST_GLUED) else reader.tools[name]


def read_hy(reader: Reader, position: int) -> Reading:
    wrapper = reader.match(_HY.wrapper, position)
    run = _read_run(reader, wrapper.end() if wrapper is not None else position, _HY_TAGS, wrapped=wrapper is not None)
    # Without the wrapper, the separator and a suffix the bytes are GLM's.
    if not run.calls or not (wrapper is not None or run.separated or reader.match(_HY.own, position)):
        return None
    return reader.block("hy_v3" if run.separated else "hy_v4", position, run.end, run.calls, "generic")


def read_ifm(reader: Reader, position: int) -> Reading:
    wrapper = reader.match(_IFM.wrapper, position)
    at = wrapper.end() if wrapper is not None else position
    run = _read_run(reader, at, _IFM_TAGS, wrapped=wrapper is not None)
    end = run.end if run.calls else reader.past(reader.past(at, _IFM_TAGS.call), _IFM_TAGS.outer)
    return reader.block("k2_horizon_ifm", position, end, run.calls) if end > position else None


def read_solar(reader: Reader, position: int) -> Reading:
    run = _read_run(reader, position, _SOLAR_TAGS, wrapped=False)
    return reader.block(
        "solar_open2", position, run.end if run.calls else reader.after(_SOLAR.opener, position), run.calls
    )
