"""A vendor of Kimi K2 with the reported faults: a model, a chat template and a tool-call parser that disagree.

Theory of operation. There is no fixed rate of broken replies. The model writes its native tokens; the result depends on the
request, as in the report: after ids that a client stripped the model announces a call instead of making it; ids of
another system (`search:2`) are imitated, and the parser, which splits at the dot, drops those calls or leaves them
in the text; a tool in the history is called although it is not declared; a prompt without the generation header gives a
reply with the header and the raw tokens in the text. `Odds` are shares of the turns in which such a fault is possible.
Chance is drawn from the conversation itself, so the same request always gets the same reply.

References: "Chasing 100% Accuracy", vLLM blog, October 2025 (218 and 971 successful calls of some 1,300; 316 schema
errors, most of them undeclared tools); moonshotai/Kimi-K2-Instruct, docs/tool_call_guidance.md.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace

import orjson

from wirelint.apis.openai_chat import API
from wirelint.mock.answer import json_answer, stream_answer
from wirelint.mock.apis import OPENAI, Envelope
from wirelint.mock.plan import Call, Options, Reply, dump_json
from wirelint.model import Json, Request, Text, ToolResult

MODEL = "moonshotai/Kimi-K2-Instruct-0905"
FAILED = "error: "
"""The beginning of the result of a refused call. The model then tries again."""

_HEADER = "<|im_assistant|>assistant<|im_middle|>"
_SECTION = "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>"
_CALL = "<|tool_call_begin|>{}<|tool_call_argument_begin|>{}<|tool_call_end|>"
_NATIVE = re.compile(r"functions\.[\w-]+:\d+")
_SHORT = re.compile(r"[A-Za-z_]\w*:\d+")
_STRIPPED = re.compile(r"functions\w+\d+")
_PARTS = re.compile(r"\[\{'type': 'text'")


@dataclass(frozen=True, slots=True)
class Odds:
    """Shares of the turns in which a fault is possible. `announces` and its reasons are reported; the others are chosen so
    that the totals are those of the report."""

    headless: float = 0.33
    """The prompt ends without the header of the assistant's turn, so the parser recognises no call …"""
    wanders: float = 0.06
    """… and the model continues in plain text instead of writing the header itself."""
    announces: float = 0.8
    """The history has ids without their dots and colons."""
    derails: float = 0.5
    """The history has a list of parts as Python prints it."""
    imitates: float = 0.7
    """The history has ids of the form `search:2`."""
    swallows: float = 0.5
    """The parser drops a call whose id it cannot split; else it leaves it in the text."""
    strays: float = 0.16
    """The history has a tool that is not declared."""
    misspells: float = 0.03
    careless: float = 0.12
    """Arguments break the schema: a number as text, more often than a value that is missing."""
    misreports: float = 0.06
    """A call ends with `stop`."""


class Vendor:
    """Answers requests to `/v1/chat/completions`, whole and streamed. The same request always gets the same answer."""

    def __init__(self, seed: int = 0, odds: Odds | None = None) -> None:
        self._seed = seed
        self._odds = odds or Odds()
        self._api = OPENAI

    def answer(self, body: bytes) -> tuple[str, bytes]:
        """Return content type and body of the reply."""
        request = orjson.loads(body)
        turn = _Turn.read(API.read_request(request, ""), self._seed)
        reply = _reply(turn, self._odds)
        ask = self._api.read_request(request, self._api.path)
        envelope = Envelope(MODEL, 1, Options(), random.Random(f"{self._seed}/{turn.key}"))
        if ask.stream:
            made = stream_answer(self._api.make_events((reply,), ask, envelope), "events")
        else:
            made = json_answer(200, self._api.make_body((reply,), ask, envelope))
        return dict(made.headers)["content-type"], b"".join(step for step in made.steps if isinstance(step, bytes))


@dataclass(frozen=True, slots=True)
class _Turn:
    """A request as the model sees it. `wanted`: the items of the user, `done`: the number of results so far."""

    key: str
    wanted: tuple[str, ...]
    done: int
    ids: tuple[str, ...]
    strange: tuple[str, ...]
    parts: bool

    @classmethod
    def read(cls, request: Request, seed: int) -> _Turn:
        messages = request.messages
        at = max(number for number, message in enumerate(messages) if message.role == "user")
        question, declared = messages[at].words, {tool.name for tool in request.tools}
        results = [result.text for message in messages[at:] for result in message.results]
        texts = [part.text for part in request.parts if isinstance(part, Text | ToolResult)]
        return cls(
            key=f"{seed}/{question}/{len(messages) - at}",
            wanted=tuple(re.findall(r"“([^”]+)”", question)),
            done=sum(not result.startswith(FAILED) for result in results),
            ids=tuple(call.id or "" for call in request.calls),
            strange=tuple(call.name or "" for call in request.calls if call.name not in declared),
            parts=any(map(_PARTS.search, texts)),
        )

    def chance(self, what: str, odds: float) -> bool:
        return random.Random(f"{self.key}/{what}").random() < odds


def _reply(turn: _Turn, odds: Odds) -> Reply:
    if turn.done >= len(turn.wanted):
        return Reply(text=f"That is all: {len(turn.wanted)} of {len(turn.wanted)} have come back.")
    item = turn.wanted[turn.done]
    stripped = any(_STRIPPED.fullmatch(id_) for id_ in turn.ids)
    if (stripped and turn.chance("announces", odds.announces)) or (turn.parts and turn.chance("derails", odds.derails)):
        return Reply(text=f"Now I will search the notes for {item}.")
    call = _call(turn, item, odds)
    if turn.chance("headless", odds.headless):
        if turn.chance("wanders", odds.wanders):
            return Reply(text=f"and then there is {item}, of which the notes may well have something.")
        return Reply(text=f"{_HEADER}{_native(call)}")
    return _parse(turn, call, odds)


def _call(turn: _Turn, item: str, odds: Odds) -> Call:
    name = "search_notes"
    arguments: dict[str, Json] = {"query": item, "limit": 5}
    if turn.strange and turn.chance("strays", odds.strays):
        name, arguments = turn.strange[-1], {"prompt": item}
    elif turn.chance("misspells", odds.misspells):
        name = name.title()
    elif turn.chance("careless", odds.careless):
        arguments = {"limit": 5} if turn.chance("forgets", 0.3) else arguments | {"limit": "5"}
    number = len(turn.ids)
    short = any(_SHORT.fullmatch(id_) for id_ in turn.ids) and turn.chance("imitates", odds.imitates)
    return Call(f"{name}:{number}" if short else f"functions.{name}:{number}", name, dump_json(arguments))


def _native(call: Call) -> str:
    return _SECTION.format(_CALL.format(call.id, call.arguments))


def _parse(turn: _Turn, call: Call, odds: Odds) -> Reply:
    """Return the reply that the serving engine builds from the tokens."""
    if not _NATIVE.fullmatch(call.id):
        return Reply(text="" if turn.chance("swallows", odds.swallows) else _native(call))
    reply = Reply(calls=(call,), finish="tool_calls")
    return replace(reply, finish="stop") if turn.chance("misreports", odds.misreports) else reply
