"""mitmproxy with the addon, started by wirelint: `wirelint proxy` in this process, and the private proxy of one command.

mitmproxy rejects wrong arguments in its own words, and notices a busy port after announcing that it listens. `start`
lets mitmproxy parse its arguments, then checks for settings that will fail, and reports them in one line."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import io
import itertools
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NoReturn, TextIO, cast
from urllib.parse import urlsplit

from mitmproxy import ctx, http
from mitmproxy import options as mitmproxy_options
from mitmproxy.addons.termlog import TermLogHandler
from mitmproxy.proxy import mode_specs
from mitmproxy.proxy.mode_servers import ServerInstance
from mitmproxy.tools import cmdline
from mitmproxy.tools.main import run as run_mitmproxy

from wirelint.addon import options as ours
from wirelint.launch import find_bind_error
from wirelint.launch.environment import BASE_URLS, is_loopback, read_target
from wirelint.launch.processes import StartError
from wirelint.registry import shipped
from wirelint.tables import hint
from wirelint.text.escaping import counted, excerpt, printable

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from wirelint.addon.addon import Inspector
    from wirelint.view.dashboard import Board
    from wirelint.view.totals import Totals

_USUAL = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")
"""Variables to set for an upstream that is no vendor's: a gateway or an inference server."""

_COLUMNS = ("icon", "comment", "status", "time")
"""mitmweb's columns, unless the user sets others. It has no custom ones: finding, model and tokens are in the comment.
Beside the path, the comment would have 150 pixels, and half of it would be cut off."""

_MOST_PATH = 120
_VERBOSITY = ("flow_detail", "--flow-detail", "-v", "--verbose")

Tool = Literal["mitmdump", "mitmweb", "mitmproxy"]
_MASTERS: dict[Tool, tuple[str, str]] = {
    "mitmdump": ("mitmproxy.tools.dump", "DumpMaster"),
    "mitmweb": ("mitmproxy.tools.web.master", "WebMaster"),
    "mitmproxy": ("mitmproxy.tools.console.master", "ConsoleMaster"),
}


def arguments(upstream: str, host: str, port: int, extra: Sequence[str] = ()) -> list[str]:
    """Return mitmproxy's arguments; the user's come last and win. Raises StartError."""
    script = shipped("addons") / "inspector.py"
    bound = [] if any(word.startswith("listen_host=") for word in extra) else ["--listen-host", host]
    return ["--mode", f"reverse:{origin(upstream)}", *bound, "--listen-port", str(port), "-s", str(script), *extra]


def origin(upstream: str) -> str:
    """Return scheme, host and port of an upstream's URL.

    Without a scheme the host must be a full name (https) or this machine (http). Raises StartError.
    """

    def wrong(text: str, url: str = "https://api.openai.com") -> StartError:
        return StartError(f"--upstream {upstream}: {text}; give a URL such as {url}")

    if re.match(r"https?:", upstream) and "://" not in upstream:  # `http:/x` is a URL without a host
        whole = re.sub(r":/?", "://", upstream, count=1)
        raise StartError(f"--upstream {upstream}: two slashes must follow the scheme; write {whole}")
    try:
        parts = urlsplit(upstream if "://" in upstream else f"//{upstream}")
        if not parts.scheme:
            parts = parts._replace(scheme="http" if is_loopback(parts.hostname or "") else "https")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise wrong(str(error)) from error
    if parts.scheme not in ("http", "https") or not host:
        raise wrong("not an HTTP address")
    if "://" not in upstream and not is_loopback(host) and not re.search(r"[.:]", host):
        raise wrong("no scheme and no full host name", f"https://{upstream}")
    if not re.fullmatch(r"[\w.:%-]+", host):
        raise wrong(f"{host!r} is not a host name")
    if parts.username is not None:
        raise StartError(f"--upstream {upstream}: credentials belong to the client; leave them out of the URL")
    bare = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port is not None else ''}"
    path = parts.path.rstrip("/")
    if path or parts.query or parts.fragment:
        raise StartError(
            f"--upstream {upstream}: a reverse proxy has no path; give {bare}, and {path or '/'} to the client"
        )
    return bare


def run(tool: Tool, upstream: str, host: str, port: int, extra: Sequence[str] = (), *, live: bool = False) -> int:
    """Run until stopped; return mitmproxy's exit status. `live`: show a table of totals. Raises StartError."""
    given = arguments(upstream, host, port, extra)
    if tool == "mitmdump" and not any(word.startswith(_VERBOSITY) for word in extra):
        given = ["--set", "flow_detail=0", *given]  # else mitmdump prints every flow

    def make(options: mitmproxy_options.Options) -> Any:
        master = _master(tool, options)
        master.addons.add(Guide(origin(upstream)))
        if live:
            master.addons.add(LiveTable())
        return master

    return start(tool, given, make, "--port")


def _master(tool: Tool, options: mitmproxy_options.Options) -> Any:
    module, name = _MASTERS[tool]
    return getattr(importlib.import_module(module), name)(options)


class Guide:
    """Addon of `wirelint proxy`: logs at the start how clients are led to the proxy, and chooses mitmweb's columns."""

    name = "wirelint-guide"

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._has_columns = False

    def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Write the path into the comment, where the column of paths is left out. The inspector's words precede it."""
        if self._has_columns and not flow.comment:
            path = flow.request.path.partition("?")[0]
            flow.comment = printable(excerpt(f"{flow.request.method} {path}", _MOST_PATH))

    def running(self) -> None:
        server: Any = ctx.master.addons.get("proxyserver")  # type: ignore[no-untyped-call]
        for host, port, *_ in server.listen_addrs()[:1]:
            for line in exports(self._upstream, host, port):
                logging.getLogger("wirelint").info("wirelint: for clients: %s", line)
        if "web_columns" in ctx.options and not ctx.options.has_changed("web_columns"):  # type: ignore[no-untyped-call]
            ctx.options.update(web_columns=list(_COLUMNS))  # type: ignore[no-untyped-call]
            self._has_columns = True


def exports(upstream: str, host: str, port: int) -> list[str]:
    """Return shell commands that lead a client to a proxy at this address: `export OPENAI_BASE_URL=http://…/v1`.

    `upstream` is an origin. That of a vendor has its own variable; for others the usual ones are returned.
    """
    host = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(host, f"[{host}]" if ":" in host else host)
    targets = {name: read_target(name, url) for name, url in BASE_URLS.items()}
    names = [name for name, target in targets.items() if target.origin == read_target(name, upstream).origin]
    return [f"export {name}=http://{host}:{port}{targets[name].rest}" for name in names or _USUAL]


def start(tool: Tool, arguments: Sequence[str], make: Callable[[mitmproxy_options.Options], Any], port: str) -> int:
    """Run mitmproxy with the master of `make`; return its status. `port`: the option for it. Raises StartError."""
    before, said, argv, started = sys.stderr, io.StringIO(), sys.argv[:], False
    hint_at_options = f"{tool} --options lists what can be set"
    if "flow_detail=0" in arguments:
        logging.getLogger("mitmproxy.proxy.server").setLevel(logging.WARNING)  # "client connect", and its end

    def filters(parsed: Any) -> dict[str, str]:
        """Return the options of mitmdump's positional filter argument."""
        words = " ".join(parsed.filter_args or ())
        return dict.fromkeys(("save_stream_filter", "readfile_filter", "dumper_filter"), words) if words else {}

    def refuse(message: str) -> NoReturn:
        raise StartError(f"{message}; {hint_at_options}")

    def parser(given: mitmproxy_options.Options) -> argparse.ArgumentParser:
        """Return mitmproxy's parser, which then raises StartError for a wrong argument, without hints on old options."""
        made: argparse.ArgumentParser = getattr(cmdline, tool)(given)
        made.error = refuse  # type: ignore[method-assign]
        return made

    def checked(given: mitmproxy_options.Options) -> Any:
        master = make(given)
        begin = master.run

        async def run_checked() -> None:
            nonlocal started
            sys.stderr = before
            if (complaint := next(complaints(tool, given, port), None)) is not None:
                raise StartError(complaint)
            started = True
            await begin()

        master.run = run_checked
        return master

    sys.argv[:] = [tool]  # mitmproxy's messages begin with it; its hints on old options would name wirelint's own
    try:
        with contextlib.redirect_stderr(said):
            run_mitmproxy(checked, parser, arguments, filters if tool == "mitmdump" else None)  # type: ignore[arg-type]
    except SystemExit as stopped:
        status = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
        if status and not started:
            raise StartError(f"{_reason(said.getvalue(), arguments)}; {hint_at_options}") from None
        return status
    finally:
        sys.argv[:] = argv
    return 0


def _reason(said: str, arguments: Sequence[str]) -> str:
    """Return the reason from mitmproxy's output: `mitmdump: error: unrecognized arguments: --nope` after its usage.

    mitmproxy 11 says only `must be "true"`; then the values set are added.
    """
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith(("usage:", " "))]
    why = lines[-1] if lines else "mitmproxy refused its arguments"
    for tool in _MASTERS:
        why = why.removeprefix(f"{tool}: ").removeprefix("error: ")
    given = [after for before, after in itertools.pairwise(arguments) if before == "--set"]
    wrong = [one for one in given if not one.startswith(("wirelint_", "flow_detail=0", "showhost=false"))]
    if not wrong or any(one.partition("=")[0] in why for one in wrong) or why.startswith(("unrecognized", "No such")):
        return why
    return f"--set {', '.join(wrong)}: {why}"


def complaints(tool: Tool, given: Any, port: str) -> Iterator[str]:
    """Yield a message for each setting that will fail. `given`: mitmproxy's options before the start."""
    if tool == "mitmproxy" and not sys.stdout.isatty():
        yield "mitmproxy's console needs a terminal; start it in one, or leave out --console"
    complaint = ours.complaint_about(given.deferred)
    if complaint is not None:
        yield complaint
    if len(given.scripts) < 2:  # another script may define options
        for name, value in given.deferred.items():
            # Options from mitmproxy's config.yaml may be for other runs.
            if hasattr(value, "val") and not name.startswith("wirelint_"):
                near = hint(name, given.keys()) or f"{tool} --options lists those there are"
                yield f"--set {name}: neither mitmproxy nor wirelint has this option; {near}"
    numbers = set[int]()
    for mode in given.mode if given.server else ():
        spec = mode_specs.ProxyMode.parse(mode)
        number = spec.listen_port(given.listen_port)
        if number is not None and spec.transport_protocol != "udp":
            numbers.add(number)
            host = spec.listen_host(given.listen_host)
            if (taken := find_bind_error(host, number, port)) is not None:
                yield taken
    if tool == "mitmweb" and given.web_port:
        taken = find_bind_error(given.web_host, given.web_port, "--set web_port=PORT")
        if taken is None and given.web_port in numbers:
            taken = f"port {given.web_port} is the proxy's; choose another with --port or --set web_port=PORT"
        if taken is not None:
            yield f"mitmweb's page: {taken}"


def _inspector() -> Inspector | None:
    return cast("Inspector | None", ctx.master.addons.get("wirelint"))  # type: ignore[no-untyped-call]


# --- the private proxy of `wirelint run` and `wirelint doctor` ---------------------------------------------------------
#
# The parent talks to it over standard input and output, one JSON line each. First the child reports its ports, all bound
# at port 0: one HTTP proxy port, and one base URL per vendor. Then it answers `{"pending": true}` with the number of
# exchanges not yet written (a client has its reply before its exchange is checked and captured), until
# `{"stop": SECONDS, "totals": false}`: the grace period for exchanges in progress, and whether a table of counts ends the
# log. Its last line is `{"complaint": "…", "runs": […]}`: why changed files of the settings are not in force, and how the
# names of the folders of captures end. End of input means that the parent is gone; the child then stops at once.
# mitmproxy's output goes to standard error.

_POLL = 0.05
_LOOPBACK = "127.0.0.1"


class ParentLink:
    """Addon that reports to the parent and obeys it."""

    name = "wirelint-private"

    def __init__(self, origins: list[str], report: TextIO) -> None:
        self._origins, self._report = origins, report
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
        if self._answers:
            from wirelint.launch.doctor import ANSWER, PATH

            if flow.request.path == PATH:
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
        threading.Thread(target=self._listen, args=(asyncio.get_running_loop(),), daemon=True).start()
        place = {
            "port": next((address[1] for address in manager.listen_addrs()), 0),
            "bases": {origin: port for port, (origin, _) in self._servers.items()},
            "confdir": str(Path(ctx.options.confdir).expanduser()),
        }
        inspector = _inspector()
        notice, runs = (inspector.ui.notice, inspector.runs) if inspector is not None else ("", [])
        self._say({**place, "notice": notice, "runs": runs})

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
        inspector = _inspector()
        self._say({"pending": inspector.write_now() if inspector is not None else 0})

    async def _drain(self, seconds: float, totals: bool) -> None:
        if (inspector := _inspector()) is not None:
            end = asyncio.get_running_loop().time() + seconds
            while inspector.is_busy() and asyncio.get_running_loop().time() < end:
                await asyncio.sleep(_POLL)
            if totals:
                inspector.log_totals()
            self._say({"complaint": inspector.reload.complaint, "runs": inspector.runs})
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
    """Run the private proxy until its parent stops it. `argv`: origins, comma-separated, then arguments of mitmdump."""
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    origins = [origin for origin in sys.argv[1].split(",") if origin]

    def make(given: mitmproxy_options.Options) -> Any:
        master = _master("mitmdump", given)
        master.addons.add(ParentLink(origins, report))
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


# --- the table of `wirelint proxy --live` -------------------------------------------------------------------------------
#
# The totals of the run in the last lines of the terminal, below the log:
#
#     3 conversations, 12 exchanges, 48,210 tokens in, 2,904 out, $0.12; 1 in progress
#     totals         exchanges  tokens in    out  first token    time  issues
#     kimi-k2.5             12     48,210  2,904       0.42 s  21.3 s  ● 3 ▲ 1
#     ● xml-leak 3  ▲ missing-usage 1
#
# The log is printed above the table. Without a terminal there is no table; a table by model then ends the log. What
# draws the table is imported when it is shown: 20 ms.

_PAUSE = 0.25
"""Seconds between two looks at the totals."""
_MOST_MODELS = 8


class LiveTable:
    name = "wirelint-live"

    def __init__(self) -> None:
        from wirelint.view.screen import Screen

        self._screen = Screen(sys.stdout)
        self._live: Live | None = None
        self._task: asyncio.Task[None] | None = None

    def running(self) -> None:
        if not self._screen.is_terminal or self._screen.is_dumb_terminal:
            return
        from rich.file_proxy import FileProxy
        from rich.live import Live

        self._live = Live(
            console=self._screen, auto_refresh=False, redirect_stdout=False, redirect_stderr=False,
            get_renderable=self._table, vertical_overflow="crop",
        )  # fmt: skip
        for handler in logging.getLogger().handlers:
            if isinstance(handler, TermLogHandler):
                handler.file = cast("IO[str]", FileProxy(self._screen, handler.file))
        self._live.start()
        self._task = asyncio.get_running_loop().create_task(self._watch(self._live))

    def done(self) -> None:
        """Leave the last table on the terminal; elsewhere, log the totals."""
        if self._task is not None:
            self._task.cancel()
        if self._live is not None:
            self._live.refresh()
            self._live.stop()
        elif (inspector := _inspector()) is not None:
            inspector.log_totals()

    async def _watch(self, live: Live) -> None:
        shown: object = None
        while True:
            inspector = _inspector()
            seen = (inspector.ui.totals.all.exchanges, inspector.pending, self._screen.size) if inspector else None
            if seen != shown:
                live.refresh()
                shown = seen
            await asyncio.sleep(_PAUSE)

    def _table(self) -> Group:
        from rich.console import Group

        inspector = _inspector()
        if inspector is None:
            return Group()
        return Group(*lines(inspector.ui.totals, inspector.ui.board(), inspector.pending, self._screen.width))


def lines(totals: Totals, board: Board, pending: int, width: int) -> list[Text]:
    """Return the lines of the table. `pending`: exchanges in progress."""
    from rich.text import Text

    from wirelint.view.screen import hung

    counts = board.totals
    cost = str(counts["cost"] or "")
    facts = [
        counted(int(str(counts["conversations"])), "conversation"),
        counted(totals.all.exchanges, "exchange"),
        f"{totals.all.sent:,} tokens in",
        f"{totals.all.received:,} out",
        *([cost if cost.startswith("$") else f"cost {cost}"] if cost else []),
    ]
    first = Text(f"{', '.join(facts)}{f'; {pending} in progress' if pending else ''}", "bold")
    head, *models = totals.table(width)
    if (more := len(models) - _MOST_MODELS - 2) > 0:
        models[_MOST_MODELS:-1] = [Text(f"… {more + 1} more", "dim")]
    table = (head, *models) if totals.all.exchanges else ()
    return [*hung(first, width, 0), *table, *hung(totals.issues(), width, 0)]
