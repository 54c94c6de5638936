"""JSON Pointers, by the examples of RFC 6901 and beyond."""

from __future__ import annotations

import pytest

from wirelint.text.pointers import at, tokens

BODY = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, "deep": [{"x": [1, {"y": None}]}]}


@pytest.mark.parametrize(
    ("pointer", "wanted"),
    [
        ("", BODY), ("/foo", ["bar", "baz"]), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1), ("/m~0n", 8), ("/foo/2", None),
        ("/foo/-", None), ("/foo/bar", None), ("/foo/0/x", None), ("/deep/0/x/1", {"y": None}), ("/none", None),
    ],
)  # fmt: skip
def test_at(pointer: str, wanted: object) -> None:
    assert at(BODY, pointer) == wanted


def test_no_pointer() -> None:
    with pytest.raises(ValueError, match="JSON Pointer"):
        tokens("foo")
