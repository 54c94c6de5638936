"""Parts that the readers share: problems of a source, its numbered parts, and access to untyped JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, TypeVar
from urllib.parse import urlsplit

from wirelint.capture.format import FormatError
from wirelint.capture.record import Record
from wirelint.model import Json
from wirelint.text.escaping import shorten
from wirelint.wire.content_coding import CodingError, decode, why_unread

T = TypeVar("T")

_SHORTEN = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """An unreadable part of a source. `place` may be empty, `cure` is advice for the user.

    `fatal`: the source has no readable record.
    """

    source: str
    place: str
    message: str
    cure: str
    fatal: bool

    def __str__(self) -> str:
        where = f"{self.source}: {self.place}" if self.place else self.source
        return f"{where}: {self.message} ({self.cure})" if self.cure else f"{where}: {self.message}"


Take: TypeAlias = "Callable[[T, int], Iterable[Record | Problem]]"
"""Function that returns the records that a numbered part of a source completes. Raises FormatError for a foreign part."""
Close: TypeAlias = "Callable[[], Iterable[Record | Problem]]"
"""Function that returns the records that the end completes."""


def read_parts(
    parts: Iterable[tuple[int, T]], source: str, noun: str, take: Take[T], close: Close = tuple
) -> Iterator[Record | Problem]:
    """Yield the records of the numbered parts of a source.

    Records get the source, and the place and the id of their part unless they have others. The parts for which `take`
    raises FormatError become one problem at the end.
    """
    wrong: list[tuple[int, str]] = []
    read = 0
    for number, part in parts:
        try:
            records = [_placed(item, source, noun, number) for item in take(part, number)]
        except FormatError as error:
            wrong.append((number, str(error)))
        else:
            read += 1
            yield from records
    yield from (_placed(item, source, noun, 0) for item in close())
    if wrong:
        number, reason = wrong[0]
        others = f", and {len(wrong) - 1} more like it" if len(wrong) > 1 else ""
        rest = f"the other {read} were read" if read else "nothing could be read"
        cure = "upgrade wirelint" if "newer" in reason else rest
        yield Problem(source, f"{noun} {number}", f"{shorten(reason, _SHORTEN)}{others}", cure, fatal=not read)


def _placed(item: Record | Problem, source: str, noun: str, number: int) -> Record | Problem:
    """Return the item of a part with its source, place and id. Raises FormatError for a URL such as `http://[`."""
    if isinstance(item, Problem):
        return item
    try:
        urlsplit(item.url)
    except ValueError as error:
        raise FormatError(f"its URL cannot be read: {error}") from error
    place = item.place or f"{noun} {number}"
    return item.but(source=source, place=place, id=item.id or f"{source}:{number}")


def plain_body(coding: str | None, raw: bytes, side: str, notes: list[Json]) -> bytes | None:
    """Return a body without its content codings; None with a note if it cannot be decoded."""
    try:
        return decode(coding, raw)
    except CodingError as error:
        notes.append(why_unread(side, error))
        return None


def as_string(value: Json) -> str:
    return value if isinstance(value, str) else ""


def as_seconds(value: Json) -> float | None:
    """Seconds since 1970 of a date such as `2025-06-01T12:00:00Z`; None if the value is no date."""
    try:
        return datetime.fromisoformat(as_string(value)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
