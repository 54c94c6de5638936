"""Which rules are asked about an exchange: those that are not have nothing to find in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from tests.build import REGISTRY, as_record
from tests.test_corpus import CLEAN, FAULTY, Line
from wirelint.apis import channel_of
from wirelint.capture.replay import replay
from wirelint.conversation import Ledger
from wirelint.engine import Engine
from wirelint.model import Exchange
from wirelint.rule import Finding, Rule
from wirelint.settings.roster import Kind, asked, checks_of

EXAMPLES = [
    {"id": f"{rule.name}/{name}", **record}
    for rule in REGISTRY.rules
    for name, record in (("fires", rule.fires), ("silent", rule.silent))
]


def not_asked(rule: Rule, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
    """What the checks find that a rule is not asked for, of an exchange of which it knows what it needs."""
    checks = checks_of(rule, Kind.of(exchange))
    if exchange.request is not None and "request" not in exchange.lacks and rule.check_request not in checks:
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
                if channel_of(exchange.api) in rule.channels and not rule.needs & exchange.lacks:
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
    lacks=frozenset(),
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
        pytest.param(KIND._replace(lacks=frozenset({"framing"})), [], id="too little is known"),
        pytest.param(KIND._replace(open=True), [], id="still open"),
    ],
)
def test_what_is_asked(kind: Kind, names: list[str]) -> None:
    rule = Listener()
    rule.__class__.of_reply, rule.__class__.needs = frozenset({"stream", "tools"}), frozenset({"framing"})
    assert [check.__name__ for check in checks_of(rule, kind)] == names


def test_a_rule_without_checks_is_not_asked() -> None:
    class Mute(Rule):
        code, name, severity, layer = "XX902", "mute", "info", "model"

    assert [one.rule.name for one in asked([Mute(), Listener()], KIND)] == ["listener"]
