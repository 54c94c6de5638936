"""Names in markup: the declared tool for a written name, and placeholder names."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PREFIX = re.compile(r"(?:functions?[. ]\s*)+")
_INDEX = re.compile(r"\s*:\s*\d+\Z")
_SEGMENTS = re.compile(r"\.|__|/|:")
_GENERIC_PREFIXES = frozenset({"functions", "function", "default_api", "tools", "tool", "mcp"})
# Placeholder names in documentation: `function_name`, `$FUNCTION_NAME`, `{tool_name}`, `your_tool`, `NAME`.
_STAND_IN = re.compile(
    r"[$<{\[]*(?:(?:your|my|some|the|an?|any|example|sample|dummy|actual)[_ -])*"
    r"(?:functions?|func|fn|tools?|method)?[_ -]?(?:name|call|here)?[_ -]?[0-9]{0,2}[>}\]]*",
    re.IGNORECASE,
)
_METASYNTACTIC = frozenset({"foo", "bar", "baz", "n", "x", "xxx"})


def resolve(written: str, declared: Iterable[str]) -> str:
    """Return the declared name for a written one: exact, else by a unique run of last segments, else without framing."""
    offered = tuple(declared)
    name = written.strip()
    if name in offered:
        return name
    name = _PREFIX.sub("", _INDEX.sub("", name), count=1).strip() if _PREFIX.match(name) else _INDEX.sub("", name)
    if name in offered:
        return name
    fitting = {candidate for candidate in offered if _same_tail(name, candidate)}
    return fitting.pop() if len(fitting) == 1 else name


def is_stand_in(name: str) -> bool:
    """Return True if a name is a placeholder. Only for names that are not declared."""
    return not name or name.lower() in _METASYNTACTIC or _STAND_IN.fullmatch(name) is not None


def _same_tail(one: str, other: str) -> bool:
    """Return True for `calendar.calendar` and `calendar`, `s.t` and `mcp__s__t`; False for `fs.read` and `db.read`."""
    left, right = _segments(one), _segments(other)
    shared = min(len(left), len(right))
    return shared > 0 and left[-shared:] == right[-shared:]


def _segments(name: str) -> list[str]:
    segments = [segment for segment in _SEGMENTS.split(name) if segment]
    while len(segments) > 1 and segments[0] in _GENERIC_PREFIXES:
        segments.pop(0)
    return segments
