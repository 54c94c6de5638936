"""Reader of mitmproxy's flow files, one flow at a time.

The format has no checksums and no marks between flows, so everything after a broken flow is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, cast
from urllib.parse import urlsplit

from mitmproxy import flow as mitm_flow
from mitmproxy import http
from mitmproxy.io import FlowReader

from wirelint.capture.format import END_HEADER, read_end, restored
from wirelint.capture.readers.source import Problem, plain_body
from wirelint.capture.record import Headers, Record
from wirelint.model import End, Json, Timing
from wirelint.settings import HEADER
from wirelint.wire.websocket import HEADERS, STATUS, socket_url, turns

_OURS = "wirelint."
_LOSSLESS = "surrogateescape"
_LEFT = "Client disconnected."
# Error messages for either side of an HTTP/2 or HTTP/3 connection, followed by the name of the error code.
_RESET = ("stream reset by client", "stream closed by client")


def read(data: BinaryIO, source: str) -> Iterator[Record | Problem]:
    """Yield the exchanges of a flow file, also those over WebSockets. Flows of other protocols are skipped."""
    number = count = 0
    flows = iter(FlowReader(data).stream())
    while True:
        try:
            flow = next(flows, None)
            if flow is None:
                return
            number += 1
            records = records_of(flow) if isinstance(flow, http.HTTPFlow) else []
        except OSError:
            raise
        except Exception as error:  # Fail open: corrupt state ends in exceptions of every kind, and is reported below.
            reason = str(error).strip() or type(error).__name__
            read_before = "everything before it was read" if count else "nothing could be read"
            is_cut = "Invalid data" in reason or isinstance(error, MemoryError)  # at a corrupt length
            message = "the flow file is cut off or corrupt here" if is_cut else f"corrupt flow: {reason[:80]}"
            yield Problem(source, f"flow {number + 1}", message, read_before, fatal=count == 0)
            return
        count += len(records)
        yield from (record.but(source=source, place=f"flow {number}") for record in records)


def records_of(flow: http.HTTPFlow) -> list[Record]:
    """Return the records of a flow in memory, which may be a WebSocket with several exchanges."""
    if flow.websocket is None:
        return [record_of(flow)]
    by_client = flow.websocket.closed_by_client
    end: End = "unknown" if by_client is None else "client-left" if by_client else "upstream-died"
    said = (
        (message.from_client, message.content)
        for message in flow.websocket.messages
        if message.is_text and not message.dropped
    )
    return [
        Record(
            id=f"{flow.id}:{count}",
            method=flow.request.method,
            url=socket_url(url_of(flow.request)),
            request_headers=asked_headers(flow),
            request_body=turn.asked,
            status=STATUS if turn.answered else None,
            response_headers=HEADERS if turn.answered else (),
            response_body=bytes(turn.answered) or None,
            end="complete" if turn.closed else end,
            form="mitmproxy",
        )
        for count, turn in enumerate(turns(said), 1)
    ]


def record_of(flow: http.HTTPFlow) -> Record:
    """Return the record of a flow in memory, equal to that of a flow file."""
    notes: list[Json] = []
    request_body = _body(flow.request, "request", notes)
    response_body = _body(flow.response, "response", notes) if flow.response is not None else None
    beside: dict[str, Json] = {
        name.removeprefix(_OURS): cast("Json", value)
        for name, value in flow.metadata.items()
        if isinstance(name, str) and name.startswith(_OURS)
    }
    is_unread = any("content-encoding" in str(note) for note in notes)
    is_unread = is_unread or (flow.response is not None and response_body is None)
    end = read_end(flow.response.headers.get(END_HEADER)) if flow.response is not None else None
    record = Record(
        id=flow.id,
        method=flow.request.method,
        url=url_of(flow.request),
        request_headers=asked_headers(flow),
        request_body=request_body or None,
        status=flow.response.status_code if flow.response is not None else None,
        response_headers=headers_of(flow.response) if flow.response is not None else (),
        response_body=response_body,
        timing=_timing(flow),
        end=end or ("unread" if is_unread else end_of(flow)),
        error=flow.error.msg if flow.error is not None else None,
        form="mitmproxy",
        annotations={"notes": notes} if notes else {},
    )
    return restored(record, beside)


def asked_headers(flow: http.HTTPFlow) -> Headers:
    """Return the headers that the client sent. A header that the proxy removed is in the metadata."""
    headers, value = headers_of(flow.request), flow.metadata.get(HEADER)
    return (*headers, (HEADER, value)) if isinstance(value, str) and HEADER not in flow.request.headers else headers


def url_of(request: http.Request) -> str:
    """Return the URL with the client's host header, unless that makes it invalid."""
    try:
        urlsplit(url := request.pretty_url)
    except ValueError:
        return request.url
    return url


def headers_of(message: http.Message) -> Headers:
    """Return the headers of a message as text. Bytes that are no UTF-8 become lone surrogates."""
    fields = message.headers.fields
    return tuple([(name.decode("utf-8", _LOSSLESS), value.decode("utf-8", _LOSSLESS)) for name, value in fields])


def _body(message: http.Message, side: str, notes: list[Json]) -> bytes | None:
    """Return the body without its codings; None with a note if it is missing or cannot be decoded."""
    raw = message.raw_content
    if raw is None:
        notes.append(f"the body of the {side} was not recorded")
        return None
    return plain_body(message.headers.get("content-encoding"), raw, side, notes)


def end_of(flow: http.HTTPFlow) -> End:
    """Return the end of a flow. "complete" means that HTTP ended correctly; the reply may still be incomplete."""
    if flow.error is None:
        return "complete" if flow.response is not None else "unknown"
    message = flow.error.msg
    # A flow that was killed on this side does not show how the upstream ended either.
    if message in (_LEFT, mitm_flow.Error.KILLED_MESSAGE):
        return "client-left"
    is_cancelled = message.startswith(_RESET) and "(CANCEL)" in message
    return "client-left" if is_cancelled and not flow.request.http_version.startswith("HTTP/1") else "upstream-died"


def _timing(flow: http.HTTPFlow) -> Timing:
    started = flow.request.timestamp_start
    response, error = flow.response, flow.error
    first = response.timestamp_start if response is not None else None
    last = (response.timestamp_end if response is not None else None) or (
        error.timestamp if error is not None else None
    )
    return Timing(started, _milliseconds(started, first), None, _milliseconds(started, last))


def _milliseconds(started: float, moment: float | None) -> float | None:
    return round((moment - started) * 1000, 3) if moment else None
