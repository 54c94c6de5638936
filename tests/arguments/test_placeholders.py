"""Signs of placeholders in a value, with the name of its parameter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.selection import in_batches
from wirelint.arguments.placeholders import purpose, refused, sign

TABLES: dict[str, Any] = json.loads(Path(__file__).with_name("placeholders.json").read_text(encoding="utf-8"))

PURPOSES: dict[str, Any] = TABLES["purposes"]


@pytest.mark.parametrize("what", PURPOSES)
def test_purposes(what: str) -> None:
    assert {purpose(name) for name in PURPOSES[what].split()} == {what}


PLACEHOLDERS: dict[str, list[str]] = TABLES["placeholders"]
REAL: dict[str, list[str]] = TABLES["real"]


@in_batches(("name", "value"), [(name, value) for name, values in PLACEHOLDERS.items() for value in values])
def test_placeholders(name: str, value: str) -> None:
    assert sign(value, name) is not None


@in_batches(("name", "value"), [(name, value) for name, values in REAL.items() for value in values])
def test_real(name: str, value: str) -> None:
    assert sign(value, name) is None


def test_long_values_are_no_placeholders() -> None:
    assert sign("/path/to/" * 100, "path") is None
    assert sign("<" + "path " * 59 + "?", "path") is None


def test_a_name_that_many_values_have_does_not_tell_which_of_them_is_refused() -> None:
    arguments: dict[str, Any] = {"filter": [{"field": f"name{n}", "value": f"value {n}"} for n in range(400)]}
    found = list(refused(arguments, "Invalid value: 'value 7' is not allowed"))
    assert [one.where for one in found] == ["filter[7].value"]
