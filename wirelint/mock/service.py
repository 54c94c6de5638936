"""From a request to an answer, without a socket: routes, scenario, plan, fault, shape.

The same request, scenario, seed and number always give the same bytes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson

from wirelint.mock.answer import Answer, json_answer, shape_answer
from wirelint.mock.anthropic import Anthropic, count_tokens
from wirelint.mock.api import Api, Envelope, RequestError
from wirelint.mock.bedrock import Bedrock
from wirelint.mock.cohere import Cohere
from wirelint.mock.fault import Fault, NotApplicableError, Turn
from wirelint.mock.faults import FAULTS, resolve
from wirelint.mock.framing import stream_answer
from wirelint.mock.gemini import Gemini
from wirelint.mock.hosted_anthropic import BedrockAnthropic, VertexAnthropic
from wirelint.mock.mistral import Mistral
from wirelint.mock.ollama import OllamaChat, OllamaGenerate
from wirelint.mock.openai_chat import OpenAIChat
from wirelint.mock.openai_responses import OpenAIResponses
from wirelint.mock.plan import Reply, plan_reply
from wirelint.mock.raw_prompts import DeepInfra, OpenAICompletions
from wirelint.mock.scenario import HEADER, HEALTHY, MODEL_PREFIX, Options, Scenario, ScenarioError, parse_scenario
from wirelint.model import Json

_OPENAI, _ANTHROPIC = OpenAIChat(), Anthropic()
APIS: tuple[Api, ...] = (
    Mistral(),
    _OPENAI,
    _ANTHROPIC,
    OpenAIResponses(),
    OpenAICompletions(),
    DeepInfra(),
    Gemini(),
    OllamaChat(),
    OllamaGenerate(),
    Cohere(),
    Bedrock(),
    BedrockAnthropic(),
    VertexAnthropic(),
)
_MODELS = ("gpt-4.1", "claude-sonnet-4-5", "moonshotai/kimi-k2.5", "deepseek-chat", "mistral-large-latest")


@dataclass(frozen=True, slots=True)
class Service:
    """Answers requests. `faults` are played in turn when a request asks for none itself."""

    seed: int = 0
    pace: float = 0.0
    faults: tuple[Scenario, ...] = ()

    @classmethod
    def of(cls, seed: int, pace: float, faults: tuple[str, ...]) -> Service:
        """Reads the scenarios of a command line. Raises ScenarioError."""
        scenarios = tuple(parse_scenario(text, pace=pace) for text in faults)
        for scenario in scenarios:
            resolve(scenario)
        return cls(seed, pace, scenarios)

    def answer(self, number: int, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """`number` counts the requests that reach an API, from 1; `headers` have lower-case names."""
        path = target.partition("?")[0].rstrip("/")
        api = next((one for one in APIS if re.fullmatch(one.path, path) and one.serves(headers)), None)
        if method == "POST" and api is not None:
            return self._answer_api(api, number, target, headers, body)
        if method == "POST" and path == f"{_ANTHROPIC.path}/count_tokens":
            return _count(body)
        if method in ("GET", "HEAD") and path == "/v1/models":
            return json_answer(200, _list_models(anthropic="anthropic-version" in headers))
        shape = _ANTHROPIC if path.startswith(_ANTHROPIC.path) or "anthropic-version" in headers else _OPENAI
        return json_answer(404, shape.make_error(404, f"Unknown request URL: {method} {path!a}."))

    def reaches_api(self, method: str, target: str) -> bool:
        """Whether a request counts, for the numbers and for the turns of the faults."""
        path = target.partition("?")[0].rstrip("/")
        return method == "POST" and any(re.fullmatch(api.path, path) for api in APIS)

    def _answer_api(self, api: Api, number: int, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        try:
            ask = api.read_request(_decode_body(body), target)
            scenario = self._select(number, headers, ask.model)
            fault = resolve(scenario)
        except (RequestError, ScenarioError) as error:
            return json_answer(400, api.make_error(400, str(error)))
        options = scenario.options
        model = options.model or ask.model
        rng = random.Random(f"{self.seed}/{number}")

        def mint(name: str, count: int) -> str:
            return api.mint_call_id(model, rng, name, count, count - ask.calls_before)

        turn = Turn(api, ask, options, rng, mint)
        envelope = Envelope(model, number, options, rng)
        said = scenario.text
        try:
            answer = _make_answer(turn, envelope, fault)
        except NotApplicableError as reason:
            said = f"{HEALTHY} ({scenario.fault}: {reason})"
            answer = _make_answer(turn, envelope, None)
        answer = replace(answer, headers=(*answer.headers, (HEADER, said)))
        return shape_answer(answer, options, headers.get("accept-encoding", ""), api.ping)

    def _select(self, number: int, headers: Mapping[str, str], model: str) -> Scenario:
        if HEADER in headers:
            return parse_scenario(headers[HEADER], separator=";", pace=self.pace)
        if model.startswith(MODEL_PREFIX):
            return parse_scenario(model.removeprefix(MODEL_PREFIX), pace=self.pace)
        if self.faults:
            return self.faults[(number - 1) % len(self.faults)]
        return Scenario(options=Options(pace=self.pace))


def _make_answer(turn: Turn, envelope: Envelope, fault: Fault | None) -> Answer:
    ask, api = turn.ask, turn.api
    if fault and fault.stream and not ask.stream:
        raise NotApplicableError("it exists in event streams only")
    if fault and fault.needs and fault.needs not in api.abilities:
        raise NotApplicableError(f"{api.name} has no words for it")
    replies = tuple(_make_reply(turn, fault) for _ in range(ask.choices))
    headers = api.make_headers(envelope)
    if ask.stream:
        events = api.make_events(replies, ask, envelope)
        if fault and fault.events:
            events = fault.events(events, turn)
        answer = stream_answer(events, ask.framing, headers)
    else:
        answer = json_answer(200, api.make_body(replies, ask, envelope), headers)
    return fault.answer(answer, turn) if fault and fault.answer else answer


def _make_reply(turn: Turn, fault: Fault | None) -> Reply:
    ask, options = turn.ask, turn.options
    if fault and fault.calls and options.calls is None and ask.result is None:
        options = replace(options, calls=fault.calls)
    reply = plan_reply(ask, options, turn.rng, turn.mint)
    if fault is None or fault.reply is None:
        return reply
    if len(reply.calls) < fault.calls:
        raise NotApplicableError(
            f"it needs {fault.calls} tool call(s); declare a tool, or ask for calls=N after a result"
        )
    return fault.reply(reply, turn)


def _decode_body(body: bytes) -> dict[str, Json]:
    try:
        value: Json = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError("We could not parse the JSON body of your request.") from error
    if not isinstance(value, dict):
        raise RequestError("The body of the request must be a JSON object.")
    return value


def _count(body: bytes) -> Answer:
    try:
        return json_answer(200, {"input_tokens": count_tokens(_decode_body(body))})
    except RequestError as error:
        return json_answer(400, _ANTHROPIC.make_error(400, str(error)))


def _list_models(*, anthropic: bool) -> Json:
    names = [*_MODELS, *(f"{MODEL_PREFIX}{name}" for name in (HEALTHY, *FAULTS))]
    if anthropic:
        entries: list[Json] = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2025-10-09T00:00:00Z"} for name in names
        ]
        return {"data": entries, "has_more": False, "first_id": names[0], "last_id": names[-1]}
    models: list[Json] = [
        {"id": name, "object": "model", "created": 1_760_000_000, "owned_by": "wirelint"} for name in names
    ]
    return {"object": "list", "data": models}
