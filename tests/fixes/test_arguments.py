"""Fixes of arguments: equal results for every API, whole and streamed, at every cut. Cases: `argument_shapes.toml`."""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import as_record, in_pieces, some
from tests.fixes.argument_streams import APIS, anthropic, block, cuts, message, openai, piece, streamed, whole
from tests.fixes.drive import SAFE, UNSAFE, Result, run
from tests.selection import in_batches, rotated
from tests.tables import rows, tables
from wirelint.fix import MOST_HELD, FixPolicy
from wirelint.model import ToolCall

TABLES = tables(__file__)

CODES = ("AR401", "AR402", "AR403")
MILK, RICE = '{"name":"milk"}', '{"name":"rice"}'
SHAPES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("argument_shapes.toml").read_text(encoding="utf-8")
)
EACH = in_batches("shape", SHAPES.values(), ids=SHAPES)


def _calls(result: Result) -> list[ToolCall]:
    return [call for choice in some(result.after.reply).choices for call in choice.calls]


def _arguments(result: Result) -> list[Any]:
    return [call.arguments.mapping for call in _calls(result)]


def _is_untouched(result: Result, record: Mapping[str, Any]) -> bool:
    return result.repairs == () and result.delivered == as_record(record, 1).response_body


def _expect(record: dict[str, Any], shape: Mapping[str, Any]) -> None:
    result = run(record, [shape["rule"]])
    assert result.faults == ()
    if "safety" not in shape:
        assert _is_untouched(result, record)
        return
    assert [repair.safety for repair in result.repairs] == [shape["safety"]]
    assert [(call.name, call.arguments.text) for call in _calls(result)] == [("shelf", text) for text in shape["left"]]
    assert result.left == ()


@EACH
def test_arguments_of_a_whole_body_are_fixed(shape: Mapping[str, Any]) -> None:
    _expect(whole(shape["came"]), shape)


@EACH
def test_arguments_of_a_stream_are_fixed_at_every_cut(shape: Mapping[str, Any]) -> None:
    for api, pieces in itertools.product(rotated(APIS, shape["came"]), cuts(shape["came"])):
        _expect(streamed(api, *pieces), shape)


@EACH
def test_a_string_as_input_of_anthropic_is_fixed(shape: Mapping[str, Any]) -> None:
    """A whole body with text where the API has an object."""
    record = message(shape["came"])
    result = run(record, [shape["rule"]])
    if not result.findings or result.findings[0].fix is None:
        assert _is_untouched(result, record)
        return
    wanted = [json.loads(text) or {} for text in shape["left"]]  # an input is an object
    assert [json.loads(call.arguments.text) for call in _calls(result)] == wanted
    assert result.left == ()


# The end of a reply: finish reasons of both APIs, whether arguments are fixed.
ENDS = {
    "done": ("tool_calls", "tool_use", True),
    "stopped": ("stop", "end_turn", True),
    "cut by length": ("length", "max_tokens", False),
    "filtered": ("content_filter", "refusal", False),
}


@pytest.mark.parametrize(("openai_reason", "anthropic_reason", "fixed"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("text", ["{'name': 'milk'}", '{"name":"milk","row":"2"}'])
def test_arguments_that_may_be_cut_stay(text: str, openai_reason: str, anthropic_reason: str, fixed: bool) -> None:
    for record in (
        whole(text, finish=openai_reason),
        streamed("openai.chat", *text, finish=openai_reason),
        streamed("anthropic.messages", *text, finish=anthropic_reason),
        message({"name": "milk", "row": "2"}, stop=anthropic_reason),
    ):
        result = run(record, ["AR402", "AR403"])
        assert len(result.repairs) == len(result.findings) == fixed
        assert _is_untouched(result, record) is not fixed


@pytest.mark.parametrize("api", APIS)
def test_each_fix_continues_with_the_result_of_the_one_before(api: str) -> None:
    for pieces in cuts('{}{"name": 7, "row": "2"}'):
        result = run(streamed(api, *pieces), CODES)
        assert [repair.code for repair in result.repairs] == ["AR401", "AR403"]
        assert _arguments(result) == [{"name": "7", "row": 2}]


FRAGMENTS = [
    MILK, RICE, "{}", "null", '""', '{"name": 7}', '{"name":"a","row":"5"}', "{'name': 'x'}", '{"name":"m",}', ',"row":3}',
    "}", ",", " ", "\n", '{"name":"x', '{"name":"p","fresh":True}', "[", "]", '"', "\\", "x", "1", "true",
]  # fmt: skip


@given(
    st.lists(st.lists(st.sampled_from(FRAGMENTS), max_size=4).map("".join), min_size=1, max_size=3),
    st.sampled_from(CODES),
    st.sampled_from([SAFE, UNSAFE]),
    st.sampled_from(["tool_calls", "length"]),
    st.integers(1, 12),
)
def test_what_a_rule_claims_is_done_streamed_as_whole(
    texts: list[str], rule: str, permit: FixPolicy, reason: str, step: int
) -> None:
    documents = []
    for index, text in enumerate(texts):
        documents.append(piece("", index, first=True))
        documents += [piece(one, index) for one in in_pieces(text, step)]
    came = [run(record, [rule], permit) for record in (whole(*texts, finish=reason), openai(*documents, finish=reason))]
    for result in came:
        promised = [finding.fix.safety for finding in result.findings if finding.fix is not None]
        assert [repair.safety for repair in result.repairs] == [one for one in promised if permit.allows(rule, one)]
        assert not [one for one in result.left if one.fix is not None and permit.allows(rule, one.fix.safety)]
        assert result.changed == bool(result.repairs)
    one, other = ([call.arguments.text for call in _calls(result)] for result in came)
    assert one == other


def test_the_record_of_a_fix() -> None:
    (repair,) = run(streamed("openai.chat", "{}", RICE), ["AR401"], UNSAFE).repairs
    assert (repair.code, repair.name, repair.side) == ("AR401", "concatenated-json", "response")
    assert repair.title == f"shelf: kept one value: {RICE}"
    assert (repair.pointer, repair.event) == ("/choices/0/message/tool_calls/0", 3)
    assert repair.patch == f"- {{}}{RICE}\n+ {RICE}"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("pieces", [["{}", MILK], ["{'name'", ":'x'}"], ['{"name":', "5}"]], ids=str)
def test_a_stream_that_dies_leaves_unchanged(api: str, pieces: Sequence[str]) -> None:
    record = openai(piece("", first=True), *map(piece, pieces), finish=None, done=False)
    if api == "anthropic.messages":
        record = anthropic(*block({}, *pieces)[:-1], stop=None)
    result = run(record, CODES)
    assert _is_untouched(result, record)
    assert [finding for finding in result.findings if finding.fix is not None] == []


# --- several calls ----------------------------------------------------------------------------------------------------


@rows(TABLES["turns"])
def test_parallel_calls_are_fixed_each(code: str, parts: list[str], expected: list[list[str]]) -> None:
    """Calls in turns, one after the other, and in blocks."""
    wanted = [text for texts in expected for text in texts]
    for step in (1, 3, 1000):
        heads = [piece("", index, first=True) for index in range(len(parts))]
        pieces = [[piece(text, index) for text in in_pieces(part, step)] for index, part in enumerate(parts)]
        in_turns = [one for row in itertools.zip_longest(*pieces) for one in row if one is not None]
        in_order = [one for head, rest in zip(heads, pieces, strict=True) for one in (head, *rest)]
        blocks = [one for n, part in enumerate(parts) for one in block({}, *in_pieces(part, step), index=n)]
        for record in (openai(*heads, *in_turns), openai(*in_order), anthropic(*blocks)):
            result = run(record, [code])
            calls = _calls(result)
            texts = [call.arguments.text for call in calls]
            ordered = len(wanted) == len(parts) or record["response"] != openai(*heads, *in_turns)["response"]
            assert texts == wanted if ordered else sorted(texts) == sorted(wanted)
            assert len({call.id for call in calls}) == len(calls)
            assert result.changed == (parts != wanted)
            assert not [finding for finding in result.left if finding.fix is not None]


@pytest.mark.parametrize("api", APIS)
def test_a_client_that_wants_one_call_gets_one(api: str) -> None:
    record = openai(piece(MILK + RICE, first=True)) if api == "openai.chat" else anthropic(*block({}, MILK + RICE))
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    more = {"parallel_tool_calls": False} if api == "openai.chat" else {"tool_choice": choice}
    record["request"]["body"] = json.dumps(json.loads(record["request"]["body"]) | more)
    result = run(record, ["AR401"])
    assert not result.changed
    assert [finding.fix for finding in result.findings] == [None]


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("code", "before", "after"), [
    ("AR401", "{}", MILK),
    ("AR402", "{'name':'", "'}"),
    ("AR403", '{"row":"1","name":"', '"}'),
])  # fmt: skip
def test_too_long_arguments_leave_unchanged(api: str, code: str, before: str, after: str) -> None:
    filling = ["x" * 1000] * (MOST_HELD // 1000 + 2)
    text = '{"name":"' if code == "AR401" else ""
    record = streamed(api, before, text, *filling, after if code != "AR401" else '"}')
    result = run(record, [code])
    assert _is_untouched(result, record)
    assert any("too long" in note for note in result.notes)
    short = run(streamed(api, before, text, *filling[:3], after if code != "AR401" else '"}'), [code])
    assert short.changed
    assert short.notes == ()


def test_long_arguments_are_fixed_at_their_end() -> None:
    """Text that has left is not held: a fault at the end of a megabyte costs what follows it."""
    body = ["x" * 1000] * 1000
    result = run(streamed("openai.chat", '{"name":"', *body, '",', "}"), ["AR402"])
    assert len(result.repairs) == 1
    assert _calls(result)[0].arguments.text == '{"name":"' + "".join(body) + '"}'


# --- arguments in the start of a call ---------------------------------------------------------------------------------

ITEM = {"name": "milk"}
MORE = {"name": "milk", "row": 2}
TEXT = '{"name": "milk"}'


# input of the start, deltas, safety of the fix, arguments for a client that joins both (None: unchanged)
@rows(TABLES["starts"])
@pytest.mark.parametrize("api", APIS)
def test_input_in_the_start_and_in_deltas_is_said_once(
    start: Any, deltas: str, safety: str | None, expected: Any, api: str
) -> None:
    """Anthropic's start, or an object in the first chunk of OpenAI and text in the later ones."""
    if api == "openai.chat" and not (start and deltas):
        return
    for pieces in cuts(deltas) if deltas else [[]]:
        chunks = openai(piece(start, first=True), *map(piece, pieces))
        record = chunks if api == "openai.chat" else anthropic(*block(start, *pieces))
        result = run(record, ["AR401"])
        if safety is None:
            assert _is_untouched(result, record)
            continue
        assert [repair.safety for repair in result.repairs] == [safety]
        assert _arguments(result) == [expected]
        assert result.left == ()
        if api != "openai.chat":
            events = [line for line in result.delivered.decode().split("\n") if line.startswith("data:")]
            (begun,) = (json.loads(line[5:]) for line in events if '"content_block_start"' in line)
            assert begun["content_block"] == {"type": "tool_use", "id": "toolu_00000000", "name": "shelf", "input": {}}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_object_becomes_text(stream: bool) -> None:
    given: list[Any] = [ITEM, TEXT, MORE]
    pieces = [piece(one, index, first=True) for index, one in enumerate(given)]
    result = run(openai(*pieces) if stream else whole(*given), ["AR402"], SAFE)
    assert [repair.safety for repair in result.repairs] == ["safe", "safe"]
    assert b'"arguments":"{\\"name\\":\\"milk\\"}"' in result.delivered
    assert _arguments(result) == [ITEM, ITEM, MORE]
    assert result.left == ()
    assert not run(openai(piece(ITEM, first=True), finish="length"), ["AR402"], UNSAFE).changed


@pytest.mark.parametrize("given", ['{"name":"milk"}', "{'name': 'milk'}"])
def test_a_string_becomes_an_object(given: str) -> None:
    for record in (message(given), anthropic(*block(given))):
        result = run(record, ["AR402"])
        assert len(result.repairs) == 1
        assert _arguments(result) == [ITEM]
        assert b'"input":{"name":"milk"}' in result.delivered
