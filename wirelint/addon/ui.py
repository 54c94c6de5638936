"""User interface in mitmweb and the console: content view, live preview, commands, and flow retention; and the live
page, which every tool can have. No hook raises.

These parts are not separate addons, because mitmproxy calls every addon for every event. mitmproxy 11 expects lines of
styled spans from a content view, mitmproxy 12 a text; both take the view with the highest priority. A failure is shown
as one line above the raw body."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
import threading
import tomllib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mitmproxy import contentviews, ctx, flow, http, websocket
from mitmproxy.addonmanager import Loader
from mitmproxy.log import ALERT

from wirelint.addon.commands import Commands
from wirelint.addon.exchange_cache import AddonState, ExchangeCache, ExchangeLookup
from wirelint.addon.log import Failures, logger
from wirelint.addon.recorder import OpenExchange
from wirelint.capture.offline import Checked
from wirelint.launch import describe_bind_error
from wirelint.model import Side
from wirelint.prices import price_table
from wirelint.view.dashboard import Board, Totals
from wirelint.view.findings import visible
from wirelint.view.mitm import WIDTH, Line, Shown, Span, Style, failure, lines, plain

if TYPE_CHECKING:
    from wirelint.addon.dashboard import Dashboard

NAME = "LLM exchange"

_OURS = 100.0
_NOT_OURS = -1.0

_STYLES: dict[str, dict[Style, str]] = tomllib.loads(
    Path(__file__).with_name("styles.toml").read_text(encoding="utf-8")
)


class ExchangeView:
    """Content view, without the parts that depend on the version of mitmproxy."""

    def __init__(self, lookup: ExchangeLookup, failures: Failures) -> None:
        self._lookup, self._failures = lookup, failures

    def claims(self, flow: object, message: object) -> bool:
        with self._failures.caught("choosing the content view"):
            if isinstance(flow, http.HTTPFlow):
                if isinstance(message, websocket.WebSocketMessage):
                    return self._lookup.is_known_turn(flow, message)
                return message is not None and self._lookup.knows(flow)
        return False

    def page(self, data: bytes, flow: object, message: object) -> list[Line]:
        try:
            found = self._look(flow, message)
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

    def _look(self, flow: object, message: object) -> tuple[Shown, Side] | None:
        match flow, message:
            case http.HTTPFlow(), http.Message():
                return self._lookup.look(flow), "response" if isinstance(message, http.Response) else "request"
            case http.HTTPFlow(), websocket.WebSocketMessage():
                return self._lookup.find_turn(flow, message)
            case _:
                return None


def _raw(why: str, data: bytes) -> list[Line]:
    text = visible(data.decode("utf-8", "backslashreplace"))
    return [failure(why), (), *((Span("text", line),) for line in text.split("\n"))]


class Contentview:
    """Adapter for mitmproxy 12."""

    name = NAME
    syntax_highlight: Literal["none"] = "none"

    def __init__(self, viewer: ExchangeView) -> None:
        self._viewer = viewer

    def prettify(self, data: bytes, metadata: Metadata) -> str:
        return plain(self._viewer.page(data, metadata.flow, metadata.http_message or metadata.websocket_message))

    def render_priority(self, data: bytes, metadata: Metadata) -> float:
        return (
            _OURS
            if self._viewer.claims(metadata.flow, metadata.http_message or metadata.websocket_message)
            else _NOT_OURS
        )

    def __lt__(self, other: Named) -> bool:
        return self.name < other.name


class View:
    """Adapter for mitmproxy 11."""

    name = NAME

    def __init__(self, viewer: ExchangeView) -> None:
        self._viewer = viewer

    def __call__(
        self,
        data: bytes,
        *,
        flow: object = None,
        http_message: object = None,
        websocket_message: object = None,
        **_: object,
    ) -> tuple[str, Iterator[list[tuple[str, str]]]]:
        styles = _STYLES["console"] | ({} if _is_console() else _STYLES["browser"])
        page = self._viewer.page(data, flow, http_message or websocket_message)
        return NAME, ([(styles[span.style], span.text) for span in line] or [("text", " ")] for line in page)

    def render_priority(
        self,
        data: bytes,
        *,
        flow: object = None,
        http_message: object = None,
        websocket_message: object = None,
        **_: object,
    ) -> float:
        return _OURS if self._viewer.claims(flow, http_message or websocket_message) else _NOT_OURS

    def __lt__(self, other: Named) -> bool:
        return self.name < other.name


class Named(Protocol):
    name: str


class Metadata(Protocol):
    """The members of mitmproxy 12's `contentviews.Metadata` that are used."""

    flow: object
    http_message: object
    websocket_message: object


def _is_console() -> bool:
    return ctx.master.addons.get("consoleaddon") is not None  # type: ignore[no-untyped-call]


def _width() -> int:
    """Return the width in columns: the console's, or one that fits mitmweb's pane."""
    if not _is_console():
        return WIDTH
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return (columns // 2 if ctx.options.console_layout == "horizontal" else columns) - 2


def install(viewer: ExchangeView) -> Callable[[], None]:
    """Add the view to mitmproxy, replacing that of an earlier load. Return a function that removes it."""
    views: Any = contentviews  # its types differ between the versions
    if hasattr(contentviews, "Contentview"):
        views.add(Contentview(viewer))
        return lambda: None  # a later view replaces it; until then it claims no flow
    view = View(viewer)
    if (earlier := views.get(NAME)) is not None:
        views.remove(earlier)
    views.add(view)

    def remove() -> None:
        if views.get(NAME) is view:
            views.remove(view)

    return remove


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

    def __init__(
        self, found: Callable[[], Iterable[OpenExchange]], show: Callable[[http.HTTPFlow], None], failures: Failures
    ) -> None:
        self._found, self._show, self._failures = found, show, failures
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
        found = list(self._found())
        start = self._turn % len(found) if len(found) > _AT_ONCE else 0
        self._turn = start + _AT_ONCE
        for one in [*found[start:], *found[:start]][:_AT_ONCE]:
            with self._failures.caught("showing a reply that streams"):
                self._lend(one)
        if found:
            self.wake()

    def _lend(self, one: OpenExchange) -> None:
        flow, recorder = one.flow, one.recorder
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


def clear_console_cache() -> None:
    """Clear the console's cache of rendered bodies, which does not notice new findings."""
    flowview = sys.modules.get("mitmproxy.tools.console.flowview")
    clear = getattr(getattr(getattr(flowview, "FlowDetails", None), "_get_content_view", None), "cache_clear", None)
    if clear is not None:
        clear()


_OPEN_AT_ONCE = 64
"""Most flows in progress that one call skips, because they must be kept."""


class FlowRetention:
    """Limits how many flows mitmweb and the console keep.

    Only flows that passed in this run count; the oldest are removed, open ones stay. `most` returns the limit, None
    for no limit; `dropped` gets the id of a removed flow."""

    def __init__(self, most: Callable[[], int | None], dropped: Callable[[str], None], failures: Failures) -> None:
        self._most, self._dropped, self._failures = most, dropped, failures
        self._passed: OrderedDict[str, None] = OrderedDict()

    def begins(self, flow: flow.Flow) -> None:
        """Count a flow of any protocol."""
        if not flow.live or not is_shown():
            return
        self._passed[flow.id] = None
        most = self._most()
        if most is None or len(self._passed) <= most:
            return
        with self._failures.caught("dropping the oldest flows"):
            self._drop(len(self._passed) - most)

    def done(self) -> None:
        self._passed.clear()

    def _drop(self, count: int) -> None:
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
                self._dropped(name)


class UserInterface:
    """All parts of the user interface. `found` returns the exchanges in progress, `sockets` those on WebSockets.

    `totals` counts all exchanges. `notice`: the address of the dashboard, or why there is none; empty if none is wanted.
    """

    def __init__(
        self,
        state: AddonState,
        found: Callable[[], Iterable[OpenExchange]],
        sockets: Callable[[], Iterable[OpenExchange]],
        failures: Failures,
    ) -> None:
        self._failures, self._state = failures, state
        self._found, self._sockets = found, sockets
        self._cache = ExchangeCache()
        lookup = ExchangeLookup(state, self._cache)
        self._viewer = ExchangeView(lookup, failures)
        self.preview = LivePreview(found, self.show, failures)
        self.retention = FlowRetention(self._most, self._cache.forget, failures)
        self.totals = Totals()
        self.notice = ""
        self._board: Board | None = None
        self._dashboard: Dashboard | None = None
        self._port: int | None = None
        self._commands = Commands(state, lookup, self._cache)
        self._remove: Callable[[], None] = lambda: None

    def load(self, loader: Loader) -> None:
        with self._failures.caught("adding the content view"):
            self._remove = install(self._viewer)
        loader.master.commands.collect_commands(self._commands)

    def done(self) -> None:
        self._remove()
        self._cache.clear()
        self.preview.done()
        self.retention.done()
        self.serve(None)

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

            made = Dashboard(
                self.board(), lambda: (*self._found(), *self._sockets()), self._state.redactor, self._failures
            )
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
            self._cache.keep(flow, checked.folded, checked.record.id)
            clear_console_cache()

    def show(self, flow: http.HTTPFlow) -> None:
        """Redraw a flow."""
        with self._failures.caught("showing the result"):
            view = ctx.master.addons.get("view")  # type: ignore[no-untyped-call]
            if view is not None:
                view.update([flow])

    def _most(self) -> int | None:
        settings = self._state.settings()
        return settings.keep_flows if settings is not None else None
