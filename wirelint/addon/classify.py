"""A flow's request as the beginning of a visit."""

from __future__ import annotations

import time
from functools import lru_cache
from urllib.parse import urlsplit

from mitmproxy import http

from wirelint.addon.http_headers import body_of, headers_of
from wirelint.addon.ignoring import asked_headers
from wirelint.addon.recorder import ExchangeRecorder
from wirelint.apis import recognise
from wirelint.apis.unknown import is_text, unknown_because
from wirelint.capture.flow_metadata import NAMES, restore
from wirelint.capture.record import Record
from wirelint.engine import Session, lower
from wirelint.model import Json
from wirelint.wire.content_coding import MOST_PLAIN, TooLargeError

# What a flow from a file says about itself beyond what mitmproxy shows of it: both sides, where it was changed.


def recorded(flow: http.HTTPFlow) -> Record | None:
    """The exchange of a flow that was changed when it passed, as it came in and as it was sent on; else None."""
    beside = {name: flow.metadata[key] for name in NAMES if (key := f"wirelint.{name}") in flow.metadata}
    if not beside:
        return None
    request, response = flow.request, flow.response
    body = _body(request)
    shown = Record(
        id=flow.id,
        method=request.method,
        url=request.pretty_url,
        request_headers=asked_headers(flow),
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
    """Return True if a look at a request's body could show that it is of an API that is understood."""
    match request.method.upper():
        case "POST":
            return True
        case "GET":
            return "text/event-stream" in request.headers.get("accept", "")
        case "DELETE":
            return "mcp-session-id" in request.headers
        case _:
            return False


def open_visit(flow: http.HTTPFlow, body: bytes | None, limit: int) -> ExchangeRecorder:
    """The visit of a flow whose request has come. `body` is without its codings; `limit`: the largest that is read."""
    visit = ExchangeRecorder(
        id=flow.id,
        client=flow.client_conn.id,
        method=flow.request.method,
        url=_url(flow.request),
        request_headers=asked_headers(flow),
        request_body=body or None,
        session=None,
        started=flow.request.timestamp_end or flow.request.timestamp_start,
        limit=limit,
        clock=time.perf_counter,
        began=time.perf_counter(),
        live=flow.live,
    )
    if not flow.live and (known := recorded(flow)) is not None:
        visit.recall(known)
    return visit


def open_unread(flow: http.HTTPFlow, limit: int, *, large: bool) -> ExchangeRecorder | None:
    """The visit of a flow whose request cannot be read, told by its path alone; None for traffic that is none of ours.

    `large`: it is above the limit; otherwise it was streamed.
    """
    visit = open_visit(flow, None, limit)
    headers = lower(visit.request_headers)
    parts = urlsplit(visit.url)
    api = recognise(visit.method, parts.path, headers, _LEAST_BODY, parts.netloc)
    if api is None:
        return None
    visit.session = Session(api, None, id=visit.id, method=visit.method, url=visit.url, headers=headers)
    why = f"is larger than wirelint_max_body ({limit} bytes)" if large else "was streamed past us"
    visit.give_up(f"the request {why}; the exchange passed unread")
    return visit


def note_unknown(visit: ExchangeRecorder) -> bool:
    """Return True if an exchange that no API claims is to be recorded. The visit knows then why."""
    body = visit.request_body or b""
    visit.unknown = unknown_because(visit.method, visit.url, lower(visit.request_headers), body)
    if not visit.unknown:
        return False
    visit.notes.append(f"not judged: {visit.unknown}")
    if not is_text(body):
        visit.request_body = None
        visit.notes.append("the body of the request is no text; it was not kept")
    return True


def duration_of(flow: http.HTTPFlow) -> float | None:
    """Milliseconds that the exchange of a recorded flow took."""
    if flow.response is None or flow.response.timestamp_end is None:
        return None
    return round((flow.response.timestamp_end - flow.request.timestamp_start) * 1000, 3)


def _url(request: http.Request) -> str:
    """The URL as the client means it, unless its host header makes nonsense of it."""
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
