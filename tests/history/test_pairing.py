"""Which result answers which call."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import Assistant, Call, Result, Talk, User, exchange, read, some
from wirelint.fix import Edit
from wirelint.history.pairing import Pairing, orphans, pair, removals
from wirelint.model import Json, Request

ASK = User("Go.")
OPENAI = "call_9QfXb2LmZt7RkVw3Nc8HsYpD"
OTHER = "call_Kp2ZtNv9QmXc4RbWs7LdHfYg"


def calls(*ids: str | None) -> Assistant:
    return Assistant(calls=tuple(Call(f"f{n}", {}, id_) for n, id_ in enumerate(ids)))


def results(*ids: str | None) -> list[Result]:
    return [Result(id_, f"r{n}") for n, id_ in enumerate(ids)]


def request(*turns: User | Assistant | Result, api: str = "openai.chat") -> Request:
    return some(read(Talk(turns).record(api, False)).request)


def shape(pairing: Pairing) -> tuple[list[str | None], int, int]:
    """Per call the text of its answer; the numbers of orphans and repeats."""
    texts = [each.answer.result.text if each.answer is not None else None for each in pairing.pairs]
    return texts, len(pairing.orphans), len(pairing.repeats)


CASES = {
    "nothing": ([ASK], [], 0, 0),
    "exact": ([ASK, calls("a", "b"), *results("a", "b")], ["r0", "r1"], 0, 0),
    "out of order": ([ASK, calls("a", "b"), *results("b", "a")], ["r1", "r0"], 0, 0),
    "one id, two calls": ([ASK, calls("a", "a"), *results("a", "a")], ["r0", "r1"], 0, 0),
    "one id, two turns": ([ASK, calls("a"), Result("a", "x"), calls("a"), Result("a", "y")], ["x", "y"], 0, 0),
    "the latest turn first": ([ASK, calls("a"), calls("a"), Result("a", "x")], [None, "x"], 0, 0),
    "answered twice": ([ASK, calls("a"), *results("a", "a")], ["r0"], 0, 1),
    "orphan": ([ASK, *results("a")], [], 1, 0),
    "before its call": ([ASK, Result("a", "x"), calls("a")], ["x"], 0, 0),
    "empty ids": ([ASK, calls("", ""), *results("", "")], ["r0", "r1"], 0, 0),
    "mangled": ([ASK, calls("functions.f0:0"), *results("functionsf00")], ["r0"], 0, 0),
    "mangled, in parallel": (
        [ASK, calls("functions.f0:0", "functions.f1:1"), *results("functionsf11", "functionsf00")],
        ["r1", "r0"],
        0,
        0,
    ),
    "an exact answer is not taken away": (
        [ASK, calls("read:1x", "read_1x"), *results("read_1x", "read1x")],
        ["r1", "r0"],
        0,
        0,
    ),
    "by place, undefined": ([ASK, calls(OPENAI, OTHER), *results("undefined", "undefined")], ["r0", "r1"], 0, 0),
    "by place, of another kind": ([ASK, calls(OPENAI), *results("msg_0d12")], ["r0"], 0, 0),
    "by place, a number": ([ASK, calls("functions.f0:7"), *results("0")], ["r0"], 0, 0),
    "numbers on both sides": ([ASK, calls("1"), *results("2")], [None], 1, 0),
    "by place, not as many": ([ASK, calls(OPENAI, OTHER), *results("undefined")], [None, None], 1, 0),
    "strangers": ([ASK, calls(OPENAI), *results(OTHER)], [None], 1, 0),
    "the nearest turn wins": (
        [ASK, calls("functions.f0:0"), calls("functions.f0:0"), *results("functionsf00")],
        [None, "r0"],
        0,
        0,
    ),
}


FREE = {
    # in an API that needs no ids
    "in order": ([ASK, calls(None), *results(None)], ["r0"], 0, 0),
    "an id on one side": ([ASK, calls(None), *results("adk-1")], ["r0"], 0, 0),
    "an id on the other": ([ASK, calls("x1"), *results(None)], ["r0"], 0, 0),
    "no call": ([ASK, *results(None)], [], 1, 0),
    "in the next turn": ([ASK, calls(None), Result(None, "x"), ASK, calls(None), Result(None, "y")], ["x", "y"], 0, 0),
    "one is left": ([ASK, calls(None), ASK, calls(None), Result(None, "y")], [None, "y"], 0, 0),
    "altered": ([ASK, calls("functions.f0:0"), *results("functionsf00")], ["r0"], 0, 0),
}


@pytest.mark.parametrize(
    ("api", "cases"),
    [("openai.chat", CASES), ("anthropic.messages", CASES), ("google.generate_content", FREE)],
)
def test_results_are_paired_with_their_calls(api: str, cases: dict[str, Any]) -> None:
    for name, (turns, *expected) in cases.items():
        assert shape(pair(request(*turns, api=api))) == tuple(expected), name


def test_gemini_pairs_by_name_and_place() -> None:
    def functions(*told: tuple[str, str | None, str]) -> list[Any]:
        return [{kind: {"name": name, **({"id": id_} if id_ else {})}} for kind, id_, name in told]

    call, response = "functionCall", "functionResponse"
    for first, second, wanted in (
        # parallel calls, their results in another order
        ([(call, None, "f"), (call, None, "g")], [(response, None, "g"), (response, None, "f")], [1, 0]),
        # other ids, but as many, and of the same functions
        ([(call, "a1", "f"), (call, "b2", "g")], [(response, "x9", "f"), (response, "y8", "g")], [0, 1]),
        # one more than there are calls
        ([(call, None, "f")], [(response, None, "f"), (response, None, "f")], [0]),
        # another function's
        ([(call, "a1", "f")], [(response, "x9", "h")], [None]),
    ):
        contents = [{"role": "model", "parts": functions(*first)}, {"role": "user", "parts": functions(*second)}]
        found = some(read(exchange("/v1beta/models/acme-1:generateContent", {"contents": contents}, {})).request)
        places = [
            None if each.answer is None else int(each.answer.result.pointer.split("/")[4]) for each in pair(found).pairs
        ]
        assert places == wanted


def test_the_answer_to_a_hosted_call_is_no_orphan() -> None:
    hosted = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "srvtoolu_1", "content": "found"}
    messages = [{"role": "assistant", "content": [hosted]}, {"role": "user", "content": [result]}]
    record = exchange(
        "/v1/messages", {"model": "m", "max_tokens": 9, "messages": messages}, {"type": "message", "content": []}
    )
    found = some(read(record).request)
    assert pair(found).orphans == ()


def test_words_of_results_elsewhere() -> None:
    """What may stand in a user message of Converse stays as it is; JSON becomes text, there and at Gemini."""
    blocks: list[Json] = [
        {"text": "look"},
        {"text": " "},
        {"json": {"n": 1}},
        {"image": {"format": "png", "source": {}}},
    ]
    told = {"toolResult": {"toolUseId": "lost", "content": blocks, "status": "success"}}
    body: dict[str, Any] = {"messages": [{"role": "user", "content": [told]}], "inferenceConfig": {}}
    made = some(read(exchange("/model/acme-1/converse", body, {})).request)
    kept: list[Json] = [{"text": "look"}, {"text": '{"n":1}'}, {"image": {"format": "png", "source": {}}}]
    assert list(removals(made, orphans(made)).values()) == [(Edit("replace", "/messages/0/content", kept),)]

    part = {"functionResponse": {"name": "dig", "response": {"root": 3, "stone": None}}}
    body = {"contents": [{"role": "function", "parts": [part]}, {"role": "model", "parts": [{"text": "Well."}]}]}
    made = some(read(exchange("/v1beta/models/acme-1:generateContent", body, {})).request)
    wanted = (
        Edit("replace", "/contents/0/parts", [{"text": '{"root":3,"stone":null}'}]),
        Edit("replace", "/contents/0/role", "user"),
    )
    assert list(removals(made, orphans(made)).values()) == [wanted]


def test_pictures_stay_with_the_words() -> None:
    picture: Json = {"type": "image", "source": {"type": "url", "url": "https://img.test/a.png"}}
    blocks = [{"type": "text", "text": "look"}, {"type": "text", "text": ""}, picture, {"type": "tool_reference"}]
    messages = [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "lost", "content": blocks}]},
        {"role": "assistant", "content": "Well."},
    ]
    body = {"model": "acme-1", "max_tokens": 9, "messages": messages}
    made = some(read(exchange("/v1/messages", body, {})).request)
    wanted = Edit("replace", "/messages/0/content", [{"type": "text", "text": "look"}, picture])
    assert list(removals(made, orphans(made)).values()) == [(wanted,)]


def test_an_object_in_the_place_of_a_row_stays() -> None:
    body = {"contents": {"role": "user", "parts": {"functionResponse": {"name": "dig", "response": {}}}}}
    made = some(read(exchange("/v1beta/models/acme-1:generateContent", body, {})).request)
    assert len(orphans(made)) == 1
    assert removals(made, orphans(made)) == {}
