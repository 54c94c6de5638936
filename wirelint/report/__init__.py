"""How results are shown. `FORMATS` maps the names of `--output-format` to what writes them.

A format takes checked exchanges one by one, so that a large capture shows its first findings before the last is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from wirelint.report.machine import Json, JsonLines
from wirelint.report.statistics import Statistics
from wirelint.report.text import Concise, Full
from wirelint.report.writer import Writer

__all__ = ["FORMATS", "Statistics", "Writer"]

FORMATS: dict[str, Callable[[TextIO], Writer]] = {
    "full": Full,
    "concise": Concise,
    "json": Json,
    "jsonl": JsonLines,
}
