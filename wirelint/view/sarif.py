"""SARIF 2.1.0, for code scanning by GitHub, Azure DevOps and editors, with the rules' manuals as help.

The rules are written first. The results of a capture follow when all of it has been read, because each result has the
number of its occurrences.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import TextIO

import orjson

from wirelint import __version__
from wirelint.capture.offline import Checked
from wirelint.engine import INTERNAL, INTERNAL_NAME
from wirelint.model import Json
from wirelint.registry import Registry, safeties, summary
from wirelint.rule import Finding, Rule, Severity
from wirelint.state.issues import Issue, fingerprint
from wirelint.view.ci import Totals, line_of, uri_of
from wirelint.view.findings import flat, place, remedy

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LINK = re.compile(r"\[([^\[\]]*)\]\(")
LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


class Sarif:
    """One run of one tool. `rules`: those that ran; by default the shipped rules."""

    def __init__(self, out: TextIO, rules: Sequence[Rule] = ()) -> None:
        self._out = out
        self._rules = tuple(rules) or Registry.load().rules
        self._numbers = {rule.code: number for number, rule in enumerate(self._rules)}
        self._numbers[INTERNAL] = len(self._rules)
        self._begun = False
        self._totals = Totals(self._result)

    def add(self, checked: Checked) -> None:
        self._write(self._totals.add(checked))

    def close(self) -> None:
        self._write(self._totals.close())
        self._begin(last=True)
        self._out.write("\n]}]}\n")
        self._out.flush()

    def _write(self, found: Iterator[tuple[dict[str, Json], Issue | None]]) -> None:
        for result, issue in found:
            self._begin()
            count = 1 if issue is None or issue.known else issue.count
            self._out.write(_text({**result, "occurrenceCount": count}))

    def _begin(self, *, last: bool = False) -> None:
        if self._begun:
            self._out.write("" if last else ",\n")
            return
        self._begun = True
        driver: dict[str, Json] = {
            "name": "wirelint",
            "semanticVersion": __version__,
            "rules": [*(_descriptor(rule) for rule in self._rules), _internal()],
        }
        tool = _text({"driver": driver})
        self._out.write(f'{{"$schema": "{SCHEMA}", "version": "2.1.0", "runs": [{{"tool": {tool},\n')
        self._out.write('"columnKind": "unicodeCodePoints", "results": [\n')

    def _result(self, checked: Checked, finding: Finding) -> dict[str, Json]:
        record, fix = checked.record, remedy(checked, finding)
        line = line_of(record)
        physical: dict[str, Json] = {"artifactLocation": {"uri": uri_of(record)}}
        if line is not None:
            physical["region"] = {"startLine": line}
        where: Json = {"name": record.id, "fullyQualifiedName": f"{record.id} {place(finding)}", "kind": "member"}
        text = f"{finding.message} [{finding.layer}, {place(finding)}]"
        result: dict[str, Json] = {
            "ruleId": finding.code,
            "level": LEVELS[finding.severity],
            "message": {"text": _no_links(f"{text}; {fix}" if fix else text)},
            "locations": [{"physicalLocation": physical, "logicalLocations": [where]}],
            "partialFingerprints": {"wirelint/v1": fingerprint(finding)},
            "properties": _properties(checked, finding),
        }
        number = self._numbers.get(finding.code)
        return result if number is None else {**result, "ruleIndex": number}


_PROPERTIES = ("layer", "confidence", "side", "pointer", "event", "exchange", "api", "model", "fix", "issue")


def _properties(checked: Checked, finding: Finding) -> dict[str, Json]:
    value = flat(checked, finding)
    return {name: value[name] for name in _PROPERTIES} | {"place": checked.record.place}


def _descriptor(rule: Rule) -> dict[str, Json]:
    manual = inspect.getdoc(rule) or ""
    severity: Severity = rule.graded or rule.severity
    kinds: list[Json] = [rule.layer, *(f"fix-{safety}" for safety in safeties(rule))]
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": f"{summary(rule)}."},
        "fullDescription": {"text": _section(manual, "What it does") or f"{summary(rule)}."},
        "help": {"text": manual, "markdown": f"# {rule.name} ({rule.code})\n\n{manual}"},
        "defaultConfiguration": {"level": LEVELS[severity]},
        "properties": {
            "tags": kinds,
            "precision": {"high": "high", "medium": "medium", "low": "low"}[rule.confidence],
            "problem.severity": "recommendation" if severity == "info" else severity,
        },
    }


def _internal() -> dict[str, Json]:
    text = "A rule or a reader of wirelint failed on this exchange; the other rules were applied."
    return {"id": INTERNAL, "name": INTERNAL_NAME, "shortDescription": {"text": text}, "help": {"text": text}}


def _section(manual: str, heading: str) -> str:
    return " ".join(manual.partition(f"## {heading}")[2].partition("\n## ")[0].split())


def _no_links(text: str) -> str:
    """Wire text without links: SARIF makes links of `[words](target)` in messages."""
    return _LINK.sub(r"\\[\1\\](", text)


def _text(value: dict[str, Json]) -> str:
    return orjson.dumps(value).decode()
