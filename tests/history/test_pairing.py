"""Which result answers which call."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import Assistant, Call, Result, Talk, Turn, User, exchange, read, some
from tests.tables import tables
from wirelint.fix import Edit
from wirelint.history.pairing import Pairing, orphans, pair, removals
from wirelint.model import Json, Request


def turns_of(told: list[Any]) -> list[Turn]:
    """Turns from a row: the ids of `calls` and of `results`, whose texts are r0, r1 and so on, or one `result`."""
    turns: list[Turn] = []
    for one in told:
        match one:
            case {"calls": ids}:
                turns.append(Assistant(calls=tuple(Call(f"f{n}", {}, id_) for n, id_ in enumerate(ids))))
            case {"results": ids}:
                turns += [Result(id_, f"r{n}") for n, id_ in enumerate(ids)]
            case {"result": [id_, text]}:
                turns.append(Result(id_, text))
            case _:
                turns.append(User("Go."))
    return turns


def request(turns: list[Turn], api: str) -> Request:
    return some(read(Talk(turns).record(api, False)).request)


def shape(pairing: Pairing) -> tuple[list[str | None], int, int]:
    """Per call the text of its answer; the numbers of orphans and repeats."""
    texts = [each.answer.result.text if each.answer is not None else None for each in pairing.pairs]
    return texts, len(pairing.orphans), len(pairing.repeats)


@pytest.mark.parametrize(
    ("api", "table"), [("openai.chat", "cases"), ("anthropic.messages", "cases"), ("google.generate_content", "free")]
)
def test_results_are_paired_with_their_calls(api: str, table: str) -> None:
    """`free`: what holds in an API that needs no ids."""
    for name, (told, *expected) in tables(__file__)[table].items():
        assert shape(pair(request(turns_of(told), api))) == tuple(expected), name


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
