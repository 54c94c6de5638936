"""What a flow shows of its verdict: comment, marker and metadata.

mitmweb's comment column is about twenty characters wide, so the comment begins with what matters. Its table has no place
for metadata, but filters find them (`~meta xml-leak`) and flow files keep them; only plain values may stand there, or the
flow could not be saved. Markers are characters that every text font has: ‼ and ⚠.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mitmproxy import http

from wirelint.addon.verdict import CheckResult, names_of, worst_of
from wirelint.addon.words import one_line, shorten
from wirelint.capture.flow_metadata import NAMES, beside_sent
from wirelint.capture.offline import Checked
from wirelint.capture.record import Record
from wirelint.engine import INTERNAL_NAME
from wirelint.model import Exchange, Json
from wirelint.rule import Finding
from wirelint.view.findings import flat

MARKERS = {"error": ":bangbang:", "warning": ":warning:"}
"""By severity. Exchanges with nothing worse than an info are not marked."""

_DETAILS = 40
_MESSAGE = 300
_COMMENTED = 160
_PREFIX = "wirelint."


@dataclass(frozen=True, slots=True)
class Annotation:
    """`metadata` is what stands on every copy of the flow; both sides of a changed exchange come to it (`sides`)."""

    comment: str
    marker: str
    metadata: dict[str, Json]


class Drawn:
    """The annotation of a verdict, made once for all who want it."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[CheckResult, Annotation] | None = None

    def of(self, verdict: CheckResult) -> Annotation:
        if self._last is None or self._last[0] is not verdict:
            self._last = verdict, annotation(verdict)
        return self._last[1]


def annotation(verdict: CheckResult) -> Annotation:
    """The annotation of a verdict. Keys of the metadata are stable; lists are bounded."""
    names, worst, fixed = names_of(verdict.new), verdict.worst, verdict.fixed
    metadata: dict[str, Json] = {
        "findings": list[Json](names),
        "severity": worst or "none",
        "api": verdict.api,
        "model": verdict.model[:200],
        "end": verdict.record.end,
        "detail": _details(verdict) if names else [],
    }
    if verdict.exchange is not None and verdict.exchange.conversation is not None:
        metadata["conversation"] = verdict.exchange.conversation
    if verdict.record.error is not None:
        metadata["error"] = verdict.record.error[:_MESSAGE]
    if verdict.known:
        metadata["known"] = verdict.known
    if fixed:
        metadata["fixed"] = list[Json](fixed)
    if verdict.notes:
        metadata["notes"] = [note[:_MESSAGE] for note in verdict.notes]
    return Annotation(
        comment=_comment(verdict, names),
        marker=MARKERS.get(worst, ""),
        metadata=prefixed(metadata),
    )


def _details(verdict: CheckResult) -> list[Json]:
    checked = Checked(verdict.record, verdict.exchange, verdict.new[:_DETAILS])
    details: list[Json] = []
    for finding in checked.findings:
        detail = flat(checked, finding)
        shown = ("code", "name", "severity", "confidence", "layer", "side", "pointer", "event", "fix")
        details.append({**{name: detail[name] for name in shown}, "message": finding.message[:_MESSAGE]})
    return details


def prefixed(metadata: Mapping[str, Json]) -> dict[str, Json]:
    return {f"{_PREFIX}{name}": value for name, value in metadata.items()}


def annotate(flow: http.HTTPFlow, made: Annotation, record: Record | None = None) -> None:
    """Puts an annotation on a flow. A comment or a marker that somebody else had set stays.

    `record` is given for an exchange that passed just now: its flow shows what was sent on, and what came in stands
    beside it. In a flow from a file both sides stay as they are there.
    """
    ours = f"{_PREFIX}findings" in flow.metadata
    several = flow.websocket is not None or flow.request.method == "GET"
    if ours and record is not None and several and _is_worse(flow, made):
        return  # many exchanges pass over one socket, or one stream of a session: it shows the worst of them
    sides = [f"{_PREFIX}{name}" for name in NAMES] if record is None else []
    for name in [name for name in flow.metadata if str(name).startswith(_PREFIX) and name not in sides]:
        del flow.metadata[name]  # of an earlier run, or of the flow that this one replays
    flow.metadata.update(made.metadata)
    if record is not None:
        flow.metadata.update(prefixed(beside_sent(record)))
    if ours or not flow.comment:
        flow.comment = made.comment
    elif made.comment not in flow.comment:
        flow.comment = f"{made.comment} | {flow.comment}"
    if ours or not flow.marked:
        flow.marked = made.marker


def early_annotation(exchange: Exchange, model: str, findings: tuple[Finding, ...]) -> Annotation:
    """The annotation of an exchange that is still under way."""
    names, worst = names_of(findings), worst_of(findings)
    head = f"{names[0]} +{len(names) - 1}" if len(names) > 1 else names[0]
    said = next(finding.message for finding in reversed(findings) if finding.name == names[0])
    facts = [part for part in (model[:60], exchange.api) if part]
    metadata: dict[str, Json] = {
        "findings": list[Json](names),
        "severity": worst,
        "api": exchange.api,
        "model": model[:200],
        "end": "open",
    }
    return Annotation(
        comment=one_line(" · ".join([head, "still open", *facts, shorten(said, _COMMENTED)])),
        marker=MARKERS.get(worst, ""),
        metadata=prefixed(metadata),
    )


def take_back(flow: http.HTTPFlow, comment: str, marker: str) -> None:
    """Takes an annotation off a flow again. What somebody else has put there since stays."""
    for name in [name for name in flow.metadata if str(name).startswith(_PREFIX)]:
        del flow.metadata[name]
    flow.comment = flow.comment.removeprefix(comment).removeprefix(" | ")
    if marker and flow.marked == marker:
        flow.marked = ""


def _is_worse(flow: http.HTTPFlow, made: Annotation) -> bool:
    ranks = ("error", "warning", "info", "none")
    before, now = flow.metadata.get(f"{_PREFIX}severity"), made.metadata[f"{_PREFIX}severity"]
    return before in ranks and now in ranks and ranks.index(before) < ranks.index(str(now))


def mark_failure(flow: http.HTTPFlow, culprit: str) -> None:
    """Marks a flow that has no verdict because of us, beside what already stands there."""
    before = flow.metadata.get(f"{_PREFIX}findings")
    flow.metadata[f"{_PREFIX}findings"] = [*(before if isinstance(before, list) else []), INTERNAL_NAME]
    flow.metadata.setdefault(f"{_PREFIX}severity", "warning")
    comment = one_line(f"{INTERNAL_NAME} · {culprit}")
    flow.comment = f"{comment} | {flow.comment}" if flow.comment else comment
    flow.marked = flow.marked or MARKERS["warning"]


def _comment(verdict: CheckResult, names: list[str]) -> str:
    parts = [f"{names[0]} +{len(names) - 1}" if len(names) > 1 else names[0]] if names else []
    if trouble := _trouble(verdict):
        parts.append(trouble)
    if verdict.known:
        parts.append(f"+{verdict.known} known")
    parts = parts or ["ok" if verdict.api else "not judged"]
    if verdict.record.fixes:
        parts.append(f"{len(verdict.record.fixes)} fixed")
    if calls := verdict.calls:
        parts.append("1 call" if calls == 1 else f"{calls} calls")
    parts += [part for part in (verdict.model[:60], verdict.api) if part]
    if len(names) > 1:
        parts.append(", ".join(names[1:9]))
    worst = next((finding for finding in verdict.new if names and finding.name == names[0]), None)
    if worst is not None:
        parts.append(shorten(worst.message, _COMMENTED))
    return one_line(" · ".join(parts))


def _trouble(verdict: CheckResult) -> str:
    """Why there is less to say than usual."""
    record = verdict.record
    if record.end not in ("complete", "unknown"):
        return record.end
    if record.status is None:
        return "no reply"
    return "" if 200 <= record.status < 300 else f"http {record.status}"
