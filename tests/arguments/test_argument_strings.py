from __future__ import annotations

import json

import pytest

from wirelint.arguments.argument_members import is_data, strings, writes_file


def test_strings_come_in_order_with_their_names() -> None:
    value = json.loads('{"a": "1", "b": {"c": ["2", 3, {"d": "4"}]}, "e": null}')
    assert list(strings(value)) == [
        ("a", "a"), ("a", "1"), ("b", "b"), ("b.c", "c"), ("b.c", "2"), ("b.c.d", "d"), ("b.c.d", "4"), ("e", "e"),
    ]  # fmt: skip


def test_depth_is_no_danger() -> None:
    value = json.loads("[" * 900 + '"deep"' + "]" * 900)
    assert list(strings(value)) == [("", "deep")]


@pytest.mark.parametrize(("path", "expected"), [("code", True), ("a.Content", True), ("city", False), ("", False)])
def test_is_data(path: str, expected: bool) -> None:
    assert is_data(path) is expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [({"path": "a", "x": "b"}, True), ({"File": "a"}, True), ({"x": "b"}, False), ("path", False)],
)
def test_writes_file(arguments: object, expected: bool) -> None:
    assert writes_file(arguments) is expected  # type: ignore[arg-type]
