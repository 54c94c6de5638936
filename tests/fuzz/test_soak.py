"""A short run of the proxy under load."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.soak import PLAYS, Outcome, soak


@pytest.mark.complete
@pytest.mark.live
def test_a_few_seconds_of_load(tmp_path: Path) -> None:
    outcome = soak(3.0, 1, tmp_path, lambda _: None)
    assert (outcome.failed, outcome.lost, outcome.errors) == ([], [], [])
    assert outcome.is_good
    assert sum(outcome.sent.values()) > len(PLAYS)


@pytest.mark.parametrize(("each", "good"), [(0.0005, True), (0.02, False)], ids=["warming up", "a leak"])
def test_memory_that_grows_is_seen(each: float, good: bool) -> None:
    memory = [(float(second), 100 * second, 100 + 100 * second * each) for second in range(60)]
    assert Outcome(memory=memory).is_good == good


def test_what_went_wrong_is_no_good_run() -> None:
    assert Outcome().is_good
    assert not Outcome(failed=["soak-1 (plain): timed out"]).is_good
    assert not Outcome(lost=["soak-1"]).is_good
    assert not Outcome(errors=["Addon error"]).is_good
