"""The bytes of a reply cut in many ways: what is found must not depend on it."""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.build import as_record, some
from tests.selection import is_complete, sampled
from wirelint.capture.replay import begin, respond
from wirelint.engine import Engine
from wirelint.model import Exchange
from wirelint.rewrite.stream import arrived
from wirelint.rule import Finding, Rule

SMALL = 400
"""Bytes up to which the complete run tries every two-way cut; longer bodies are cut at random places."""


def cuts(size: int, seed: int = 7) -> Iterator[tuple[int, ...]]:
    """Places to cut a body of `size` bytes at: byte by byte, in two, and at random sets of places; `--all`: many more."""
    chance = random.Random(f"{seed}-{size}")
    places = range(1, size) if size <= SMALL else sorted(chance.sample(range(1, size), 24))
    yield from ((place,) for place in sampled(places, 3))
    yield tuple(range(1, size))
    for _ in range(12 if is_complete() else 3):
        count = chance.randint(2, max(2, min(size - 1, 40))) if size > 2 else 0
        yield tuple(sorted(chance.sample(range(1, size), min(count, max(size - 1, 0)))))


def events_of(body: bytes) -> list[bytes]:
    """The events of a stream, each with the blank line that ends it."""
    return [event + b"\n\n" for event in body.split(b"\n\n") if event]


def between_events(body: bytes) -> list[int]:
    """The places between the events of a stream."""
    return list(itertools.accumulate(map(len, events_of(body)[:-1])))


def split(body: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *places, len(body)]
    return [body[start:end] for start, end in itertools.pairwise(edges)]


def read_cut(record: Mapping[str, Any], places: Sequence[int], number: int = 1) -> Exchange:
    """The exchange of a record whose reply arrives in pieces: those of its chunks, cut further at sorted places."""
    made = as_record(record, number)
    session = some(begin(made))
    respond(session, made)
    start = 0
    for data, at in arrived(made.response_body or b"", made.chunks):
        inside = places[bisect.bisect_right(places, start) : bisect.bisect_left(places, start + len(data))]
        for piece in split(data, [place - start for place in inside]):
            session.feed(piece, at)
        start += len(data)
    return session.finish(made.end, error=made.error).but(timing=made.timing)


def findings_at_cuts(
    records: Sequence[Mapping[str, Any]], rule: Rule, *, only_bytes: bool = False
) -> Iterator[tuple[str, list[Finding]]]:
    """Findings of one rule on the last record, for many cuts of its reply; `only_bytes`: for the cut byte by byte."""
    *before, last = records
    body = as_record(last).response_body or b""
    if last["request"].get("body") is None:
        return
    passed = [read_cut(record, (), number) for number, record in enumerate(before, 1)]
    for places in [tuple(range(1, len(body)))] if only_bytes else cuts(len(body)):
        engine = Engine([rule])
        for exchange in passed:
            engine.check(exchange)
        found = engine.check(read_cut(last, places, len(records)))
        yield f"cut at {places[:6]}{'…' if len(places) > 6 else ''}", list(found)
