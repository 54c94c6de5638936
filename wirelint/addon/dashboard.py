"""The live page of `--dashboard`: an HTTP server on loopback in mitmproxy's process and on its event loop.

Theory of operation. `Board` holds what the page shows. A page gets its HTML once, then server-sent events:

    event: state
    data: {"totals": {…}, "rows": [{"id": "c7f0…", …}], "issues": […], "gone": [], "open": […]}

The first event has everything, later ones what changed. `_Events` holds ids, not events: a browser that reads slowly gets
the newest state of each row when it reads again, and if too many ids wait, they are replaced by a new first event. So the
memory for a page is bounded, and nothing waits for a browser. Exchanges in progress are read by a timer that runs only
while a page is open. Details of a conversation or an exchange are made in a thread when the page asks for them.

Access. The address has a random token. A request with another Host header is refused (DNS rebinding), as is one without
the token. The policy of the page allows one script and one style, by nonce, and connections to this server.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from tornado.httpserver import HTTPServer
from tornado.iostream import StreamClosedError
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from wirelint.addon.log import Failures
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.capture.format import dump_printable
from wirelint.capture.offline import Checked
from wirelint.capture.redact import Redactor
from wirelint.view.dashboard import Board, describe_open, describe_waiting
from wirelint.view.html import render_dashboard
from wirelint.view.html.exchange import Object

HOST = "127.0.0.1"
_PAUSE = 0.25
"""Seconds between two events to a page, and between two looks at the exchanges in progress."""
_ALIVE = 15.0
"""Seconds after which a comment is sent, so that a connection without events is noticed to be broken."""
_PATIENCE = 30.0
"""Seconds that a page has to read an event; then it is disconnected, and its browser connects again."""
_MOST_PAGES = 8
_MOST_WAITING = 400
"""Ids that wait for a page; more are replaced by an event with everything."""
_MOST_OPEN = 12
"""Exchanges in progress that are shown, the oldest ones."""
_BUDGET = 0.005
"""Seconds for one look at the exchanges in progress."""
_LARGEST = 1 << 20
"""Bytes of a reply in progress above which its text is not shown before its end: it is parsed again for every look."""


class _Shown(NamedTuple):
    """An exchange in progress as it was read at `at` (in seconds), when its recorder had this size."""

    size: int
    at: float
    value: Object


class Dashboard:
    """The server and its pages. `found` returns the exchanges in progress. After `start` no method raises."""

    def __init__(
        self,
        board: Board,
        found: Callable[[], Iterable[ExchangeRecorder]],
        redactor: Callable[[], Redactor],
        failures: Failures,
    ) -> None:
        self._board = board
        self._found, self._redactor, self.failures = found, redactor, failures
        self._token = secrets.token_urlsafe(18)
        self.pages: set[_Events] = set()
        self._server: HTTPServer | None = None
        self._watching: asyncio.Task[None] | None = None
        self._shown: dict[str, _Shown] = {}
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/?token={self._token}"

    def start(self, port: int) -> None:
        """Listen at a port of this machine, 0 for a free one. Raises OSError."""
        sockets = bind_sockets(port, HOST)
        self.port = sockets[0].getsockname()[1]
        own = {"dashboard": self}
        details = {"conversation": self._board.conversation, "exchange": self._board.exchange}
        rows: list[Any] = [("/", _Html, own), ("/events", _Events, own), ("/.*", _Nothing, own)]
        rows[2:2] = [(f"/{name}", _Detail, {**own, "find": find}) for name, find in details.items()]
        application = Application(rows, log_function=lambda handler: None)
        self._server = HTTPServer(
            application, idle_connection_timeout=_PATIENCE, max_body_size=0, max_header_size=1 << 14
        )
        self._server.add_sockets(sockets)

    def stop(self) -> None:
        """Stop listening, and tell the pages that the run has ended."""
        with self.failures.caught("ending the dashboard"):
            if self._server is not None:
                self._server.stop()
            if self._watching is not None:
                self._watching.cancel()
            for page in tuple(self.pages):
                page.end()

    def add(self, checked: Checked) -> None:
        with self.failures.caught("updating the dashboard"):
            conversations, issues = self._board.add(checked)
            for page in self.pages:
                page.note(conversations, issues)

    # --- pages --------------------------------------------------------------------------------------------------------

    def admits(self, host: str, token: str) -> bool:
        """Return True if a request names this server and has the token."""
        names = {f"{name}:{self.port}" for name in (HOST, "localhost")}
        return host in names and hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode())

    def join(self, page: _Events) -> bool:
        """Add a page; return False if there are too many."""
        if len(self.pages) >= _MOST_PAGES:
            return False
        self.pages.add(page)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.get_running_loop().create_task(self._watch())
        return True

    def event(self, page: _Events) -> bytes:
        """Return the next event of a page, and forget what waited for it."""
        made = self._board.everything() if page.is_new else self._board.changes(page.conversations, page.issues)
        page.taken()
        data = dump_printable(made | {"open": [one.value for one in self._shown.values()]})
        return b"event: state\ndata: %b\n\n" % data

    async def _watch(self) -> None:
        while self.pages:
            with self.failures.caught("showing exchanges in progress"):
                before = self._shown
                self._shown = self._look()
                if self._shown != before:
                    for page in self.pages:
                        page.note((), ())
            await asyncio.sleep(_PAUSE)

    def _look(self) -> dict[str, _Shown]:
        """Return the exchanges in progress. Those with new bytes are read again, for some milliseconds; the rest later."""
        found = [(one, self._shown.get(one.id)) for one in list(self._found())[:_MOST_OPEN]]
        shown = {one.id: before for one, before in found if before is not None}
        end = time.perf_counter() + _BUDGET
        for one, before in sorted(found, key=lambda item: item[1].at if item[1] is not None else 0.0):
            size, now = one.size, time.perf_counter()
            if before is None or (size != before.size and now < end):
                shown[one.id] = _Shown(size, now, self._describe(one))
        return shown

    def _describe(self, recorder: ExchangeRecorder) -> Object:
        with self.failures.caught("showing an exchange in progress"):
            exchange = recorder.look() if recorder.is_readable and recorder.size <= _LARGEST else None
            if exchange is not None:
                return describe_open(recorder.id, exchange, self._redactor().text)
        return describe_waiting(recorder.id, self._redactor().text(recorder.url), recorder.started)


# --- requests ---------------------------------------------------------------------------------------------------------


class _Handler(RequestHandler):
    """A request of the page: refused without the token."""

    def initialize(self, dashboard: Dashboard) -> None:
        self.dashboard = dashboard

    def prepare(self) -> None:
        if not self.dashboard.admits(self.request.headers.get("Host", ""), self.get_query_argument("token", "")):
            self.refuse(403, "refused: open the address that wirelint printed at its start, with its token")

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        for name, value in (
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ):
            self.set_header(name, value)

    def refuse(self, status: int, reason: str) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{reason}\n")

    def write_error(self, status_code: int, **details: Any) -> None:
        self.refuse(status_code, f"{status_code}: the request failed")

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        if value is not None and not hasattr(value, "status_code"):  # tornado's HTTPError is an answer, no failure
            self.dashboard.failures.log("the dashboard", value)


class _Html(_Handler):
    def get(self) -> None:
        nonce = secrets.token_urlsafe(16)
        page, policy = render_dashboard(nonce)
        self.set_header("Content-Security-Policy", policy)
        self.finish(page)


class _Detail(_Handler):
    """The exchanges of a conversation and the paths of its calls, or the details of one exchange: what `find` returns."""

    def initialize(
        self, dashboard: Dashboard, find: Callable[[str], Callable[[], Object] | None] = lambda _: None
    ) -> None:
        super().initialize(dashboard)
        self._find = find

    async def get(self) -> None:
        make = self._find(self.get_query_argument("id", "", strip=False))
        if make is None:
            self.refuse(404, "not kept any more")
            return
        data = await asyncio.to_thread(lambda: dump_printable(make()))
        self.set_header("Content-Type", "application/json; charset=utf-8")
        self.finish(data)


class _Nothing(_Handler):
    def get(self) -> None:
        self.refuse(404, "no such page")


class _Events(_Handler):
    """The events of one page, until it is closed or the run ends, and the ids that wait to be sent to it.

    `is_new`: the page needs everything. `has_news`: an event is due.
    """

    def initialize(self, dashboard: Dashboard) -> None:
        super().initialize(dashboard)
        self._wake = asyncio.Event()
        self._is_over = False
        self.conversations: set[str] = set()
        self.issues: set[str] = set()
        self.is_new = self.has_news = True

    async def get(self) -> None:
        if not self.dashboard.join(self):
            self.refuse(503, f"{_MOST_PAGES} pages are open already; close one")
            return
        self.set_header("Content-Type", "text/event-stream; charset=utf-8")
        try:
            while not self._is_over:
                self.write(self.dashboard.event(self) if self.has_news else b": alive\n\n")
                await asyncio.wait_for(self.flush(), _PATIENCE)
                await asyncio.sleep(_PAUSE)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _ALIVE)
        except asyncio.CancelledError:  # the process ends, and the page has been told
            pass
        except (StreamClosedError, TimeoutError):
            self.request.connection.close()  # type: ignore[union-attr]
        finally:
            self.dashboard.pages.discard(self)

    def note(self, conversations: Collection[str], issues: Collection[str]) -> None:
        """Let these rows and issues be sent, and the exchanges in progress."""
        self.conversations.update(conversations)
        self.issues.update(issues)
        if len(self.conversations) + len(self.issues) > _MOST_WAITING:
            self.taken()
            self.is_new = True
        self.has_news = True
        self._wake.set()

    def taken(self) -> None:
        self.conversations.clear()
        self.issues.clear()
        self.is_new = self.has_news = False
        self._wake.clear()

    def end(self) -> None:
        """Send the last state, and that the run has ended. The process may end right after this call."""
        self._is_over = True
        self._wake.set()
        if not self._finished:
            with contextlib.suppress(StreamClosedError):
                self.finish(self.dashboard.event(self) + b"event: end\ndata: {}\n\n")

    def on_connection_close(self) -> None:
        self._is_over = True
        self._wake.set()
