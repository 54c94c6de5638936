"""Incremental decoders of content codings for a copy of the body: gzip, deflate, br, zstd (RFC 9110, 8.4).

Theory of operation. A compressed body of 1 MB can hold gigabytes. Not every version of the libraries that mitmproxy
allows can bound its output, so each decoder gets its input in small slices, and the output is counted after each. A
damaged slice raises an error that carries the bytes decoded before the damage.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

import brotli
import zstandard

MOST_PLAIN = 32 << 20
"""Upper limit for the decoded bytes of a body from a file; equal to the default of `wirelint_max_body` for a proxy."""


class CodingError(ValueError):
    """The body does not match its content-encoding, or that is unknown. `plain`: what was decoded until then."""

    plain = b""


class TooLargeError(CodingError):
    """The decoded body exceeds the limit."""


class _Room:
    """Number of plain bytes that a decoder may still produce (None: no limit). Each fed byte adds `ratio`."""

    def __init__(self, left: int | None, ratio: int) -> None:
        self._left: float = math.inf if left is None else left
        self._ratio = ratio

    def count(self, fed: int, plain: int) -> None:
        self._left += self._ratio * fed - plain
        if self._left < 0:
            raise TooLargeError("larger than it may be")


class _Member(Protocol):
    """Decoder of one member, such as that of `zlib`. `unused_data` are the bytes of the last slice after its end."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


class _Brotli:
    unused_data = b""

    def __init__(self) -> None:
        self._decompressor = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._decompressor.is_finished())

    def decompress(self, data: bytes, /) -> bytes:
        return bytes(self._decompressor.process(data))


def _deflate(head: bytes) -> _Member | None:
    """Return a decoder of deflate with the zlib header that RFC 9110 requires, or without it, as some servers send it."""
    if len(head) < 2:
        return None
    # RFC 1950, 2.2: method 8, and a check on both bytes. Raw deflate streams hardly ever begin with such bytes.
    wrapped = head[0] & 0x0F == 8 and int.from_bytes(head[:2]) % 31 == 0
    return zlib.decompressobj(15 if wrapped else -15)


class _Coding(NamedTuple):
    begin: Callable[[bytes], _Member | None]
    """Function from the first bytes of a member to its decoder; None if more bytes are needed."""
    slice: int
    """Number of bytes that are decoded at a time."""
    magic: tuple[bytes, ...] = ()
    """The first bytes of a further member."""


_GZIP = _Coding(lambda _: zlib.decompressobj(31), 256, (b"\x1f\x8b",))
_CODINGS = {
    "gzip": _GZIP,
    "x-gzip": _GZIP,
    "deflate": _Coding(_deflate, 256),  # zlib expands a byte to up to 1032
    # A command of a few bytes expands to up to 16 MiB (RFC 7932, 9.2).
    "br": _Coding(lambda _: _Brotli(), 16),
    # A block of four bytes expands to up to 128 KiB (RFC 8878, 3.1.1.2).
    "zstd": _Coding(
        lambda _: zstandard.ZstdDecompressor().decompressobj(),
        64,
        (b"\x28\xb5\x2f\xfd", *(bytes((low,)) + b"\x2a\x4d\x18" for low in range(0x50, 0x60))),
    ),
}


class _Members(_Room):
    """Decoder of consecutive members (RFC 1952, 2.2; RFC 8878, 3.1). Bytes after the last member that begin no further
    one are ignored, as clients do."""

    def __init__(self, coding: _Coding, left: int | None, ratio: int) -> None:
        super().__init__(left, ratio)
        self._coding = coding
        self._member: _Member | None = None
        self._waiting = b""
        self._fed = self._over = False

    @property
    def finished(self) -> bool:
        return not self._fed or (self._member is not None and self._member.eof)

    def feed(self, data: bytes) -> bytes:
        data, self._waiting = self._waiting + data, b""
        self._fed = self._fed or bool(data)
        out, at = bytearray(), 0
        try:
            while at < len(data) and not self._over:
                member = self._member
                if member is None or member.eof:
                    member = self._begin(data[at : at + 4])
                    if member is None:
                        break
                piece = data[at : at + self._coding.slice]
                plain = _decode(member, piece)
                used = len(piece) - len(member.unused_data)
                at += used
                self.count(used, len(plain))
                out += plain
        except CodingError as error:
            error.plain = bytes(out) + error.plain
            raise
        return bytes(out)

    def _begin(self, head: bytes) -> _Member | None:
        """Return the decoder of the next member; None if the bytes begin none, or if there are too few of them."""
        magic = self._coding.magic
        if self._member is None or head.startswith(magic):
            member = self._coding.begin(head)
            self._member = member or self._member
            self._waiting = b"" if member is not None else head
            return member
        if any(first.startswith(head) for first in magic):
            self._waiting = head
        else:
            self._over = True
        return None


def _decode(member: _Member, data: bytes) -> bytes:
    """Return the plain bytes of a slice. Raises CodingError with the bytes before the damage.

    zlib itself does not return them, so they are decoded again byte by byte.
    """
    before = member.copy() if hasattr(member, "copy") else None
    try:
        return member.decompress(data)
    except (zlib.error, brotli.error, zstandard.ZstdError) as error:
        raised = CodingError(str(error))
        if before is not None:
            with suppress(zlib.error):
                for byte in data:
                    raised.plain += before.decompress(bytes((byte,)))
        raise raised from error


class Decoder:
    """Decoder for the value of a content-encoding header, which may name several codings.

    It may produce `most` plain bytes (None: no limit), and `ratio` more for each byte fed. Above that, `feed` raises
    TooLargeError before it has produced many more. An unknown coding raises CodingError at once.
    """

    def __init__(self, content_encoding: str | None, most: int | None = None, *, ratio: int = 0) -> None:
        names = [name.strip().lower() for name in (content_encoding or "").split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if unknown := [name for name in names if name not in _CODINGS]:
            raise CodingError(f"unknown content-encoding {unknown[0]!r}")
        self._room = _Room(most, ratio)
        """Limit of a body without codings."""
        self._codings = [_Members(_CODINGS[name], most, ratio) for name in reversed(names)]

    @property
    def finished(self) -> bool:
        """Return True if the body may end here: its codings are complete, or no byte has arrived."""
        return all(coding.finished for coding in self._codings)

    def feed(self, data: bytes) -> bytes:
        """Return the plain bytes that `data` completes. Raises CodingError; do not call `feed` after it."""
        if not self._codings:
            self._room.count(len(data), len(data))
        failed: CodingError | None = None
        for coding in self._codings:
            try:
                data = coding.feed(data)
            except CodingError as error:
                failed, data = failed or error, error.plain
        if failed is not None:
            failed.plain = data
            raise failed
        return data


def decode(content_encoding: str | None, body: bytes, most: int | None = None) -> bytes:
    """Return a whole body without its codings. Raises CodingError. The limit is `most` plain bytes; None: MOST_PLAIN,
    or the size of the body if that is larger.
    """
    return Decoder(content_encoding, max(MOST_PLAIN, len(body)) if most is None else most).feed(body)


def why_unread(side: str, error: CodingError) -> str:
    """Return the note that says why a body from a file cannot be read."""
    if isinstance(error, TooLargeError):
        return f"the body of the {side} is larger than {MOST_PLAIN >> 20} MiB without its content-encoding; it was not read"
    return f"the body of the {side} is not what its content-encoding says: {error}"
