"""Known findings: a file of fingerprints, and what is new beside it.

The file is JSON, sorted, an entry per fingerprint, made to be kept under version control and read in reviews. Only the
fingerprint decides; everything else in an entry is for people.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from wirelint.capture.offline import Checked
from wirelint.model import Json
from wirelint.rule import Finding, Rule
from wirelint.state.issues import evidence, fingerprint, place_pattern

FORMAT = "wirelint-baseline"
VERSION = 1
_CURE = "write it anew with --write-baseline"


class BaselineError(ValueError):
    """A file that cannot be used. The text is one line: file, what is wrong, the cure."""


class Baseline:
    """What is known, and what of it has been seen in this run."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        """`known`: the code of the rule by fingerprint."""
        self._known = dict(known or {})
        self._seen = Counter[str]()
        self._found: dict[str, Finding] = {}

    @classmethod
    def load(cls, path: Path) -> Baseline:
        """Raises BaselineError."""
        try:
            document: Json = orjson.loads(path.read_bytes())
        except FileNotFoundError as error:
            raise BaselineError(f"{path}: no such file; --write-baseline writes it") from error
        except OSError as error:
            raise BaselineError(f"{path}: {error.strerror or error}; name a baseline that can be read") from error
        except orjson.JSONDecodeError as error:
            raise BaselineError(f"{path}: line {error.lineno}: no JSON: {error.msg}; {_CURE}") from error
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise BaselineError(f"{path}: not a baseline of wirelint; {_CURE}")
        version = document.get("version")
        if version != VERSION:
            raise BaselineError(f"{path}: version {version} is not {VERSION}, which this wirelint reads; {_CURE}")
        entries = document.get("findings")
        if not isinstance(entries, list):
            raise BaselineError(f"{path}: findings: not a list; {_CURE}")
        return cls(dict(_entry(path, number, entry) for number, entry in enumerate(entries, 1)))

    @property
    def known(self) -> int:
        """How many findings were known and are not reported."""
        return sum(count for print_, count in self._seen.items() if print_ in self._known)

    def news(self, checked: Checked) -> Checked:
        """The exchange with the findings that are not known."""
        new = []
        for finding in checked.findings:
            print_ = fingerprint(finding)
            self._seen[print_] += not finding.is_known
            self._found.setdefault(print_, finding)
            if print_ not in self._known:
                new.append(finding)
        return checked if len(new) == len(checked.findings) else dataclasses.replace(checked, findings=tuple(new))

    def gone(self, rules: Sequence[Rule]) -> Counter[str]:
        """Known findings that did not occur, by the names of their rules; of rules that ran."""
        names = {rule.code: rule.name for rule in rules}
        missing = (code for print_, code in self._known.items() if not self._seen[print_])
        return Counter(names[code] for code in missing if code in names)

    def write(self, path: Path) -> int:
        """Writes down what was found in this run; how many fingerprints that are. Raises BaselineError."""
        found = sorted(self._found.items(), key=lambda item: (item[1].code, place_pattern(item[1]), item[0]))
        document: Json = {
            "format": FORMAT,
            "version": VERSION,
            "findings": [_described(print_, finding, self._seen[print_]) for print_, finding in found],
        }
        try:
            path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        except OSError as error:
            raise BaselineError(f"{path}: {error.strerror or error}; name a place that can be written to") from error
        return len(found)


def _entry(path: Path, number: int, entry: Json) -> tuple[str, str]:
    match entry:
        case {"fingerprint": str(print_), "code": str(code)}:
            return print_, code
        case _:
            raise BaselineError(f"{path}: findings[{number}]: without fingerprint or code; {_CURE}")


def _described(print_: str, finding: Finding, count: int) -> Json:
    return {
        "fingerprint": print_,
        "code": finding.code,
        "name": finding.name,
        "layer": finding.layer,
        "place": f"{finding.side} {place_pattern(finding)}".rstrip(),
        "evidence": evidence(finding),
        "count": count,
    }
