"""Private mitmproxy of one command: the child process of `wirelint run` and `wirelint doctor`.

The parent talks to it over standard input and output, one JSON line each. First the child reports its ports, all bound
at port 0: one HTTP proxy port, and one base URL per vendor. Then it answers `{"pending": true}` with the number of
exchanges not yet written (a client has its reply before its exchange is checked and captured), until
`{"stop": SECONDS, "totals": false}`: the grace period for exchanges in progress, and whether a table of counts ends the
log. Its last line is `{"complaint": "…", "runs": […]}`: why changed files of the settings are not in force, and how the
names of the folders of captures end. End of input means that the parent is gone; the child then stops at once. mitmproxy's
output goes to standard error."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

from mitmproxy import ctx, http, options
from mitmproxy.proxy.mode_servers import ServerInstance
from mitmproxy.tools.dump import DumpMaster

from wirelint.addon.addon import Inspector
from wirelint.addon.proxy import StartError, start
from wirelint.launch.doctor import ANSWER, PATH

_POLL = 0.05
_LOOPBACK = "127.0.0.1"


class ParentLink:
    """Addon that reports to the parent and obeys it."""

    name = "wirelint-private"

    def __init__(self, origins: list[str], report: TextIO) -> None:
        self._origins = origins
        self._report = report
        self._answers = bool(os.environ.pop("WIRELINT_DOCTOR", ""))
        self._servers: dict[int, tuple[str, Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def running(self) -> None:
        login = os.environ.pop("WIRELINT_UPSTREAM_AUTH", "")
        if login:
            ctx.options.update(upstream_auth=login)  # type: ignore[no-untyped-call]
        self._begin(self._open())

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Shorten the way of a client that sends its base URL through the proxy as well, to avoid passing twice."""
        request = flow.request
        if request.port in self._servers and request.host in (_LOOPBACK, "localhost"):
            own, (origin, _) = flow.client_conn.sockname[1], self._servers[request.port]
            if own != request.port:
                scheme, _, address = origin.partition("://")
                host, _, port = address.rpartition(":")
                request.scheme, request.host, request.port = scheme, host.strip("[]"), int(port)

    def request(self, flow: http.HTTPFlow) -> None:
        """Answer the probe of `wirelint doctor`."""
        if self._answers and flow.request.path == PATH:
            flow.response = http.Response.make(200, ANSWER, {"content-type": "text/plain"})

    async def _open(self) -> None:
        manager = ctx.master.addons.get("proxyserver")  # type: ignore[no-untyped-call]
        try:
            for origin in self._origins:
                server: Any = ServerInstance.make(f"reverse:{origin}@{_LOOPBACK}:0", manager)
                await server.start()
                self._servers[server.listen_addrs[0][1]] = (origin, server)
        except (OSError, ValueError) as error:
            self._say({"failed": f"a port for {origin} cannot be opened: {error}"})
            ctx.master.shutdown()  # type: ignore[no-untyped-call]
            return
        inspector = ctx.master.addons.get("wirelint")  # type: ignore[no-untyped-call]
        threading.Thread(target=self._listen, args=(asyncio.get_running_loop(),), daemon=True).start()
        self._say(
            {
                "port": next((address[1] for address in manager.listen_addrs()), 0),
                "bases": {origin: port for port, (origin, _) in self._servers.items()},
                "confdir": str(Path(ctx.options.confdir).expanduser()),
                "notice": inspector.notice if isinstance(inspector, Inspector) else "",
                "runs": inspector.runs if isinstance(inspector, Inspector) else [],
            }
        )

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        seconds, totals = 0.0, False
        for line in sys.stdin:
            message = json.loads(line)
            if "stop" in message:
                seconds, totals = float(message["stop"]), bool(message.get("totals"))
                break
            loop.call_soon_threadsafe(self._say_pending)
        loop.call_soon_threadsafe(lambda: self._begin(self._drain(seconds, totals)))

    def _say_pending(self) -> None:
        inspector = ctx.master.addons.get("wirelint")  # type: ignore[no-untyped-call]
        if isinstance(inspector, Inspector):
            inspector.write_now()
        self._say({"pending": inspector.pending if isinstance(inspector, Inspector) else 0})

    async def _drain(self, seconds: float, totals: bool) -> None:
        inspector = ctx.master.addons.get("wirelint")  # type: ignore[no-untyped-call]
        end = asyncio.get_running_loop().time() + seconds
        while isinstance(inspector, Inspector) and inspector.is_busy() and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_POLL)
        if totals and isinstance(inspector, Inspector):
            inspector.log_totals()
        if isinstance(inspector, Inspector):
            self._say({"complaint": inspector.complaint, "runs": inspector.runs})
        for _, server in self._servers.values():
            await server.stop()
        ctx.master.shutdown()  # type: ignore[no-untyped-call]

    def _begin(self, coroutine: object) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(coroutine)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _say(self, value: object) -> None:
        with contextlib.suppress(OSError):  # the parent is gone
            self._report.write(json.dumps(value) + "\n")
            self._report.flush()


def main() -> None:
    """Run until the parent stops it. `argv`: origins, comma-separated, then arguments of mitmdump."""
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    origins = [origin for origin in sys.argv[1].split(",") if origin]

    def make(given: options.Options) -> DumpMaster:
        master = DumpMaster(given)
        master.addons.add(ParentLink(origins, report))  # type: ignore[no-untyped-call]
        return master

    errors = _Errors(logging.ERROR)
    logging.getLogger().addHandler(errors)
    status = 2
    try:
        status = start("mitmdump", sys.argv[2:], make, "--set mode=regular@PORT")
    except StartError as error:
        errors.first = str(error)
    if errors.first:
        report.write(json.dumps({"failed": errors.first}) + "\n")
    with contextlib.suppress(OSError):
        report.flush()
        sys.stderr.flush()
    os._exit(status)  # everything is closed; the end of the interpreter would take 0.4 s, for which the parent waits


class _Errors(logging.Handler):
    """Handler that keeps the first error: during the start it is the reason of failure."""

    first = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or record.getMessage().removeprefix("wirelint: ")
