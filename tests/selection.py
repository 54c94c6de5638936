"""The one switch of the test suite: the default run, or everything (`pytest --all`, which is `make test-all`).

The default run keeps every contract and every case. It leaves out repetitions: a case runs in its home API and in one
other, a body is cut at a few places, a property is tried on 25 examples. `--all` runs a case in every API, cuts a body at
every place, and tries 300 examples. A test that has no short form carries the marker `complete` and runs with `--all` only.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_everything = False


def select_everything(everything: bool) -> None:
    """Set the switch. `tests/conftest.py` does so before any test module is imported."""
    global _everything
    _everything = everything


def is_complete() -> bool:
    """Return True if this run is the complete one."""
    return _everything


def rotated(options: Sequence[T], id_: str, count: int = 1) -> Sequence[T]:
    """`count` of the options, chosen by the id of a case, so that many cases together meet every option. `--all`: all."""
    if _everything or len(options) <= count:
        return options
    start = zlib.crc32(id_.encode()) % len(options)
    return [options[(start + step) % len(options)] for step in range(count)]


def sampled(options: Sequence[T], count: int = 8) -> Sequence[T]:
    """`count` of the options: random ones, the same in every run, in their order. `--all`: all."""
    if _everything or len(options) <= count:
        return options
    return [options[place] for place in sorted(random.Random(len(options)).sample(range(len(options)), count))]
