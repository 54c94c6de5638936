"""How results are shown. `FORMATS` maps the names of `--output-format` to what writes them.

A format takes checked exchanges one by one, so that a large capture shows its first findings before the last is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TextIO

from wirelint.rule import Rule
from wirelint.view.machine import Json, JsonLines
from wirelint.view.pipelines import Github, Gitlab, Junit
from wirelint.view.sarif import Sarif
from wirelint.view.statistics import Statistics
from wirelint.view.text import Concise, Full
from wirelint.view.writer import Writer

__all__ = ["FORMATS", "Statistics", "Writer", "begin"]

FORMATS: dict[str, Callable[[TextIO], Writer]] = {
    "full": Full,
    "concise": Concise,
    "json": Json,
    "jsonl": JsonLines,
    "sarif": Sarif,
    "github": Github,
    "gitlab": Gitlab,
    "junit": Junit,
}


def begin(output_format: str, out: TextIO, rules: Sequence[Rule] = ()) -> Writer:
    """A writer of a format. `rules`: those that ran, for formats that describe them."""
    return Sarif(out, rules) if output_format == "sarif" else FORMATS[output_format](out)
