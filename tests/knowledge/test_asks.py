from __future__ import annotations

import pytest

from wirelint.knowledge.asks import asked, composes, looks_back


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Please delete it and send a note", {"delete", "send"}),
        ("I deleted it", set()),
        ("How do I delete it?", set()),
        ("Lösche es", {"delete"}),
    ],
)
def test_asked(text: str, kinds: set[str]) -> None:
    assert asked(text) == kinds


def test_what_a_user_is_after() -> None:
    assert looks_back("What did you change?")
    assert not looks_back("Change it.")
    assert composes("Draft a letter to Ann")
    assert not composes("Send it to Ann")
