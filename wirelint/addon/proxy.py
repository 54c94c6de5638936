"""mitmproxy with the addon in front of an upstream, in this very process: what `wirelint proxy` runs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Literal
from urllib.parse import urlsplit

from wirelint.registry import shipped

Tool = Literal["mitmdump", "mitmweb", "mitmproxy"]


class UpstreamError(ValueError):
    """An upstream that mitmproxy's reverse mode cannot take. One line: what, why, the cure."""


def arguments(upstream: str, port: int, extra: Sequence[str] = ()) -> list[str]:
    """mitmproxy's own arguments. What the user gave it comes last, so it wins. Raises UpstreamError."""
    script = shipped("addons") / "inspector.py"
    return ["--mode", f"reverse:{origin(upstream)}", "--listen-port", str(port), "-s", str(script), *extra]


def calm(tool: Tool, extra: Sequence[str]) -> list[str]:
    """What keeps mitmdump from printing every flow beside our line of it, unless the user says how much it is to print."""
    said = any(word.startswith(("flow_detail", "--flow-detail", "-v", "--verbose")) for word in extra)
    return ["--set", "flow_detail=0"] if tool == "mitmdump" and not said else []


def origin(upstream: str) -> str:
    """Scheme, host and port of an upstream's URL. Without a scheme it is https, and http for this machine.

    Raises UpstreamError.
    """
    try:
        url = upstream if "://" in upstream else f"{_scheme(upstream)}://{upstream}"
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UpstreamError(f"--upstream {upstream}: {error}; give a URL such as https://api.openai.com") from error
    if parts.scheme not in ("http", "https") or not host:
        raise UpstreamError(f"--upstream {upstream}: not an HTTP address; give a URL such as https://api.openai.com")
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
    return "http" if host in ("localhost", "::1") or host.startswith("127.") else "https"


def run(tool: Tool, upstream: str, port: int, extra: Sequence[str] = ()) -> int:
    """Runs until it is told to stop; mitmproxy's exit status. Raises UpstreamError."""
    given = [*calm(tool, extra), *arguments(upstream, port, extra)]
    from mitmproxy.tools import main

    if given[:1] != ["--mode"]:
        logging.getLogger("mitmproxy.proxy.server").setLevel(logging.WARNING)  # "client connect", and its end

    tools: dict[Tool, Callable[[Sequence[str]], object]] = {
        "mitmdump": main.mitmdump,
        "mitmweb": main.mitmweb,
        "mitmproxy": main.mitmproxy,
    }
    sys.argv[0] = tool  # the name that mitmproxy's own messages begin with
    try:
        tools[tool](given)
    except SystemExit as stopped:
        return stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    return 0
