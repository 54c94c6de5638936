"""What targets demand of ids, and the ids that are made for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.build import Assistant, Call, Result, Talk, User, exchange, read, some
from tests.selection import in_batches
from tests.tables import rows, tables
from wirelint.fix import FixPolicy, RewriteContext
from wirelint.history.id_demands import (
    ANTHROPIC,
    Demand,
    KimiK2,
    Mistral,
    complaint,
    converse,
    demand_of,
    mint,
    openai,
)
from wirelint.history.ids import form_of
from wirelint.state.ledger import Ledger

TABLES = tables(__file__)


def target(url: str, model: str, api: str = "openai.chat") -> Demand | None:
    record = Talk((User("Go."),), text="Gone.", model=model).record(api, False)
    return demand_of(read({**record, "request": {**record["request"], "url": url}}))


@rows(TABLES["what_a_target_demands"])
def test_what_a_target_demands(url: str, model: str, api: str, expected: str | None) -> None:
    demand = target(url, model, api)
    assert (demand and demand.target) == expected


@rows(TABLES["what_an_error_demands"])
def test_what_an_error_demands(reply: dict[str, Any], expected: str | None) -> None:
    record = exchange(
        "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "x"}]}, reply, status=400
    )
    demand = complaint(read(record))
    assert (demand and demand.target) == expected


def test_the_target_that_complained_last_is_known_longest() -> None:
    ledger = Ledger()
    error = {"object": "error", "message": "Tool call id was a-1 but must be a-z, A-Z, 0-9, with a length of 9."}
    asked = [{"model": f"m{n}", "messages": [{"role": "user", "content": "x"}]} for n in range(257)]
    seen = [read(exchange("/v1/chat/completions", one, error, status=400)) for one in asked]
    for one in (*seen[:256], seen[0], seen[256]):
        ledger.record(one)
    assert [ledger.complaint(one) is not None for one in seen] == [True, False] + [True] * 255


DEMANDS = [KimiK2(), Mistral(), ANTHROPIC, openai(40), converse(), converse(claude=True)]


@pytest.mark.parametrize("demand", DEMANDS, ids=lambda demand: demand.form)
@in_batches("id_", ["look:0", "a/b", "ü", "", "x" * 90, "functions.look", "call_|fc_"])
def test_what_is_made_is_accepted_new_and_always_the_same(demand: Demand, id_: str) -> None:
    taken: list[str] = []
    for ordinal in range(4):
        made = some(demand.mint(id_, "look", ordinal, taken))
        assert demand.fault(made, "look") is None
        assert made not in taken
        assert demand.mint(id_, "look", ordinal, taken) == made
        taken.append(made)


def context(
    model: str,
    ids: Sequence[str] = (),
    *,
    api: str = "openai.chat",
    url: str = "",
    passed: Sequence[str] = (),
    taken: Sequence[str] = (),
) -> RewriteContext:
    """A reply to a history in which `read` was called under each of `ids`; `passed` is what upstream had really given."""
    history: list[Any] = [User("Read on.")]
    for id_ in ids:
        history += [Assistant(calls=(Call("read", {"path": "a"}, id_),)), Result(id_, "text")]
    ledger = Ledger()
    if passed:
        calls = [Call("read", {"path": str(number)}, id_) for number, id_ in enumerate(passed)]
        ledger.record(read(Talk((User("Read on."),), calls=calls, model=model).record(api, False)))
    record = Talk(tuple(history), model=model, text="x").record(api, False)
    if url:
        record["request"]["url"] = url
    asked = replace(read(record), reply=None)
    return RewriteContext(asked, ledger, FixPolicy("unsafe"), streamed=False, taken=set(taken))


@rows(TABLES["counted_ids_go_on_with_the_history"])
def test_counted_ids_go_on_with_the_history(
    model: str, ids: Sequence[str], names: list[str], expected: list[str]
) -> None:
    here = context(model, ids)
    assert [mint(here, name) for name in names] == expected
    assert here.taken == set(expected)


@rows(TABLES["the_form_of_the_conversation"])
def test_the_form_of_the_conversation(model: str, ids: Sequence[str], api: str, pattern: str) -> None:
    here = context(model, ids, api=api)
    new = mint(here, "read")
    assert re.fullmatch(pattern, new), new
    assert new not in ids
    assert form_of(new) is not None


def test_every_run_gives_the_same_ids_and_no_id_twice() -> None:
    one, two = (context("gpt-5.2", ("call_U7ZpbozYfIAQ0tyiqZ97HB65",)) for _ in range(2))
    made = [mint(one, "read") for _ in range(50)]
    assert made == [mint(two, "read") for _ in range(50)]
    assert len(set(made)) == 50


def test_very_many_counted_ids() -> None:
    here = context("kimi-k2.5", taken=[f"functions.a:{number}" for number in range(300)])
    assert len({mint(here, "a") for _ in range(1000)} | here.taken) == 1300
