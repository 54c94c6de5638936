"""A reply in one of the shapes that an API gives, and what a client makes of it.

A shape has a whole body, a stream, or both; both must come to the same. `parts` is written per candidate: (kind, words),
where the words of a call are its name and arguments, and of a hosted call its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Part = tuple[str, str]


@dataclass(frozen=True)
class Shape:
    parts: Sequence[Sequence[Part]] = ()
    finish: Sequence[str | None] = ()
    whole: Any = None
    stream: str | bytes | None = None
    error: bool = False
    usage: Mapping[str, Any] | None = None
    faults: Sequence[str] = ()
    terminated: bool = True
    id: str | None = None
