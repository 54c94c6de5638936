"""Reading mitmproxy's flows: whether a request is ours, its recorder, and how the exchange ended.

The header `x-wirelint-ignore` is removed in `requestheaders`, for all traffic, because a streamed body leaves right
after it. The flow keeps the value in its metadata, so that flow files give the same findings as captures."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Set
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from mitmproxy import flow as mitmproxy_flow
from mitmproxy import http
from mitmproxy.optmanager import OptManager

from wirelint.addon.annotate import END_HEADER
from wirelint.addon.http_headers import body_of, headers_of
from wirelint.addon.log import Failures, say
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.apis import recognise
from wirelint.apis.unknown import is_text, unknown_because
from wirelint.capture.flow_metadata import NAMES, restore
from wirelint.capture.format import read_end
from wirelint.capture.record import Headers, Record
from wirelint.engine import Session, lower
from wirelint.model import End, Json
from wirelint.registry import Registry
from wirelint.settings.scopes import HEADER, unknown
from wirelint.wire.content_coding import MOST_PLAIN, TooLargeError

_MOST_TOLD = 100


class IgnoreHeader:
    """Remover of the header. `known` returns the rules, once they are loaded."""

    def __init__(self, known: Callable[[], Registry | None], failures: Failures) -> None:
        self._known, self._failures = known, failures
        self._logged: set[str] = set()

    def begins(self, flow: http.HTTPFlow) -> None:
        try:
            self._take_off(flow)
        except Exception as error:  # fail open
            self._failures.log(f"taking off {HEADER}", error)

    def _take_off(self, flow: http.HTTPFlow) -> None:
        """Remove the header from a request that will be forwarded. A flow from a file is not changed."""
        headers, known = flow.request.headers, self._known()
        if HEADER not in headers or not (flow.live or flow.is_replay):
            return
        value = ",".join(headers.get_all(HEADER))
        del headers[HEADER]
        flow.metadata[HEADER] = value
        for line in unknown(value, known) if known is not None else ():
            if line not in self._logged and len(self._logged) < _MOST_TOLD:
                self._logged.add(line)
                say(f"wirelint: {line}", logging.WARNING)


def request_headers_of(flow: http.HTTPFlow) -> Headers:
    """Return the request headers as the client sent them."""
    headers, value = headers_of(flow.request), flow.metadata.get(HEADER)
    if isinstance(value, str) and HEADER not in flow.request.headers:
        return (*headers, (HEADER, value))
    return headers


def recorded(flow: http.HTTPFlow) -> Record | None:
    """Return both sides of a recorded exchange that was changed in transit, else None."""
    beside = {name: flow.metadata[key] for name in NAMES if (key := f"wirelint.{name}") in flow.metadata}
    if not beside:
        return None
    request, response = flow.request, flow.response
    body = _body(request)
    shown = Record(
        id=flow.id,
        method=request.method,
        url=request.pretty_url,
        request_headers=request_headers_of(flow),
        request_body=body or None,
        status=response.status_code if response is not None else None,
        response_headers=headers_of(response) if response is not None else (),
        response_body=_body(response) if response is not None else None,
    )
    return restore(shown, beside)


def _body(message: http.Message) -> bytes | None:
    try:
        return body_of(message, MOST_PLAIN)
    except TooLargeError:
        return None


# A body that shows nothing: an API claims it only where path and headers alone tell what the request is.
_LEAST_BODY: Json = {"messages": [{"role": "user"}]}


def may_be_ours(request: http.Request) -> bool:
    """Return True if the body could show that the request is of a known API."""
    match request.method.upper():
        case "POST":
            return True
        case "GET":
            return "text/event-stream" in request.headers.get("accept", "")
        case "DELETE":
            return "mcp-session-id" in request.headers
        case _:
            return False


def open_recorder(flow: http.HTTPFlow, body: bytes | None, limit: int) -> ExchangeRecorder:
    """Create the recorder of a request. `body` is decoded; `limit` is the largest body that is read."""
    recorder = ExchangeRecorder(
        id=flow.id,
        client=flow.client_conn.id,
        method=flow.request.method,
        url=_url(flow.request),
        request_headers=request_headers_of(flow),
        request_body=body or None,
        session=None,
        started=flow.request.timestamp_end or flow.request.timestamp_start,
        limit=limit,
        clock=time.perf_counter,
        clock_start=time.perf_counter(),
        is_live=flow.live,
    )
    if not flow.live and (known := recorded(flow)) is not None:
        recorder.restore_record(known)
    return recorder


def open_unread(flow: http.HTTPFlow, limit: int, *, large: bool) -> ExchangeRecorder | None:
    """Create the recorder of a request recognised by path alone; None for other traffic. `large`: above the limit, else
    streamed."""
    recorder = open_recorder(flow, None, limit)
    headers = lower(recorder.request_headers)
    parts = urlsplit(recorder.url)
    api = recognise(recorder.method, parts.path, headers, _LEAST_BODY, parts.netloc)
    if api is None:
        return None
    recorder.session = Session(api, None, id=recorder.id, method=recorder.method, url=recorder.url, headers=headers)
    why = f"is larger than wirelint_max_body ({limit} bytes)" if large else "was streamed past us"
    recorder.mark_unread(f"the request {why}; the exchange passed unread")
    return recorder


def note_unknown(recorder: ExchangeRecorder) -> bool:
    """Return True if an exchange of an unknown API is to be recorded; the recorder gets the reason."""
    body = recorder.request_body or b""
    recorder.unknown_reason = unknown_because(recorder.method, recorder.url, lower(recorder.request_headers), body)
    if not recorder.unknown_reason:
        return False
    recorder.notes.append(f"not judged: {recorder.unknown_reason}")
    if not is_text(body):
        recorder.request_body = None
        recorder.notes.append("the body of the request is no text; it was not kept")
    return True


def duration_of(flow: http.HTTPFlow) -> float | None:
    """Return the duration of a recorded exchange in milliseconds."""
    if flow.response is None or flow.response.timestamp_end is None:
        return None
    return round((flow.response.timestamp_end - flow.request.timestamp_start) * 1000, 3)


def _url(request: http.Request) -> str:
    """Return the URL with the client's host header, unless that makes it invalid."""
    data = request.data
    hosts = tuple([value for name, value in data.headers.fields if name.lower() == b"host"])
    return _url_of(data.host, data.port, data.method, data.scheme, data.authority, data.path, data.http_version, hosts)


@lru_cache(maxsize=64)  # an agent asks at one place, and mitmproxy takes the name of the host apart each time
def _url_of(
    host: str,
    port: int,
    method: bytes,
    scheme: bytes,
    authority: bytes,
    path: bytes,
    version: bytes,
    hosts: tuple[bytes, ...],
) -> str:
    headers = http.Headers([(b"host", value) for value in hosts])
    request = http.Request(host, port, method, scheme, authority, path, version, headers, None, None, 0.0, None)
    url = request.pretty_url
    try:
        urlsplit(url)
    except ValueError:
        return request.url
    return url


_READ_AT_ONCE = ("save_stream_file", "hardump", "dumper_filter")
"""Options of mitmproxy that read flows and annotations as soon as the last hook returns."""

_CLIENT_LEFT = "Client disconnected."
# Said of either side of an HTTP/2 or HTTP/3 connection, with the name of the error code behind it.
_RESET = ("stream reset by client", "stream closed by client")


class ImmediateReaders:
    """Return True if options of mitmproxy read flows as soon as their last hook returns."""

    def __init__(self) -> None:
        self.there = False

    def configure(self, options: OptManager, updated: Set[str]) -> None:
        """Read the options when they change; reading them per exchange is slow."""
        if not updated.isdisjoint(_READ_AT_ONCE):
            self.there = any(getattr(options, name, None) for name in _READ_AT_ONCE)


class EndedExchange(NamedTuple):
    """Exchange that has ended and is not checked yet. `duration` in milliseconds."""

    recorder: ExchangeRecorder
    flow: http.HTTPFlow
    end: End
    error: str | None
    duration: float | None


def end_reason_of(flow: http.HTTPFlow) -> tuple[End, str | None]:
    """Return how a flow ended and its error text. "complete" means that HTTP ended correctly; the reply itself shows
    more."""
    recorded = None if flow.live else _recorded(flow)
    if flow.error is None:
        return recorded or "complete", None
    return recorded or _end_reason_of_error(flow, flow.error.msg), flow.error.msg


def _end_reason_of_error(flow: http.HTTPFlow, message: str) -> End:
    # A flow that was killed on this side says nothing about the upstream either.
    if message in (_CLIENT_LEFT, mitmproxy_flow.Error.KILLED_MESSAGE):
        return "client-left"
    if message.startswith(_RESET):
        many_streams = not flow.request.http_version.startswith("HTTP/1")
        return "client-left" if many_streams and "(CANCEL)" in message else "upstream-died"
    return "upstream-died"


def _recorded(flow: http.HTTPFlow) -> End | None:
    """Return the end that an earlier run stored in the flow."""
    noted = flow.metadata.get("wirelint.end")
    if noted is None and flow.response is not None:
        noted = flow.response.headers.get(END_HEADER)
    return read_end(noted)
