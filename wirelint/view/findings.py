"""Texts about a finding that all output formats share: its place, its fix, its recurrence, its JSON object."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, get_args

from wirelint.fix import AppliedFix
from wirelint.model import Confidence, Json, Layer, Side
from wirelint.prices import tokens_of
from wirelint.registry import page_url
from wirelint.rule import SEVERITIES, Finding, Fix, Severity
from wirelint.state.issues import Issue, fingerprint
from wirelint.text.escaping import counted, printable

if TYPE_CHECKING:
    from wirelint.capture.offline import Checked

_LABELS = ("code", "name", "severity", "confidence", "layer", "side")
_KINDS = {"severity": Severity, "confidence": Confidence, "layer": Layer, "side": Side}
_WORDS = {name: get_args(kind) for name, kind in _KINDS.items()}
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MARKS = {"error": "●", "warning": "▲", "info": "·"}
STYLES = {"error": "red", "warning": "yellow", "info": "cyan"}


class Writer(Protocol):
    """An output format: takes checked exchanges one by one and is closed at the end."""

    def add(self, checked: Checked) -> None: ...

    def close(self) -> None: ...


def flat(checked: Checked, finding: Finding) -> dict[str, Json]:
    """Return a flat JSON object for a finding: a line of `--output-format jsonl`."""
    exchange, fix = checked.exchange, finding.fix
    issue = finding.issue or Issue("", checked.record.id, checked.record.id)
    return {
        **{name: getattr(finding, name) for name in (*_LABELS, "pointer", "event", "message")},
        "fingerprint": fingerprint(finding),
        "issue": issue.id or None,
        "first_seen": issue.first,
        "last_seen": issue.last,
        "count": issue.count,
        "source": unicode_text(checked.record.source),
        "exchange": checked.record.id,
        "api": exchange.api if exchange is not None else None,
        "model": exchange.model if exchange is not None else None,
        "fix": {"safety": fix.safety, "title": fix.title} if fix is not None else None,
        **({"finding_source": finding.source} if finding.source != "rule" else {}),
    }


def annotations_of(checked: Checked) -> dict[str, Json]:
    """Return the members of a line of `exchanges.jsonl` beside the bytes, with the findings of earlier turns."""
    exchange, reply = checked.exchange, checked.reply
    tokens = tokens_of(reply.usage) if reply is not None else None
    return {
        "api": checked.api or None,
        "model": checked.model or None,
        "conversation": checked.conversation,
        **({"root": exchange.root} if exchange is not None and exchange.root is not None else {}),
        **({"tokens": tokens.document} if tokens is not None else {}),
        "findings": [flat(checked, finding) for finding in checked.findings],
        "notes": list[Json](checked.record.notes),
    }


@dataclass(slots=True)
class Repeat:
    """Findings with one fingerprint, over conversations and files. `finding` is the first of them.

    `first`, `last`: record ids of exchanges. `count`: number of exchanges, with those whose findings are known from
    earlier turns.
    """

    finding: Finding
    source: str
    first: str
    last: str
    count: int = 0

    @property
    def document(self) -> dict[str, Json]:
        one = self.finding
        words = {name: getattr(one, name) for name in _LABELS}
        places = {"source": unicode_text(self.source), "first_seen": self.first, "last_seen": self.last}
        return {"fingerprint": fingerprint(one), **words, "message": one.message, **places, "count": self.count}

    @property
    def seen(self) -> str:
        """`12 exchanges, first 3f2a9c11, last 77b01c2d`; `1 exchange, 3f2a9c11` for a single one."""
        ids = f"first {short_id(self.first)}, last {short_id(self.last)}" if self.count > 1 else short_id(self.first)
        return f"{counted(self.count, 'exchange')}, {ids}"


class Repeats:
    """Findings of a run, grouped by fingerprint (`found`). `exchanges`: exchanges added."""

    def __init__(self) -> None:
        self.found: dict[str, Repeat] = {}
        self.exchanges = 0
        self._shown = set[str]()

    def add(self, checked: Checked) -> tuple[Finding, ...]:
        """Add an exchange. Return the first of its `findings` of each fingerprint that was not returned before."""
        self.exchanges += 1
        new, here = list[Finding](), checked.record.id
        for print_, finding in {fingerprint(one): one for one in (*checked.known, *checked.findings[::-1])}.items():
            repeat = self.found.setdefault(print_, Repeat(finding, checked.record.source, here, here))
            repeat.count, repeat.last = repeat.count + 1, here
            if print_ not in self._shown and not finding.is_known:
                self._shown.add(print_)
                new.append(finding)
        return tuple(one for one in checked.findings if any(one is other for other in new))

    def ordered(self) -> list[Repeat]:
        """Return the groups, worst severity first, then most exchanges first."""
        rank = SEVERITIES.index
        return sorted(self.found.values(), key=lambda one: (rank(one.finding.severity), -one.count))


def read_finding(value: object) -> Finding | None:
    """Return the finding of a JSON object that `flat` made; None if a member is missing or has an unknown word."""
    if not isinstance(value, dict) or any(value.get(name) not in words for name, words in _WORDS.items()):
        return None
    match value:
        case {"code": str(code), "name": str(name), "message": str(message)}:
            words = value["severity"], value["confidence"], value["layer"], value["side"]
        case _:
            return None
    pointer, event, fix = value.get("pointer"), value.get("event"), None
    match value.get("fix"):
        case {"safety": "safe" | "unsafe" as safety, "title": str(title)}:
            fix = Fix(safety, title)
    place = pointer if isinstance(pointer, str) else None, event if isinstance(event, int) else None
    return Finding(code, name, *words, message, *place, fix)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings ordered by severity, errors first; the order within a severity is kept."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def worst(findings: Iterable[Finding]) -> Severity | None:
    """Return the highest severity among findings; None if there are none."""
    return min((finding.severity for finding in findings), key=SEVERITIES.index, default=None)


def tally(findings: Sequence[Finding]) -> str:
    """Return counts by severity: `1 error, 2 warnings`; empty without findings."""
    return count_by_severity(Counter(finding.severity for finding in findings))


def count_by_severity(counts: Mapping[str, int]) -> str:
    """Return `1 error, 2 warnings, 3 info`; severities without findings are left out."""
    found = [(severity, counts[severity]) for severity in SEVERITIES if counts.get(severity)]
    return ", ".join(f"{count} {name}" if name == "info" else counted(count, name) for name, count in found)


def known_note(known: int) -> str:
    """Return `+ 4 known from earlier turns`; empty if `known` is 0."""
    return f"+ {known} known from {'an earlier turn' if known == 1 else 'earlier turns'}" if known else ""


def recurrence(issue: Issue | None, here: str) -> str:
    """Return `first seen in 3f2a9c11; 31 later turns`; empty for an issue found once. `here`: id of the exchange shown."""
    if issue is None or issue.count < 2:
        return ""
    later = counted(issue.count - 1, "later turn")
    if issue.first == here:
        return f"first seen here; {later}, the last in {short_id(issue.last)}"
    return f"first seen in {short_id(issue.first)}; {later}"


def short_id(id_: str) -> str:
    """Return the id of an exchange for people: of a UUID the first eight characters, which `wirelint show` takes."""
    return id_[:8] if _UUID.fullmatch(id_) else visible(id_)


def fix_of(checked: Checked, finding: Finding) -> AppliedFix | None:
    """Return the fix that was applied to a finding, according to the record; None without one.

    A fix at the finding's place is its own. Fixes elsewhere count if there is one for every finding of the rule.
    """
    record = checked.record
    if (record.forwarded if finding.side == "request" else record.delivered) is None:
        return None
    made = [fix for fix in record.fixes if (fix.code, fix.side) == (finding.code, finding.side)]
    at_place = next((fix for fix in made if fix.pointer == finding.pointer), None)
    if at_place is not None or not made:
        return at_place
    found = (*checked.findings, *checked.known)
    similar = sum((other.code, other.side) == (finding.code, finding.side) for other in found)
    return made[0] if len(made) >= similar else None


def remedy(checked: Checked, finding: Finding) -> str:
    """Describe the fix of a finding, applied or offered; empty if it has none."""
    made = fix_of(checked, finding)
    if made is not None:
        return printable(f"fixed ({made.safety}): {made.title}")
    return printable(f"fix ({finding.fix.safety}): {finding.fix.title}") if finding.fix is not None else ""


def title_style(finding: Finding) -> str:
    """Return the style of a finding's name: on terminals that have links, it leads to the page of the rule."""
    page = page_url(finding.name)
    return f"bold {STYLES[finding.severity]}{f' link {page}' if page else ''}"


def note_of(finding: Finding) -> list[tuple[str, str]]:
    """Return `● xml-leak (gateway) message  [place]` as pieces with their styles."""
    style = STYLES[finding.severity]
    head = f"{MARKS[finding.severity]} {finding.name}", title_style(finding)
    return [head, (f" ({finding.layer}) {finding.message}", style), (f"  [{place(finding)}]", "dim")]


def place(found: Finding | AppliedFix) -> str:
    """Return the place of a finding or fix: `response /choices/0/message/content, event 12`."""
    where = f"{found.side} {found.pointer}" if found.pointer else found.side
    return f"{where}, event {found.event}" if found.event is not None else where


def visible(text: str) -> str:
    """Escape wire text of several lines: all control characters except line feeds and tabs."""
    return printable(text, "\n\t")


def unicode_text(text: str) -> str:
    """Replace characters that cannot be encoded as UTF-8: file names may hold other bytes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
