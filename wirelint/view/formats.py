"""Output formats of findings: one line each, JSON, JSON lines, SARIF, GitHub, GitLab and JUnit; files and lines of records.

A writer takes checked exchanges one by one. In JSON, JSON lines and SARIF each finding has the number of its
occurrences, so its object is written after the whole file has been read. `FORMATS` maps the names of `--output-format`
to writers.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import orjson

from wirelint import __version__
from wirelint.capture.offline import Checked, Occurrences
from wirelint.capture.record import Record
from wirelint.engine import INTERNAL, INTERNAL_NAME
from wirelint.lexicon import lazy_pattern
from wirelint.model import Json as Value
from wirelint.registry import Registry, page_url, safeties, summary
from wirelint.rule import Finding, Rule, Severity
from wirelint.state.issues import Issue, fingerprint
from wirelint.text.escaping import printable
from wirelint.view.findings import (
    Repeat,
    Repeats,
    Writer,
    flat,
    known_note,
    place,
    remedy,
    unicode_text,
    visible,
    worst,
)
from wirelint.view.text import Full

_COMMANDS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "notice"}
_QUALITY: dict[Severity, str] = {"error": "major", "warning": "minor", "info": "info"}
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LINK = re.compile(r"\[([^\[\]]*)\]\(")
_NOT_XML = lazy_pattern("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE = re.compile(r"line (\d{1,9})")
_PROPERTIES = (
    *("layer", "confidence", "side", "pointer", "event", "exchange", "api", "model", "fix", "issue", "finding_source"),
)


def line_of(record: Record) -> int | None:
    """Return the line of a record in its file; None if records of the file are not lines."""
    found = _LINE.fullmatch(record.place)
    return int(found[1]) if found else None


def path_of(record: Record) -> str:
    """Return the path of a record's file with slashes: relative if below the working directory, else as it was given."""
    return unicode_text(_path(record))


def _path(record: Record) -> str:
    if record.source in ("", "-"):
        return "stdin"
    path = Path(os.path.abspath(record.source))
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return Path(record.source).as_posix()


def uri_of(record: Record) -> str:
    """Return the path as a URI reference; a `file:` URI if it is not below the working directory."""
    path = _path(record)
    return Path(path).as_uri() if os.path.isabs(path) else quote(os.fsencode(path))


class Format:
    """Base of the formats: text to `out`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def close(self) -> None:
        self._out.flush()


class Json(Format):
    """An array with one object per finding, held until its file is read and its occurrences are known.

    `grouped`: one object per file and fingerprint, with the number of its exchanges.
    """

    _opening, _gap, _closing, _empty = "[\n ", ",\n ", "\n]\n", "[]\n"

    def __init__(self, out: TextIO, *, grouped: bool = False) -> None:
        super().__init__(out)
        self._source, self._is_grouped, self._begun = "", grouped, False
        self._held: list[tuple[dict[str, Value], Finding]] = []
        self._occurrences, self._repeats = Occurrences(), Repeats()

    def add(self, checked: Checked) -> None:
        if checked.record.source != self._source:
            self._write_held()
            self._source = checked.record.source
        findings = self._repeats.add(checked) if self._is_grouped else checked.findings
        self._held += [(self._make(checked, finding), finding) for finding in findings]
        self._occurrences.see(checked)

    def close(self) -> None:
        self._write_held()
        self._out.write(self._closing if self._begun else self._empty)
        super().close()

    def _write_held(self) -> None:
        for made, finding in self._held:
            issue = finding.issue
            if issue is not None and not issue.known:
                issue = self._occurrences.total(self._source, issue)
            made = self._finished(made, issue, self._repeats.found.get(fingerprint(finding)))
            self._out.write((self._gap if self._begun else self._opening) + self._encoded(made))
            self._begun = True
        self._held, self._occurrences, self._repeats = [], Occurrences(), Repeats()

    def _make(self, checked: Checked, finding: Finding) -> dict[str, Value]:
        return flat(checked, finding)

    def _encoded(self, made: dict[str, Value]) -> str:
        return _text(made)

    def _finished(self, made: dict[str, Value], issue: Issue | None, repeat: Repeat | None) -> dict[str, Value]:
        """Return the object of a finding with its occurrences in the file: `issue`, and `repeat` if `grouped`."""
        return made | {"last_seen": issue.last, "count": issue.count} if issue is not None else made


class JsonLines(Json):
    """The objects of `Json`, one per line."""

    _opening, _gap, _closing, _empty = "", "\n", "\n", ""


class Concise(Format):
    """One line per finding, for grep: `source:exchange: CODE name severity layer side pointer: message`."""

    def add(self, checked: Checked) -> None:
        for finding in checked.findings:
            where = f"{checked.record.source}:{checked.record.id}"
            what = f"{finding.code} {finding.name} {finding.severity} {finding.layer} {place(finding)}"
            self._out.write(printable(f"{where}: {what}: {finding.message}") + "\n")


class Github(JsonLines):
    """A workflow command per line. GitHub Actions makes annotations of the first ten errors and warnings of a step."""

    def _make(self, checked: Checked, finding: Finding) -> dict[str, Value]:
        line = line_of(checked.record)
        fields = {"file": path_of(checked.record), "title": f"{finding.code} {finding.name}"}
        if line is not None:
            fields["line"] = str(line)
        escaped = (f"{key}={_data(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in fields.items())
        return {"command": f"{_COMMANDS[finding.severity]} {','.join(escaped)}", "text": _sentence(checked, finding)}

    def _finished(self, made: dict[str, Value], issue: Issue | None, repeat: Repeat | None) -> dict[str, Value]:
        return made | {"text": f"{made['text']}{_again(repeat)}"}

    def _encoded(self, made: dict[str, Value]) -> str:
        return f"::{made['command']}::{_data(str(made['text']))}"


class Gitlab(Json):
    """A code quality report with stable fingerprints. Equal findings of a file are numbered, unless `grouped`."""

    def __init__(self, out: TextIO, *, grouped: bool = False) -> None:
        super().__init__(out, grouped=grouped)
        self._seen = Counter[str]()

    def _make(self, checked: Checked, finding: Finding) -> dict[str, Value]:
        path = path_of(checked.record)
        name = f"{path}\n{fingerprint(finding)}"
        self._seen[name] += 1
        unique = hashlib.sha256(f"{name}\n{self._seen[name]}".encode("utf-8", "surrogatepass"))
        return {
            "description": _sentence(checked, finding),
            "check_name": f"{finding.code} {finding.name}",
            "fingerprint": unique.hexdigest()[:32],
            "severity": _QUALITY[finding.severity],
            "location": {"path": path, "lines": {"begin": line_of(checked.record) or 1}},
        }

    def _finished(self, made: dict[str, Value], issue: Issue | None, repeat: Repeat | None) -> dict[str, Value]:
        return made | {"description": f"{made['description']}{_again(repeat)}"}


class Junit(Format):
    """A suite per file, a case per exchange: failed by warnings and errors, skipped if its API is unrecognised."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        self._suites: dict[str, Element] = {}

    def add(self, checked: Checked) -> None:
        name = path_of(checked.record)
        self._suites.setdefault(name, Element("testsuite", name=_attribute(name))).append(_case(checked))

    def close(self) -> None:
        root = Element("testsuites", name="wirelint")
        root.extend(self._suites.values())
        for one in (root, *root):
            names = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
            one.attrib |= {count: str(sum(1 for _ in one.iter(name))) for count, name in names.items()}
        indent(root)
        self._out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, "unicode")}\n')
        super().close()


def _case(checked: Checked) -> Element:
    exchange, record = checked.exchange, checked.record
    model = ".".join(filter(None, (checked.api, checked.model)))
    line = line_of(record)
    places = {"file": path_of(record), **({"line": str(line)} if line is not None else {})}
    facts = {"classname": model or "unknown", "name": record.id, **places}
    facts["time"] = f"{max(record.timing.duration or 0.0, 0.0) / 1000:.3f}"
    case = Element("testcase", {name: _attribute(value) for name, value in facts.items()})
    lines = [f"{finding.severity} {finding.code} {finding.name}: {_sentence(checked, finding)}"
             for finding in checked.findings]  # fmt: skip
    if note := known_note(len(checked.known)):
        lines.append(note)
    severity = worst(checked.findings)
    if severity in ("error", "warning"):
        names = ", ".join(dict.fromkeys(finding.name for finding in checked.findings))
        at = f":{line}" if line is not None else f" {record.place}"  # `captures/run.jsonl:3`, `capture.har entry 7`
        message = _attribute(f"{names} at {path_of(record)}{at}".rstrip())
        SubElement(case, "failure", type=severity, message=message).text = _xml("\n".join(lines))
    elif lines:
        SubElement(case, "system-out").text = _xml("\n".join(lines))
    elif exchange is None:
        SubElement(case, "skipped", message="unrecognised API")
    return case


def _sentence(checked: Checked, finding: Finding) -> str:
    where = f"{finding.layer}, exchange {visible(checked.record.id)}, {place(finding)}"
    return "; ".join(filter(None, (f"{finding.message} [{where}]", remedy(checked, finding))))


def _again(repeat: Repeat | None) -> str:
    return f" ({repeat.seen})" if repeat is not None and repeat.count > 1 else ""


def _attribute(text: str) -> str:
    return _xml(" ".join(text.split()))


def _xml(text: str) -> str:
    return _NOT_XML.sub("�", text)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


class Sarif(Json):
    """SARIF 2.1.0, for code scanning by GitHub, Azure DevOps and editors: one run, with the rules' manuals as help.

    `rules`: those that ran; by default the shipped rules. They are written first.
    """

    _gap, _closing = ",\n", "\n]}]}\n"

    def __init__(self, out: TextIO, rules: Sequence[Rule] = (), *, grouped: bool = False) -> None:
        super().__init__(out, grouped=grouped)
        rules = rules or Registry.load().rules
        self._numbers = {code: number for number, code in enumerate([*(rule.code for rule in rules), INTERNAL])}
        text = "A rule or a reader of wirelint failed on this exchange; the other rules were applied."
        words: dict[str, Value] = {"shortDescription": {"text": text}, "help": {"text": text}}
        described: list[Value] = [*map(_descriptor, rules), {"id": INTERNAL, "name": INTERNAL_NAME, **words}]
        tool = _text({"driver": {"name": "wirelint", "semanticVersion": __version__, "rules": described}})
        head = f'{{"$schema": "{_SCHEMA}", "version": "2.1.0", "runs": [{{"tool": {tool},\n'
        self._opening = f'{head}"columnKind": "unicodeCodePoints", "results": [\n'
        self._empty = self._opening + self._closing

    def _finished(self, made: dict[str, Value], issue: Issue | None, repeat: Repeat | None) -> dict[str, Value]:
        count = 1 if issue is None or issue.known else issue.count
        return {**made, "occurrenceCount": repeat.count if repeat is not None else count}

    def _make(self, checked: Checked, finding: Finding) -> dict[str, Value]:
        record, facts = checked.record, flat(checked, finding)
        line = line_of(record)
        region: dict[str, Value] = {"region": {"startLine": line}} if line is not None else {}
        physical: dict[str, Value] = {"artifactLocation": {"uri": uri_of(record)}, **region}
        where: Value = {"name": record.id, "fullyQualifiedName": f"{record.id} {place(finding)}", "kind": "member"}
        text = f"{finding.message} [{finding.layer}, {place(finding)}]", remedy(checked, finding)
        result: dict[str, Value] = {
            "ruleId": finding.code,
            "level": _LEVELS[finding.severity],
            # SARIF makes links of `[words](target)` in messages.
            "message": {"text": _LINK.sub(r"\\[\1\\](", "; ".join(filter(None, text)))},
            "locations": [{"physicalLocation": physical, "logicalLocations": [where]}],
            "partialFingerprints": {"wirelint/v1": fingerprint(finding)},
            "properties": {name: facts[name] for name in _PROPERTIES if name in facts} | {"place": record.place},
        }
        number = self._numbers.get(finding.code)
        return result if number is None else {**result, "ruleIndex": number}


def _descriptor(rule: Rule) -> dict[str, Value]:
    manual = inspect.getdoc(rule) or ""
    described = " ".join(manual.partition("## What it does")[2].partition("\n## ")[0].split())
    severity: Severity = rule.graded or rule.severity
    kinds: list[Value] = [rule.layer, *(f"fix-{safety}" for safety in safeties(rule))]
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": f"{summary(rule)}."},
        "fullDescription": {"text": described or f"{summary(rule)}."},
        "help": {"text": manual, "markdown": f"# {rule.name} ({rule.code})\n\n{manual}"},
        **({"helpUri": page} if (page := page_url(rule.name)) else {}),
        "defaultConfiguration": {"level": _LEVELS[severity]},
        "properties": {
            "tags": kinds,
            "precision": rule.confidence,
            "problem.severity": "recommendation" if severity == "info" else severity,
        },
    }


def _text(value: Value) -> str:
    return orjson.dumps(value).decode()


FORMATS: dict[str, Callable[..., Writer]] = {
    "full": Full,
    "concise": Concise,
    "json": Json,
    "jsonl": JsonLines,
    "sarif": Sarif,
    "github": Github,
    "gitlab": Gitlab,
    "junit": Junit,
}


def begin(output_format: str, out: TextIO, rules: Sequence[Rule] = (), *, grouped: bool = False) -> Writer:
    """Return a writer of a format. `rules`: those that ran, for formats that describe rules.

    `grouped`: formats for people and for lists of issues have one entry per fingerprint, with its number of exchanges.
    """
    made = FORMATS[output_format]
    if made is Sarif:
        return Sarif(out, rules, grouped=grouped)
    return made(out, grouped=grouped) if made in (Full, Github, Gitlab) else made(out)
