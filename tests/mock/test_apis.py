"""Every API of the mock server as the readers understand it: text, calls, leaks, errors, whole and streamed."""

from __future__ import annotations

import dataclasses
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.apis.talk_bedrock_converse import record as converse_record
from tests.build import Assistant, Call, Result, Talk, User, lint, read, schema, some
from tests.fixes.drive import run
from tests.selection import in_batches
from tests.tables import tables
from wirelint.mock.answer import Answer, Pause
from wirelint.mock.apis import APIS
from wirelint.mock.plan import MARKUP
from wirelint.mock.scenario import HEADER
from wirelint.mock.service import Service
from wirelint.model import Exchange, Reasoning, Text, ToolCall

QUESTION = User("What is the weather in Paris like?")
TOOLS = {"get_weather": schema(city="string", days="integer")}
RAW = ("openai.completions", "deepinfra.inference")
"""Nothing there reads calls: they are text."""
WITHOUT_TOOLS = (*RAW, "ollama.generate")


@dataclasses.dataclass(frozen=True)
class Route:
    """An API at one of its paths. `path` replaces that of the talk's own record; `{}` is what a stream adds to it."""

    api: str
    name: str = ""
    path: str = ""
    stream: str = ""
    body: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.name or self.api


ROUTES = tuple(Route(**route) for route in tables(__file__)["routes"])
ROUTED = in_batches("route", ROUTES, ids=lambda route: route.id)
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def ask(route: Route, talk: Talk, stream: bool, scenario: str = "") -> tuple[Answer, dict[str, Any]]:
    """What the server answers to the request of a talk, and both as a record."""
    # The record of a streamed talk needs botocore for its reply, which nobody asked for.
    if route.api == "bedrock.converse":
        made = converse_record(talk, stream=False)
        made["request"]["url"] += "-stream" if stream else ""
    else:
        made = talk.record(route.api, stream)
    request = made["request"]
    if route.path:
        request["url"] = "http://llm.test" + route.path.format(route.stream.split()[stream])
        body = {**json.loads(request["body"]), **route.body}
        if route.body:
            body.pop("model", None)
            body.pop("stream", None)
        request["body"] = json.dumps(body)
    if scenario:
        request["headers"][HEADER] = scenario
    url = urlsplit(request["url"])
    target = f"{url.path}?{url.query}" if url.query else url.path
    headers = {**request["headers"], "host": url.netloc}
    answer = Service(seed=5).answer(1, "POST", target, headers, request["body"].encode())
    body_sent = b"".join(step for step in answer.steps if not isinstance(step, Pause))
    made["response"] = {"status": answer.status, "headers": dict(answer.headers), "body": body_sent}
    return answer, made


def said(exchange: Exchange) -> tuple[str, str, list[tuple[str, Any]]]:
    """Text, reasoning and calls of the reply."""
    parts = [part for choice in some(exchange.reply).choices for part in choice.parts]
    text = "".join(part.text for part in parts if isinstance(part, Text))
    thought = "".join(part.text for part in parts if isinstance(part, Reasoning))
    return text, thought, [(part.name or "", part.arguments.value) for part in parts if isinstance(part, ToolCall)]


def found(route: Route, talk: Talk, stream: bool, scenario: str = "") -> Exchange:
    if stream and "bedrock" in route.id:
        pytest.importorskip("botocore")
    answer, record = ask(route, talk, stream, scenario)
    assert (answer.status, answer.streamed) == (200, stream)
    exchange = read(record)
    assert exchange.api == route.api
    assert exchange.reply is not None
    assert (exchange.reply.faults, exchange.reply.error, exchange.reply.finished) == ((), None, True)
    return exchange


def test_every_api_is_asked_for() -> None:
    assert {api.name for api in APIS} == {route.api for route in ROUTES}


@BOTH
@ROUTED
def test_a_question_gets_an_answer(route: Route, stream: bool) -> None:
    text, thought, calls = said(found(route, Talk(history=(QUESTION,)), stream, "reasoning=1"))
    assert ("weather" in text, calls) == (True, [])
    assert "The user asks about" in (text if route.api in RAW else thought)


@BOTH
@ROUTED
def test_a_tool_is_called(route: Route, stream: bool) -> None:
    exchange = found(route, Talk(history=(QUESTION,), tools=TOOLS), stream)
    text, _, calls = said(exchange)
    if route.api == "ollama.generate":
        assert calls == []
    elif route.api in RAW:
        assert '<tool_call>\n{"name": "get_weather", "arguments": {"city":"Paris"' in text
    else:
        [(name, arguments)] = calls
        assert (name, arguments["city"], type(arguments["days"])) == ("get_weather", "Paris", int)
        counted = {"stream_options": {"include_usage": True}} if stream and route.api == "openai.chat" else {}
        assert lint([ask(route, Talk(history=(QUESTION,), tools=TOOLS, request=counted), stream)[1]]) == ()


@BOTH
@in_batches("route", [route for route in ROUTES if route.api not in WITHOUT_TOOLS], ids=lambda route: route.id)
def test_a_result_is_quoted(route: Route, stream: bool) -> None:
    called = Assistant(calls=(Call("get_weather", {"city": "Paris", "days": 1}, "call_a1b2c3d4e"),))
    talk = Talk(history=(QUESTION, called, Result("call_a1b2c3d4e", "18 degrees")), tools=TOOLS)
    text, _, calls = said(found(route, talk, stream))
    assert ("18 degrees" in text, "get_weather" in text, calls) == (True, True, [])


@BOTH
@in_batches("route", [route for route in ROUTES if route.api != "ollama.generate"], ids=lambda route: route.id)
def test_a_call_leaks(route: Route, stream: bool) -> None:
    talk = Talk(history=(QUESTION,), tools=TOOLS)
    exchange = found(route, talk, stream, "fault=xml-leak;dialect=kimi_invoke_arg")
    text, _, calls = said(exchange)
    assert ('<invoke name="get_weather">' in text, calls) == (True, [])


@in_batches("dialect", MARKUP)
def test_a_call_leaks_as_the_markup_of_each_dialect(dialect: str) -> None:
    _, record = ask(ROUTES[0], Talk(history=(QUESTION,), tools=TOOLS), True, f"fault=xml-leak;dialect={dialect}")
    result = run(record, ["xml-leak"])
    assert dialect.removesuffix("_xml").removesuffix("_antml") in result.findings[0].message
    assert [call.name for call in some(result.after.reply).choices[0].calls] == ["get_weather"]


@BOTH
@ROUTED
def test_an_error_is_the_vendors(route: Route, stream: bool) -> None:
    answer, record = ask(route, Talk(history=(QUESTION,)), stream, "fault=http-error;status=429")
    assert (answer.status, answer.streamed) == (429, False)
    assert "overloaded" in record["response"]["body"].decode()


@ROUTED
def test_an_error_in_a_stream(route: Route) -> None:
    if "bedrock" in route.id:
        pytest.importorskip("botocore")
    _, record = ask(route, Talk(history=(QUESTION,)), True, "fault=error-in-200")
    reply = some(read(record).reply)
    assert reply.error is not None


@ROUTED
def test_a_request_that_says_nothing_is_refused(route: Route) -> None:
    _, record = ask(route, Talk(history=(QUESTION,)), False)
    path = urlsplit(record["request"]["url"]).path
    answer = Service().answer(1, "POST", path, {"host": "api.mistral.ai" if "mistral" in route.api else ""}, b"{}")
    assert answer.status == 400


def test_what_an_api_has_no_words_for_is_not_played() -> None:
    answer, _ = ask(Route("google.generate_content"), Talk(history=(QUESTION,), tools=TOOLS), True, "fault=id-unstable")
    assert dict(answer.headers)[HEADER] == "healthy (id-unstable: google.generate_content has no words for it)"
