"""Where a finding stands in files, for formats that link to them: path and line, as well as the reader knows."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote

from wirelint.capture.record import Record
from wirelint.view.writer import plain

_LINE = re.compile(r"line (\d{1,9})")
_INPUT = "stdin"


def line_of(record: Record) -> int | None:
    """The line that a record is in its file; None in files whose records are no lines."""
    found = _LINE.fullmatch(record.place)
    return int(found[1]) if found else None


def path_of(record: Record) -> str:
    """The file's path with slashes: from the working directory where it lies below it, else as it was named."""
    return plain(_path(record))


def _path(record: Record) -> str:
    if record.source in ("", "-"):
        return _INPUT
    path = Path(os.path.abspath(record.source))
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return Path(record.source).as_posix()


def uri_of(record: Record) -> str:
    """The same as a reference of URIs; `file:` for a path that does not begin at the working directory."""
    path = _path(record)
    if os.path.isabs(path):
        return Path(path).as_uri()
    return quote(os.fsencode(path))


def file_place(record: Record) -> str:
    """The place in the file in words: `captures/run.jsonl:3`, `capture.har entry 7`."""
    line = line_of(record)
    if line is not None:
        return f"{path_of(record)}:{line}"
    return f"{path_of(record)} {record.place}".rstrip()
