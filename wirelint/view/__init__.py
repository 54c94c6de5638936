"""Views of checked exchanges. `FORMATS` maps the names of `--output-format` to writers.

A writer takes checked exchanges one by one, so a large capture shows its first findings before its last line is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TextIO

from wirelint.rule import Rule
from wirelint.view.ci import Github, Gitlab, Json, JsonLines, Junit
from wirelint.view.findings import Writer
from wirelint.view.sarif import Sarif
from wirelint.view.stats import Statistics
from wirelint.view.text import Concise, Full

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
    """A writer of a format. `rules`: those that ran, for formats that describe rules."""
    return Sarif(out, rules) if output_format == "sarif" else FORMATS[output_format](out)
