"""The grammar shared by dialects that tag the key and the value of every argument apart.

    <tool_call>lookup
    <arg_key>city</arg_key>
    <arg_value>Graz</arg_value>
    </tool_call>

There is no escaping: a value ends at the first closing tag of values. In the wild the separators come as the two
characters `\\n`, tags of keys come twice or not at all or as another opener, closers are stray, doubled or missing. What
is read of such an argument is what stands between the tags that are there; one that lacks its value makes the call
incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from wirelint.dialects import pythoncalls
from wirelint.dialects.coercion import properties_of
from wirelint.dialects.reader import Match, Pattern, Reader
from wirelint.dialects.tagged import Body, read_child, read_json, unframed
from wirelint.dialects.values import NativeCall
from wirelint.model import Tool

GAP = r"(?:\s|\\[nrt]){0,16}"
_S = r"\s{0,3}"
_NAME = re.compile(rf"(?P<before>{GAP})(?P<name>[\w.:/-]{{1,128}})")
_KEY = r"(?:[^\s<>\\](?:[^<>\n\\]{0,126}?[^\s<>\\])??)?"
_SPACE = re.compile(r"(?:\s|\\[nrt])*")
_LOOSE = re.compile(r"<\s|\s>|/\s|\\[nrt]")
_CUT_TAG = re.compile(r"<[^<>]{0,64}\Z")
_CUT_CLOSER = re.compile(r"<\s{0,3}/[^<>]{0,64}\Z")


def tag(name: str, *, closing: bool = False) -> str:
    """A regular expression (source) for a tag. Blanks inside it are let pass."""
    return rf"<{_S}{'/' + _S if closing else ''}{name}{_S}>"


@dataclass(frozen=True, slots=True)
class Pairs:
    """`head` is all of an argument up to its value, with the groups `opened`, `key`, `ended`, `value` and maybe `type`.

    `call` and `call_end` are the tags of a call, `outer` is what else ends it; `separator` may stand after the name.
    `first_wins`: of an argument that is repeated the first counts. `sure`: the tags are special tokens, so that a call of
    an unknown tool counts without an argument and without an end too.
    """

    key: Pattern
    key_end: Pattern
    value_end: Pattern
    head: Pattern
    stray: Pattern
    call: Pattern
    call_end: Pattern
    outer: Pattern
    separator: Pattern
    cut_closer: Pattern
    first_wins: bool
    sure: bool


def pairs(
    *,
    key: str,
    value: str,
    value_end: str,
    call: str,
    call_end: str,
    key_end: str = "(?!)",
    outer: str = "(?!)",
    instead: str = "(?!)",
    strays: str = "(?!)",
    type_: str = "(?!)",
    separator: str = "(?!)",
    cut_closer: Pattern = _CUT_CLOSER,
    first_wins: bool = False,
    sure: bool = False,
) -> Pairs:
    """The grammar of these tags (sources of regular expressions). `instead`: a tag seen where `key` belongs. `strays`:
    closers of other notations that are seen."""
    head = (
        rf"(?P<opened>(?:(?:{key}|{instead}){GAP}){{0,4}})(?P<key>{_KEY}){GAP}(?=(?:{key_end})|(?:{value}))"
        rf"(?P<ended>(?:(?:{key_end}){GAP}){{0,4}})(?:(?:{type_}){GAP})?(?P<value>{value})?"
    )
    return Pairs(
        key=re.compile(key),
        key_end=re.compile(key_end),
        value_end=re.compile(value_end),
        head=re.compile(head),
        stray=re.compile(rf"(?:{key_end}|{value_end}|{strays})"),
        call=re.compile(call),
        call_end=re.compile(call_end),
        outer=re.compile(outer),
        separator=re.compile(rf"{GAP}(?:{separator})"),
        cut_closer=cut_closer,
        first_wins=first_wins,
        sure=sure,
    )


class Call(NamedTuple):
    """A call, what stood in it, and whether its name was followed by a separator or by a line end."""

    call: NativeCall
    body: Body
    separated: bool
    lined: bool


def read_call(reader: Reader, position: int, grammar: Pairs) -> Call | None:
    """The call whose name stands at a position, right after its opening tag."""
    name = reader.match(_NAME, position)
    if name is None:
        return None
    if reader.ended(name.end()):
        return _cut_at_name(reader, name, grammar)
    if reader.char(name.end()) == "(":
        return _read_python(reader, name, grammar)
    if not reader.over and reader.match(_CUT_TAG, name.end()):
        return None
    written, end = _split(reader, name, grammar)
    separator = reader.match(grammar.separator, end)
    end = separator.end() if separator is not None else end
    tool = reader.tool(written)
    known = grammar.sure or tool is not None
    if not known and not _may_be_stranger(reader, position, end, grammar):
        return None
    body = read_body(reader, end, grammar, tool)
    body.malformed |= bool(name["before"])
    if not known and (body.cut or body.empty or not body.closed):
        reader.dead[grammar.head] = body.end
        return None
    if body.empty and not body.closed and not body.cut:
        return None
    call = reader.call(written, body.arguments(tool), complete=not body.cut)
    return Call(call, body, separator is not None, reader.char(end) in ("\n", "\r", "\\"))


@dataclass(slots=True)
class Run:
    """The calls of one wrapper, as far as they have been read."""

    end: int
    calls: list[NativeCall] = field(default_factory=list)
    separated: bool = False
    malformed: bool = False


def read_run(reader: Reader, position: int, grammar: Pairs, *, wrapped: bool) -> Run:
    """The calls at a position, and the closing tag of their wrapper."""
    run = Run(position)
    at = _skip_space(reader, position)
    while opener := reader.match(grammar.call, at):
        read = read_call(reader, opener.end(), grammar)
        if read is None:
            break
        run.calls.append(read.call)
        run.end = read.body.end
        run.separated |= read.separated
        run.malformed |= read.body.malformed or _LOOSE.search(opener[0]) is not None
        at = _skip_space(reader, run.end)
        if not read.call.complete:
            break
    if not run.calls:
        return run
    if closer := reader.match(grammar.outer, at):
        run.end = closer.end()
        run.malformed |= not wrapped
    elif wrapped:
        run.malformed = True
        if reader.match(grammar.cut_closer, at):
            run.end = reader.size
    return run


def _cut_at_name(reader: Reader, name: Match, grammar: Pairs) -> Call | None:
    if not reader.over or (reader.tool(name["name"]) is None and not grammar.sure):
        return None
    body = Body(name.end(), cut=True, malformed=True)
    return Call(reader.call(name["name"], {}, complete=False), body, separated=False, lined=False)


def _read_python(reader: Reader, name: Match, grammar: Pairs) -> Call | None:
    """A call in Python's syntax in place of the tags: of a declared tool, and closed."""
    if reader.tool(name["name"]) is None or name.start() < reader.dead.get(_NAME, 0):
        return None
    read = pythoncalls.read_call(reader, name.start("name"), grammar.call_end)
    closer = reader.match(grammar.call_end, reader.space(read.end)) if read is not None and read.closed else None
    if read is None or closer is None:
        reader.dead[_NAME] = read.end if read is not None else name.end()
        return None
    call = read.native(reader)
    if not (call.complete and pythoncalls.fits(reader, call)):
        return None
    return Call(call, Body(closer.end(), closed=True, malformed=True), separated=False, lined=False)


def _split(reader: Reader, name: Match, grammar: Pairs) -> tuple[str, int]:
    """The name and where it ends: a key may be glued to it, its opening tag lost."""
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


def _may_be_stranger(reader: Reader, position: int, end: int, grammar: Pairs) -> bool:
    """Whether a call of an unknown tool stands here: only with an argument, and closed. Not read in vain twice."""
    if position < reader.dead.get(grammar.head, 0):
        return False
    at = _skip_space(reader, end)
    head = reader.match(grammar.head, at)
    if (head is None or not head["opened"]) and reader.char(at) != "{":
        return False
    return reader.next(grammar.call_end, end) is not None


def read_body(reader: Reader, position: int, grammar: Pairs, tool: Tool | None) -> Body:
    """The arguments and the closing tag, or as much of them as there is."""
    body = Body(position)
    while _read_item(reader, grammar, body, tool):
        if body.cut:
            return body
    at = _skip(reader, grammar, body)
    if closer := reader.match(grammar.call_end, at):
        body.end, body.closed = closer.end(), True
        body.malformed |= _LOOSE.search(closer[0]) is not None
        _absorb(reader, grammar, body)
    elif reader.match(grammar.cut_closer, at):
        body.end, body.closed, body.malformed = reader.size, True, True
    elif reader.match(_CUT_TAG, at):
        body.end, body.cut, body.malformed = reader.size, True, True
    else:
        body.malformed = True
    return body


def _absorb(reader: Reader, grammar: Pairs, body: Body) -> None:
    """Closers without end after the one that closed the call."""
    at = body.end
    while extra := reader.match(grammar.call_end, at):
        body.end, body.malformed = extra.end(), True
        at = reader.space(body.end)


def _skip_space(reader: Reader, at: int) -> int:
    space = reader.match(_SPACE, at)
    reader.work += space.end() - at if space is not None else 0
    return space.end() if space is not None else at


def _skip(reader: Reader, grammar: Pairs, body: Body) -> int:
    """Past separators, and closers that close nothing."""
    at = _skip_space(reader, body.end)
    body.malformed |= "\\" in reader.view.text[body.end : at]
    while stray := reader.match(grammar.stray, at):
        body.end, body.malformed = stray.end(), True
        at = _skip_space(reader, body.end)
    return at


def _read_item(reader: Reader, grammar: Pairs, body: Body, tool: Tool | None) -> bool:
    """One argument, or what stands in its place."""
    at = _skip(reader, grammar, body)
    head = reader.match(grammar.head, at)
    if head is not None and (head["opened"] or (head["key"] and head["ended"])):
        _read_value(reader, head, grammar, body)
        return True
    if reader.match(grammar.key, at):
        stop = reader.first((grammar.call_end, grammar.call, grammar.outer), at)
        _cut_short(reader, stop, grammar, body)
        return True
    if body.empty and reader.char(at) == "{":
        return read_json(reader, at, grammar.call_end, grammar.call, body)
    return body.json is None and tool is not None and read_child(reader, at, tool, body, framing="none")


def _read_value(reader: Reader, head: Match, grammar: Pairs, body: Body) -> None:
    start = head.end()
    body.malformed |= not _canonical(head, grammar)
    end = reader.first((grammar.value_end, grammar.key), start)
    if end is not None and end.re is grammar.value_end and _reaches(reader, head, end, grammar):
        body.malformed |= _LOOSE.search(end[0]) is not None
        _add(body, head, reader.value(start, end.start()), grammar)
        body.end = end.end()
        return
    # Without a closer of its own a value ends where anything else does, unless the closer is still to come.
    stop = reader.first((grammar.key, grammar.call_end, grammar.outer, grammar.call), start)
    body.malformed = True
    if stop is None or head["value"] is None:
        _cut_short(reader, stop, grammar, body)
        return
    _add(body, head, unframed(reader, start, stop.start()), grammar)
    body.end = stop.start()


def _cut_short(reader: Reader, stop: Match | None, grammar: Pairs, body: Body) -> None:
    """An argument that is not whole, up to the end of its call."""
    body.cut = body.malformed = True
    if stop is None:
        body.end = reader.size
    else:
        body.end = stop.end() if stop.re is grammar.call_end else stop.start()


def _reaches(reader: Reader, head: Match, end: Match, grammar: Pairs) -> bool:
    """Whether a closer is that of this value. One without an opening tag must not reach into another call."""
    if head["value"] is not None:
        return True
    stop = reader.first((grammar.value_end, grammar.call_end, grammar.call), head.end())
    return stop is not None and stop.start() == end.start()


def _canonical(head: Match, grammar: Pairs) -> bool:
    ended = head["ended"].strip()
    return (
        grammar.key.fullmatch(head["opened"].strip()) is not None
        and (grammar.key_end.fullmatch(ended) is not None or (not ended and grammar.key_end.pattern == "(?!)"))
        and head["value"] is not None
        and _LOOSE.search(head[0]) is None
    )


def _add(body: Body, head: Match, text: str, grammar: Pairs) -> None:
    key = head["key"].strip("\"'")
    body.malformed |= key != head["key"]
    if not key and not text.strip():  # tags around nothing
        body.malformed = True
        return
    if not key:
        body.cut = True
    if key in body.keys and grammar.first_wins:
        body.malformed = True
        return
    groups: Mapping[str, str | None] = head.groupdict()
    kind = groups.get("type")
    body.add(key, text, None if kind is None else "text" if kind == "string" else "json")
