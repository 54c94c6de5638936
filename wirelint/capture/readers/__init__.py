"""Readers of captures: wirelint's records, mitmproxy's flows, HAR, cassettes, other logs. The content of a file
decides.

    from wirelint.capture.readers import read, Problem

Each file is a source, with its records in order. Lines and flows are read one at a time, in constant memory; a HAR is one
JSON document and is read as a whole. A cut or corrupt file gives its readable records and then one `Problem`. A path may
be the URL of a file or a folder in object storage (`wirelint.capture.storage`).
"""

from __future__ import annotations

import itertools
import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Literal

import orjson

from wirelint.capture import har, storage
from wirelint.capture.format import FormatError, decode_all
from wirelint.capture.readers import other_logs
from wirelint.capture.readers.source import Close, Problem, Take, read_parts
from wirelint.capture.record import Record
from wirelint.jsonvalues import mapping
from wirelint.model import Json

__all__ = ["Problem", "captures_below", "open_source", "read"]

_FLOW = re.compile(rb"\d{1,12}:")
_CAPTURE = re.compile(
    rb"[\"'](?:request|response|log|lhar)[\"']\s*:\s*[{n]|[\"'](?:http_)?interactions[\"']\s*:\s*\["
    rb"|[\"'](?:parentUuid|leafUuid|isSidechain|trace_id)[\"']\s*:"
)
_CASSETTE = re.compile(rb"^(?:http_)?interactions:", re.MULTILINE)
_KINDS = "exchanges.jsonl, mitmproxy flow files, HAR, VCR cassettes, LHAR, Claude Code and K2VV logs are read"


def read(paths: Iterable[str | Path]) -> Iterator[Record | Problem]:
    """Yield the records of files, of folders (every capture below them, sorted) and of `-` (standard input)."""
    for path in paths:
        try:
            is_folder = path != "-" and storage.is_folder(path)
            files = [file for file, is_read in captures_below(path) if is_read] if is_folder else [path]
        except OSError as error:
            yield _unreadable(str(path), error)
            continue
        if not files:
            yield Problem(str(path), "", "no captures in this folder", _KINDS, fatal=True)
        for file in files:
            yield from open_source(file)


def open_source(path: str | Path, source: str | None = None) -> Iterator[Record | Problem]:
    """Yield the records of one file, or of standard input for `-`. `source` names the file; the default is its path."""
    source = source or str(path)
    try:
        with storage.opened(path) as file:
            yield from _read_input(file, source)
    except OSError as error:
        yield _unreadable(source, error)


def _unreadable(source: str, error: OSError) -> Problem:
    match error:
        case storage.StorageError():
            return Problem(source, "", error.message, error.cure, fatal=True)
        case FileNotFoundError():
            return Problem(source, "", "no such file or folder", "check the path", fatal=True)
        case _:
            message = f"cannot be read: {error.strerror or error}"
            return Problem(source, "", message, "check the file and its permissions", fatal=True)


def _read_input(data: BufferedReader, source: str) -> Iterator[Record | Problem]:
    head = data.peek()
    match _sniff(head):
        case "json":
            yield from _read_json(data, source)
        case "yaml":
            from wirelint.capture.readers import vcr

            yield from vcr.read(data, source)
        case "flows":
            # Loading mitmproxy takes most of a second, and only these files need it.
            from wirelint.capture.readers import flows

            yield from flows.read(data, source)
        case _:
            message = "nothing in it" if not head.strip() else "not a capture of a known format"
            yield Problem(source, "", message, _KINDS, fatal=True)


def _sniff(head: bytes) -> Literal["json", "flows", "yaml"] | None:
    if _FLOW.match(head):
        return "flows"
    text = head.removeprefix(BOM_UTF8).lstrip()
    if text.startswith((b"{", b"[")):
        return "json"
    return "yaml" if _CASSETTE.search(text) else None


def captures_below(folder: str | Path) -> Iterator[tuple[str, bool]]:
    """Yield the sorted paths of all captures below a folder, without hidden ones. Raises OSError.

    The second value is False for copies, which `read` leaves out: flow files beside an exchanges.jsonl.
    """
    for files in storage.files_below(folder):
        repeated = any(name == "exchanges.jsonl" and storage.size_of(path) > 0 for name, path in files)
        for name, path in files:
            if _is_capture(path):
                yield path, not (name == "flows.mitm" and repeated)


def _is_capture(path: str) -> bool:
    """Return True if a file in a folder is a capture. Most JSON files are none."""
    try:
        head = storage.read_head(path)
    except OSError:
        return True  # the reader reports the problem
    kind = _sniff(head)
    return kind is not None and (kind != "json" or _CAPTURE.search(head) is not None)


# --- JSON: lines of records or of another log, a HAR, a cassette, an array ---------------------------------------------

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


def _read_json(data: Iterable[bytes], source: str) -> Iterator[Record | Problem]:
    lines = enumerate(data, 1)
    number, first = next(((number, line) for number, line in lines if line.removeprefix(BOM_UTF8).strip()), (1, b""))
    first = first.removeprefix(BOM_UTF8)
    # A line that ends in the middle of a document, and HAR on one line, are read as a whole.
    if _WHOLE_START.match(first.strip()) or first.rstrip().endswith(_OPENS_MORE) or first.lstrip().startswith(b"["):
        yield from _read_whole(first + b"".join(line for _, line in lines), source)
        return
    logs: list[tuple[Take[Json], Close]] = []

    def take(line: bytes, number: int) -> Iterable[Record | Problem]:
        try:
            value = load(line)
        except ValueError as error:
            raise FormatError("cut off" if not line.endswith(b"\n") else f"broken JSON: {error}") from error
        if not logs:  # the first readable line decides
            logs.append(other_logs.reader_of(mapping(value), source) or (take_record, tuple))
        return logs[0][0](value, number)

    def take_record(value: Json, number: int) -> Iterable[Record | Problem]:
        return _read_document(value, source) or decode_all(value, source, f"line {number}")

    parts = ((n, line) for n, line in itertools.chain(((number, first),), lines) if line.strip())
    yield from read_parts(parts, source, "line", take, lambda: logs[0][1]() if logs else ())


def _read_whole(text: bytes, source: str) -> Iterator[Record | Problem]:
    try:
        document = load(text)
    except ValueError as error:
        if b'"entries"' in text:
            yield from har.read_cut(text, source)
        else:
            yield Problem(source, "", f"broken JSON: {error}", "was it written to the end?", fatal=True)
        return
    if (found := _read_document(document, source)) is not None:
        yield from found
        return
    records = document if isinstance(document, list) else [document]
    take = lambda value, number: decode_all(value, source, f"record {number}")  # noqa: E731
    yield from read_parts(enumerate(records, 1), source, "record", take)


def _read_document(value: Json, source: str) -> Iterator[Record | Problem] | None:
    """Return the items of a HAR, an LHAR or a cassette; None for other values."""
    match document := mapping(value):
        case {"request": _} | {"response": _}:
            return None
        case {"log": _}:
            return har.read(document, source)
        case {"lhar": _}:
            return other_logs.read_lhar(document, source)
        case {"interactions": _} | {"http_interactions": _}:
            # Loading the YAML that other cassettes are written in takes a while.
            from wirelint.capture.readers import vcr

            return vcr.read_document(document, source)
    return None
