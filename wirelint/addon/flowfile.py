"""Flows for `flows.mitm`, written by mitmproxy's `FlowWriter`: the record of an exchange, and its annotation.

The copy differs from the flow in what a capture must differ in: credentials are marks, and bodies stand without their
content codings, because redaction works on plain text. Its request and response are what came in, as everywhere in the
captures, so that all readers judge the same bytes and pointers of findings are right; what was sent on stands beside
them, in the metadata. An exchange that did not end well says so in a response header that only the copy has,
`x-wirelint-end`: a HAR made of the file keeps it. Such a flow carries no `error` of mitmproxy's beside its response: on
reading the file back mitmproxy would run both hooks, and write the exchange into a HAR twice.
"""

from __future__ import annotations

import copy
import functools
import io
from collections.abc import Callable, Iterable

from mitmproxy import flow as mitmproxy_flow
from mitmproxy import http
from mitmproxy.io import FlowWriter

from wirelint.addon.annotate import Annotation, prefixed
from wirelint.addon.verdict import CheckResult
from wirelint.capture.flow_metadata import beside_received, times_of
from wirelint.capture.format import encode
from wirelint.capture.record import Headers, Record
from wirelint.capture.store import Piece, Store
from wirelint.wire.websocket import is_socket

END_HEADER = "x-wirelint-end"


def flow_bytes(original: http.HTTPFlow, record: Record, made: Annotation) -> Callable[[], bytes]:
    """Return a function that gives the bytes. It may run later and in another thread: it does not use `original`."""
    flow = http.HTTPFlow(copy.copy(original.client_conn), copy.copy(original.server_conn))
    flow.id, flow.timestamp_created, flow.is_replay = record.id, original.timestamp_created, original.is_replay
    flow.comment, flow.marked = made.comment, made.marker
    flow.request = _request(original.request, record)
    if original.response is not None and record.status is not None:
        flow.response = _response(original.response, record)
    elif record.error is not None:
        flow.error = mitmproxy_flow.Error(record.error)

    def make() -> bytes:
        flow.metadata = {**made.metadata, **prefixed({**beside_received(record), **times_of(record)})}
        file = io.BytesIO()
        FlowWriter(file).add(flow)  # type: ignore[no-untyped-call, unused-ignore]
        return file.getvalue()

    return make


def _request(original: http.Request, record: Record) -> http.Request:
    said, _, address = record.url.partition("://")
    return http.Request(
        host=original.host,
        port=original.port,
        method=record.method.encode(),
        scheme=(said if is_socket(said) else original.scheme).encode(),
        authority=b"",
        path=(address[address.find("/") :] if "/" in address else "/").encode("utf-8", "surrogateescape"),
        http_version=original.http_version.encode(),
        headers=_fields(_headers(record.request_headers, record.request_body)),
        content=record.request_body,
        trailers=None,
        timestamp_start=original.timestamp_start,
        timestamp_end=original.timestamp_end,
    )


def _response(original: http.Response, record: Record) -> http.Response:
    headers = _headers(record.response_headers, record.response_body)
    if record.end != "complete":
        headers = [field for field in headers if field[0].lower() != END_HEADER]
        headers.append((END_HEADER, record.end))
    assert record.status is not None
    return http.Response(
        http_version=original.http_version.encode(),
        status_code=record.status,
        reason=original.reason.encode("utf-8", "surrogateescape"),
        headers=_fields(headers),
        content=record.response_body,
        trailers=None,
        timestamp_start=original.timestamp_start,
        timestamp_end=original.timestamp_end,
    )


def _fields(headers: Iterable[tuple[str, str]]) -> http.Headers:
    return http.Headers(
        [(name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape")) for name, value in headers]
    )


def _headers(fields: Headers, body: bytes | None) -> list[tuple[str, str]]:
    """The fields, made true for a body without codings; left as they are when the body is not there."""
    if body is None:
        return list(fields)
    headers: list[tuple[str, str]] = []
    length = False
    for name, value in fields:
        match name.lower():
            case "content-encoding":
                continue
            case "content-length":
                if length:
                    continue
                length, value = True, str(len(body))
        headers.append((name, value))
    return headers


# An exchange handed to the writer of captures, in both of its forms.


def capture(
    store: Store, flow: http.HTTPFlow, verdict: CheckResult, annotation: Callable[[CheckResult], Annotation]
) -> None:
    record, annotations = verdict.record, verdict.annotations()
    size = len(record.request_body or b"") + len(record.response_body or b"") + 4096
    pieces = [Piece("exchanges.jsonl", functools.partial(encode, record, annotations))]
    try:
        pieces.append(Piece("flows.mitm", flow_bytes(flow, record, annotation(verdict))))
    finally:  # a flow that cannot be copied costs its own file alone
        store.put_all(*pieces, size=size)
