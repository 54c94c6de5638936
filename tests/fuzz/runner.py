"""Runs the contracts over many bodies, on several processes. Body number N of a seed is the same in every run."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.fuzz import bodies
from tests.fuzz.contracts import Violation, violations
from tests.fuzz.mutate import events_of, mutated
from tests.fuzz.talks import differences, talk
from wirelint.capture.format import encode
from wirelint.capture.record import Record

_PART = 50
"""Bodies that a process takes at a time."""
_LONGEST = 30.0
"""Seconds of processor time after which the work on one body is broken off."""
_TALKS = 0.2
"""The share of bodies that are the same reply, whole and streamed."""
_SHRINKING = 20.0
"""Seconds that are spent on making an example smaller."""


@dataclass
class Found:
    """A broken contract: by which body, what was done to it, and what was seen."""

    contract: str
    number: int
    done: str
    seen: str
    records: tuple[Record, ...]


@dataclass
class Outcome:
    bodies: int = 0
    sizes: int = 0
    cpu: float = 0.0
    slowest: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    found: list[Found] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.bodies += other.bodies
        self.sizes += other.sizes
        self.cpu += other.cpu
        self.slowest = max(self.slowest, other.slowest)
        self.kinds += other.kinds
        self.found += other.found


class _TooLong(BaseException):
    """Not an Exception, so that nothing that fails open takes it."""


_records: list[Record] = []


def _prepare(shared: bool) -> None:
    global _records
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears of Ctrl-C
    _records = bodies.load(shared=shared)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _TooLong


def run(
    seed: int, numbers: range, seconds: float, jobs: int, progress: Callable[[Outcome], None], *, shared: bool = True
) -> Outcome:
    """Tries the bodies of these numbers, until `seconds` are over."""
    outcome, until = Outcome(), time.monotonic() + seconds
    parts = ((seed, start, min(start + _PART, numbers.stop)) for start in numbers[::_PART])
    if jobs == 1:
        _records[:] = _records or bodies.load(shared=shared)
        results: Iterator[Outcome] = map(_part, parts)
        _collect(outcome, results, until, progress)
        return outcome
    with multiprocessing.get_context("spawn").Pool(jobs, _prepare, (shared,)) as pool:
        _collect(outcome, pool.imap_unordered(_part, _until(parts, until)), until, progress)
    return outcome


def _until(parts: Iterator[tuple[int, int, int]], until: float) -> Iterator[tuple[int, int, int]]:
    for part in parts:
        if time.monotonic() >= until:
            return
        yield part


def _collect(outcome: Outcome, results: Iterator[Outcome], until: float, progress: Callable[[Outcome], None]) -> None:
    for part in results:
        outcome.add(part)
        progress(outcome)
        if time.monotonic() >= until:
            return


def _part(part: tuple[int, int, int]) -> Outcome:
    seed, first, last = part
    outcome = Outcome()
    for number in range(first, last):
        _try(seed, number, outcome)
    return outcome


def _try(seed: int, number: int, outcome: Outcome) -> None:
    chance = random.Random(f"{seed}/{number}")
    start = time.process_time()
    records: tuple[Record, ...]
    if chance.random() < _TALKS:
        pair = talk(chance)
        done, records = "a reply, whole and streamed", pair
        found = _seen(lambda: differences(*pair))
    else:
        record, done = mutated(chance.choice(_records), chance)
        records = (record,)
        cuts = f"{seed}/{number}/cuts"
        found = _seen(lambda: violations(record, random.Random(cuts)))
        outcome.kinds.update(done.split(", "))
        if found:
            records = (_shrunk(record, found[0][0], cuts),)
    took = time.process_time() - start
    outcome.bodies += 1
    outcome.cpu += took
    outcome.slowest = max(outcome.slowest, took if not found else 0.0)
    outcome.sizes += sum(len(one.response_body or b"") for one in records)
    outcome.found += [Found(contract, number, done, seen, tuple(records)) for contract, seen in found]


def _seen(look: Callable[[], Iterator[Violation]]) -> list[Violation]:
    """The violations, with whatever is raised as one more."""
    before = signal.signal(signal.SIGPROF, _stop)  # processor time: other processes do not count
    signal.setitimer(signal.ITIMER_PROF, _LONGEST)
    found: list[Violation] = []
    try:
        for one in look():
            found.append(one)  # noqa: PERF402 - those before it are kept when the next raises
    except _TooLong:
        found.append(("bounded time", f"broken off after {_LONGEST:.0f} s"))
    except Exception as error:
        found.append(("nothing raises", f"{type(error).__name__}: {error}"))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return found


def _shrunk(record: Record, contract: str, cuts: str) -> Record:
    """The record with as little of its bodies as still breaks the contract."""
    until = time.monotonic() + _SHRINKING

    def breaks(one: Record) -> bool:
        return any(name == contract for name, _ in _seen(lambda: violations(one, random.Random(cuts))))

    for field_ in ("response_body", "request_body"):
        size = 8
        while size >= 1 and time.monotonic() < until:
            pieces = events_of(getattr(record, field_) or b"")
            size = min(size, len(pieces) // 2)
            place = 0
            while size and place < len(pieces) and time.monotonic() < until:
                left = pieces[:place] + pieces[place + size :]
                smaller = dataclasses.replace(record, **{field_: b"".join(left)}, chunks=())  # type: ignore[arg-type]
                if breaks(smaller):
                    record, pieces = smaller, left
                else:
                    place += size
            size //= 2
    return record


def write(found: Found, seed: int, folder: Path) -> Path:
    """A capture that breaks a contract, for `wirelint show` and `wirelint fix`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{found.contract.replace(' ', '-')}-{seed}-{found.number}.jsonl"
    notes = {"contract": found.contract, "seed": seed, "number": found.number, "done": found.done, "seen": found.seen}
    path.write_bytes(b"".join(encode(record, {"fuzz": json.loads(json.dumps(notes))}) for record in found.records))
    return path
