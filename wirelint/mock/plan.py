"""The content of a reply before an API gives it a shape: reasoning, text, calls and the finish reason.

An `Ask` is a request as a model understands it, a `Reply` is one choice of the answer. `plan_reply` is the healthy model:
it calls a tool if a user speaks and tools are declared, quotes a tool result that ends the request, and talks otherwise.
Faults change a `Reply`; the APIs write it in their formats.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import orjson

from wirelint.mock.schema_values import SAMPLES, Topic, load_table, make_arguments
from wirelint.model import Json

Finish = Literal["stop", "tool_calls", "length", "refusal"]
Choice = Literal["auto", "none", "required"]
Framing = Literal["events", "lines", "array", "messages"]
"""Framing of a stream: server-sent events, JSON lines, one JSON array, messages of an AWS event stream."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a scenario. Those of the transport and of the reply go with every fault, the last group with some."""

    chunk: int = 0
    """Cut the body into network chunks of this many bytes, across events; 0: one chunk per event."""
    pace: float = 0.0
    """Milliseconds between events (between network chunks with `chunk`)."""
    delay: float = 0.0
    """Milliseconds before the answer begins."""
    encoding: str = ""
    crlf: bool = False
    bom: bool = False
    comments: bool = False
    azure: bool = False
    cut: int | None = None
    """End the connection after this many bytes of the body."""
    content_length: bool = False

    calls: int | None = None
    reasoning: bool = False
    refusal: bool = False
    model: str = ""

    mode: str = ""
    dialect: str = "kimi_invoke_arg"
    place: str = "content"
    seconds: float = 35.0
    status: int = 0


DEFAULTS = Options()


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared tool; `schema` is the JSON Schema of its arguments."""

    name: str
    schema: dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A parsed request. `result` is the text of the tool results at its end, None if a user speaks last."""

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
    """A tool call. `arguments` is text, because faults make it anything but JSON.

    In a stream, `start` is argument text in the event with the name, `later_id` another id in the events after it, and
    `place` the index on the wire: the call's own, that of the first call, or none.
    """

    id: str
    name: str
    arguments: str
    start: str = ""
    later_id: str | None = None
    place: Literal["own", "first", "none"] = "own"

    @property
    def text(self) -> str:
        """The whole argument text."""
        return self.start + self.arguments

    @property
    def value(self) -> Json:
        """The arguments as a JSON value; the text itself if it is not JSON."""
        return decode_value(self.text)

    @property
    def members(self) -> dict[str, Json]:
        """The arguments by name; empty if they are not an object."""
        value = self.value
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Reply:
    """One choice. The fields are in the order of the wire."""

    reasoning: str = ""
    text: str = ""
    refusal: str = ""
    calls: tuple[Call, ...] = ()
    finish: Finish = "stop"

    @property
    def shown(self) -> str:
        """The text, or the refusal for an API that has no field for refusals."""
        return self.text or self.refusal

    @property
    def tokens(self) -> int:
        """A plausible token count: one per piece."""
        texts = (self.reasoning, self.text, self.refusal, *(call.text for call in self.calls))
        return sum(len(split_pieces(text)) for text in texts)


Mint = Callable[[str, int], str]
"""(tool name, number of the call in the conversation) -> call id."""

_PIECE = re.compile(r"\s*(?:\w{1,8}|[^\w\s]{1,3})|\s+")


def split_pieces(text: str) -> list[str]:
    """Split text as a tokenizer might: short runs of letters or signs with the space before them. They join to `text`."""
    return _PIECE.findall(text)


def dump_json(value: Json) -> str:
    """Encode JSON as the vendors do: compact, UTF-8 unescaped."""
    return orjson.dumps(value).decode()


def decode_value(text: str) -> Json:
    """Decode JSON; return the text itself if it is not JSON."""
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value


_ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "lower": string.ascii_lowercase + string.digits,
    "hex": "0123456789abcdef",
}
_RANDOM_PART = re.compile(r"\{(\w+) (\d+)\}")


def mint_id(rng: random.Random, form: str) -> str:
    """Make an id of a form such as `chatcmpl-{alnum 29}`: an alphabet and a number of random characters."""
    return _RANDOM_PART.sub(lambda part: "".join(rng.choices(_ALPHABETS[part[1]], k=int(part[2]))), form)


def mint_call_id(model: str, rng: random.Random, name: str, number: int, position: int, form: str = "") -> str:
    """Make a call id of a form, by default the native one of the model's family.

    `number` counts the calls of the conversation from 0, `position` those of this reply.
    """
    form = form or next(form for family, form in SAMPLES["id_forms"] if re.search(family, model.lower()))
    return mint_id(rng, form).format(name=name, number=number, position=position)


MARKUP: dict[str, dict[str, str]] = load_table("markup")
"""Forms of native tool-call markup by dialect, as it looks when a serving engine does not convert it."""


def write_markup(dialect: str, calls: Sequence[Call]) -> str:
    """Write healthy calls in the native markup of a dialect."""
    form = MARKUP[dialect]
    written = form.get("join", "").join(_write_call(form, number, call) for number, call in enumerate(calls))
    return form.get("whole", "{calls}").format(calls=written)


def _write_call(form: dict[str, str], number: int, call: Call) -> str:
    parameters = "".join(
        form.get("parameter", "").format(name=name, value=value if isinstance(value, str) else dump_json(value))
        for name, value in call.members.items()
    )
    return form["call"].format(
        name=call.name,
        quoted=dump_json(call.name),
        arguments=call.arguments,
        parameters=parameters,
        # A Kimi reply has native ids already.
        native=call.id if call.id.startswith("functions.") else f"functions.{call.name}:{number}",
    )


def plan_reply(ask: Ask, options: Options, rng: random.Random, mint: Mint) -> Reply:
    """Return the healthy reply to a request."""
    topic = Topic.of(ask.user_text)
    reasoning = ""
    if options.reasoning or ask.thinking:
        reasoning = f"The user asks about {topic.phrase}. A short and direct answer will do."
    if options.refusal:
        return Reply(reasoning, refusal="I'm sorry, but I can't help with that.", finish="refusal")
    is_able = ask.tools and ask.choice != "none" and options.calls != 0
    if is_able and (ask.result is None or ask.choice == "required" or ask.forced is not None or options.calls):
        calls = make_calls(ask, options.calls or 1, topic, mint)
        text = rng.choice(("Let me look that up.", "One moment, I am checking.")) if ask.preamble else ""
        reply = Reply(reasoning, text, calls=calls, finish="tool_calls")
    elif ask.result is not None:
        quoted = "\n".join(f"> {line}" for line in ask.result[:2000].splitlines()) or "> (nothing)"
        reply = Reply(reasoning, f"This came back from {ask.result_tool}:\n\n{quoted}")
    else:
        reply = Reply(reasoning, rng.choice(SAMPLES["answers"]).format(topic.phrase))
    return _limit_reply(reply, ask.limit)


def make_calls(ask: Ask, number: int, topic: Topic, mint: Mint, *, salt: int = 0) -> tuple[Call, ...]:
    """Make calls of the forced tool, else of the declared tools from the one that the user names (or the first) on."""
    tools = [tool for tool in ask.tools if tool.name == ask.forced][:1]
    if not tools:
        named = (at for at, one in enumerate(ask.tools) if re.search(rf"\b{re.escape(one.name)}\b", ask.user_text))
        first = next(named, 0)
        tools = [*ask.tools[first:], *ask.tools[:first]]
    calls = []
    for at in range(number):
        tool = tools[at % len(tools)]
        arguments = dump_json(make_arguments(tool.schema, topic, salt=salt + at))
        calls.append(Call(mint(tool.name, ask.calls_before + at), tool.name, arguments))
    return tuple(calls)


def _limit_reply(reply: Reply, limit: int | None) -> Reply:
    """Cut the reply at the request's token limit, with the finish reason for it."""
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
