"""Timed rules for exchanges that are still open.

When bytes arrive, only their time is recorded. One timer serves all exchanges: it fires when the shortest limit may
have passed for the first of them, queued bytes are parsed, and timed rules check the rest. So an active exchange is
checked once per limit, and one that ends earlier costs nothing. A rule runs once per silence. Its findings are
provisional: they appear on the flow and in the log at once, are not captured, and the result at the end of the exchange
replaces them.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable

from wirelint.addon.idle_queue import running_loop
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.apis import channel_of
from wirelint.engine import Engine, Session
from wirelint.model import Exchange
from wirelint.rule import Finding
from wirelint.settings import Scopes
from wirelint.wire.websocket import is_socket

_GRAIN = 1 / 30
"""Shortest pause between two checks as a fraction of the shortest limit; reports are late by at most that."""
_LEAST = 0.01


class Timeouts:
    """Timer for timed rules. Nothing raises.

    `found` returns the exchanges in progress; `report` gets the findings of one. `clock` is that of the recorders.
    """

    def __init__(
        self,
        found: Callable[[], Iterable[ExchangeRecorder]],
        report: Callable[[ExchangeRecorder, Exchange, tuple[Finding, ...]], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._found, self._report, self._clock = found, report, clock
        self._engine = Engine(())
        self._shortest = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def follow(self, engine: Engine) -> None:
        """Run rules with this engine from now on. Its rules are those of exchanges that begin now."""
        self._engine = engine
        self._shortest = _shortest(engine.rules)
        self.close()
        self.wake(_LEAST if tuple(self._found()) else self._shortest)

    def wake(self, delay: float | None = None) -> None:
        """Start the timer. `delay` in seconds; None: until a new exchange may be due."""
        if self._timer is not None or self._shortest == math.inf:
            return
        if (loop := running_loop()) is not None:
            self._timer = loop.call_later(self._shortest if delay is None else delay, self._look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        now = self._clock()
        soonest = now + self._shortest
        found = tuple(self._found())
        for one in found:
            if one.due <= now:
                one.due = self._look_at(one, now)
            soonest = min(soonest, one.due)
        if found:
            self.wake(max(soonest - self._clock(), self._shortest * _GRAIN, _LEAST))

    def _look_at(self, recorder: ExchangeRecorder, now: float) -> float:
        """Check an exchange; return when it may be due again."""
        asks = recorder.method == "POST" or is_socket(recorder.url.partition(":")[0])
        if recorder.is_unread or not recorder.is_readable or not asks:
            return math.inf
        with recorder.caught("watching the exchange", readable=True):
            if recorder.flow.intercepted:  # it waits for the user
                return now + _shortest(recorder.rules)
            recorder.catch_up()
            if recorder.session is not None and not recorder.session.terminated:
                return self._run_due(recorder, recorder.session, now)
        return math.inf

    def _run_due(self, recorder: ExchangeRecorder, session: Session, now: float) -> float:
        """Run the rules whose limit has passed; return when the next limit passes."""
        arrivals, next_due, exchange = recorder.arrivals(), math.inf, None
        findings: list[Finding] = []
        for rule in recorder.rules.timed:
            due = rule.due(arrivals) if channel_of(session.api.name) in rule.channels else None
            if due is None or (rule.code, due) in recorder.checked_silences:
                continue
            at = recorder.clock_start + due / 1000
            if at > now:
                next_due = min(next_due, at)
                continue
            recorder.checked_silences.add((rule.code, due))
            exchange = exchange or session.look(max(recorder.now(), due), arrivals)
            for one_in_force in recorder.rules.of(exchange).rules:
                if one_in_force.code == rule.code:
                    findings += self._engine.run(one_in_force, exchange)
        if findings and exchange is not None:
            self._report(recorder, exchange, tuple(findings))
        return next_due if next_due < math.inf else now + _shortest(recorder.rules)


def _shortest(rules: Scopes) -> float:
    """Return the shortest limit of timed rules in seconds; infinite without such rules."""
    return min((rule.patience for rule in rules.timed), default=math.inf)
