"""User interface in mitmweb and the console: content view, live preview, commands, and flow retention; and the live
page, which every tool can have. No hook raises.

These parts are not separate addons, because mitmproxy calls every addon for every event. mitmproxy 11 expects lines of
styled spans from a content view, mitmproxy 12 a text; both take the view with the highest priority. A failure is shown
as one line above the raw body."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import shutil
import sys
import threading
import tomllib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mitmproxy import contentviews, ctx, flow, http, websocket
from mitmproxy.addonmanager import Loader
from mitmproxy.log import ALERT

from wirelint.addon.commands import Commands
from wirelint.addon.log import logger
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.capture.offline import Checked
from wirelint.capture.readers.flows import record_of, records_of
from wirelint.capture.redact import Redactor
from wirelint.capture.replay import begin, replay
from wirelint.engine import Engine
from wirelint.launch import describe_bind_error
from wirelint.model import Exchange, Side
from wirelint.prices import price_table
from wirelint.rule import Finding
from wirelint.view.dashboard import Board, Totals
from wirelint.view.findings import read_finding, visible
from wirelint.view.mitm import WIDTH, Line, Shown, Span, Style, failure, lines, plain
from wirelint.wire.websocket import closes, opens, turns

if TYPE_CHECKING:
    from wirelint.addon.addon import Inspector
    from wirelint.addon.dashboard import Dashboard

NAME = "LLM exchange"
_OURS, _NOT_OURS = 100.0, -1.0
_STYLES: dict[str, dict[Style, str]] = tomllib.loads(
    Path(__file__).with_name("styles.toml").read_text(encoding="utf-8")
)

# --- exchanges of displayed flows -------------------------------------------------------------------------------------

_MOST, _MOST_BYTES = 200, 4 << 20
"""Exchanges that are cached, and the bytes of their bodies: a parsed exchange takes about ten times its bytes."""
_KNOWN = Finding("", "", "info", "high", "wirelint", "request", "")
"""A finding that earlier exchanges had: metadata holds only the number of these."""
_MOST_KNOWN = 100_000


class _Cached(NamedTuple):
    """Checked exchange with the flow's bodies at that time; with other bodies it is stale."""

    checked: Checked
    request: bytes | None
    response: bytes | None
    size: int


class Exchanges:
    """The exchanges of displayed flows: in progress, checked, or from a file. The latest are cached by flow id."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector
        self._cached: OrderedDict[str, _Cached] = OrderedDict()
        self._size = 0

    def keep(self, flow: http.HTTPFlow, checked: Checked, name: str) -> None:
        """Cache an exchange. `name`: the id of its flow, or its own if it is one of several on a socket."""
        self.forget(name)
        bodies = checked.record.request_body or b"", checked.record.response_body or b""
        made = _Cached(checked, flow.request.raw_content, _response_body(flow), sum(map(len, bodies)) + 4096)
        self._cached[name] = made
        self._size += made.size
        while len(self._cached) > 1 and (len(self._cached) > _MOST or self._size > _MOST_BYTES):
            self.forget(next(iter(self._cached)))

    def forget(self, name: str) -> None:
        cached = self._cached.pop(name, None)
        if cached is not None:
            self._size -= cached.size

    def clear(self) -> None:
        self._cached.clear()
        self._size = 0

    def knows(self, flow: http.HTTPFlow) -> bool:
        """Return True if a flow is an exchange of a known API. Cheap."""
        if flow.websocket is not None:
            return False
        api = flow.metadata.get("wirelint.api")
        return (isinstance(api, str) and bool(api)) or flow.id in self._inspector.open

    def is_known_turn(self, flow: http.HTTPFlow, message: websocket.WebSocketMessage) -> bool:
        """Return True if a socket message begins or ends an exchange of a known API."""
        found = _turn_of(flow, message)
        if found is None:
            return False
        return bool(flow.metadata.get("wirelint.api")) or begin(records_of(flow)[found[0] - 1]) is not None

    def look(self, flow: http.HTTPFlow) -> Shown:
        """Return the exchange of a flow. Raises parse errors."""
        inspector = self._inspector
        found = inspector.open.get(flow.id)
        if found is not None:
            return Shown(_read_open(found), open=True)
        inspector.drain()
        checked = self._find(flow, flow.id)
        if checked is None:
            checked = recall(flow, inspector.engine, inspector.redactor)
            self.keep(flow, checked, flow.id)
        return self._shown(checked)

    def find_turn(self, flow: http.HTTPFlow, message: websocket.WebSocketMessage) -> tuple[Shown, Side] | None:
        """Return the exchange that a socket message begins or ends; None for other messages."""
        found, inspector = _turn_of(flow, message), self._inspector
        if found is None or flow.websocket is None:
            return None
        number, side = found
        inspector.drain()
        checked = self._find(flow, f"{flow.id}:{number}")
        if checked is None:
            record = inspector.redactor.record(records_of(flow)[number - 1])
            exchange, engine = replay(record), inspector.engine
            findings = engine.judge(engine.ledger.place(exchange)) if exchange is not None else ()
            checked = Checked(record, exchange, findings).folded
            said = [(message.from_client, message.content) for message in flow.websocket.messages if message.is_text]
            if flow.websocket.closed_by_client is None and not turns(said)[number - 1].closed:
                return Shown(checked, open=True), side
            self.keep(flow, checked, f"{flow.id}:{number}")
        return self._shown(checked), side

    def _find(self, flow: http.HTTPFlow, name: str) -> Checked | None:
        cached = self._cached.get(name)
        if cached is None or cached.request is not flow.request.raw_content:
            return None
        if cached.response is not _response_body(flow):
            return None
        self._cached.move_to_end(name)
        return cached.checked

    def _shown(self, checked: Checked) -> Shown:
        exchange = checked.exchange
        return Shown(checked) if exchange is None else Shown(checked, later=lambda id_: self._result_of(id_, exchange))

    def _result_of(self, call_id: str, exchange: Exchange) -> str | None:
        """Return the result of a call from a later cached request of the conversation."""
        for cached in reversed(self._cached.values()):
            other = cached.checked.exchange
            if other is None or other.request is None or other.conversation != exchange.conversation:
                continue
            if other.id != exchange.id:
                results = (result for message in other.request.messages for result in message.results)
                found = next((result for result in results if result.call_id == call_id), None)
                if found is not None:
                    return found.text
        return None


def _response_body(flow: http.HTTPFlow) -> bytes | None:
    return flow.response.raw_content if flow.response is not None else None


def _turn_of(flow: http.HTTPFlow, message: websocket.WebSocketMessage) -> tuple[int, Side] | None:
    """Return the number (from one) and side of the exchange that a message begins or ends."""
    opened = closed = 0
    for other in flow.websocket.messages if flow.websocket is not None else ():
        is_turn = other.is_text and (opens if other.from_client else closes)(other.content)
        if is_turn and other.from_client:
            opened += 1
        elif is_turn and closed < opened:
            closed += 1
        elif other is message:
            return None  # it begins or answers nothing
        if other is message:
            return (opened, "request") if message.from_client else (closed, "response")
    return None


def recall(flow: http.HTTPFlow, engine: Engine, redactor: Redactor) -> Checked:
    """Return the exchange of a flow with findings. A flow that was modified since its check is checked again."""
    record = redactor.record(record_of(flow))
    exchange, details = replay(record), flow.metadata.get("wirelint.detail")
    was_checked = isinstance(details, list)
    findings = tuple(filter(None, map(read_finding, details if isinstance(details, list) else ())))
    if exchange is not None and (not was_checked or flow.modified()):  # type: ignore[no-untyped-call, unused-ignore]
        findings = engine.judge(engine.ledger.place(exchange))
    known = flow.metadata.get("wirelint.known")
    checked = Checked(record, exchange, findings).folded
    if not checked.known and isinstance(known, int) and 0 < known <= _MOST_KNOWN:
        checked = dataclasses.replace(checked, known=(_KNOWN,) * known)
    return checked


def _read_open(recorder: ExchangeRecorder) -> Checked:
    recorder.catch_up()
    record = recorder.record()
    if recorder.session is None or not recorder.is_readable:
        return Checked(record, None, tuple(recorder.faults))
    exchange = recorder.session.look(recorder.now(), recorder.arrivals())
    return Checked(record, exchange, (*recorder.faults, *recorder.open_findings))


# --- content view -----------------------------------------------------------------------------------------------------


class ExchangeView:
    """Content view for mitmproxy 12, which passes flow and message as `metadata`, and for 11, which passes keywords."""

    name = NAME
    syntax_highlight = "none"

    def __init__(self, exchanges: Exchanges, inspector: Inspector) -> None:
        self._exchanges, self._failures = exchanges, inspector.failures

    def prettify(self, data: bytes, metadata: object) -> str:
        return plain(self._page(data, *_subject(metadata, {})))

    def __call__(self, data: bytes, **given: object) -> tuple[str, Iterator[list[tuple[str, str]]]]:
        styles = _STYLES["console"] | ({} if _is_console() else _STYLES["browser"])
        page = self._page(data, *_subject(None, given))
        return NAME, ([(styles[span.style], span.text) for span in line] or [("text", " ")] for line in page)

    def render_priority(self, data: bytes, metadata: object = None, **given: object) -> float:
        flow, message = _subject(metadata, given)
        with self._failures.caught("choosing the content view"):
            if isinstance(flow, http.HTTPFlow):
                if isinstance(message, websocket.WebSocketMessage):
                    return _OURS if self._exchanges.is_known_turn(flow, message) else _NOT_OURS
                return _OURS if message is not None and self._exchanges.knows(flow) else _NOT_OURS
        return _NOT_OURS

    def __lt__(self, other: Any) -> bool:
        return bool(self.name < other.name)

    def _page(self, data: bytes, flow: object, message: object) -> list[Line]:
        try:
            found: tuple[Shown, Side] | None = None
            match flow, message:
                case http.HTTPFlow(), http.Message():
                    side: Side = "response" if isinstance(message, http.Response) else "request"
                    found = self._exchanges.look(flow), side
                case http.HTTPFlow(), websocket.WebSocketMessage():
                    found = self._exchanges.find_turn(flow, message)
            if found is None:
                return _raw("no exchange belongs to this content", data)
            shown, side = found
            if shown.checked.exchange is None and not shown.open:
                why = next((finding.message for finding in shown.checked.findings), "")
                return _raw(why or "unrecognised API", data)
            return lines(shown, side, _width())
        except Exception as error:  # fail open
            self._failures.log("the content view", error)
            return _raw(f"the view of this exchange failed ({type(error).__name__}: {error})", data)


def _subject(metadata: object, given: Mapping[str, object]) -> tuple[object, object]:
    """Return the flow and the message that mitmproxy shows."""
    names = ("flow", "http_message", "websocket_message")
    flow, message, socket = (given.get(name) or getattr(metadata, name, None) for name in names)
    return flow, message or socket


def _raw(why: str, data: bytes) -> list[Line]:
    text = visible(data.decode("utf-8", "backslashreplace"))
    return [failure(why), (), *((Span("text", line),) for line in text.split("\n"))]


def _is_console() -> bool:
    return ctx.master.addons.get("consoleaddon") is not None  # type: ignore[no-untyped-call]


def _width() -> int:
    """Return the width in columns: the console's, or one that fits mitmweb's pane."""
    if not _is_console():
        return WIDTH
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return (columns // 2 if ctx.options.console_layout == "horizontal" else columns) - 2


def install(view: ExchangeView) -> None:
    """Add the view to mitmproxy, replacing that of an earlier load."""
    views: Any = contentviews  # its types differ between the versions
    if not hasattr(contentviews, "Contentview") and (earlier := views.get(NAME)) is not None:
        views.remove(earlier)
    views.add(view)


def remove(view: ExchangeView) -> None:
    """Remove the view from mitmproxy 11. In 12 a later view replaces it; until then it claims no flow."""
    views: Any = contentviews
    if not hasattr(contentviews, "Contentview") and views.get(NAME) is view:
        views.remove(view)


# --- live preview -----------------------------------------------------------------------------------------------------

_PAUSE = 0.7
"""Seconds between two updates of the open exchanges."""
_AT_ONCE = 16
"""Most exchanges that are redrawn in one update; if more are open, they take turns."""
_LARGEST = 8 << 20
"""Bytes of a body above which it is shown only at the end of the exchange."""


class LivePreview:
    """Shows replies while they stream; mitmproxy has no body of them before the end.

    A timer gives each open flow a copy of the bytes so far, and removes it before the exchange ends. The copy lacks
    the last byte, so that the final body differs and mitmweb asks for the view again. `show` redraws a flow."""

    def __init__(self, inspector: Inspector, show: Callable[[http.HTTPFlow], None]) -> None:
        self._inspector, self._show = inspector, show
        self._lent: dict[str, int] = {}
        self._turn = 0
        self._timer: asyncio.TimerHandle | None = None

    def done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def wake(self) -> None:
        """Start the timer, since an exchange is in progress."""
        if self._timer is not None or not is_shown():
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer = loop.call_later(_PAUSE, self._step)

    def _step(self) -> None:
        self._timer = None
        found = list(self._inspector.open.values())
        start = self._turn % len(found) if len(found) > _AT_ONCE else 0
        self._turn = start + _AT_ONCE
        for one in [*found[start:], *found[:start]][:_AT_ONCE]:
            with self._inspector.failures.caught("showing a reply that streams"):
                self._lend(one)
        if found:
            self.wake()

    def _lend(self, recorder: ExchangeRecorder) -> None:
        flow = recorder.flow
        if flow.response is None or (flow.response.raw_content is not None and flow.id not in self._lent):
            return
        if recorder.session is None or recorder.session.terminated:
            return  # it is about to end
        body = None if recorder.is_empty or recorder.is_collected else recorder.raw_body()
        if body is None or not 2 <= len(body) <= _LARGEST or len(body) == self._lent.get(flow.id):
            return
        self._lent[flow.id] = len(body)
        flow.response.raw_content = body[:-1]
        self._show(flow)

    def end(self, flow: http.HTTPFlow) -> None:
        """Remove the copy: after the end of an exchange, mitmproxy and the addon set its body."""
        if self._lent.pop(flow.id, None) is not None and flow.response is not None:
            flow.response.raw_content = None


def is_shown() -> bool:
    """Return True if flows are displayed: mitmdump has no view."""
    master = getattr(ctx, "master", None)
    return master is not None and "view" in master.addons.lookup


# --- all parts --------------------------------------------------------------------------------------------------------

_OPEN_AT_ONCE = 64
"""Most flows in progress that one call skips, because they must be kept."""


class UserInterface:
    """All parts of the user interface.

    `totals` counts all exchanges. `notice`: the address of the dashboard, or why there is none; empty if none is wanted.
    """

    def __init__(self, inspector: Inspector) -> None:
        self._inspector, self._failures = inspector, inspector.failures
        self._exchanges = Exchanges(inspector)
        self._view = ExchangeView(self._exchanges, inspector)
        self._commands = Commands(inspector, self._exchanges)
        self.preview = LivePreview(inspector, self.show)
        self.totals = Totals()
        self.notice = ""
        self._passed: OrderedDict[str, None] = OrderedDict()
        self._board: Board | None = None
        self._dashboard: Dashboard | None = None
        self._port: int | None = None

    def load(self, loader: Loader) -> None:
        with self._failures.caught("adding the content view"):
            install(self._view)
        loader.master.commands.collect_commands(self._commands)

    def done(self) -> None:
        remove(self._view)
        self._exchanges.clear()
        self.preview.done()
        self._passed.clear()
        self.serve(None)

    def begins(self, flow: flow.Flow) -> None:
        """Limit how many flows mitmweb and the console keep: count a new flow, and drop the oldest ones.

        Only flows that passed in this run count; open ones stay."""
        if not flow.live or not is_shown():
            return
        self._passed[flow.id] = None
        settings = self._inspector.settings
        most = settings.keep_flows if settings is not None else None
        count = len(self._passed) - most if most is not None else 0
        if count <= 0:
            return
        with self._failures.caught("dropping the oldest flows"):
            view = ctx.master.addons.get("view")  # type: ignore[no-untyped-call]
            for _ in range(count + _OPEN_AT_ONCE):
                if count <= 0:
                    return
                name, _ = self._passed.popitem(last=False)
                found = view.get_by_id(name)
                if found is not None and found.live:
                    self._passed[name] = None
                    continue
                count -= 1
                if found is not None:  # else somebody removed it
                    view.remove([found])
                    self._exchanges.forget(name)

    def board(self) -> Board:
        """Return the conversations, costs and issues of exchanges; they are counted from the first call on."""
        if self._board is None:
            self._board = Board(self.totals)
            # The price table takes almost a second to load, which must not delay the first exchange.
            threading.Thread(target=price_table, daemon=True).start()
        return self._board

    def serve(self, port: int | None) -> None:
        """Start the dashboard at a port, 0 for a free one, or end it (None). Needs a running loop."""
        if port == self._port:
            return
        self._port, self.notice = port, ""
        if self._dashboard is not None:
            self._dashboard.stop()
            self._dashboard = None
        if port is None:
            return
        with self._failures.caught("starting the dashboard"):
            # Imported here: the page's server costs 40 ms and 5 MB, and few runs have a page.
            from wirelint.addon.dashboard import HOST, Dashboard

            inspector = self._inspector
            made = Dashboard(self.board(), inspector.under_way, lambda: inspector.redactor, self._failures)
            try:
                made.start(port)
            except OSError as error:
                why = describe_bind_error(HOST, port, error, "--set wirelint_dashboard=PORT")
                self._say(f"wirelint: no dashboard: {why}; traffic is checked as usual", logging.WARNING)
                return
            self._dashboard = made
            self._say(f"wirelint: dashboard at {made.url}", ALERT)

    def _say(self, notice: str, level: int) -> None:
        """Log a notice; the parent of a private proxy prints it instead. Not redacted: the address has its token."""
        self.notice = notice
        if ctx.master.addons.get("wirelint-private") is None:  # type: ignore[no-untyped-call]
            logger.log(level, "%s", notice)

    def judged(self, flow: http.HTTPFlow, checked: Checked) -> None:
        """Count an exchange, and cache its result."""
        with self._failures.caught("counting the exchange"):
            self.totals.add(checked)
            if self._dashboard is not None:
                self._dashboard.add(checked)
            elif self._board is not None:
                self._board.add(checked)
        if is_shown():
            self._exchanges.keep(flow, checked.folded, checked.record.id)
            # The console's cache of rendered bodies does not notice new findings.
            module = sys.modules.get("mitmproxy.tools.console.flowview")
            rendered = getattr(getattr(module, "FlowDetails", None), "_get_content_view", None)
            if (clear := getattr(rendered, "cache_clear", None)) is not None:
                clear()

    def show(self, flow: http.HTTPFlow) -> None:
        """Redraw a flow."""
        with self._failures.caught("showing the result"):
            view = ctx.master.addons.get("view")  # type: ignore[no-untyped-call]
            if view is not None:
                view.update([flow])
