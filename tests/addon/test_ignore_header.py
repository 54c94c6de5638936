"""The header `x-wirelint-ignore` where it passes, and the configuration of a proxy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http

from tests.addon.build import captured, flow_of, head_of, inspecting, pass_head
from tests.addon.test_websocket import LEAK as SPOKEN
from tests.addon.test_websocket import socket, talk_over
from tests.build import Talk, User, as_record, complaint
from wirelint.addon import options
from wirelint.addon.addon import Inspector
from wirelint.capture.offline import check
from wirelint.capture.readers import Problem, read
from wirelint.capture.writers.flows import flow_bytes
from wirelint.fix import NO_FIXES
from wirelint.registry import Registry

HEADER = "x-wirelint-ignore"
LEAK = Talk((User("Hello"),), text="Hello to you.<|im_end|>").record("openai.chat", False)
DEFAULTS = {option.name: option.default for option in options.OPTIONS}


OPTIONS = {"wirelint_config": "off"}


def asked(value: str, **more: Any) -> http.HTTPFlow:
    flow = flow_of(LEAK, **more)
    flow.request.headers[HEADER] = value
    return flow


def passing(inspector: Inspector, flow: http.HTTPFlow) -> http.HTTPFlow:
    """The flow, after all its hooks; what is forwarded has no such header."""
    inspector.requestheaders(flow)
    assert HEADER not in flow.request.headers
    response = pass_head(inspector, flow, head_of(LEAK))
    body = as_record(LEAK).response_body or b""
    if callable(response.stream):
        response.stream(body)
        response.stream(b"")
    else:
        response.raw_content = body
    inspector.response(flow)
    return flow


def names(flow: http.HTTPFlow) -> object:
    return flow.metadata["wirelint.findings"]


def test_it_is_taken_off_and_obeyed(inspector: Inspector, tmp_path: Path) -> None:
    assert names(passing(inspector, flow_of(LEAK))) == ["control-token-leak"]
    flow = passing(inspector, asked("LK102"))
    assert names(flow) == []
    saved = tmp_path / "saved.mitm"
    saved.write_bytes(flow_bytes(flow))
    inspector.done()
    lines = captured(inspector, tmp_path)
    assert [line["request"]["headers"].get(HEADER) for line in lines] == [None, "LK102"]
    (flows,) = (tmp_path / "captures").glob("*/flows.mitm")
    (lines_file,) = (tmp_path / "captures").glob("*/exchanges.jsonl")
    rules = Registry.load().select()
    for path, expected in ((lines_file, [1, 0]), (flows, [1, 0]), (saved, [0])):
        found = [item for item in check(read([path]), rules) if not isinstance(item, Problem)]
        assert [len(item.findings) for item in found] == expected, path.name


def test_it_is_taken_off_whatever_the_traffic(inspector: Inspector) -> None:
    foreign = flow_of({"request": {"url": "https://shop.test/cart", "body": {"a": 1}}, "response": {}})
    foreign.request.headers.fields = (
        *foreign.request.headers.fields,
        (b"X-Wirelint-Ignore", b"a"),
        (b"x-wirelint-ignore", b"b"),
    )
    inspector.requestheaders(foreign)
    assert HEADER not in foreign.request.headers
    loaded = asked("LK102", live=False)
    inspector.requestheaders(loaded)
    assert loaded.request.headers[HEADER] == "LK102", "a flow of a file is not forwarded"


def test_sockets(inspector: Inspector, tmp_path: Path) -> None:
    for value in ("", "ALL"):
        flow = socket()
        if value:
            flow.request.headers[HEADER] = value
        inspector.requestheaders(flow)
        assert HEADER not in flow.request.headers
        talk_over(inspector, flow, SPOKEN)
    inspector.done()
    found = [[one["name"] for one in line["findings"]] for line in captured(inspector, tmp_path)]
    assert found == [["xml-leak"], []]


# --- the configuration ------------------------------------------------------------------------------------------------

CONFIG = """
select = ["LK"]
fix = "safe"
redact = false
hold = 7
stall = 9

[[route]]
host = "other.test"
fix = "off"
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "wirelint.toml"
    path.write_text(CONFIG, encoding="utf-8")
    return str(path)


def given(config: str, **named: str) -> options.Settings:
    """The settings when these options are given, and nothing else."""
    values = {f"wirelint_{name}": value for name, value in named.items()} | {"wirelint_config": config}
    return options.read({**DEFAULTS, **values}, set(values))


def test_a_proxy_reads_it(config: str) -> None:
    settings = given(config)
    assert {rule.code[:2] for rule in settings.rules} == {"LK"}
    assert (settings.redact, settings.hold, settings.rules[0].limits.stall) == (False, 7.0, 9.0)
    assert settings.rules.default.permit.most == "safe"
    assert settings.rules.repair
    assert given("off").rules.default.permit is NO_FIXES


def test_options_win(config: str) -> None:
    settings = given(config, select="ID", fix="off", redact="on", hold="3", stall="4")
    assert {rule.code[:2] for rule in settings.rules} == {"ID"}
    assert (settings.redact, settings.hold, settings.rules[0].limits.stall) == (True, 3.0, 4.0)
    assert not settings.rules.repair


def test_what_is_given_is_known_from_what_is_usual(config: str) -> None:
    with inspecting(wirelint_config=config) as (inspector, context):
        assert options.values_in(context.options)[1] == {"wirelint_captures", "wirelint_config"}
        assert options.read(*options.values_in(context.options)).rules.default.permit.most == "safe"
        context.configure(inspector, wirelint_fix="off")
        assert options.read(*options.values_in(context.options)).rules.default.permit is NO_FIXES


WRONG = {
    "unknown rule": ('select = ["xml-leek"]', "select: unknown rule 'xml-leek'"),
    "unknown rule of a route": ('[[route]]\nhost = "a"\nignore = ["xml-leek"]', "route[1].ignore: unknown rule"),
    "no size": ('max-body = "lots"', "max-body: not a size of 1k or more"),
    "no folder": (f"captures = {json.dumps(__file__)}", "captures: "),
    "no policies": ('policy = "none.toml"', "policy: "),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_names_the_file(tmp_path: Path, name: str) -> None:
    text, says = WRONG[name]
    path = tmp_path / "wirelint.toml"
    path.write_text(text, encoding="utf-8")
    assert f"{path}: {says}" in complaint(options.SettingError, lambda: given(str(path)))
