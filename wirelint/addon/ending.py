"""How an exchange ended, in mitmproxy's words and in ours, and what is left of it then."""

from __future__ import annotations

from mitmproxy import flow as mitmproxy_flow
from mitmproxy import http

from wirelint.addon.failures import Failures
from wirelint.addon.flowfile import END_HEADER
from wirelint.addon.framing import headers_of
from wirelint.addon.mending import Mending
from wirelint.addon.tee import Tee
from wirelint.addon.visit import Visit
from wirelint.capture.format import read_end
from wirelint.model import End

READ_AT_ONCE = ("save_stream_file", "hardump", "dumper_filter")
"""Options of mitmproxy by which flows are read, with what stands on them, as soon as their last hook has run."""

_CLIENT_LEFT = "Client disconnected."
# Said of either side of an HTTP/2 or HTTP/3 connection, with the name of the error code behind it.
_RESET = ("stream reset by client", "stream closed by client")


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


def take_the_rest(visit: Visit, flow: http.HTTPFlow, mending: Mending | None, failures: Failures) -> None:
    """Body and record of the reply, where the tee did not see to both."""
    response = flow.response
    if response is None:
        return
    try:
        if visit.status is None:
            visit.respond(response.status_code, headers_of(response))
        if response.raw_content is None and not visit.live:
            visit.give_up("the reply was not recorded")
        elif mending is not None and mending.end(response):
            return
        elif response.raw_content is None and visit.empty and not (visit.collected or type(response.stream) is Tee):
            visit.give_up("another addon took the stream over; the reply passed unread")
        elif response.raw_content is None:
            # What came by is what the client got; without this mitmproxy has no body to show, filter or save.
            response.raw_content = visit.raw_body()
        elif visit.empty:
            visit.take_whole(visit.known_body() or response.raw_content)
    except Exception as error:  # fail open
        failures.fail(visit, "reading the reply", error)
