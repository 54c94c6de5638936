"""Ids for calls that share one."""

from __future__ import annotations

import pytest

from wirelint.history.id_demands import Anthropic, Demand, KimiK2, Limited, Mistral
from wirelint.history.ids import restore
from wirelint.history.pairing import next_id

OPENAI = "call_9QfXb2LmZt7RkVw3Nc8HsYpD"
CASES: dict[str, tuple[str, str, str, Demand | None, str]] = {
    # the shared id, the function's name, the model, what the target demands, the next id
    "vendor's": (OPENAI, "dig", "gpt-5", None, f"{OPENAI}_2"),
    "vendor's, for kimi": (OPENAI, "dig", "kimi-k2", KimiK2(), f"{OPENAI}_2"),
    "the third": (f"{OPENAI}_2", "dig", "gpt-5", None, f"{OPENAI}_3"),
    "a name": ("dig", "dig", "acme-1", None, "dig_2"),
    "a name, for kimi": ("dig", "dig", "kimi-k2", KimiK2(), "functions.dig:1"),
    "counted": ("dig_4", "dig", "acme-1", None, "dig_5"),
    "a bare number": ("7", "dig", "acme-1", None, "8"),
    "random, and a digit at its end": ("0usa7hl5", "dig", "acme-1", None, "0usa7hl5_2"),
    "kimi's": ("functions.dig:4", "dig", "kimi-k2", KimiK2(), "functions.dig:5"),
    "kimi's, of another function": ("functions.dig:4", "cut", "kimi-k2", KimiK2(), "functions.cut:5"),
    "kimi's, at another vendor": ("functions.dig:4", "dig", "acme-1", None, "functions.dig:5"),
    "kimi's, at claude": ("functions.dig:4", "dig", "claude-5", Anthropic(), "functions_dig_5"),
    "kimi's short form": ("dig:4", "dig", "kimi-k2", KimiK2(), "functions.dig:5"),
    "kimi k3's": ("dig:4", "dig", "kimi-k3", None, "dig:5"),
    "one that is taken": ("t_1", "dig", "acme-1", None, "t_4"),
    "empty": ("", "dig", "acme-1", None, "call_dig_1"),
    "claude's": ("toolu_01Hk3TnBv5QxWz8LrMc2PdYf", "dig", "claude-5", Anthropic(), "toolu_01Hk3TnBv5QxWz8LrMc2PdYf_2"),
}


@pytest.mark.parametrize(("id_", "name", "model", "demand", "wanted"), CASES.values(), ids=CASES.keys())
def test_next_id(id_: str, name: str, model: str, demand: Demand | None, wanted: str) -> None:
    taken = {id_, "t_2", "t_3"}
    new = next_id(id_, name, model, demand, taken)
    assert new == wanted
    assert new == next_id(id_, name, model, demand, taken)
    assert restore(new, name) is None or demand is not None


@pytest.mark.parametrize("id_", ["a1B2c3D4e", "365174485", "turn10000"])
def test_mistrals_nine_stay_nine(id_: str) -> None:
    taken = {id_}
    for _ in range(20):
        new = next_id(id_, "dig", "mistral-large", Mistral(), taken)
        assert Mistral().fault(new, "dig") is None
        assert new not in taken
        taken.add(new)


def test_a_long_id_stays_within_the_limit() -> None:
    taken = {"x" * 64}
    new = next_id("x" * 64, "dig", "gpt-5", Limited(64), taken)
    assert len(new) <= 64
    assert new not in taken
