"""Bounds of the caches: entries, characters, and the longest text."""

from __future__ import annotations

import pytest

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
