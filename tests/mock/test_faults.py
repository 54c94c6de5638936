"""Faults in detail: markup of each dialect, variants that depend on the request, and the reason of a fault not played.

`test_rules.py` plays every fault and mode at every API and checks that it breaks its rule.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from tests.mock.client import WEATHER, Post, make_body, understand, with_result
from wirelint.mock.markup import MARKUP

APIS = ("openai", "anthropic")
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
NS = "antml" + ":"
MARKS = {
    "kimi_invoke_arg": '<invoke name="get_weather">\n<arg name="city">Paris</arg>',
    "kimi_k2": '<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city":"Paris"',
    "anthropic_xml": '<function_calls>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>',
    "anthropic_antml": f'<{NS}invoke name="get_weather">\n<{NS}parameter name="city">Paris</{NS}parameter>',
    "hermes_json": '<tool_call>\n{"name": "get_weather", "arguments": {"city":"Paris"',
    "qwen3_coder_xml": "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>",
    "deepseek_v3": '<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city":"Paris"',
    "deepseek_v3_1": '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city":"Paris"',
}


@BOTH
@pytest.mark.parametrize("dialect", MARKUP)
def test_markup(post: Post, dialect: str, stream: bool) -> None:
    for api in APIS:
        said = understand(api, post(api, make_body(api, stream=stream), f"fault=xml-leak;dialect={dialect}"))
        assert MARKS[dialect] in said.text
        assert not said.calls
        assert said.ended


@BOTH
def test_markup_in_the_reasoning(post: Post, stream: bool) -> None:
    for api in APIS:
        said = understand(api, post(api, make_body(api, stream=stream), "fault=xml-leak;place=reasoning"))
        assert "</invoke>" in said.reasoning
        assert not said.text


@BOTH
@pytest.mark.parametrize("api", APIS)
def test_arguments_encoded_twice(post: Post, api: str, stream: bool) -> None:
    response = post(api, make_body(api, stream=stream), "invalid-json-arguments;mode=twice")
    arguments = understand(api, response).calls[0]["arguments"]
    # A whole Anthropic body has lost one layer already: its input is a value.
    once = arguments if api == "anthropic" and not stream else json.loads(arguments)
    assert isinstance(once, str)
    assert jsonschema_rs.validator_for(WEATHER["schema"]).is_valid(json.loads(once))


@BOTH
@pytest.mark.parametrize(
    ("api", "status", "kind"), [("openai", 429, "requests"), ("anthropic", 529, "overloaded_error")]
)
def test_http_error(post: Post, api: str, status: int, kind: str, stream: bool) -> None:
    response = post(api, make_body(api, stream=stream), "http-error")
    assert (response.status, response.json["error"]["type"]) == (status, kind)
    assert response.headers["retry-after"] == "1"
    assert post(api, make_body(api, stream=stream), "http-error;status=503").status == 503


@BOTH
@pytest.mark.parametrize(
    ("result", "claim"),
    [("18 degrees, 3 stations agree", "returned 0 results"), ("Error: station not found", "completed successfully")],
)
def test_contradicted_result(post: Post, stream: bool, result: str, claim: str) -> None:
    for api in APIS:
        body = with_result(api, make_body(api, stream=stream), result)
        text = understand(api, post(api, body, "fabricated-result")).text
        assert claim in text
        assert "get_weather" in text


# Scenario, request, reason: the server stays healthy and says why.
NOT_APPLICABLE = [
    ("xml-leak", {"tools": False}, "needs 1 tool call"),
    ("tool-index-collision", {"stream": False}, "event streams only"),
    ("truncated-stream", {"stream": False}, "event streams only"),
    ("sse-framing;mode=missing-start", {"stream": True}, "no event that starts a block"),
    ("fabricated-result;mode=contradiction", {}, "needs a tool result"),
    ("finish-reason-mismatch;mode=stop", {"tools": False}, "needs a tool call"),
    ("stream-stall;mode=pings;seconds=0.01", {"stream": False}, "event streams only"),
    ("silent-hang;mode=head;seconds=0.01", {"stream": False}, "no first event"),
]


@pytest.mark.parametrize(("scenario", "request_", "reason"), NOT_APPLICABLE, ids=[case[0] for case in NOT_APPLICABLE])
def test_not_applicable(post: Post, scenario: str, request_: dict[str, Any], reason: str) -> None:
    response = post("openai", make_body("openai", **{"stream": False, **request_}), scenario)
    assert response.status == 200
    assert response.scenario.startswith("healthy (")
    assert reason in response.scenario


def test_a_loop_ends_although_the_model_always_leaks(post: Post) -> None:
    body = make_body("openai", stream=False)
    assert "<invoke" in post("openai", body, "xml-leak").json["choices"][0]["message"]["content"]
    second = post("openai", with_result("openai", body, "18 degrees"), "xml-leak")
    assert "18 degrees" in second.json["choices"][0]["message"]["content"]
    again = post("openai", with_result("openai", body, "18 degrees"), "xml-leak;calls=1")
    assert "<invoke" in again.json["choices"][0]["message"]["content"]
