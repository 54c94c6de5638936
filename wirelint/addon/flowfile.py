"""A flow as bytes of mitmproxy's own format, for `flows.mitm`: what the verdict's record holds, and its annotation.

The copy differs from the flow in what a capture must differ in: credentials are marks, and bodies stand without their
content codings, because redaction works on plain text. An exchange that did not end well says so in a response header
that only the copy has, `x-wirelint-end`: a HAR made of the file keeps it. Such a flow carries no `error` of mitmproxy's
beside its response: on reading the file back mitmproxy would run both hooks, and write the exchange into a HAR twice.
"""

from __future__ import annotations

import io
from collections.abc import Callable

from mitmproxy import connection, flow, http
from mitmproxy.io import FlowWriter

from wirelint.addon.annotate import Annotation
from wirelint.capture.record import Headers, Record

END_HEADER = "x-wirelint-end"


def flow_bytes(original: http.HTTPFlow, record: Record, made: Annotation) -> Callable[[], bytes]:
    """A function that gives the bytes. It may be called later and in another thread: it looks at `original` no more."""
    client = original.client_conn.get_state()
    server = original.server_conn.get_state()
    request = original.request
    head = (request.host, request.port, request.scheme, request.http_version)
    times = (request.timestamp_start, request.timestamp_end)
    answer = original.response
    reply = (
        None if answer is None else (answer.http_version, answer.reason, answer.timestamp_start, answer.timestamp_end)
    )
    created, replayed = original.timestamp_created, original.is_replay

    def make() -> bytes:
        copy = http.HTTPFlow(connection.Client.from_state(client), connection.Server.from_state(server))
        copy.id, copy.timestamp_created, copy.is_replay = record.id, created, replayed
        copy.request = _request(record, head, times)
        if reply is not None and record.status is not None:
            copy.response = _response(record, record.status, *reply)
        elif record.error is not None:
            copy.error = flow.Error(record.error)
        copy.comment, copy.marked = made.comment, made.marker
        copy.metadata.update(made.metadata)
        out = io.BytesIO()
        FlowWriter(out).add(copy)  # type: ignore[no-untyped-call]
        return out.getvalue()

    return make


def _request(record: Record, head: tuple[str, int, str, str], times: tuple[float, float | None]) -> http.Request:
    host, port, scheme, version = head
    _, _, address = record.url.partition("://")
    path = address[address.find("/") :] if "/" in address else "/"
    return http.Request(
        host=host,
        port=port,
        method=record.method.encode(),
        scheme=scheme.encode(),
        authority=b"",
        path=path.encode("utf-8", "surrogateescape"),
        http_version=version.encode(),
        headers=_headers(record.request_headers, record.request_body),
        content=record.request_body,
        trailers=None,
        timestamp_start=times[0],
        timestamp_end=times[1],
    )


def _response(
    record: Record, status: int, version: str, reason: str, started: float, ended: float | None
) -> http.Response:
    headers = _headers(record.response_headers, record.response_body)
    if record.end != "complete":
        headers[END_HEADER] = record.end
    return http.Response(
        http_version=version.encode(),
        status_code=status,
        reason=reason.encode("utf-8", "surrogateescape"),
        headers=headers,
        content=record.response_body,
        trailers=None,
        timestamp_start=started,
        timestamp_end=ended,
    )


def _headers(fields: Headers, body: bytes | None) -> http.Headers:
    """The fields, made true for a body without codings; left as they are when the body is not there."""
    headers = http.Headers(
        [(name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape")) for name, value in fields]
    )
    if body is not None:
        headers.pop("content-encoding", None)
        if "content-length" in headers:
            headers["content-length"] = str(len(body))
    return headers
