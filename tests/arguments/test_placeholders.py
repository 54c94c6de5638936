"""Signs of placeholders in a value, with the name of its parameter."""

from __future__ import annotations

from typing import Any

from tests.selection import in_batches
from tests.tables import pairs, tables
from wirelint.arguments.placeholders import purpose, refused, sign

TABLES = tables(__file__)


@pairs(TABLES["purposes"])
def test_purposes(what: str, names: str) -> None:
    assert {purpose(name) for name in names.split()} == {what}


@in_batches(
    ("name", "value", "is_placeholder"),
    [
        (name, value, kind == "placeholders")
        for kind in ("placeholders", "real")
        for name, values in TABLES[kind].items()
        for value in values
    ],
)
def test_placeholders(name: str, value: str, is_placeholder: bool) -> None:
    assert (sign(value, name) is not None) is is_placeholder


def test_long_values_are_no_placeholders() -> None:
    assert sign("/path/to/" * 100, "path") is None
    assert sign("<" + "path " * 59 + "?", "path") is None


def test_a_name_that_many_values_have_does_not_tell_which_of_them_is_refused() -> None:
    arguments: dict[str, Any] = {"filter": [{"field": f"name{n}", "value": f"value {n}"} for n in range(400)]}
    found = list(refused(arguments, "Invalid value: 'value 7' is not allowed"))
    assert [leaf.where for leaf, _ in found] == ["filter[7].value"]
