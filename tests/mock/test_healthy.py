"""The healthy vendor: what it answers, and that the vendors' own SDKs take it for the real one."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest

from tests.mock.client import WEATHER, Post, make_body, parse_sse, understand, with_result
from wirelint.mock import MockServer

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

APIS = ("openai", "anthropic")
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])


@BOTH
@pytest.mark.parametrize("api", APIS)
def test_user_with_tools_gets_a_valid_call(post: Post, api: str, stream: bool) -> None:
    said = understand(api, post(api, make_body(api, stream=stream)))
    (call,) = said.calls
    assert call["name"] == "get_weather"
    arguments = json.loads(call["arguments"])
    assert jsonschema_rs.validator_for(WEATHER["schema"]).is_valid(arguments)
    assert arguments["city"] == "Paris"
    assert said.finish == {"openai": "tool_calls", "anthropic": "tool_use"}[api]
    assert said.ended


@BOTH
@pytest.mark.parametrize("api", APIS)
def test_result_is_quoted_and_the_turn_ends(post: Post, api: str, stream: bool) -> None:
    body = with_result(api, make_body(api, stream=stream), "18 °C\nlight rain")
    said = understand(api, post(api, body))
    assert "> 18 °C\n> light rain" in said.text
    assert "get_weather" in said.text
    assert (said.calls, said.finish) == ([], {"openai": "stop", "anthropic": "end_turn"}[api])


CHOICES: list[tuple[str, Any, list[str]]] = [
    ("openai", "none", []),
    ("openai", "required", ["get_weather"]),
    ("openai", {"type": "function", "function": {"name": "search_news"}}, ["search_news"]),
    ("anthropic", {"type": "none"}, []),
    ("anthropic", {"type": "any"}, ["get_weather"]),
    ("anthropic", {"type": "tool", "name": "search_news"}, ["search_news"]),
]


@BOTH
@pytest.mark.parametrize(("api", "choice", "names"), CHOICES, ids=[f"{one[0]}-{one[1]}" for one in CHOICES])
def test_tool_choice_is_honoured(post: Post, api: str, choice: Any, names: list[str], stream: bool) -> None:
    said = understand(api, post(api, make_body(api, stream=stream, tool_choice=choice)))
    assert [call["name"] for call in said.calls] == names
    if api == "openai" and isinstance(choice, dict):
        assert said.finish == "stop"


@BOTH
@pytest.mark.parametrize("api", APIS)
def test_options_of_the_reply(post: Post, api: str, stream: bool) -> None:
    body = make_body(api, stream=stream)
    calls = understand(api, post(api, body, "calls=2")).calls
    assert [call["name"] for call in calls] == ["get_weather", "search_news"]
    assert len({call["id"] for call in calls}) == 2
    assert understand(api, post(api, body, "reasoning;calls=0")).reasoning.startswith("The user asks about")
    refused = understand(api, post(api, body, "refusal"))
    assert (refused.refusal or refused.text).startswith("I'm sorry")
    assert refused.finish == {"openai": "stop", "anthropic": "refusal"}[api]


@BOTH
@pytest.mark.parametrize("api", APIS)
def test_token_limit_ends_the_reply(post: Post, api: str, stream: bool) -> None:
    said = understand(api, post(api, make_body(api, stream=stream, tools=False, max_tokens=3)))
    assert said.finish == {"openai": "length", "anthropic": "max_tokens"}[api]
    assert 0 < len(said.text) < 40


FAMILIES = [
    ("moonshotai/kimi-k2.5", r"functions\.get_weather:0"),
    ("kimi-k3", r"get_weather:0"),
    ("mistral-large-latest", r"[A-Za-z0-9]{9}"),
    ("deepseek-chat", r"call_00_[A-Za-z0-9]{22}"),
    ("claude-sonnet-4-5", r"toolu_01[A-Za-z0-9]{22}"),
    ("gpt-4.1", r"call_[A-Za-z0-9]{24}"),
]


@BOTH
@pytest.mark.parametrize(("model", "form"), FAMILIES, ids=[model for model, _ in FAMILIES])
def test_ids_are_native_to_the_model(post: Post, model: str, form: str, stream: bool) -> None:
    (call,) = understand("openai", post("openai", make_body("openai", stream=stream, model=model))).calls
    assert re.fullmatch(form, call["id"])
    (call,) = understand("anthropic", post("anthropic", make_body("anthropic", stream=stream, model=model))).calls
    assert re.fullmatch(r"toolu_01[A-Za-z0-9]{22}", call["id"])


def test_kimi_counts_the_calls_of_the_conversation(post: Post) -> None:
    body = with_result("openai", make_body("openai", stream=False, model="kimi-k2"), "18 degrees")
    calls = understand("openai", post("openai", body, "calls=2")).calls
    assert [call["id"] for call in calls] == ["functions.get_weather:1", "functions.search_news:2"]


def test_shape_of_an_openai_stream(post: Post) -> None:
    body = make_body("openai", stream=True, stream_options={"include_usage": True})
    *chunks, done = [data for _, data in parse_sse(post("openai", body).body.decode())]
    assert done == "[DONE]"
    role, first, *_, finish, usage = map(json.loads, chunks)
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": None, "refusal": None}
    assert first["choices"][0]["delta"]["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": ""}
    assert (finish["choices"][0]["delta"], finish["choices"][0]["finish_reason"]) == ({}, "tool_calls")
    assert finish["usage"] is None
    assert usage["choices"] == []
    assert usage["usage"]["total_tokens"] == usage["usage"]["prompt_tokens"] + usage["usage"]["completion_tokens"]


def test_shape_of_an_anthropic_stream(post: Post) -> None:
    body = make_body("anthropic", stream=True, thinking={"type": "enabled", "budget_tokens": 1024})
    events = parse_sse(post("anthropic", body).body.decode())
    assert all(name == json.loads(data)["type"] for name, data in events)
    kinds = [name for name, _ in events]
    assert kinds[:3] == ["message_start", "content_block_start", "ping"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    values = [json.loads(data) for _, data in events]
    blocks = [value["content_block"] for value in values if value["type"] == "content_block_start"]
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use"]
    assert blocks[2]["input"] == {}
    deltas = [value["delta"] for value in values if value["type"] == "content_block_delta" and value["index"] == 2]
    assert deltas[0] == {"type": "input_json_delta", "partial_json": ""}
    signatures = [value["delta"] for value in values if value.get("delta", {}).get("type") == "signature_delta"]
    assert len(signatures) == 1


def test_choices_of_one_answer_take_turns(post: Post) -> None:
    events = parse_sse(post("openai", make_body("openai", stream=True, n=2)).body.decode())
    indexes = [json.loads(data)["choices"][0]["index"] for _, data in events if data != "[DONE]"]
    assert indexes[:4] == [0, 1, 0, 1]
    whole = post("openai", make_body("openai", stream=False, n=2)).json
    ids = [choice["message"]["tool_calls"][0]["id"] for choice in whole["choices"]]
    assert len(set(ids)) == 2


# --- other routes and bad requests


@pytest.mark.parametrize("api", APIS)
def test_models_are_listed_in_the_shape_of_the_api(server: MockServer, api: str) -> None:
    if api == "openai":
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x")
    else:
        client = anthropic.Anthropic(base_url=server.url, api_key="x")
    with client:
        names = [model.id for model in client.models.list()]
    assert "gpt-4.1" in names
    assert "mock/xml-leak" in names


def test_tokens_are_counted(post: Post) -> None:
    body = make_body("anthropic", stream=False)
    assert post("/v1/messages/count_tokens", body).json["input_tokens"] > 10
    assert post("/v1/messages/count_tokens", b"[").status == 400


BAD = [
    ("/v1/embeddings", {}, None, 404, "Unknown request URL"),
    ("/v1/messages/batches", {}, None, 404, "Unknown request URL"),
    ("openai", b"{", None, 400, "could not parse"),
    ("openai", b"[]", None, 400, "JSON object"),
    ("openai", {"model": "x"}, None, 400, "messages"),
    ("openai", {"messages": [{"role": "user"}]}, None, 400, "model"),
    ("anthropic", {"messages": [{"role": "user"}]}, None, 400, "model"),
    ("openai", make_body("openai", stream=True), "fault=xml-leek", 400, "'xml-leek'; did you mean xml-leak?"),
    ("openai", make_body("openai", stream=True, model="mock/think-leek"), None, 400, "'think-leek'"),
    ("anthropic", make_body("anthropic", stream=True), "chunk=many", 400, "'chunk=many'"),
    (
        "anthropic",
        make_body("anthropic", stream=True),
        "stream-stall;dialect=kimi_k2",
        400,
        "stream-stall has no option 'dialect'",
    ),
]


@pytest.mark.parametrize(("api", "body", "scenario", "status", "message"), BAD, ids=[f"{c[0]}-{c[4]}" for c in BAD])
def test_bad_request(post: Post, api: str, body: Any, scenario: str | None, status: int, message: str) -> None:
    response = post(api, body, scenario)
    assert response.status == status
    assert message in response.json["error"]["message"]
    assert response.json.get("type") == ("error" if "messages" in api or api == "anthropic" else None)


def test_model_name_selects_the_scenario_and_the_header_wins(post: Post) -> None:
    body = make_body("openai", stream=False, model="mock/xml-leak+dialect=kimi_k2+model=kimi-k2")
    response = post("openai", body)
    assert response.scenario == "xml-leak+dialect=kimi_k2+model=kimi-k2"
    assert response.json["model"] == "kimi-k2"
    assert post("openai", body, "healthy").scenario == "healthy"


def test_scenario_that_cannot_stand_in_a_header_is_escaped(post: Post) -> None:
    response = post("openai", make_body("openai", stream=False, model="mock/healthy+model=a\r\nb: ü"))
    assert response.scenario == r"healthy+model=a\r\nb: \xfc"


# --- the real SDKs


@pytest.fixture(scope="module")
def openai_client(server: MockServer) -> Any:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def anthropic_client(server: MockServer) -> Any:
    with anthropic.Anthropic(base_url=server.url, api_key="unused", max_retries=0) as client:
        yield client


# Options of the wire that a client must not notice.
WIRES = ["", "chunk=7", "encoding=gzip", "encoding=auto;chunk=11", "crlf;comments", "content_length"]


def request_of(api: str, **more: Any) -> dict[str, Any]:
    body = make_body(api, stream=False, **more)
    del body["stream"]
    return body


def test_openai_sdk_runs_a_tool_loop(openai_client: Any) -> None:
    request = request_of("openai")
    first = openai_client.chat.completions.create(**request)
    (call,) = first.choices[0].message.tool_calls
    assert json.loads(call.function.arguments)["city"] == "Paris"
    result = {"role": "tool", "tool_call_id": call.id, "content": "18 degrees"}
    request["messages"] += [first.choices[0].message.to_dict(), result]
    second = openai_client.chat.completions.create(**request)
    assert "18 degrees" in second.choices[0].message.content
    assert second.choices[0].finish_reason == "stop"


@pytest.mark.parametrize("wire", [*WIRES, "azure"])
def test_openai_sdk_streams(openai_client: Any, wire: str) -> None:
    request = request_of("openai", stream_options={"include_usage": True})
    stream = openai_client.chat.completions.create(
        stream=True, extra_headers={"x-wirelint-mock": f"calls=2;{wire}"}, **request
    )
    arguments: dict[int, str] = {}
    finish, usage = None, None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or ():
                arguments[call.index] = arguments.get(call.index, "") + (call.function.arguments or "")
    assert [sorted(json.loads(text)) for text in arguments.values()] == [["city", "days", "unit"], ["query"]]
    assert finish == "tool_calls"
    assert usage is not None
    assert usage.completion_tokens > 0


def test_openai_sdk_sees_errors(openai_client: Any) -> None:
    with pytest.raises(openai.RateLimitError):
        openai_client.chat.completions.create(**request_of("openai", model="mock/http-error"))
    with pytest.raises(openai.APIError, match="overloaded"):
        list(openai_client.chat.completions.create(stream=True, **request_of("openai", model="mock/error-in-200")))
    with pytest.raises(openai.NotFoundError):
        openai_client.embeddings.create(model="x", input="y", encoding_format="float")


def test_anthropic_sdk_runs_a_tool_loop(anthropic_client: Any) -> None:
    request = request_of("anthropic")
    first = anthropic_client.messages.create(**request)
    assert (first.content[0].type, first.content[1].type, first.stop_reason) == ("text", "tool_use", "tool_use")
    result = {"type": "tool_result", "tool_use_id": first.content[1].id, "content": "18 degrees"}
    content = [block.to_dict() for block in first.content]
    request["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    second = anthropic_client.messages.create(**request)
    assert "18 degrees" in second.content[0].text
    assert second.stop_reason == "end_turn"


@pytest.mark.parametrize("wire", WIRES)
def test_anthropic_sdk_streams(anthropic_client: Any, wire: str) -> None:
    headers = {"x-wirelint-mock": f"calls=2;reasoning;{wire}"}
    with anthropic_client.messages.stream(extra_headers=headers, **request_of("anthropic")) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert message.content[1].text == text
    assert message.content[0].signature
    assert [sorted(block.input) for block in message.content[2:]] == [["city", "days", "unit"], ["query"]]
    assert message.stop_reason == "tool_use"
    assert message.usage.output_tokens > 0


def test_anthropic_sdk_sees_errors(anthropic_client: Any) -> None:
    with pytest.raises(anthropic.APIStatusError) as caught:
        anthropic_client.messages.create(**request_of("anthropic", model="mock/http-error"))
    assert caught.value.status_code == 529
    with pytest.raises(anthropic.APIStatusError, match="overloaded"):
        list(anthropic_client.messages.create(stream=True, **request_of("anthropic", model="mock/error-in-200")))
