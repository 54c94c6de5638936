from __future__ import annotations

import pytest

from wirelint.claims.announcements import (
    accepted_offer,
    asked,
    asks_about_past,
    asks_for_text,
    orders_beside_text,
    plays,
)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Please delete it and send a note", {"delete", "send"}),
        ("I deleted it", set()),
        ("How do I delete it?", set()),
        ("Lösche es", {"delete"}),
        ("Apague isso", {"delete", "control"}),
        ("Invia il file", {"send"}),
        ("予定を削除して", {"delete"}),
    ],
)
def test_asked(text: str, kinds: set[str]) -> None:
    assert asked(text) == kinds


def test_what_a_user_is_after() -> None:
    assert asks_about_past("What did you change?")
    assert not asks_about_past("Change it.")
    assert asks_for_text("Draft a letter to Ann")
    assert not asks_for_text("Send it to Ann")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Let's role-play", True),
        ("Play a grumpy waiter", True),
        ("Tell me about a time when you failed", True),
        ("Spiel einen Kellner", True),
        ("请扮演一名侦探", True),
        ("Play the next song", False),
        ("Tell me about the file you changed", False),
    ],
)
def test_plays(text: str, expected: bool) -> None:
    assert plays(text) is expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("sonnet on rust", True, id="a genre alone"),
        pytest.param("polite reply to the landlord", True, id="a reply of a sort"),
        pytest.param("translate: borré el archivo", True, id="a translation"),
        pytest.param("any new message from Bo?", False, id="a question after messages"),
        pytest.param("delete the story.md file", False, id="an order that names a text"),
    ],
)
def test_composes_by_genre(words: str, expected: bool) -> None:
    assert asks_for_text(words) is expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("Draft a note and send it to Ann", {"send"}, id="beside the text"),
        pytest.param("Draft a note: book the room and send it", set(), id="in the text"),
    ],
)
def test_besides(words: str, expected: set[str]) -> None:
    assert orders_beside_text(words) == expected


def test_assented() -> None:
    assert "book" in accepted_offer("Yes please", "It is broken. Shall I refund it?")
    assert not accepted_offer("No", "Shall I refund it?")
