"""What is known of a flow when somebody looks at it: while it is under way, when it has been judged, and from a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, cast, get_args

from mitmproxy import http, websocket

from wirelint.addon.memory import Kept, Memory
from wirelint.addon.options import Settings
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.addon.timeouts import Open
from wirelint.capture.offline import Checked
from wirelint.capture.readers.flows import record_of, records_of
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import begin, replay
from wirelint.engine import Engine
from wirelint.fix import SAFETIES
from wirelint.model import Confidence, Layer, Severity, Side, Timing
from wirelint.rule import Finding, Fix
from wirelint.view.mitm import Shown
from wirelint.wire.websocket import closes, opens, turns

# Which messages of a socket begin an exchange, and which end one.


def _is_turn(message: websocket.WebSocketMessage) -> bool:
    """Return True if a message may be one of them."""
    return bool(message.is_text and (opens if message.from_client else closes)(message.content))


def turn_of(flow: http.HTTPFlow, message: websocket.WebSocketMessage) -> tuple[int, Side] | None:
    """The number of the exchange that a message begins (its request) or ends (its response), counted from one."""
    if flow.websocket is None or not _is_turn(message):
        return None
    opened = closed = 0
    for other in flow.websocket.messages:
        if not _is_turn(other):
            continue
        if other.from_client:
            opened += 1
        elif closed < opened:
            closed += 1
        elif other is message:
            return None  # it answers nothing
        if other is message:
            return (opened, "request") if message.from_client else (closed, "response")
    return None


def is_over(flow: http.HTTPFlow, number: int) -> bool:
    """Return True if nothing more can come of an exchange."""
    if flow.websocket is None or flow.websocket.closed_by_client is not None:
        return True
    said = [(message.from_client, message.content) for message in flow.websocket.messages if message.is_text]
    return turns(said)[number - 1].closed


# A flow read as it stands, with the verdict that stands in its metadata: for flows that nobody remembers.

_DETAIL = "wirelint.detail"
_KNOWN = Finding("", "", "info", "high", "wirelint", "request", "")
"""A finding that earlier exchanges had: metadata holds only the number of these."""
_MOST_KNOWN = 100_000
_WORDS = {
    "severity": frozenset(get_args(Severity)),
    "confidence": frozenset(get_args(Confidence)),
    "layer": frozenset(get_args(Layer)),
    "side": frozenset({"request", "response"}),
}


def recall(flow: http.HTTPFlow, engine: Engine, redactor: Redactor) -> tuple[Checked, tuple[str, ...]]:
    """The exchange of a flow with its findings and notes. What was changed since it was judged is judged again."""
    record = redactor.record(record_of(flow))
    exchange = replay(record)
    findings = findings_of(flow)
    if exchange is not None and (findings is None or flow.modified()):  # type: ignore[no-untyped-call, unused-ignore]
        findings = engine.judge(engine.ledger.place(exchange))
    said = flow.metadata.get("wirelint.notes")
    notes = tuple(note for note in said if isinstance(note, str)) if isinstance(said, list) else ()
    known = flow.metadata.get("wirelint.known")
    checked = Checked(record, exchange, findings or ()).folded
    if not checked.known and isinstance(known, int) and 0 < known <= _MOST_KNOWN:
        checked = dataclasses.replace(checked, known=(_KNOWN,) * known)
    return checked, notes


def judged(record: Record, engine: Engine) -> Checked:
    """A record judged in the light of the ledger as it stands, which stays as it is."""
    exchange = replay(record)
    return Checked(record, exchange, engine.judge(engine.ledger.place(exchange)) if exchange is not None else ()).folded


def findings_of(flow: http.HTTPFlow) -> tuple[Finding, ...] | None:
    """The findings in a flow's metadata; None where it has no verdict."""
    details = flow.metadata.get(_DETAIL)
    if not isinstance(details, list):
        return None
    return tuple(finding for detail in details if (finding := _finding(detail)) is not None)


def _finding(detail: object) -> Finding | None:
    """Metadata comes out of files, which may hold anything."""
    if not isinstance(detail, dict):
        return None
    words = [detail.get(name) for name in ("code", "name", "message")]
    if not all(isinstance(word, str) for word in words):
        return None
    if any(not isinstance(detail.get(name), str) or detail[name] not in known for name, known in _WORDS.items()):
        return None
    pointer, event, fix = detail.get("pointer"), detail.get("event"), detail.get("fix")
    return Finding(
        code=cast("str", words[0]),
        name=cast("str", words[1]),
        severity=detail["severity"],
        confidence=detail["confidence"],
        layer=detail["layer"],
        side=detail["side"],
        message=cast("str", words[2]),
        pointer=pointer if isinstance(pointer, str) else None,
        event=event if isinstance(event, int) else None,
        fix=_fix(fix),
    )


def _fix(value: object) -> Fix | None:
    if not isinstance(value, dict) or value.get("safety") not in SAFETIES or not isinstance(value.get("title"), str):
        return None
    return Fix(value["safety"], value["title"])


class Insight(NamedTuple):
    """The parts of the addon that know something. `settle` brings up to date what has ended and was not judged yet.

    `settings` is None before the addon is configured.
    """

    open: Callable[[str], Open | None]
    settle: Callable[[], None]
    engine: Callable[[], Engine]
    redactor: Callable[[], Redactor]
    settings: Callable[[], Settings | None]


class Looking:
    """Looks at flows. What had to be read for that is kept in `memory`, as verdicts are."""

    def __init__(self, insight: Insight, memory: Memory) -> None:
        self._insight, self._memory = insight, memory

    def knows(self, flow: http.HTTPFlow) -> bool:
        """Return True if a flow is an exchange of an API that is known. Costs nothing."""
        if flow.websocket is not None:
            return False
        api = flow.metadata.get("wirelint.api")
        return (isinstance(api, str) and bool(api)) or self._insight.open(flow.id) is not None

    def knows_turn(self, flow: http.HTTPFlow, message: websocket.WebSocketMessage) -> bool:
        """The same of a message on a socket: whether it begins such an exchange, or ends one."""
        found = turn_of(flow, message)
        if found is None:
            return False
        return bool(flow.metadata.get("wirelint.api")) or begin(records_of(flow)[found[0] - 1]) is not None

    def look(self, flow: http.HTTPFlow) -> Shown:
        """What is known. Raises what reading a flow raises."""
        found = self._insight.open(flow.id)
        if found is not None:
            return Shown(_so_far(found), open=True, notes=tuple(found.visit.notes))
        self._insight.settle()
        kept = self._memory.find(flow)
        if kept is None:
            checked, notes = recall(flow, self._insight.engine(), self._insight.redactor())
            kept = self._memory.keep(flow, checked, notes)
        return self._shown(kept)

    def look_at_turn(self, flow: http.HTTPFlow, message: websocket.WebSocketMessage) -> tuple[Shown, Side] | None:
        """The same for a message on a socket that begins an exchange or ends it; None for all others."""
        found = turn_of(flow, message)
        if found is None:
            return None
        number, side = found
        self._insight.settle()
        name = f"{flow.id}:{number}"
        kept = self._memory.find(flow, name)
        if kept is None:
            record = self._insight.redactor().record(records_of(flow)[number - 1])
            checked = judged(record, self._insight.engine())
            if not is_over(flow, number):
                return Shown(checked, open=True), side
            kept = self._memory.keep(flow, checked, name=name)
        return self._shown(kept), side

    def _shown(self, kept: Kept) -> Shown:
        exchange = kept.checked.exchange
        if exchange is None:
            return Shown(kept.checked, notes=kept.notes)
        return Shown(kept.checked, notes=kept.notes, later=lambda id_: self._memory.result_of(id_, exchange))


def _so_far(found: Open) -> Checked:
    """An exchange that is under way, as far as it has come: from what was read along, and read only once."""
    visit = found.visit
    if found.mending is not None:
        found.mending.catch_up()
    visit.catch_up()
    record = visit.record("unknown", None, (), Timing(visit.started, visit.first_byte))
    if visit.session is None or not visit.readable:
        return Checked(record, None, tuple(visit.faults))
    exchange = visit.session.look(visit.now(), visit.arrivals())
    return Checked(record, exchange, (*visit.faults, *visit.early))


def passed_body(visit: ExchangeRecorder) -> bytes | None:
    """What has come of a streaming reply, as it is on the wire, if there is a body to speak of."""
    return None if visit.empty or visit.collected else visit.raw_body()
