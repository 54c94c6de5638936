"""mitmproxy with the addon in front of an upstream, in this process: the work of `wirelint proxy`, and checked starts.

mitmproxy rejects wrong arguments in its own words, and notices a busy port after announcing that it listens. `start`
lets mitmproxy parse its arguments, then checks for settings that will fail, and reports them in one line."""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NoReturn
from urllib.parse import urlsplit

from mitmproxy import ctx
from mitmproxy import options as mitmproxy_options
from mitmproxy.proxy import mode_specs
from mitmproxy.tools import cmdline
from mitmproxy.tools.main import run as run_mitmproxy

from wirelint.addon import options as ours
from wirelint.launch import find_bind_error
from wirelint.launch.environment import BASE_URLS, is_loopback, read_target
from wirelint.registry import shipped
from wirelint.tables import hint

_USUAL = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")
"""Variables to set for an upstream that is no vendor's: a gateway or an inference server."""

_COLUMNS = ("icon", "path", "comment", "status", "size", "time")
"""mitmweb's columns, unless the user sets others. It has no custom ones: finding, model and tokens are in the comment."""

Tool = Literal["mitmdump", "mitmweb", "mitmproxy"]


_HOST = re.compile(r"[\w.:%-]+")


class UpstreamError(ValueError):
    """Upstream that reverse mode cannot use. One line: setting, reason, cure."""


def arguments(upstream: str, host: str, port: int, extra: Sequence[str] = ()) -> list[str]:
    """Return mitmproxy's arguments; the user's come last and win. Raises UpstreamError."""
    script = shipped("addons") / "inspector.py"
    bound = [] if any(word.startswith("listen_host=") for word in extra) else ["--listen-host", host]
    return ["--mode", f"reverse:{origin(upstream)}", *bound, "--listen-port", str(port), "-s", str(script), *extra]


def calm(tool: Tool, extra: Sequence[str]) -> list[str]:
    """Return options that keep mitmdump from printing every flow, unless the user sets its verbosity."""
    said = any(word.startswith(("flow_detail", "--flow-detail", "-v", "--verbose")) for word in extra)
    return ["--set", "flow_detail=0"] if tool == "mitmdump" and not said else []


def origin(upstream: str) -> str:
    """Return scheme, host and port of an upstream's URL.

    Without a scheme the host must be a full name (https) or this machine (http). Raises UpstreamError.
    """
    if re.match(r"https?:", upstream) and "://" not in upstream:  # `http:/x` is a URL without a host
        whole = re.sub(r":/?", "://", upstream, count=1)
        raise UpstreamError(f"--upstream {upstream}: two slashes must follow the scheme; write {whole}")
    try:
        url = upstream if "://" in upstream else f"{_scheme(upstream)}://{upstream}"
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UpstreamError(f"--upstream {upstream}: {error}; give a URL such as https://api.openai.com") from error
    if parts.scheme not in ("http", "https") or not host:
        raise UpstreamError(f"--upstream {upstream}: not an HTTP address; give a URL such as https://api.openai.com")
    if "://" not in upstream and not is_loopback(host) and not re.search(r"[.:]", host):
        raise UpstreamError(
            f"--upstream {upstream}: no scheme and no full host name; give a URL such as https://{upstream}"
        )
    if not _HOST.fullmatch(host):
        raise UpstreamError(
            f"--upstream {upstream}: {host!r} is no host name; give a URL such as https://api.openai.com"
        )
    if parts.username is not None:
        raise UpstreamError(f"--upstream {upstream}: credentials belong to the client; leave them out of the URL")
    bare = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port is not None else ''}"
    path = parts.path.rstrip("/")
    if path or parts.query or parts.fragment:
        raise UpstreamError(
            f"--upstream {upstream}: a reverse proxy has no path; give {bare}, and {path or '/'} to the client"
        )
    return bare


def _scheme(address: str) -> str:
    host = urlsplit(f"//{address}").hostname or ""
    return "http" if is_loopback(host) else "https"


def run(tool: Tool, upstream: str, host: str, port: int, extra: Sequence[str] = (), *, live: bool = False) -> int:
    """Run until stopped; return mitmproxy's exit status. `live`: show a table of totals. Raises UpstreamError and
    StartError."""
    given = [*calm(tool, extra), *arguments(upstream, host, port, extra)]

    def make(options: mitmproxy_options.Options) -> Any:
        master = _master(tool, options)
        master.addons.add(Guide(origin(upstream)))
        if live:
            from wirelint.addon.live_table import LiveTable  # 20 ms

            master.addons.add(LiveTable())
        return master

    return start(tool, given, make, "--port")


def _master(tool: Tool, options: mitmproxy_options.Options) -> Any:
    match tool:
        case "mitmdump":
            from mitmproxy.tools.dump import DumpMaster

            return DumpMaster(options)
        case "mitmweb":
            from mitmproxy.tools.web.master import WebMaster

            return WebMaster(options)
        case "mitmproxy":
            from mitmproxy.tools.console.master import ConsoleMaster

            return ConsoleMaster(options)


class Guide:
    """Addon of `wirelint proxy`: logs at the start how clients are led to the proxy, and chooses mitmweb's columns."""

    name = "wirelint-guide"

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream

    def running(self) -> None:
        server: Any = ctx.master.addons.get("proxyserver")  # type: ignore[no-untyped-call]
        for host, port, *_ in server.listen_addrs()[:1]:
            for line in exports(self._upstream, host, port):
                logging.getLogger("wirelint").info("wirelint: for clients: %s", line)
        if "web_columns" in ctx.options and not ctx.options.has_changed("web_columns"):  # type: ignore[no-untyped-call]
            ctx.options.update(web_columns=list(_COLUMNS))  # type: ignore[no-untyped-call]


def exports(upstream: str, host: str, port: int) -> list[str]:
    """Return shell commands that lead a client to a proxy at this address: `export OPENAI_BASE_URL=http://…/v1`.

    `upstream` is an origin. That of a vendor has its own variable; for others the usual ones are returned.
    """
    host = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(host, f"[{host}]" if ":" in host else host)
    targets = {name: read_target(name, url) for name, url in BASE_URLS.items()}
    names = [name for name, target in targets.items() if target.origin == read_target(name, upstream).origin]
    return [f"export {name}=http://{host}:{port}{targets[name].rest}" for name in names or _USUAL]


_PARSERS: dict[Tool, Callable[[mitmproxy_options.Options], argparse.ArgumentParser]] = {
    "mitmdump": cmdline.mitmdump,
    "mitmweb": cmdline.mitmweb,
    "mitmproxy": cmdline.mitmproxy,
}


class StartError(RuntimeError):
    """mitmproxy cannot start. One line: setting, reason, cure."""


def start(tool: Tool, arguments: Sequence[str], make: Callable[[mitmproxy_options.Options], Any], port: str) -> int:
    """Run mitmproxy until it stops; return its exit status. `make` creates the master, `port` is the option for the
    port. Raises StartError."""
    before, said, argv = sys.stderr, io.StringIO(), sys.argv[:]
    started = False
    if "flow_detail=0" in arguments:
        logging.getLogger("mitmproxy.proxy.server").setLevel(logging.WARNING)  # "client connect", and its end

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
            run_mitmproxy(checked, _parser(tool), arguments, _filters if tool == "mitmdump" else None)  # type: ignore[arg-type]
    except SystemExit as stopped:
        status = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
        if status and not started:
            why = _named(reason(said.getvalue()), arguments)
            raise StartError(f"{why}; {tool} --options lists what can be set") from None
        return status
    finally:
        sys.argv[:] = argv
    return 0


def _filters(arguments: Any) -> dict[str, str]:
    """Return the options of mitmdump's positional filter argument."""
    words = " ".join(arguments.filter_args or ())
    return dict.fromkeys(("save_stream_filter", "readfile_filter", "dumper_filter"), words) if words else {}


def _parser(tool: Tool) -> Callable[[mitmproxy_options.Options], argparse.ArgumentParser]:
    """Return a factory of mitmproxy's parser that raises StartError for a wrong argument, without hints on old options."""

    def refuse(message: str) -> NoReturn:
        raise StartError(f"{message}; {tool} --options lists what can be set")

    def make(given: mitmproxy_options.Options) -> argparse.ArgumentParser:
        parser = _PARSERS[tool](given)
        parser.error = refuse  # type: ignore[method-assign]
        return parser

    return make


def reason(said: str) -> str:
    """Return the reason from mitmproxy's output: `mitmdump: error: unrecognized arguments: --nope` after its usage."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith(("usage:", " "))]
    text = lines[-1] if lines else "mitmproxy refused its arguments"
    for tool in _PARSERS:
        text = text.removeprefix(f"{tool}: ").removeprefix("error: ")
    return text


def _named(why: str, arguments: Sequence[str]) -> str:
    """Add the values set to a reason that names none: mitmproxy 11 says only `must be "true"`."""
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
