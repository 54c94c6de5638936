"""A flow as bytes of mitmproxy's own format, for `flows.mitm`: what the verdict's record holds, and its annotation.

The copy differs from the flow in what a capture must differ in: credentials are marks, and bodies stand without their
content codings, because redaction works on plain text. Its request and response are what came in, as everywhere in the
captures, so that all readers judge the same bytes and pointers of findings are right; what was sent on stands beside
them, in the metadata. An exchange that did not end well says so in a response header that only the copy has,
`x-wirelint-end`: a HAR made of the file keeps it. Such a flow carries no `error` of mitmproxy's beside its response: on
reading the file back mitmproxy would run both hooks, and write the exchange into a HAR twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from mitmproxy import connection, flow, http
from mitmproxy.coretypes.serializable import State

from wirelint.addon.annotate import Annotation, prefixed
from wirelint.addon.connections import entry_of, snapshot
from wirelint.addon.netstrings import dump_chunks, dump_fields, dumps, entries
from wirelint.capture.flow_metadata import beside_received
from wirelint.capture.format import encode_timing
from wirelint.capture.record import Headers, Record
from wirelint.wire.websocket import is_socket

END_HEADER = "x-wirelint-end"
_CHUNKS = "wirelint.chunks"

_OWN = frozenset({
    *("id", "timestamp_created", "is_replay", "client_conn", "server_conn", "request", "response", "error"),
    *("comment", "marked", "metadata"),
})  # fmt: skip


def flow_bytes(original: http.HTTPFlow, record: Record, made: Annotation) -> Callable[[], bytes]:
    """A function that gives the bytes. It may be called later and in another thread: it looks at `original` no more."""
    client, server = snapshot(original.client_conn), snapshot(original.server_conn)
    request = original.request
    head = (request.host, request.port, request.scheme, request.http_version)
    times = (request.timestamp_start, request.timestamp_end)
    answer = original.response
    reply = (
        None if answer is None else (answer.http_version, answer.reason, answer.timestamp_start, answer.timestamp_end)
    )
    created, replayed = original.timestamp_created, original.is_replay

    def make() -> bytes:
        # A flow is made of its parts' states, not of its parts: on the way through objects every field is checked twice.
        answered = reply is not None and record.status is not None
        ours = entries({
            "id": record.id,
            "timestamp_created": created,
            "is_replay": replayed,
            "request": _request(record, head, times),
            "response": _response(record, *reply) if reply is not None and answered else None,
            "error": flow.Error(record.error).get_state() if record.error is not None and not answered else None,
            "comment": made.comment,
            "marked": made.marker,
        })  # fmt: skip
        connections = entry_of("client_conn", client) + entry_of("server_conn", server)
        parts = _other_entries(), connections, dumps("metadata"), _metadata(record, made), ours
        return b"".join((b"%d:" % sum(map(len, parts)), *parts, b"}"))

    return make


@cache
def _other_entries() -> bytes:
    """The fields of this mitmproxy's flows that are the same in all of ours."""
    nowhere = ("", 0)
    client = connection.Client(peername=nowhere, sockname=nowhere, timestamp_start=0)
    blank = http.HTTPFlow(client, connection.Server(address=None))
    blank.request = http.Request.make("POST", "http://host/")
    return entries({name: value for name, value in blank.get_state().items() if name not in _OWN})


def _metadata(record: Record, made: Annotation) -> bytes:
    """What stands beside a flow, as bytes of the file."""
    beside = {**beside_received(record), "timing": encode_timing(record.timing)}
    data = entries({**made.metadata, **prefixed(beside)})
    if record.chunks:
        data = dumps(_CHUNKS) + dump_chunks(record.chunks) + data
    return b"%d:%b}" % (len(data), data)


def _request(record: Record, head: tuple[str, int, str, str], times: tuple[float, float | None]) -> State:
    host, port, scheme, version = head
    said, _, address = record.url.partition("://")
    scheme = said if is_socket(said) else scheme
    path = address[address.find("/") :] if "/" in address else "/"
    return {
        "http_version": version.encode(),
        "headers": dump_fields(_headers(record.request_headers, record.request_body)),
        "content": record.request_body,
        "trailers": None,
        "timestamp_start": times[0],
        "timestamp_end": times[1],
        "host": host,
        "port": port,
        "method": record.method.encode(),
        "scheme": scheme.encode(),
        "authority": b"",
        "path": path.encode("utf-8", "surrogateescape"),
    }


def _response(record: Record, version: str, reason: str, started: float, ended: float | None) -> State:
    headers = _headers(record.response_headers, record.response_body)
    if record.end != "complete":
        headers = [field for field in headers if field[0].lower() != END_HEADER]
        headers.append((END_HEADER, record.end))
    return {
        "http_version": version.encode(),
        "headers": dump_fields(headers),
        "content": record.response_body,
        "trailers": None,
        "timestamp_start": started,
        "timestamp_end": ended,
        "status_code": record.status,
        "reason": reason.encode("utf-8", "surrogateescape"),
    }


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
