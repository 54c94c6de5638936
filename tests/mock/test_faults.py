"""Every fault, for every API, whole and streamed: the defect is there, and the HTTP around it is sound."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest

from tests.mock.client import WEATHER, Post, Said, make_body, understand, with_result
from wirelint.mock import FAULTS
from wirelint.mock.markup import MARKUP

APIS = ("openai", "anthropic")
CALLS = {"openai": "tool_calls", "anthropic": "tool_use"}
STOPS = {"openai": "stop", "anthropic": "end_turn"}
Check = Callable[[Said, str], bool]


def only_text(*marks: str) -> Check:
    """The reply has these marks in its text, no call, and ends as if all were well."""
    return lambda said, api: (
        all(mark in said.text for mark in marks) and not said.calls and said.finish == STOPS[api] and said.ended
    )


def in_calls(check: Callable[[dict[str, str]], bool]) -> Check:
    """The first call of a reply that is otherwise complete has the defect."""
    return lambda said, api: bool(said.calls) and check(said.calls[0]) and said.finish == CALLS[api] and said.ended


def values_in(text: str) -> int:
    """Number of JSON values that stand one after the other; -1 when the text is something else."""
    found, at = 0, 0
    while at < len(text):
        try:
            _, at = json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            return -1
        found += 1
    return found


def is_valid(arguments: str) -> bool:
    return jsonschema_rs.validator_for(WEATHER["schema"]).is_valid(json.loads(arguments))


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

# Scenario -> what must hold of the assembled reply, for both APIs, whole and streamed.
EVERYWHERE: dict[str, Check] = {
    **{f"fault=xml-leak;dialect={name}": only_text(mark) for name, mark in MARKS.items()},
    "fault=xml-leak;dialect=hermes_json;calls=2": only_text('"get_weather"', '"search_news"'),
    "fault=xml-leak;place=reasoning": lambda said, api: (
        "</invoke>" in said.reasoning and not said.text and not said.calls and said.finish == STOPS[api]
    ),
    "control-token-leak": lambda said, _: said.text.endswith("<|im_end|>"),
    "control-token-leak;mode=deepseek;calls=0": only_text("<｜end▁of▁sentence｜>"),
    "control-token-leak;mode=name": in_calls(lambda call: call["name"] == "get_weather<|channel|>json"),
    "think-leak;calls=0": lambda said, _: said.text.startswith("<think>\n") and "</think>" in said.text,
    "think-leak;mode=orphan;calls=0": lambda said, _: "<think>" not in said.text and "</think>" in said.text,
    "fabricated-call": only_text('I checked the weather for "', "found 0 results"),
    "fabricated-result": only_text("<tool_response>"),
    "fabricated-result;mode=observation": only_text("Action: get_weather", "\nObservation: "),
    "intent-without-call": only_text("I'll call get_weather now"),
    "concatenated-json": in_calls(lambda call: values_in(call["arguments"]) == 2),
    "concatenated-json;mode=differing": in_calls(
        lambda call: values_in(call["arguments"]) == 2 and call["arguments"].count("Paris") == 1
    ),
    "concatenated-json;mode=start-and-delta": in_calls(lambda call: values_in(call["arguments"]) == 2),
    "concatenated-json;mode=continuation": in_calls(lambda call: '},"unit"' in call["arguments"].replace(" ", "")),
    "invalid-json-arguments": in_calls(lambda call: values_in(call["arguments"]) == -1),
    "invalid-json-arguments;mode=quotes": in_calls(lambda call: call["arguments"].startswith("{'city': 'Paris'")),
    "invalid-json-arguments;mode=comma": in_calls(lambda call: call["arguments"].endswith(",}")),
    "schema-violation": in_calls(lambda call: not is_valid(call["arguments"])),
    "schema-violation;mode=missing": in_calls(lambda call: len(json.loads(call["arguments"])) == 2),
    "schema-violation;mode=value": in_calls(lambda call: json.loads(call["arguments"])["unit"] == "something else"),
    "schema-violation;mode=extra": in_calls(lambda call: len(json.loads(call["arguments"])) == 4),
    "undeclared-tool": in_calls(lambda call: call["name"] == "open_browser"),
    "undeclared-tool;mode=case": in_calls(lambda call: call["name"] == "GET_WEATHER"),
    "finish-reason-mismatch": lambda said, api: bool(said.calls) and said.finish == STOPS[api],
    "finish-reason-mismatch;mode=calls": lambda said, api: not said.calls and said.finish == CALLS[api],
    "error-in-200": lambda said, _: bool(said.error),
    "silent-hang;seconds=0.01": in_calls(lambda call: is_valid(call["arguments"])),
}


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("scenario", EVERYWHERE)
def test_fault_shows_in_the_reply(post: Post, scenario: str, api: str, stream: bool) -> None:
    response = post(api, make_body(api, stream=stream), scenario)
    assert response.status == 200
    assert "healthy" not in response.scenario
    assert EVERYWHERE[scenario](understand(api, response), api), response.body.decode()


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("api", APIS)
def test_arguments_encoded_twice(post: Post, api: str, stream: bool) -> None:
    response = post(api, make_body(api, stream=stream), "invalid-json-arguments;mode=twice")
    arguments = understand(api, response).calls[0]["arguments"]
    # A whole Anthropic body has lost one layer already: its input is a value.
    once = arguments if api == "anthropic" and not stream else json.loads(arguments)
    assert isinstance(once, str)
    assert is_valid(once)


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize(
    ("api", "status", "kind"), [("openai", 429, "requests"), ("anthropic", 529, "overloaded_error")]
)
def test_http_error(post: Post, api: str, status: int, kind: str, stream: bool) -> None:
    response = post(api, make_body(api, stream=stream), "http-error")
    assert (response.status, response.json["error"]["type"]) == (status, kind)
    assert response.headers["retry-after"] == "1"
    assert post(api, make_body(api, stream=stream), "http-error;status=503").status == 503


def call_indexes(said: Said) -> list[object]:
    deltas = [
        one for _, event in said.events for choice in event["choices"] for one in choice["delta"].get("tool_calls", ())
    ]
    return [one.get("index", "none") for one in deltas if "id" in one]


def block_indexes(said: Said) -> list[object]:
    starts = [event for _, event in said.events if event["type"] == "content_block_start"]
    return [event.get("index", "none") for event in starts if event["content_block"]["type"] == "tool_use"]


def types_of(said: Said) -> list[str]:
    return [event["type"] for _, event in said.events]


STREAMS: list[tuple[str, str, Check]] = [
    ("tool-index-collision", "openai", lambda said, _: call_indexes(said) == [0, 0]),
    ("tool-index-collision;mode=missing", "openai", lambda said, _: call_indexes(said) == ["none", "none"]),
    ("tool-index-collision", "anthropic", lambda said, _: block_indexes(said) == [1, 1]),
    ("tool-index-collision;mode=missing", "anthropic", lambda said, _: block_indexes(said) == ["none", "none"]),
    ("sse-framing;mode=no-done", "openai", lambda said, _: not said.ended and said.finish == "tool_calls"),
    ("sse-framing;mode=no-done", "anthropic", lambda said, _: not said.ended and said.finish == "tool_use"),
    ("sse-framing;mode=after-done", "anthropic", lambda said, _: types_of(said)[-2] == "message_stop"),
    ("sse-framing;mode=missing-start", "anthropic", lambda said, _: "content_block_start" not in types_of(said)),
    ("truncated-stream", "openai", lambda said, _: not said.finish and not said.ended and bool(said.calls)),
    ("truncated-stream", "anthropic", lambda said, _: not said.finish and not said.ended and bool(said.calls)),
    ("error-in-200;mode=at-once", "openai", lambda said, _: len(said.events) == 1 and bool(said.error)),
    ("error-in-200;mode=at-once", "anthropic", lambda said, _: types_of(said) == ["error"]),
]


@pytest.mark.parametrize(("scenario", "api", "check"), STREAMS, ids=[f"{case[0]}-{case[1]}" for case in STREAMS])
def test_fault_of_streams(post: Post, scenario: str, api: str, check: Check) -> None:
    said = understand(api, post(api, make_body(api, stream=True), scenario))
    assert check(said, api), said.events


def test_id_changes_in_later_deltas(post: Post) -> None:
    said = understand("openai", post("openai", make_body("openai", stream=True), "id-unstable"))
    deltas = [one for _, event in said.events for one in event["choices"][0]["delta"].get("tool_calls", ())]
    first, *later = [one["id"] for one in deltas]
    assert later
    assert first not in later
    assert len(set(later)) == 1


def test_id_changes_in_a_second_start(post: Post) -> None:
    said = understand("anthropic", post("anthropic", make_body("anthropic", stream=True), "id-unstable"))
    starts = [event for _, event in said.events if event["type"] == "content_block_start"]
    first, second = [event["content_block"]["id"] for event in starts if event["index"] == 1]
    assert first != second


FRAMING = [
    ("single-newline", lambda body: body.count(b"\n\n") == 0 and body.count(b"data: ") > 5),
    ("leading-space", lambda body: body.count(b"\n  data: ") == 1),
    ("split-json", lambda body: any(b"}" not in frame for frame in body.split(b"\n\n") if b"data: {" in frame)),
]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("mode", "check"), FRAMING, ids=[mode for mode, _ in FRAMING])
def test_frames_are_broken(post: Post, mode: str, check: Callable[[bytes], bool], api: str) -> None:
    healthy = post(api, make_body(api, stream=True)).body
    assert not check(healthy)
    # An indented `event:` line comes before the indented data line of an Anthropic event.
    assert check(post(api, make_body(api, stream=True), f"sse-framing;mode={mode}").body)


def test_data_after_done(post: Post) -> None:
    body = post("openai", make_body("openai", stream=True), "sse-framing;mode=after-done").body
    assert b'data: {"id":' in body.partition(b"data: [DONE]\n\n")[2]


@pytest.mark.parametrize("api", APIS)
def test_start_carries_the_arguments(post: Post, api: str) -> None:
    said = understand(api, post(api, make_body(api, stream=True), "concatenated-json;mode=start-and-delta"))
    if api == "openai":
        deltas = [one for _, event in said.events for one in event["choices"][0]["delta"].get("tool_calls", ())]
        start = deltas[0]["function"]["arguments"]
    else:
        blocks = [event["content_block"] for _, event in said.events if event["type"] == "content_block_start"]
        start = json.dumps(blocks[-1]["input"])
    assert is_valid(start)


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("result", "claim"),
    [("18 degrees, 3 stations agree", "returned 0 results"), ("Error: station not found", "completed successfully")],
)
def test_contradicted_result(post: Post, api: str, stream: bool, result: str, claim: str) -> None:
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
    ("stream-burst;seconds=0.01", {"stream": False}, "event streams only"),
    ("silent-hang;mode=head;seconds=0.01", {"stream": False}, "no first event"),
    ("silent-hang;mode=pings;seconds=0.01", {"stream": False}, "no first event"),
]


@pytest.mark.parametrize(("scenario", "request_", "reason"), NOT_APPLICABLE, ids=[case[0] for case in NOT_APPLICABLE])
def test_fault_without_an_object(post: Post, scenario: str, request_: dict[str, Any], reason: str) -> None:
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


def test_every_fault_mode_and_dialect_is_tried_here() -> None:
    tried = " ".join([*EVERYWHERE, *(case[0] for case in STREAMS), *(case[0] for case in NOT_APPLICABLE)])
    tried += " fault=http-error fault=id-unstable mode=twice mode=written mode=clean mode=shared mode=same mode=cut "
    tried += "mode=here mode=slot mode=null "
    tried += " ".join(f"mode={mode}" for mode, _ in FRAMING)
    assert [name for name in MARKUP if f"dialect={name}" not in tried] == []
    defaults = {fault.modes[0] for fault in FAULTS.values() if fault.modes} | {"eot", "turn", "abort"}
    modes = {mode for fault in FAULTS.values() for mode in fault.modes} - defaults
    assert [mode for mode in sorted(modes) if f"mode={mode}" not in tried] == []
