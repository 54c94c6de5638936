"""The ledger: what it remembers, how it finds it again, and that it forgets."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.build import Assistant, Call, Result, Talk, User, lint, read
from wirelint.engine import Session
from wirelint.model import Exchange
from wirelint.state.ledger import Ledger, Unnamed, content_of, conversation_of, key

ASK = User("What is in the attic?")
A, B = "call_9QfXb2LmZt7RkVw3Nc8HsYpD", "functions.look:0"


def exchange(talk: Talk, headers: dict[str, str] | None = None) -> Exchange:
    record = talk.record("openai.chat", False)
    record["request"]["headers"].update(headers or {})
    return read(record)


def ledger_of(*talks: Talk, **bounds: int) -> Ledger:
    ledger = Ledger(**bounds)
    for talk in talks:
        ledger.record(exchange(talk))
    return ledger


def call(id_: str, user: str = ASK.text, **arguments: object) -> Talk:
    return Talk((User(user),), calls=(Call("look", arguments, id_),))


def name_of(user: str = ASK.text) -> str | None:
    return exchange(Talk((User(user),))).conversation


def test_a_call_is_found_under_its_id_in_any_conversation() -> None:
    ledger = ledger_of(call(A), call(B, "Another attic?"))
    found = ledger.issued(A, name_of())
    assert found is not None
    assert (found.id, found.name, found.conversation) == (A, "look", name_of())
    assert ledger.issued(A, "elsewhere") == found
    assert ledger.issued(A.lower()) is None
    assert [issued.id for issued in ledger.calls(name_of())] == [A]
    assert [issued.id for issued in ledger.all_calls()] == [A, B]


def test_an_id_of_two_conversations_is_found_in_the_own_one() -> None:
    ledger = ledger_of(call(B, n=1), call(B, "Another attic?", n=2))
    assert [ledger.issued(B, name_of(user)).arguments for user in (ASK.text, "Another attic?")] == [  # type: ignore[union-attr]
        '{"n": 1}',
        '{"n": 2}',
    ]


def test_similar_ids_have_the_same_letters_and_digits() -> None:
    ledger = ledger_of(call(B), call("functions-look-0", "Another attic?"), call(A))
    assert {issued.id for issued in ledger.similar("functionsLOOK0")} == {B, "functions-look-0"}
    assert ledger.similar("functionslook1") == ()


def test_alike_means_the_same_function_and_arguments_here_or_without_a_request() -> None:
    ledger = ledger_of(call(A, n=1, deep={"x": [1], "y": 2}), call(B, "Another attic?", n=1))
    assert [each.id for each in ledger.alike("look", '{"deep":{"y":2,"x":[1]}, "n":1}', name_of())] == [A]
    assert ledger.alike("look", '{"n":1}', name_of()) == ()
    assert ledger.alike("hear", '{"n":1}', name_of("Another attic?")) == ()


def test_results_are_remembered_by_the_id_they_came_with() -> None:
    asked = Talk((ASK, Assistant(calls=(Call("look", {}, A),)), Result(A, "A trunk.")), text="A trunk.")
    ledger = ledger_of(asked)
    assert ledger.returned(A, name_of()) is not None
    assert ledger.returned(A, "elsewhere") is None
    assert ledger.returned(B, name_of()) is None


def test_results_with_a_reminder_beside_them_are_remembered() -> None:
    asked = Talk((ASK, Assistant(calls=(Call("look", {}, A),)), Result(A, "A trunk.")), text="A trunk.")
    record = asked.record("anthropic.messages", stream=False)
    body = json.loads(record["request"]["body"])
    body["messages"][-1]["content"].append({"type": "text", "text": "<system-reminder>Go on.</system-reminder>"})
    reminded = read({**record, "request": {**record["request"], "body": body}})
    ledger = Ledger()
    ledger.record(reminded)
    assert ledger.returned(A, reminded.conversation) is not None


@pytest.mark.parametrize("bound", [{"max_ids": 3}, {"max_text": 120}], ids=["ids", "text"])
def test_the_least_recently_used_conversation_is_forgotten(bound: dict[str, int]) -> None:
    talks = [call(f"call_{n}", f"Attic {n}?", pad="x" * 20) for n in range(5)]
    ledger = ledger_of(*talks, **bound)
    assert [issued.id for issued in ledger.all_calls()] == ["call_2", "call_3", "call_4"]
    assert ledger.issued("call_0") is None
    assert ledger.similar("call0") == ()
    assert ledger.alike("look", talks[0].calls[0].text, name_of("Attic 0?")) == ()


def test_a_conversation_in_use_is_kept() -> None:
    ledger = ledger_of(call("a", "One?"), call("b", "Two?"), call("c", "One?"), call("d", "Three?"), max_ids=3)
    assert [issued.id for issued in ledger.all_calls()] == ["a", "c", "d"]


def test_one_long_conversation_loses_its_oldest_ids() -> None:
    ledger = ledger_of(*(call(f"call_{n}") for n in range(6)), max_ids=4)
    assert [issued.id for issued in ledger.calls(name_of())] == ["call_2", "call_3", "call_4", "call_5"]


def test_results_count_as_well() -> None:
    talks = [
        Talk((User(f"{n}?"), Assistant(calls=(Call("look", {}, f"c{n}"),)), Result(f"c{n}", "dust")), text="Dust.")
        for n in range(5)
    ]
    ledger = ledger_of(*talks, max_ids=2)
    kept = [ledger.returned(f"c{n}", name_of(f"{n}?")) is not None for n in range(5)]
    assert kept == [False, False, False, True, True]


def test_nothing_stays_behind_when_all_is_forgotten() -> None:
    ledger = ledger_of(*(call(f"call_{n}", f"Attic {n}?") for n in range(9)), call(B), call(B, n=2), max_ids=1)
    internals = vars(ledger)
    assert len(internals["_by_key"]) == len(internals["_by_content"]) == len(internals["_memories"]) == 1
    assert internals["_ids"] == 1
    assert internals["_text"] == len(B) + len('{"n": 2}')


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ('{"a":1,"b":2}', ' { "b": 2, "a": 1 } ', True),
        ('{"a":1}', '{"a":"1"}', False),
        ("not json", "not json ", True),
        ('{"a":"\\ud800"}', '{"a":"\\ud800"}', True),
        ('{"a":' + "9" * 30 + "}", '{"a":1}', False),
        ("", "{}", False),
    ],
)
def test_content_is_compared_as_json(one: str, other: str, equal: bool) -> None:
    assert (content_of("f", one) == content_of("f", other)) is equal
    assert content_of("g", one) != content_of("f", one)


def test_the_key_of_an_id() -> None:
    assert key("Functions.look:0") == "functionslook0"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (exchange(Talk((ASK,))), exchange(Talk((ASK, Assistant("Dust."), User("More.")))), True),
        (exchange(Talk((ASK,))), exchange(Talk((User("Else?"),))), False),
        (exchange(Talk((ASK,)), {"x-session-id": "s"}), exchange(Talk((User("Else?"),)), {"x-session-id": "s"}), True),
        (exchange(Talk((ASK,)), {"x-session-id": "s"}), exchange(Talk((ASK,)), {"x-session-id": "t"}), False),
        (
            exchange(Talk((ASK,), request={"prompt_cache_key": "019a2b7c-77aa-7e01-9f3c-5d2e8b1c4a60"})),
            exchange(Talk((User("Else?"),), request={"prompt_cache_key": "019a2b7c-77aa-7e01-9f3c-5d2e8b1c4a60"})),
            True,
        ),
        (
            exchange(Talk((ASK,), request={"prompt_cache_key": "attic-bot-v2"})),
            exchange(Talk((User("Else?"),), request={"prompt_cache_key": "attic-bot-v2"})),
            False,
        ),
    ],
    ids=["opening", "another opening", "session", "another session", "cache key", "key of a prompt"],
)
def test_what_belongs_to_one_conversation(one: Exchange, other: Exchange, same: bool) -> None:
    assert (one.conversation == other.conversation) is same
    assert one.request is not None
    assert one.conversation == conversation_of(one.request, one.request_headers)


def test_a_request_without_a_user_belongs_to_none() -> None:
    assert exchange(Talk((Result(A, "dust"),))).conversation is None


def test_a_reply_that_lost_its_request_still_tells_what_passed() -> None:
    made = {"id": B, "type": "function", "function": {"name": "look", "arguments": '{"n": 1}'}}
    lost = {"object": "chat.completion", "choices": [{"index": 0, "message": {"tool_calls": [made]}}]}
    later = Talk(
        (ASK, Assistant(calls=(Call("look", {"n": 1}, "step_1_a"),)), Result("step_1_a", "dust")),
        text="Dust.",
        model="kimi-k2",
    )
    records = [{"request": {"url": ""}, "response": {"body": lost}}, later.record("openai.chat", False)]
    (found,) = lint(records, ["mangled-id"])
    assert f"`{B}`" in found.message


def test_an_exchange_is_named_when_somebody_asks() -> None:
    session = Session.begin(
        id="1",
        method="POST",
        url="https://h/v1/chat/completions",
        headers={"x-session-id": "s"},
        body=b'{"model":"m","messages":[{"role":"user","content":"Where is it?"}]}',
    )
    assert session is not None
    head = session.head()
    assert "conversation" not in vars(head)
    assert head.request is not None
    name = conversation_of(head.request, {"x-session-id": "s"})
    assert head.conversation == head.but(status=200).conversation == replace(head, status=200).conversation == name
    assert head.but(conversation="x").conversation == replace(head, conversation="x").conversation == "x"
    again = Unnamed.of(head.but(request_headers={}))
    assert again.conversation == conversation_of(head.request, {}) != name
    assert Unnamed.of(head.but(request=None)).conversation is None
