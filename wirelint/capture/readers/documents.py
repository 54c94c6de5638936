"""Reader of JSON sources: lines of records or of another log, a HAR, a cassette, an array. The first line decides."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator

import orjson

from wirelint.capture import har
from wirelint.capture.format import FormatError, decode_all
from wirelint.capture.readers import claude_code, other_logs
from wirelint.capture.readers.source import Input, LineReader, Problem, read_parts
from wirelint.capture.record import Record
from wirelint.model import Json

_BOM = b"\xef\xbb\xbf"
_DOCUMENTS = ("log", "lhar", "interactions", "http_interactions")
_OPENS_MORE = (b"{", b"[", b",")
_WHOLE_START = re.compile(rb'\{\s*"(?:log|lhar|(?:http_)?interactions)"\s*:')


def load(text: bytes) -> Json:
    """Return a JSON value. Raises ValueError."""
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        # Other tools write halves of surrogate pairs and NaN, which orjson refuses.
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
    if _WHOLE_START.match(first.strip()) or first.rstrip().endswith(_OPENS_MORE) or first.lstrip().startswith(b"["):
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
    if isinstance(document, dict) and any(name in document for name in _DOCUMENTS):
        yield from _read_document(document, source)
        return
    records = document if isinstance(document, list) else [document]
    take = lambda value, number: decode_all(value, source, f"record {number}")  # noqa: E731
    yield from read_parts(enumerate(records, 1), source, "record", take)


def _read_document(document: dict[str, Json], source: str) -> Iterator[Record | Problem]:
    if "log" in document:
        yield from har.read(document, source)
    elif "lhar" in document:
        yield from other_logs.read_lhar(document, source)
    else:
        # Loading the YAML that other cassettes are written in takes a while.
        from wirelint.capture.readers import vcr

        yield from vcr.read_document(document, source)


def _read_lines(first: bytes, lines: Iterator[bytes], source: str, number: int) -> Iterator[Record | Problem]:
    taker: LineReader | None = None

    def take(line: bytes, number: int) -> Iterator[Record | Problem]:
        nonlocal taker
        try:
            value = load(line)
        except ValueError as error:
            raise FormatError("cut off" if not line.endswith(b"\n") else f"broken JSON: {error}") from error
        taker = taker or _taker(value, source)
        return taker.add(value, number)

    parts = ((n, line) for n, line in enumerate(itertools.chain((first,), lines), number) if line.strip())
    yield from read_parts(parts, source, "line", take, lambda: taker.close() if taker is not None else ())


def _taker(value: Json, source: str) -> LineReader:
    """Return the reader for a file, by its first JSON line."""
    if isinstance(value, dict):
        if any(name in value for name in _DOCUMENTS) and not {"request", "response"} & value.keys():
            return _Document(source)
        if claude_code.is_line(value):
            return claude_code.Lines(source)
        if other_logs.is_lhar(value):
            return other_logs.LharLines(source)
        if other_logs.is_k2vv(value):
            return other_logs.K2vvLines(source)
    return _Records(source)


class _Document(LineReader):
    """Reader of a file with one document on one line."""

    def add(self, value: Json, number: int) -> Iterator[Record | Problem]:
        if not isinstance(value, dict):
            raise FormatError("not a JSON object")
        yield from _read_document(value, self._source)


class _Records(LineReader):
    def add(self, value: Json, number: int) -> Iterator[Record | Problem]:
        yield from decode_all(value, self._source, f"line {number}")
