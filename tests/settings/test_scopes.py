"""Rules in force: layers, routes, the header of a request; and rules that can find something in an exchange."""

from __future__ import annotations

import pytest

from tests.build import REGISTRY, Talk, User, as_record, some
from tests.tables import rows
from wirelint.capture.replay import replay
from wirelint.fix import NO_FIXES
from wirelint.model import Exchange, Json
from wirelint.settings import (
    Layer,
    Route,
    Scopes,
    unknown,
)
from wirelint.text.families import provider_of, providers_of


def exchange(url: str = "https://api.openai.com/v1/chat/completions", silent: str = "") -> Exchange:
    record = dict(Talk((User("Hello"),), text="Hello.").record("openai.chat", False))
    headers = {"x-wirelint-ignore": silent} if silent else {}
    record["request"] = {**record["request"], "url": url, "headers": headers}
    return some(replay(as_record(record)))


def codes(scopes: Scopes, of: Exchange | None = None) -> set[str]:
    """Those of three rules that are in force."""
    rules = scopes.default.rules if of is None else scopes.of(of).rules
    return {rule.code for rule in rules} & {"LK101", "LK102", "ID301"}


LAYERS: dict[str, tuple[Layer, Layer, set[str]]] = {
    "nothing said": (Layer(), Layer(), {"LK101", "LK102", "ID301"}),
    "select says all": (Layer(select=("LK",)), Layer(), {"LK101", "LK102"}),
    "the longer wins": (Layer(select=("xml-leak", "ID"), ignore=("LK",)), Layer(), {"LK101", "ID301"}),
    "left out on a tie": (Layer(select=("LK",), ignore=("LK",)), Layer(), set()),
    "both add up to what is left out": (Layer(ignore=("LK101",)), Layer(ignore=("ID",)), {"LK102"}),
    "the later selection counts": (Layer(select=("LK",)), Layer(select=("ID",)), {"ID301"}),
    "and brings back what was left out": (Layer(ignore=("LK101",)), Layer(select=("LK",)), {"LK101", "LK102"}),
    "extended": (Layer(select=("LK101",)), Layer(extend_select=("ID",)), {"LK101", "ID301"}),
    "extended by what was left out": (Layer(ignore=("LK",)), Layer(extend_select=("LK102",)), {"LK102", "ID301"}),
    "off": (Layer(severity=(("LK", "off"),)), Layer(), {"ID301"}),
    "off but one": (Layer(severity=(("LK", "off"), ("LK101", "info"))), Layer(), {"LK101", "ID301"}),
    "off, and asked for": (Layer(severity=(("LK", "off"),)), Layer(select=("LK101",)), {"LK101"}),
}


@rows(LAYERS)
def test_layers(file: Layer, given: Layer, expected: set[str]) -> None:
    assert codes(Scopes(REGISTRY, file, (), given)) == expected
    as_route = Scopes(REGISTRY, file, (Route(given, host=("*",)),))
    assert codes(as_route, exchange()) == expected, "a route is a layer like the options of a run"


MATCHES = {
    "host": (Route(Layer(), host=("*.openai.com",)), True),
    "host with its port": (Route(Layer(), host=("*:8000",)), False),
    "one of several": (Route(Layer(), host=("a", "api.openai.*")), True),
    "path": (Route(Layer(), path=("/v1/*",)), True),
    "another path": (Route(Layer(), path=("/v2/*",)), False),
    "model": (Route(Layer(), model=("acme-*",)), True),
    "provider": (Route(Layer(), provider=("openai",)), True),
    "all of them": (Route(Layer(), host=("*",), model=("other-*",)), False),
}


@pytest.mark.parametrize("name", MATCHES)
def test_routes(name: str) -> None:
    route, expected = MATCHES[name]
    assert exchange().model.startswith("acme-")
    assert route.matches(exchange()) is expected


def test_routes_follow_one_another() -> None:
    routes = (Route(Layer(ignore=("LK",)), host=("*",)), Route(Layer(extend_select=("LK101",)), model=("acme*",)))
    scopes = Scopes(REGISTRY, Layer(), routes)
    assert codes(scopes, exchange()) == {"LK101", "ID301"}
    assert codes(scopes) == {"LK101", "LK102", "ID301"}
    assert codes(Scopes(REGISTRY, Layer(), routes, Layer(select=("LK102",))), exchange()) == {"LK102"}


def test_severities() -> None:
    routes = (Route(Layer(severity=(("LK101", "info"),)), host=("*",)),)
    scopes = Scopes(REGISTRY, Layer(severity=(("LK", "warning"), ("xml-leak", "error"))), routes)
    graded = {rule.code: rule.graded for rule in scopes}
    assert (graded["LK101"], graded["LK102"], graded["ID301"]) == ("error", "warning", None)
    assert {rule.code: rule.graded for rule in scopes.of(exchange()).rules}["LK101"] == "info"
    rule = next(rule for rule in scopes if rule.code == "LK101")
    assert rule.finding("response", "said", severity="info").severity == "error"


def test_repairs_by_route() -> None:
    routes = (Route(Layer(fix="unsafe", unfixable=("LK102",)), host=("api.openai.com",)),)
    scopes = Scopes(REGISTRY, Layer(), routes)
    assert scopes.default.permit is NO_FIXES
    assert scopes.repair
    permit = scopes.of(exchange()).permit
    assert [permit.allows(code, "unsafe") for code in ("LK101", "LK102")] == [True, False]
    assert not scopes.of(exchange("https://other.test/v1/chat/completions")).repairs
    assert not Scopes(REGISTRY, Layer(), routes, Layer(fix="off")).repair


SILENT = {
    "by name": ("xml-leak", {"LK102", "ID301"}),
    "by code, and another": (" LK101 , id301", {"LK102"}),
    "by prefix": ("LK", {"ID301"}),
    "all": ("all", set()),
    "unknown names": ("no-such-rule,,LK", {"ID301"}),
    "nothing": (" , ", {"LK101", "LK102", "ID301"}),
}


@pytest.mark.parametrize("name", SILENT)
def test_the_header_silences(name: str) -> None:
    value, expected = SILENT[name]
    assert codes(Scopes.over(REGISTRY.rules), exchange(silent=value)) == expected


def test_unknown_names_in_the_header() -> None:
    assert unknown("LK, xml-leek, ALL", REGISTRY) == [
        "x-wirelint-ignore: unknown rule 'xml-leek'; did you mean xml-leak?"
    ]
    assert "\x1b" not in unknown("\x1b[2J", REGISTRY)[0]


def test_providers() -> None:
    assert [provider_of(host) for host in ("api.openai.com", "my.openai.azure.com", "127.0.0.1", "LLM.test")] == [
        "openai", "azure", "local", "llm.test",
    ]  # fmt: skip
    body: dict[str, Json] = {"provider": {"only": ["DeepInfra"], "order": "x"}}
    assert providers_of("https://openrouter.ai/api/v1", body) == ("openrouter", "openrouter.ai", "deepinfra")
    assert providers_of("http://[", None) == ("",)
