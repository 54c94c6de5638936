"""The healthy vendor: what it answers, and that the vendors' own SDKs take it for the real one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.mock.client import make_body, with_result
from tests.mock.conftest import Post
from tests.tables import rows, tables
from wirelint.mock import MockServer
from wirelint.mock.scenario import HEADER

TABLES = tables(__file__)


@rows(TABLES["choices"])
def test_tool_choice_is_honoured(api: str, choice: Any, names: list[str], post: Post) -> None:
    answer = post(api, make_body(api, stream=False, tool_choice=choice)).json
    if api == "openai":
        calls = [call["function"] for call in answer["choices"][0]["message"].get("tool_calls", ())]
    else:
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
    assert [call["name"] for call in calls] == names


def test_a_model_that_always_leaks_ends_its_turn_after_a_result(post: Post) -> None:
    body = make_body("openai", stream=False)
    after = with_result(body, "18 degrees")
    for asked, scenario, word in (
        (body, "xml-leak", "<invoke"),
        (after, "xml-leak", "18 degrees"),
        (after, "xml-leak;calls=1", "<invoke"),
    ):
        assert word in post("openai", asked, scenario).json["choices"][0]["message"]["content"]


@rows(TABLES["not_applicable"])
def test_a_fault_that_cannot_be_played_is_named(
    scenario: str, request_: dict[str, Any], reason: str, post: Post
) -> None:
    response = post("openai", make_body("openai", **{"stream": False, **request_}), scenario)
    assert response.status == 200
    assert response.headers[HEADER].startswith("healthy (")
    assert reason in response.headers[HEADER]


@pytest.mark.parametrize(
    ("api", "status", "kind"), [("openai", 429, "requests"), ("anthropic", 529, "overloaded_error")]
)
def test_http_errors_are_those_of_the_vendor(post: Post, api: str, status: int, kind: str) -> None:
    response = post(api, make_body(api, stream=True), "http-error")
    assert (response.status, response.json["error"]["type"]) == (status, kind)
    assert response.headers["retry-after"] == "1"
    assert post(api, make_body(api, stream=True), "http-error;status=503").status == 503


# --- other routes and bad requests


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_models_are_listed_in_the_shape_of_the_api(server: MockServer, api: str) -> None:
    sdk = pytest.importorskip(api)
    if api == "openai":
        client = sdk.OpenAI(base_url=f"{server.url}/v1", api_key="x")
    else:
        client = sdk.Anthropic(base_url=server.url, api_key="x")
    with client:
        names = [model.id for model in client.models.list()]
    assert "gpt-4.1" in names
    assert "mock/xml-leak" in names


def test_tokens_are_counted(post: Post) -> None:
    body = make_body("anthropic", stream=False)
    assert post("/v1/messages/count_tokens", body).json["input_tokens"] > 10
    assert post("/v1/messages/count_tokens", b"[").status == 400


@rows(TABLES["bad"])
def test_a_bad_request_is_refused_in_the_shape_of_the_api(
    api: str, body: Any, scenario: str | None, status: int, message: str, post: Post
) -> None:
    response = post(api, body.encode() if isinstance(body, str) else body, scenario)
    assert response.status == status
    assert message in response.json["error"]["message"]
    assert response.json.get("type") == ("error" if "messages" in api or api == "anthropic" else None)


def test_model_name_selects_the_scenario_and_the_header_wins(post: Post) -> None:
    body = make_body("openai", stream=False, model="mock/xml-leak+dialect=kimi_k2+model=kimi-k2")
    response = post("openai", body)
    assert response.headers[HEADER] == "xml-leak+dialect=kimi_k2+model=kimi-k2"
    assert response.json["model"] == "kimi-k2"
    assert post("openai", body, "healthy").headers[HEADER] == "healthy"


def test_scenario_that_cannot_stand_in_a_header_is_escaped(post: Post) -> None:
    response = post("openai", make_body("openai", stream=False, model="mock/healthy+model=a\r\nb: ü"))
    assert response.headers[HEADER] == r"healthy+model=a\r\nb: \xfc"


# --- the real SDKs


@pytest.mark.parametrize(
    ("result", "claim"),
    [("18 degrees, 3 stations agree", "returned 0 results"), ("Error: station not found", "completed successfully")],
)
def test_a_fabricated_result_contradicts_the_true_one(post: Post, result: str, claim: str) -> None:
    body = with_result(make_body("openai", stream=False), result)
    assert claim in post("openai", body, "fabricated-result").json["choices"][0]["message"]["content"]


@pytest.mark.parametrize(("api", "reasons"), [("openai", ("stop", "length")), ("anthropic", ("refusal", "max_tokens"))])
def test_a_refusal_and_a_limit_end_the_reply(post: Post, api: str, reasons: tuple[str, str]) -> None:
    refused = post(api, make_body(api, stream=False), "refusal").json
    cut = post(api, make_body(api, stream=False, tools=False, max_tokens=3)).json
    ends = [one["choices"][0]["finish_reason"] if api == "openai" else one["stop_reason"] for one in (refused, cut)]
    assert tuple(ends) == reasons
    assert "I'm sorry" in json.dumps(refused)
