"""mitmproxy with the addon in front of an upstream, in this very process: what `wirelint proxy` runs."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Literal
from urllib.parse import urlsplit

from wirelint.launch.environment import is_loopback
from wirelint.registry import shipped

Tool = Literal["mitmdump", "mitmweb", "mitmproxy"]


_HOST = re.compile(r"[\w.:%-]+")


class UpstreamError(ValueError):
    """An upstream that mitmproxy's reverse mode cannot take. One line: what, why, the cure."""


def arguments(upstream: str, host: str, port: int, extra: Sequence[str] = ()) -> list[str]:
    """mitmproxy's own arguments. What the user gave it comes last, so it wins. Raises UpstreamError.

    Without `--listen-host` mitmproxy listens on all interfaces of the machine. The option beats `--set listen_host=…`
    wherever they stand, so it is left out where the user sets that one.
    """
    script = shipped("addons") / "inspector.py"
    bound = [] if any(word.startswith("listen_host=") for word in extra) else ["--listen-host", host]
    return ["--mode", f"reverse:{origin(upstream)}", *bound, "--listen-port", str(port), "-s", str(script), *extra]


def calm(tool: Tool, extra: Sequence[str]) -> list[str]:
    """What keeps mitmdump from printing every flow beside our line of it, unless the user says how much it is to print."""
    said = any(word.startswith(("flow_detail", "--flow-detail", "-v", "--verbose")) for word in extra)
    return ["--set", "flow_detail=0"] if tool == "mitmdump" and not said else []


def origin(upstream: str) -> str:
    """Scheme, host and port of an upstream's URL.

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


def run(tool: Tool, upstream: str, host: str, port: int, extra: Sequence[str] = ()) -> int:
    """Runs until it is told to stop; mitmproxy's exit status. Raises UpstreamError and StartError."""
    given = [*calm(tool, extra), *arguments(upstream, host, port, extra)]
    from mitmproxy.options import Options

    from wirelint.addon.starting import start

    if given[:1] != ["--mode"]:
        logging.getLogger("mitmproxy.proxy.server").setLevel(logging.WARNING)  # "client connect", and its end

    def make(options: Options) -> object:
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

    return start(tool, given, make, "--port")
