"""How an exchange ended, in mitmproxy's words and in ours."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from mitmproxy import flow as mitmproxy_flow
from mitmproxy import http
from mitmproxy.optmanager import OptManager

from wirelint.addon.flowfile import END_HEADER
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.capture.format import read_end
from wirelint.model import End

_READ_AT_ONCE = ("save_stream_file", "hardump", "dumper_filter")
"""Options of mitmproxy by which flows are read, with what stands on them, as soon as their last hook has run."""

_CLIENT_LEFT = "Client disconnected."
# Said of either side of an HTTP/2 or HTTP/3 connection, with the name of the error code behind it.
_RESET = ("stream reset by client", "stream closed by client")


class Readers:
    """Whether flows are read as soon as their last hook has run."""

    def __init__(self) -> None:
        self.there = False

    def configure(self, options: OptManager, updated: Set[str]) -> None:
        """Options have changed. To ask for each of them whenever an exchange ends would take longer than all else there."""
        if not updated.isdisjoint(_READ_AT_ONCE):
            self.there = any(getattr(options, name, None) for name in _READ_AT_ONCE)


class Ended(NamedTuple):
    """An exchange that has ended and is not judged yet. `duration` in milliseconds."""

    visit: ExchangeRecorder
    flow: http.HTTPFlow
    end: End
    error: str | None
    duration: float | None


def end_of(flow: http.HTTPFlow) -> tuple[End, str | None]:
    """The end of a flow for which `response` or `error` was called, and the text of the error.

    "complete" says that HTTP ended as it should; whether the reply did is told by the reply itself.
    """
    recorded = None if flow.live else _recorded(flow)
    if flow.error is None:
        return recorded or "complete", None
    return recorded or _end_of_error(flow, flow.error.msg), flow.error.msg


def _end_of_error(flow: http.HTTPFlow, message: str) -> End:
    # A flow that was killed on this side says nothing about the upstream either.
    if message in (_CLIENT_LEFT, mitmproxy_flow.Error.KILLED_MESSAGE):
        return "client-left"
    if message.startswith(_RESET):
        many_streams = not flow.request.http_version.startswith("HTTP/1")
        return "client-left" if many_streams and "(CANCEL)" in message else "upstream-died"
    return "upstream-died"


def _recorded(flow: http.HTTPFlow) -> End | None:
    """What an earlier run had noted in the flow."""
    noted = flow.metadata.get("wirelint.end")
    if noted is None and flow.response is not None:
        noted = flow.response.headers.get(END_HEADER)
    return read_end(noted)
