"""The results of reading native markup: calls, blocks of text, and the declaration of a family of dialects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from wirelint.dialects.openers import Opener
from wirelint.model import Json

if TYPE_CHECKING:
    from wirelint.dialects.reader import Reader

Tier = Literal["sentinel", "generic", "weak"]
"""`sentinel`: special tokens, which count on sight. `generic`: tags that count if their body can be read. `weak`: shapes
that people write too; they count as the whole message, with a declared tool and arguments that fit it."""


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A tool call in a model's own notation.

    `name` is the declared name where one fits, else the written one without its framing. `arguments` are typed by the
    declared schema; None if the body is unreadable; a call that is cut off keeps the arguments that were closed. They can
    always be written as JSON. `id` is the native id as written (`functions.read:0`). `complete`: no argument is missing,
    whether or not the closing markup came.
    """

    name: str
    arguments: dict[str, Json] | None
    id: str | None
    complete: bool


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of text with markup of one dialect, from the opener of its wrapper to the closer.

    `start` and `end` are offsets in the searched text. `calls` is empty for stray closers and for sentinels without a
    body. `complete`: there is a call and every call is complete. `malformed`: the markup departs from the dialect's
    grammar and was read all the same.
    """

    dialect: str
    start: int
    end: int
    calls: tuple[NativeCall, ...]
    complete: bool
    tier: Tier
    malformed: bool


@dataclass(slots=True)
class Calls:
    """Calls in a row, as far as they have been read: up to `end`."""

    end: int
    calls: list[NativeCall] = field(default_factory=list)
    malformed: bool = False


class Found(NamedTuple):
    """A block, with offsets in the reader's view."""

    dialect: str
    start: int
    end: int
    calls: tuple[NativeCall, ...]
    tier: Tier
    malformed: bool


class Skip(NamedTuple):
    """Markup that is not reported (documentation with placeholder names); the search goes on at `end`."""

    end: int


Reading: TypeAlias = Found | Skip | None
"""None: these bytes are of another family; the next family may try."""


@dataclass(frozen=True, slots=True)
class Family:
    """Dialects that share openers and a reader.

    `openers`: all beginnings of a block of the family; `read` is called at each of them.
    `rank`: families of a lower rank are tried first at a shared opener: 1 if the family's own bytes decide, 2 usual, 3 for
    what the others leave, 4 for weak shapes.
    `speakers`: per dialect, the model families (`text.families`) that write it.
    `closers`: pattern source of a closing tag → dialect of a lone closer at the end of a text, whose opener is lost (None:
    shared by several dialects). `lone`: closers that count without company.
    `after_name`: what may follow the name of a declared tool at a line start if that name is all that is left of a call.
    """

    name: str
    openers: tuple[Opener, ...]
    read: Callable[[Reader, int], Reading]
    rank: int = 2
    speakers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    closers: Mapping[str, str | None] = field(default_factory=dict)
    lone: frozenset[str] = frozenset()
    after_name: tuple[Opener, ...] = ()
