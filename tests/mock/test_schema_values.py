"""Arguments made for a schema are valid for it, and differ where the schema leaves room."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from tests.selection import in_batches
from tests.tables import tables
from wirelint.mock.plan import Topic, make_arguments

SCHEMAS: dict[str, dict[str, Any]] = tables(__file__)["schemas"]
TOPIC = Topic.of("Please compare the tides in Lisbon and Porto")


@pytest.mark.parametrize("salt", [0, 1, 5])
@in_batches("name", [name for name in SCHEMAS if name != "recursive and required"])
def test_arguments_are_valid(name: str, salt: int) -> None:
    schema = SCHEMAS[name]
    arguments = make_arguments(schema, TOPIC, salt=salt)
    assert jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(arguments), arguments


def test_recursion_ends() -> None:
    assert make_arguments(SCHEMAS["recursive and required"], TOPIC)["child"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("city", "Porto"), ("query", "compare tides Lisbon Porto"), ("file_path", "README.md"), ("unit", "celsius")],
)
def test_strings_fit_their_names(name: str, value: str) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    assert make_arguments(schema, TOPIC) == {name: value}
    assert make_arguments(schema, TOPIC, salt=1) != {name: value}
