"""GLM's tags, a key and a value for every argument.

Lineage: Zhipu's GLM 4.5 and 4.6, with line ends between the tags → GLM 4.7 and 5, without any → iQuest-Q1 with a tag of its
own. Ling 3, HyperCLOVA X SEED Think, Laguna and Spark 2.5 write as GLM 4.5 does. Hunyuan's newer models took the tags over
in a wrapper (another family); GLM 4 and older wrote a line and JSON (yet another).

    <tool_call>lookup
    <arg_key>city</arg_key>
    <arg_value>Graz</arg_value>
    </tool_call>

    <tool_call>lookup<arg_key>city</arg_key><arg_value>Graz</arg_value></tool_call>

Values are text as it stands, typed by the declared schema. No ids, one call per tag. In the wild: line ends as the two
characters `\\n`; the opener of a key missing, doubled, or `<tool_call>` in its place; closers stray, doubled or without
end; the opening tag taken away, so that a name is glued to the prose before it; JSON in place of the tags.
"""

from __future__ import annotations

import re

from wirelint.dialects.coercion import properties_of
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import Opener, Run, maybe
from wirelint.dialects.pairs import GAP, pairs, read_body, read_call, tag
from wirelint.dialects.reader import Reader
from wirelint.model import Tool

_LINED, _COMPACT, _IQUEST = "glm45", "glm47", "iquest_q1"
_WORD = r"(?P<tag>[\w:.-]{0,16}?tool_?calls?)"
_OPENER = re.compile(tag(_WORD))
_CALL = r"<\s{0,3}[\w:.-]{0,16}?tool_?calls?\s{0,3}>"
_TAGS = pairs(
    key=tag("arg_key"),
    key_end=tag("arg_key", closing=True),
    value=tag("arg_value"),
    value_end=tag("arg_value", closing=True),
    call=_CALL,
    call_end=_CALL.replace("<", r"<\s{0,3}/", 1),
    instead=_CALL,
    strays=tag("(?:arg|args|function|invoke|parameter|parameters)", closing=True),
)
_NAME_BEFORE = re.compile(rf"(?P<name>[\w.:/-]{{1,128}}){GAP}\Z")
_NAME_LIMIT = 160
_SHORTEST_GLUED = 4


def _read(reader: Reader, position: int) -> Reading:
    opener = reader.match(_OPENER, position)
    if opener is None:
        return _read_headless(reader, position)
    again = reader.match(_OPENER, reader.space(opener.end()))
    doubled = again is not None and again[0] == opener[0]
    read = read_call(reader, again.end() if again is not None and doubled else opener.end(), _TAGS)
    if read is None:
        return None
    call, body, _, lined = read
    if reader.stand_ins((call,)):
        return Skip(body.end)
    dialect = _IQUEST if opener["tag"] == "iquest_tool_call" else _LINED if lined else _COMPACT
    canonical = opener[0] in ("<tool_call>", "<iquest_tool_call>")
    canonical &= reader.value(position, body.end).endswith(opener[0].replace("<", "</"))
    malformed = body.malformed or doubled or not canonical
    return Found(dialect, position, body.end, (call,), "generic", malformed)


def _read_headless(reader: Reader, position: int) -> Reading:
    """Arguments whose `<tool_call>` was lost, after the name of a declared tool, which may be glued to prose."""
    if reader.match(_TAGS.key, position) is None or position < reader.dead.get(_LINED, 0):
        return None
    floor = max(reader.floor, position - _NAME_LIMIT)
    before = _NAME_BEFORE.search(reader.shadow[floor:position])
    tool = _named_last(reader, before["name"]) if before is not None else None
    if before is None or tool is None:
        return None
    body = read_body(reader, position, _TAGS, tool)
    # The first key may be still to come.
    if not (body.keys <= properties_of(tool.schema).keys() and (body.keys or reader.open)):
        reader.dead[_LINED] = body.end
        return None
    start = floor + before.end("name") - len(tool.name)
    call = reader.call(tool.name, body.arguments(tool), complete=not body.cut)
    lined = before.end("name") < before.end()
    return Found(_LINED if lined else _COMPACT, start, body.end, (call,), "generic", malformed=True)


def _named_last(reader: Reader, written: str) -> Tool | None:
    """The declared tool whose name ends a text."""
    if written in reader.tools:
        return reader.tools[written]
    names = [name for name in reader.tools if written.endswith(name)]
    name = max(names, key=len, default="")
    inside_word = written[: len(written) - len(name)][-1:].isalnum()
    if not name or (inside_word and len(name) < _SHORTEST_GLUED):
        return None
    return reader.tools[name]


_GAP = Run(r"\s", 0, 3)
_KEY_OPENER: Opener = ("<", _GAP, "arg_key", _GAP, ">")

FAMILY = Family(
    "glm",
    rank=2,
    openers=(
        ("<", _GAP, "tool_call", _GAP, ">"),
        ("<", Run(r"\w:.-", 0, 16), "tool", maybe("_"), "call", maybe("s"), _GAP, ">"),
        _KEY_OPENER,
    ),
    read=_read,
    speakers={
        _LINED: frozenset({"glm", "ling", "hyperclova", "laguna", "spark"}),
        _COMPACT: frozenset({"glm"}),
        _IQUEST: frozenset({"iquest"}),
    },
    closers={"arg_(?:key|value)": _COMPACT, "iquest_tool_call": _IQUEST},
    lone=frozenset({"arg_value", "iquest_tool_call"}),
    after_name=((Run(r"\s", 0, 8), *_KEY_OPENER),),
)
