"""The verdict on an argument text: healthy, concatenated, or flawed, and never two of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import schema, some
from tests.selection import in_batches
from tests.tables import pairs, rows, tables
from wirelint.arguments.argument_faults import concatenated, flaw
from wirelint.model import Arguments, Tool, ToolCall

TABLES = tables(__file__)

NEEDS = Tool("t", "/tools/0", schema=schema(("a",), a="integer"))
FREE = Tool("t", "/tools/0", schema=schema())


def call(text: str, start: Any = None, form: Any = "function") -> ToolCall:
    given_ = None if start is None else Arguments.of(start)
    return ToolCall("id", "t", Arguments(text), "/x", form, given_, text)


# text → (shape, number of values, offset of the second)


@pairs(TABLES["concatenated"])
def test_concatenated(text: str, expected: list[Any]) -> None:
    found = some(concatenated(call(text)))
    assert [found.shape, len(found.values), found.offset] == expected
    assert flaw(call(text), NEEDS) is None
    assert concatenated(call(text, form="custom")) is None
    assert concatenated(call(text, form="legacy")) is not None


# (input of the start, deltas) → shape


@rows(TABLES["starts"])
def test_start_and_deltas(start: Any, deltas: str, shape: str | None) -> None:
    found = concatenated(call(deltas, start))
    assert (found and found.shape) == shape
    assert found is None or found.start


# text → (part of the words, layer, repaired)


@pairs(TABLES["flawed"])
def test_flawed(text: str, expected: tuple[str, str, Any]) -> None:
    words, layer, repaired = expected
    found = some(flaw(call(text), NEEDS))
    assert words in found.words
    assert (found.layer, found.repaired) == (layer, repaired)
    assert found.cut == ("cut off" in words)
    assert concatenated(call(text)) is None
    assert flaw(call(text, form="custom"), NEEDS) is None


def test_text_that_is_nested_too_deep() -> None:
    assert "nested too deep" in some(flaw(call("[" * 100_000), NEEDS)).words


HEALTHY = ["{}", '{"a":1}', ' {"a": [{}, "}{"]}\n', '{"a": "\\u00e9\\n"}', '{"a": "\\ud83c"}', '{"a": 1e400}']


@in_batches("text", HEALTHY)
def test_healthy(text: str) -> None:
    assert concatenated(call(text)) is None
    assert flaw(call(text), NEEDS) is None


@pytest.mark.parametrize("tool", [FREE, None, Tool("t", "/tools/0")], ids=["nothing required", "no tool", "no schema"])
def test_empty_arguments_without_required_parameters(tool: Tool | None) -> None:
    assert flaw(call(""), tool) is None
    found = some(flaw(call("null"), tool))
    assert found.harmless


@settings(deadline=None)
@given(st.text(alphabet="{}[]\",:a1 \n\\'tn", max_size=24))
def test_one_verdict_at_most(text: str) -> None:
    made = call(text)
    verdicts = (made.arguments.mapping is not None, concatenated(made) is not None, flaw(made, NEEDS) is not None)
    assert sum(verdicts) == 1
