from __future__ import annotations

import pytest

from wirelint.claims.actions import stem

SAME = (
    "dim dims dimmed dimming",
    "approve approves approved approving",
    "submit submitted",
    "spin spins spun spinning",
    "reply replies replied",
    "schedule scheduled scheduling",
    "cancel cancelled canceled cancelling",
    "press pressed presses",
    "refill refilled",
    "freeze froze frozen",
    "write wrote written",
)
APART = (("post", "pour"), ("set", "seat"), ("lock", "look"), ("need", "ne"), ("bed", "b"))


@pytest.mark.parametrize("forms", SAME)
def test_forms_of_a_verb_share_their_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(("one", "other"), APART)
def test_other_words_do_not(one: str, other: str) -> None:
    assert stem(one) != stem(other)
