"""Encoder and decoder of the lines of `exchanges.jsonl`. `record.schema.json` is the specification.

What is written is strict, what is read is not: a record made by hand needs `request` or `response` and nothing else,
its bodies may be JSON instead of text, its headers an object, a list of pairs or the list of objects that HAR has.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import get_args

import orjson

from wirelint.capture.record import Headers, Record, Sent
from wirelint.fix import AppliedFix
from wirelint.model import End, Json, Timing, missing_of

FORMAT = 1
"""Version of the format. It rises when an older reader would misread a newer line."""

_ENDS: frozenset[str] = frozenset(get_args(End))
_OWN = frozenset(
    {*("format", "id", "end", "error", "timing", "request", "response", "forwarded", "delivered", "fixes", "lacks")}
)
_PRIOR = ", prior "
_ANNOTATIONS = ("api", "model", "conversation", "findings", "notes")


class FormatError(ValueError):
    """The object is no record, or one of a later format. The message is for the user."""


def schema() -> dict[str, Json]:
    """The JSON Schema (2020-12) of what `encode` writes."""
    document: dict[str, Json] = orjson.loads(
        resources.files("wirelint.capture").joinpath("record.schema.json").read_bytes()
    )
    return document


def encode(record: Record, annotations: Mapping[str, Json] | None = None) -> bytes:
    """One line with its line feed. `annotations` (api, model, conversation, findings, notes, …) go over the record's own
    and never over what was on the wire.
    """
    extra = {**record.annotations, **(annotations or {})}
    line: dict[str, Json] = {
        "format": FORMAT,
        "id": record.id,
        **{name: extra.pop(name, None) for name in _ANNOTATIONS[:3]},
        "end": record.end,
        "error": record.error,
        "timing": encode_timing(record.timing),
        **{name: extra.pop(name, None) or [] for name in _ANNOTATIONS[3:]},
        **{name: value for name, value in extra.items() if name not in _OWN},
        "request": {
            "method": record.method,
            "url": record.url,
            "headers": _join(record.request_headers),
            **_body(record.request_body),
        },
        "response": {
            "status": record.status,
            "headers": _join(record.response_headers),
            **_body(record.response_body),
            "chunks": encode_chunks(record.chunks),
        },
        **changes(record),
        **({"lacks": list[Json](sorted(record.missing))} if record.missing else {}),
    }
    try:
        return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # Lone surrogates (bytes of a header that are no UTF-8) and integers over 64 bits.
        return json.dumps(printable(line), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def encode_timing(timing: Timing) -> dict[str, Json]:
    return {
        "started": timing.started,
        "first_byte_ms": timing.first_byte,
        "first_token_ms": timing.first_token,
        "duration_ms": timing.duration,
    }


def encode_chunks(chunks: Iterable[tuple[float, int]]) -> list[Json]:
    return [[time, size] for time, size in chunks]


def changes(record: Record) -> dict[str, Json]:
    """The members `forwarded`, `delivered` and `fixes` of a changed record."""
    made: dict[str, Json] = {}
    if record.forwarded is not None:
        made["forwarded"] = encode_sent(record.forwarded)
    if record.delivered is not None:
        made["delivered"] = encode_sent(record.delivered)
    if record.fixes:
        made["fixes"] = encode_fixes(record.fixes)
    return made


def decode(value: Json, source: str, place: str) -> Record:
    """The record of a line. Raises FormatError."""
    if not isinstance(value, dict):
        raise FormatError("not a JSON object")
    version = value.get("format", FORMAT)
    if not isinstance(version, int) or version > FORMAT:
        raise FormatError(f"format {version} is newer than this wirelint, which reads up to {FORMAT}")
    request, response = value.get("request"), value.get("response")
    if not isinstance(request, dict) and not isinstance(response, dict):
        raise FormatError("neither `request` nor `response`")
    request = request if isinstance(request, dict) else {}
    answered = isinstance(response, dict)
    response = response if isinstance(response, dict) else {}
    request_body = _read_body(request)
    return Record(
        id=_text(printable(value.get("id"))) or f"{source}:{place.rpartition(' ')[2]}",
        method=_text(request.get("method")) or ("POST" if request_body else "GET"),
        url=_text(request.get("url")),
        request_headers=read_headers(request.get("headers")),
        request_body=request_body,
        status=_read_status(response.get("status", 200 if answered else None)),
        response_headers=read_headers(response.get("headers")),
        response_body=_read_body(response),
        chunks=read_chunks(response.get("chunks")),
        timing=read_timing(value.get("timing")),
        end=_read_end(value.get("end")),
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
    """The record of a line, after the records of its `prior`. Raises FormatError."""
    record = decode(value, source, place)
    before = record.annotations.get("prior")
    prior = [
        dataclasses.replace(decode(one, source, f"{place}{_PRIOR}{number}"), id=f"{record.id}/prior {number}")
        for number, one in enumerate(before if isinstance(before, list) else (), 1)
    ]
    return [*prior, record]


def is_prior(record: Record) -> bool:
    """Return True if a record is from the `prior` of a line."""
    return _PRIOR in record.place


def read_headers(value: Json) -> Headers:
    """Headers from an object, from pairs, or from `{"name": …, "value": …}`. Other values are left out."""
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
            case _:
                pass
    return tuple(fields)


def read_sent(value: Json) -> Sent | None:
    """A message that was sent instead of the received one. Raises FormatError."""
    return Sent(read_headers(value.get("headers")), _read_body(value)) if isinstance(value, dict) else None


def read_fixes(value: Json) -> tuple[AppliedFix, ...]:
    """The fixes of a record. A fix without a valid safety or side is left out."""
    made = (_read_fix(item) for item in (value if isinstance(value, list) else []) if isinstance(item, dict))
    return tuple(fix for fix in made if fix is not None)


def _read_fix(item: Mapping[str, Json]) -> AppliedFix | None:
    match item:
        case {"safety": "safe" | "unsafe" as safety, "side": "request" | "response" as side}:
            pass
        case _:
            return None
    code, name, title, patch = (_text(item.get(key)) for key in ("code", "name", "title", "patch"))
    pointer, event = item.get("pointer"), item.get("event")
    lines = patch.split("\n") if patch else []
    before, after = ("\n".join(line[2:] for line in lines if line[:1] == sign) for sign in "-+")
    return AppliedFix(
        code,
        name,
        safety,
        side,
        title,
        pointer if isinstance(pointer, str) else None,
        event if isinstance(event, int) else None,
        before,
        after,
    )


def encode_sent(sent: Sent) -> dict[str, Json]:
    return {"headers": _join(sent.headers), **_body(sent.body)}


def encode_fixes(fixes: Iterable[AppliedFix]) -> list[Json]:
    return [_fix(repair) for repair in fixes]


def _fix(repair: AppliedFix) -> dict[str, Json]:
    return {
        "code": repair.code,
        "name": repair.name,
        "safety": repair.safety,
        "side": repair.side,
        "title": repair.title,
        "pointer": repair.pointer,
        "event": repair.event,
        "patch": repair.patch,
    }


def _join(headers: Headers) -> dict[str, Json]:
    """Headers with repeated names joined by a comma (RFC 9110, 5.3), under their first spelling."""
    spelling: dict[str, str] = {}
    joined: dict[str, Json] = {}
    for name, value in headers:
        first = spelling.setdefault(name.lower(), name)
        joined[first] = f"{joined[first]}, {value}" if first in joined else value
    return joined


def _body(body: bytes | None) -> dict[str, Json]:
    if body is None:
        return {"body": None}
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def _read_body(message: Mapping[str, Json]) -> bytes | None:
    encoded = message.get("body_base64")
    if isinstance(encoded, str):
        try:
            return base64.b64decode(encoded, validate=True)
        except binascii.Error as error:
            raise FormatError(f"`body_base64` is no base64: {error}") from error
    body = message.get("body")
    match body:
        case None:
            return None
        case str():
            return body.encode("utf-8", "surrogatepass")
        case _:
            return dump(body)


def dump(value: Json) -> bytes:
    """A JSON value as bytes of a body."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _read_status(value: Json) -> int | None:
    # Some tools write 0 for an exchange without an answer.
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _read_end(value: Json) -> End:
    return read_end(value) or "unknown"


def read_end(value: Json) -> End | None:
    """The end of an exchange, or None if `value` names none."""
    match value:
        case "complete" | "client-left" | "upstream-died" | "unread" | "unknown":
            return value
        case _:
            return None


def read_timing(value: Json) -> Timing:
    """The times of an exchange. A value that is no number counts as unknown."""
    if not isinstance(value, dict):
        return Timing()
    names = ("started", "first_byte_ms", "first_token_ms", "duration_ms")
    return Timing(*(_number(value.get(name)) for name in names))


def read_chunks(value: Json) -> tuple[tuple[float, int], ...]:
    """All chunks, or none if one of them is invalid."""
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


def _number(value: Json) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _text(value: Json) -> str:
    match value:
        case str():
            return value
        case bool() | None | dict() | list():
            return ""
        case _:
            return str(value)


def printable(value: Json) -> Json:
    """A value without lone surrogates: their bytes become replacement characters."""
    if isinstance(value, str):
        return _printable(value)
    if isinstance(value, dict):
        return {
            _printable(name): _printable(item) if type(item) is str else printable(item) for name, item in value.items()
        }
    if isinstance(value, list):
        return [printable(item) for item in value]
    return value


def _printable(text: str) -> str:
    if text.isascii() or _is_unicode(text):
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # surrogates are all that UTF-8 has no bytes for
        return False
    return True
