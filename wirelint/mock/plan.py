"""What a reply says, before any API gives it a shape: reasoning, text, calls, and why it ends.

`Ask` is a request as a model would understand it, `Reply` one choice of the answer. `plan_reply` is the healthy model:
it calls a tool when a user speaks and tools are declared, quotes the result when one has come back, talks otherwise.
Faults are changes of a `Reply` (`faults`), shapes are the business of `openai_chat` and `anthropic`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import orjson

from wirelint.mock.scenario import Options
from wirelint.mock.schema_values import Topic, make_arguments
from wirelint.model import Json

Finish = Literal["stop", "tool_calls", "length", "refusal"]
Choice = Literal["auto", "none", "required"]
Framing = Literal["events", "lines", "array", "messages"]
"""How a stream is framed: server-sent events, JSON lines, one JSON array, the messages of an AWS event stream."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared tool; `schema` is the JSON Schema of its arguments."""

    name: str
    schema: dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request, read. `result` is the text of the tool results that end it, None when a user speaks last."""

    model: str
    tools: tuple[Tool, ...] = ()
    choice: Choice = "auto"
    forced: str | None = None
    user_text: str = ""
    result: str | None = None
    result_tool: str = "the tool"
    calls_before: int = 0
    stream: bool = False
    framing: Framing = "events"
    choices: int = 1
    limit: int | None = None
    usage: bool = False
    thinking: bool = False
    preamble: bool = False
    parallel: bool = True
    prompt_tokens: int = 1


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` is text, since faults make it anything but JSON.

    In a stream `start` is argument text that comes with the name, before the deltas; `later_id` an id that the later
    events carry; `place` the index on the wire: the call's own, that of the first call, or none.
    """

    id: str
    name: str
    arguments: str
    start: str = ""
    later_id: str | None = None
    place: Literal["own", "first", "none"] = "own"


@dataclass(frozen=True, slots=True)
class Reply:
    """One choice. The order on the wire is that of the fields."""

    reasoning: str = ""
    text: str = ""
    refusal: str = ""
    calls: tuple[Call, ...] = ()
    finish: Finish = "stop"

    @property
    def tokens(self) -> int:
        """A believable count: one token a piece."""
        return sum(
            len(split_pieces(text))
            for text in (self.reasoning, self.text, self.refusal, *(call.start + call.arguments for call in self.calls))
        )


Mint = Callable[[str, int], str]
"""(tool name, number of the call in the conversation) -> id."""

_PIECE = re.compile(r"\s*(?:\w{1,8}|[^\w\s]{1,3})|\s+")


def split_pieces(text: str) -> list[str]:
    """Cuts text where a tokenizer might: short runs of letters or signs with the space before them. Joins to `text`."""
    return _PIECE.findall(text)


def dump_json(value: Json) -> str:
    """JSON as the vendors write it: compact, UTF-8 unescaped."""
    return orjson.dumps(value).decode()


def plan_reply(ask: Ask, options: Options, rng: random.Random, mint: Mint) -> Reply:
    """The healthy answer to a request."""
    topic = Topic.of(ask.user_text)
    reasoning = ""
    if options.reasoning or ask.thinking:
        reasoning = f"The user asks about {topic.phrase}. A short and direct answer will do."
    if options.refusal:
        return Reply(reasoning, refusal="I'm sorry, but I can't help with that.", finish="refusal")
    if _wants_call(ask, options):
        calls = make_calls(ask, options.calls or 1, topic, mint)
        text = rng.choice(("Let me look that up.", "One moment, I am checking.")) if ask.preamble else ""
        reply = Reply(reasoning, text, calls=calls, finish="tool_calls")
    elif ask.result is not None:
        quoted = "\n".join(f"> {line}" for line in ask.result[:2000].splitlines()) or "> (nothing)"
        reply = Reply(reasoning, f"This came back from {ask.result_tool}:\n\n{quoted}")
    else:
        reply = Reply(reasoning, rng.choice(_ANSWERS).format(topic.phrase))
    return _limit_reply(reply, ask.limit)


def make_calls(ask: Ask, number: int, topic: Topic, mint: Mint, *, salt: int = 0) -> tuple[Call, ...]:
    """`number` calls of declared tools: the forced one, else from the one that the user names (or the first) on."""
    names = [tool.name for tool in ask.tools]
    first = next((at for at, name in enumerate(names) if name == ask.forced), None)
    tools = ask.tools
    if first is not None:
        tools = (ask.tools[first],)
    else:
        named = (at for at, name in enumerate(names) if re.search(rf"\b{re.escape(name)}\b", ask.user_text))
        first = next(named, 0)
        tools = ask.tools[first:] + ask.tools[:first]
    calls = []
    for at in range(number):
        tool = tools[at % len(tools)]
        arguments = dump_json(make_arguments(tool.schema, topic, salt=salt + at))
        calls.append(Call(mint(tool.name, ask.calls_before + at), tool.name, arguments))
    return tuple(calls)


def _wants_call(ask: Ask, options: Options) -> bool:
    if not ask.tools or ask.choice == "none" or options.calls == 0:
        return False
    return ask.result is None or ask.choice == "required" or ask.forced is not None or bool(options.calls)


_ANSWERS = (
    "Here is a short answer about {}: it depends on the details, and the usual approach works well.",
    "In brief, on {}: start with the simplest form that works, then measure — “good enough” is a fine goal.",
    "About {}: there are two common views, and both hold up in practice. ✓",
)


def _limit_reply(reply: Reply, limit: int | None) -> Reply:
    """Stops where the token limit of the request stops a model, and says so."""
    if limit is None or reply.tokens <= limit:
        return reply
    left = limit

    def take(text: str) -> str:
        nonlocal left
        pieces = split_pieces(text)[: max(left, 0)]
        left -= len(pieces)
        return "".join(pieces)

    reasoning, text = take(reply.reasoning), take(reply.text)
    calls = []
    for call in reply.calls:
        if left <= 0:
            break
        calls.append(replace(call, arguments=take(call.arguments)))
    return Reply(reasoning, text, calls=tuple(calls), finish="length")
