"""The request header `x-wirelint-ignore`: rules that are silent for the exchange that it stands on.

A client sends `x-wirelint-ignore: xml-leak,ST604` or `ALL`. A proxy takes it off before it forwards the request; captures
keep it, so that they are judged as the live traffic was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wirelint.registry import Registry, RuleError, rank
from wirelint.rule import Rule, one_line

HEADER = "x-wirelint-ignore"
_MOST = 64
"""Names in a header that are looked at."""


def silenced(headers: Mapping[str, str]) -> str:
    """What the header says, in a form that is the same for the same rules; empty without one."""
    value = headers.get(HEADER)
    return ",".join(names_in(value)) if value else ""


def names_in(value: str) -> tuple[str, ...]:
    names = (name.strip() for name in value.split(",", _MOST)[:_MOST])
    return tuple(dict.fromkeys("ALL" if name.upper() == "ALL" else name for name in names if name))


def without(rules: Sequence[Rule], value: str) -> tuple[Rule, ...]:
    """The rules that speak in spite of a header with this value."""
    names = names_in(value)
    return tuple(rule for rule in rules if not rank(rule, names))


def unknown(value: str, known: Registry) -> list[str]:
    """A line for each name that means no rule."""
    said = []
    for name in names_in(value):
        try:
            known.find(name)
        except RuleError as error:
            said.append(one_line(f"{HEADER}: {error}"))
    return said
