from __future__ import annotations

import pytest

from wirelint.knowledge.asks import asked, composes, looks_back, plays


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
    assert looks_back("What did you change?")
    assert not looks_back("Change it.")
    assert composes("Draft a letter to Ann")
    assert not composes("Send it to Ann")


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
