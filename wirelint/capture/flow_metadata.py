"""Both sides of a changed exchange in the metadata of a flow.

A flow holds one request and one response. In `flows.mitm` these are the received messages, as in all captures, and the
metadata holds the sent ones: `forwarded`, `delivered`. In a running proxy, and in a file that mitmproxy saved itself, the
flow holds the sent messages, and the metadata holds the received ones: `received`. `fixes` are in both. The metadata is
plain JSON, so that mitmproxy can save and copy it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from wirelint.capture.format import (
    FormatError,
    changes,
    encode_chunks,
    encode_fixes,
    encode_sent,
    encode_timing,
    printable,
    read_chunks,
    read_end,
    read_fixes,
    read_sent,
    read_timing,
)
from wirelint.capture.record import Headers, Record, Sent
from wirelint.model import Json, missing_of

NAMES = ("forwarded", "delivered", "received", "fixes")
_OWN = frozenset((*NAMES, "id", "url", "end", "error", "timing", "chunks", "lacks"))
"""Values beside a flow that are no annotations."""

_LARGEST = 4 << 20
"""Largest body, in bytes, in the metadata, which mitmproxy copies now and then. Larger ones are left out."""


def beside_received(record: Record) -> dict[str, Json]:
    """Return metadata of a flow that shows the received messages."""
    forwarded, delivered = _bounded(record.forwarded), _bounded(record.delivered)
    if forwarded is not record.forwarded or delivered is not record.delivered:
        record = dataclasses.replace(record, forwarded=forwarded, delivered=delivered)
    return _plain(changes(record))


def beside_sent(record: Record) -> dict[str, Json]:
    """Return metadata of a flow that shows the sent messages."""
    received: dict[str, Json] = {}
    if record.forwarded is not None:
        received["request"] = _received_message(record.request_headers, record.request_body)
    if record.delivered is not None:
        received["response"] = _received_message(record.response_headers, record.response_body)
    made: dict[str, Json] = {"received": received} if received else {}
    if record.fixes:
        made["fixes"] = encode_fixes(record.fixes)
    return _plain(made)


def times_of(record: Record) -> dict[str, Json]:
    """Return times of an exchange and of the chunks of its reply, for which a flow has no field."""
    made: dict[str, Json] = {"timing": encode_timing(record.timing)}
    if record.chunks:
        made["chunks"] = encode_chunks(record.chunks)
    return made


def restored(record: Record, beside: Mapping[str, Json]) -> Record:
    """Return the record of a flow or of an entry of a HAR with the values beside it: the other sides, times, end,
    annotations.

    Unreadable values count as absent.
    """
    if isinstance(beside.get("timing"), dict):
        timing, chunks = read_timing(beside["timing"]), read_chunks(beside.get("chunks"))
        record = dataclasses.replace(record, timing=timing, chunks=chunks)
    id_, url, error = (value if isinstance(value := beside.get(name), str) else None for name in ("id", "url", "error"))
    annotations = {name: value for name, value in beside.items() if name not in _OWN}
    if record.notes:
        notes = annotations.get("notes")
        annotations["notes"] = [*(notes if isinstance(notes, list) else []), *record.notes]
    record = dataclasses.replace(
        record,
        id=id_ or record.id,
        url=record.url if url is None else url,
        end=read_end(beside.get("end")) or record.end,
        error=record.error if error is None or record.error is not None else error,
        missing=missing_of(beside.get("lacks")),
        annotations=annotations,
    )
    return _with_sides(record, beside) if any(name in beside for name in NAMES) else record


def _with_sides(record: Record, beside: Mapping[str, Json]) -> Record:
    try:
        received = beside.get("received")
        request = read_sent(received.get("request")) if isinstance(received, dict) else None
        response = read_sent(received.get("response")) if isinstance(received, dict) else None
        forwarded, delivered = read_sent(beside.get("forwarded")), read_sent(beside.get("delivered"))
    except FormatError:
        return record
    if request is not None:
        forwarded = Sent(record.request_headers, record.request_body)
        record = dataclasses.replace(record, request_headers=request.headers, request_body=request.body)
    if response is not None:
        delivered = Sent(record.response_headers, record.response_body)
        record = dataclasses.replace(record, response_headers=response.headers, response_body=response.body)
    return dataclasses.replace(record, forwarded=forwarded, delivered=delivered, fixes=read_fixes(beside.get("fixes")))


def _received_message(headers: Headers, body: bytes | None) -> Json:
    return encode_sent(Sent(headers, body if len(body or b"") <= _LARGEST else None))


def _bounded(sent: Sent | None) -> Sent | None:
    large = sent is not None and sent.body is not None and len(sent.body) > _LARGEST
    return Sent(sent.headers, None) if sent is not None and large else sent


def _plain(made: dict[str, Json]) -> dict[str, Json]:
    """Return metadata without lone surrogates, which mitmproxy's files cannot hold."""
    return {name: printable(value) for name, value in made.items()}
