"""Scorecards, comparisons of two runs, and the scorecard on a page."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from typing import Any

import pytest

from tests.build import FORMS, REGISTRY, Assistant, Call, Result, Talk, User, as_record, checked, judged, schema, some
from tests.rules.case import read, read_talk
from tests.tables import rows, tables
from wirelint.capture.offline import Checked, Fixed, fix
from wirelint.fix import FixPolicy
from wirelint.view.scorecard import section
from wirelint.view.scores import (
    Card,
    Comparison,
    Observation,
    Outcome,
    cards_of,
    compare,
    observe,
    request_key,
)

TABLES = read(tables(__file__))
TOOLS = {"tide": schema(["port"], port="string", days="integer")}
GOOD = Call("tide", {"port": "Hove"})


def talk(*calls: Call, text: str = "", **more: Any) -> Talk:
    return Talk((User("When is high water at Hove?"),), tools=TOOLS, text=text, calls=calls, **more)


@pytest.mark.parametrize(("api", "stream"), FORMS)
@rows(TABLES["replies"])
def test_what_becomes_of_a_reply(
    said: dict[str, Any], finish: str, calls: int, valid: int, successful: bool, api: str, stream: bool
) -> None:
    made = replace(read_talk(dict(said)), tools=TOOLS)
    seen = some(observe(judged(made.record(api, stream))))
    assert seen.outcome is not None
    assert (seen.outcome.finish, seen.outcome.calls, seen.outcome.valid) == (finish, calls, valid)
    assert seen.outcome.is_successful is successful
    assert seen.streamed is stream


def test_cards_by_provider_and_model() -> None:
    records = [
        talk(GOOD).record("openai.chat", False),
        talk(Call("tide", {})).record("openai.chat", True),
        talk(text="At nine.", model="acme-2").record("openai.chat", False),
        talk(text="", status=503).record("openai.chat", False),
    ]
    named = talk(GOOD).record("openai.chat", False)
    named["response"]["body"] = named["response"]["body"].replace("{", '{"provider": "Nordlicht", ', 1)
    unknown = {"request": {"url": "http://llm.test/feed", "body": {"a": 1}}, "response": {"body": {"b": 2}}}
    seen = [observe(judged(record)) for record in [*records, named, unknown]]
    assert seen[-1] is None
    found = {(card.provider, card.model): card for card in cards_of(filter(None, seen))}
    assert list(found) == [("llm.test", "acme-1"), ("llm.test", "acme-2"), ("llm.test (Nordlicht)", "acme-1")]
    card = found["llm.test", "acme-1"]
    assert (card.exchanges, card.failed, card.replies, card.streamed) == (3, 1, 2, 1)
    assert (card.finishes["tool_calls"], card.successful, card.schema_errors, card.schema_accuracy) == (2, 1, 1, 0.5)
    assert found["llm.test", "acme-2"].schema_accuracy is None


def test_what_the_client_got_is_scored_when_asked_for() -> None:
    leaked = '<invoke name="tide"><arg name="port">Hove</arg></invoke>'
    came = as_record(talk(text=leaked).record("openai.chat", False))
    (fixed,) = fix([came], REGISTRY.rules, FixPolicy("unsafe"))
    assert isinstance(fixed, Fixed)
    assert fixed.record.delivered is not None
    upstream, client = (observe(judged(fixed.record), delivered=side) for side in (False, True))
    assert (some(upstream).outcome, some(client).outcome) == (
        Outcome("stop", 0, 0, ()),
        Outcome("tool_calls", 1, 1, ("tide",)),
    )


TWO_TOOLS = {"tide": schema(["port"], port="string"), "moon": schema()}


def run(*replies: Talk, api: str = "openai.chat", stream: bool = False) -> list[Checked]:
    return checked((as_record(reply.record(api, stream), number) for number, reply in enumerate(replies)), ())


def keyed(items: list[Checked]) -> list[Observation]:
    return [some(observe(one, keyed=True)) for one in items]


def ask(port: str, *calls: Call, text: str = "", **more: Any) -> Talk:
    return Talk((User(f"When is high water at {port}?"),), tools=TWO_TOOLS, calls=calls, text=text, **more)


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
    found, unanswered = compare(keyed(reference), keyed(candidate))
    made = only(found)
    assert (made.model, made.pairs, made.unmatched, unanswered) == ("b", 4, 0, 0)
    counts, shares = made.triggering()
    assert list(counts.values()) == [1, 1, 1, 1]
    assert shares == {"precision": 0.5, "recall": 0.5, "f1": 0.5}
    assert made.similarity == 0.5
    assert (made.card.successful, made.reference.successful) == (2, 2)


HISTORY = (User("Hove?"), Assistant(calls=(Call("tide", {"port": "Hove"}, id="call_1"),)), Result("call_1", "09:12"))


@rows(TABLES["requests"])
@pytest.mark.parametrize("api", ["openai.chat", "anthropic.messages"])
def test_what_makes_two_requests_the_same(other: dict[str, Any], same: bool, api: str) -> None:
    first, second = run(Talk(HISTORY, tools=TWO_TOOLS)), run(read_talk(dict(other)), api=api)
    keys = {request_key(one.exchange.request) for one in (*first, *second) if one.exchange and one.exchange.request}
    assert len(keys) == (1 if same else 2)


def test_names_from_the_wire_are_text_on_the_page() -> None:
    card = Card('<img src=x onerror="x">', "</svg><script>alert(1)</script>")
    card.add(Observation(card.provider, card.model, Outcome("tool_calls", 1, 1, ("tide",)), duration=1200.0))
    page = ElementTree.fromstring(f"<div>{section([card])}</div>".replace("<br>", "<br/>"))
    names = {node.tag.rpartition("}")[2] for node in page.iter()}
    assert not names & {"script", "img"}
    assert {"svg", "table", "details"} <= names
    shown = "".join(page.itertext())
    assert "</svg><script>alert(1)</script>" in shown
    assert "100.0 %" in shown


def test_each_model_meets_all_of_the_reference_and_repeats_pair_off_in_order() -> None:
    reference = run(ask("Hove", call("Hove")), ask("Hove", text="Which day?"))
    candidate = run(
        ask("Hove", call("Hove"), model="b"),
        ask("Hove", text="a", model="c"),
        ask("Hove", text="b", model="b"),
        ask("Hove", text="c", model="b"),  # once more than the reference: it meets the last one again
    )
    found, _ = compare(keyed(reference), keyed(candidate))
    assert {made.model: (made.pairs, made.similarity) for made in found} == {"b": (3, 1.0), "c": (1, 0.0)}


def test_failures_are_no_calls() -> None:
    made = only(compare(keyed(run(ask("Hove", call("Hove")))), keyed(run(ask("Hove", status=500))))[0])
    _, shares = made.triggering()
    assert (shares["recall"], shares["precision"], made.similarity, made.card.failed) == (0.0, None, 0.0, 1)
