"""Facts that a capture lacks. A body rebuilt from a log differs from the wire, and is not judged as such."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

MissingInfo = Literal["request", "tools", "arguments", "reasoning", "finish", "framing", "times", "end", "headers"]
"""`request`: it is put together from a log, and not what was sent. `tools`: what was declared is not known. `arguments`:
their text is lost, only the value is left that a client made of it. `finish`: reasons may be made up by the recorder.
`framing`: a stream was folded into a body. `times`: when its pieces came, how long there was silence. `end`: whether all of
a reply came."""

LACKS: tuple[MissingInfo, ...] = get_args(MissingInfo)

_WORDS: dict[MissingInfo, str] = {
    "request": "requests as they were sent",
    "tools": "which tools were declared",
    "arguments": "the text of arguments",
    "reasoning": "reasoning",
    "finish": "finish reasons",
    "framing": "the framing of streams",
    "times": "when the pieces of a reply came",
    "end": "how an exchange ended",
    "headers": "headers",
}


def told(missing: Iterable[MissingInfo]) -> str:
    """Return words for what cannot be judged: `requests as they were sent, finish reasons`."""
    wanted = set(missing)
    return ", ".join(words for lack, words in _WORDS.items() if lack in wanted)


def read(value: object) -> frozenset[MissingInfo]:
    """Return the known words of a list."""
    return frozenset(lack for lack in LACKS if lack in value) if isinstance(value, list) else frozenset()
