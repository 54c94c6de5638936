"""Lookup and cache of exchanges for people who view flows: in progress, checked, or from a file.

A parsed exchange takes about ten times its bytes, so only the latest are kept, bounded in count and bytes; older ones
are parsed again from the flow's bodies and metadata.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from mitmproxy import http, websocket

from wirelint.addon.options import Settings
from wirelint.addon.recorder import OpenExchange
from wirelint.capture.offline import Checked
from wirelint.capture.readers.flows import record_of, records_of
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import begin, replay
from wirelint.engine import Engine
from wirelint.model import Exchange, Side, Timing
from wirelint.rule import Finding
from wirelint.view.findings import read_finding
from wirelint.view.mitm import Shown
from wirelint.wire.websocket import closes, opens, turns

_MOST = 200
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, eq=False)
class CachedExchange:
    """Checked exchange with the flow's bodies at that time; with other bodies it is stale."""

    checked: Checked
    request: bytes | None
    response: bytes | None

    @property
    def size(self) -> int:
        record = self.checked.record
        return len(record.request_body or b"") + len(record.response_body or b"") + 4096

    def is_about(self, flow: http.HTTPFlow) -> bool:
        return self.request is flow.request.raw_content and self.response is _answer(flow)


class ExchangeCache:
    """Cache by flow id, latest last."""

    def __init__(self, most: int = _MOST, most_bytes: int = _MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[str, CachedExchange] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, flow: http.HTTPFlow, checked: Checked, name: str | None = None) -> CachedExchange:
        """Store an exchange. `name`: its id if it is one of several on a socket."""
        name = name or flow.id
        self.forget(name)
        kept = CachedExchange(checked, flow.request.raw_content, _answer(flow))
        self._kept[name] = kept
        self._size += kept.size
        while len(self._kept) > 1 and (len(self._kept) > self._most or self._size > self._most_bytes):
            self.forget(next(iter(self._kept)))
        return kept

    def find(self, flow: http.HTTPFlow, name: str | None = None) -> CachedExchange | None:
        name = name or flow.id
        kept = self._kept.get(name)
        if kept is None or not kept.is_about(flow):
            return None
        self._kept.move_to_end(name)
        return kept

    def forget(self, name: str) -> None:
        kept = self._kept.pop(name, None)
        if kept is not None:
            self._size -= kept.size

    def clear(self) -> None:
        self._kept.clear()
        self._size = 0

    def result_of(self, call_id: str, exchange: Exchange) -> str | None:
        """Return the result of a call from a later cached request of the conversation."""
        for kept in reversed(self._kept.values()):
            other = kept.checked.exchange
            if other is None or other.request is None or other.conversation != exchange.conversation:
                continue
            if other.id == exchange.id:
                continue
            for message in other.request.messages:
                for result in message.results:
                    if result.call_id == call_id:
                        return result.text
        return None


def _answer(flow: http.HTTPFlow) -> bytes | None:
    return flow.response.raw_content if flow.response is not None else None


def _is_turn(message: websocket.WebSocketMessage) -> bool:
    """Return True if a message may begin or end an exchange."""
    return bool(message.is_text and (opens if message.from_client else closes)(message.content))


def turn_of(flow: http.HTTPFlow, message: websocket.WebSocketMessage) -> tuple[int, Side] | None:
    """Return the number (from one) and side of the exchange that a message begins or ends."""
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
    """Return True if an exchange on a socket is complete."""
    if flow.websocket is None or flow.websocket.closed_by_client is not None:
        return True
    said = [(message.from_client, message.content) for message in flow.websocket.messages if message.is_text]
    return turns(said)[number - 1].closed


_DETAIL = "wirelint.detail"
_KNOWN = Finding("", "", "info", "high", "wirelint", "request", "")
"""A finding that earlier exchanges had: metadata holds only the number of these."""
_MOST_KNOWN = 100_000


def recall(flow: http.HTTPFlow, engine: Engine, redactor: Redactor) -> Checked:
    """Return the exchange of a flow with findings. A flow that was modified since its check is checked again."""
    record = redactor.record(record_of(flow))
    exchange = replay(record)
    findings = findings_of(flow)
    if exchange is not None and (findings is None or flow.modified()):  # type: ignore[no-untyped-call, unused-ignore]
        findings = engine.judge(engine.ledger.place(exchange))
    known = flow.metadata.get("wirelint.known")
    checked = Checked(record, exchange, findings or ()).folded
    if not checked.known and isinstance(known, int) and 0 < known <= _MOST_KNOWN:
        checked = dataclasses.replace(checked, known=(_KNOWN,) * known)
    return checked


def judged(record: Record, engine: Engine) -> Checked:
    """Check a record against the current ledger. The ledger is not changed."""
    exchange = replay(record)
    return Checked(record, exchange, engine.judge(engine.ledger.place(exchange)) if exchange is not None else ()).folded


def findings_of(flow: http.HTTPFlow) -> tuple[Finding, ...] | None:
    """Return the findings in the metadata of a flow; None if it was not checked."""
    details = flow.metadata.get(_DETAIL)
    if not isinstance(details, list):
        return None
    return tuple(finding for detail in details if (finding := read_finding(detail)) is not None)


class AddonState(NamedTuple):
    """Access to the addon's state. `settle` checks exchanges that have ended. `settings` returns None before
    `configure`."""

    open: Callable[[str], OpenExchange | None]
    settle: Callable[[], None]
    engine: Callable[[], Engine]
    redactor: Callable[[], Redactor]
    settings: Callable[[], Settings | None]


class ExchangeLookup:
    """Lookup of exchanges of flows, cached."""

    def __init__(self, state: AddonState, cache: ExchangeCache) -> None:
        self._state, self._cache = state, cache

    def knows(self, flow: http.HTTPFlow) -> bool:
        """Return True if a flow is an exchange of a known API. Cheap."""
        if flow.websocket is not None:
            return False
        api = flow.metadata.get("wirelint.api")
        return (isinstance(api, str) and bool(api)) or self._state.open(flow.id) is not None

    def is_known_turn(self, flow: http.HTTPFlow, message: websocket.WebSocketMessage) -> bool:
        """Return True if a socket message begins or ends an exchange of a known API."""
        found = turn_of(flow, message)
        if found is None:
            return False
        return bool(flow.metadata.get("wirelint.api")) or begin(records_of(flow)[found[0] - 1]) is not None

    def look(self, flow: http.HTTPFlow) -> Shown:
        """Return the exchange of a flow. Raises parse errors."""
        found = self._state.open(flow.id)
        if found is not None:
            return Shown(_read_open(found), open=True)
        self._state.settle()
        kept = self._cache.find(flow)
        if kept is None:
            kept = self._cache.keep(flow, recall(flow, self._state.engine(), self._state.redactor()))
        return self._shown(kept)

    def find_turn(self, flow: http.HTTPFlow, message: websocket.WebSocketMessage) -> tuple[Shown, Side] | None:
        """Return the exchange that a socket message begins or ends; None for other messages."""
        found = turn_of(flow, message)
        if found is None:
            return None
        number, side = found
        self._state.settle()
        name = f"{flow.id}:{number}"
        kept = self._cache.find(flow, name)
        if kept is None:
            record = self._state.redactor().record(records_of(flow)[number - 1])
            checked = judged(record, self._state.engine())
            if not is_over(flow, number):
                return Shown(checked, open=True), side
            kept = self._cache.keep(flow, checked, name)
        return self._shown(kept), side

    def _shown(self, kept: CachedExchange) -> Shown:
        exchange = kept.checked.exchange
        if exchange is None:
            return Shown(kept.checked)
        return Shown(kept.checked, later=lambda id_: self._cache.result_of(id_, exchange))


def _read_open(found: OpenExchange) -> Checked:
    """Return the part of an exchange in progress that has arrived."""
    recorder = found.recorder
    recorder.catch_up()
    record = recorder.record("unknown", None, (), Timing(recorder.started, recorder.first_byte))
    if recorder.session is None or not recorder.is_readable:
        return Checked(record, None, tuple(recorder.faults))
    exchange = recorder.session.look(recorder.now(), recorder.arrivals())
    return Checked(record, exchange, (*recorder.faults, *recorder.open_findings))
