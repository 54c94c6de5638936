"""Content codings: undone for every cut of the bytes, and refused when they are not what they say."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cuts import split
from tests.selection import in_batches
from wirelint.wire.content_coding import CodingError, Decoder, TooLargeError, decode

TEXT = ('data: {"choices":[{"delta":{"content":"Grüße"}}]}\n\n' * 4).encode()


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def flushed(data: bytes, wbits: int) -> bytes:
    """As servers that stream do it: every event flushed by itself."""
    packer = zlib.compressobj(wbits=wbits)
    parts = [packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) for part in data.splitlines(keepends=True)]
    return b"".join(parts) + packer.flush()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def zstd_streamed(data: bytes) -> bytes:
    packer = zstandard.ZstdCompressor().compressobj()
    return packer.compress(data) + packer.flush()


HALF, SIZE = len(TEXT) // 2, len(TEXT).to_bytes(2, "little")
# (content-encoding, body): each body is TEXT
BODIES: dict[str, tuple[str | None, bytes]] = {
    "none": (None, TEXT),
    "empty header": ("", TEXT),
    "identity": ("identity", TEXT),
    "gzip": ("gzip", gzip.compress(TEXT)),
    "x-gzip": ("x-gzip", gzip.compress(TEXT)),
    "upper case": ("GZIP", gzip.compress(TEXT)),
    "gzip, flushed": ("gzip", flushed(TEXT, 31)),
    "gzip, two members": ("gzip", gzip.compress(TEXT[:HALF]) + gzip.compress(TEXT[HALF:])),
    "gzip, an empty member": ("gzip", gzip.compress(b"") + gzip.compress(TEXT)),
    "gzip, padded with zeros": ("gzip", gzip.compress(TEXT) + bytes(20)),
    "gzip, followed by something else": ("gzip", gzip.compress(TEXT) + b"trailer"),
    "deflate": ("deflate", zlib.compress(TEXT)),
    "deflate, raw": ("deflate", raw_deflate(TEXT)),
    "deflate, raw and flushed": ("deflate", flushed(TEXT, -15)),
    "deflate, raw and stored": ("deflate", b"\x01" + SIZE + bytes(byte ^ 0xFF for byte in SIZE) + TEXT),
    "br": ("br", brotli.compress(TEXT)),
    "zstd": ("zstd", zstd(TEXT)),
    "zstd, streamed": ("zstd", zstd_streamed(TEXT)),
    "zstd, two frames": ("zstd", zstd(TEXT[:HALF]) + zstd(TEXT[HALF:])),
    "zstd, a skippable frame": ("zstd", b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zstd(TEXT)),
    "a chain": ("gzip, br", brotli.compress(gzip.compress(TEXT))),
    "a chain of three": ("deflate,identity , zstd", zstd(zlib.compress(TEXT))),
    "twice the same": ("gzip, gzip", gzip.compress(gzip.compress(TEXT))),
}  # fmt: skip


@in_batches(("coding", "body"), BODIES.values(), ids=BODIES)
def test_a_coding_is_undone_at_every_cut(coding: str | None, body: bytes) -> None:
    assert decode(coding, body) == TEXT
    for place in range(1, len(body)):
        undone = Decoder(coding)
        assert b"".join(undone.feed(piece) for piece in split(body, [place])) == TEXT, place
    undone = Decoder(coding)
    assert b"".join(undone.feed(piece) for byte in body for piece in (bytes([byte]), b"")) == TEXT


WHOLE = {name: found for name, found in BODIES.items() if found[0] not in (None, "", "identity") and ", " not in name}


@pytest.mark.parametrize("name", WHOLE)
def test_a_coding_is_finished_at_its_end_and_not_before(name: str) -> None:
    coding, body = WHOLE[name]
    undone = Decoder(coding)
    states = [undone.finished]  # nothing has come that would have an end
    for piece in (body[:-1], body[-1:]):
        undone.feed(piece)
        states.append(undone.finished)
    assert states == [True, False, True]


# (content-encoding, body) that must be refused
REFUSED: dict[str, tuple[str, bytes]] = {
    "gzip, plain text": ("gzip", TEXT),
    "gzip, JSON": ("gzip", b'{"choices": []}'),
    "gzip, raw deflate": ("gzip", raw_deflate(TEXT)),
    "gzip, damaged": ("gzip", gzip.compress(TEXT)[:10] + b"\xff" * 40),
    "gzip, wrong checksum": ("gzip", gzip.compress(TEXT)[:-8] + bytes(8)),
    "deflate, plain text": ("deflate", b"\xff" * 40),
    "br, JSON": ("br", b'{"choices": [' + b"\xff" * 40),
    "zstd, plain text": ("zstd", TEXT),
    "zstd, gzip": ("zstd", gzip.compress(TEXT)),
    "chain in the wrong order": ("br, gzip", brotli.compress(gzip.compress(TEXT))),
}


@pytest.mark.parametrize(("coding", "body"), REFUSED.values(), ids=REFUSED)
def test_a_body_that_breaks_its_coding_is_refused(coding: str, body: bytes) -> None:
    with pytest.raises(CodingError):
        decode(coding, body)
    for pieces in (split(body, [1]), split(body, range(1, len(body)))):
        undone = Decoder(coding)
        with pytest.raises(CodingError):
            b"".join(map(undone.feed, pieces))


@pytest.mark.parametrize("coding", ["compress", "gzip, aes128gcm", "dcb"])
def test_unknown_codings_are_named(coding: str) -> None:
    with pytest.raises(CodingError, match=coding.split(", ")[-1]):
        Decoder(coding)


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw": ("deflate", raw_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstd),
}


@pytest.mark.parametrize(("coding", "pack"), PACKERS.values(), ids=PACKERS)
@settings(deadline=None)
@given(plain=st.binary(max_size=200), data=st.data())
def test_any_bytes_come_back(coding: str, pack: Callable[[bytes], bytes], plain: bytes, data: st.DataObject) -> None:
    body = pack(plain)
    places = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    undone = Decoder(coding)
    assert b"".join(undone.feed(piece) for piece in split(body, places)) == plain


def brotli_bomb() -> bytes:
    packer = brotli.Compressor(quality=5)
    parts = [packer.process(bytes(1 << 20)) + packer.flush() for _ in range(64)]
    return b"".join([*parts, bytes(packer.finish())])


# Each makes 64 MiB of zeros, and more than a thousand times its own size.
BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip": lambda: gzip.compress(bytes(64 << 20)),
    "deflate": lambda: zlib.compress(bytes(64 << 20)),
    "br": brotli_bomb,
    "zstd": lambda: zstd(bytes(64 << 20)),
    "gzip, gzip": lambda: gzip.compress(gzip.compress(bytes(64 << 20))),
    "zstd, identity": lambda: zstd(bytes(64 << 20)),
}


@pytest.mark.parametrize("coding", BOMBS)
def test_a_bomb_is_stopped_before_it_fills_the_memory(coding: str) -> None:
    bomb = BOMBS[coding]()
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError):
            Decoder(coding, 1 << 20).feed(bomb)
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()
