"""A run held against another: what is found again, and what follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import Assistant, Call, Result, Talk, User, as_record, schema
from wirelint.capture.offline import Checked, check
from wirelint.view.scores import Comparison, Trigger, compare, request_key

TOOLS = {"tide": schema(["port"], port="string"), "moon": schema()}
PORTS = ("Hove", "Deal", "Looe", "Rye")


def run(*replies: Talk, api: str = "openai.chat", stream: bool = False) -> list[Checked]:
    records = [as_record(reply.record(api, stream), number) for number, reply in enumerate(replies)]
    return [one for one in check(records, ()) if isinstance(one, Checked)]


def ask(port: str, *calls: Call, text: str = "", **more: Any) -> Talk:
    return Talk((User(f"When is high water at {port}?"),), tools=TOOLS, calls=calls, text=text, **more)


def call(port: str) -> Call:
    return Call("tide", {"port": port})


def only(found: list[Comparison]) -> Comparison:
    (made,) = found
    return made


def test_triggering_and_similarity() -> None:
    reference = run(ask("Hove", call("Hove")), ask("Deal", call("Deal")), ask("Looe", text="?"), ask("Rye", text="?"))
    candidate = run(
        ask("Hove", call("Hove"), model="b"),  # the same
        ask("Deal", text="Let me look.", model="b"),  # a call is missing
        ask("Looe", Call("moon"), model="b"),  # a call too many
        ask("Rye", text="Which day?", model="b"),  # the same
        api="anthropic.messages",
        stream=True,
    )
    found, unanswered = compare(reference, candidate)
    made = only(found)
    assert (made.model, made.pairs, made.unmatched, unanswered) == ("b", 4, 0, 0)
    assert made.trigger == Trigger(1, 1, 1, 1)
    assert (made.trigger.precision, made.trigger.recall, made.trigger.f1) == (0.5, 0.5, 0.5)
    assert made.similarity == 0.5
    assert (made.card.successful, made.reference.successful) == (2, 2)


def test_another_tool_is_not_alike() -> None:
    made = only(compare(run(ask("Hove", call("Hove"))), run(ask("Hove", Call("moon"))))[0])
    assert (made.trigger.f1, made.similarity) == (1.0, 0.0)


def test_what_only_one_run_has_is_counted() -> None:
    found, unanswered = compare(
        run(ask("Hove", text="a"), ask("Deal", text="a")), run(ask("Hove", text="b"), ask("Rye"))
    )
    assert (only(found).pairs, only(found).unmatched, unanswered) == (1, 1, 1)


def test_each_model_meets_all_of_the_reference_and_repeats_pair_off_in_order() -> None:
    reference = run(ask("Hove", call("Hove")), ask("Hove", text="Which day?"))
    candidate = run(
        ask("Hove", call("Hove"), model="b"),
        ask("Hove", text="a", model="c"),
        ask("Hove", text="b", model="b"),
        ask("Hove", text="c", model="b"),  # once more than the reference: it meets the last one again
    )
    found, _ = compare(reference, candidate)
    assert {made.model: (made.pairs, made.similarity) for made in found} == {"b": (3, 1.0), "c": (1, 0.0)}


def test_failures_are_no_calls() -> None:
    made = only(compare(run(ask("Hove", call("Hove"))), run(ask("Hove", status=500)))[0])
    assert (made.trigger.recall, made.trigger.precision, made.similarity, made.card.failed) == (0.0, None, 0.0, 1)


HISTORY = (User("Hove?"), Assistant(calls=(Call("tide", {"port": "Hove"}, id="call_1"),)), Result("call_1", "09:12"))
OTHER_IDS = (User("Hove? "), Assistant(calls=(Call("tide", '{"port":"Hove"}', id="x9"),)), Result("x9", "09:12"))


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param(Talk(OTHER_IDS, tools=TOOLS, model="other"), True, id="ids, spelling and model"),
        pytest.param(Talk(HISTORY, tools={"moon": schema(), "tide": schema()}), True, id="order of the tools"),
        pytest.param(Talk(HISTORY, tools=TOOLS, request={"temperature": 1}), True, id="how it is wanted"),
        pytest.param(Talk(HISTORY, tools={"tide": schema()}), False, id="another tool is missing"),
        pytest.param(Talk(HISTORY[:1], tools=TOOLS), False, id="a shorter history"),
        pytest.param(Talk((*HISTORY[:2], Result("call_1", "10:40")), tools=TOOLS), False, id="another result"),
    ],
)
@pytest.mark.parametrize("api", ["openai.chat", "anthropic.messages"])
def test_what_makes_two_requests_the_same(other: Talk, same: bool, api: str) -> None:
    first, second = run(Talk(HISTORY, tools=TOOLS)), run(other, api=api)
    keys = {request_key(one.exchange.request) for one in (*first, *second) if one.exchange and one.exchange.request}
    assert len(keys) == (1 if same else 2)


def test_a_run_compared_with_itself_is_alike_in_all() -> None:
    """The same request to two models, and several times to one, with different answers."""
    mixed = run(
        ask("Hove", call("Hove"), model="a"),
        ask("Hove", text="Which day?", model="b"),
        ask("Hove", text="Which day?", model="a"),
        ask("Hove", Call("moon"), model="b"),
        ask("Hove", text="Which day?", model="a", request={"temperature": 0}),
    )
    found, unanswered = compare(mixed, mixed)
    assert [(made.model, made.pairs, made.similarity) for made in found] == [("a", 3, 1.0), ("b", 2, 1.0)]
    assert unanswered == 0
    turned = [mixed[4], *mixed[:4]]
    assert {made.similarity for made in compare(mixed, turned)[0]} == {1.0}, "the body tells which is which"
