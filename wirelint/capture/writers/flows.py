"""Writer of mitmproxy's flow files: fixed flows among the unchanged bytes of the others.

A fixed flow shows the forwarded request and the delivered response, as if mitmproxy had saved it while wirelint fixed
it. The received messages are in its metadata (`capture.format`).
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO
from urllib.parse import SplitResult, urlsplit

from mitmproxy import connection, http
from mitmproxy import flow as mitm_flow
from mitmproxy.io import FlowReader, FlowWriter
from mitmproxy.net.http import status_codes

from wirelint.capture.format import NAMES, beside, beside_received, beside_sent, printable
from wirelint.capture.offline import Fixed, true_headers
from wirelint.capture.record import Headers, Record, Sent
from wirelint.capture.writers import write_pieces
from wirelint.jsonvalues import mapping
from wirelint.model import Json

_OURS = "wirelint."
_SIDES = tuple(f"{_OURS}{name}" for name in NAMES)


def write(source: Path, items: Iterator[Fixed], target: Path) -> None:
    """Write a flow file. Bytes after an unreadable flow are left out."""
    with source.open("rb") as file:
        write_pieces("flow", _flows(file), items, target, _written)


def _flows(file: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of each flow, up to an unreadable one."""
    start = 0
    with contextlib.suppress(Exception):  # corrupt state ends in exceptions of every kind; the reader reports it
        for _ in FlowReader(file).stream():
            end = file.tell()
            file.seek(start)
            yield file.read(end - start)
            start = end


def _written(raw: bytes, record: Record) -> bytes:
    """Return the bytes of a flow; its own bytes if nothing changes."""
    changed = record.forwarded is not None or record.delivered is not None
    if not changed and not any(name.encode() in raw for name in _SIDES):
        return raw
    flow = next(iter(FlowReader(io.BytesIO(raw)).stream()))
    assert isinstance(flow, http.HTTPFlow)
    before = flow.get_state()
    show_sent(flow, record)
    kept = {name: value for name, value in flow.metadata.items() if name not in _SIDES}
    flow.metadata = {**kept, **{f"{_OURS}{name}": value for name, value in beside_sent(record).items()}}
    return raw if flow.get_state() == before else flow_bytes(flow)


def show_sent(flow: http.HTTPFlow, record: Record) -> None:
    """Let a flow show the messages of a fixed record that were sent, and those received where it shows others."""
    shows = mapping(flow.metadata.get(f"{_OURS}received"))
    if record.forwarded is not None or "request" in shows:
        _show(flow.request, record.forwarded or Sent(record.request_headers, record.request_body))
    if flow.response is not None and (record.delivered is not None or "response" in shows):
        _show(flow.response, record.delivered or Sent(record.response_headers, record.response_body))


def _show(message: http.Message, sent: Sent) -> None:
    if sent.body is None:
        return  # too large for the metadata
    message.headers = fields_of(sent.headers, sent.body)
    message.raw_content = sent.body


_NOWHERE = "unknown.invalid"
"""The host of an exchange whose recording does not name one (RFC 6761)."""


def make_flow(record: Record) -> http.HTTPFlow:
    """Return a flow with the received messages of a record, without metadata."""
    parts = urlsplit(record.url)
    port = _port(parts)
    host = parts.hostname or _NOWHERE
    client = connection.Client(peername=("", 0), sockname=("", 0), timestamp_start=0)
    flow = http.HTTPFlow(client, connection.Server(address=(host, port)))
    flow.id = record.id
    started = record.timing.started or 0.0
    ended = started + (record.timing.duration or record.timing.first_byte or 0.0) / 1000
    path = parts._replace(scheme="", netloc="").geturl()
    flow.request = http.Request(
        host=host,
        port=port,
        method=record.method.encode(),
        scheme=(parts.scheme or "http").encode(),
        authority=b"",
        path=(path if path.startswith("/") else f"/{path}").encode("utf-8", "surrogateescape"),
        http_version=b"HTTP/1.1",
        headers=fields_of(record.request_headers, record.request_body),
        content=record.request_body,
        trailers=None,
        timestamp_start=started,
        timestamp_end=started,
    )
    if record.status is not None:
        flow.response = http.Response(
            http_version=b"HTTP/1.1",
            status_code=record.status,
            reason=status_codes.RESPONSES.get(record.status, "").encode(),
            headers=fields_of(record.response_headers, record.response_body),
            content=record.response_body,
            trailers=None,
            timestamp_start=started + (record.timing.first_byte or 0.0) / 1000,
            timestamp_end=ended,
        )
    elif record.error is not None:
        flow.error = mitm_flow.Error(record.error, ended)
    return flow


def finished(flow: http.HTTPFlow, record: Record, comment: str, marked: str, metadata: Mapping[str, Json]) -> bytes:
    """Return the bytes of a flow of `make_flow`, with the sent messages and what else a flow cannot show beside it."""
    flow.comment, flow.marked = comment, marked
    values: dict[str, Json] = {name: item for name, item in beside(record).items() if item not in (None, [])}
    if flow.response is None:
        values.pop("error", None)
    values = {f"{_OURS}{name}": item for name, item in {**values, **beside_received(record)}.items()}
    flow.metadata = {name: printable(item) for name, item in {**metadata, **values}.items()}
    return flow_bytes(flow)


def flow_bytes(flow: mitm_flow.Flow) -> bytes:
    out = io.BytesIO()
    FlowWriter(out).add(flow)  # type: ignore[no-untyped-call, unused-ignore]
    return out.getvalue()


def fields_of(headers: Headers, body: bytes | None) -> http.Headers:
    """Return headers for mitmproxy, adapted to a decoded body; unchanged without a body."""
    fields = headers if body is None else true_headers(headers, body)
    return http.Headers(
        [(name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape")) for name, value in fields]
    )


def _port(parts: SplitResult) -> int:
    try:
        return parts.port or (443 if parts.scheme in ("https", "wss") else 80)
    except ValueError:
        return 80
