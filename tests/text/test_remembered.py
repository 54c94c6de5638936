"""What is remembered is what would be found out; it is found out once for a text, and what is kept is bounded."""

from __future__ import annotations

import pytest

from wirelint.claims.evidence import outcome
from wirelint.model import ToolResult
from wirelint.text import remembered as module
from wirelint.text.remembered import remembered


class Counting:
    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def __call__(self, text: str, times: int) -> str:
        self.asked.append((text, times))
        return text * times


@pytest.fixture
def counting() -> Counting:
    return Counting()


def test_an_answer_is_found_out_once_for_equal_texts(counting: Counting) -> None:
    ask = remembered(counting.__call__)
    assert [ask("".join(["a", "b"]), 1) for _ in range(3)] == ["ab"] * 3
    assert counting.asked == [("ab", 1)]


def test_what_else_is_asked_tells_answers_apart(counting: Counting) -> None:
    ask = remembered(counting.__call__)
    assert [ask("x", 2), ask("x", 3), ask("x", 1), ask("x", 2)] == ["xx", "xxx", "x", "xx"]
    assert counting.asked == [("x", 2), ("x", 3), ("x", 1)]


def test_the_text_that_nobody_asked_about_for_longest_goes_first(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_ENTRIES", 2)
    ask = remembered(counting.__call__)
    for text in ("a", "b", "a", "c", "a", "b"):
        assert ask(text, 1) == text
    assert [text for text, _ in counting.asked] == ["a", "b", "c", "b"]


def test_texts_are_kept_by_their_length_too(counting: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_CHARACTERS", 10)
    ask = remembered(counting.__call__)
    for text in ("aaaa", "bbbb", "cccc", "bbbb", "aaaa"):
        assert ask(text, 1) == text
    assert [text for text, _ in counting.asked] == ["aaaa", "bbbb", "cccc", "aaaa"]


def test_a_very_long_text_is_not_kept(counting: Counting) -> None:
    ask = remembered(counting.__call__)
    text = "a" * (module._LONGEST + 1)
    assert ask(text, 1) == ask(text, 1) == text
    assert len(counting.asked) == 2


def test_a_result_that_is_marked_an_error_is_another_one_than_its_text_alone() -> None:
    results = [ToolResult("c", "3 results", "/p", is_error=marked) for marked in (True, False, None, True)]
    assert [outcome(result).error for result in results] == [True, False, False, True]
    assert outcome(results[1]).counts == {3}
