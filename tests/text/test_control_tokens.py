from __future__ import annotations

from wirelint.text.control_tokens import EDGES, ENDS, OPENS, SURE, find, frame


def test_every_token_of_the_table_is_found_and_counts() -> None:
    for token in SURE:
        text = f"Two.\n{token}\nThree."
        framing = frame(text, find(text))
        assert framing is not None, token
        assert framing.tokens[0].token == token


def test_a_token_is_sure_or_it_is_not() -> None:
    assert not SURE & EDGES
    assert not OPENS & ENDS
