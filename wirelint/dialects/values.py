"""What reading native markup gives: calls, and the blocks of text they stand in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wirelint.model import Json

Tier = Literal["sentinel", "generic", "weak"]
"""`sentinel`: special tokens, which count on sight. `generic`: tags that count with a body that can be read. `weak`: shapes
that people write too; they count as the whole message, with a declared tool and arguments that fit it."""


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A tool call that a model wrote in its own notation.

    `name` is the declared name where one fits, else what the markup says without its framing. `arguments` are typed by
    the declared schema; None when the body could not be read; a call that was cut off keeps the arguments that were
    closed. They can always be written as JSON. `id` is the native id as written (`functions.read:0`). `complete`:
    nothing of the arguments is missing, whether or not the closing markup came.
    """

    name: str
    arguments: dict[str, Json] | None
    id: str | None
    complete: bool


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of text that is markup of one dialect, from its wrapper's opener to its wrapper's closer.

    `start` and `end` are offsets in the text that was searched. `calls` is empty for stray closers and for sentinels
    without a body. `complete`: there is a call and every one of them is complete. `malformed`: the markup departs from
    the dialect's own grammar and was read all the same.
    """

    dialect: str
    start: int
    end: int
    calls: tuple[NativeCall, ...]
    complete: bool
    tier: Tier
    malformed: bool
