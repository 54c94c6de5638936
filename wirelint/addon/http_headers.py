"""Headers of changed messages: length, coding and framing must match the changed body.

mitmproxy frames a streamed body by the headers at the time of sending and corrects none. A body of unknown length is
chunked for HTTP/1.1; an older client sees the close of the connection; HTTP/2 and 3 forbid transfer-encoding. A reply
ended by the close of the upstream's connection is left like that, because mitmproxy cannot reuse that connection. For
a buffered body mitmproxy encodes and corrects the length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mitmproxy import http

from wirelint.wire.content_coding import CodingError, TooLargeError, decode, decoder

HEADER = "x-wirelint"

_DIGESTS = ("content-digest", "repr-digest", "digest", "content-md5")
_SIGNED = (*_DIGESTS, "signature", "x-amz-content-sha256")
_LENGTHS = ("transfer-encoding", "content-length")
_CODED = (*_DIGESTS, "content-length", "content-encoding")


def body_of(message: http.Message, most: int) -> bytes | None:
    """Return the decoded body, or the raw one if it cannot be decoded. Raises TooLargeError above `most` bytes;
    mitmproxy's own `content` has no limit."""
    raw = message.raw_content
    if raw is None or "content-encoding" not in message.headers:
        return raw
    try:
        return decode(message.headers.get("content-encoding"), raw, most)
    except TooLargeError:
        raise
    except CodingError:
        return raw


def is_json(response: http.Response) -> bool:
    """Return True if the content type is JSON."""
    kind = str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def is_within(response: http.Response, limit: int) -> bool:
    """Return True if content-length is present and at most `limit`."""
    length: str = response.headers.get("content-length", "")
    return length.isascii() and length.isdigit() and int(length) <= limit


def is_signed(request: http.Request) -> bool:
    """Return True if a header signs the body: a changed request would be rejected."""
    return any(name in request.headers for name in _SIGNED)


def is_decodable(request: http.Request, most: int) -> bool:
    """Return True if the body, of at most `most` bytes, matches its content-encoding to the end."""
    if "content-encoding" not in request.headers:
        return True
    try:
        undone = decoder(request.headers.get("content-encoding"), most)
        undone.feed(request.raw_content or b"")
    except CodingError:
        return False
    return undone.finished


def has_known_end(response: http.Response) -> bool:
    """Return True if the end of the body differs from a broken connection."""
    return response.http_version.startswith("HTTP/1") and any(name in response.headers for name in _LENGTHS)


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
        if response.headers.get("transfer-encoding") != "chunked":
            response.headers["transfer-encoding"] = "chunked"
    elif request.http_version.startswith("HTTP/1"):
        response.headers.pop("transfer-encoding", None)


def replace_body(message: http.Message, body: bytes) -> None:
    """Replace a buffered body, in its content coding; mitmproxy drops a coding that it cannot encode."""
    _drop(message, _DIGESTS)
    message.content = body


def _drop(message: http.Message, names: Iterable[str]) -> None:
    for name in names:
        message.headers.pop(name, None)
