"""The addon: mitmproxy's hooks, and nothing that could be anywhere else.

Theory of operation. A request to a known API starts an `ExchangeRecorder`, kept by the id of its flow. `responseheaders`
puts a `Tee` on the reply, whatever its type, so that nothing is held back and we read a copy; with repairs on, an
`ExchangeFixer` takes the place of the tee and changes what is sent on. The recorder finishes once: in
`response`, in `error` (a client that closes at the terminator ends there), when the client's connection goes, or when the
proxy stops; whichever comes first. Then it is judged, annotated, captured and logged, in the order in which exchanges
end: that is the order of the captures, so the ledger of an offline run is the same. All other traffic is left alone.

The verdict on an exchange is there when its `response` or `error` hook returns, unless it is large or other exchanges are
under way at that moment. These come first: it then waits in a `Backlog`, and what shows flows is told when it has come. A
large exchange is read and freed of its secrets by a thread; it is judged on mitmproxy's loop, where the ledger is.

Everything fails open. A hook of ours that raises has done nothing; the failure is logged once per culprit and stands on
the exchange as the finding `internal-error`.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Concatenate, NamedTuple, ParamSpec

from mitmproxy import connection, ctx, http
from mitmproxy.addonmanager import Loader
from mitmproxy.flow import Flow

from wirelint.addon import mitm_compat, options, terminal_log
from wirelint.addon.annotate import Drawn, annotate, mark_failure
from wirelint.addon.classify import duration_of, may_be_ours, note_unknown, open_unread, open_visit
from wirelint.addon.current import CurrentLedger
from wirelint.addon.end_reason import Ended, Readers, end_of
from wirelint.addon.exchange_fix import ExchangeFixer
from wirelint.addon.failures import Failures
from wirelint.addon.flowfile import capture
from wirelint.addon.http_headers import body_of, headers_of
from wirelint.addon.idle_queue import LARGE, Backlog
from wirelint.addon.ignoring import Ignoring
from wirelint.addon.log import log_exchange, redact_with, say
from wirelint.addon.looking import Insight
from wirelint.addon.mcp_streams import Lingering
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.addon.rest import finish_body
from wirelint.addon.sockets import Sockets
from wirelint.addon.tee import Tee, is_collected
from wirelint.addon.timeouts import Open, Watch, announce, withdraw
from wirelint.addon.ui import Desk
from wirelint.addon.verdict import CheckResult, Reading, judge, read, without_judgement
from wirelint.capture.redact import Redactor
from wirelint.capture.store import Store
from wirelint.engine import Engine, Session, lower
from wirelint.model import End, Exchange
from wirelint.rule import Finding
from wirelint.state.ledger import Ledger
from wirelint.wire.content_coding import TooLargeError

_NO_WORD = "the connection ended without a word about this exchange"
_MOST_VISITS = 4096
"""Exchanges under way at one time; above it the oldest is let go."""

P = ParamSpec("P")


def _fail_open(hook: Callable[Concatenate[Inspector, P], None]) -> Callable[Concatenate[Inspector, P], None]:
    """A hook that never raises: the traffic goes on as if it had returned."""

    @functools.wraps(hook)
    def run(self: Inspector, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            hook(self, *args, **kwargs)
        except Exception as error:  # fail open
            self._failures.tell(f"the hook {hook.__name__}", error)
            flow = next((argument for argument in args if isinstance(argument, http.HTTPFlow)), None)
            if flow is not None:
                self._stand_on(flow, f"the hook {hook.__name__}", error)

    return run


class _Open(NamedTuple):
    visit: ExchangeRecorder
    flow: http.HTTPFlow
    mending: ExchangeFixer | None


class Inspector:
    """One instance per proxy; it holds all state, and a reloaded script begins with a new one."""

    name = "wirelint"

    def __init__(self) -> None:
        self._settings: options.Settings | None = None
        self._engine = Engine(())
        self._redactor = Redactor()
        self._store: Store | None = None
        self._visits: OrderedDict[str, _Open] = OrderedDict()
        self._failures, self._readers = Failures(), Readers()
        self._backlog = Backlog(self._begin_to_settle, self.is_busy)
        self._ledger = CurrentLedger(lambda: self._engine.ledger, self._backlog.drain)
        insight = Insight(
            self._visits.get, self._backlog.drain, lambda: self._engine, lambda: self._redactor, lambda: self._settings
        )
        self._desk = Desk(insight, self._visits.values, self._failures)
        self._ignoring = Ignoring(lambda: self._settings.known if self._settings is not None else None, self._failures)
        self._watch = Watch(
            lambda: (*self._visits.values(), *self._sockets.under_way()), self._announce, self._failures
        )
        self._lingering = Lingering(self._visits, self._settle, self._ledger, self._failures)
        self._sockets = Sockets(self._settle, self._ledger, self._failures)
        self._complaint: str | None = None
        self._running = False

    # --- life ------------------------------------------------------------------------------------------------------

    def load(self, loader: Loader) -> None:
        # Before the options are added: mitmproxy would drop the whole addon for a value it cannot take, and say nothing.
        self._complaint = options.settle(ctx.options.deferred)
        for option in options.OPTIONS:
            loader.add_option(option.name, str, option.default, option.help)
        self._desk.load(loader)

    def configure(self, updated: set[str]) -> None:
        self._readers.configure(ctx.options, updated)
        if not any(option.name in updated for option in options.OPTIONS):
            return
        complaint = self._complaint or options.misspelt(ctx.options.deferred)
        if complaint is None:
            try:
                settings = options.read_from(ctx.options)
            except options.SettingError as error:
                complaint = str(error)
        if complaint is not None:
            options.refuse(complaint, running=self._running)
        elif settings != self._settings:
            self._apply(settings)

    def running(self) -> None:
        self._running = True
        terminal_log.settle()

    def done(self) -> None:
        """The proxy stops, or the script is loaded anew."""
        self._watch.close()
        for found in tuple(self._visits.values()):
            self._sweep(found.flow, "client-left", "the proxy was stopped")
        self._sockets.sweep(None, "the proxy was stopped")
        self._backlog.drain()
        self._close_store()
        self._desk.done()

    @property
    def pending(self) -> int:
        """What is under way, or not judged and written down yet."""
        waiting = self._store.waiting if self._store is not None else 0
        return len(self._visits) + len(self._backlog) + self._sockets.open + waiting

    def _apply(self, settings: options.Settings) -> None:
        self._backlog.drain()  # what has ended is judged by what was in force then
        before, self._settings = self._settings, settings
        mitm_compat.is_enabled = settings.mitm_compat
        if before is None or before.rules != settings.rules:
            self._engine = Engine(settings.rules, self._engine.ledger, self._failures.rule)
            self._watch.follow(self._engine)
        if before is None or before.redact != settings.redact:
            self._redactor = Redactor(enabled=settings.redact)
            redact_with(self._redactor)
        if before is None or (before.captures, before.redact) != (settings.captures, settings.redact):
            self._close_store()
            if settings.captures is not None:
                # A new folder is a new file to a reader of it, and begins with an empty ledger.
                self._engine.ledger = Ledger()
                self._store = Store(settings.captures, self._redactor, report=lambda told: say(f"wirelint: {told}"))

    def _close_store(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            try:
                store.close()
            except Exception as error:  # fail open
                self._failures.tell("closing the captures", error)

    # --- traffic ---------------------------------------------------------------------------------------------------

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        self._ignoring.begins(flow)
        self._desk.begins(flow)

    def tcp_start(self, flow: Flow) -> None:
        self._desk.begins(flow)

    udp_start = dns_request = tcp_start

    @_fail_open
    def request(self, flow: http.HTTPFlow) -> None:
        if self._settings is None or not may_be_ours(flow.request):
            return
        body, large = None, False
        try:
            body = body_of(flow.request, self._settings.max_body)
        except TooLargeError:
            large = True
        if body is None or len(body) > self._settings.max_body:
            unread = open_unread(flow, self._settings.max_body, large=large or body is not None)
            if unread is not None:
                self._remember(flow, unread)
            return
        visit = open_visit(flow, body, self._settings.max_body)
        try:
            visit.session = Session.begin(
                id=flow.id,
                method=visit.method,
                url=visit.url,
                headers=lower(visit.request_headers),
                body=visit.request_body or b"",
                started=visit.started,
                max_body=self._settings.max_body,
                later=not self._settings.repairs,
            )
            if self._settings.repairs and visit.session is not None:
                visit.session.read_request()
        except Exception as error:  # fail open: the reply is still passed on as it comes, and captured
            self._failures.fail(visit, "reading the request", error)
        if visit.session is None and not visit.faults and not note_unknown(visit):
            return
        mending = None
        if self._settings.repairs and flow.live and not visit.unknown:
            mending = ExchangeFixer.begin(
                flow, visit, self._settings, self._ledger, self._failures, self._lingering.streams
            )
        self._remember(flow, visit, mending)

    @_fail_open
    def responseheaders(self, flow: http.HTTPFlow) -> None:
        if flow.id not in self._visits or flow.response is None:
            return
        visit, _, mending = self._visits[flow.id]
        before = flow.response.stream
        # A reply that is here already (made by an addon, or loaded from a file) is not streamed.
        streamed = flow.response.raw_content is None
        if streamed and mending is None and not before and is_collected(flow, flow.response, visit, self._failures):
            streamed = False
        if streamed:
            flow.response.stream = Tee(visit, self._failures.fail, before if callable(before) else None)
        try:
            visit.respond(flow.response.status_code, headers_of(flow.response))
        except Exception as error:  # fail open
            self._failures.fail(visit, "reading the head of the reply", error)
        self._lingering.mind(flow, visit, streamed=streamed, blocks=mending is not None and mending.blocks)
        if streamed and mending is not None:
            mending.ready(flow.response, before)

    @_fail_open
    def response(self, flow: http.HTTPFlow) -> None:
        if flow.id in self._visits and flow.response is not None:
            mending = self._visits[flow.id].mending
            if mending is not None:
                mending.response(flow.response)
        self._end(flow)

    @_fail_open
    def error(self, flow: http.HTTPFlow) -> None:
        self._end(flow)

    @_fail_open
    def websocket_message(self, flow: http.HTTPFlow) -> None:
        if self._settings is not None:
            self._sockets.message(flow, self._settings)
            self._watch.wake()

    @_fail_open
    def websocket_end(self, flow: http.HTTPFlow) -> None:
        self._sockets.close(flow)

    @_fail_open
    def client_disconnected(self, client: connection.Client) -> None:
        """The last chance for exchanges that a crashed layer left without `response` and `error`."""
        for found in tuple(self._visits.values()):
            if found.visit.client == client.id:
                self._sweep(found.flow, "client-left", _NO_WORD)
        self._sockets.sweep(client, _NO_WORD)

    # --- one exchange ----------------------------------------------------------------------------------------------

    def _remember(self, flow: http.HTTPFlow, visit: ExchangeRecorder, mending: ExchangeFixer | None = None) -> None:
        self._visits[flow.id] = _Open(visit, flow, mending)
        self._watch.wake()
        self._desk.began()
        while len(self._visits) > _MOST_VISITS:
            oldest = next(iter(self._visits.values()))
            oldest.visit.give_up("too many exchanges at one time; this one was let go")
            self._sweep(oldest.flow, "unread", None)

    @_fail_open
    def _sweep(self, flow: http.HTTPFlow, end: End, error: str | None) -> None:
        """Ends an exchange that mitmproxy will say nothing about any more."""
        self._end(flow, end, error)

    def _end(self, flow: http.HTTPFlow, end: End | None = None, error: str | None = None) -> None:
        """Judges, captures, annotates and logs an exchange; the second call for a flow does nothing."""
        found = self._visits.pop(flow.id, None)
        if found is None:
            return
        visit = found.visit
        self._desk.ending(flow)
        if end is None:
            end, error = end_of(flow)
            if visit.cut_short:
                end, error = "upstream-died", visit.cut_short
        finish_body(flow, visit, found.mending, self._failures)
        self._settle(Ended(visit, flow, end, error, visit.now() if visit.live else duration_of(flow)))

    def _settle(self, ended: Ended) -> None:
        if self._may_wait(ended.visit):
            self._backlog.put(ended, ended.visit.size)
        else:
            self._backlog.drain()
            self._finish(ended, self._look_through(ended))

    def _may_wait(self, visit: ExchangeRecorder) -> bool:
        """Return True if somebody else's traffic comes first, and nobody needs the verdict at once."""
        if not visit.live or self._readers.there:
            return False
        return bool(self._backlog) or self.is_busy() or visit.size >= LARGE

    def is_busy(self) -> bool:
        """Return True if an answer is under way. A stream on which a server may speak some day is open all the time."""
        return any(found.visit.method != "GET" for found in self._visits.values())

    def _begin_to_settle(self, ended: Ended) -> Callable[[], None]:
        """What a thread may do of the work on an exchange that has ended; gives the rest."""
        return functools.partial(self._catch_up, ended, self._look_through(ended))

    def _catch_up(self, ended: Ended, reading: Reading | Exception) -> None:
        try:
            self._finish(ended, reading)
        except Exception as error:  # fail open
            self._failures.tell("the end of an exchange", error)
            self._stand_on(ended.flow, "the end of an exchange", error)
        self._desk.show(ended.flow)

    def _announce(self, found: Open, exchange: Exchange, findings: tuple[Finding, ...]) -> None:
        """Tells what is wrong with an exchange that is still under way."""
        try:
            announce(found.flow, found.visit, exchange, findings, self._redactor)
        except Exception as error:  # fail open
            self._failures.add(found.visit, "telling of an open exchange", error)
        self._desk.show(found.flow)

    def _finish(self, ended: Ended, reading: Reading | Exception) -> None:
        try:
            self._tell(ended, reading)
        finally:
            ended.visit.close()

    def _tell(self, ended: Ended, reading: Reading | Exception) -> None:
        visit, flow = ended.visit, ended.flow
        self._failures.dealt_with(visit.faults)
        verdict, drawn = self._judge(ended, reading), Drawn()
        verdict = self._attempt(visit, verdict, "writing the capture", lambda: self._capture(ended, verdict, drawn))
        verdict = self._attempt(visit, verdict, "logging the exchange", lambda: log_exchange(verdict))
        withdraw(flow, visit)
        annotate(flow, drawn.of(verdict), verdict.record if visit.live else None)
        self._desk.judged(flow, verdict)

    def _attempt(
        self, visit: ExchangeRecorder, verdict: CheckResult, culprit: str, act: Callable[[], None]
    ) -> CheckResult:
        """Does something with a verdict; when it fails, the verdict says so from then on."""
        try:
            act()
        except Exception as error:  # fail open
            self._failures.fail(visit, culprit, error)
            return verdict.with_fault(visit.faults[-1])
        return verdict

    def _look_through(self, ended: Ended) -> Reading | Exception:
        """Reads an exchange that has ended, and takes the secrets out of it. Never raises."""
        visit = ended.visit
        try:
            if visit.session is not None:
                visit.session.read_request()
        except Exception as error:  # fail open
            visit.session = None
            self._failures.fail(visit, "reading the request", error)
        try:
            visit.catch_up()
        except Exception as error:  # fail open
            self._failures.fail(visit, "reading the reply", error)
        try:
            return read(visit, ended.end, ended.error, ended.duration, self._redactor)
        except Exception as error:  # fail open
            return error

    def _judge(self, ended: Ended, reading: Reading | Exception) -> CheckResult:
        visit = ended.visit
        try:
            if isinstance(reading, Exception):
                raise reading
            return judge(visit, reading, self._engine, self._redactor)
        except Exception as failure:  # fail open
            self._failures.fail(visit, "judging the exchange", failure)
        return without_judgement(visit, ended.end, ended.error, self._redactor)

    def _capture(self, ended: Ended, verdict: CheckResult, drawn: Drawn) -> None:
        """Hands the exchange to the writer. What was loaded from a file is not written down a second time."""
        if self._store is not None and ended.visit.live:
            capture(self._store, ended.flow, verdict, drawn.of)

    # --- failures --------------------------------------------------------------------------------------------------

    def _stand_on(self, flow: http.HTTPFlow, culprit: str, error: Exception) -> None:
        """Has a failure stand on the exchange: in its verdict while there will be one, else on the flow itself."""
        try:
            if flow.id in self._visits:
                self._visits[flow.id].visit.add_fault(culprit, error)
            else:
                mark_failure(flow, culprit)
        except Exception as failure:  # fail open
            self._failures.tell("marking a flow", failure)
