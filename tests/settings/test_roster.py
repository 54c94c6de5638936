"""Which rules are asked about an exchange: those that are not have nothing to find in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from tests.build import REGISTRY, as_record
from tests.test_corpus import CLEAN, FAULTY, Line
from wirelint.apis import channel_of
from wirelint.capture.replay import replay
from wirelint.engine import Engine
from wirelint.model import Exchange, Timing
from wirelint.rule import Finding, Limits, Rule
from wirelint.settings.scopes import Kind, Scope, applicable, checks_of, seconds_of, shortest_limit
from wirelint.state.ledger import Ledger
from wirelint.timing import Arrivals

EXAMPLES = [
    {"id": f"{rule.name}/{name}", **record}
    for rule in REGISTRY.rules
    for name, record in (("fires", rule.example.fires), ("silent", rule.example.silent))
]


def not_asked(rule: Rule, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
    """What the checks find that a rule is not asked for, of an exchange of which it knows what it needs."""
    checks = checks_of(rule, Kind.of(exchange), brief=seconds_of(exchange) < shortest_limit(REGISTRY.rules))
    if rule.is_timed and rule.check_course not in checks:
        yield from rule.check_course(exchange, ledger)
    if exchange.request is not None and "request" not in exchange.missing and rule.check_request not in checks:
        yield from rule.check_request(exchange, ledger)
    if exchange.reply is not None and rule.check_reply not in checks:
        yield from rule.check_reply(exchange, ledger)


@pytest.mark.parametrize("lines", [CLEAN, FAULTY, EXAMPLES], ids=["clean", "faulty", "examples"])
def test_nothing_is_missed(lines: Iterable[Line]) -> None:
    for line in lines:
        engine = Engine(REGISTRY.rules)
        for record in (*line.get("prior", ()), line):
            exchange = replay(as_record({"id": "x", **record}))
            if exchange is None:
                continue
            exchange = engine.ledger.place(exchange)
            for rule in REGISTRY.rules:
                if channel_of(exchange.api) in rule.channels and not rule.needs & exchange.missing:
                    assert list(not_asked(rule, exchange, engine.ledger)) == [], (line["id"], rule.name)
            engine.check(exchange)


class Listener(Rule):
    code, name, severity, layer = "XX901", "listener", "info", "model"

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        yield from ()

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        yield from ()


KIND = Kind(
    open=False,
    missing=frozenset(),
    request=True,
    reply=True,
    holds=frozenset({"stream", "tools"}),
)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        pytest.param(KIND, ["check_request", "check_reply"], id="both sides"),
        pytest.param(KIND._replace(reply=False), ["check_request"], id="no reply"),
        pytest.param(KIND._replace(request=False), ["check_reply"], id="no request"),
        pytest.param(KIND._replace(holds=frozenset({"tools"})), ["check_request"], id="holds less"),
        pytest.param(KIND._replace(missing=frozenset({"framing"})), [], id="too little is known"),
        pytest.param(KIND._replace(open=True), [], id="still open"),
    ],
)
def test_what_is_asked(kind: Kind, names: list[str]) -> None:
    rule = Listener()
    rule.__class__.requires_in_reply, rule.__class__.needs = frozenset({"stream", "tools"}), frozenset({"framing"})
    assert [check.__name__ for check in checks_of(rule, kind)] == names


class Clock(Rule):
    code, name, severity, layer = "XX903", "clock", "info", "gateway"

    @property
    def takes(self) -> float:
        return self.limits.stall

    def check_course(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        yield from ()


def test_the_course_of_a_brief_exchange_is_nobodys_concern() -> None:
    rule, patient = Clock(), Clock().within(Limits(stall=90))
    assert shortest_limit([Listener(), patient, rule]) == 30
    assert [applicable([rule], KIND, brief=brief) for brief in (True, False)] == [(), ((rule, (rule.check_course,)),)]


@pytest.mark.parametrize(
    ("times", "timing", "seconds"),
    [
        pytest.param((), Timing(), 0, id="nothing is known"),
        pytest.param((1000, 31_000), Timing(), 31, id="bytes came"),
        pytest.param((31_000, 500), Timing(), 31, id="in no order"),
        pytest.param((), Timing(duration=31_000), 31, id="it ended"),
        pytest.param((), Timing(first_byte=31_000), 31, id="it began"),
    ],
)
def test_how_long_an_exchange_has_taken(times: tuple[float, ...], timing: Timing, seconds: float) -> None:
    found = replay(as_record(EXAMPLES[0]))
    assert found is not None
    exchange = found.but(arrivals=Arrivals(times), timing=timing)
    assert seconds_of(exchange) == seconds
    scope = Scope((rule := Clock(),))
    assert [one.rule for one in scope.applicable("model", exchange)] == [rule] * (seconds >= 30)


def test_a_rule_without_checks_is_not_asked() -> None:
    class Mute(Rule):
        code, name, severity, layer = "XX902", "mute", "info", "model"

    assert [one.rule.name for one in applicable([Mute(), Listener()], KIND)] == ["listener"]
