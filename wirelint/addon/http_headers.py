"""The heads of messages that are changed: what says how long a body is and how it is coded has to stay true.

Theory of operation. mitmproxy frames a streamed body by the headers that the reply has when they are sent, and corrects
none of them. A body whose length is not known beforehand is chunked for a client of HTTP/1.1, which keeps its connection;
an older client sees the end of the connection; HTTP/2 and 3 have frames of their own and forbid the field. A reply that the
upstream ends with its connection is left like that, because mitmproxy could not tell whether that connection is of use
afterwards. A whole body is left to mitmproxy, which codes it as it was and corrects its length.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from mitmproxy import http

from wirelint.capture.record import Headers
from wirelint.wire.content_coding import CodingError, TooLargeError, decode, decoder

HEADER = "x-wirelint"

_DIGESTS = frozenset({b"content-digest", b"repr-digest", b"digest", b"content-md5"})
_SIGNED = _DIGESTS | {b"signature", b"x-amz-content-sha256"}
_LENGTHS = frozenset({b"transfer-encoding", b"content-length"})
_CODED = _DIGESTS | {b"content-length", b"content-encoding"}


def headers_of(message: http.Message) -> Headers:
    return tuple(
        [
            (name.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape"))
            for name, value in message.headers.fields
        ]
    )


def field_of(message: http.Message, name: bytes) -> str | None:
    """The value of a header field, whose name is in lower case here; repeated ones joined. None: there is none."""
    found = [value for other, value in message.headers.fields if other.lower() == name]
    return b", ".join(found).decode("utf-8", "surrogateescape") if found else None


def body_of(message: http.Message, most: int) -> bytes | None:
    """The body without its content codings; as it is, where they cannot be undone. Raises TooLargeError above `most` bytes.

    mitmproxy's own `content` and `text` are not asked: they decode without a bound.
    """
    raw = message.raw_content
    if raw is None or b"content-encoding" not in _names(message):
        return raw
    try:
        return decode(field_of(message, b"content-encoding"), raw, most)
    except TooLargeError:
        raise
    except CodingError:
        return raw


_Fields = tuple[tuple[bytes, bytes], ...]
_asked: list[tuple[_Fields, frozenset[bytes]]] = [((), frozenset())]
"""The fields that were asked about last, and their names. A message is asked about several times in a row."""


def _names(message: http.Message) -> frozenset[bytes]:
    """The names of its header fields, in lower case."""
    fields = message.headers.fields
    known, names = _asked[0]
    if known is not fields:
        names = frozenset([name.lower() for name, _ in fields])
        _asked[0] = fields, names
    return names


def is_signed(request: http.Request) -> bool:
    """Return True if a header vouches for the body: changed, the request would be refused."""
    return not _SIGNED.isdisjoint(_names(request))


def is_decodable(request: http.Request, most: int) -> bool:
    """Return True if the body, of no more than `most` bytes, is what the header says of its coding, to its end."""
    if b"content-encoding" not in _names(request):
        return True
    try:
        undone = decoder(field_of(request, b"content-encoding"), most)
        undone.feed(request.raw_content or b"")
    except CodingError:
        return False
    return undone.finished


def has_known_end(response: http.Response) -> bool:
    """Return True if the end of a body can be told from a connection that broke: not where the one is the other."""
    return response.http_version.startswith("HTTP/1") and not _LENGTHS.isdisjoint(_names(response))


def is_plainly_framed(fields: Mapping[str, str]) -> bool:
    """Return True if a body comes without codings of its transfer, which mitmproxy does not undo. `fields`: by names
    in lower case."""
    return fields.get("transfer-encoding", "").strip().lower() in ("", "chunked", "identity")


def make_open_ended(request: http.Request, response: http.Response) -> None:
    """Readies the head of a streamed reply for a body of any length, without content codings."""
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
    """Puts a whole body in the place of another, coded as the one before; mitmproxy drops a coding it cannot make."""
    _drop(message, _DIGESTS)
    names = [name.lower() for name, _ in message.headers.fields]
    if b"content-encoding" in names or b"transfer-encoding" in names or names.count(b"content-length") != 1:
        message.content = body
        return
    # Nearly always: what mitmproxy does then, which goes through the fields again and again.
    length, place = b"%d" % len(body), names.index(b"content-length")
    fields = message.headers.fields
    message.raw_content = body
    message.headers.fields = (*fields[:place], (fields[place][0], length), *fields[place + 1 :])


def add_field(message: http.Message, name: str, value: str) -> None:
    """Puts a field behind the others."""
    message.headers.fields = (*message.headers.fields, (name.encode(), value.encode("utf-8", "surrogateescape")))


def _drop(message: http.Message, names: Set[bytes]) -> None:
    if not names.isdisjoint(_names(message)):
        message.headers.fields = tuple([field for field in message.headers.fields if field[0].lower() not in names])
