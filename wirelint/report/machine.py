"""Formats for programs: one JSON array, or one JSON object a line."""

from __future__ import annotations

from typing import TextIO

import orjson

from wirelint.capture.offline import Checked
from wirelint.report.writer import flat


class JsonLines:
    """One object per finding, written when it is known."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def add(self, checked: Checked) -> None:
        for finding in checked.findings:
            self._out.write(orjson.dumps(flat(checked, finding)).decode() + "\n")

    def close(self) -> None:
        self._out.flush()


class Json:
    """An array of the same objects."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._begun = False

    def add(self, checked: Checked) -> None:
        for finding in checked.findings:
            self._out.write(",\n" if self._begun else "[\n")
            self._begun = True
            self._out.write(" " + orjson.dumps(flat(checked, finding)).decode())

    def close(self) -> None:
        self._out.write("\n]\n" if self._begun else "[]\n")
        self._out.flush()
