"""The mock server without sockets: route, scenario, plan, fault, shape; and an MCP server at POST /mcp.

The same request, scenario, seed and number always give the same bytes, until a line of a script is used up.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson

from wirelint.jsonvalues import mapping, text
from wirelint.mock.answer import Answer, Event, Headers, json_answer, shape_answer, stream_answer
from wirelint.mock.apis import ANTHROPIC, APIS, OPENAI, Api, RequestError, Turn, estimate_tokens, objects_in
from wirelint.mock.faults import FAULTS, Fault, Message, NotApplicableError, resolve
from wirelint.mock.plan import DEFAULTS, Ask, Options, Reply, dump_json, mint_id, plan_reply
from wirelint.mock.scenario import HEADER, HEALTHY, MODEL_PREFIX, Line, Scenario, ScenarioError, Script, parse_scenario
from wirelint.model import Json

TOOLS_PATH = "/mcp"
TOOLS_NAME = "mcp"
_MODELS = ("gpt-4.1", "claude-sonnet-4-5", "moonshotai/kimi-k2.5", "deepseek-chat", "mistral-large-latest")


@dataclass(frozen=True, slots=True)
class Service:
    """Answers requests. A request without a scenario of its own gets one from the script, then from the faults: one of
    those with a share by chance, else those without in turn. `base` has the options of all of these."""

    seed: int = 0
    base: Options = DEFAULTS
    faults: tuple[Scenario, ...] = ()
    lines: tuple[Line, ...] = ()
    used: Counter[int] = field(default_factory=Counter)
    """Number of answers by line of the script."""

    @classmethod
    def of(
        cls, seed: int | None, base: Options = DEFAULTS, faults: Sequence[str] = (), script: Script | None = None
    ) -> Service:
        """Parse the scenarios of a command line. `seed` None: that of the script. Raises ScenarioError."""
        script = script or Script()
        scenarios = tuple(parse_scenario(text, base=base) for text in (*faults, *script.faults))
        for scenario in (*scenarios, *(line.scenario for line in script.lines)):
            resolve(scenario)
        if sum(scenario.share or 0 for scenario in scenarios) > 1:
            raise ScenarioError("the shares of the faults add up to more than 1")
        return cls((script.seed or 0) if seed is None else seed, base, scenarios, script.lines)

    def answer(self, number: int, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Answer one request. `number` counts the requests to an API from 1; `headers` have lower-case names."""
        path = target.partition("?")[0].rstrip("/")
        api = next((one for one in APIS if re.fullmatch(one.path, path) and one.serves(headers)), None)
        if method == "POST" and api is not None:
            return self._answer_api(api, number, target, headers, body)
        if path == TOOLS_PATH:
            return self._answer_tools(number, method, headers, body)
        if method == "POST" and path == f"{ANTHROPIC.path}/count_tokens":
            try:
                return json_answer(200, {"input_tokens": estimate_tokens(_decode_body(body))})
            except RequestError as error:
                return json_answer(400, ANTHROPIC.make_error(400, str(error)))
        if method in ("GET", "HEAD") and path == "/v1/models":
            return json_answer(200, _list_models(anthropic="anthropic-version" in headers))
        shape = ANTHROPIC if path.startswith(ANTHROPIC.path) or "anthropic-version" in headers else OPENAI
        return json_answer(404, shape.make_error(404, f"Unknown request URL: {method} {path!a}."))

    def reaches_api(self, method: str, target: str) -> bool:
        """Return True if a request counts for the numbers and for the turns of the faults."""
        path = target.partition("?")[0].rstrip("/")
        return method == "POST" and (path == TOOLS_PATH or any(re.fullmatch(api.path, path) for api in APIS))

    def _answer_api(self, api: Api, number: int, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        try:
            ask = api.read_request(_decode_body(body), target)
            line, scenario = self._select(number, api.name, headers, ask)
            fault = resolve(scenario)
        except (RequestError, ScenarioError) as error:
            return json_answer(400, api.make_error(400, str(error)))
        options, rng = scenario.options, random.Random(f"{self.seed}/{number}")
        turn = Turn(api, ask, options.model or ask.model, number, options, rng)
        scripted = line.reply(ask, turn.mint) if line is not None else None
        applied = scenario.text
        try:
            answer = _make_answer(turn, fault, scripted)
        except NotApplicableError as reason:
            applied = f"{HEALTHY} ({scenario.fault}: {reason})"
            answer = _make_answer(turn, None, scripted)
        answer = replace(answer, headers=(*answer.headers, (HEADER, applied)))
        return shape_answer(answer, options, headers.get("accept-encoding", ""), api.ping)

    def _answer_tools(self, number: int, method: str, headers: Mapping[str, str], body: bytes) -> Answer:
        if method != "POST":
            # The server opens no stream for its own messages, and has no session state to delete.
            return Answer(405 if method == "GET" else 200, (("allow", "POST, DELETE"),), (), length=0)
        try:
            _, scenario = self._select(number, TOOLS_NAME, headers, Ask(model=""))
            fault = resolve(scenario)
            rng = random.Random(f"{self.seed}/{number}")
            answer, played = _answer_rpc(body, headers, fault, scenario.options.mode, rng)
        except ValueError as error:
            refusal: Json = {"code": -32700, "message": str(error)}
            return json_answer(400, {"jsonrpc": "2.0", "id": None, "error": refusal})
        applied = scenario.text if played or fault is None else f"{HEALTHY} ({scenario.fault}: nothing here to act on)"
        answer = replace(answer, headers=(*answer.headers, (HEADER, applied)))
        return shape_answer(answer, scenario.options, headers.get("accept-encoding", ""))

    def _select(self, number: int, api: str, headers: Mapping[str, str], ask: Ask) -> tuple[Line | None, Scenario]:
        chance = random.Random(f"{self.seed}/{number}/share").random()
        if HEADER in headers:
            return None, _by_chance(parse_scenario(headers[HEADER], separator=";", base=self.base), chance)
        if ask.model.startswith(MODEL_PREFIX):
            return None, _by_chance(parse_scenario(ask.model.removeprefix(MODEL_PREFIX), base=self.base), chance)
        for at, line in enumerate(self.lines):
            if line.when.fits(api, ask) and (line.times is None or self.used[at] < line.times):
                self.used[at] += 1
                return line, _by_chance(line.scenario, chance)
        for scenario in self.faults:
            if scenario.share is not None:
                if chance < scenario.share:
                    return None, scenario
                chance -= scenario.share
        always = [scenario for scenario in self.faults if scenario.share is None]
        return None, always[(number - 1) % len(always)] if always else Scenario(options=self.base)


def _by_chance(scenario: Scenario, chance: float) -> Scenario:
    if scenario.share is None or chance < scenario.share:
        return scenario
    return replace(scenario, fault=None, text=HEALTHY)


def _make_answer(turn: Turn, fault: Fault | None, scripted: Reply | None) -> Answer:
    ask, api = turn.ask, turn.api
    if fault and fault.stream and not ask.stream:
        raise NotApplicableError("it exists in event streams only")
    if fault and not api.abilities.issuperset(fault.needs):
        raise NotApplicableError(f"{api.name} has no words for it")
    turn = replace(turn, replies=tuple(_make_reply(turn, fault, scripted) for _ in range(ask.choices)))
    headers = api.make_headers(turn)
    if ask.stream:
        events = api.make_events(turn)
        if fault and fault.events:
            events = fault.events(events, turn)
        answer = stream_answer(events, ask.framing, headers)
    else:
        answer = json_answer(200, api.make_body(turn), headers)
    return fault.answer(answer, turn) if fault and fault.answer else answer


def _make_reply(turn: Turn, fault: Fault | None, scripted: Reply | None) -> Reply:
    ask, options = turn.ask, turn.options
    if fault and fault.calls and options.calls is None and ask.result is None:
        options = replace(options, calls=fault.calls)
    reply = scripted or plan_reply(ask, options, turn.rng, turn.mint)
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


# --- the MCP server ---------------------------------------------------------------------------------------------------
# Two tools that find and keep notes, over streamable HTTP: JSON, or an event stream for a client that accepts nothing else.
# https://modelcontextprotocol.io/specification/2025-06-18/basic/transports

_VERSION = "2025-06-18"
_QUERY: Json = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
_TITLE: Json = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
_TOOLS: Json = [
    {"name": "search_notes", "description": "Search the notes.", "inputSchema": _QUERY},
    {"name": "add_note", "description": "Keep a note.", "inputSchema": _TITLE},
]


def _answer_rpc(
    body: bytes, headers: Mapping[str, str], fault: Fault | None, mode: str, rng: random.Random
) -> tuple[Answer, bool]:
    """Return the answer to a POST, and True if the fault changed it. Raises ValueError for anything but JSON-RPC."""
    document: Json = orjson.loads(body)
    requests = objects_in(document if isinstance(document, list) else [document])
    if not requests or not all(one.get("jsonrpc") == "2.0" for one in requests):
        raise ValueError("a JSON-RPC 2.0 message is expected, or a list of them")
    healthy = [_respond(one) for one in requests if "method" in one and "id" in one]
    answers = fault.tools(requests, healthy, mode) if fault is not None and fault.tools is not None else healthy
    played = answers != healthy
    fields: Headers = ()
    if any(one.get("method") == "initialize" for one in requests):
        fields = (("mcp-session-id", mint_id(rng, "{hex 32}")),)
    if not answers:
        return Answer(202, fields, (), length=0), played
    accepted = headers.get("accept", "")
    if "text/event-stream" in accepted and "application/json" not in accepted:
        return stream_answer([Event("delta", dump_json(one), "message") for one in answers], "events", fields), played
    whole: Json = list(answers) if isinstance(document, list) else answers[0]
    return json_answer(200, whole, fields), played


def _respond(request: Message) -> Message:
    head: Message = {"jsonrpc": "2.0", "id": request["id"]}
    params = mapping(request.get("params"))
    match request.get("method"):
        case "initialize":
            version = text(params.get("protocolVersion")) or _VERSION
            server: Json = {"name": "wirelint-mock", "version": "1"}
            return head | {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}}
        case "ping":
            return head | {"result": {}}
        case "tools/list":
            return head | {"result": {"tools": _TOOLS}}
        case "tools/call":
            return head | {"result": _run(text(params.get("name")) or "", mapping(params.get("arguments")))}
        case _:
            return head | {"error": {"code": -32601, "message": "Method not found"}}


def _run(name: str, arguments: Message) -> Json:
    match name:
        case "search_notes":
            said = f"2 notes about {text(arguments.get('query')) or 'that'}: Plans, Minutes of May"
        case "add_note":
            said = f"kept as {text(arguments.get('title')) or 'Untitled'}"
        case _:
            return {"content": [{"type": "text", "text": f"Unknown tool: {name}"}], "isError": True}
    return {"content": [{"type": "text", "text": said}], "isError": False}
