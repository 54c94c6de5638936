"""Formats for programs: one JSON array, or one JSON object a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

import orjson

from wirelint.capture.offline import Checked, Occurrences
from wirelint.model import Json as Value
from wirelint.rule import Finding
from wirelint.state.issues import Issue
from wirelint.view.writer import flat


class Totals:
    """Objects made of the findings of one file, held until all of the file has been read: then their counts are known."""

    def __init__(self, make: Callable[[Checked, Finding], dict[str, Value]]) -> None:
        self._make = make
        self._source: str | None = None
        self._held: list[tuple[dict[str, Value], Issue | None]] = []
        self._occurrences = Occurrences()

    def add(self, checked: Checked) -> Iterator[tuple[dict[str, Value], Issue | None]]:
        """Takes the findings of an exchange; yields those of the file before, when this is the first of another one."""
        if checked.record.source != self._source:
            yield from self.close()
            self._source = checked.record.source
        self._held += [(self._make(checked, finding), finding.issue) for finding in checked.findings]
        self._occurrences.see(checked)

    def close(self) -> Iterator[tuple[dict[str, Value], Issue | None]]:
        """What is held, in the order in which it was found, with the issue as it was seen last."""
        for made, issue in self._held:
            if issue is not None and not issue.known:
                issue = self._occurrences.total(self._source or "", issue)
            yield made, issue
        self._held, self._occurrences = [], Occurrences()


def lines(found: Iterable[tuple[dict[str, Value], Issue | None]]) -> Iterator[str]:
    """The objects of `flat` as JSON, with their counts brought up to date."""
    for made, issue in found:
        counted: dict[str, Value] = {"last_seen": issue.last, "count": issue.count} if issue is not None else {}
        yield orjson.dumps(made | counted).decode()


class JsonLines:
    """One object per issue, written when its file has been read."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._totals = out, Totals(flat)

    def add(self, checked: Checked) -> None:
        self._out.writelines(f"{line}\n" for line in lines(self._totals.add(checked)))

    def close(self) -> None:
        self._out.writelines(f"{line}\n" for line in lines(self._totals.close()))
        self._out.flush()


class Json:
    """An array of the same objects."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._totals = out, Totals(flat)
        self._begun = False

    def add(self, checked: Checked) -> None:
        self._write(self._totals.add(checked))

    def _write(self, found: Iterator[tuple[dict[str, Value], Issue | None]]) -> None:
        for line in lines(found):
            self._out.write(",\n" if self._begun else "[\n")
            self._begun = True
            self._out.write(f" {line}")

    def close(self) -> None:
        self._write(self._totals.close())
        self._out.write("\n]\n" if self._begun else "[]\n")
        self._out.flush()
