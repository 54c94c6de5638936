"""Digests are those of hashlib, and no thread that waits for the interpreter's lock gets it while one is made."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Callable

import pytest

from wirelint.text.remembered import sha256, short


@pytest.mark.parametrize("size", [0, 1, 2046, 2047, 2048, 4094, 4095, 100_000])
def test_digests_are_those_of_the_whole_text(size: int) -> None:
    text = ("a\u00e9\u8a9e" * size)[:size]
    assert short(text) == hashlib.blake2b(text.encode(), digest_size=12).digest()
    assert sha256(text) == hashlib.sha256(text.encode()).digest()


def test_lone_surrogates_are_taken_as_they_are() -> None:
    assert sha256("\ud800") == hashlib.sha256(b"\xed\xa0\x80").digest()


@pytest.mark.parametrize("digest", [short, sha256], ids=["short", "sha256"])
def test_no_other_thread_goes_first(digest: Callable[[str], bytes]) -> None:
    """One that waits for the interpreter's lock gets it when a digest is done: only what pauses hands it over."""
    text, begun, order = "ferry " * 200_000, threading.Event(), list[str]()

    def write() -> None:
        begun.wait()
        order.append("the other")

    other = threading.Thread(target=write)
    other.start()
    before = sys.getswitchinterval()
    sys.setswitchinterval(60.0)  # from here on a thread runs until it waits for something
    try:
        begun.set()
        digest(text)
        order.append("the digest")
    finally:
        sys.setswitchinterval(before)
    other.join(30)
    assert order == ["the digest", "the other"]
