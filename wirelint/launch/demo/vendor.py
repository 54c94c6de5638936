"""A vendor of Kimi K2 that errs as one was reported to err: a model, a chat template and a tool-call parser that disagree.

Theory of operation. Nothing here is a rate of broken replies. The model writes its native tokens; what becomes of them
depends on what was sent, as it did in the report: ids that a client stripped make it announce instead of call, ids of
another system (`search:2`) are imitated, and the parser, which splits at the dot, throws those calls away or leaves them
in the text; a tool that stands in the history is called although it is not declared; a prompt without the generation
header comes back with the header and the raw tokens in the text. `Odds` are shares of the turns in which such a thing can
happen. They are drawn from the conversation itself, so two clients that send the same get the same, and one that sends
something else meets the same luck.

References: "Chasing 100% Accuracy", vLLM blog, October 2025 (218 and 971 successful calls of some 1,300; 316 schema
errors, most of them undeclared tools); moonshotai/Kimi-K2-Instruct, docs/tool_call_guidance.md.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace

import orjson

from wirelint.mock.answer import json_answer, stream_answer
from wirelint.mock.api import Envelope, messages_of, object_of, objects_in, string_of, text_of
from wirelint.mock.openai import OpenAIChat
from wirelint.mock.plan import Call, Reply, dump_json
from wirelint.mock.scenario import Options
from wirelint.model import Json

MODEL = "moonshotai/Kimi-K2-Instruct-0905"
FAILED = "error: "
"""How the result of a call begins that could not be run. The model tries again then."""

_HEADER = "<|im_assistant|>assistant<|im_middle|>"
_SECTION = "<|tool_calls_section_begin|>{}<|tool_calls_section_end|>"
_CALL = "<|tool_call_begin|>{}<|tool_call_argument_begin|>{}<|tool_call_end|>"
_NATIVE = re.compile(r"functions\.[\w-]+:\d+")
_SHORT = re.compile(r"[A-Za-z_]\w*:\d+")
_STRIPPED = re.compile(r"functions\w+\d+")
_PARTS = re.compile(r"\[\{'type': 'text'")


@dataclass(frozen=True, slots=True)
class Odds:
    """Shares of the turns in which it can happen. `announces` and the reasons for it are reported, the rest is chosen
    so that the whole comes out as reported."""

    headless: float = 0.33
    """The prompt ends without the header of the assistant's turn, so the parser takes nothing for a call …"""
    wanders: float = 0.06
    """… and the model goes on in plain text instead of writing the header itself."""
    announces: float = 0.8
    """Ids with their dots and colons stripped are in the history."""
    derails: float = 0.5
    """A list of parts, printed as Python prints it, is in the history."""
    imitates: float = 0.7
    """Ids of the form `search:2` are in the history."""
    swallows: float = 0.5
    """The parser drops a call whose id it cannot split; else it leaves it in the text."""
    strays: float = 0.16
    """A tool is in the history that is not declared."""
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
        self._api = OpenAIChat()

    def answer(self, body: bytes) -> tuple[str, bytes]:
        """Content type and body of the reply."""
        request = object_of(orjson.loads(body))
        turn = _Turn.read(request, self._seed)
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
    """A request as the model sees it. `wanted`: what the user asked for, `done`: how many of it have come back."""

    key: str
    wanted: tuple[str, ...]
    done: int
    ids: tuple[str, ...]
    strange: tuple[str, ...]
    parts: bool

    @classmethod
    def read(cls, request: dict[str, Json], seed: int) -> _Turn:
        messages = messages_of(request)
        at = max(number for number, message in enumerate(messages) if message.get("role") == "user")
        asked = text_of(messages[at].get("content"))
        results = [text_of(message.get("content")) for message in messages[at:] if message.get("role") == "tool"]
        declared = {string_of(object_of(tool.get("function")).get("name")) for tool in objects_in(request.get("tools"))}
        calls = [call for message in messages for call in objects_in(message.get("tool_calls"))]
        names = [string_of(object_of(call.get("function")).get("name")) for call in calls]
        return cls(
            key=f"{seed}/{asked}/{len(messages) - at}",
            wanted=tuple(re.findall(r"“([^”]+)”", asked)),
            done=sum(not result.startswith(FAILED) for result in results),
            ids=tuple(string_of(call.get("id")) for call in calls),
            strange=tuple(name for name in names if name not in declared),
            parts=any(_PARTS.search(text_of(message.get("content"))) for message in messages),
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
    """What the serving engine makes of the tokens."""
    if not _NATIVE.fullmatch(call.id):
        return Reply(text="" if turn.chance("swallows", odds.swallows) else _native(call))
    reply = Reply(calls=(call,), finish="tool_calls")
    return replace(reply, finish="stop") if turn.chance("misreports", odds.misreports) else reply
