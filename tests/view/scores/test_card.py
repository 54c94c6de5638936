"""What a scorecard counts, over APIs, and what it makes of spreads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import REGISTRY, Call, Talk, User, as_record, schema
from wirelint.capture.fixing import Fixed, fix
from wirelint.capture.offline import Checked, check
from wirelint.capture.record import Record
from wirelint.fix import FixPolicy
from wirelint.view.scores import Cards, Outcome, Spread, observe

TOOLS = {"tide": schema(["port"], port="string", days="integer")}
GOOD = Call("tide", {"port": "Hove"})


def checked(made: dict[str, Any] | Record, **changes: Any) -> Checked:
    record = made if isinstance(made, Record) else as_record(made)
    (one,) = check([record], ())
    assert isinstance(one, Checked)
    return one


def talk(*calls: Call, text: str = "", **more: Any) -> Talk:
    return Talk((User("When is high water at Hove?"),), tools=TOOLS, text=text, calls=calls, **more)


FORMS = [(api, stream) for api in ("openai.chat", "anthropic.messages") for stream in (False, True)]


@pytest.mark.parametrize(("api", "stream"), FORMS)
@pytest.mark.parametrize(
    ("said", "finish", "calls", "valid", "successful"),
    [
        pytest.param(talk(text="At nine."), "stop", 0, 0, False, id="text"),
        pytest.param(talk(GOOD), "tool_calls", 1, 1, True, id="a call"),
        pytest.param(talk(GOOD, Call("tide", {"port": "Deal"}, id="call_b")), "tool_calls", 2, 2, True, id="two"),
        pytest.param(talk(Call("tide", {"port": 4})), "tool_calls", 1, 0, False, id="a wrong type"),
        pytest.param(talk(Call("tide", {})), "tool_calls", 1, 0, False, id="an argument is missing"),
        pytest.param(talk(GOOD, Call("ebb", {}, id="call_b")), "tool_calls", 2, 1, False, id="one undeclared"),
    ],
)
def test_what_becomes_of_a_reply(
    api: str, stream: bool, said: Talk, finish: str, calls: int, valid: int, successful: bool
) -> None:
    seen = observe(checked(said.record(api, stream)))
    assert seen is not None
    assert seen.outcome is not None
    assert (seen.outcome.finish, seen.outcome.calls, seen.outcome.valid) == (finish, calls, valid)
    assert seen.outcome.is_successful is successful
    assert seen.streamed is stream


@pytest.mark.parametrize("api", ["google.generate_content", "ollama.chat"])
def test_an_api_with_one_word_for_both_ends_in_calls_where_it_has_calls(api: str) -> None:
    seen = observe(checked(talk(GOOD).record(api, False)))
    assert seen is not None
    assert seen.outcome is not None
    assert seen.outcome.is_successful


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        pytest.param(talk(text="At ni", finish="length"), "other", id="cut off"),
        pytest.param(talk(text="At nine.", finish=None), "other", id="without a word"),
        pytest.param(talk(GOOD, finish="stop"), "stop", id="calls under the wrong word"),
    ],
)
def test_the_reason_decides(said: Talk, finish: str) -> None:
    seen = observe(checked(said.record("openai.chat", False)))
    assert seen is not None
    assert seen.outcome is not None
    assert seen.outcome.finish == finish


def test_cards_by_provider_and_model() -> None:
    cards = Cards()
    records = [
        talk(GOOD).record("openai.chat", False),
        talk(Call("tide", {})).record("openai.chat", True),
        talk(text="At nine.", model="acme-2").record("openai.chat", False),
        talk(text="", status=503).record("openai.chat", False),
    ]
    named = talk(GOOD).record("openai.chat", False)
    named["response"]["body"] = named["response"]["body"].replace("{", '{"provider": "Nordlicht", ', 1)
    unknown = {"request": {"url": "http://llm.test/feed", "body": {"a": 1}}, "response": {"body": {"b": 2}}}
    for record in [*records, named, unknown]:
        cards.add(observe(checked(record)))
    assert cards.left_out == 1
    found = {(card.provider, card.model): card for card in cards.ordered()}
    assert list(found) == [("llm.test", "acme-1"), ("llm.test", "acme-2"), ("llm.test (Nordlicht)", "acme-1")]
    card = found["llm.test", "acme-1"]
    assert (card.exchanges, card.failed, card.replies, card.streamed) == (3, 1, 2, 1)
    assert (card.finishes["tool_calls"], card.successful, card.schema_errors, card.schema_accuracy) == (2, 1, 1, 0.5)
    assert found["llm.test", "acme-2"].schema_accuracy is None


def test_times_of_a_stream() -> None:
    record = talk(text="At nine in the morning.", step=6).record("openai.chat", True)
    body = record["response"]["body"].encode()
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    times = [200.0, 300.0, 1900.0, *(1900.0 + 10 * number for number in range(1, len(events) - 2))]
    record["response"]["chunks"] = [(at, len(event)) for at, event in zip(times, events, strict=True)]
    record["timing"] = {"duration_ms": 2100.0}
    seen = observe(checked(record))
    assert seen is not None
    assert (seen.longest_gap, seen.duration, seen.tokens, seen.speed) == (1600.0, 2100.0, 0, None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([], (None, None, None), id="none"),
        pytest.param([7.0], (7.0, 7.0, 7.0), id="one"),
        pytest.param([4.0, 1.0, 3.0, 2.0], (2.0, 4.0, 4.0), id="four"),
        pytest.param([float(n) for n in range(1, 101)], (50.0, 95.0, 100.0), id="a hundred"),
    ],
)
def test_ranks(values: list[float], expected: tuple[float | None, ...]) -> None:
    spread = Spread(values)
    assert (spread.at(0.5), spread.at(0.95), spread.at(1.0)) == expected


def test_what_the_client_got_is_scored_when_asked_for() -> None:
    leaked = '<invoke name="tide"><arg name="port">Hove</arg></invoke>'
    came = as_record(talk(text=leaked).record("openai.chat", False))
    (fixed,) = fix([came], REGISTRY.rules, FixPolicy("unsafe"))
    assert isinstance(fixed, Fixed)
    assert fixed.record.delivered is not None
    upstream, client = (observe(checked(fixed.record), delivered=side) for side in (False, True))
    assert upstream is not None
    assert client is not None
    assert (upstream.outcome, client.outcome) == (Outcome("stop", 0, 0, ()), Outcome("tool_calls", 1, 1, ("tide",)))
