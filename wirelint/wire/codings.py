"""Content codings, undone piece by piece on a copy of the body: gzip, deflate, br, zstd (RFC 9110, 8.4)."""

from __future__ import annotations

import zlib
from typing import Protocol

import brotli
import zstandard


class CodingError(ValueError):
    """The body is not what its content-encoding says, or the coding is unknown."""


class Decoder(Protocol):
    def feed(self, data: bytes) -> bytes:
        """Plain bytes that `data` makes known. Raises CodingError."""
        ...


class _Identity:
    def feed(self, data: bytes) -> bytes:
        return data


class _Zlib:
    """gzip (several members too) and deflate, with or without the zlib header that RFC 9110 asks for."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(47)
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        if not data:
            return b""
        out = bytearray()
        while data:
            if self._inflate.eof:
                if not data.strip(b"\0"):
                    break
                self._inflate = zlib.decompressobj(47)
            out += self._step(data)
            data = self._inflate.unused_data
        return bytes(out)

    def _step(self, data: bytes) -> bytes:
        try:
            plain = self._inflate.decompress(data)
        except zlib.error as error:
            if self._begun:
                raise CodingError(str(error)) from error
            self._inflate = zlib.decompressobj(-15)
            try:
                plain = self._inflate.decompress(data)
            except zlib.error:
                raise CodingError(str(error)) from error
        # The two bytes of a zlib header may come apart; until both are here a raw stream cannot be told from one.
        self._begun = self._begun or len(data) > 1 or bool(plain)
        return plain


class _Brotli:
    def __init__(self) -> None:
        self._decompressor = brotli.Decompressor()

    def feed(self, data: bytes) -> bytes:
        try:
            return bytes(self._decompressor.process(data)) if data else b""
        except brotli.error as error:
            raise CodingError(str(error)) from error


class _Zstd:
    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)

    def feed(self, data: bytes) -> bytes:
        try:
            return self._decompressor.decompress(data) if data else b""
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


_CODINGS: dict[str, type[_Zlib] | type[_Brotli] | type[_Zstd] | type[_Identity]] = {
    "gzip": _Zlib,
    "x-gzip": _Zlib,
    "deflate": _Zlib,
    "br": _Brotli,
    "zstd": _Zstd,
    "identity": _Identity,
}


def decoder(content_encoding: str | None) -> Decoder:
    """A decoder for the value of a content-encoding header. Raises CodingError for one that nobody knows."""
    names = [name.strip().lower() for name in (content_encoding or "").split(",") if name.strip()]
    unknown = [name for name in names if name not in _CODINGS]
    if unknown:
        raise CodingError(f"unknown content-encoding {unknown[0]!r}")
    decoders: list[Decoder] = [_CODINGS[name]() for name in reversed(names)]
    match decoders:
        case []:
            return _Identity()
        case [single]:
            return single
        case _:
            return _Chain(decoders)


def decode(content_encoding: str | None, body: bytes) -> bytes:
    """A whole body without its codings. Raises CodingError."""
    return decoder(content_encoding).feed(body)
