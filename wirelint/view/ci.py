"""Output formats for programs: JSON, JSON lines, GitHub workflow commands, GitLab code quality, JUnit; files and lines."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import orjson

from wirelint.capture.offline import Checked, Occurrences
from wirelint.capture.record import Record
from wirelint.model import Json as Value
from wirelint.rule import Finding, Severity
from wirelint.state.issues import Issue, fingerprint
from wirelint.view.findings import flat, known_note, place, remedy, unicode_text, visible, worst

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}
_QUALITY: dict[Severity, str] = {"error": "major", "warning": "minor", "info": "info"}
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE = re.compile(r"line (\d{1,9})")
_INPUT = "stdin"


# --- where a record is in files ---------------------------------------------------------------------------------------


def line_of(record: Record) -> int | None:
    """The line of a record in its file; None if records of the file are not lines."""
    found = _LINE.fullmatch(record.place)
    return int(found[1]) if found else None


def path_of(record: Record) -> str:
    """The path of a record's file with slashes: relative if below the working directory, else as it was given."""
    return unicode_text(_path(record))


def _path(record: Record) -> str:
    if record.source in ("", "-"):
        return _INPUT
    path = Path(os.path.abspath(record.source))
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return Path(record.source).as_posix()


def uri_of(record: Record) -> str:
    """The path as a URI reference; a `file:` URI if it is not below the working directory."""
    path = _path(record)
    if os.path.isabs(path):
        return Path(path).as_uri()
    return quote(os.fsencode(path))


def file_place(record: Record) -> str:
    """A record's file and place: `captures/run.jsonl:3`, `capture.har entry 7`."""
    line = line_of(record)
    if line is not None:
        return f"{path_of(record)}:{line}"
    return f"{path_of(record)} {record.place}".rstrip()


# --- JSON -------------------------------------------------------------------------------------------------------------


class Totals:
    """JSON objects of the findings of one file, held until the file is read, because only then their counts are known."""

    def __init__(self, make: Callable[[Checked, Finding], dict[str, Value]]) -> None:
        self._make = make
        self._source: str | None = None
        self._held: list[tuple[dict[str, Value], Issue | None]] = []
        self._occurrences = Occurrences()

    def add(self, checked: Checked) -> Iterator[tuple[dict[str, Value], Issue | None]]:
        """Hold the findings of an exchange. Yields those of the previous file if this exchange begins another file."""
        if checked.record.source != self._source:
            yield from self.close()
            self._source = checked.record.source
        self._held += [(self._make(checked, finding), finding.issue) for finding in checked.findings]
        self._occurrences.see(checked)

    def close(self) -> Iterator[tuple[dict[str, Value], Issue | None]]:
        """Yield the held objects in order, each with its issue at the end of the file."""
        for made, issue in self._held:
            if issue is not None and not issue.known:
                issue = self._occurrences.total(self._source or "", issue)
            yield made, issue
        self._held, self._occurrences = [], Occurrences()


class JsonArray:
    """Base of formats that are one JSON array, an object per line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._begun = False

    def _write(self, value: Value) -> None:
        self._out.write((",\n " if self._begun else "[\n ") + orjson.dumps(value).decode())
        self._begun = True

    def close(self) -> None:
        self._out.write("\n]\n" if self._begun else "[]\n")
        self._out.flush()


class JsonLines:
    """One object per issue and line, written when its file has been read."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._totals = out, Totals(flat)

    def add(self, checked: Checked) -> None:
        self._write(self._totals.add(checked))

    def close(self) -> None:
        self._write(self._totals.close())
        self._out.flush()

    def _write(self, found: Iterator[tuple[dict[str, Value], Issue | None]]) -> None:
        self._out.writelines(orjson.dumps(_counted(*one)).decode() + "\n" for one in found)


class Json(JsonArray):
    """An array of the objects of `JsonLines`."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        self._totals = Totals(flat)

    def add(self, checked: Checked) -> None:
        for one in self._totals.add(checked):
            self._write(_counted(*one))

    def close(self) -> None:
        for one in self._totals.close():
            self._write(_counted(*one))
        super().close()


def _counted(made: dict[str, Value], issue: Issue | None) -> dict[str, Value]:
    return made | {"last_seen": issue.last, "count": issue.count} if issue is not None else made


# --- pipelines --------------------------------------------------------------------------------------------------------


class Github:
    """A workflow command per line: GitHub Actions makes an annotation of each, at the line of the capture."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def add(self, checked: Checked) -> None:
        line = line_of(checked.record)
        for finding in checked.findings:
            fields = {"file": path_of(checked.record), "title": f"{finding.code} {finding.name}"}
            if line is not None:
                fields["line"] = str(line)
            shown = ",".join(f"{name}={_property(value)}" for name, value in fields.items())
            self._out.write(f"::{_COMMANDS[finding.severity]} {shown}::{_data(_sentence(checked, finding))}\n")

    def close(self) -> None:
        self._out.flush()


class Gitlab(JsonArray):
    """A code quality report. Fingerprints are stable; equal findings are numbered."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        self._seen = Counter[str]()

    def add(self, checked: Checked) -> None:
        for finding in checked.findings:
            self._write({
                "description": _sentence(checked, finding),
                "check_name": f"{finding.code} {finding.name}",
                "fingerprint": self._unique(f"{path_of(checked.record)}\n{fingerprint(finding)}"),
                "severity": _QUALITY[finding.severity],
                "location": {"path": path_of(checked.record), "lines": {"begin": line_of(checked.record) or 1}},
            })  # fmt: skip

    def _unique(self, name: str) -> str:
        self._seen[name] += 1
        return hashlib.sha256(f"{name}\n{self._seen[name]}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Junit:
    """A suite per file, a case per exchange: failed by warnings and errors, skipped if its API is unrecognised."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._suites: dict[str, list[str]] = {}
        self._counts: dict[str, Counter[str]] = {}

    def add(self, checked: Checked) -> None:
        name = path_of(checked.record)
        counts = self._counts.setdefault(name, Counter())
        counts["tests"] += 1
        self._suites.setdefault(name, []).append(_case(checked, counts))

    def close(self) -> None:
        total = sum(self._counts.values(), Counter[str]())
        self._out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        self._out.write(f'<testsuites name="wirelint"{_counts(total)}>\n')
        for name, cases in self._suites.items():
            self._out.write(f"  <testsuite name={_attribute(name)}{_counts(self._counts[name])}>\n")
            self._out.writelines(cases)
            self._out.write("  </testsuite>\n")
        self._out.write("</testsuites>\n")
        self._out.flush()


def _case(checked: Checked, counts: Counter[str]) -> str:
    exchange, record = checked.exchange, checked.record
    model = ".".join(part for part in (exchange.api, exchange.model) if part) if exchange else ""
    took = record.timing.duration
    head = f"    <testcase classname={_attribute(model or 'unknown')} name={_attribute(record.id)}"
    head += f" file={_attribute(path_of(record))}"
    if (line := line_of(record)) is not None:
        head += f' line="{line}"'
    head += f' time="{max(took or 0.0, 0.0) / 1000:.3f}"'
    lines = [f"{finding.severity} {finding.code} {finding.name}: {_sentence(checked, finding)}"
             for finding in checked.findings]  # fmt: skip
    if note := known_note(len(checked.known)):
        lines.append(note)
    text = escape(_xml("\n".join(lines)))
    severity = worst(checked.findings)
    if severity in ("error", "warning"):
        counts["failures"] += 1
        names = ", ".join(dict.fromkeys(finding.name for finding in checked.findings))
        message = _attribute(f"{names} at {file_place(record)}")
        return f'{head}>\n      <failure type="{severity}" message={message}>{text}</failure>\n    </testcase>\n'
    if lines:
        return f"{head}>\n      <system-out>{text}</system-out>\n    </testcase>\n"
    if exchange is None:
        counts["skipped"] += 1
        return f'{head}>\n      <skipped message="unrecognised API"/>\n    </testcase>\n'
    return f"{head}/>\n"


def _sentence(checked: Checked, finding: Finding) -> str:
    text = f"{finding.message} [{finding.layer}, exchange {visible(checked.record.id)}, {place(finding)}]"
    fix = remedy(checked, finding)
    return f"{text}; {fix}" if fix else text


def _counts(counts: Counter[str]) -> str:
    return "".join(f' {name}="{counts[name]}"' for name in ("tests", "failures", "errors", "skipped"))


def _attribute(text: str) -> str:
    return quoteattr(_xml(" ".join(text.split())))


def _xml(text: str) -> str:
    """Text with characters that XML cannot hold replaced."""
    return _NOT_XML.sub("�", text)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
