"""The function calls that Qwen-Agent prompts for, between flowers.

Lineage: Qwen 1.5 and 2 under Qwen-Agent (its `nous` template, for later models, is Hermes' notation).

    ✿FUNCTION✿: lookup
    ✿ARGS✿: {"city": "Graz"}
    ✿RESULT✿

Several calls are several pairs before the results. Types come from the JSON. No ids. `✿RESULT✿` is where the server stops,
so it is often missing; a model that is not stopped goes on to invent a result, and an answer after `✿RETURN✿`. In the wild:
a Chinese colon, no blank after it, arguments that are no object (code in a fence).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wirelint.dialects.arguments import read_arguments
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import Opener, Run
from wirelint.dialects.reader import Reader
from wirelint.dialects.values import NativeCall

_DIALECT = "qwen_agent_flower"
_OPENER: Opener = ("✿FUNCTION", Run("✿", 0, 1), Run(r" \t", 0, 2), Run(":：", 1, 1))
_FUNCTION = re.compile(
    r"✿FUNCTION(?P<flower>✿?)[ \t]{0,2}(?P<colon>[:：])[ \t]*(?P<name>[\w.:/-]{1,128})[ \t]*(?=\s|✿)"
)
_LAST_FUNCTION = re.compile(_FUNCTION.pattern.replace("(?=", r"(?=\Z|"))
_ARGUMENTS = re.compile(r"\s*✿(?P<word>ARGS|ARGUMENTS|PARAMETERS|PARAMS)✿?[ \t]{0,2}(?P<colon>[:：]?)[ \t]*")
_RESULT = re.compile(r"\s*✿RESULTS?✿?[ \t]{0,2}[:：]?")
_RETURN = re.compile(r"\s*✿RETURN✿?[ \t]{0,2}[:：]?")
_STOP = re.compile(r"✿(?:FUNCTION|RESULT|RETURN|ARGS)|<\|(?:im_end|endoftext)\|>")
_CUT = re.compile(r"✿[A-Z]{0,9}\Z")


@dataclass(slots=True)
class _Section:
    """What has been read of a run of calls."""

    end: int
    calls: list[NativeCall] = field(default_factory=list)
    malformed: bool = False


def _read(reader: Reader, position: int) -> Reading:
    section = _Section(position)
    at = position
    if at < reader.dead.get(_DIALECT, 0):
        return None
    while function := reader.match(_LAST_FUNCTION if reader.over else _FUNCTION, at):
        section.end = function.end()
        section.malformed |= not function["flower"] or function["colon"] != ":"
        _read_arguments(reader, function["name"], section)
        at = reader.space(section.end)
    # Undoing escapes breaks arguments that were encoded twice; the markers have nothing to escape.
    if not section.calls or (reader.view.decoded and not all(call.complete for call in section.calls)):
        return None
    known = any(call.complete or call.name in reader.tools for call in section.calls)
    if not known and not reader.ended(at):
        reader.dead[_DIALECT] = section.end
        return None
    if result := reader.match(_RESULT, section.end):
        section.end = result.end()
    else:
        section.malformed = True
        if reader.over and reader.match(_CUT, at):
            section.end = reader.size
    if reader.stand_ins(section.calls):
        return Skip(section.end)
    return Found(_DIALECT, position, section.end, tuple(section.calls), "sentinel", section.malformed)


def _read_arguments(reader: Reader, name: str, section: _Section) -> None:
    label = reader.match(_ARGUMENTS, section.end)
    if label is None:
        section.calls.append(reader.call(name, None, complete=False))
        section.malformed = True
        return
    section.malformed |= label["word"] != "ARGS" or label["colon"] != ":"
    arguments = read_arguments(reader, reader.space(label.end()), _STOP)
    section.end = arguments.end
    section.malformed |= not arguments.canonical
    section.calls.append(reader.call(name, arguments.value, complete=arguments.complete))


FAMILY = Family("qwen_agent", rank=1, openers=(_OPENER,), read=_read, speakers={_DIALECT: frozenset({"qwen"})})
