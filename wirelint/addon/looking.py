"""What is known of a flow when somebody looks at it: while it is under way, when it has been judged, and from a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mitmproxy import http

from wirelint.addon.memory import Memory
from wirelint.addon.options import Settings
from wirelint.addon.recalled import recall
from wirelint.addon.visit import Visit
from wirelint.addon.watch import Open
from wirelint.capture.offline import Checked
from wirelint.capture.redact import Redactor
from wirelint.engine import Engine
from wirelint.model import Timing
from wirelint.report.exchange_view import Shown


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


def passed_body(visit: Visit) -> bytes | None:
    """What has come of a streaming reply, as it is on the wire, if there is a body to speak of."""
    return None if visit.empty or visit.collected else visit.raw_body()
