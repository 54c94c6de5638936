"""Repaired captures written as files of the kind that they were read from: a line for a line, a flow for a flow.

    from wirelint.capture.writers import write

What is written is the file that was read, and what the repairs changed in it. Exchanges without a repair, and whatever
else the file holds, are copied to the byte; a HAR and other JSON documents keep their layout as far as JSON tools do.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from wirelint.capture.fixing import Fixed
from wirelint.capture.format import is_prior
from wirelint.capture.writers.documents import write_har, write_lines, write_records

__all__ = ["write"]

_Write = Callable[[Path, Iterator[Fixed], Path], None]


def write(source: Path, items: Iterable[Fixed], target: Path) -> None:
    """Writes the file at `source`, with its records as they are in `items`, to `target`.

    `items` are all records of the file, in its order. Raises OSError, and ValueError for a document that is broken
    behind the records that could be read.
    """
    rest = (item for item in items if not is_prior(item.record))
    first = next(rest, None)
    if first is None:
        shutil.copyfile(source, target)
    else:
        _writer(first)(source, itertools.chain((first,), rest), target)
    shutil.copymode(source, target)


def _writer(first: Fixed) -> _Write:
    """Records say what their file is made of in what they call their place."""
    match first.record.place.partition(" ")[0]:
        case "flow":
            # Loading mitmproxy takes most of a second, and only these files need it.
            from wirelint.capture.writers import flows

            return flows.write
        case "entry":
            return write_har
        case "record":
            return write_records
        case _:
            return write_lines
