"""Schemas of tools: compilation, unknown schemas, violations, coercion."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import schema, some
from tests.selection import in_batches
from tests.tables import rows, tables
from wirelint.arguments import schemas
from wirelint.arguments.schemas import match
from wirelint.dialects.declared import required
from wirelint.model import Tool

TABLES = tables(__file__)

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def tool(declared: Any) -> Tool:
    return Tool("t", "/tools/0", schema=declared)


def of(x: Any, **more: Any) -> dict[str, Any]:
    """A schema of one parameter `x`."""
    return {"type": "object", "properties": {"x": x}, **more}


# (schema, value of x, whether it is valid)


@rows(TABLES["lenient"])
def test_lenient_schemas(declared: dict[str, Any], value: Any, valid: bool) -> None:
    assert schemas.accepts(tool(of(declared)), {"x": value}) is valid


def nested(depth: int) -> dict[str, Any]:
    return of(nested(depth - 1)) if depth else {}


UNKNOWN: dict[str, Any] = {
    **TABLES["unknown"],
    "too deep": [nested(100)],
    "too large": [of({"enum": [f"value {n}" for n in range(20_000)]})],
}


@rows(UNKNOWN)
def test_unknown_schemas(declared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert schemas.validator(tool(declared)) is None
    assert schemas.accepts(tool(declared), {"x": 1}) is None


def test_no_tool_and_no_schema() -> None:
    assert schemas.validator(None) is None
    assert schemas.accepts(None, {}) is None
    assert schemas.validator(tool(None)) is None
    assert schemas.accepts(tool(None), {"x": 1}) is True
    assert schemas.accepts(tool(None), [1]) is None


# (schema, arguments, violations as `place keyword: words`)


@rows(TABLES["broken"])
def test_violations(declared: dict[str, Any], value: Any, expected: list[str]) -> None:
    compiled = some(schemas.validator(tool(declared)))
    assert [f"{found.where} {found.keyword}: {found.words}" for found in compiled.violations(value)] == expected


def test_evidence_is_short_and_bounded() -> None:
    compiled = some(schemas.validator(tool({"additionalProperties": {"type": "integer"}})))
    found = compiled.violations({f"k{n}": "x" * 5_000 for n in range(500)})
    assert len(found) <= 50
    assert all(len(violation.words) < 120 for violation in found)


# (schema of x, x, its converted value; None without one)


@rows(TABLES["coerced"])
def test_coerced(declared: Any, value: Any, expected: Any) -> None:
    compiled = some(schemas.validator(tool(of(declared))))
    given_ = {"x": value, "y": [1]}
    made = compiled.coerced(given_)
    assert made == (None if expected is None else {"x": expected, "y": [1]})
    assert given_ == {"x": value, "y": [1]}, "the arguments themselves must not change"
    if isinstance(made, dict):
        assert type(made["x"]) is type(expected)


def test_null_can_be_spelled() -> None:
    compiled = some(schemas.validator(tool(of({"type": ["integer", "null"]}))))
    assert compiled.coerced({"x": "null"}) == {"x": None}


def test_a_missing_parameter_is_not_coerced_away() -> None:
    compiled = some(schemas.validator(tool(schema(x="integer", y="integer"))))
    assert compiled.coerced({"x": "1"}) is None


@rows(TABLES["required"])
def test_required(declared: Any, expected: list[str]) -> None:
    assert required(tool(declared)) == tuple(expected)


WORDS = st.sampled_from([
    "type", "properties", "required", "items", "anyOf", "enum", "const", "$ref", "$defs", "$schema", "nullable", "minimum",
    "exclusiveMinimum", "additionalProperties", "pattern", "format", "description", "x", "not", "multipleOf", "minLength",
])  # fmt: skip
VALUES = (
    st.sampled_from(["object", "string", "INTEGER", "#", "#/$defs/x", "a(", "x", DRAFT_7]) | st.none() | st.booleans()
)
ANYTHING = st.recursive(
    VALUES | st.integers(-2, 2) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=15,
)


@settings(deadline=None)
@given(st.dictionaries(WORDS, ANYTHING, max_size=5), st.dictionaries(st.sampled_from("xyz"), ANYTHING, max_size=3))
def test_any_schema_is_handled(declared: dict[str, Any], value: dict[str, Any]) -> None:
    compiled = schemas.validator(tool(declared))
    if compiled is not None:
        assert bool(compiled.violations(value)) <= (not compiled.accepts(value))
        compiled.coerced(value)


TOOLS = ("bash", "Read", "get_weather", "list-files", "mcp__hub__find_issue", "calendar", "tools_index")

# the tool → names that mean it
CERTAIN: dict[str, Any] = TABLES["certain"]
LONG = ["x" * 10_000, "bash" * 1_000, "a" * 500, "mcp__" * 100, "<" * 500]


@pytest.mark.parametrize("name", CERTAIN)
def test_certain(name: str) -> None:
    for written in CERTAIN[name]:
        found = match(written, TOOLS)
        assert found is not None, written
        assert (found.name, found.certain) == (name, True), written
        assert found.why, written


@rows(TABLES["likely"])
def test_likely(written: str, meant: str) -> None:
    found = some(match(written, TOOLS))
    assert (found.name, found.certain) == (meant, False)


@in_batches("written", [*TABLES["none"], *LONG], ids=lambda written: repr(written[:30]))
def test_none(written: str) -> None:
    assert match(written, TOOLS) is None


@rows(TABLES["ambiguous"])
def test_ambiguous(written: str, declared: list[str]) -> None:
    assert match(written, declared) is None


def test_exact_wins_over_folded() -> None:
    found = some(match("functions.read", ("Read", "read")))
    assert found.name == "read"


@settings(deadline=None)
@given(st.text(max_size=40), st.lists(st.text(max_size=12), max_size=5))
def test_only_declared_names_are_returned(written: str, declared: list[str]) -> None:
    found = match(written, declared)
    assert found is None or found.name in declared
