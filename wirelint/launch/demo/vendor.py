"""Agents with a faulty vendor of Kimi K2, without and with wirelint in between: how many tool calls succeed.

Theory of operation. The vendor has the reported faults: a model, a chat template and a tool-call parser that disagree.
There is no fixed rate of broken replies. The model writes its native tokens; the result depends on the
request, as in the report: after ids that a client stripped the model announces a call instead of making it; ids of
another system (`search:2`) are imitated, and the parser, which splits at the dot, drops those calls or leaves them
in the text; a tool in the history is called although it is not declared; a prompt without the generation header gives a
reply with the header and the raw tokens in the text. `odds` in steps.toml has the shares of the turns in which such a
fault is possible. Chance is drawn from the conversation itself, so the same request always gets the same reply.

References: "Chasing 100% Accuracy", vLLM blog, October 2025 (218 and 971 successful calls of some 1,300; 316 schema
errors, most of them undeclared tools); moonshotai/Kimi-K2-Instruct, docs/tool_call_guidance.md.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import jsonschema_rs
import orjson

from wirelint.apis.openai_chat import API
from wirelint.capture.record import Record, Sent
from wirelint.capture.replay import begin, delivered_reply, finish, respond
from wirelint.engine import Engine
from wirelint.fix import FixPolicy
from wirelint.launch.demo.clients import TABLE, Json, read_chat
from wirelint.mock.answer import json_answer, stream_answer
from wirelint.mock.apis import OPENAI, Turn
from wirelint.mock.plan import Call, Options, Reply, dump_json
from wirelint.model import Request, Text, ToolResult
from wirelint.registry import Registry
from wirelint.rewrite import rewrite_reply
from wirelint.rewrite.request import mend_request
from wirelint.rule import Rule

MODEL = "moonshotai/Kimi-K2-Instruct-0905"
ODDS: Mapping[str, float] = TABLE["odds"]
FAILED = "error: "
"""The beginning of the result of a refused call. The model then tries again."""

_HEADER = "<|im_assistant|>assistant<|im_middle|>"
_SECTION = "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>"
_CALL = "<|tool_call_begin|>{}<|tool_call_argument_begin|>{}<|tool_call_end|>"
_NATIVE = re.compile(r"functions\.[\w-]+:\d+")
_SHORT = re.compile(r"[A-Za-z_]\w*:\d+")
_STRIPPED = re.compile(r"functions\w+\d+")
_PARTS = re.compile(r"\[\{'type': 'text'")


class Vendor:
    """Answers requests to `/v1/chat/completions`, whole and streamed. The same request always gets the same answer."""

    def __init__(self, seed: int, odds: Mapping[str, float] = ODDS) -> None:
        self._seed, self._odds = seed, odds

    def answer(self, body: bytes) -> tuple[str, bytes]:
        """Return content type and body of the reply."""
        request = orjson.loads(body)
        turn = _Turn.read(API.read_request(request, ""), self._seed, self._odds)
        reply = _reply(turn)
        ask = OPENAI.read_request(request, OPENAI.path)
        context = Turn(OPENAI, ask, MODEL, 1, Options(), random.Random(f"{self._seed}/{turn.key}"), (reply,))
        if ask.stream:
            made = stream_answer(OPENAI.make_events(context), "events")
        else:
            made = json_answer(200, OPENAI.make_body(context))
        return dict(made.headers)["content-type"], b"".join(step for step in made.steps if isinstance(step, bytes))


@dataclass(frozen=True, slots=True)
class _Turn:
    """A request as the model sees it. `wanted`: the items of the user, `done`: the number of results so far."""

    odds: Mapping[str, float]
    key: str
    wanted: tuple[str, ...]
    done: int
    ids: tuple[str, ...]
    strange: tuple[str, ...]
    parts: bool

    @classmethod
    def read(cls, request: Request, seed: int, odds: Mapping[str, float]) -> _Turn:
        messages = request.messages
        at = max(number for number, message in enumerate(messages) if message.role == "user")
        question, declared = messages[at].words, {tool.name for tool in request.tools}
        results = [result.text for message in messages[at:] for result in message.results]
        texts = [part.text for part in request.parts if isinstance(part, Text | ToolResult)]
        return cls(
            odds=odds,
            key=f"{seed}/{question}/{len(messages) - at}",
            wanted=tuple(re.findall(r"“([^”]+)”", question)),
            done=sum(not result.startswith(FAILED) for result in results),
            ids=tuple(call.id or "" for call in request.calls),
            strange=tuple(call.name or "" for call in request.calls if call.name not in declared),
            parts=any(map(_PARTS.search, texts)),
        )

    def chance(self, what: str) -> bool:
        return random.Random(f"{self.key}/{what}").random() < self.odds[what]


def _reply(turn: _Turn) -> Reply:
    if turn.done >= len(turn.wanted):
        return Reply(text=f"That is all: {len(turn.wanted)} of {len(turn.wanted)} have come back.")
    item = turn.wanted[turn.done]
    stripped = any(_STRIPPED.fullmatch(id_) for id_ in turn.ids)
    if (stripped and turn.chance("announces")) or (turn.parts and turn.chance("derails")):
        return Reply(text=f"Now I will search the notes for {item}.")
    call = _call(turn, item)
    if turn.chance("headless"):
        if turn.chance("wanders"):
            return Reply(text=f"and then there is {item}, of which the notes may well have something.")
        return Reply(text=f"{_HEADER}{_native(call)}")
    return _parse(turn, call)


def _call(turn: _Turn, item: str) -> Call:
    name = "search_notes"
    arguments: Json = {"query": item, "limit": 5}
    if turn.strange and turn.chance("strays"):
        name, arguments = turn.strange[-1], {"prompt": item}
    elif turn.chance("misspells"):
        name = name.title()
    elif turn.chance("careless"):
        arguments = {"limit": 5} if turn.chance("forgets") else arguments | {"limit": "5"}
    number = len(turn.ids)
    short = any(_SHORT.fullmatch(id_) for id_ in turn.ids) and turn.chance("imitates")
    return Call(f"{name}:{number}" if short else f"functions.{name}:{number}", name, dump_json(arguments))


def _native(call: Call) -> str:
    return _SECTION.format(_CALL.format(call.id, call.arguments))


def _parse(turn: _Turn, call: Call) -> Reply:
    """Return the reply that the serving engine builds from the tokens."""
    if not _NATIVE.fullmatch(call.id):
        return Reply(text="" if turn.chance("swallows") else _native(call))
    reply = Reply(calls=(call,), finish="tool_calls")
    return replace(reply, finish="stop") if turn.chance("misreports") else reply


# An agent like common clients of tool-calling APIs.
#
# It takes calls from the API's own fields, looks at the finish reason, runs calls that are declared and fit the schema,
# returns an error for other calls, and stops at a reply without calls. Markup in the text is not a call to it.

Wire = Callable[[bytes], tuple[str, bytes]]
"""Sends a request body; returns content type and body of the reply."""

Habit = Literal["plain", "imported", "strips ids", "prints parts"]
_TABLE = TABLE["agents"]
_TOOL = _TABLE["tool"]
_VALID = jsonschema_rs.validator_for(_TOOL["parameters"])
_EXTRA = 3
"""Turns that an agent allows beyond one per item."""


@dataclass(frozen=True, slots=True)
class Task:
    """One run: a search per item. `habit` is how its client changes the history that it sends."""

    items: tuple[str, ...]
    habit: Habit
    stream: bool


@dataclass(slots=True)
class Score:
    """Counts of calls in runs, of finish reasons, and of fixes by rule (`repairs`). `refused`: the client cannot run it."""

    runs: int = 0
    needed: int = 0
    succeeded: int = 0
    refused: int = 0
    replies: int = 0
    finishes: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        return self.succeeded / self.needed if self.needed else 0.0


def _run(task: Task, wire: Wire, score: Score) -> None:
    question = f"Search my notes, one search each: {', '.join(f'“{item}”' for item in task.items)}."
    messages = [*(_TABLE["imported"] if task.habit == "imported" else ()), {"role": "user", "content": question}]
    score.runs += 1
    score.needed += len(task.items)
    for _ in range(len(task.items) + _EXTRA):
        tools = [{"type": "function", "function": _TOOL}]
        body = {"model": MODEL, "messages": messages, "tools": tools, "stream": task.stream}
        if task.stream:
            body["stream_options"] = {"include_usage": True}
        kind, reply = wire(json.dumps(body, ensure_ascii=False).encode())
        lines = [line.removeprefix("data: ") for line in reply.decode().splitlines() if line.startswith("data: {")]
        documents = lines if kind.startswith("text/event-stream") else [reply]
        text, calls, finish = read_chat(map(json.loads, documents))
        score.replies += 1
        score.finishes[finish] += 1
        if finish != "tool_calls" or not calls:
            break
        messages.append(_keep(text, calls, task.habit))
        for call, kept in zip(calls, messages[-1]["tool_calls"], strict=True):
            result = _result_of(call)
            succeeded = not result.startswith(FAILED)
            score.succeeded += succeeded
            score.refused += not succeeded
            messages.append({"role": "tool", "tool_call_id": kept["id"], "content": result})


def _keep(content: str, calls: list[Json], habit: Habit) -> Json:
    if habit == "strips ids":
        calls = [{**call, "id": "".join(filter(str.isalnum, call["id"]))} for call in calls]
    if habit == "prints parts":
        content = str([{"type": "text", "text": content}])
    return {"role": "assistant", "content": content, "tool_calls": calls}


def _result_of(call: Json) -> str:
    function = call["function"]
    if function["name"] != "search_notes":
        return f"{FAILED}there is no tool {function['name']}"
    try:
        arguments = json.loads(function["arguments"])
    except json.JSONDecodeError:
        return f"{FAILED}the arguments are not JSON"
    if not _VALID.is_valid(arguments):
        return f"{FAILED}the arguments do not fit"
    return f"2 notes on {arguments['query']}"


RUNS = 325
CALLS_EACH = 4
_URL = "http://vendor.test/v1/chat/completions"
_JSON = (("content-type", "application/json"),)


def tasks(runs: int = RUNS, seed: int = 0) -> list[Task]:
    """Return the tasks; each has other items, and about half of them stream."""
    habits = [habit for habit, many in _TABLE["habits"] for _ in range(many)]
    made = []
    for number in range(runs):
        chance = random.Random(f"{seed}/{number}")
        items = tuple(
            f"{word}, {number + 1}.{at}" for at, word in enumerate(chance.sample(_TABLE["words"], CALLS_EACH))
        )
        made.append(Task(items, habits[number % len(habits)], stream=chance.random() < 0.5))
    return made


def play(made: Iterable[Task], wire: Wire, score: Score | None = None) -> Score:
    score = score or Score()
    for task in made:
        _run(task, wire, score)
    return score


class FixingWire:
    """A wire with the fixes of the proxy, without a process."""

    def __init__(self, wire: Wire, rules: Sequence[Rule], permit: FixPolicy, score: Score) -> None:
        self._wire, self._rules, self._permit, self._score = wire, rules, permit, score
        self._engine = Engine(rules)
        self._number = 0

    def __call__(self, body: bytes) -> tuple[str, bytes]:
        self._number += 1
        record = Record(id=str(self._number), method="POST", url=_URL, request_headers=_JSON, request_body=body)
        session = begin(record)
        if session is None:
            return self._wire(body)
        ledger = self._engine.ledger
        fixed = mend_request(session.head(), body, self._rules, ledger, self._permit)
        kind, reply = self._wire(fixed.body)
        headers = (("content-type", kind),)
        record = replace(record, status=200, response_headers=headers, response_body=reply, end="complete")
        respond(session, record)
        rewritten = rewrite_reply(session, reply, self._rules, ledger, self._permit)
        if rewritten.body is not reply:
            record = replace(record, delivered=Sent(headers, rewritten.body))
        self._engine.check(finish(session, record, delivered_reply(record)))
        self._score.repairs.update(repair.name for repair in (*fixed.repairs, *rewritten.repairs))
        return kind, rewritten.body


def compare(runs: int = RUNS, seed: int = 0) -> tuple[Score, Score]:
    """Run the tasks twice with the same vendor: without wirelint, and with all fixes. Return both scores."""
    registry = Registry.load()
    made, vendor, fixed = tasks(runs, seed), Vendor(seed), Score()
    wire = FixingWire(vendor.answer, registry.rules, registry.permit("unsafe"), fixed)
    return play(made, vendor.answer), play(made, wire, fixed)
