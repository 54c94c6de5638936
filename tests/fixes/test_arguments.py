"""Repairs of argument texts: what comes out, the same for every API, whole and streamed, wherever the text is cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import as_record
from tests.fixes.argument_streams import APIS, cuts, message, openai, piece, streamed, whole
from tests.fixes.drive import SAFE, UNSAFE, Result, run
from wirelint.fix import FixPolicy
from wirelint.model import ToolCall

MILK, RICE = '{"name":"milk"}', '{"name": "rice"}'
FENCE = "```"
Shape = tuple[str, str, str | None, list[str]]

# What came → (rule, how safe its repair is, the argument texts that leave); None: it leaves as it came.
SHAPES: dict[str, Shape] = {
    # several values
    "one value": (MILK, "AR401", None, [MILK]),
    "one value, white space": (f"\n {RICE} \n\n", "AR401", None, [f"\n {RICE} \n\n"]),
    "nothing in it": ("{}", "AR401", None, ["{}"]),
    "nothing in it, white space": (" {\n} ", "AR401", None, [" {\n} "]),
    "nothing at all": ("", "AR401", None, [""]),
    "brackets in a string": ('{"name":"}{}"}', "AR401", None, ['{"name":"}{}"}']),
    "twice": (MILK * 2, "AR401", "safe", [MILK]),
    "three times": (MILK * 3, "AR401", "safe", [MILK]),
    "twice, white space first": (f" \n{MILK}\n{MILK}\n", "AR401", "safe", [f" \n{MILK}"]),
    "twice, spelled otherwise": (
        '{"name":"milk","row":1}{ "row" : 1, "name" : "m\\u0069lk" }',
        "AR401",
        "safe",
        ['{"name":"milk","row":1}'],
    ),
    "nothing, then one": ("{}" + RICE, "AR401", "safe", [RICE]),
    "nothing with blanks, then one": ("{ }\n" + RICE + "\n", "AR401", "safe", [RICE]),
    "nothing twice, then one twice": ("{}{}" + MILK * 2, "AR401", "safe", [MILK]),
    "one, then nothing": (MILK + "{}", "AR401", "safe", [MILK]),
    "nothing twice": ("{}{}", "AR401", "safe", ["{}"]),
    "null, then one": ("null" + MILK, "AR401", "safe", [MILK]),
    "an empty string, then one": ('""' + MILK, "AR401", "safe", [MILK]),
    "an empty array, then one": ("[]" + MILK, "AR401", "safe", [MILK]),
    "null twice": ("nullnull", "AR401", "safe", ["null"]),
    "two in a string": (json.dumps("{}" + MILK), "AR401", "safe", [MILK]),
    "two that differ": (MILK + RICE, "AR401", "unsafe", [MILK, RICE]),
    "two that differ, a line each": (f"{MILK}\n{RICE}\n", "AR401", "unsafe", [MILK, RICE]),
    "three that differ": (
        '{"name":"a"}{"name":"b"}{"name":"c"}',
        "AR401",
        "unsafe",
        ['{"name":"a"}', '{"name":"b"}', '{"name":"c"}'],
    ),
    "two that differ, one again": (MILK + RICE + MILK, "AR401", "unsafe", [MILK, RICE]),
    "nothing, then two that differ": ("{}" + MILK + RICE, "AR401", "unsafe", [MILK, RICE]),
    "the second does not fit": (MILK + '{"row":2}', "AR401", None, [MILK + '{"row":2}']),
    "the second is no object": (MILK + "[1]", "AR401", None, [MILK + "[1]"]),
    "the second is cut off": (MILK + '{"na', "AR401", None, [MILK + '{"na']),
    "more members": (MILK + ',"row":2}', "AR401", "unsafe", ['{"name":"milk","row":2}']),
    "more members, white space": (
        '{"name":"milk" }\n, "row":2 } ',
        "AR401",
        "unsafe",
        ['{"name":"milk" , "row":2 } '],
    ),
    "more members, after nothing": ('{},"name":"milk"}', "AR401", "unsafe", ['{"name":"milk"}']),
    "more members, one of them again": (MILK + ',"name":"x"}', "AR401", None, [MILK + ',"name":"x"}']),
    "more members that do not fit": (MILK + ',"row":"x"}', "AR401", None, [MILK + ',"row":"x"}']),
    "a comma between": (f"{MILK},{RICE}", "AR401", None, [f"{MILK},{RICE}"]),
    "damage is another repair's": ("{'name':'milk'}", "AR401", None, ["{'name':'milk'}"]),
    # no JSON object
    "healthy": ('{"name": "milk", "row": [-1.5e3, {}, [], null]}', "AR402", None, []),
    "a control token after it": (MILK + "<|tool_call_end|>", "AR402", "unsafe", [MILK]),
    "tokens of a family after it": (MILK + "<｜tool▁call▁end｜>\n<｜tool▁calls▁end｜>", "AR402", "unsafe", [MILK]),
    "closing tags after it": (MILK + "</parameter></invoke>\n", "AR402", "unsafe", [MILK]),
    "a control token before it": ("<|tool_call_argument_begin|>" + MILK, "AR402", "unsafe", [MILK]),
    "tags around it": (f"<tool_call>{MILK}</tool_call>", "AR402", "unsafe", [MILK]),
    "a surplus bracket and a token": (MILK + "}<|call|>", "AR402", "unsafe", [MILK]),
    "a token after a cut": ('{"name": "mi<|im_end|>', "AR402", None, ['{"name": "mi<|im_end|>']),
    "a tag of HTML after it": (MILK + "<br>", "AR402", None, [MILK + "<br>"]),
    "single quotes": ("{'name': 'milk', 'row': 2}", "AR402", "unsafe", ['{"name":"milk","row":2}']),
    "single quotes inside": ('{"name": \'mi"lk\'}', "AR402", "unsafe", ['{"name": "mi\\"lk"}']),
    "an apostrophe": ("{'name': 'cook\\'s'}", "AR402", "unsafe", ['{"name":"cook\'s"}']),
    "Python's words": (
        '{"name": "milk", "fresh": True, "tags": [None, False]}',
        "AR402",
        "unsafe",
        ['{"name": "milk", "fresh": true,"tags":[null,false]}'],
    ),
    "a trailing comma": ('{"name": "milk",}', "AR402", "unsafe", ['{"name": "milk"}']),
    "a trailing comma, blanks": ('{"name": "milk" , \n }', "AR402", "unsafe", ['{"name": "milk" }']),
    "trailing commas inside": ('{"name":"a","tags":[1,2,],}', "AR402", "unsafe", ['{"name":"a","tags":[1,2]}']),
    "a raw line feed": ('{"name": "mi\nlk"}', "AR402", "unsafe", ['{"name": "mi\\nlk"}']),
    "raw control characters": ('{"name": "a\tb\\"\r\n"}', "AR402", "unsafe", ['{"name": "a\\tb\\"\\r\\n"}']),
    "a raw line feed at the end of a string": ('{"name": "milk\n"}', "AR402", "unsafe", ['{"name": "milk\\n"}']),
    "an escape that is none": ('{"name": "\\d+"}', "AR402", "unsafe", ['{"name": "\\\\d+"}']),
    "an escape that is none, and one that is": ('{"name": "c:\\dir\\new"}', "AR402", None, []),
    "bare keys": ('{name: "milk", row: 3}', "AR402", "unsafe", ['{"name":"milk","row":3}']),
    "a missing comma": ('{"name":"milk" "row":3}', "AR402", "unsafe", ['{"name":"milk" ,"row":3}']),
    "typographic quotes": ("{\u201cname\u201d: \u201cmilk\u201d}", "AR402", "unsafe", ['{"name":"milk"}']),
    "encoded twice": (json.dumps(MILK), "AR402", "unsafe", [MILK]),
    "encoded twice, damaged": (json.dumps("{'name': 'milk'}"), "AR402", "unsafe", [MILK]),
    "encoded twice, quotes lost": (json.dumps(MILK)[1:-1], "AR402", "unsafe", [MILK]),
    "a code fence": (f"{FENCE}json\n{RICE}\n{FENCE}", "AR402", "unsafe", [MILK.replace("milk", "rice")]),
    "a surplus bracket": (RICE + "}", "AR402", "unsafe", [RICE]),
    "surplus brackets and commas": (RICE + "\n]},", "AR402", "unsafe", [RICE + "\n"]),
    "not a number": ('{"name":"milk","row":NaN}', "AR402", None, []),
    "quotes inside quotes": ('{"name":"the "big" milk"}', "AR402", None, []),
    "quotes inside single quotes": ("{'name': 'a', 'b'}", "AR402", None, []),
    "a key twice": ("{'name':'milk','name':'rice'}", "AR402", None, []),
    "a comment": ('{"name":"milk" /* cold */}', "AR402", None, []),
    "no value": ('{"name":"milk","row":}', "AR402", None, []),
    "a bracket is missing": ("{'name':'milk','tags':['a'}", "AR402", None, []),
    "cut off": ('{"name":"mi', "AR402", None, []),
    "cut off after a comma": ('{"name":"milk",', "AR402", None, []),
    "cut off, single quotes": ("{'name':'mi", "AR402", None, []),
    "does not fit": ("{'row': 2}", "AR402", None, []),
    "prose after it": (RICE + " as you asked", "AR402", None, []),
    "prose": ("the milk, please", "AR402", None, []),
    "an array": ('["milk"]', "AR402", None, []),
    "null": ("null", "AR402", None, []),
    "several values": (MILK + RICE, "AR402", None, []),
    # wrong types
    "right types": ('{"name":"milk","row":-4,"fresh":true,"tags":["1",2]}', "AR403", None, []),
    "a number in quotes": (
        '{"name": "milk", "row": "20"}',
        "AR403",
        "unsafe",
        ['{"name": "milk", "row": 20}'],
    ),
    "a number in quotes comes first": (
        '{"row":"20","name":"milk"}',
        "AR403",
        "unsafe",
        ['{"row":20,"name":"milk"}'],
    ),
    "several": (
        '{"name":7,"row":"-3","fresh":"false","tags":"[1, 2]"}',
        "AR403",
        "unsafe",
        ['{"name":"7","row":-3,"fresh":false,"tags":[1,2]}'],
    ),
    "a truth for a text": ('{"name":true}', "AR403", "unsafe", ['{"name":"true"}']),
    "an escaped key": ('{"n\\u0061me":5}', "AR403", "unsafe", ['{"n\\u0061me":"5"}']),
    "a number in words": ('{"name":"milk","row":"two"}', "AR403", None, []),
    "one of two": ('{"name":"milk","row":"2","fresh":"perhaps"}', "AR403", None, []),
    "something is missing": ('{"row":"2"}', "AR403", None, []),
    "null for a number": ('{"name":"milk","row":null}', "AR403", None, []),
    "no declared parameter": ('{"name":"milk","more":"2"}', "AR403", None, []),
    "wrong types in what is no JSON": ("{'name':5}", "AR403", None, []),
}


def _calls(result: Result) -> list[ToolCall]:
    assert result.after.reply is not None
    return [call for choice in result.after.reply.choices for call in choice.calls]


def _expect(record: dict[str, Any], shape: Shape) -> None:
    _, rule, safety, texts = shape
    result = run(record, [rule])
    assert result.faults == ()
    assert [repair.safety for repair in result.repairs] == ([safety] if safety else [])
    if safety is None:
        assert result.delivered == as_record(record, 1).response_body
        return
    calls = _calls(result)
    assert [call.arguments.text for call in calls] == texts
    assert {call.name for call in calls} == {"shelf"}
    assert [finding.code for finding in result.left] == []
    assert all(len(call.arguments.values) == 1 and not call.arguments.rest for call in calls)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_whole(shape: Shape) -> None:
    _expect(whole(shape[0]), shape)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_streamed_in_every_cut(shape: Shape, api: str) -> None:
    for pieces in cuts(shape[0]):
        _expect(streamed(api, *pieces), shape)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "shape", [shape for shape in SHAPES.values() if shape[2] == "unsafe"], ids=lambda shape: shape[0]
)
def test_what_is_unsafe_needs_leave(shape: Shape, api: str) -> None:
    for record in (whole(shape[0]), streamed(api, *shape[0])):
        result = run(record, [shape[1]], SAFE)
        assert result.repairs == ()
        assert result.delivered == as_record(record, 1).response_body


@pytest.mark.parametrize(
    "shape", [shape for shape in SHAPES.values() if shape[2] and shape[3] != ["null"]], ids=lambda shape: shape[0]
)
def test_a_string_as_anthropic_input(shape: Shape) -> None:
    """A whole body that carries the text where the API has an object."""
    came, rule, _, texts = shape
    record = message(came)
    result = run(record, [rule])
    if not result.findings or result.findings[0].fix is None:
        assert result.delivered == as_record(record, 1).response_body
        return
    assert [json.loads(call.arguments.text) for call in _calls(result)] == [json.loads(text) for text in texts]
    assert result.left == ()


# What came → its finish reasons, and whether it is repaired.
ENDS = {
    "done": ("tool_calls", "tool_use", True),
    "stopped": ("stop", "end_turn", True),
    "cut by length": ("length", "max_tokens", False),
    "filtered": ("content_filter", "refusal", False),
}


@pytest.mark.parametrize(("openai_reason", "anthropic_reason", "repaired"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("text", ["{'name': 'milk'}", '{"name":"milk","row":"2"}'])
def test_what_may_have_been_cut_is_left_alone(
    text: str, openai_reason: str, anthropic_reason: str, repaired: bool
) -> None:
    rules = ["AR402", "AR403"]
    for record in (
        whole(text, finish=openai_reason),
        streamed("openai.chat", *text, finish=openai_reason),
        streamed("anthropic.messages", *text, finish=anthropic_reason),
        message({"name": "milk", "row": "2"}, stop=anthropic_reason),
    ):
        result = run(record, rules)
        assert len(result.repairs) == repaired
        assert (result.delivered != as_record(record, 1).response_body) == repaired
        assert len(result.findings) == repaired


@pytest.mark.parametrize("api", APIS)
def test_one_after_the_other(api: str) -> None:
    """Glued, damaged within, of wrong types: each repair works on what the one before it made."""
    text = '{}{"name": 7, "row": "2"}'
    for pieces in cuts(text):
        result = run(streamed(api, *pieces), ["AR401", "AR402", "AR403"])
        assert [repair.code for repair in result.repairs] == ["AR401", "AR403"]
        assert [call.arguments.mapping for call in _calls(result)] == [{"name": "7", "row": 2}]


FRAGMENTS = [
    MILK, RICE, "{}", "null", '""', '{"name": 7}', '{"name":"a","row":"5"}', "{'name': 'x'}", '{"name":"m",}', ',"row":3}',
    "}", ",", " ", "\n", '{"name":"x', '{"name":"p","fresh":True}', "[", "]", '"', "\\", "x", "1", "true",
]  # fmt: skip


@given(
    st.lists(st.lists(st.sampled_from(FRAGMENTS), max_size=4).map("".join), min_size=1, max_size=3),
    st.sampled_from(["AR401", "AR402", "AR403"]),
    st.sampled_from([SAFE, UNSAFE]),
    st.sampled_from(["tool_calls", "length"]),
    st.integers(1, 12),
)
def test_what_a_rule_says_is_done_streamed_as_whole(
    texts: list[str], rule: str, permit: FixPolicy, reason: str, step: int
) -> None:
    documents = []
    for index, text in enumerate(texts):
        documents.append(piece("", index, first=True))
        documents += [piece(text[place : place + step], index) for place in range(0, len(text), step)]
    came = [run(record, [rule], permit) for record in (whole(*texts, finish=reason), openai(*documents, finish=reason))]
    for result in came:
        promised = [finding.fix.safety for finding in result.findings if finding.fix is not None]
        assert [repair.safety for repair in result.repairs] == [one for one in promised if permit.allows(rule, one)]
        assert not [one for one in result.left if one.fix is not None and permit.allows(rule, one.fix.safety)]
        assert result.changed == bool(result.repairs)
    one, other = ([call.arguments.text for call in _calls(result)] for result in came)
    assert one == other


def test_the_record_of_a_repair() -> None:
    (repair,) = run(streamed("openai.chat", "{}", RICE), ["AR401"], UNSAFE).repairs
    assert (repair.code, repair.name, repair.side) == ("AR401", "concatenated-json", "response")
    assert repair.title == 'shelf: kept one value: {"name": "rice"}'
    assert repair.pointer == "/choices/0/message/tool_calls/0"
    assert repair.event == 3
    assert repair.patch == f"- {{}}{RICE}\n+ {RICE}"
