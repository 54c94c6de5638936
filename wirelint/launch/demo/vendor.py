"""A vendor of Kimi K2 with the reported faults: a model, a chat template and a tool-call parser that disagree.

Theory of operation. There is no fixed rate of broken replies. The model writes its native tokens; the result depends on the
request, as in the report: after ids that a client stripped the model announces a call instead of making it; ids of
another system (`search:2`) are imitated, and the parser, which splits at the dot, drops those calls or leaves them
in the text; a tool in the history is called although it is not declared; a prompt without the generation header gives a
reply with the header and the raw tokens in the text. `odds` in steps.toml has the shares of the turns in which such a
fault is possible. Chance is drawn from the conversation itself, so the same request always gets the same reply.

References: "Chasing 100% Accuracy", vLLM blog, October 2025 (218 and 971 successful calls of some 1,300; 316 schema
errors, most of them undeclared tools); moonshotai/Kimi-K2-Instruct, docs/tool_call_guidance.md.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson

from wirelint.apis.openai_chat import API
from wirelint.launch.demo.clients import TABLE
from wirelint.mock.answer import json_answer, stream_answer
from wirelint.mock.apis import OPENAI, Turn
from wirelint.mock.plan import Call, Options, Reply, dump_json
from wirelint.model import Json, Request, Text, ToolResult

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
    arguments: dict[str, Json] = {"query": item, "limit": 5}
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
