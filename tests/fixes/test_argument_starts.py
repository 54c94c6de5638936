"""Arguments that come with the start of a call, as deltas, or as both."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.build import as_record
from tests.fixes.argument_streams import anthropic, block, cuts, message, openai, piece, whole
from tests.fixes.drive import SAFE, UNSAFE, Result, run

MILK = {"name": "milk"}
MORE = {"name": "milk", "row": 2}
TEXT = '{"name": "milk"}'

# (input of the start, deltas) → (how safe the repair is, what a client that joins them gets); None: as it came.
SHAPES: dict[str, tuple[Any, str, str | None, Any]] = {
    "start only": (MILK, "", None, MILK),
    "delta only": ({}, TEXT, None, MILK),
    "null start, delta": (None, TEXT, None, MILK),
    "start, same delta": (MILK, TEXT, "safe", MILK),
    "start, continuation": (MILK, ',"row":2}', "unsafe", MORE),
    "empty start, delta": ({}, TEXT, None, MILK),
    "start, same delta twice": (MILK, TEXT * 2, "safe", MILK),
    "start, the same in another order": (MORE, '{"row":2,"name":"milk"}', "safe", MORE),
    "start, empty delta": (MILK, "{}", "safe", MILK),
    "start, blank deltas": (MILK, "{}\n", "safe", MILK),
    "empty start, delta twice": ({}, TEXT * 2, "safe", MILK),
    "empty start, empty object, delta": ({}, "{}" + TEXT, "safe", MILK),
    "deltas say more": (MILK, '{"name":"milk","row":2}', "safe", MORE),
    "deltas say something else": (MILK, '{"name":"rice"}', "unsafe", {"name": "rice"}),
    "deltas say something else that does not fit": (MILK, '{"row":2}', None, None),
    "deltas say two things": (MILK, '{"name":"rice"}{"name":"tea"}', None, None),
    "continuation that does not fit": (MILK, ',"row":"x"}', None, None),
    "continuation that says a key again": (MILK, ',"name":"x"}', None, None),
    "continuation that is cut": (MILK, ',"row":', None, None),
    "deltas are cut": (MILK, '{"name":"mi', None, None),
}


def _arguments(result: Result) -> list[Any]:
    assert result.after.reply is not None
    return [call.arguments.mapping for choice in result.after.reply.choices for call in choice.calls]


@pytest.mark.parametrize(("start", "deltas", "safety", "expected"), SHAPES.values(), ids=SHAPES)
def test_anthropic(start: Any, deltas: str, safety: str | None, expected: Any) -> None:
    for pieces in cuts(deltas) if deltas else [[]]:
        record = anthropic(*block(start, *pieces))
        result = run(record, ["AR401"])
        assert [repair.safety for repair in result.repairs] == ([safety] if safety else [])
        if safety is None:
            assert result.delivered == as_record(record, 1).response_body
            continue
        assert _arguments(result) == [expected]
        assert result.left == ()
        events = [line for line in result.delivered.decode().split("\n") if line.startswith("data:")]
        (begun,) = (json.loads(line[5:]) for line in events if '"content_block_start"' in line)
        # The vendor's own shape: nothing in the start, all of it in deltas; any client reads that.
        assert begun["content_block"] == {"type": "tool_use", "id": "toolu_0", "name": "shelf", "input": {}}


@pytest.mark.parametrize(("start", "deltas", "safety", "expected"), SHAPES.values(), ids=SHAPES)
def test_openai_object_first(start: Any, deltas: str, safety: str | None, expected: Any) -> None:
    """Servers that put an object into the first chunk and text into the later ones."""
    if not start or not deltas:
        return
    for pieces in cuts(deltas):
        record = openai(piece(start, first=True), *map(piece, pieces))
        result = run(record, ["AR401"])
        assert [repair.safety for repair in result.repairs] == ([safety] if safety else [])
        if safety is None:
            assert result.delivered == as_record(record, 1).response_body
        else:
            assert _arguments(result) == [expected]
            assert result.left == ()


# first chunk, later chunks → (how safe the repair is, arguments)
OPENAI: dict[str, tuple[str | None, list[str], str | None, Any]] = {
    "all in the first": (TEXT, [], None, MILK),
    "all in later ones": ("", [TEXT[:5], TEXT[5:]], None, MILK),
    "null, then all": (None, [TEXT], None, MILK),
    "the same twice": (TEXT, [TEXT], "safe", MILK),
    "the same twice, in pieces": (TEXT, [TEXT[:5], TEXT[5:]], "safe", MILK),
    "continuation": (TEXT, [',"row"', ":2}"], "unsafe", MORE),
    "nothing, then all": ("{}", [TEXT], "safe", MILK),
    "nothing, then all in pieces": ("{}", ["", TEXT[:1], TEXT[1:]], "safe", MILK),
    "another value": (TEXT, ['{"name":"rice"}'], "unsafe", MILK),
}


@pytest.mark.parametrize(("first", "later", "safety", "expected"), OPENAI.values(), ids=OPENAI)
def test_openai(first: str | None, later: list[str], safety: str | None, expected: Any) -> None:
    record = openai(piece(first, first=True), *map(piece, later))
    result = run(record, ["AR401"])
    assert [repair.safety for repair in result.repairs] == ([safety] if safety else [])
    assert _arguments(result)[0] == expected
    assert result.left == ()
    if safety is None:
        assert result.delivered == as_record(record, 1).response_body


PARALLEL = list(itertools.product(["delta only", "start, same delta", "start only", "start, continuation"], repeat=2))


@pytest.mark.parametrize(("one", "other"), PARALLEL)
def test_parallel_calls(one: str, other: str) -> None:
    events = []
    for index, name in enumerate((one, other, "delta only")):
        start, deltas, _, _ = SHAPES[name]
        events += block(start, *deltas, index=index)
    result = run(anthropic(*events), ["AR401"])
    assert _arguments(result) == [SHAPES[one][3], SHAPES[other][3], MILK]
    assert len(result.repairs) == sum(SHAPES[name][2] is not None for name in (one, other))
    assert result.before.reply is not None
    assert result.after.reply is not None
    before, after = (reply.choices[0].calls for reply in (result.before.reply, result.after.reply))
    assert [call.id for call in before] == [call.id for call in after] == ["toolu_0", "toolu_1", "toolu_2"]
    assert result.after.reply.choices[0].finish_reason == "tool_use"


def test_unsafe_needs_leave() -> None:
    record = anthropic(*block(MILK, ',"row":2}'))
    assert run(record, ["AR401"], UNSAFE).changed
    assert not run(record, ["AR401"], SAFE).changed


# --- JSON where the API has text, and the other way round ----------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_object_becomes_text(stream: bool) -> None:
    record = openai(piece(MILK, first=True)) if stream else whole(MILK)
    result = run(record, ["AR402"], SAFE)
    assert [repair.safety for repair in result.repairs] == ["safe"]
    assert b'"arguments":"{\\"name\\":\\"milk\\"}"' in result.delivered
    assert _arguments(result) == [MILK]
    assert result.left == ()


def test_an_object_becomes_text_for_each_call() -> None:
    pieces = [piece(MILK, 0, first=True), piece(TEXT, 1, first=True), piece(MORE, 2, first=True)]
    result = run(openai(*pieces), ["AR402"], SAFE)
    assert len(result.repairs) == 2
    assert _arguments(result) == [MILK, MILK, MORE]
    assert result.left == ()


def test_an_object_may_be_cut_by_length() -> None:
    record = openai(piece(MILK, first=True), finish="length")
    assert not run(record, ["AR402"], UNSAFE).changed


@pytest.mark.parametrize("given", ['{"name":"milk"}', "{'name': 'milk'}"])
def test_a_string_becomes_an_object(given: str) -> None:
    for record in (message(given), anthropic(*block(given))):
        result = run(record, ["AR402"])
        assert len(result.repairs) == 1
        assert _arguments(result) == [MILK]
        assert b'"input":{"name":"milk"}' in result.delivered


def test_types_of_an_input() -> None:
    given = {"name": "milk", "row": "2"}
    for record in (message(given), anthropic(*block(given))):
        result = run(record, ["AR403"])
        assert len(result.repairs) == 1
        assert _arguments(result) == [MORE]
        assert b'"row":2' in result.delivered


def test_types_of_one_of_several_inputs() -> None:
    result = run(message(MILK, {"name": "milk", "row": "2"}, MILK, {"name": 5}), ["AR403"])
    assert _arguments(result) == [MILK, MORE, MILK, {"name": "5"}]
    assert [repair.pointer for repair in result.repairs] == ["/content/1", "/content/3"]
