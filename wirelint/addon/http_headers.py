"""Headers of changed messages: length, coding and framing must match the changed body.

mitmproxy frames a streamed body by the headers at the time of sending and corrects none. A body of unknown length is
chunked for HTTP/1.1; an older client sees the close of the connection; HTTP/2 and 3 forbid transfer-encoding. A reply
ended by the close of the upstream's connection is left like that, because mitmproxy cannot reuse that connection. For
a buffered body mitmproxy encodes and corrects the length."""

from __future__ import annotations

from collections.abc import Mapping, Set

from mitmproxy import http

from wirelint.wire.content_coding import CodingError, TooLargeError, decode, decoder

HEADER = "x-wirelint"

_DIGESTS = frozenset({b"content-digest", b"repr-digest", b"digest", b"content-md5"})
_SIGNED = _DIGESTS | {b"signature", b"x-amz-content-sha256"}
_LENGTHS = frozenset({b"transfer-encoding", b"content-length"})
_CODED = _DIGESTS | {b"content-length", b"content-encoding"}


def field_of(message: http.Message, name: bytes) -> str | None:
    """Return the value of a header (lower-case name), repeated ones joined; None if absent."""
    found = [value for other, value in message.headers.fields if other.lower() == name]
    return b", ".join(found).decode("utf-8", "surrogateescape") if found else None


def body_of(message: http.Message, most: int) -> bytes | None:
    """Return the decoded body, or the raw one if it cannot be decoded. Raises TooLargeError above `most` bytes;
    mitmproxy's own `content` has no limit."""
    raw = message.raw_content
    if raw is None or b"content-encoding" not in _names(message):
        return raw
    try:
        return decode(field_of(message, b"content-encoding"), raw, most)
    except TooLargeError:
        raise
    except CodingError:
        return raw


def _names(message: http.Message) -> frozenset[bytes]:
    """Return the lower-case header names."""
    return frozenset([name.lower() for name, _ in message.headers.fields])


def is_json(response: http.Response) -> bool:
    """Return True if the content type is JSON."""
    kind = (field_of(response, b"content-type") or "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def is_within(response: http.Response, limit: int) -> bool:
    """Return True if content-length is present and at most `limit`."""
    length = field_of(response, b"content-length") or ""
    return length.isascii() and length.isdigit() and int(length) <= limit


def is_signed(request: http.Request) -> bool:
    """Return True if a header signs the body: a changed request would be rejected."""
    return not _SIGNED.isdisjoint(_names(request))


def is_decodable(request: http.Request, most: int) -> bool:
    """Return True if the body, of at most `most` bytes, matches its content-encoding to the end."""
    if b"content-encoding" not in _names(request):
        return True
    try:
        undone = decoder(field_of(request, b"content-encoding"), most)
        undone.feed(request.raw_content or b"")
    except CodingError:
        return False
    return undone.finished


def has_known_end(response: http.Response) -> bool:
    """Return True if the end of the body differs from a broken connection."""
    return response.http_version.startswith("HTTP/1") and not _LENGTHS.isdisjoint(_names(response))


def is_plainly_framed(fields: Mapping[str, str]) -> bool:
    """Return True if the body has no transfer coding that mitmproxy keeps. `fields`: by lower-case name."""
    return fields.get("transfer-encoding", "").strip().lower() in ("", "chunked", "identity")


def make_open_ended(request: http.Request, response: http.Response) -> None:
    """Adapt the head of a streamed reply to a body of any length without content coding."""
    ends_with_connection = response.http_version.startswith("HTTP/1") and not has_known_end(response)
    _drop(response, _CODED)
    if ends_with_connection:
        return
    if request.http_version == "HTTP/1.1":
        if field_of(response, b"transfer-encoding") != "chunked":
            response.headers["transfer-encoding"] = "chunked"
    elif request.http_version.startswith("HTTP/1"):
        _drop(response, {b"transfer-encoding"})


def replace_body(message: http.Message, body: bytes) -> None:
    """Replace a buffered body, in its content coding; mitmproxy drops a coding that it cannot encode."""
    _drop(message, _DIGESTS)
    message.content = body


def add_field(message: http.Message, name: str, value: str) -> None:
    """Append a header."""
    message.headers.fields = (*message.headers.fields, (name.encode(), value.encode("utf-8", "surrogateescape")))


def _drop(message: http.Message, names: Set[bytes]) -> None:
    if not names.isdisjoint(_names(message)):
        message.headers.fields = tuple([field for field in message.headers.fields if field[0].lower() not in names])
