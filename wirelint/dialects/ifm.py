"""K2-Horizon's tags: a key, its type and a value for every argument, with a namespace of their own.

Lineage: IFM's K2 line (K2-V3, K2-Horizon); the pairs are those of GLM 4.5, with the type in a tag between them.

    <ifm|tool_calls>
    <ifm|tool_call>lookup
    <ifm|arg_key>city</ifm|arg_key>
    <ifm|arg_type>string</ifm|arg_type>
    <ifm|arg_value>Graz</ifm|arg_value>
    </ifm|tool_call>
    </ifm|tool_calls>

The type may be missing; `string` keeps the text as it stands, others are read by the declared schema or as JSON. A call
may hold a JSON object instead: `{"name": …, "arguments": …}`, or the arguments alone after the name. No ids.
"""

from __future__ import annotations

import re

from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.jsoncalls import calls_of
from wirelint.dialects.openers import Opener, maybe
from wirelint.dialects.openers import Run as Chars
from wirelint.dialects.pairs import Run, pairs, read_run, tag
from wirelint.dialects.reader import Reader

_DIALECT = "k2_horizon_ifm"
_NS = r"ifm\s?\|{1,2}\s?"
_WRAPPER = re.compile(tag(f"{_NS}tool_calls"))
_TAGS = pairs(
    key=tag(f"{_NS}arg_key"),
    key_end=tag(f"{_NS}arg_key", closing=True),
    value=tag(f"{_NS}arg_value"),
    value_end=tag(f"{_NS}arg_value", closing=True),
    call=tag(f"{_NS}tool_call"),
    call_end=tag(f"{_NS}tool_call", closing=True),
    outer=tag(f"{_NS}tool_calls", closing=True),
    type_=rf"{tag(f'{_NS}arg_type')}\s{{0,3}}(?P<type>\w{{0,32}})\s{{0,3}}{tag(f'{_NS}arg_type', closing=True)}",
    sure=True,
)


def _read(reader: Reader, position: int) -> Reading:
    wrapper = reader.match(_WRAPPER, position)
    at = wrapper.end() if wrapper is not None else position
    if wrapper is None and reader.match(_TAGS.call, position) is None:
        return None
    run = read_run(reader, at, _TAGS, wrapped=wrapper is not None)
    if not run.calls:
        run = _read_objects(reader, at)
    if reader.stand_ins(run.calls):
        return Skip(run.end)
    canonical = wrapper is not None and reader.value(position, wrapper.end()) == "<ifm|tool_calls>"
    malformed = run.malformed or not canonical or not run.calls
    return Found(_DIALECT, position, run.end, tuple(run.calls), "sentinel", malformed)


def _read_objects(reader: Reader, position: int) -> Run:
    """Calls that are JSON objects between the tags."""
    run = Run(position)
    at = reader.space(position)
    while opener := reader.match(_TAGS.call, at):
        run.end = opener.end()
        at = reader.space(opener.end())
        decoded = reader.json(at) if reader.char(at) == "{" else None
        calls, canonical = calls_of(reader, decoded.value) if decoded is not None else ([], False)
        if decoded is None or not calls:
            break
        run.calls += calls
        run.malformed |= not (canonical and decoded.healthy)
        run.end = decoded.end
        closer = reader.match(_TAGS.call_end, reader.space(run.end))
        if closer is None:
            run.malformed = True
            break
        run.end = closer.end()
        at = reader.space(run.end)
    if closer := reader.match(_TAGS.outer, reader.space(run.end)):
        run.end = closer.end()
    else:
        run.malformed = True
    return run


_OPENER: Opener = ("<ifm", Chars(r"\s", 0, 1), "|", Chars("|", 0, 1), Chars(r"\s", 0, 1), "tool_call", maybe("s"), ">")

FAMILY = Family(
    "ifm",
    rank=1,
    openers=(_OPENER,),
    read=_read,
    speakers={_DIALECT: frozenset({"k2-horizon"})},
)
