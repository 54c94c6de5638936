"""Writer of HAR 1.2. `_wirelint` holds the times of chunks, ends and findings, for which a HAR has no fields.

An entry shows the received messages, as all captures do; `_wirelint` holds the sent ones. Bodies are text without content
codings, or base64 if they are no UTF-8. `readers.har` reads an entry as the same record. Source: HAR 1.2, http://www.softwareishard.com/blog/har-12-spec/.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from wirelint import __version__
from wirelint.capture.format import changes, dump, encode_chunks, encode_timing, printable
from wirelint.capture.readers.har import BESIDE, written
from wirelint.capture.record import Headers, Record
from wirelint.model import Json

_NO_TIME = "1970-01-01T00:00:00.000+00:00"
"""Placeholder for a missing time, which the format does not allow. `_wirelint` has null there."""


def opening() -> bytes:
    creator = dump({"name": "wirelint", "version": __version__})
    return b'{"log": {"version": "1.2", "creator": ' + creator + b', "pages": [], "entries": ['


def entry(record: Record, annotations: Mapping[str, Json], comment: str, *, first: bool) -> bytes:
    """The bytes of one entry, with the comma before it."""
    return (b"\n" if first else b",\n") + dump(printable(_entry(record, annotations, comment)))


def closing(comment: str) -> bytes:
    return b'\n], "comment": ' + dump(comment) + b"}}\n"


def _entry(record: Record, annotations: Mapping[str, Json], comment: str) -> Json:
    timing = record.timing
    first = timing.first_byte
    whole = timing.duration if timing.duration is not None else first or 0.0
    beside: dict[str, Json] = {
        "id": record.id,
        "url": record.url,
        "end": record.end,
        "error": record.error,
        "timing": encode_timing(timing),
        "chunks": encode_chunks(record.chunks),
        **({"lacks": list[Json](sorted(record.missing))} if record.missing else {}),
        **annotations,
        **changes(record),
    }
    return {
        "startedDateTime": _date(timing.started),
        "time": whole,
        "request": _request(record),
        "response": _response(record),
        "cache": {},
        "timings": {"send": 0, "wait": first or 0.0, "receive": max(whole - (first or 0.0), 0.0)},
        "comment": comment,
        BESIDE: beside,
    }


def _request(record: Record) -> dict[str, Json]:
    made: dict[str, Json] = {
        "method": record.method,
        "url": record.url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _fields(record.request_headers),
        "queryString": [
            {"name": name, "value": value}
            for name, value in parse_qsl(urlsplit(record.url).query, keep_blank_values=True)
        ],
        "headersSize": -1,
        "bodySize": len(record.request_body or b""),
    }
    if record.request_body is not None:
        made["postData"] = {"mimeType": _type(record.request_headers), **_text(record.request_body)}
    return made


def _response(record: Record) -> dict[str, Json]:
    status = record.status or 0
    content: dict[str, Json] = {"size": len(record.response_body or b""), "mimeType": _type(record.response_headers)}
    if record.response_body is not None:
        content |= _text(record.response_body)
    return {
        "status": status,
        "statusText": HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "",
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _fields(record.response_headers),
        "content": content,
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": -1,
    }


def _fields(headers: Headers) -> list[Json]:
    return [{"name": name, "value": value} for name, value in headers]


def _type(headers: Headers) -> str:
    return next((value for name, value in headers if name.lower() == "content-type"), "")


def _text(body: bytes) -> dict[str, Json]:
    text, encoding = written(body, (), from_mitmproxy=False)
    return {"text": text, **({"encoding": encoding} if encoding is not None else {})}


def _date(started: float | None) -> str:
    try:
        moment = datetime.fromtimestamp(started, UTC) if started is not None else None
    except (ValueError, OverflowError, OSError):
        moment = None
    return moment.isoformat(timespec="milliseconds") if moment is not None else _NO_TIME
