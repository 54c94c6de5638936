"""The shape of a dialect family: one module of this package, one line in its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from wirelint.dialects.openers import Opener
from wirelint.dialects.reader import Reader
from wirelint.dialects.values import NativeCall, Tier


class Found(NamedTuple):
    """A block in the offsets of the reader's view."""

    dialect: str
    start: int
    end: int
    calls: tuple[NativeCall, ...]
    tier: Tier
    malformed: bool


class Skip(NamedTuple):
    """Markup that is not to be reported (documentation with placeholder names); searching goes on at `end`."""

    end: int


Reading: TypeAlias = Found | Skip | None
"""None: these bytes are not this family's; the next family may try."""


@dataclass(frozen=True, slots=True)
class Family:
    """A module of this package that has a `FAMILY` is a family.

    `openers`: all that a block of the family may begin with, on shadow text; `read` is asked at each of them.

    `rank`: families of a lower rank are asked first about an opener that several share: 1 where its own bytes decide, 2 the
    usual, 3 what takes the rest, 4 the weak shapes.
    `speakers`: per dialect of the family, the model families (`text.families`) whose own notation it is.
    `closers`: a regular expression per closing tag, with the dialect that it tells of when it stands alone at the end
    of a text, its opener lost (None: it is shared and tells nothing). `lone`: those that tell enough without company.
    `after_name`: what may follow the name of a declared tool at the beginning of a line, when that name is the first that
    is left of a call.
    """

    name: str
    openers: tuple[Opener, ...]
    read: Callable[[Reader, int], Reading]
    rank: int = 2
    speakers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    closers: Mapping[str, str | None] = field(default_factory=dict)
    lone: frozenset[str] = frozenset()
    after_name: tuple[Opener, ...] = ()
