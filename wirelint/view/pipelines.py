"""Formats for pipelines: GitHub's workflow commands, GitLab's code quality report, JUnit's XML."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

import orjson

from wirelint.capture.offline import Checked
from wirelint.model import Json
from wirelint.rule import SEVERITIES, Finding, Severity
from wirelint.state.issues import fingerprint
from wirelint.view.locations import file_place, line_of, path_of
from wirelint.view.writer import known_note, place, remedy, visible

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}
_QUALITY: dict[Severity, str] = {"error": "major", "warning": "minor", "info": "info"}
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Github:
    """A workflow command a line: GitHub Actions makes an annotation of each, at the line of the capture."""

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


class Gitlab:
    """A code quality report: a JSON array. Fingerprints are stable, and those of equal findings numbered."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._seen = Counter[str]()
        self._begun = False

    def add(self, checked: Checked) -> None:
        for finding in checked.findings:
            issue: dict[str, Json] = {
                "description": _sentence(checked, finding),
                "check_name": f"{finding.code} {finding.name}",
                "fingerprint": self._unique(f"{path_of(checked.record)}\n{fingerprint(finding)}"),
                "severity": _QUALITY[finding.severity],
                "location": {"path": path_of(checked.record), "lines": {"begin": line_of(checked.record) or 1}},
            }
            self._out.write(",\n" if self._begun else "[\n")
            self._begun = True
            self._out.write(" " + orjson.dumps(issue).decode())

    def close(self) -> None:
        self._out.write("\n]\n" if self._begun else "[]\n")
        self._out.flush()

    def _unique(self, name: str) -> str:
        self._seen[name] += 1
        return hashlib.sha256(f"{name}\n{self._seen[name]}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Junit:
    """A suite per file, a case per exchange: failed by warnings and errors, skipped where it is of no known API."""

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
        self._out.write(f'<testsuites name="wirelint"{_counted(total)}>\n')
        for name, cases in self._suites.items():
            self._out.write(f"  <testsuite name={_attribute(name)}{_counted(self._counts[name])}>\n")
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
    worst = next((one for one in SEVERITIES if any(f.severity == one for f in checked.findings)), None)
    if worst in ("error", "warning"):
        counts["failures"] += 1
        names = ", ".join(dict.fromkeys(finding.name for finding in checked.findings))
        said = _attribute(f"{names} at {file_place(record)}")
        return f'{head}>\n      <failure type="{worst}" message={said}>{text}</failure>\n    </testcase>\n'
    if lines:
        return f"{head}>\n      <system-out>{text}</system-out>\n    </testcase>\n"
    if exchange is None:
        counts["skipped"] += 1
        return f'{head}>\n      <skipped message="of no API that is understood"/>\n    </testcase>\n'
    return f"{head}/>\n"


def _sentence(checked: Checked, finding: Finding) -> str:
    said = f"{finding.message} [{finding.layer}, exchange {visible(checked.record.id)}, {place(finding)}]"
    repair = remedy(checked, finding)
    return f"{said}; {repair}" if repair else said


def _counted(counts: Counter[str]) -> str:
    return "".join(f' {name}="{counts[name]}"' for name in ("tests", "failures", "errors", "skipped"))


def _attribute(text: str) -> str:
    return quoteattr(_xml(" ".join(text.split())))


def _xml(text: str) -> str:
    """Text without what XML cannot hold, escaped or not."""
    return _NOT_XML.sub("�", text)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
