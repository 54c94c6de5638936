"""Step 3's calls: DeepSeek's tokens around Claude's invokes, with a prefix of its own.

Lineage: DeepSeek V3's call tokens (spelt with underscores) and Claude's tags (with `steptml:`). Step 3.5 and later write
Qwen3-Coder's notation instead.

    <｜tool_calls_begin｜>
    <｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="lookup">
    <steptml:parameter name="city">Graz</steptml:parameter>
    </steptml:invoke><｜tool_call_end｜>
    <｜tool_calls_end｜>

Values are text, typed by the declared schema. No ids. In the wild: the type missing, a separator between the calls, the
tokens stripped or with other bars.
"""

from __future__ import annotations

import re
from dataclasses import replace

from wirelint.dialects import invoke
from wirelint.dialects.deepseek import TOKEN_OPENER
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import Opener, Run, either
from wirelint.dialects.reader import Reader

_DIALECT = "step3"
_TAG: Opener = ("<", Run(r"\s", 0, 3), "steptml:", either("invoke", "tool_call", "function_call"))

_U = r"(?:_| |\\_)"
_INNER = rf"<\s?\|{{1,2}}\s?tool{_U}(?:calls(?:{_U}begin)?|call{_U}(?:begin|end)|sep)\s?\|{{1,2}}\s?>"
_LAST = rf"<\s?\|{{1,2}}\s?tool{_U}calls{_U}end\s?\|{{1,2}}\s?>"
_BEFORE = re.compile(rf"(?:{_INNER}\s{{0,8}}(?:function\s{{0,8}})?){{1,6}}(?=<\s{{0,3}}(?:steptml:|invoke\s))")
_AFTER = re.compile(rf"(?:\s{{0,8}}{_INNER}){{0,3}}(?:\s{{0,8}}{_LAST})?")
_CALL = "<｜tool_call_begin｜>function<｜tool_sep｜>"
_PROPER_BEFORE = ("<｜tool_calls_begin｜>" + _CALL, "<｜tool_call_end｜>" + _CALL)
_PROPER_AFTER = "<｜tool_call_end｜><｜tool_calls_end｜>"
_PREFIXED = re.compile(r"<\s{0,3}steptml:")
_SPACE = re.compile(r"\s+")
_GRAMMAR = invoke.Grammar(
    dialect=_DIALECT,
    prefixed=_DIALECT,
    parameters=("parameter", "param", "argument", "arg"),
    other_bodies=True,
    bare=True,
    spelling=invoke.spell(
        prefix="steptml:",
        closing_prefix="(?:steptml:)?",
        wrapper=r"steptml:(?:tool|function)_calls?",
        wrapper_end=r"steptml:(?:tool|function)_calls?",
    ),
    tier="sentinel",
)
# Between its tokens a call counts without the prefix too.
_PLAIN = replace(_GRAMMAR, bare=False, spelling=invoke.PLAIN)


def _read(reader: Reader, position: int) -> Reading:
    run = invoke.Calls(position, position)
    at, proper = position, _PROPER_BEFORE[0]
    reading: Reading = None
    while True:
        before = reader.match(_BEFORE, at)
        start = at if before is None else before.end()
        prefixed = reader.match(_PREFIXED, start) is not None
        if before is None and not prefixed:
            break
        reading = invoke.read(reader, start, _GRAMMAR if prefixed else _PLAIN)
        if not isinstance(reading, Found):
            break
        run.calls += reading.calls
        run.malformed |= reading.malformed or len(reading.calls) > 1 or _written(reader, at, start) != proper
        run.end = reading.end
        at, proper = reader.space(run.end), _PROPER_BEFORE[1]
        if not reading.calls[-1].complete:
            break
    if not run.calls:
        return Skip(_end_after(reader, reading.end)) if reading is not None else None
    end = _end_after(reader, run.end)
    malformed = run.malformed or _written(reader, run.end, end) != _PROPER_AFTER
    return Found(_DIALECT, position, end, tuple(run.calls), "sentinel", malformed)


def _end_after(reader: Reader, position: int) -> int:
    """The offset after the tokens that close a call and its section."""
    after = reader.match(_AFTER, position)
    return position if after is None else after.end()


def _written(reader: Reader, start: int, end: int) -> str:
    """The tokens between two offsets as they were written."""
    return _SPACE.sub("", reader.value(start, end))


FAMILY = Family(
    "step",
    rank=1,
    openers=(TOKEN_OPENER, _TAG),
    read=_read,
    speakers={_DIALECT: frozenset({"step"})},
    closers={r"steptml:(?:parameter|invoke)": _DIALECT},
    lone=frozenset({"steptml:invoke"}),
)
