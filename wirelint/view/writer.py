"""What every output format is: something that takes checked exchanges and is closed at the end."""

from __future__ import annotations

from typing import Protocol

from wirelint.capture.offline import Checked
from wirelint.fix import AppliedFix
from wirelint.model import Json
from wirelint.rule import Finding
from wirelint.state.issues import Issue, fingerprint
from wirelint.text.escaping import printable

MARKS = {"error": "●", "warning": "▲", "info": "·"}
STYLES = {"error": "red", "warning": "yellow", "info": "cyan"}


class Writer(Protocol):
    def add(self, checked: Checked) -> None: ...

    def close(self) -> None: ...


def flat(checked: Checked, finding: Finding) -> dict[str, Json]:
    """A finding as one flat JSON object: the line of `--output-format jsonl`."""
    exchange = checked.exchange
    fix: Json = None
    if finding.fix is not None:
        fix = {"safety": finding.fix.safety, "title": finding.fix.title}
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "layer": finding.layer,
        "side": finding.side,
        "pointer": finding.pointer,
        "event": finding.event,
        "message": finding.message,
        "fingerprint": fingerprint(finding),
        **_issue(checked, finding),
        "source": plain(checked.record.source),
        "exchange": checked.record.id,
        "api": exchange.api if exchange is not None else None,
        "model": exchange.model if exchange is not None else None,
        "fix": fix,
    }


def _issue(checked: Checked, finding: Finding) -> dict[str, Json]:
    """The issue of a finding: one that was never compared with others is its own."""
    here = checked.record.id
    issue = finding.issue or Issue("", here, here)
    return {"issue": issue.id or None, "first_seen": issue.first, "last_seen": issue.last, "count": issue.count}


def known_note(known: int) -> str:
    """`+ 4 known from earlier turns`; empty where there are none."""
    return f"+ {known} known from {'an earlier turn' if known == 1 else 'earlier turns'}" if known else ""


def recurrence(issue: Issue | None, here: str) -> str:
    """`first seen in 3f2a9c11; 31 later turns`, as far as is known; empty for an issue that was found once.

    `here` is the id of the exchange that is shown.
    """
    if issue is None or issue.count < 2:
        return ""
    later = f"{issue.count - 1} later turn{'' if issue.count == 2 else 's'}"
    if issue.first == here:
        return f"first seen here; {later}, the last in {visible(issue.last)}"
    return f"first seen in {visible(issue.first)}; {later}"


def repair_of(checked: Checked, finding: Finding) -> AppliedFix | None:
    """The repair that was made of what a finding is about, as far as the record tells; None when none was."""
    record = checked.record
    if (record.forwarded if finding.side == "request" else record.delivered) is None:
        return None
    made = [repair for repair in record.fixes if (repair.code, repair.side) == (finding.code, finding.side)]
    at_place = next((repair for repair in made if repair.pointer == finding.pointer), None)
    if at_place is not None or not made:
        return at_place
    found = (*checked.findings, *checked.known)
    alike = sum((other.code, other.side) == (finding.code, finding.side) for other in found)
    return made[0] if len(made) >= alike else None


def remedy(checked: Checked, finding: Finding) -> str:
    """What was repaired, or could be; empty when nothing can."""
    made = repair_of(checked, finding)
    if made is not None:
        return printable(f"fixed ({made.safety}): {made.title}")
    return printable(f"fix ({finding.fix.safety}): {finding.fix.title}") if finding.fix is not None else ""


def plain(text: str) -> str:
    """Text that is Unicode: names of files may hold other bytes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def visible(text: str) -> str:
    """Text of the wire in several lines: line ends and tabs stay, everything else that a terminal would obey is shown."""
    return printable(text, "\n\t")


def place(finding: Finding) -> str:
    """Where a finding points: `response /choices/0/message/content, event 12`."""
    where = f"{finding.side} {finding.pointer}" if finding.pointer else finding.side
    return f"{where}, event {finding.event}" if finding.event is not None else where
