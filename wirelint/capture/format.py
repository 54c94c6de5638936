"""Encoder and decoder of the lines of `exchanges.jsonl`. `record.schema.json` is the specification.

The encoder is strict, the decoder is lenient: a record made by hand needs only `request` or `response`; its bodies may
be JSON instead of text, and its headers an object, a list of pairs or a list of objects as in HAR.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import get_args

import orjson

from wirelint.capture.record import Headers, Record, Sent
from wirelint.fix import AppliedFix
from wirelint.jsonvalues import decode_object, mapping, mappings, with_strings, write
from wirelint.model import End, Json, Timing, missing_of

FORMAT = 1
"""Version of the format. It rises when an older reader would misread a newer line."""

_TIMES = ("started", "first_byte_ms", "first_token_ms", "duration_ms")
_FIX = ("code", "name", "safety", "side", "title", "pointer", "event", "patch")
_SURROGATE = re.compile("[\ud800-\udfff]")
_OWN = frozenset(
    {*("format", "id", "end", "error", "timing", "request", "response", "forwarded", "delivered", "fixes", "lacks")}
)
END_HEADER = "x-wirelint-end"
"""Header of a recorded response that names the end of the exchange, for formats without a field for it."""
_PRIOR = ", prior "
SHIP_MARK = ".ship"
"""Name of the file in a part that is to be shipped. Its text is the folder of the part in the storage."""
_ANNOTATIONS = ("api", "model", "conversation", "findings", "notes")


class FormatError(ValueError):
    """The object is no record, or one of a later format. The message is for the user."""


def schema() -> dict[str, Json]:
    """Return the JSON Schema (2020-12) of the lines that `encode` writes."""
    return decode_object(resources.files("wirelint.capture").joinpath("record.schema.json").read_bytes())


def encode(record: Record, annotations: Mapping[str, Json] | None = None) -> bytes:
    """Return one line with its line feed. `annotations` replace the record's own, never the recorded traffic."""
    extra, facts = {**record.annotations, **(annotations or {})}, beside(record)
    line: dict[str, Json] = {
        "format": FORMAT,
        "id": record.id,
        **{name: extra.pop(name, None) for name in _ANNOTATIONS[:3]},
        **{name: facts.pop(name) for name in ("end", "error", "timing")},
        **{name: extra.pop(name, None) or [] for name in _ANNOTATIONS[3:]},
        **{name: value for name, value in extra.items() if name not in _OWN},
        "request": {
            "method": record.method,
            "url": record.url,
            **_message(record.request_headers, record.request_body),
        },
        "response": {
            "status": record.status,
            **_message(record.response_headers, record.response_body),
            "chunks": facts.pop("chunks"),
        },
        **changes(record),
        **facts,
    }
    return dump_printable(line) + b"\n"


def beside(record: Record) -> dict[str, Json]:
    """Return the values of an exchange that are neither in its messages nor annotations."""
    timing = record.timing
    times = timing.started, timing.first_byte, timing.first_token, timing.duration
    return {
        "end": record.end,
        "error": record.error,
        "timing": dict(zip(_TIMES, times, strict=True)),
        "chunks": [[time, size] for time, size in record.chunks],
        **({"lacks": list[Json](sorted(record.missing))} if record.missing else {}),
    }


def changes(record: Record, most: int | None = None) -> dict[str, Json]:
    """Return the members `forwarded`, `delivered` and `fixes` of a changed record. `most`: the largest body, in bytes."""
    sides = {"forwarded": record.forwarded, "delivered": record.delivered}
    made = {name: _message(sent.headers, sent.body, most) for name, sent in sides.items() if sent is not None}
    fixes: list[Json] = [{name: getattr(fix, name) for name in _FIX} for fix in record.fixes]
    return {**made, "fixes": fixes} if fixes else {**made}


def decode(value: Json, source: str, place: str) -> Record:
    """Return the record of a line. Raises FormatError."""
    if not isinstance(value, dict):
        raise FormatError("not a JSON object")
    version = value.get("format", FORMAT)
    if not isinstance(version, int) or version > FORMAT:
        raise FormatError(f"format {version} is newer than this wirelint, which reads up to {FORMAT}")
    request, response = value.get("request"), value.get("response")
    if not isinstance(request, dict) and not isinstance(response, dict):
        raise FormatError("neither `request` nor `response`")
    otherwise = 200 if isinstance(response, dict) else None
    request, response = mapping(request), mapping(response)
    request_body, status = _read_body(request), response.get("status", otherwise)  # some tools write 0
    return Record(
        id=_text(printable(value.get("id"))) or f"{source}:{place.rpartition(' ')[2]}",
        method=_text(request.get("method")) or ("POST" if request_body else "GET"),
        url=_text(request.get("url")),
        request_headers=read_headers(request.get("headers")),
        request_body=request_body,
        status=status if isinstance(status, int) and not isinstance(status, bool) and status > 0 else None,
        response_headers=read_headers(response.get("headers")),
        response_body=_read_body(response),
        chunks=read_chunks(response.get("chunks")),
        timing=read_timing(value.get("timing")),
        end=read_end(value.get("end")) or "unknown",
        error=_text(value.get("error")) or None,
        forwarded=read_sent(value.get("forwarded")),
        delivered=read_sent(value.get("delivered")),
        fixes=read_fixes(value.get("fixes")),
        source=source,
        place=place,
        annotations={name: item for name, item in value.items() if name not in _OWN},
        missing=missing_of(value.get("lacks")),
    )


def decode_all(value: Json, source: str, place: str) -> list[Record]:
    """Return the record of a line, after the records of its `prior`. Raises FormatError."""
    record = decode(value, source, place)
    before = record.annotations.get("prior")
    prior = [
        decode(one, source, f"{place}{_PRIOR}{number}").but(id=f"{record.id}/prior {number}")
        for number, one in enumerate(before if isinstance(before, list) else (), 1)
    ]
    return [*prior, record]


def read_lines(file: Path) -> Iterator[dict[str, Json]]:
    """Yield the objects of an `exchanges.jsonl`; an incomplete last line is left out, a missing file has none."""
    with contextlib.suppress(OSError), file.open("rb") as lines:
        for line in lines:
            with contextlib.suppress(orjson.JSONDecodeError):
                if isinstance(value := orjson.loads(line), dict):
                    yield value


def is_prior(record: Record) -> bool:
    """Return True if a record is from the `prior` of a line."""
    return _PRIOR in record.place


def read_headers(value: Json) -> Headers:
    """Return headers from an object, from pairs, or from `{"name": …, "value": …}`. Other values are left out."""
    if isinstance(value, dict):
        return tuple(
            (name, _text(item))
            for name, items in value.items()
            for item in (items if isinstance(items, list) else [items])
        )
    fields: list[tuple[str, str]] = []
    for item in value if isinstance(value, list) else []:
        match item:
            case [str(name), content] | {"name": str(name), "value": content}:
                fields.append((name, _text(content)))
    return tuple(fields)


def read_sent(value: Json) -> Sent | None:
    """Return a message that was sent instead of the received one. Raises FormatError."""
    return Sent(read_headers(value.get("headers")), _read_body(value)) if isinstance(value, dict) else None


def read_fixes(value: Json) -> tuple[AppliedFix, ...]:
    """Return the fixes of a record. A fix without a valid safety or side is left out."""
    fixes: list[AppliedFix] = []
    for _, item in mappings(value):
        match item:
            case {"safety": "safe" | "unsafe" as safety, "side": "request" | "response" as side}:
                code, name, title, patch = (_text(item.get(key)) for key in ("code", "name", "title", "patch"))
                pointer, event = item.get("pointer"), item.get("event")
                lines = patch.split("\n") if patch else []
                before, after = ("\n".join(line[2:] for line in lines if line[:1] == sign) for sign in "-+")
                place = pointer if isinstance(pointer, str) else None, event if isinstance(event, int) else None
                fixes.append(AppliedFix(code, name, safety, side, title, *place, before, after))
    return tuple(fixes)


def _message(headers: Headers, body: bytes | None, most: int | None = None) -> dict[str, Json]:
    """Return a message, with repeated headers joined by a comma (RFC 9110, 5.3) under their first spelling. A body of
    more than `most` bytes is left out."""
    spelling: dict[str, str] = {}
    joined: dict[str, Json] = {}
    for name, value in headers:
        first = spelling.setdefault(name.lower(), name)
        joined[first] = f"{joined[first]}, {value}" if first in joined else value
    if body is None or (most is not None and len(body) > most):
        return {"headers": joined, "body": None}
    try:
        return {"headers": joined, "body": body.decode()}
    except UnicodeDecodeError:
        return {"headers": joined, "body_base64": base64.b64encode(body).decode()}


def _read_body(message: Mapping[str, Json]) -> bytes | None:
    encoded = message.get("body_base64")
    if isinstance(encoded, str):
        try:
            return base64.b64decode(encoded, validate=True)
        except ValueError as error:
            raise FormatError(f"`body_base64` is not base64: {error}") from error
    return body_of(message.get("body"))


def body_of(value: Json) -> bytes | None:
    """Return the body that a file holds as its text or as its JSON value."""
    if value is None:
        return None
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else dump(value)


def dump(value: Json) -> bytes:
    """Return a JSON value as bytes of a body."""
    return write(value).encode()


def dump_printable(value: Json) -> bytes:
    """Encode JSON in UTF-8; lone surrogates, which no file can hold, become U+FFFD."""
    try:
        return orjson.dumps(value)
    except TypeError:  # lone surrogates (bytes of a header that are no UTF-8), integers over 64 bits
        return json.dumps(printable(value), ensure_ascii=False, separators=(",", ":")).encode()


def read_end(value: Json) -> End | None:
    """Return the end of an exchange, or None if `value` names none."""
    return next((end for end in get_args(End) if end == value), None)


def read_timing(value: Json) -> Timing:
    """Return the times of an exchange. A value that is no number counts as unknown."""
    if not isinstance(value, dict):
        return Timing()
    return Timing(*(as_number(value.get(name)) for name in _TIMES))


def read_chunks(value: Json) -> tuple[tuple[float, int], ...]:
    """Return all chunks, or none if one of them is invalid."""
    if not isinstance(value, list):
        return ()
    chunks: list[tuple[float, int]] = []
    for item in value:
        match item:
            case [int() | float() as time, int(size)] if size >= 0:
                chunks.append((float(time), size))
            case _:
                return ()
    return tuple(chunks)


def as_number(value: Json) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _text(value: Json) -> str:
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


def printable(value: Json) -> Json:
    """Return a value without lone surrogates: each becomes a replacement character."""
    return with_strings(value, _printable, _printable)


def _printable(text: str) -> str:
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


# --- metadata of flows -----------------------------------------------------------------------------------------------

NAMES = ("forwarded", "delivered", "received", "fixes")
_NO_ANNOTATIONS = frozenset((*NAMES, "id", "url", "end", "error", "timing", "chunks", "lacks"))
"""Values beside a flow that are no annotations."""

_LARGEST = 4 << 20
"""Largest body, in bytes, in the metadata, which mitmproxy copies now and then. Larger ones are left out."""


def beside_received(record: Record) -> dict[str, Json]:
    """Return metadata of a flow that shows the received messages."""
    return mapping(printable(changes(record, _LARGEST)))


def beside_sent(record: Record) -> dict[str, Json]:
    """Return metadata of a flow that shows the sent messages."""
    received: dict[str, Json] = {}
    if record.forwarded is not None:
        received["request"] = _message(record.request_headers, record.request_body, _LARGEST)
    if record.delivered is not None:
        received["response"] = _message(record.response_headers, record.response_body, _LARGEST)
    fixes = changes(record.but(forwarded=None, delivered=None))
    return mapping(printable({"received": received, **fixes} if received else fixes))


def restored(record: Record, beside: Mapping[str, Json]) -> Record:
    """Return the record of a flow or of an entry of a HAR with the values beside it, unless they are unreadable."""
    if isinstance(beside.get("timing"), dict):
        record = record.but(timing=read_timing(beside["timing"]), chunks=read_chunks(beside.get("chunks")))
    id_, url, error = (value if isinstance(value := beside.get(name), str) else None for name in ("id", "url", "error"))
    annotations = {name: value for name, value in beside.items() if name not in _NO_ANNOTATIONS}
    if record.notes:
        notes = annotations.get("notes")
        annotations["notes"] = [*(notes if isinstance(notes, list) else []), *record.notes]
    record = record.but(
        id=id_ or record.id,
        url=record.url if url is None else url,
        end=read_end(beside.get("end")) or record.end,
        error=record.error if error is None or record.error is not None else error,
        missing=missing_of(beside.get("lacks")),
        annotations=annotations,
    )
    return _with_sides(record, beside) if any(name in beside for name in NAMES) else record


def _with_sides(record: Record, beside: Mapping[str, Json]) -> Record:
    received = mapping(beside.get("received"))
    try:
        request, response = read_sent(received.get("request")), read_sent(received.get("response"))
        forwarded, delivered = read_sent(beside.get("forwarded")), read_sent(beside.get("delivered"))
    except FormatError:
        return record
    if request is not None:
        forwarded = Sent(record.request_headers, record.request_body)
        record = record.but(request_headers=request.headers, request_body=request.body)
    if response is not None:
        delivered = Sent(record.response_headers, record.response_body)
        record = record.but(response_headers=response.headers, response_body=response.body)
    return record.but(forwarded=forwarded, delivered=delivered, fixes=read_fixes(beside.get("fixes")))
