"""A short run of the fuzzer, and that it sees what it looks for."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from tests.build import Talk, as_record, some, sse
from tests.fuzz import adversarial, contracts, runner
from tests.fuzz.bodies import load
from tests.fuzz.contracts import violations
from tests.fuzz.mutate import mutated
from tests.fuzz.shapes import Shape
from tests.selection import rotated, sampled
from tests.tables import tables
from wirelint.capture.readers import read
from wirelint.capture.record import Record
from wirelint.wire.sse import EventStream

RECORD = as_record(Talk(text="All is well, and the ferry leaves at nine.").record("openai.chat", True))


@pytest.fixture(autouse=True, scope="module")
def _few_bodies() -> Iterator[None]:
    runner._records[:] = [one for one in load(shared=False) if len(one.response_body or b"") < 3000]
    yield
    runner._records.clear()


def test_a_short_run_finds_nothing() -> None:
    outcome = runner.run(seed=1, numbers=range(100), seconds=30.0, jobs=1, progress=lambda _: None, shared=False)
    assert outcome.bodies >= 50
    assert [(found.contract, found.number, found.seen) for found in outcome.found] == []


def test_a_body_of_a_seed_is_the_same_in_every_run() -> None:
    made = [[mutated(RECORD, random.Random(f"7/{number}")) for number in range(40)] for _ in range(2)]
    first, second = ([(record.request_body, record.response_body, done) for record, done in one] for one in made)
    assert first == second
    assert len(set(first)) > 20


def test_a_reader_that_depends_on_the_cut_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sound = EventStream.feed
    monkeypatch.setattr(EventStream, "feed", lambda self, data: sound(self, data[:-1] if len(data) > 9 else data))
    outcome = runner.Outcome()
    runner._records[:] = [RECORD]
    number = next(n for n in range(99) if random.Random(f"3/{n}").random() >= runner._TALKS)
    runner._try(3, number, outcome)
    assert outcome.found
    path = runner.write(outcome.found[0], 3, tmp_path)
    (again,) = read([path])
    assert isinstance(again, Record)


def test_what_raises_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: object) -> None:
        raise KeyError("boom")

    monkeypatch.setattr(contracts, "_judge", raising)
    assert runner._seen(lambda: violations(RECORD, random.Random(1))) == [("nothing raises", "KeyError: 'boom'")]


def test_a_second_repair_that_changes_something_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    sound, runs = contracts._rewrite, iter(range(99))

    def longer(record: Record, pieces: list[bytes]) -> object:
        got, rewriting, held = sound(record, pieces)
        return (got + b": %d\n\n" % next(runs) if record is not faulty else got), rewriting, held

    faulty = as_record({**Talk(text="x").record("openai.chat", True), "response": {"body": sse({"choices": []})}})
    monkeypatch.setattr(contracts, "_rewrite", longer)
    assert [name for name, _ in violations(RECORD, random.Random(1))] == [
        "unchanged is as it came",
        "any cut repairs the same",
    ]


class _Steps(adversarial.Cost):
    """Function calls, Python's and C's, in place of seconds: equal in every run, whatever else the machine does."""

    def call(self, function: Callable[[], object], *, beside: bool = False) -> None:
        steps = 0

        def count(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal steps
            steps += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            function()
        finally:
            sys.setprofile(None)
        self.total += steps
        self.longest = max(self.longest, steps)


_ONE_CALL = 400_000
"""Steps of one call, some 40 ms."""
_ONE_DELTA = 600
"""Steps for each delta of a character, on the average."""
DEAR = {name: head + unit * count for name, (head, unit, count) in tables(__file__)["dear"].items()}


@pytest.mark.parametrize("name", sampled(list(DEAR), 4))
def test_no_call_for_100_kb_takes_long(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = DEAR[name]
    for way in rotated(["judge", "repair"], unit):
        case = adversarial.Case(Shape("", unit), way, "openai.chat", "text", 0)
        case.measure(20_000)  # lazy patterns are compiled now; results for the text itself are not cached
        with monkeypatch.context() as patch:
            patch.setattr(adversarial, "Cost", _Steps)
            assert some(case.measure(100_000)).longest < _ONE_CALL, way


@pytest.mark.parametrize("unit", sampled(["**", "\n> ", '\\"', "<|tools_suffix|>", " Action:`"], 1))
def test_deltas_of_a_character_take_few_steps(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = adversarial.Case(Shape("", unit), "repair", "openai.chat", "text", 1)
    case.measure(1_000)
    monkeypatch.setattr(adversarial, "Cost", _Steps)
    size = 1_500
    cost = some(case.measure(size))
    assert cost.total < _ONE_DELTA * size
    assert cost.longest < _ONE_CALL / 8
