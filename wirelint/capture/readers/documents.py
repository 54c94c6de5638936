"""JSON sources: a record a line, a HAR, one record, or an array of records; which of them is told by the first line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import orjson

from wirelint.capture.format import FormatError, decode
from wirelint.capture.readers import har
from wirelint.capture.readers.source import Input, Problem
from wirelint.capture.record import Record
from wirelint.model import Json

_BOM = b"\xef\xbb\xbf"
_OPENS_MORE = (b"{", b"[", b",")
_HAR_START = re.compile(rb'\{\s*"log"\s*:')
_SHORTEN = 80


def load(text: bytes) -> Json:
    """A JSON value. Raises ValueError."""
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        # Halves of surrogate pairs, NaN: what other tools write and orjson refuses.
        try:
            value = json.loads(text)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
    return value


def read(data: Input, source: str) -> Iterator[Record | Problem]:
    lines = data.lines()
    skipped, first = 0, b""
    for first in lines:
        if first.removeprefix(_BOM).strip():
            break
        skipped += 1
    first = first.removeprefix(_BOM)
    # A line that ends in the middle of a document, and HAR on one line, are read as a whole.
    if _HAR_START.match(first.strip()) or first.rstrip().endswith(_OPENS_MORE) or first.lstrip().startswith(b"["):
        yield from _read_whole(first + b"".join(lines), source)
        return
    yield from _read_lines(first, lines, source, skipped + 1)


def _read_whole(text: bytes, source: str) -> Iterator[Record | Problem]:
    try:
        document = load(text)
    except ValueError as error:
        if b'"entries"' in text:
            yield from har.read_cut(text, source)
        else:
            yield Problem(source, "", f"broken JSON: {error}", "was it written to the end?", fatal=True)
        return
    if isinstance(document, dict) and "log" in document:
        yield from har.read(document, source)
        return
    records = document if isinstance(document, list) else [document]
    yield from _read_values(enumerate(records, 1), source, "record")


def _read_values(
    values: Iterator[tuple[int, Json]] | enumerate[Json], source: str, noun: str
) -> Iterator[Record | Problem]:
    wrong = _Wrong(source, noun)
    for number, value in values:
        try:
            record = decode(value, source, f"{noun} {number}")
        except FormatError as error:
            wrong.add(number, str(error))
        else:
            wrong.read += 1
            yield record
    yield from wrong.problem()


def _read_lines(first: bytes, lines: Iterator[bytes], source: str, number: int) -> Iterator[Record | Problem]:
    wrong = _Wrong(source, "line")
    line: bytes | None = first
    while line is not None:
        if line.strip():
            try:
                record = decode(load(line), source, f"line {number}")
            except FormatError as error:
                wrong.add(number, str(error))
            except ValueError as error:
                wrong.add(number, "cut off" if not line.endswith(b"\n") else f"broken JSON: {error}")
            else:
                wrong.read += 1
                yield record
        line = next(lines, None)
        number += 1
    yield from wrong.problem()


class _Wrong:
    """What could not be read of a source, for one problem at its end."""

    def __init__(self, source: str, noun: str) -> None:
        self.read = 0
        self._source = source
        self._noun = noun
        self._first: tuple[int, str] | None = None
        self._count = 0

    def add(self, number: int, reason: str) -> None:
        self._first = self._first or (number, reason if len(reason) <= _SHORTEN else f"{reason[: _SHORTEN - 1]}…")
        self._count += 1

    def problem(self) -> Iterator[Problem]:
        if self._first is None:
            return
        number, reason = self._first
        others = f", and {self._count - 1} more like it" if self._count > 1 else ""
        rest = f"the other {self.read} were read" if self.read else "nothing could be read"
        cure = "upgrade wirelint" if "newer" in reason else rest
        yield Problem(self._source, f"{self._noun} {number}", f"{reason}{others}", cure, fatal=not self.read)
