"""Incremental decoders of content codings for a copy of the body: gzip, deflate, br, zstd (RFC 9110, 8.4).

Theory of operation. A compressed body of 1 MB can hold gigabytes. Not every version of the libraries that mitmproxy
allows can bound its output, so each decoder gets its input in small slices, and the output is counted after each. A
damaged slice raises an error that carries the bytes decoded before the damage.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import ClassVar, TypeAlias

import brotli
import zstandard

MOST_PLAIN = 32 << 20
"""Upper limit for the decoded bytes of a body from a file; equal to the default of `wirelint_max_body` for a proxy."""


class CodingError(ValueError):
    """The body does not match its content-encoding, or the coding is unknown. `plain` was decoded from the same
    bytes before the damage.
    """

    plain = b""


class TooLargeError(CodingError):
    """The decoded body exceeds the limit."""

    def __init__(self) -> None:
        super().__init__("larger than it may be")


class _Room:
    """Number of plain bytes that a decoder may still produce (`left`; None: no limit). Each fed byte adds `ratio`."""

    def __init__(self, left: int | None, ratio: int) -> None:
        self._left, self._ratio = left, ratio

    def grow(self, fed: int) -> None:
        if self._left is not None:
            self._left += self._ratio * fed

    def take(self, size: int) -> None:
        if self._left is not None:
            self._left -= size
            if self._left < 0:
                raise TooLargeError


class _Inflated:
    """Base of the gzip and deflate decoders.

    The members are those of every coding's class. `SLICE` is the number of bytes that are decoded at a time. `MAGIC`
    lists the first bytes of a further member. `over`: the member is complete; `unused` are the bytes of the last slice
    after its end. `decode` raises CodingError.
    """

    SLICE: ClassVar[int] = 256  # zlib expands a byte to up to 1032
    MAGIC: ClassVar[tuple[bytes, ...]] = ()

    def __init__(self, wbits: int) -> None:
        self._inflate = zlib.decompressobj(wbits)

    @property
    def over(self) -> bool:
        return self._inflate.eof

    @property
    def unused(self) -> bytes:
        return self._inflate.unused_data

    def decode(self, data: bytes) -> bytes:
        before = self._inflate.copy()
        try:
            return self._inflate.decompress(data)
        except zlib.error as error:
            raised = CodingError(str(error))
            raised.plain = _salvage(before, data)
            raise raised from error


def _salvage(inflate: zlib._Decompress, data: bytes) -> bytes:
    """Return the bytes decoded before the damage, which zlib itself does not return."""
    out = bytearray()
    try:
        for byte in data:
            out += inflate.decompress(bytes((byte,)))
    except zlib.error:
        pass
    return bytes(out)


class _Gzip(_Inflated):
    MAGIC = (b"\x1f\x8b",)

    def __init__(self) -> None:
        super().__init__(31)


class _Deflate(_Inflated):
    """Decoder of deflate with the zlib header that RFC 9110 requires, or without it, as some servers send it."""

    def __init__(self) -> None:
        super().__init__(15)
        self._head: bytes | None = b""

    def decode(self, data: bytes) -> bytes:
        if self._head is not None:
            data = self._head + data
            if len(data) < 2:
                self._head = data
                return b""
            self._head = None
            # RFC 1950, 2.2: method 8, and a check on both bytes. Raw deflate streams hardly ever begin with such bytes.
            wrapped = data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0
            self._inflate = zlib.decompressobj(15 if wrapped else -15)
        return super().decode(data)


class _Brotli:
    # A command of a few bytes expands to up to 16 MiB (RFC 7932, 9.2).
    SLICE: ClassVar[int] = 16
    MAGIC: ClassVar[tuple[bytes, ...]] = ()
    unused = b""

    def __init__(self) -> None:
        self._decompressor = brotli.Decompressor()

    @property
    def over(self) -> bool:
        return bool(self._decompressor.is_finished())

    def decode(self, data: bytes) -> bytes:
        try:
            return bytes(self._decompressor.process(data))
        except brotli.error as error:
            raise CodingError(str(error)) from error


class _Zstd:
    # A block of four bytes expands to up to 128 KiB (RFC 8878, 3.1.1.2).
    SLICE: ClassVar[int] = 64
    MAGIC: ClassVar[tuple[bytes, ...]] = (
        b"\x28\xb5\x2f\xfd",
        *(bytes((low,)) + b"\x2a\x4d\x18" for low in range(0x50, 0x60)),
    )

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor().decompressobj()

    @property
    def over(self) -> bool:
        return self._decompressor.eof

    @property
    def unused(self) -> bytes:
        return self._decompressor.unused_data

    def decode(self, data: bytes) -> bytes:
        try:
            return self._decompressor.decompress(data)
        except zstandard.ZstdError as error:
            raise CodingError(str(error)) from error


_Member: TypeAlias = "_Gzip | _Deflate | _Brotli | _Zstd"


class _Members:
    """Decoder of consecutive members (RFC 1952, 2.2; RFC 8878, 3.1). Bytes after the last member that begin no further
    one are ignored, as clients do."""

    def __init__(self, kind: type[_Member], room: _Room) -> None:
        self._kind, self._room = kind, room
        self._member = kind()
        self._between = b""
        self._fed = self._over = False

    @property
    def finished(self) -> bool:
        return not self._fed or self._member.over

    def feed(self, data: bytes) -> bytes:
        data, self._between = self._between + data, b""
        self._fed = self._fed or bool(data)
        out, at = bytearray(), 0
        try:
            while at < len(data) and not self._over:
                if self._member.over and not self._begin(data[at : at + 4]):
                    break
                piece = data[at : at + self._kind.SLICE]
                plain = self._member.decode(piece)
                used = len(piece) - len(self._member.unused)
                at += used
                self._room.grow(used)
                self._room.take(len(plain))
                out += plain
        except CodingError as error:
            error.plain = bytes(out) + error.plain
            raise
        return bytes(out)

    def _begin(self, head: bytes) -> bool:
        """Begin the next member. Return False if the bytes begin none, or if there are too few of them to decide."""
        if any(head.startswith(magic) for magic in self._kind.MAGIC):
            self._member = self._kind()
            return True
        if any(magic.startswith(head) for magic in self._kind.MAGIC):
            self._between = head
        else:
            self._over = True
        return False


class Decoder:
    """Decoder of the codings of a body, which were applied one after the other. They are undone from the last to the
    first."""

    def __init__(self, kinds: Iterable[type[_Member]], most: int | None, ratio: int) -> None:
        self._room = _Room(most, ratio)
        """Limit of a body without codings."""
        self._codings = [_Members(kind, _Room(most, ratio)) for kind in kinds]

    @property
    def finished(self) -> bool:
        """Return True if the body may end here: its codings are complete, or no byte has arrived."""
        return all(coding.finished for coding in self._codings)

    def feed(self, data: bytes) -> bytes:
        """Return the plain bytes that `data` completes. Raises CodingError; do not call `feed` after it."""
        if not self._codings:
            self._room.grow(len(data))
            self._room.take(len(data))
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


_CODINGS: dict[str, type[_Member] | None] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
    "identity": None,
}


def decoder(content_encoding: str | None, most: int | None = None, *, ratio: int = 0) -> Decoder:
    """Return a decoder for the value of a content-encoding header. Raises CodingError for an unknown one.

    The decoder may produce `most` plain bytes, and `ratio` more for each byte fed. Above that, `feed` raises
    TooLargeError before it has produced many more.
    """
    names = [name.strip().lower() for name in (content_encoding or "").split(",") if name.strip()]
    unknown = [name for name in names if name not in _CODINGS]
    if unknown:
        raise CodingError(f"unknown content-encoding {unknown[0]!r}")
    return Decoder([kind for name in reversed(names) if (kind := _CODINGS[name]) is not None], most, ratio)


def decode(content_encoding: str | None, body: bytes, most: int | None = None) -> bytes:
    """Return a whole body without its codings. Raises CodingError. The limit is `most` plain bytes; None: MOST_PLAIN,
    or the size of the body if that is larger.
    """
    return decoder(content_encoding, max(MOST_PLAIN, len(body)) if most is None else most).feed(body)


def why_unread(side: str, error: CodingError) -> str:
    """Return the note that says why a body from a file cannot be read."""
    if isinstance(error, TooLargeError):
        return f"the body of the {side} is larger than {MOST_PLAIN >> 20} MiB without its content-encoding; it was not read"
    return f"the body of the {side} is not what its content-encoding says: {error}"
