from __future__ import annotations

import pytest

from wirelint.claims.actions import BASE, GERUND, PARTICIPLE, PAST, stem, topics_of, words_of

FORMS = {
    "search": ("searched", "searched", "searching"),
    "write": ("wrote", "written", "writing"),
    "query": ("queried", "queried", "querying"),
    "run": ("ran", "run", "running"),
    "cancel": ("cancelled", "canceled", "cancelling"),
    "look up": ("looked up", "looked up", "looking up"),
    "commit": ("committed", "committed", "committing"),
}


@pytest.mark.parametrize(("base", "forms"), FORMS.items(), ids=FORMS)
def test_forms_carry_the_kinds_of_their_verb(base: str, forms: tuple[str, str, str]) -> None:
    past, participle, gerund = forms
    assert BASE[base] <= PAST[past]
    assert BASE[base] <= PARTICIPLE[participle]
    assert BASE[base] <= GERUND[gerund]


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("the knowledge base", {"knowledge"}),
        ("all repositories", {"file"}),
        ("die Wissensdatenbank", {"knowledge"}),
        ("发送邮件", {"mail"}),
        ("a cat", set()),
    ],
)
def test_topics(text: str, topics: set[str]) -> None:
    assert topics_of(text) == topics


def test_words_have_their_singular() -> None:
    assert {"entries", "entry", "files", "file"} <= words_of("Entries and files")


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
