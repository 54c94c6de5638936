"""Arguments of a call that the error of its tool names: `Unknown workspace: 'default'` for `{"workspace": "default"}`.

A value counts as named where the error quotes it, or has it as a word beside a word of its parameter's name. An error that
refuses a value without repeating it names the parameter alone, in quotes or before a colon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from wirelint.arguments.parameters import words_of
from wirelint.arguments.placeholders import Sign, sign
from wirelint.model import Json

_LONGEST_ERROR = 1000
_LONGEST_VALUE = 200
_SHORTEST_VALUE = 2
_REFUSES = re.compile(
    r"\b(?:unknown|invalid|no such|not found|not valid|not a|not an|unrecogni[sz]ed|unsupported|must be|must match|expected"
    r"|does not exist|doesn['’]t exist|not exist|not allowed|not available|no \w+ (?:named|called|with))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Refused:
    """An argument that an error refuses. `sign`: what gives the value away as a stand-in, if anything does."""

    name: str
    value: str
    sign: Sign | None


def refused(arguments: Mapping[str, Json], error: str) -> Iterator[Refused]:
    """Yield the arguments that an error of the tool refuses by name."""
    error = error[:_LONGEST_ERROR]
    if not _REFUSES.search(error):
        return
    said = set(re.findall(r"[a-z]+", error.lower()))
    for name, value in arguments.items():
        if not isinstance(value, str) or not _SHORTEST_VALUE <= len(value) <= _LONGEST_VALUE:
            continue
        quoted = re.search(rf"(['\"`‘“«<]){re.escape(value)}['\"`’”»>]", error)
        about = any(len(word) > 2 and word in said for word in words_of(name))
        beside = about and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", error) is not None
        parameter = re.search(rf"(?:['\"`]{re.escape(name)}['\"`]|(?<!\w){re.escape(name)}\s*:)", error)
        if quoted or beside or parameter:
            yield Refused(name, value, sign(value, name))
