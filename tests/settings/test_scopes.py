"""Rules in force: layers, routes, the header of a request; and rules that can find something in an exchange."""

from __future__ import annotations

from typing import Any

from tests.build import REGISTRY, Talk, User, as_record, some
from tests.tables import rows, tables
from wirelint.capture.replay import replay
from wirelint.fix import NO_FIXES
from wirelint.model import Exchange, Json
from wirelint.settings import Layer, Route, Scopes, unknown
from wirelint.text.families import provider_of, providers_of

TABLES = tables(__file__)


def exchange(url: str = "https://api.openai.com/v1/chat/completions", silent: str = "") -> Exchange:
    record = dict(Talk((User("Hello"),), text="Hello.").record("openai.chat", False))
    headers = {"x-wirelint-ignore": silent} if silent else {}
    record["request"] = {**record["request"], "url": url, "headers": headers}
    return some(replay(as_record(record)))


def codes(scopes: Scopes, of: Exchange | None = None) -> set[str]:
    """Those of three rules that are in force."""
    rules = scopes.default.rules if of is None else scopes.of(of).rules
    return {rule.code for rule in rules} & {"LK101", "LK102", "ID301"}


def layer(written: dict[str, list[Any]]) -> Layer:
    members: Any = {
        name: tuple(tuple(one) if name == "severity" else one for one in of) for name, of in written.items()
    }
    return Layer(**members)


@rows(TABLES["layers"])
def test_layers(file: dict[str, Any], given: dict[str, Any], expected: list[str]) -> None:
    assert codes(Scopes(REGISTRY, layer(file), (), layer(given))) == set(expected)
    as_route = Scopes(REGISTRY, layer(file), (Route(layer(given), host=("*",)),))
    assert codes(as_route, exchange()) == set(expected), "a route is a layer like the options of a run"


@rows(TABLES["matches"])
def test_routes(of: dict[str, list[str]], expected: bool) -> None:
    assert exchange().model.startswith("acme-")
    assert Route(Layer(), **{name: tuple(globs) for name, globs in of.items()}).matches(exchange()) is expected


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


@rows(TABLES["silent"])
def test_the_header_silences(value: str, expected: list[str]) -> None:
    assert codes(Scopes.over(REGISTRY.rules), exchange(silent=value)) == set(expected)


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
