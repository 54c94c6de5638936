"""The mitmproxy addon: hooks, and the life of one exchange.

A request to a known API creates an `ExchangeRecorder`, kept by flow id. `responseheaders` sets an `HttpReply` as the
stream of every reply: it forwards the bytes without delay and records a copy; with an `ExchangeFixer` it also repairs
the reply on the way. An exchange ends once: in `response`, in `error` (a client that closes at `data: [DONE]` ends
there), when the client's connection closes, or when the proxy stops, whichever is first. It is then checked, captured,
logged and annotated in the order in which exchanges end. Captures keep that order, so the ledger of an offline run is
equal. Other traffic is left alone. A flow from a file is complete when its first hook runs. It is checked there as
`wirelint check` does it, and neither changed nor captured.

The result is available when the `response` or `error` hook returns, unless the exchange is large or others are in
progress: then it waits in an `IdleQueue`. A thread reads and redacts a large exchange; checks run on mitmproxy's loop,
as they use the ledger.

Everything fails open. A hook that raises has had no effect; the failure is logged once per culprit and becomes the
finding `internal-error` of the exchange."""

from __future__ import annotations

import dataclasses
import functools
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from mitmproxy import connection, ctx, http
from mitmproxy.addonmanager import Loader
from mitmproxy.flow import Flow

from wirelint.addon import annotate, log, mitm_compat, options
from wirelint.addon.exchange_fix import ExchangeFixer, finish_body
from wirelint.addon.idle_queue import LARGE, CurrentLedger, IdleQueue
from wirelint.addon.log import FailOpen, Failures, log_exchange, log_totals, say, set_redactor
from wirelint.addon.mcp_streams import McpStreams
from wirelint.addon.options import Reload
from wirelint.addon.recorder import (
    LEAST_BODY,
    ExchangeRecorder,
    may_be_ours,
    new_recorder,
    note_unknown,
    pass_unread,
    take_ignore_header,
)
from wirelint.addon.streamed_reply import HttpReply, body_of, let_collect
from wirelint.addon.timeouts import Timeouts
from wirelint.addon.ui import UserInterface
from wirelint.addon.websocket import WebSockets
from wirelint.capture.offline import Checked, check_record
from wirelint.capture.readers.flows import end_of, headers_of, records_of
from wirelint.capture.redact import Redactor
from wirelint.capture.store import MAX_AGE, Shipper, Store
from wirelint.engine import Engine
from wirelint.model import End, Exchange, Json
from wirelint.registry import shipped
from wirelint.rule import Finding
from wirelint.settings import HEADER
from wirelint.state.ledger import Ledger
from wirelint.wire.content_coding import TooLargeError

if TYPE_CHECKING:
    from wirelint.addon.otlp import Telemetry

_NO_END_HOOK = "the connection ended, and mitmproxy reported nothing about this exchange"
_PAUSE_BEFORE_WARM_UP = 0.05
"""Seconds after the first request to a model: it is on its way before the patterns are compiled."""
_MOST_OPEN = 4096
"""Exchanges in progress; above it the oldest ends unread."""

P = ParamSpec("P")


def _fail_open(hook: Callable[Concatenate[Inspector, P], None]) -> Callable[Concatenate[Inspector, P], None]:
    """Return the hook with its exceptions logged; traffic continues as if it had returned."""

    @functools.wraps(hook)
    def run(self: Inspector, /, *args: P.args, **kwargs: P.kwargs) -> None:
        flow = next((argument for argument in args if isinstance(argument, http.HTTPFlow)), None)
        with FailOpen(f"the hook {hook.__name__}", functools.partial(self._add_failure, flow)):
            hook(self, *args, **kwargs)

    return run


def _report(text: str, level: int = logging.INFO) -> None:
    say(f"wirelint: {text}", level)


class Inspector:
    """The addon: one instance per proxy, which holds all state. A reloaded script starts with a new one."""

    name = "wirelint"

    def __init__(self) -> None:
        self.settings: options.Settings | None = None
        self.engine = Engine(())
        self.redactor = Redactor()
        self._store: Store | None = None
        self.runs: list[str] = []
        """The ends of the names of the folders with captures."""
        self._telemetry: Telemetry | None = None
        self.open: OrderedDict[str, ExchangeRecorder] = OrderedDict()
        self.failures = Failures()
        self.queue: IdleQueue[ExchangeRecorder] = IdleQueue(
            lambda one: functools.partial(self._catch_up, one, self._read_ended(one)), self.is_busy
        )
        self._ledger = CurrentLedger(lambda: self.engine.ledger, self.queue.drain)
        self.ui = UserInterface(self)
        self._ignored_names: set[str] = set()
        self._timeouts = Timeouts(self.under_way, self._announce)
        self._mcp_streams = McpStreams(self.open, self._settle, self._ledger)
        self._sockets = WebSockets(self._settle, self._ledger, self.failures)
        self.reload = Reload(self._apply, self.failures)
        self._complaint: str | None = None
        self._running = False
        self._is_warm = False

    # --- life ------------------------------------------------------------------------------------------------------

    def load(self, loader: Loader) -> None:
        # Before the options are added: for an invalid value mitmproxy would drop the whole addon without a message.
        self._complaint = options.settle(ctx.options.deferred)
        for option in options.OPTIONS:
            loader.add_option(option.name, str, option.default, option.help)
        self.ui.load(loader)

    def configure(self, updated: set[str]) -> None:
        if not any(option.name in updated for option in options.OPTIONS):
            return
        try:
            if (complaint := self._complaint or options.misspelt(ctx.options.deferred)) is not None:
                raise options.SettingError(complaint)
            settings = self.reload.read()
        except options.SettingError as error:
            options.refuse(str(error), running=self._running)
            return
        self._apply(settings)

    def running(self) -> None:
        self._running = True
        log.settle()
        self.reload.start()
        if self.settings is not None:
            self.ui.serve(self.settings.dashboard)

    def _warm_up(self) -> None:
        with self.failures.caught("compiling the patterns"):
            rules = self.settings.rules if self.settings is not None else ()
            annotate.warm_up([rule for rule in rules if rule.case_file.parent == shipped("rules")])

    def done(self) -> None:
        """Finish everything: the proxy stops, or the script is reloaded."""
        self.reload.stop()
        self._timeouts.close()
        for found in tuple(self.open.values()):
            self._sweep(found.flow, "client-left", "the proxy was stopped")
        self._sockets.sweep(None, "the proxy was stopped")
        self.queue.drain()
        self._close_store(flush=True)
        self.ui.done()
        if self._telemetry is not None:
            self._telemetry.close()

    def under_way(self) -> Iterator[ExchangeRecorder]:
        yield from tuple(self.open.values())
        yield from self._sockets.under_way()

    def log_totals(self) -> None:
        self.queue.drain()
        log_totals(self.ui.totals)

    def write_now(self) -> int:
        """Write the captures of the exchanges that have ended without gathering more; return the number pending."""
        self.queue.drain()
        if self._store is not None:
            self._store.hurry()
        return self.pending

    @property
    def pending(self) -> int:
        """Return the number of exchanges in progress or not yet written."""
        waiting = self._store.waiting if self._store is not None else 0
        return len(self.open) + len(self.queue) + self._sockets.open + waiting

    def _apply(self, settings: options.Settings) -> bool:
        """Put settings in force for exchanges that begin now. Return False if they are in force already."""
        if settings == self.settings:
            return False
        self.queue.drain()  # ended exchanges are redacted and captured with the old settings
        before, self.settings = self.settings, settings
        if self._running:
            self.ui.serve(settings.dashboard)
        mitm_compat.is_enabled = settings.mitm_compat
        if before is None or before.rules != settings.rules:
            report = self.failures.log
            self.engine = Engine(settings.rules, self.engine.ledger, lambda name, error: report(f"rule {name}", error))
            for found in self.open.values():
                if found.method == "GET":  # an MCP stream, whose parts are exchanges
                    found.rules = settings.rules
            self._timeouts.follow(self.engine)
        if before is None or before.redact != settings.redact:
            self.redactor = Redactor(enabled=settings.redact)
            set_redactor(self.redactor)
        if before is None or (before.otlp, before.otlp_content) != (settings.otlp, settings.otlp_content):
            self._export(settings)
        names = ("captures", "redact", "ship", "ship_every")
        if before is None or any(getattr(before, name) != getattr(settings, name) for name in names):
            self._close_store()
            if settings.captures is not None:
                # A new folder is a new file to a reader of it, and begins with an empty ledger.
                self.engine.ledger = Ledger()
                shipper = Shipper(settings.captures, settings.ship, _report) if settings.ship else None
                age = settings.ship_every if settings.ship else MAX_AGE
                self._store = Store(settings.captures, self.redactor, report=_report, max_part_age=age, shipper=shipper)
                self.runs.append(self._store.run)
        return True

    def _export(self, settings: options.Settings) -> None:
        """Start the export of telemetry with these settings; an earlier one sends what it has beside the traffic."""
        before, self._telemetry = self._telemetry, None
        if before is not None:
            before.close(wait=0)
        if settings.otlp:
            from wirelint.addon.otlp import Telemetry

            warn = functools.partial(_report, level=logging.WARNING)
            self._telemetry = Telemetry(settings.otlp, warn, content=settings.otlp_content)

    def _close_store(self, *, flush: bool = False) -> None:
        store, self._store = self._store, None
        if store is not None:
            with self.failures.caught("closing the captures"):
                store.close(flush=flush)

    # --- traffic ---------------------------------------------------------------------------------------------------

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        with self.failures.caught(f"taking off {HEADER}"):
            take_ignore_header(flow, self.settings.known if self.settings is not None else None, self._ignored_names)
        self.ui.begins(flow)

    def tcp_start(self, flow: Flow) -> None:
        self.ui.begins(flow)

    udp_start = dns_request = tcp_start

    @_fail_open
    def request(self, flow: http.HTTPFlow) -> None:
        if self.settings is None:
            return
        if not flow.live:
            self._check_loaded(flow)
            return
        if not may_be_ours(flow.request):
            return
        try:
            body = body_of(flow.request, self.settings.max_body)
            large = body is not None and len(body) > self.settings.max_body
        except TooLargeError:
            body, large = None, True
        if body is None or large:
            unread = new_recorder(flow, None, self.settings, self.failures)
            if pass_unread(unread, unread.method, LEAST_BODY, large=large):
                self._remember(unread)
            return
        recorder = new_recorder(flow, body, self.settings, self.failures)
        # After a failure the reply is still passed on as it comes, and captured.
        with recorder.caught("reading the request"):
            recorder.begin_session(later=not recorder.rules.repair)
            if recorder.rules.repair and recorder.session is not None:
                recorder.session.read_request()
        if recorder.session is None and not recorder.faults and not note_unknown(recorder):
            return
        if recorder.rules.repair and not recorder.unknown_reason:
            made = ExchangeFixer(recorder, self.settings, self._ledger, self._mcp_streams)
            recorder.fixer = made if made.begin() else None
        self._remember(recorder)

    @_fail_open
    def responseheaders(self, flow: http.HTTPFlow) -> None:
        if flow.id not in self.open or flow.response is None:
            return
        recorder = self.open[flow.id]
        fixer, before = recorder.fixer, flow.response.stream
        # A reply that is here already (made by an addon) is not streamed.
        streamed = flow.response.raw_content is None
        if streamed and fixer is None and not before and let_collect(flow.response, recorder):
            streamed = False
        reply = HttpReply(recorder, before if callable(before) else None)
        if streamed:
            flow.response.stream = reply
        with recorder.caught("reading the head of the reply"):
            recorder.respond(flow.response.status_code, headers_of(flow.response))
        self._mcp_streams.mind(recorder, streamed=streamed, blocks=fixer is not None and fixer.blocks)
        if streamed and fixer is not None:
            fixer.ready(flow.response, reply, before)

    @_fail_open
    def response(self, flow: http.HTTPFlow) -> None:
        if flow.id in self.open and flow.response is not None:
            recorder = self.open[flow.id]
            if flow.response.raw_content is not None:
                recorder.settle_body(flow.response.raw_content)
            if recorder.fixer is not None:
                recorder.fixer.response(flow.response)
        self._end(flow)

    @_fail_open
    def error(self, flow: http.HTTPFlow) -> None:
        self._end(flow)

    @_fail_open
    def websocket_message(self, flow: http.HTTPFlow) -> None:
        if self.settings is not None and flow.live:
            self._sockets.message(flow, self.settings)
            self._timeouts.wake()

    @_fail_open
    def websocket_end(self, flow: http.HTTPFlow) -> None:
        self._sockets.close(flow)

    @_fail_open
    def client_disconnected(self, client: connection.Client) -> None:
        """Finish exchanges for which a crashed layer called neither `response` nor `error`."""
        for found in tuple(self.open.values()):
            if found.flow.client_conn.id == client.id:
                self._sweep(found.flow, "client-left", _NO_END_HOOK)
        self._sockets.sweep(client, _NO_END_HOOK)

    # --- one exchange ----------------------------------------------------------------------------------------------

    def _remember(self, recorder: ExchangeRecorder) -> None:
        self.open[recorder.flow.id] = recorder
        if not self._is_warm:
            self._is_warm = True
            timer = threading.Timer(_PAUSE_BEFORE_WARM_UP, self._warm_up)
            timer.daemon = True
            timer.start()
        self._timeouts.wake()
        self.ui.preview.wake()
        while len(self.open) > _MOST_OPEN:
            oldest = next(iter(self.open.values()))
            oldest.mark_unread("too many open exchanges; this one is no longer watched")
            self._sweep(oldest.flow, "unread", None)

    @_fail_open
    def _sweep(self, flow: http.HTTPFlow, end: End, error: str | None) -> None:
        """End an exchange for which mitmproxy calls no further hook."""
        self._end(flow, end, error)

    def _end(self, flow: http.HTTPFlow, end: End | None = None, error: str | None = None) -> None:
        recorder = self.open.pop(flow.id, None)
        if recorder is None:
            return
        self.ui.preview.end(flow)
        if end is None:
            end, error = end_of(flow), flow.error.msg if flow.error is not None else None
            if recorder.broken_reason:
                end, error = "upstream-died", recorder.broken_reason
        finish_body(recorder)
        self._settle(recorder, end, error)

    def _settle(self, recorder: ExchangeRecorder, end: End, error: str | None) -> None:
        """Finish an exchange that has ended, or queue it behind other traffic if no one needs the result at once."""
        recorder.end, recorder.error, recorder.duration = end, error, recorder.now()
        # Options of mitmproxy that read flows and annotations as soon as the last hook returns.
        names = ("save_stream_file", "hardump", "dumper_filter")
        is_read_at_once = any(getattr(ctx.options, name, None) for name in names)
        if not is_read_at_once and (self.queue or self.is_busy() or recorder.size >= LARGE):
            self.queue.put(recorder, recorder.size)
        else:
            self.queue.drain()
            self._finish(recorder, self._read_ended(recorder))

    def is_busy(self) -> bool:
        """Return True if a reply is in progress. A `GET` stream of MCP is open all the time and does not count."""
        return any(found.method != "GET" for found in self.open.values())

    def _catch_up(self, recorder: ExchangeRecorder, reading: annotate.Reading | None) -> None:
        with FailOpen("the end of an exchange", functools.partial(self._add_failure, recorder.flow)):
            self._finish(recorder, reading)
        self.ui.show(recorder.flow)

    def _announce(self, recorder: ExchangeRecorder, exchange: Exchange, findings: tuple[Finding, ...]) -> None:
        with recorder.caught("telling of an open exchange", readable=True):
            annotate.announce(recorder, exchange, findings, self.redactor)
        self.ui.show(recorder.flow)

    def _finish(self, recorder: ExchangeRecorder, reading: annotate.Reading | None) -> None:
        flow = recorder.flow
        try:
            self.failures.log_handled(recorder.faults)
            checked: Checked | None = None
            if reading is not None:
                with recorder.caught("judging the exchange"):
                    checked = annotate.judge(recorder, reading, self.engine, self.redactor)
            checked = checked or annotate.judge(recorder, None, self.engine, self.redactor)
            known = len(recorder.faults)
            with recorder.caught("writing the capture"):
                if self._store is not None:
                    annotate.capture(self._store, flow, checked)
            with recorder.caught("logging the exchange"):
                log_exchange(annotate.with_faults(checked, recorder.faults[known:]))
            checked = annotate.with_faults(checked, recorder.faults[known:])
            annotate.withdraw(recorder)
            annotate.annotate(flow, annotate.annotation(checked), checked.record)
            if self._telemetry is not None:
                self._telemetry.put(checked)
            self.ui.judged(flow, checked)
        finally:
            recorder.close()

    def _check_loaded(self, flow: http.HTTPFlow) -> None:
        self.queue.drain()
        for record in records_of(flow):
            checked = check_record(self.redactor.record(record), self.engine, self.failures.log)
            if checked.because:
                notes: list[Json] = [*record.notes, f"not checked: {checked.because}"]
                checked = dataclasses.replace(checked, record=checked.record.but(annotations={"notes": notes}))
            elif checked.exchange is None and not checked.findings:
                continue
            log_exchange(checked)
            annotate.annotate(flow, annotate.annotation(checked))
            self.ui.judged(flow, checked)

    def _read_ended(self, recorder: ExchangeRecorder) -> annotate.Reading | None:
        """Read and redact an exchange that has ended; None if that fails. Never raises."""
        session, recorder.session = recorder.session, None
        with recorder.caught("reading the request"):
            if session is not None:
                session.read_request()
            recorder.session = session
        with recorder.caught("reading the reply"):
            recorder.is_held = False
            recorder.catch_up()
        with recorder.caught("judging the exchange"):
            return annotate.read(recorder, self.redactor)
        return None

    # --- failures --------------------------------------------------------------------------------------------------

    def _add_failure(self, flow: http.HTTPFlow | None, culprit: str, error: Exception) -> None:
        """Log a failure, and add it to the exchange of a flow if that is still open, else to the flow."""
        self.failures.log(culprit, error)
        with self.failures.caught("marking a flow"):
            if flow is not None and flow.id in self.open:
                self.open[flow.id].add_fault(culprit, error)
            elif flow is not None:
                annotate.mark_failure(flow, culprit)
