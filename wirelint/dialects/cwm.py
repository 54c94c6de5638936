"""The tool blocks of Meta's Code World Model.

    <tool: function>
    terminal find . -name '*.py'
    </tool>

The first word inside names the tool, whatever the label says; what follows is its arguments in JSON, or else the text
of its only parameter (`command`, when nothing is declared). No ids. In the wild: no closer, and the tool's name as
the label, with nothing but the text inside.
"""

from __future__ import annotations

import re

from wirelint.dialects import weak
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import Run
from wirelint.dialects.reader import Reader
from wirelint.model import Json, Tool

_DIALECT = "cwm_tool_block"
_OPENER = re.compile(r"<tool:[ \t]{0,4}(?P<label>[\w.-]{1,64})[ \t]{0,4}>[ \t]{0,4}\n?")
_NAME = re.compile(r"\s{0,8}(?P<name>[\w.:/-]{1,128})(?P<gap>[ \t]{0,8}\n?)")
_CLOSER = re.compile(r"</tool>")
_NEXT = re.compile(r"<tool:")


def _read(reader: Reader, position: int) -> Reading:
    opener = reader.match(_OPENER, position)
    if opener is None:
        return None
    stop = reader.first((_CLOSER, _NEXT), opener.end())
    end = stop.start() if stop is not None else reader.size
    closed = stop is not None and stop.re is _CLOSER
    head = reader.match(_NAME, opener.end())
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
    arguments = _arguments(tool, reader.value(start, end).strip())
    # Nothing tells a command that is cut off from one whose closer is missing; JSON does.
    call = reader.call(name, arguments, complete=arguments is not None)
    if reader.stand_ins((call,)):
        return Skip(end)
    after = stop.end() if stop is not None and closed else end
    return Found(_DIALECT, position, after, (call,), "generic", odd or not closed or arguments is None)


def _arguments(tool: Tool | None, text: str) -> Json:
    if not text:
        return {}
    if text.startswith("{"):
        return weak.read_object(text)
    return weak.bound(tool, text) if tool is not None and tool.schema is not None else {"command": text}


FAMILY = Family(
    "cwm",
    openers=(("<tool:", Run(r" \t", 0, 4), Run(r"\w.-", 1, 64), Run(r" \t", 0, 4), ">"),),
    read=_read,
    speakers={_DIALECT: frozenset({"cwm"})},
)
