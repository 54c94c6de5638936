"""HAR 1.2: a reader of the files of mitmproxy, Chrome and Firefox, and the writer of `wirelint export`.

Facts without a field in the format are unknown: the end of an exchange (unless a response header `x-wirelint-end` names
it), the times of chunks, and bodies that the writer left out. mitmproxy writes a missing body as an empty text, and
text without a declared charset as Latin-1, which this reader undoes. An exported entry is read as the record that it
was written from.

Source: HAR 1.2, http://www.softwareishard.com/blog/har-12-spec/.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from wirelint import __version__
from wirelint.capture.format import (
    END_HEADER,
    as_number,
    beside,
    changes,
    dump,
    printable,
    read_end,
    read_headers,
    restored,
)
from wirelint.capture.readers.source import Problem, as_seconds, as_string, read_parts
from wirelint.capture.record import Headers, Record
from wirelint.jsonvalues import mapping
from wirelint.model import Json, Timing

_ENTRIES = re.compile(r'"entries"\s*:\s*\[')
_GAP = re.compile(r"[\s,]*")
BESIDE = "_wirelint"
"""The member of an entry with the fixes and the received messages (`capture.format`). In files of `wirelint export`
it also has the findings and the values without a HAR field."""

# mitmproxy looks for an encoding inside bodies of these types; all others without a charset it reads as Latin-1.
_READ_AS_UTF8 = ("json", "html", "xml", "css", "javascript")
_BEFORE_THE_REPLY = ("blocked", "dns", "connect", "send", "wait")
_CURE = "record the traffic again, or export it anew"


def read(document: Mapping[str, Json], source: str) -> Iterator[Record | Problem]:
    """Yield the records of a whole HAR."""
    log = mapping(document.get("log"))
    entries = log.get("entries")
    if isinstance(entries, list):
        yield from _read(entries, source, is_from_mitmproxy(log))
    else:
        yield Problem(source, "", "HAR without entries", _CURE, fatal=True)


def is_from_mitmproxy(log: Mapping[str, Json]) -> bool:
    return mapping(log.get("creator")).get("name") == "mitmproxy"


def read_cut(data: bytes, source: str) -> Iterator[Record | Problem]:
    """Yield the records of a broken HAR: the entries before the damage."""
    text = data.decode("utf-8", "replace")
    from_mitmproxy = re.search(r'"name"\s*:\s*"mitmproxy"', text[: text.find('"entries"')]) is not None
    start = _ENTRIES.search(text)
    entries: list[Json] = []
    position = start.end() if start is not None else len(text)
    decoder = json.JSONDecoder()
    with contextlib.suppress(ValueError, RecursionError):
        while (gap := _GAP.match(text, position)) is not None:
            entry, position = decoder.raw_decode(text, gap.end())
            entries.append(entry)
    yield from _read(entries, source, from_mitmproxy)
    place = f"entry {len(entries) + 1}"
    yield Problem(source, place, "the HAR is cut off or broken here", _CURE, fatal=not entries)


def _read(entries: list[Json], source: str, from_mitmproxy: bool) -> Iterator[Record | Problem]:
    return read_parts(enumerate(entries, 1), source, "entry", lambda one, _: _records(mapping(one), from_mitmproxy))


def _records(entry: Mapping[str, Json], from_mitmproxy: bool) -> Iterator[Record]:
    """Yield the record of an entry, unless it is a WebSocket."""
    request, response = mapping(entry.get("request")), mapping(entry.get("response"))
    request_headers, headers, status = _headers(request), _headers(response), response.get("status")
    if not request or status == 101 or entry.get("_resourceType") == "websocket":
        return
    end = next((read_end(value) for name, value in headers if name.lower() == END_HEADER), None)
    error = as_string(response.get("_error")) or None
    body = _content(mapping(response.get("content")), headers, from_mitmproxy)
    if body == b"" and from_mitmproxy and end is None:
        body = None
    was_left = error is not None and ("Client disconnected" in error or "ERR_ABORTED" in error)
    record = Record(
        id="",
        method=as_string(request.get("method")) or "GET",
        url=as_string(request.get("url")),
        request_headers=request_headers,
        request_body=_content(mapping(request.get("postData")), request_headers, from_mitmproxy) or None,
        status=status if isinstance(status, int) and status > 0 else None,
        response_headers=tuple(field for field in headers if field[0].lower() != END_HEADER),
        response_body=body if status else None,
        timing=_timing(entry),
        end=end or ("unknown" if error is None else "client-left" if was_left else "upstream-died"),
        error=error,
        form="har",
    )
    values = entry.get(BESIDE)
    yield restored(record, values) if isinstance(values, dict) else record


def _headers(message: Mapping[str, Json]) -> Headers:
    """Return the headers without HTTP/2's pseudo headers, which browsers include."""
    return tuple(field for field in read_headers(message.get("headers")) if not field[0].startswith(":"))


def _content(content: Mapping[str, Json], headers: Headers, from_mitmproxy: bool) -> bytes | None:
    text = content.get("text")
    if not isinstance(text, str):
        return None
    if content.get("encoding") == "base64":
        try:
            return base64.b64decode(text)
        except ValueError:
            return None
    if not _is_latin1(headers, from_mitmproxy) or any(character > "\xff" for character in text):
        return text.encode("utf-8", "surrogatepass")
    data = text.encode("latin-1")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if error.end < len(data):  # else they end inside a character
            return text.encode()
    return data


def written(body: bytes, headers: Headers, *, from_mitmproxy: bool, as_base64: bool = False) -> tuple[str, str | None]:
    """Return a body as text of a HAR, and the encoding of the text."""
    if not as_base64:
        text = body.decode("latin-1" if _is_latin1(headers, from_mitmproxy) else "utf-8", "replace")
        if _content({"text": text}, headers, from_mitmproxy) == body:
            return text, None
    return base64.b64encode(body).decode(), "base64"


def _is_latin1(headers: Headers, from_mitmproxy: bool) -> bool:
    kind = _type(headers).lower()
    return from_mitmproxy and "charset" not in kind and not any(name in kind for name in _READ_AS_UTF8)


def _timing(entry: Mapping[str, Json]) -> Timing:
    timings = mapping(entry.get("timings"))
    steps = [as_number(timings.get(name)) for name in _BEFORE_THE_REPLY]
    first = sum(step for step in steps if step is not None and step > 0) if steps[-1] is not None else None
    return Timing(as_seconds(entry.get("startedDateTime")), first, None, as_number(entry.get("time")))


# Writing. An entry shows the received messages, as all captures do; `_wirelint` holds the sent ones, the times of chunks,
# the end and the findings, for which a HAR has no fields. Bodies are text without content codings, or base64 if they are
# no UTF-8.

_NO_TIME = "1970-01-01T00:00:00.000+00:00"
"""Placeholder for a missing time, which the format does not allow. `_wirelint` has null there."""


def opening() -> bytes:
    creator = dump({"name": "wirelint", "version": __version__})
    return b'{"log": {"version": "1.2", "creator": ' + creator + b', "pages": [], "entries": ['


def entry(record: Record, annotations: Mapping[str, Json], comment: str, *, first: bool) -> bytes:
    """Return the bytes of one entry, with the comma before it."""
    return (b"\n" if first else b",\n") + dump(printable(_encode(record, annotations, comment)))


def closing(comment: str) -> bytes:
    return b'\n], "comment": ' + dump(comment) + b"}}\n"


def _encode(record: Record, annotations: Mapping[str, Json], comment: str) -> Json:
    timing = record.timing
    first = timing.first_byte
    whole = timing.duration if timing.duration is not None else first or 0.0
    date = _NO_TIME
    with contextlib.suppress(ValueError, OverflowError, OSError, TypeError):
        date = datetime.fromtimestamp(timing.started, UTC).isoformat(timespec="milliseconds")  # type: ignore[arg-type]
    request: dict[str, Json] = {
        "method": record.method,
        "url": record.url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _fields(record.request_headers),
        "queryString": _fields(parse_qsl(urlsplit(record.url).query, keep_blank_values=True)),
        "headersSize": -1,
        "bodySize": len(record.request_body or b""),
    }
    if record.request_body is not None:
        request["postData"] = {"mimeType": _type(record.request_headers), **_text(record.request_body)}
    status, body, kind = record.status or 0, record.response_body, _type(record.response_headers)
    response: dict[str, Json] = {
        "status": status,
        "statusText": HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "",
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _fields(record.response_headers),
        "content": {"size": len(body or b""), "mimeType": kind, **_text(body)},
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": -1,
    }
    return {
        "startedDateTime": date,
        "time": whole,
        "request": request,
        "response": response,
        "cache": {},
        "timings": {"send": 0, "wait": first or 0.0, "receive": max(whole - (first or 0.0), 0.0)},
        "comment": comment,
        BESIDE: {"id": record.id, "url": record.url, **beside(record), **annotations, **changes(record)},
    }


def _fields(pairs: Iterable[tuple[str, str]]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in pairs]


def _type(headers: Headers) -> str:
    return next((value for name, value in headers if name.lower() == "content-type"), "")


def _text(body: bytes | None) -> dict[str, Json]:
    text, encoding = written(body, (), from_mitmproxy=False) if body is not None else (None, None)
    return {name: value for name, value in (("text", text), ("encoding", encoding)) if value is not None}
