"""The content of a reply before an API gives it a shape: reasoning, text, calls and the finish reason; and plausible
arguments for a JSON Schema: small, valid, and made from the words of the user.

An `Ask` is a request as a model understands it, a `Reply` is one choice of the answer. `plan_reply` is the healthy model:
it calls a tool if a user speaks and tools are declared, quotes a tool result that ends the request, and talks otherwise.
Faults change a `Reply`; the APIs write it in their formats.

Arguments cover what tool schemas use: const, enum, default, examples, type (lists too), required, nested objects and
arrays, bounds, lengths, common formats, anyOf / oneOf / allOf and local `$ref`. Patterns are not solved. Values are never
placeholders (`string`, `default`, `/path/to/file`): a healthy server must not look like a model that invents them.
"""

from __future__ import annotations

import math
import random
import re
import string
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from importlib import resources
from typing import Any, Literal

import orjson

from wirelint.jsonvalues import mapping, mappings
from wirelint.model import Json, Tool
from wirelint.text.pointers import at as value_at


def load_table(name: str) -> dict[str, Any]:
    """Read a TOML file of this folder."""
    return tomllib.loads(resources.files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))


SAMPLES = load_table("samples")

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
        return self.start + self.arguments

    @property
    def value(self) -> Json:
        """The arguments as a JSON value; the text itself if it is not JSON."""
        return decode_value(self.text)

    @property
    def members(self) -> dict[str, Json]:
        """The arguments by name; empty if they are not an object."""
        return mapping(self.value)


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
        arguments = dump_json(make_arguments(tool.schema or {}, topic, salt=salt + at))
        calls.append(Call(mint(tool.name, ask.calls_before + at), tool.name, arguments))
    return tuple(calls)


def _limit_reply(reply: Reply, limit: int | None) -> Reply:
    if limit is None or reply.tokens <= limit:
        return reply
    cut = []
    for text in (reply.reasoning, reply.text, *(call.arguments for call in reply.calls)):
        pieces = split_pieces(text)[:limit]
        limit -= len(pieces)
        cut.append("".join(pieces))
    reasoning, text, *arguments = cut
    calls = (replace(call, arguments=one) for call, one in zip(reply.calls, arguments, strict=True) if one)
    return Reply(reasoning, text, calls=tuple(calls), finish="length")


# --- arguments for a schema -----------------------------------------------------------------------------------------


MAX_DEPTH = 12
"""Nesting at which recursive schemas end with an empty value."""


_STOP_WORDS = frozenset(SAMPLES["stop_words"].split())


@dataclass(frozen=True, slots=True)
class Topic:
    """The topic of a user message: its last four words without stop words, and the last name (`Lisbon`)."""

    words: tuple[str, ...]
    proper: str | None

    @classmethod
    def of(cls, text: str) -> Topic:
        words = re.findall(r"[^\W\d_]\w*(?:[-'][^\W_]+)*", text[-2000:])
        telling = tuple(word for word in words if word.lower() not in _STOP_WORDS)[-4:]
        proper = next((word for word in reversed(words[1:]) if word[0].isupper() and len(word) > 2), None)
        return cls(telling or ("release", "notes"), proper)

    @property
    def phrase(self) -> str:
        return " ".join(self.words)


def make_arguments(schema: dict[str, Json], topic: Topic, *, salt: int = 0) -> dict[str, Json]:
    """Make a JSON object for a tool's schema; another `salt` gives another object where the schema allows it."""
    return mapping(_Maker(schema, topic).make(schema, "", salt))


@dataclass(frozen=True, slots=True)
class _Maker:
    root: dict[str, Json]
    topic: Topic

    def make(self, schema: Json, name: str, salt: int, depth: int = 0) -> Json:
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return self._string({}, name, salt) if schema is True else None
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        for values in (schema.get("enum"), schema.get("examples")):
            if isinstance(values, list) and values:
                return values[salt % len(values)]
        if "default" in schema:
            return schema["default"]
        match _type_of(schema):
            case "object":
                properties, required = mapping(schema.get("properties")), schema.get("required")
                names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
                # Models fill in the first parameter of a schema that requires none.
                chosen = names or list(properties)[:1]
                return {name: self.make(properties.get(name, True), name, salt, depth + 1) for name in chosen}
            case "array":
                prefix, items = schema.get("prefixItems"), schema.get("items", True)
                if isinstance(prefix, list):
                    return [self.make(item, name, salt, depth + 1) for item in prefix]
                least = max(_integer(schema, "minItems", 1), 1)
                number = min(least, _integer(schema, "maxItems", least))
                return [self.make(items, name, salt + at, depth + 1) for at in range(number)]
            case "integer":
                return int(_make_number(schema, 5 + salt, whole=True))
            case "number":
                return _make_number(schema, 5 + salt, whole=False)
            case "boolean":
                return salt % 2 == 0
            case "null":
                return None
            case _:
                return self._string(schema, name, salt)

    def _resolved(self, schema: dict[str, Json], depth: int = 0) -> dict[str, Json]:
        """Follow local references, merge allOf, take the first alternative that is not null."""
        if depth > MAX_DEPTH or schema.keys().isdisjoint(_COMPOUND):
            return schema
        parts: list[Json] = [{key: one for key, one in schema.items() if key not in _COMPOUND}]
        if isinstance(reference := schema.get("$ref"), str):
            parts.insert(0, value_at(self.root, f"/{reference.removeprefix('#').strip('/')}".rstrip("/")))
        if options := [one for _, one in mappings(schema.get("anyOf") or schema.get("oneOf"))]:
            parts += [one for one in options if one.get("type") != "null"][:1] or options[:1]
        parts += [one for _, one in mappings(schema.get("allOf"))]
        return reduce(_merged, (self._resolved(mapping(part), depth + 1) for part in parts))

    def _string(self, schema: dict[str, Json], name: str, salt: int) -> str:
        text = SAMPLES["formats"].get(str(schema.get("format"))) or self._plain_string(name.lower(), salt)
        most, least = _integer(schema, "maxLength", len(text)), _integer(schema, "minLength", 0)
        return str(text[:most].ljust(least, "a"))

    def _plain_string(self, name: str, salt: int) -> str:
        for row in SAMPLES["parameters"]:
            if any(key in name for key in row["names"]):
                if "city" in row["names"] and self.topic.proper and salt == 0:
                    return self.topic.proper
                return str(row["values"][salt % len(row["values"])])
        return self.topic.phrase if salt == 0 else f"{self.topic.phrase} part {salt + 1}"


_COMPOUND = frozenset({"$ref", "anyOf", "oneOf", "allOf"})


def _make_number(schema: dict[str, Json], wanted: int, *, whole: bool) -> float:
    """Return a multiple of the step within the bounds: the wanted one, else the nearest to the lower or upper bound."""
    step = _float(schema, "multipleOf", 1.0 if whole else 0.5)
    above, below = _float(schema, "exclusiveMinimum", -math.inf), _float(schema, "exclusiveMaximum", math.inf)
    low, high = max(_float(schema, "minimum", above), above), min(_float(schema, "maximum", below), below)
    if low < wanted * step < high:
        return wanted * step
    if low > -math.inf:
        value = math.ceil(low / step) * step
        return value + step if value <= above else value
    value = math.floor(high / step) * step
    return value - step if value >= below else value


def _type_of(schema: dict[str, Json]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _merged(one: dict[str, Json], other: dict[str, Json]) -> dict[str, Json]:
    merged = one | other
    for key in ("properties", "required"):
        mine, theirs = one.get(key), other.get(key)
        if isinstance(mine, dict) and isinstance(theirs, dict):
            merged[key] = mine | theirs
        elif isinstance(mine, list) and isinstance(theirs, list):
            merged[key] = [*mine, *(name for name in theirs if name not in mine)]
    return merged


def _float(schema: dict[str, Json], key: str, otherwise: float) -> float:
    value = schema.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


def _integer(schema: dict[str, Json], key: str, otherwise: int) -> int:
    return int(_float(schema, key, otherwise))
