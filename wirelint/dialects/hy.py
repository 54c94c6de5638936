"""Hunyuan's tags, a key and a value for every argument, in a wrapper.

Lineage: Tencent's HY 3 took GLM's tags over and put a separator after the name → HY 4 without it and without line ends.
Hunyuan A13B wrote a JSON array (another family).

    <tool_calls>
    <tool_call>lookup<tool_sep>
    <arg_key>city</arg_key>
    <arg_value>Graz</arg_value>
    </tool_call>
    </tool_calls>

    <tool_calls:a7><tool_call:a7>lookup<arg_key:a7>city</arg_key:a7><arg_value:a7>Graz</arg_value:a7></tool_call:a7></tool_calls:a7>

Every tag may carry a suffix of its tokenizer, as the second does. Values are text as it stands, typed by the declared
schema. No ids.
"""

from __future__ import annotations

import re

from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import Opener, maybe
from wirelint.dialects.openers import Run as Chars
from wirelint.dialects.pairs import pairs, read_run, tag
from wirelint.dialects.reader import Reader

_SEPARATED, _PLAIN = "hy_v3", "hy_v4"
_SUFFIX = r"(?::[^\s<>]{1,32})?"
_WRAPPER = re.compile(tag(f"tool_calls{_SUFFIX}"))
_TAGS = pairs(
    key=tag(f"arg_key{_SUFFIX}"),
    key_end=tag(f"arg_key{_SUFFIX}", closing=True),
    value=tag(f"arg_value{_SUFFIX}"),
    value_end=tag(f"arg_value{_SUFFIX}", closing=True),
    call=tag(f"tool_call{_SUFFIX}"),
    call_end=tag(f"tool_call{_SUFFIX}", closing=True),
    outer=tag(f"tool_calls{_SUFFIX}", closing=True),
    separator=tag(f"tool_sep{_SUFFIX}"),
)
_OWN = re.compile(r"<\s{0,3}tool_call:")


def _read(reader: Reader, position: int) -> Reading:
    wrapper = reader.match(_WRAPPER, position)
    run = read_run(reader, wrapper.end() if wrapper is not None else position, _TAGS, wrapped=wrapper is not None)
    # Without the wrapper, the separator and a suffix the bytes are GLM's.
    if not run.calls or not (wrapper is not None or run.separated or reader.match(_OWN, position)):
        return None
    if reader.stand_ins(run.calls):
        return Skip(run.end)
    dialect = _SEPARATED if run.separated else _PLAIN
    return Found(dialect, position, run.end, tuple(run.calls), "generic", run.malformed or wrapper is None)


_TAG: Opener = ("<tool_call", maybe("s"), maybe(":", Chars(r"\w.-", 1, 32)), ">")
_SUFFIXED = r":[^\s<>]{1,32}"

FAMILY = Family(
    "hy",
    rank=2,
    openers=(_TAG,),
    read=_read,
    speakers={_SEPARATED: frozenset({"hunyuan"}), _PLAIN: frozenset({"hunyuan"})},
    closers={rf"(?:arg_key|arg_value|tool_calls?){_SUFFIXED}": _PLAIN, "tool_calls": None},
)
