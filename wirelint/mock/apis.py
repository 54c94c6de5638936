"""The wire formats of the mock server: the bodies and events of each API.

A row of `apis.json` has an API's path, abilities, words (finish reasons, tool choices, error kinds), headers, forms of ids,
and the templates of its bodies, in which `"$name"` is replaced by a value. `like` names a row to inherit from. A table of
`streams.toml` has its events, and the blocks that a body has in another form. A class has what differs from these rules.
Requests are parsed by wirelint's own readers. The replies are independent of its writers: the mock is a check on them.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib import resources
from itertools import chain, count, takewhile, zip_longest
from typing import Any, ClassVar, Literal
from urllib.parse import parse_qs

from wirelint.apis import by_name
from wirelint.jsonvalues import mapping, mappings
from wirelint.jsonvalues import number as number_of
from wirelint.jsonvalues import text as text_of
from wirelint.mock.answer import KEEP_ALIVE, Event, Headers, encode_message
from wirelint.mock.plan import (
    SAMPLES,
    Ask,
    Call,
    Framing,
    Options,
    Reply,
    Topic,
    decode_value,
    dump_json,
    load_table,
    mint_id,
    split_pieces,
    write_markup,
)
from wirelint.model import Json
from wirelint.text.pointers import at as value_at

Ability = Literal["numbers", "text", "reasons", "chat", "calls", "ids", "counts", "ends", "rpc"]
"""A feature of an API that a fault needs: the call's id and index in each delta (`numbers`), arguments as text (`text`),
a finish reason for calls (`reasons`), replies that are turns and not continuations of a prompt (`chat`), tool calls
(`calls`) and their ids (`ids`), token counts (`counts`) and a finish reason (`ends`) in a stream, JSON-RPC (`rpc`)."""

_ROWS: dict[str, dict[str, Any]] = json.loads(resources.files(__package__).joinpath("apis.json").read_text("utf-8"))


class RequestError(ValueError):
    """A request that the vendor would answer with status 400; the message has the reason."""


@dataclass(frozen=True)
class Turn:
    """One request and the context of its answer. `number` counts the server's requests from 1."""

    api: Api
    ask: Ask
    model: str
    number: int
    options: Options
    rng: random.Random
    replies: tuple[Reply, ...] = ()
    """The choices of the answer: none before they are planned."""

    @property
    def reply(self) -> Reply:
        """The only choice of an API that has one."""
        return self.replies[0]

    @cached_property
    def values(self) -> dict[str, Json]:
        """The values of templates that do not depend on the API.

        The time is made up, one second per request, so that equal seeds give equal bytes.
        """
        created, prompt = 1_760_000_000 + self.number, self.ask.prompt_tokens
        completion = sum(reply.tokens for reply in self.replies)
        return {
            "model": self.model,
            "created": created,
            "time": datetime.fromtimestamp(created, UTC).isoformat().replace("+00:00", "Z"),
            "prompt": prompt,
            "completion": completion,
            "total": prompt + completion,
            "reasoning_tokens": sum(len(split_pieces(reply.reasoning)) for reply in self.replies),
            "wants_usage": self.ask.usage or None,
        }

    @cached_property
    def numbers(self) -> Iterator[int]:
        """Numbers of the events of a stream."""
        return count()

    @cached_property
    def _salt(self) -> int:
        return self.rng.getrandbits(64)

    def mint_item(self, form: str, number: int) -> str:
        """Make the id of an item, equal for the item in the body and in each event."""
        return mint_id(random.Random(f"{self._salt}/{form}/{number}"), form) if form else ""

    @property
    def topic(self) -> Topic:
        return Topic.of(self.ask.user_text)

    def mint(self, name: str, number: int) -> str:
        """Make the id of a call. `number` counts the calls of the conversation from 0."""
        return self.api.mint_call_id(self.model, self.rng, name, number, number - self.ask.calls_before)


class Api:
    """One wire API, with the facts of its row in `apis.json`, and its stream in `streams.toml`."""

    ping: ClassVar[bytes] = KEEP_ALIVE
    """A keep-alive event; a comment for APIs without one."""

    def __init__(self, key: str) -> None:
        row = _ROWS[key]
        like = row.get("like", key)
        row = {**_ROWS[like], **row}
        self._stream: dict[str, Any] = _STREAMS.get(key) or _STREAMS.get(like, {})
        self.name: str = row["name"]
        self.path: str = row["path"]
        """A pattern of paths; its group `model` is the model if a path has it."""
        self.abilities: frozenset[Ability] = frozenset(row["abilities"])
        self.busy_status: int = row.get("busy_status", 429)
        """The status for "overloaded"."""
        self.finish: dict[str, str] = row.get("finish", {})
        self.framing: Framing = row.get("framing", "events")
        self.templates: dict[str, Any] = row["templates"]
        self._row = row
        spec = by_name(self.name)
        assert spec is not None
        self._read = spec.read_request

    def serves(self, headers: Mapping[str, str]) -> bool:
        """Return True if a request at the path belongs to this API; the first such API answers it."""
        return True

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        """Parse a request. `target` is the path with its query. Raises RequestError."""
        row, read = self._row, self._read(body, target.partition("?")[0])
        for needed, name in ((read.messages, "no_message"), (read.model, "no_model")):
            if not needed and row.get(name):
                raise RequestError(row[name])
        spoken = (message.words for message in reversed(read.messages) if message.role == "user")
        at_end = [*takewhile(lambda message: message.results, reversed(read.messages))][::-1]
        results = [result for message in at_end for result in message.results]
        names = {call.id: call.name for call in reversed(read.calls)}
        # Tools with a type of their own and no schema are run by the provider, or by names that a client knows.
        declared = (tool for tool in read.tools if tool.type == "function" or tool.schema is not None)
        choice = read.tool_choice
        return Ask(
            model=read.model,
            tools=tuple(one for one in declared if one.name),
            choice=choice.mode if choice.mode in ("none", "required") else "auto",
            forced=choice.name,
            user_text=next(filter(None, spoken), ""),
            result="\n".join(result.text for result in results) if results else None,
            result_tool=(names.get(results[-1].call_id) or results[-1].name if results else None) or "the tool",
            calls_before=len(read.calls),
            stream=read.stream,
            framing=self.framing,
            choices=min(max(number_of(body.get("n")) or 1, 1), 16) if row.get("candidates") else 1,
            limit=max(read.max_tokens or 0, 0) or None,
            usage=read.wants_usage is True or not row.get("usage_on_request"),
            thinking=value_at(body, row.get("thinking", "/thinking/none")) not in (None, False, "", "disabled"),
            preamble=row.get("preamble", False),
            parallel=read.parallel_tool_calls is not False,
            prompt_tokens=estimate_tokens(body),
        )

    def make_body(self, turn: Turn) -> Json:
        """Make a whole body from its template; the blocks of the stream are its `$content`, or its `$calls`."""
        values = self.values_of(turn, turn.reply, 0)
        blocks: dict[str, list[Json]] = {"content": [], "calls": []}
        for step in self._stream["stream"]:
            if "block" in step:
                wholes = (block["whole"] for block in self._blocks(step, 0, values, turn.reply, turn))
                blocks[step.get("into", "content")] += wholes
        values["calls"] = blocks["calls"] or None
        values["content"] = blocks["content"] or (None if blocks["calls"] else [])
        if "choice" in self.templates:
            choices = (self.fill("choice", self.values_of(turn, reply, at)) for at, reply in enumerate(turn.replies))
            values["choices"] = [*choices]
        return self.fill("body", values, id=self.mint(turn))

    def make_events(self, turn: Turn) -> list[Event]:
        """Make the events of a stream."""
        return self.play(turn, {"id": self.mint(turn)})

    def play(self, turn: Turn, more: dict[str, Json]) -> list[Event]:
        """Make the events of the table of the stream. `more`: values that all of its templates have."""
        choices = [
            self._play(self._stream["stream"], self.values_of(turn, reply, at) | more, reply, turn)
            for at, reply in enumerate(turn.replies)
        ]
        return [*self.merge(choices), *self._play(self._stream.get("end", ()), turn.values | more, turn.reply, turn)]

    def values_of(self, turn: Turn, reply: Reply, number: int) -> dict[str, Json]:
        """Return the values of the templates for a choice. Texts that are not there are None, but `text` is empty."""
        reasoning = reply.reasoning or None
        return turn.values | {
            "choice": number,
            "finish": self.finish.get(reply.finish),
            "text": reply.shown,
            "shown": reply.shown or None,
            "answer": reply.shown or (None if reply.calls else ""),
            "reasoning": reasoning,
            "thinking": None if reply.calls else reasoning,
            "plan": reply.reasoning if reply.calls else None,
            "tool_calls": [_write_call(call) for call in reply.calls] or None,
        }

    def _play(
        self, steps: Sequence[dict[str, Any]], values: dict[str, Json], reply: Reply, turn: Turn
    ) -> Iterator[Event]:
        index = 0
        for step in steps:
            if "block" in step:
                for block in self._blocks(step, index, values, reply, turn):
                    index += 1
                    yield from self._play(step["events"], block, reply, turn)
            elif "pieces" in step:
                for at, piece in enumerate(split_pieces(text_of(values[step["pieces"]]) or "")):
                    yield self._make_event(step, {**values, "piece": piece, "at": at}, turn)
            elif "if" not in step or values[step["if"]] is not None:
                yield self._make_event(step, values, turn)

    def _blocks(
        self, step: dict[str, Any], index: int, values: dict[str, Json], reply: Reply, turn: Turn
    ) -> Iterator[dict[str, Json]]:
        """Yield the values of the blocks of a step, which is about one text or about the calls. `index`: of the first."""
        name, signature = step["block"], self._stream.get("signature", {})
        found = [{**values, "index": index}] if name != "calls" and values[name] is not None else []
        for number, call in enumerate(reply.calls if name == "calls" else ()):
            own: dict[str, Json] = {"call_id": call.id, "name": call.name, "arguments": call.text, "value": call.value}
            own |= {"start": call.start, "rest": call.arguments, "later_id": call.later_id, "number": number}
            place = {"own": number, "first": 0, "none": None}[call.place]
            own |= {"place": place, "index": None if place is None else index + place}
            found.append(values | own | {"started": decode_value(call.start or "{}")})
        for number, block in enumerate(found):
            is_signed = name == signature.get("block") and not number
            signed = base64.b64encode(turn.rng.randbytes(signature["bytes"])).decode() if is_signed else None
            block |= {"signature": signed, "item_id": turn.mint_item(step.get("id", ""), number)}
            yield {**block, "whole": _fill(step.get("whole"), block)}

    def _make_event(self, step: dict[str, Any], values: dict[str, Json], turn: Turn) -> Event:
        value = _fill(step["part"] if "part" in step else step["data"], values)
        if "part" in step:
            value = _fill(self._stream["frame"], {**values, "part": value})
        data = value if isinstance(value, str) else self.encode(mapping(value), turn)
        return Event(step["tag"], data, step.get("name") or text_of(mapping(value).get("type")))

    def merge(self, choices: Sequence[Iterator[Event]]) -> Iterator[Event]:
        """Return the events of all choices, by default one choice after the other."""
        return chain.from_iterable(choices)

    def encode(self, value: dict[str, Json], turn: Turn) -> str:
        """Write the JSON of an event."""
        return dump_json(value)

    def mint_call_id(self, model: str, rng: random.Random, name: str, number: int, position: int) -> str:
        """Make a call id of the API's form, by default of the native one of the model's family. An API without ids on the
        wire has some too, for markup that leaks.

        `number` counts the calls of the conversation from 0, `position` those of this reply.
        """
        native = (form for family, form in SAMPLES["id_forms"] if re.search(family, model.lower()))
        return mint_id(rng, self._row.get("call_id") or next(native)).format(
            name=name, number=number, position=position
        )

    def make_headers(self, turn: Turn) -> Headers:
        forms: dict[str, str] = self._row.get("headers", {})
        return tuple((name, mint_id(turn.rng, form)) for name, form in forms.items())

    def make_error(self, status: int, message: str, template: str = "error") -> Json:
        kind, code = self._error_kind(status)
        return _fill(self._row[template], {"status": status, "message": message, "kind": kind, "code": code})

    def make_error_events(self, status: int, message: str) -> list[Event]:
        """Make the events of an error inside a stream that has begun with status 200."""
        value = self.make_error(status, message, "stream_error" if "stream_error" in self._row else "error")
        name = self._row.get("error_event")
        events = [Event("error", dump_json(value), self._error_kind(status)[0] if name == "$kind" else name)]
        return [*events, *self.end_stream()]

    def end_stream(self) -> list[Event]:
        """Return `data: [DONE]` for an API that ends its streams, errors included, in this way."""
        return [_DONE] if self._row.get("done") else []

    def fill(self, template: str, values: Mapping[str, Json] = {}, /, **more: Json) -> dict[str, Json]:
        """Return a copy of a template with its values."""
        return mapping(_fill(self.templates[template], {**values, **more}))

    def mint(self, turn: Turn) -> str:
        """Make the id of an answer."""
        return mint_id(turn.rng, self.templates.get("id", ""))

    def _error_kind(self, status: int) -> tuple[str, Json]:
        kinds: dict[str, tuple[str, Json]] = self._row.get("errors", {})
        words = (str(status), f"{status // 100}xx", "other")
        return next((kinds[word] for word in words if word in kinds), ("", None))


_DONE = Event("done", "[DONE]")


def _fill(template: Json, values: Mapping[str, Json]) -> Json:
    """Return a copy of a template with its values: of `"$name"`, and of `"$?name"` as a member if there is one."""
    match template:
        case str():
            return values[template.lstrip("$?")] if template.startswith("$") else template
        case list():
            return [_fill(one, values) for one in template]
        case dict():
            made = {key: _fill(one, values) for key, one in template.items()}
            return {key: one for key, one in made.items() if one is not None or not f"{template[key]}".startswith("$?")}
        case _:
            return template


def _decode(table: Any) -> Any:
    """Decode the JSON in the texts of a table of streams."""
    match table:
        case dict():
            texts = ("frame", "data", "part", "whole")
            return {key: decode_value(one) if key in texts else _decode(one) for key, one in table.items()}
        case list():
            return [_decode(one) for one in table]
        case _:
            return table


_STREAMS: dict[str, dict[str, Any]] = _decode(load_table("streams"))


def estimate_tokens(value: Json) -> int:
    """Return a plausible count of the tokens of a request."""
    return max(len(dump_json(value)) // 4, 1)


def objects_in(value: Json) -> list[dict[str, Json]]:
    """Return the objects of a list; nothing for any other value."""
    return [one for _, one in mappings(value)]


# --- OpenAI and alike -----------------------------------------------------------------------------------------------


def _write_call(call: Call) -> dict[str, Json]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}


class OpenAIChat(Api):
    """A chat stream opens with a chunk that has the role, then one delta per token, an empty delta with the finish reason,
    with `stream_options.include_usage` a chunk without choices that has the usage, and `[DONE]`. Reasoning is in
    `reasoning_content`, as with DeepSeek, Kimi and the open servers.
    https://platform.openai.com/docs/api-reference/chat/streaming
    """

    def make_events(self, turn: Turn) -> list[Event]:
        first = [Event("open", dump_json(self.templates["azure"]))] if turn.options.azure else []
        return [*first, *super().make_events(turn)]

    def values_of(self, turn: Turn, reply: Reply, number: int) -> dict[str, Json]:
        values = super().values_of(turn, reply, number)
        values |= {"said": reply.text, "refusal": reply.refusal or None, "begun": "" if reply.text else None}
        values["content"] = reply.text or (None if reply.calls or reply.refusal else "")
        if reply.finish == "tool_calls" and turn.ask.forced:  # documented: a forced function ends with `stop`
            values["finish"] = self.finish["forced"]
        return values

    def merge(self, choices: Sequence[Iterator[Event]]) -> Iterator[Event]:
        """Let the choices take turns, as with the vendor."""
        return filter(None, chain.from_iterable(zip_longest(*choices)))

    def encode(self, value: dict[str, Json], turn: Turn) -> str:
        """Write the JSON of an event, with padding against traffic analysis: random text of varying length."""
        if turn.ask.usage:
            value.setdefault("usage", None)
        return dump_json({**value, "obfuscation": mint_id(turn.rng, f"{{alnum {turn.rng.randrange(16)}}}")})


class Mistral(Api):
    """OpenAI's format with content lists for thinking, calls in one piece, and its own errors.

    The path is OpenAI's, so the host decides, or the name of the vendor's SDK. https://docs.mistral.ai/api/#tag/chat
    """

    def serves(self, headers: Mapping[str, str]) -> bool:
        host = headers.get("host", "").partition(":")[0]
        return host.endswith("mistral.ai") or headers.get("user-agent", "").startswith(("mistral-client", "mistralai"))

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        model = text_of(body.get("model")) or text_of(body.get("agent_id"))
        return super().read_request({**body, "model": model}, target)

    def values_of(self, turn: Turn, reply: Reply, number: int) -> dict[str, Json]:
        values = super().values_of(turn, reply, number)
        thinking: Json = {"type": "thinking", "thinking": [{"type": "text", "text": reply.reasoning}]}
        values["content"] = [thinking, {"type": "text", "text": reply.shown}] if reply.reasoning else reply.shown
        calls: list[Json] = [_write_call(call) | {"index": at} for at, call in enumerate(reply.calls)]
        return values | {"numbered": calls or None}


class OpenAIResponses(Api):
    """A stream has every item three times: `response.output_item.added`, its deltas with their end, and
    `response.output_item.done`; the last event has the whole response again. All its events are numbered.
    https://platform.openai.com/docs/api-reference/responses-streaming
    """

    def make_events(self, turn: Turn) -> list[Event]:
        response = mapping(self.make_body(turn))
        begun: Json = response | {"status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        return self.play(turn, {"response": response, "begun": begun})

    def values_of(self, turn: Turn, reply: Reply, number: int) -> dict[str, Json]:
        is_cut = reply.finish == "length"
        status = "incomplete" if is_cut else "completed"
        own: dict[str, Json] = {"status": status, "details": {"reason": "max_output_tokens"} if is_cut else None}
        said = None if reply.refusal else reply.text or (None if reply.calls else "")
        own |= {"ended": f"response.{status}", "said": said, "refusal": reply.refusal or None}
        return super().values_of(turn, reply, number) | own

    def encode(self, value: dict[str, Json], turn: Turn) -> str:
        return dump_json({"type": value["type"], "sequence_number": next(turn.numbers), **value})


class OpenAICompletions(Api):
    """A prompt in, its continuation out. There are no tools: if a request declares some, the model writes markup."""

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        """Parse a request. The last user turn of a prompt in the ChatML template is the user's text."""
        ask = super().read_request(body, target)
        _, marked, rest = ask.user_text.rpartition("<|im_start|>user\n")
        last = rest.partition("<|im_end|>")[0] if marked else ask.user_text.strip().rpartition("\n")[2]
        return replace(ask, user_text=last)

    def values_of(self, turn: Turn, reply: Reply, number: int) -> dict[str, Json]:
        thought = f"<think>\n{reply.reasoning}\n</think>\n\n" if reply.reasoning else ""
        written = thought + reply.shown + (write_markup("hermes_json", reply.calls) if reply.calls else "")
        own: dict[str, Json] = {"written": written, "last": len(split_pieces(written))}
        return super().values_of(turn, reply, number) | own


# --- content blocks: Anthropic, Bedrock, Cohere ---------------------------------------------------------------------


_PING = Event("ping", '{"type": "ping"}', "ping")


class Anthropic(Api):
    """A stream has `message_start`, each content block as `content_block_start`, deltas and `content_block_stop` (a `ping`
    after the first start), `message_delta` with the stop reason and the usage, and `message_stop`. The `input` of a started
    tool use is `{}`; its arguments come as `input_json_delta` text, the first one empty.
    https://docs.anthropic.com/en/docs/build-with-claude/streaming
    """

    ping = _PING.encode()

    def make_events(self, turn: Turn) -> list[Event]:
        """Make the events; a ping follows the first start."""
        events = super().make_events(turn)
        start = next((at for at, event in enumerate(events, 1) if event.tag == "start"), None)
        return events if start is None else [*events[:start], _PING, *events[start:]]

    def encode(self, value: dict[str, Json], turn: Turn) -> str:
        """Write the JSON of an event, padded against traffic analysis."""
        return f"{dump_json(value)[:-1]}{' ' * turn.rng.randrange(12)}}}"


class BedrockAnthropic(Anthropic):
    """Anthropic's events, base64 in JSON in messages of an AWS event stream.
    https://docs.anthropic.com/en/api/claude-on-amazon-bedrock
    """

    ping = encode_message(Event("ping", "{}", "ping"))

    def make_events(self, turn: Turn) -> list[Event]:
        return [
            Event(event.tag, dump_json({"bytes": base64.b64encode(event.data.encode()).decode()}), "chunk")
            for event in super().make_events(turn)
        ]

    def make_error_events(self, status: int, message: str) -> list[Event]:
        kind = "throttlingException" if status == 429 else "modelStreamErrorException"
        return [Event("error", dump_json({"message": message}), kind)]


_PADDING = string.ascii_letters + string.digits


class Bedrock(Api):
    """Converse. A content block is an object with one member, whose name is its kind. In a stream only the block of a tool
    has a start; `messageStop` has the reason and `metadata` the usage. Every event has padding `p` of varying length.
    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
    """

    ping = encode_message(Event("ping", "{}", "ping"))

    def encode(self, value: dict[str, Json], turn: Turn) -> str:
        return dump_json({**value, "p": _PADDING[: turn.rng.randrange(1, len(_PADDING))]})


class Cohere(Api):
    """Content blocks and calls have separate numbers, each with a start, deltas and an end event; a plan before the calls
    comes as `tool-plan-delta`. `message-end` has the finish reason and the usage; `[DONE]` follows.
    https://docs.cohere.com/v2/docs/streaming
    """


# --- calls that come whole: Gemini, Ollama --------------------------------------------------------------------------


class Gemini(Api):
    """A stream is server-sent events with `?alt=sse` and one JSON array without; every event is a reply of its own with
    more parts. Calls come whole, arguments as a value, without ids. Only the finish reason ends a stream.
    https://ai.google.dev/api/generate-content
    """

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        query = target.partition("?")[2]
        framed: Framing = "events" if parse_qs(query).get("alt") == ["sse"] else "array"
        return replace(super().read_request(body, target), framing=framed)


class Ollama(Api):
    """JSON lines unless the request declines the stream. A call comes whole, in a separate line, its arguments as a value;
    a reply with calls ends with `stop`. The last line has `done: true`, the reason and the counts. An error is a string.
    https://github.com/ollama/ollama/blob/main/docs/api.md
    """


OPENAI, ANTHROPIC = OpenAIChat("openai_chat"), Anthropic("anthropic")
APIS: tuple[Api, ...] = (
    Mistral("mistral"),
    OPENAI,
    ANTHROPIC,
    OpenAIResponses("openai_responses"),
    OpenAICompletions("openai_completions"),
    OpenAICompletions("deepinfra"),
    Gemini("gemini"),
    Ollama("ollama_chat"),
    Ollama("ollama_generate"),
    Cohere("cohere"),
    Bedrock("bedrock"),
    BedrockAnthropic("bedrock_anthropic"),
    Anthropic("vertex_anthropic"),
)
"""The APIs in the order in which `Api.serves` is called."""
