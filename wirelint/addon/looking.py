"""What is known of a flow when somebody looks at it: while it is under way, when it has been judged, and from a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mitmproxy import http, websocket

from wirelint.addon.memory import Kept, Memory
from wirelint.addon.options import Settings
from wirelint.addon.recalled import judged, recall
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.addon.timeouts import Open
from wirelint.addon.turns import is_over, turn_of
from wirelint.capture.offline import Checked
from wirelint.capture.readers.flows import records_of
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import begin
from wirelint.engine import Engine
from wirelint.model import Side, Timing
from wirelint.view.mitm import Shown


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
        """Whether a flow is an exchange of an API that is known. Costs nothing."""
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
