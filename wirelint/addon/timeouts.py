"""Exchanges that are under way, looked at when nothing has come for too long.

Theory of operation. Bytes that come leave their time, and nothing else is done for each of them. One timer serves all
exchanges. It goes off when the first of them may be due: when nothing has come for as long as the shortest limit. What has
come since then is read, which puts most of them off until later; of the others the rules are asked that judge how an
exchange goes in time. So an exchange that goes on is looked at once per limit, and one that ends before costs nothing.

A rule is asked once for each silence. What it finds is provisional: the exchange is judged as a whole when it has ended.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from mitmproxy import http

from wirelint.addon.annotate import annotate, early_annotation, take_back
from wirelint.addon.failures import Failures
from wirelint.addon.log import log_early
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.apis import channel_of
from wirelint.capture.redact import Redactor
from wirelint.engine import Engine
from wirelint.model import Exchange
from wirelint.rule import Finding
from wirelint.wire.websocket import is_socket

# What is said of an exchange before it has ended, because something about it will not wait.
#
# It stands on the flow and in the log at once. None of it is written down: when the exchange has ended, its verdict
# takes the
# place of all that was said before.


def announce(
    flow: http.HTTPFlow, visit: ExchangeRecorder, exchange: Exchange, findings: tuple[Finding, ...], redactor: Redactor
) -> None:
    """Tells of findings in an open exchange."""
    clean = [dataclasses.replace(finding, message=redactor.text(finding.message)) for finding in findings]
    model = redactor.text(exchange.model)
    visit.early += clean
    log_early(exchange, model, clean)
    withdraw(flow, visit)
    made = early_annotation(exchange, model, tuple(visit.early))
    visit.shown = (made.comment, "" if flow.marked else made.marker)
    annotate(flow, made)


def withdraw(flow: http.HTTPFlow, visit: ExchangeRecorder) -> None:
    """Takes back what was put on a flow."""
    if visit.shown is not None:
        take_back(flow, *visit.shown)
        visit.shown = None


_GRAIN = 1 / 30
"""The shortest time between two looks, as a part of the shortest limit: how late a report may come."""
_LEAST = 0.01


class Repairing(Protocol):
    """What repairs the reply of an exchange, and may have put off the reading of it."""

    def catch_up(self) -> None: ...


class Open(Protocol):
    """An exchange that is under way."""

    @property
    def visit(self) -> ExchangeRecorder: ...
    @property
    def flow(self) -> http.HTTPFlow: ...
    @property
    def mending(self) -> Repairing | None: ...


class Watch:
    """`found` gives the exchanges under way, `report` is told what the rules of `engine` find in one of them.

    `clock` is that of the visits. Nothing in here raises, nor does `report`.
    """

    def __init__(
        self,
        found: Callable[[], Iterable[Open]],
        report: Callable[[Open, Exchange, tuple[Finding, ...]], None],
        failures: Failures,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._found, self._report, self._failures, self._clock = found, report, failures, clock
        self._engine = Engine(())
        self._shortest = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def follow(self, engine: Engine) -> None:
        """From now on the rules of this engine are asked."""
        self._engine = engine
        self._shortest = min((rule.patience for rule in engine.timed), default=math.inf)
        self.close()
        self.wake(self._shortest)

    def wake(self, delay: float | None = None) -> None:
        """There is something to watch. `delay` in seconds, until a new exchange may be due if it is None."""
        if self._timer is not None or self._shortest == math.inf:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # nobody would ever come back to it
            return
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
            if one.visit.due <= now:
                one.visit.due = self._look_at(one, now)
            soonest = min(soonest, one.visit.due)
        if found:
            self.wake(max(soonest - self._clock(), self._shortest * _GRAIN, _LEAST))

    def _look_at(self, one: Open, now: float) -> float:
        """Looks at an exchange; when it may be due again."""
        visit = one.visit
        asks = visit.method == "POST" or is_socket(visit.url.partition(":")[0])
        if not visit.live or visit.unread or not visit.readable or not asks:
            return math.inf
        try:
            return self._ask(one, now)
        except Exception as error:  # fail open: it is judged when it has ended
            self._failures.add(visit, "watching the exchange", error)
            return math.inf

    def _ask(self, one: Open, now: float) -> float:
        visit = one.visit
        if one.flow.intercepted:  # it waits for the user
            return now + self._shortest
        if one.mending is not None:
            one.mending.catch_up()
        visit.catch_up()
        if visit.session is None or visit.session.terminated:
            return math.inf
        arrivals = visit.arrivals()
        next_due = math.inf
        findings: list[Finding] = []
        exchange: Exchange | None = None
        channel = channel_of(visit.session.api.name)
        for rule in self._engine.timed:
            if channel not in rule.channels:
                continue
            due = rule.due(arrivals)
            if due is None or (rule.code, due) in visit.asked_of:
                continue
            at = visit.began + due / 1000
            if at > now:
                next_due = min(next_due, at)
                continue
            visit.asked_of.add((rule.code, due))
            exchange = exchange or visit.session.look(max(visit.now(), due), arrivals)
            for one_in_force in self._engine.rules.of(exchange).rules:
                if one_in_force.code == rule.code:
                    findings += self._engine.run(one_in_force, exchange)
        if findings and exchange is not None:
            self._report(one, exchange, tuple(findings))
        return next_due if next_due < math.inf else now + self._shortest
