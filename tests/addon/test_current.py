"""Whatever is asked of the ledger, what waits is taken in first."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tests.addon.build import result_of_record
from tests.build import Call, Talk, schema, some
from wirelint.addon.idle_queue import CurrentLedger
from wirelint.model import Exchange
from wirelint.state.ledger import Ledger, SeenFrom

EXCHANGE = some(
    result_of_record(Talk(calls=(Call("a", id="call_7"),), tools={"a": schema()}).record("openai.chat", True)).exchange
)
CONVERSATION = EXCHANGE.conversation

QUESTIONS: dict[str, tuple[Any, ...]] = {
    "place": (EXCHANGE,),
    "lineage": (CONVERSATION,),
    "issued": ("call_7", CONVERSATION),
    "named": ("call_7", CONVERSATION),
    "calls": (CONVERSATION,),
    "similar": ("Call-7", CONVERSATION),
    "alike": ("a", "{}", CONVERSATION),
    "all_calls": (),
    "returned": ("call_7", CONVERSATION),
    "complaint": (EXCHANGE,),
    "state_under": ("llm.test", "chatcmpl-01"),
    "begins_inside": (EXCHANGE,),
    "record": (EXCHANGE,),
    "recognise": (EXCHANGE, ()),
}


def test_all_that_can_be_asked_is_here() -> None:
    asked = {name for name in vars(Ledger) if not name.startswith("_")}
    methods = {name for name, _ in inspect.getmembers(Ledger, inspect.isfunction) if not name.startswith("_")}
    assert methods == set(QUESTIONS)
    assert asked == {name for name in vars(SeenFrom) if not name.startswith("_")}


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_waits_comes_first(question: str) -> None:
    behind, ahead = Ledger(), Ledger()
    assert EXCHANGE is not None
    ahead.record(EXCHANGE)
    caught_up: list[bool] = []

    def catch_up() -> None:
        if not caught_up:
            behind.record(EXCHANGE)
        caught_up.append(True)

    current = CurrentLedger(lambda: behind, catch_up)
    answer, wanted = (getattr(ledger, question)(*QUESTIONS[question]) for ledger in (current, ahead))
    assert caught_up == [True]
    assert _plain(answer) == _plain(wanted)


def _plain(answer: Any) -> Any:
    if isinstance(answer, Exchange):
        return answer.conversation, answer.link
    return list(answer) if hasattr(answer, "__next__") else answer
