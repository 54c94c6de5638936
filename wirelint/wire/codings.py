"""Content codings, undone piece by piece on a copy of the body: gzip, deflate, br, zstd (RFC 9110, 8.4)."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Protocol

import brotli
import zstandard


class CodingError(ValueError):
    """The body is not what its content-encoding says, or the coding is unknown."""


class TooLargeError(CodingError):
    """What the body would become is larger than it may be."""


class Decoder(Protocol):
    def feed(self, data: bytes) -> bytes:
        """Plain bytes that `data` makes known. Raises CodingError."""
        ...


class _Identity:
    def __init__(self, room: _Room) -> None:
        self._room = room

    def feed(self, data: bytes) -> bytes:
        self._room.take(len(data))
        return data


class _Room:
    """How many plain bytes a decoder may still make. None: as many as it likes."""

    def __init__(self, left: int | None) -> None:
        self._full = self.left = left

    def renew(self) -> None:
        self.left = self._full

    @property
    def most(self) -> int:
        """The limit for one call of zlib, for which 0 is none: a byte more than there is room for tells."""
        return 0 if self.left is None else self.left + 1

    def take(self, size: int) -> None:
        if self.left is not None:
            self.left -= size
            if self.left < 0:
                raise TooLargeError("larger than it may be")


class _Gzip:
    """One member after the other (RFC 1952, 2.2). What follows the last one and is none is passed over, as clients do."""

    _MAGIC = b"\x1f\x8b"

    def __init__(self, room: _Room) -> None:
        self._inflate = zlib.decompressobj(31)
        self._room = room
        self._between = b""
        self._over = False

    def feed(self, data: bytes) -> bytes:
        out = bytearray()
        while data and not self._over:
            if self._inflate.eof:
                data = self._between + data
                if len(data) < len(self._MAGIC):
                    self._between = data
                    break
                self._between = b""
                if not data.startswith(self._MAGIC):
                    self._over = True
                    break
                self._inflate = zlib.decompressobj(31)
            out += _inflated(self._inflate, data, self._room)
            data = self._inflate.unused_data
        return bytes(out)


class _Deflate:
    """deflate with the zlib header that RFC 9110 asks for, or without it, as some servers send it."""

    def __init__(self, room: _Room) -> None:
        self._head = b""
        self._room = room
        self._inflate: zlib._Decompress | None = None

    def feed(self, data: bytes) -> bytes:
        if self._inflate is None:
            data = self._head + data
            if len(data) < 2:
                self._head = data
                return b""
            # RFC 1950, 2.2: method 8, and a check on both bytes. Raw streams hardly begin so.
            wrapped = data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0
            self._inflate = zlib.decompressobj(15 if wrapped else -15)
        return _inflated(self._inflate, data, self._room) if data and not self._inflate.eof else b""


def _inflated(inflate: zlib._Decompress, data: bytes, room: _Room) -> bytes:
    try:
        plain = inflate.decompress(data, room.most)
    except zlib.error as error:
        raise CodingError(str(error)) from error
    room.take(len(plain))
    return plain


def _sliced(decode: Callable[[bytes], bytes], data: bytes, slice_: int, room: _Room) -> bytes:
    """Decodes piece by piece: a decompressor without a limit of its own is stopped between two pieces."""
    if room.left is None:
        return decode(data)
    out = bytearray()
    for start in range(0, len(data), slice_):
        plain = decode(data[start : start + slice_])
        room.take(len(plain))
        out += plain
    return bytes(out)


class _Brotli:
    # A command of a few bytes makes up to 16 MiB (RFC 7932, 9.2).
    _SLICE = 16

    def __init__(self, room: _Room) -> None:
        self._decompressor = brotli.Decompressor()
        self._room = room

    def feed(self, data: bytes) -> bytes:
        try:
            return _sliced(self._decompressor.process, data, self._SLICE, self._room)
        except brotli.error as error:
            raise CodingError(str(error)) from error


class _Zstd:
    # A block of four bytes makes up to 128 KiB (RFC 8878, 3.1.1.2).
    _SLICE = 256

    def __init__(self, room: _Room) -> None:
        self._decompressor = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
        self._room = room

    def feed(self, data: bytes) -> bytes:
        try:
            return _sliced(self._decompressor.decompress, data, self._SLICE, self._room)
        except zstandard.ZstdError as error:
            raise CodingError(str(error)) from error


class _Chain:
    """Codings that were applied one after the other, undone from the last to the first."""

    def __init__(self, decoders: list[Decoder]) -> None:
        self._decoders = decoders

    def feed(self, data: bytes) -> bytes:
        for decoder in self._decoders:
            data = decoder.feed(data)
        return data


_CODINGS: dict[str, type[_Gzip] | type[_Deflate] | type[_Brotli] | type[_Zstd] | type[_Identity]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
    "identity": _Identity,
}


class _Endless:
    """A decoder whose limit counts for every piece anew."""

    def __init__(self, decoder: Decoder, rooms: list[_Room]) -> None:
        self._decoder, self._rooms = decoder, rooms

    def feed(self, data: bytes) -> bytes:
        for room in self._rooms:
            room.renew()
        return self._decoder.feed(data)


def decoder(content_encoding: str | None, most: int | None = None, *, endless: bool = False) -> Decoder:
    """A decoder for the value of a content-encoding header. Raises CodingError for one that nobody knows.

    `most` is the number of plain bytes that it may make altogether, or of every piece that it is fed when `endless`;
    above it `feed` raises TooLargeError, without having made many more.
    """
    names = [name.strip().lower() for name in (content_encoding or "").split(",") if name.strip()]
    unknown = [name for name in names if name not in _CODINGS]
    if unknown:
        raise CodingError(f"unknown content-encoding {unknown[0]!r}")
    rooms = [_Room(most) for _ in names or ("identity",)]
    decoders: list[Decoder] = [
        _CODINGS[name](room) for name, room in zip(reversed(names or ["identity"]), rooms, strict=True)
    ]
    whole = decoders[0] if len(decoders) == 1 else _Chain(decoders)
    return _Endless(whole, rooms) if endless else whole


def decode(content_encoding: str | None, body: bytes, most: int | None = None) -> bytes:
    """A whole body without its codings. Raises CodingError."""
    return decoder(content_encoding, most).feed(body)
