"""The ledger: what it remembers, how it finds it again, and that it forgets."""

from __future__ import annotations

import pytest

from tests.build import Assistant, Call, Result, Talk, User, lint, read, some
from wirelint.model import Exchange
from wirelint.state import linking
from wirelint.state.ledger import Ledger

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
    found = some(ledger.issued(A, name_of()))
    assert (found.id, found.name, found.conversation) == (A, "look", name_of())
    assert ledger.issued(A, "elsewhere") == found
    assert ledger.issued(A.lower()) is None
    assert [issued.id for issued in ledger.calls(name_of())] == [A]
    assert ledger.issued(B) is not None


def test_alike_means_the_same_function_and_arguments_here_or_without_a_request() -> None:
    ledger = ledger_of(call(A, n=1, deep={"x": [1], "y": 2}), call(B, "Another attic?", n=1))
    assert [each.id for each in ledger.alike("look", '{"deep":{"y":2,"x":[1]}, "n":1}', name_of())] == [A]
    assert ledger.alike("look", '{"n":1}', name_of()) == ()
    assert ledger.alike("hear", '{"n":1}', name_of("Another attic?")) == ()


def test_results_are_remembered_by_the_id_they_came_with() -> None:
    asked = Talk((ASK, Assistant(calls=(Call("look", {}, A),)), Result(A, "A trunk.")), text="A trunk.")
    ledger = ledger_of(asked)
    assert ledger.is_returned(A, name_of())
    assert not ledger.is_returned(A, "elsewhere")
    assert not ledger.is_returned(B, name_of())


@pytest.mark.parametrize("bound", [{"max_ids": 3}, {"max_text": 120}], ids=["ids", "text"])
def test_the_least_recently_used_conversation_is_forgotten(bound: dict[str, int]) -> None:
    talks = [call(f"call_{n}", f"Attic {n}?", pad="x" * 20) for n in range(5)]
    ledger = ledger_of(*talks, **bound)
    assert [n for n in range(5) if ledger.issued(f"call_{n}") is not None] == [2, 3, 4]
    assert ledger.similar("call0") == ()
    assert ledger.alike("look", talks[0].calls[0].text, name_of("Attic 0?")) == ()


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
    assert one.conversation == linking.name_of(some(one.request), one.request_headers)


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


def test_one_long_conversation_loses_its_oldest_ids() -> None:
    ledger = ledger_of(*(call(f"call_{n}") for n in range(6)), max_ids=4)
    assert [issued.id for issued in ledger.calls(name_of())] == ["call_2", "call_3", "call_4", "call_5"]
