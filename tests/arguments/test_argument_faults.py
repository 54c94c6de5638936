"""The verdict on an argument text: healthy, concatenated, or flawed, and never two of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import schema, some
from wirelint.arguments.argument_faults import concatenated, flaw
from wirelint.model import Arguments, Tool, ToolCall

NEEDS = Tool("t", "/tools/0", schema=schema(("a",), a="integer"))
FREE = Tool("t", "/tools/0", schema=schema())


def call(text: str, start: Any = None, form: Any = "function") -> ToolCall:
    given_ = None if start is None else Arguments.of(start)
    return ToolCall("id", "t", Arguments(text), "/x", form, given_, text)


# text → (shape, number of values, offset of the second)
CONCATENATED = {
    '{"a":1}{"a":1}': ("equal", 2, 7),
    '{"a":1} {"a": 1}': ("equal", 2, 7),
    '{"a":1,"b":2}{"b":2,"a":1}': ("equal", 2, 13),
    '{}{"a":1}': ("equal", 2, 2),
    '{"a":1}{}': ("equal", 2, 7),
    "{}{}": ("equal", 2, 2),
    'null{"a":1}': ("equal", 2, 4),
    '""{"a":1}': ("equal", 2, 2),
    '{"a":1}{"a":2}': ("differ", 2, 7),
    '{"a":1}{"a":1.0}': ("differ", 2, 7),
    '{"a":1}{"a":true}': ("differ", 2, 7),
    '{"a":1}{"a":1}{"a":2}': ("differ", 3, 7),
    '{"a":1},{"a":2}': ("continues", 1, 7),
    '{"a":1},"b":2}': ("continues", 1, 7),
    '{"a":1} , {"a":2}': ("continues", 1, 7),
    '{"a":1}{"a"': ("cut", 1, 7),
    '{"a":1}{"a":2} x': ("cut", 2, 7),
    "1 2": ("differ", 2, 1),
    '"{}{\\"a\\":1}"': ("equal", 2, 0),
}


@pytest.mark.parametrize(("text", "expected"), CONCATENATED.items(), ids=CONCATENATED)
def test_concatenated(text: str, expected: tuple[str, int, int]) -> None:
    found = some(concatenated(call(text)))
    assert (found.shape, len(found.values), found.offset) == expected
    assert flaw(call(text), NEEDS) is None
    assert concatenated(call(text, form="custom")) is None
    assert concatenated(call(text, form="legacy")) is not None


def test_the_non_empty_value_is_kept() -> None:
    for text in ('{}{"a":1}', '{"a":1}{}', 'null{"a":1}', '{"a":1}{"a":1}'):
        found = some(concatenated(call(text)))
        assert found.kept == {"a": 1}
    nothing = some(concatenated(call("{}{}")))
    assert nothing.kept == {}


# (input of the start, deltas) → shape
STARTS = {
    "same": ({"a": 1}, '{"a":1}', "equal"),
    "empty deltas": ({"a": 1}, "{}", "equal"),
    "another": ({"a": 1}, '{"a":2}', "differ"),
    "more": ({"a": 1}, '{"a":1,"b":2}', "differ"),
    "continued": ({"a": 1}, ',"b":2}', "continues"),
    "cut": ({"a": 1}, '{"a"', "cut"),
    "blank deltas": ({"a": 1}, " \n", None),
    "no deltas": ({"a": 1}, "", None),
}


@pytest.mark.parametrize(("start", "deltas", "shape"), STARTS.values(), ids=STARTS)
def test_start_and_deltas(start: Any, deltas: str, shape: str | None) -> None:
    found = concatenated(call(deltas, start))
    assert (found and found.shape) == shape
    assert found is None or found.start


# text → (part of the words, layer, repaired)
FLAWED: dict[str, tuple[str, str, Any]] = {
    "": ("empty, and a must be given", "model", None),
    " \n": ("empty", "model", None),
    "null": ("null", "model", None),
    "[]": ("array", "model", None),
    "7": ("number", "model", None),
    "true": ("boolean", "model", None),
    '"a"': ("a string", "model", None),
    '"{\\"a\\":1}"': ("encoded twice", "gateway", {"a": 1}),
    '"{\\"a\\":"': ("damaged", "gateway", None),
    "{": ("cut off", "gateway", None),
    '{"a': ("cut off", "gateway", None),
    '{"a":': ("cut off", "gateway", None),
    '{"a":1': ("cut off", "gateway", None),
    '{"a":1,': ("cut off", "gateway", None),
    '{"a":tru': ("cut off", "gateway", None),
    '{"a":-': ("cut off", "gateway", None),
    '{"a":"\\': ("cut off", "gateway", None),
    '{"a":"\\u00': ("cut off", "gateway", None),
    '{"a":["x"': ("cut off", "gateway", None),
    "{'a': 1}": ("single quotes", "model", {"a": 1}),
    "{\"a\": 'x'}": ("single quotes", "model", {"a": "x"}),
    '{"a": None}': ("Python's None", "model", {"a": None}),
    '{"a": True}': ("Python's True", "model", {"a": True}),
    '{"a": 1,}': ("trailing comma", "model", {"a": 1}),
    '{"a": [1,],}': ("trailing comma", "model", {"a": [1]}),
    '{"a": "x\ny"}': ("line feed", "model", {"a": "x\ny"}),
    '{"a": "x\ty"}': ("tab", "model", {"a": "x\ty"}),
    '{"a": "x\x01y"}': ("control character", "model", {"a": "x\x01y"}),
    '{"a": "\\d"}': ("escape", "model", {"a": "\\d"}),
    '{"a": NaN}': ("NaN", "model", None),
    '{"a": "x "y" z"}': ("amiss", "model", None),
    "{a: 1}": ("no JSON", "model", {"a": 1}),
    '{\\"a\\":1}': ("without the quotes", "gateway", {"a": 1}),
    "\"{'a': 1}\"": ("damaged", "gateway", {"a": 1}),
    "a=1": ("no JSON", "model", None),
    "<a>1</a>": ("no JSON", "model", None),
    '```json\n{"a": 1}\n```': ("code fence", "model", {"a": 1}),
    '{"a":1}}': ("followed by '}'", "gateway", {"a": 1}),
    '{"a":1},': ("followed by ','", "gateway", {"a": 1}),
    '{"a":1}</invoke>': ("between control tokens (</invoke>)", "gateway", {"a": 1}),
    '{"a":1} as you asked': ("followed by", "gateway", None),
    "[" * 100_000: ("nested too deep", "model", None),
}


@pytest.mark.parametrize(("text", "expected"), FLAWED.items(), ids=lambda value: repr(value)[:40])
def test_flawed(text: str, expected: tuple[str, str, Any]) -> None:
    words, layer, repaired = expected
    found = some(flaw(call(text), NEEDS))
    assert words in found.words
    assert (found.layer, found.repaired) == (layer, repaired)
    assert found.cut == ("cut off" in words)
    assert concatenated(call(text)) is None
    assert flaw(call(text, form="custom"), NEEDS) is None


HEALTHY = ["{}", '{"a":1}', ' {"a": [{}, "}{"]}\n', '{"a": "\\u00e9\\n"}', '{"a": "\\ud83c"}', '{"a": 1e400}']


@pytest.mark.parametrize("text", HEALTHY)
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
