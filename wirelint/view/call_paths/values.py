"""What a path is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wirelint.model import Layer, Side
from wirelint.rule import Finding

State = Literal["ok", "changed", "failed", "unseen", "missing"]
"""`changed`: it went on as something else. `unseen`: not on this wire. `missing`: it did not happen; the path ends."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one layer did. `at` is in milliseconds after the path's first request, None where times are not known, `took`
    how many milliseconds it worked.

    `exchange`, `side`, `pointer` and `event` are the place on the wire; `changes` what is not as it was before:
    (what, before, after).
    """

    layer: Layer
    state: State
    what: str
    said: str = ""
    at: float | None = None
    took: float | None = None
    exchange: str | None = None
    side: Side | None = None
    pointer: str | None = None
    event: int | None = None
    changes: tuple[tuple[str, str, str], ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Path:
    """A call and what became of it. `end` says why there is nothing more, empty where it came back to the model."""

    id: str | None
    name: str | None
    arguments: str
    source: str
    exchange: str
    conversation: str | None
    steps: tuple[Step, ...]
    end: str = ""
