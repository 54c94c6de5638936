"""The addon: mitmproxy's hooks, and nothing that could be anywhere else.

Theory of operation. A request of an API that we know begins a `Visit`, kept by the id of its flow. `responseheaders` puts
a `Tee` on the reply, whatever its type, so that nothing is held back and we read a copy. The visit ends once: in
`response`, in `error` (a client that closes at the terminator ends there), when the client's connection goes, or when the
proxy stops; whichever comes first. Then it is judged, annotated, captured and logged, in the order in which exchanges
end: that is the order of the captures, so the ledger of an offline run is the same. All other traffic is left alone.

Everything fails open. A hook of ours that raises has done nothing; the failure is logged once per culprit and stands on
the exchange as the finding `internal-error`.
"""

from __future__ import annotations

import functools
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Concatenate, NamedTuple, ParamSpec
from urllib.parse import urlsplit

from mitmproxy import connection, ctx, exceptions, http
from mitmproxy.addonmanager import Loader

from wirelint.addon import options
from wirelint.addon.annotate import annotate, annotation, mark_failure
from wirelint.addon.ending import end_of
from wirelint.addon.flowfile import flow_bytes
from wirelint.addon.log import log_exchange, log_failure, logger, say
from wirelint.addon.tee import Tee
from wirelint.addon.verdict import Verdict, judge, without_judgement
from wirelint.addon.visit import Visit
from wirelint.apis import recognise
from wirelint.capture.format import encode
from wirelint.capture.record import Headers
from wirelint.capture.redact import Redactor
from wirelint.capture.store import Store
from wirelint.conversation import Ledger
from wirelint.engine import Engine, Session, lower
from wirelint.model import End, Json

_MOST_VISITS = 4096
"""Exchanges under way at one time; above it the oldest is let go."""

# A body that shows nothing: an API claims it only where path and headers alone tell what the request is.
_LEAST_BODY: Json = {"messages": [{"role": "user"}]}

P = ParamSpec("P")


def _fail_open(
    hook: Callable[Concatenate[Inspector, P], None],
) -> Callable[Concatenate[Inspector, P], None]:
    """A hook that never raises: the traffic goes on as if it had returned."""

    @functools.wraps(hook)
    def run(self: Inspector, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            hook(self, *args, **kwargs)
        except Exception as error:  # fail open
            self._report(f"the hook {hook.__name__}", error)
            flow = next((argument for argument in args if isinstance(argument, http.HTTPFlow)), None)
            if flow is not None:
                self._stand_on(flow, f"the hook {hook.__name__}", error)

    return run


class _Open(NamedTuple):
    visit: Visit
    flow: http.HTTPFlow


class Inspector:
    """One instance per proxy; it holds all state, and a reloaded script begins with a new one."""

    name = "wirelint"

    def __init__(self) -> None:
        self._settings: options.Settings | None = None
        self._engine = Engine(())
        self._redactor = Redactor()
        self._store: Store | None = None
        self._visits: OrderedDict[str, _Open] = OrderedDict()
        self._reported: set[str] = set()
        self._complaint: str | None = None
        self._running = False

    # --- life ------------------------------------------------------------------------------------------------------

    def load(self, loader: Loader) -> None:
        # Before the options are added: mitmproxy would drop the whole addon for a value it cannot take, and say nothing.
        self._complaint = options.settle(ctx.options.deferred)
        for option in options.OPTIONS:
            loader.add_option(option.name, str, option.default, option.help)

    def configure(self, updated: set[str]) -> None:
        if not any(option.name in updated for option in options.OPTIONS):
            return
        complaint = self._complaint or options.misspelt(ctx.options.deferred)
        if complaint is None:
            try:
                settings = options.read({option.name: getattr(ctx.options, option.name) for option in options.OPTIONS})
            except options.SettingError as error:
                complaint = str(error)
        if complaint is not None:
            self._refuse(complaint)
        elif settings != self._settings:
            self._apply(settings)

    def running(self) -> None:
        self._running = True

    def done(self) -> None:
        """The proxy stops, or the script is loaded anew."""
        for _, flow in tuple(self._visits.values()):
            self._sweep(flow, "client-left", "the proxy was stopped")
        self._close_store()

    def _refuse(self, complaint: str) -> None:
        """Stops a start in one line; tells a running proxy, which then keeps the value it had."""
        if not self._running and ctx.master.addons.get("errorcheck") is not None:  # type: ignore[no-untyped-call]
            # An error that is logged while mitmproxy starts makes it stop with status 1. An exception would do so too,
            # under a traceback.
            logger.error("wirelint: %s", complaint)
            return
        raise exceptions.OptionsError(complaint)  # type: ignore[no-untyped-call]

    def _apply(self, settings: options.Settings) -> None:
        before, self._settings = self._settings, settings
        if before is None or before.rules != settings.rules:
            self._engine = Engine(settings.rules, self._engine.ledger, self._report_rule)
        if before is None or before.redact != settings.redact:
            self._redactor = Redactor(enabled=settings.redact)
        if before is None or (before.captures, before.redact) != (settings.captures, settings.redact):
            self._close_store()
            if settings.captures is not None:
                # A new folder is a new file to a reader of it, and begins with an empty ledger.
                self._engine.ledger = Ledger()
                self._store = Store(settings.captures, self._redactor, report=_tell)

    def _close_store(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            try:
                store.close()
            except Exception as error:  # fail open
                self._report("closing the captures", error)

    # --- traffic ---------------------------------------------------------------------------------------------------

    @_fail_open
    def request(self, flow: http.HTTPFlow) -> None:
        if self._settings is None or flow.request.method.upper() != "POST":
            return
        body = flow.request.get_content(strict=False)
        if body is None or len(body) > self._settings.max_body:
            self._begin_unread(flow, body)
            return
        visit = self._visit(flow, body)
        try:
            visit.session = Session.begin(
                id=flow.id,
                method=visit.method,
                url=visit.url,
                headers=lower(visit.request_headers),
                body=body,
                started=visit.started,
                max_body=self._settings.max_body,
            )
        except Exception as error:  # fail open: the reply is still passed on as it comes, and captured
            self._fail(visit, "reading the request", error)
        if visit.session is not None or visit.faults:
            self._remember(flow, visit)

    @_fail_open
    def responseheaders(self, flow: http.HTTPFlow) -> None:
        if flow.id not in self._visits or flow.response is None:
            return
        visit = self._visits[flow.id].visit
        # A reply that is here already (made by an addon, or loaded from a file) is not streamed.
        if flow.response.raw_content is None:
            before = flow.response.stream
            flow.response.stream = Tee(visit, self._fail, before if callable(before) else None)
        try:
            visit.respond(flow.response.status_code, _headers(flow.response))
        except Exception as error:  # fail open
            self._fail(visit, "reading the head of the reply", error)

    @_fail_open
    def response(self, flow: http.HTTPFlow) -> None:
        self._end(flow)

    @_fail_open
    def error(self, flow: http.HTTPFlow) -> None:
        self._end(flow)

    @_fail_open
    def client_disconnected(self, client: connection.Client) -> None:
        """The last chance for exchanges that a crashed layer left without `response` and `error`."""
        for visit, flow in tuple(self._visits.values()):
            if visit.client == client.id:
                self._sweep(flow, "client-left", "the connection ended without a word about this exchange")

    # --- one exchange ----------------------------------------------------------------------------------------------

    def _visit(self, flow: http.HTTPFlow, body: bytes | None) -> Visit:
        assert self._settings is not None
        return Visit(
            id=flow.id,
            client=flow.client_conn.id,
            method=flow.request.method,
            url=_url(flow.request),
            request_headers=_headers(flow.request),
            request_body=body or None,
            session=None,
            started=flow.request.timestamp_end or flow.request.timestamp_start,
            limit=self._settings.max_body,
            clock=time.perf_counter,
            began=time.perf_counter(),
            live=flow.live,
        )

    def _begin_unread(self, flow: http.HTTPFlow, body: bytes | None) -> None:
        """A request that is too large to be read: told by its path alone, and passed on."""
        visit = self._visit(flow, None)
        headers = lower(visit.request_headers)
        api = recognise(visit.method, urlsplit(visit.url).path, headers, _LEAST_BODY)
        if api is None:
            return
        visit.session = Session(api, None, id=visit.id, method=visit.method, url=visit.url, headers=headers)
        limit = (
            f"is larger than wirelint_max_body ({visit.limit} bytes)" if body is not None else "was streamed past us"
        )
        visit.give_up(f"the request {limit}; the exchange passed unread")
        self._remember(flow, visit)

    def _remember(self, flow: http.HTTPFlow, visit: Visit) -> None:
        self._visits[flow.id] = _Open(visit, flow)
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
        if end is None:
            end, error = end_of(flow)
        try:
            self._finish(flow, visit, end, error)
        finally:
            visit.close()

    def _finish(self, flow: http.HTTPFlow, visit: Visit, end: End, error: str | None) -> None:
        self._take_the_rest(flow, visit)
        verdict = self._judge(flow, visit, end, error)
        verdict = self._attempt(visit, verdict, "writing the capture", lambda: self._capture(flow, visit, verdict))
        verdict = self._attempt(visit, verdict, "logging the exchange", lambda: log_exchange(verdict))
        annotate(flow, annotation(verdict))

    def _attempt(self, visit: Visit, verdict: Verdict, culprit: str, act: Callable[[], None]) -> Verdict:
        """Does something with a verdict; when it fails, the verdict says so from then on."""
        try:
            act()
        except Exception as error:  # fail open
            self._fail(visit, culprit, error)
            return verdict.with_fault(visit.faults[-1])
        return verdict

    def _take_the_rest(self, flow: http.HTTPFlow, visit: Visit) -> None:
        """Body and record of the reply, where the tee did not see to both."""
        response = flow.response
        if response is None:
            return
        try:
            if visit.status is None:
                visit.respond(response.status_code, _headers(response))
            if response.raw_content is None and not visit.live:
                visit.give_up("the reply was not recorded")
            elif response.raw_content is None and visit.empty and not isinstance(response.stream, Tee):
                visit.give_up("another addon took the stream over; the reply passed unread")
            elif response.raw_content is None:
                # What came by is what the client got; without this mitmproxy has no body to show, filter or save.
                response.raw_content = visit.raw_body()
            elif visit.empty:
                visit.take(response.raw_content)
        except Exception as error:  # fail open
            self._fail(visit, "reading the reply", error)

    def _judge(self, flow: http.HTTPFlow, visit: Visit, end: End, error: str | None) -> Verdict:
        duration = visit.now() if visit.live else _duration(flow)
        try:
            return judge(visit, end, error, duration, self._engine, self._redactor)
        except Exception as failure:  # fail open
            self._fail(visit, "judging the exchange", failure)
        return without_judgement(visit, end, error, self._redactor)

    def _capture(self, flow: http.HTTPFlow, visit: Visit, verdict: Verdict) -> None:
        """Hands the exchange to the writer. What was loaded from a file is not written down a second time."""
        if self._store is None or not visit.live:
            return
        record, annotations = verdict.record, verdict.annotations()
        size = len(record.request_body or b"") + len(record.response_body or b"") + 4096
        self._store.put("exchanges.jsonl", functools.partial(encode, record, annotations), size=size)
        self._store.put("flows.mitm", flow_bytes(flow, record, annotation(verdict)), size=size)

    # --- failures --------------------------------------------------------------------------------------------------

    def _fail(self, visit: Visit, culprit: str, error: Exception) -> None:
        visit.fail(culprit, error)
        self._report(culprit, error)

    def _report_rule(self, rule: str, error: Exception) -> None:
        self._report(f"rule {rule}", error)

    def _report(self, culprit: str, error: BaseException) -> None:
        """Logs a failure, once per culprit."""
        if culprit in self._reported:
            return
        self._reported.add(culprit)
        try:
            log_failure(culprit, error)
        except Exception:  # fail open: nothing is left that could be told
            return

    def _stand_on(self, flow: http.HTTPFlow, culprit: str, error: Exception) -> None:
        """Has a failure stand on the exchange: in its verdict while there will be one, else on the flow itself."""
        try:
            if flow.id in self._visits:
                self._visits[flow.id].visit.add_fault(culprit, error)
            else:
                mark_failure(flow, culprit)
        except Exception as failure:  # fail open
            self._report("marking a flow", failure)


def _tell(message: str) -> None:
    say(f"wirelint: {message}")


def _headers(message: http.Message) -> Headers:
    return tuple(
        (name.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape"))
        for name, value in message.headers.fields
    )


def _url(request: http.Request) -> str:
    """The URL as the client means it, unless its host header makes nonsense of it."""
    url = request.pretty_url
    try:
        urlsplit(url)
    except ValueError:
        return request.url
    return url


def _duration(flow: http.HTTPFlow) -> float | None:
    if flow.response is None or flow.response.timestamp_end is None:
        return None
    return round((flow.response.timestamp_end - flow.request.timestamp_start) * 1000, 3)
