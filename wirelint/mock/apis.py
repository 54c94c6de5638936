"""The wire formats of the mock server: the bodies and events of each API. One class per API; `apis.json` has its facts.

A row has the API's path, abilities, words (finish reasons, tool choices, error kinds), headers, forms of ids, and the
templates of its bodies, in which `"$name"` is replaced by a value. `like` names a row to inherit from. Requests are parsed
by wirelint's own readers. The replies are independent of its writers: the mock is a check on them.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib import resources
from itertools import count, takewhile, zip_longest
from typing import Any, ClassVar, Literal, NamedTuple
from urllib.parse import parse_qs

from wirelint.apis import by_name
from wirelint.jsonvalues import mapping, mappings, number, with_strings
from wirelint.jsonvalues import text as text_of
from wirelint.mock.answer import KEEP_ALIVE, Event, Headers, Tag, encode_message
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
    """The choices of the answer, as far as they are planned."""

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
            "reasoning": sum(len(split_pieces(reply.reasoning)) for reply in self.replies),
            "finish": self.api.finish.get(self.reply.finish),
        }

    @property
    def topic(self) -> Topic:
        return Topic.of(self.ask.user_text)

    def mint(self, name: str, number: int) -> str:
        """Make the id of a call. `number` counts the calls of the conversation from 0."""
        return self.api.mint_call_id(self.model, self.rng, name, number, number - self.ask.calls_before)


class Api(ABC):
    """One wire API, with the facts of its row."""

    ping: ClassVar[bytes] = KEEP_ALIVE
    """A keep-alive event; a comment for APIs without one."""

    def __init__(self, key: str) -> None:
        row = _ROWS[key]
        row = {**_ROWS[row["like"]], **row} if "like" in row else row
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
            choices=min(max(number(body.get("n")) or 1, 1), 16) if row.get("candidates") else 1,
            limit=max(read.max_tokens or 0, 0) or None,
            usage=read.wants_usage is True or not row.get("usage_on_request"),
            thinking=value_at(body, row.get("thinking", "/thinking/none")) not in (None, False, "", "disabled"),
            preamble=row.get("preamble", False),
            parallel=read.parallel_tool_calls is not False,
            prompt_tokens=estimate_tokens(body),
        )

    @abstractmethod
    def make_body(self, turn: Turn) -> Json: ...

    @abstractmethod
    def make_events(self, turn: Turn) -> list[Event]: ...

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

    def fill(self, template: str, turn: Turn | None = None, **values: Json) -> dict[str, Json]:
        """Return a copy of a template with its values, and those of the turn."""
        return mapping(_fill(self.templates[template], {**turn.values, **values} if turn is not None else values))

    def mint(self, turn: Turn) -> str:
        """Make the id of an answer."""
        return mint_id(turn.rng, self.templates["id"])

    def _error_kind(self, status: int) -> tuple[str, Json]:
        kinds: dict[str, tuple[str, Json]] = self._row.get("errors", {})
        words = (str(status), f"{status // 100}xx", "other")
        return next((kinds[word] for word in words if word in kinds), ("", None))


_DONE = Event("done", "[DONE]")


@dataclass(slots=True)
class _EventWriter:
    """Collects the events of one stream. `form` writes the JSON of an event, by default with its name as `type`."""

    form: Callable[[str, dict[str, Json]], str] = lambda name, value: dump_json({"type": name, **value})
    events: list[Event] = field(default_factory=list)

    def add(self, tag: Tag, name: str, value: dict[str, Json]) -> None:
        self.events.append(Event(tag, self.form(name, value), name))

    def add_block(self, names: tuple[str, str, str], place: dict[str, Json], block: _Block) -> None:
        """Add the events of a block: its starts, its deltas, its end. `place` is in each of them."""
        start, delta, stop = names
        for one in block.starts:
            self.add("start", start, place | one)
        for value in block.deltas:
            self.add("delta", delta, {**place, "delta": value})
        self.add("stop", stop, place)


class _Block(NamedTuple):
    """A content block: its value in a whole body; the values of its start events and of its deltas in a stream."""

    whole: Json
    starts: Sequence[dict[str, Json]]
    deltas: Sequence[Json]


def _fill(template: Json, values: Mapping[str, Json]) -> Json:
    return with_strings(template, lambda text: values[text[1:]] if text.startswith("$") else text)


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

    def make_body(self, turn: Turn) -> Json:
        choices: list[Json] = [
            self.fill("choice", index=at, message=self._message(reply), finish=self._finish(reply, turn))
            for at, reply in enumerate(turn.replies)
        ]
        return self.fill("body", turn, id=self.mint(turn), choices=choices, usage=self.fill("usage", turn))

    def make_events(self, turn: Turn) -> list[Event]:
        head = self.fill("chunk", turn, id=self.mint(turn))

        def chunk(tag: Tag, choices: list[Json], usage: Json = None) -> Event:
            value = {**head, "choices": choices, **({"usage": usage} if turn.ask.usage else {})}
            # Padding against traffic analysis: random text of varying length.
            value["obfuscation"] = mint_id(turn.rng, f"{{alnum {turn.rng.randrange(16)}}}")
            return Event(tag, dump_json(value))

        events = [Event("open", dump_json(self.templates["azure"]))] if turn.options.azure else []
        # The choices of one answer take turns, as with the vendor.
        per_choice = (self._deltas(at, reply, turn) for at, reply in enumerate(turn.replies))
        for row in zip_longest(*per_choice):
            events += [chunk(tag, [choice]) for tag, choice in filter(None, row)]
        if turn.ask.usage:
            events.append(chunk("usage", [], self.fill("usage", turn)))
        return [*events, *self.end_stream()]

    def _finish(self, reply: Reply, turn: Turn) -> str:
        # Documented: a forced function ends with `stop`.
        return self.finish["forced" if reply.finish == "tool_calls" and turn.ask.forced else reply.finish]

    def _message(self, reply: Reply) -> Json:
        message: dict[str, Json] = {"role": "assistant", "content": reply.text or None}
        if not (reply.text or reply.calls or reply.refusal):
            message["content"] = ""
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        message |= {"refusal": reply.refusal or None, "annotations": []}
        if reply.calls:
            message["tool_calls"] = [_write_call(call) for call in reply.calls]
        return message

    def _deltas(self, index: int, reply: Reply, turn: Turn) -> Iterator[tuple[Tag, Json]]:
        """Yield the choices of one index in order, each with the tag of its event."""
        opening: dict[str, Json] = {"role": "assistant", "content": "" if reply.text else None, "refusal": None}
        deltas: list[Json] = [{"reasoning_content": piece} for piece in split_pieces(reply.reasoning)]
        deltas += [{"content": piece} for piece in split_pieces(reply.text)]
        deltas += [{"refusal": piece} for piece in split_pieces(reply.refusal)]
        for position, call in enumerate(reply.calls):
            deltas += [{"tool_calls": [delta]} for delta in _write_call_deltas(position, call)]
        yield "open", self.fill("delta", index=index, delta=opening, finish=None)
        for delta in deltas:
            yield "delta", self.fill("delta", index=index, delta=delta, finish=None)
        yield "finish", self.fill("delta", index=index, delta={}, finish=self._finish(reply, turn))


def _write_call_deltas(position: int, call: Call) -> Iterator[Json]:
    place: dict[str, Json] = {} if call.place == "none" else {"index": position if call.place == "own" else 0}
    yield {**place, **_write_call(replace(call, arguments=""))}
    later: dict[str, Json] = {"id": call.later_id} if call.later_id else {}
    for piece in split_pieces(call.arguments):
        yield {**place, **later, "function": {"arguments": piece}}


class Mistral(OpenAIChat):
    """OpenAI's format with content lists for thinking, calls in one piece, and its own errors.

    The path is OpenAI's, so the host decides, or the name of the vendor's SDK. https://docs.mistral.ai/api/#tag/chat
    """

    def serves(self, headers: Mapping[str, str]) -> bool:
        host = headers.get("host", "").partition(":")[0]
        return host.endswith("mistral.ai") or headers.get("user-agent", "").startswith(("mistral-client", "mistralai"))

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        model = text_of(body.get("model")) or text_of(body.get("agent_id"))
        return super().read_request({**body, "model": model}, target)

    def make_events(self, turn: Turn) -> list[Event]:
        head, events = self.fill("chunk", turn, id=self.mint(turn)), list[Event]()

        def add(tag: Tag, index: int, delta: Json, finish: str | None = None) -> None:
            choice: Json = {"index": index, "delta": delta, "finish_reason": finish}
            usage: dict[str, Json] = {"usage": self.fill("usage", turn)} if finish else {}
            events.append(Event(tag, dump_json(head | {"choices": [choice]} | usage)))

        for index, reply in enumerate(turn.replies):
            add("open", index, {"role": "assistant", "content": ""})
            for piece in split_pieces(reply.reasoning):
                add("delta", index, {"content": [self.fill("thinking", text=piece)]})
            for piece in split_pieces(reply.shown):
                add("delta", index, {"content": piece})
            if reply.calls:
                calls: list[Json] = [_write_call(call) | {"index": at} for at, call in enumerate(reply.calls)]
                add("delta", index, {"content": "", "tool_calls": calls})
            add("finish", index, {"content": ""}, self.finish[reply.finish])
        return [*events, _DONE]

    def _message(self, reply: Reply) -> Json:
        content: Json = reply.shown
        if reply.reasoning:
            content = [self.fill("thinking", text=reply.reasoning), {"type": "text", "text": reply.shown}]
        calls: list[Json] = [_write_call(call) for call in reply.calls]
        return {"role": "assistant", "content": content, "tool_calls": calls or None}


class OpenAIResponses(Api):
    """A stream has every item three times: `response.output_item.added`, its deltas with their end, and
    `response.output_item.done`; the last event has the whole response again. All its events are numbered.
    https://platform.openai.com/docs/api-reference/responses-streaming
    """

    def make_body(self, turn: Turn) -> dict[str, Json]:
        is_cut, items = turn.reply.finish == "length", self._items(turn.reply, turn)
        details: Json = {"reason": "max_output_tokens"} if is_cut else None
        facts: dict[str, Json] = {"status": "incomplete" if is_cut else "completed", "details": details}
        return self.fill("body", turn, id=self.mint(turn), **facts, output=[*items])

    def make_events(self, turn: Turn) -> list[Event]:
        response = self.make_body(turn)
        begun = response | {"status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        numbers = count()
        writer = _EventWriter(lambda name, value: dump_json({"type": name, "sequence_number": next(numbers), **value}))
        writer.add("open", "response.created", {"response": begun})
        writer.add("open", "response.in_progress", {"response": begun})
        for index, item in enumerate(objects_in(response["output"])):
            self._add_item(writer, index, item)
        writer.add("done", f"response.{response['status']}", {"response": response})
        return writer.events

    def _items(self, reply: Reply, turn: Turn) -> Iterator[Json]:
        def mint(prefix: str) -> str:
            return mint_id(turn.rng, f"{prefix}_{{hex 48}}")

        if reply.reasoning:
            yield self.fill("reasoning", id=mint("rs"), text=reply.reasoning)
        if reply.shown or not reply.calls:
            part = self.fill("refusal" if reply.refusal else "text", text=reply.refusal or reply.text)
            yield self.fill("message", id=mint("msg"), part=part)
        for call in reply.calls:
            yield self.fill("function_call", id=mint("fc"), call_id=call.id, name=call.name, arguments=call.text)

    def _add_item(self, writer: _EventWriter, index: int, item: dict[str, Json]) -> None:
        at: dict[str, Json] = {"output_index": index}
        place: dict[str, Json] = {"item_id": item["id"], **at}
        first: dict[str, Json] = {**item, **self.templates["begun"][item["type"]]}
        if "status" in item:
            first["status"] = "in_progress"
        writer.add("start", "response.output_item.added", {**at, "item": first})
        summary = "response.reasoning_summary"
        for position, part in enumerate(objects_in(item.get("summary"))):
            where = {**place, "summary_index": position}
            _add_part(writer, f"{summary}_part", f"{summary}_text", where, part, "text")
        for position, part in enumerate(objects_in(item.get("content"))):
            name = "refusal" if part["type"] == "refusal" else "text"
            where = {**place, "content_index": position}
            _add_part(writer, "response.content_part", f"response.{part['type']}", where, part, name)
        if item["type"] == "function_call":
            _add_text(writer, "response.function_call_arguments", place, "arguments", str(item["arguments"]))
        writer.add("stop", "response.output_item.done", {**at, "item": item})


def _add_part(
    writer: _EventWriter, stem: str, text_stem: str, place: dict[str, Json], part: dict[str, Json], name: str
) -> None:
    writer.add("start", f"{stem}.added", {**place, "part": {**part, name: ""}})
    _add_text(writer, text_stem, place, name, str(part[name]))
    writer.add("stop", f"{stem}.done", {**place, "part": part})


def _add_text(writer: _EventWriter, stem: str, place: dict[str, Json], name: str, text: str) -> None:
    for piece in split_pieces(text):
        writer.add("delta", f"{stem}.delta", {**place, "delta": piece})
    writer.add("stop", f"{stem}.done", {**place, name: text})


class OpenAICompletions(Api):
    """A prompt in, its continuation out. There are no tools: if a request declares some, the model writes markup."""

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        """Parse a request. The last user turn of a prompt in the ChatML template is the user's text."""
        ask = super().read_request(body, target)
        _, marked, rest = ask.user_text.rpartition("<|im_start|>user\n")
        last = rest.partition("<|im_end|>")[0] if marked else ask.user_text.strip().rpartition("\n")[2]
        return replace(ask, user_text=last)

    def make_body(self, turn: Turn) -> Json:
        choices: list[Json] = [
            self.fill("choice", index=at, text=_write_text(reply), finish=self.finish[reply.finish])
            for at, reply in enumerate(turn.replies)
        ]
        head = self.fill("head", turn, id=self.mint(turn))
        return head | {"choices": choices, "usage": self.fill("usage", turn)}

    def make_events(self, turn: Turn) -> list[Event]:
        head, events = self.fill("head", turn, id=self.mint(turn)), list[Event]()

        def add(tag: Tag, choices: list[Json], **more: Json) -> None:
            events.append(Event(tag, dump_json({**head, "choices": choices, **more})))

        for at, reply in enumerate(turn.replies):
            for piece in split_pieces(_write_text(reply)):
                add("delta", [self.fill("choice", index=at, text=piece, finish=None)])
            add("finish", [self.fill("choice", index=at, text="", finish=self.finish[reply.finish])])
        if turn.ask.usage:
            add("usage", [], usage=self.fill("usage", turn))
        return [*events, *self.end_stream()]


def _write_text(reply: Reply) -> str:
    thought = f"<think>\n{reply.reasoning}\n</think>\n\n" if reply.reasoning else ""
    return thought + reply.shown + (write_markup("hermes_json", reply.calls) if reply.calls else "")


class DeepInfra(OpenAICompletions):
    def make_body(self, turn: Turn) -> Json:
        return self.fill("body", turn, id=self.mint(turn), text=_write_text(turn.reply))

    def make_events(self, turn: Turn) -> list[Event]:
        text = _write_text(turn.reply)
        pieces = split_pieces(text)
        tokens = [self.fill("token", number=at, text=one, all=None) for at, one in enumerate(pieces)]
        last = self.fill("token", number=len(pieces), text="", all=text)
        last |= {"num_output_tokens": turn.reply.tokens, "num_input_tokens": turn.ask.prompt_tokens}
        return [*(Event("delta", dump_json(token)) for token in tokens), Event("finish", dump_json(last)), _DONE]


# --- content blocks: Anthropic, Bedrock, Cohere ---------------------------------------------------------------------


_PING = Event("ping", '{"type": "ping"}', "ping")


class Anthropic(Api):
    """A stream has `message_start`, each content block as `content_block_start`, deltas and `content_block_stop` (a `ping`
    after the first start), `message_delta` with the stop reason and the usage, and `message_stop`. The `input` of a started
    tool use is `{}`; its arguments come as `input_json_delta` text, the first one empty.
    https://docs.anthropic.com/en/docs/build-with-claude/streaming
    """

    ping = _PING.encode()

    def make_body(self, turn: Turn) -> Json:
        content: list[Json] = [block.whole for block in self._blocks(turn.reply, turn.rng)]
        return self.fill("message", turn, id=self.mint(turn), content=content)

    def make_events(self, turn: Turn) -> list[Event]:
        """Make the events; a ping follows the first start. JSON is padded against traffic analysis."""
        reply, rng = turn.reply, turn.rng
        writer = _EventWriter(
            lambda name, value: f"{dump_json({'type': name, **value})[:-1]}{' ' * rng.randrange(12)}}}"
        )
        message = self.fill("message", turn, id=self.mint(turn), completion=1, content=[], finish=None)
        writer.add("open", "message_start", {"message": message})
        names = ("content_block_start", "content_block_delta", "content_block_stop")
        blocks = self._blocks(reply, rng)
        first = len(blocks) - len(reply.calls)
        for index, block in enumerate(blocks):
            fault = reply.calls[index - first].place if index >= first else "own"
            place: dict[str, Json] = {"index": first if fault == "first" else index}
            writer.add_block(names, {} if fault == "none" else place, block)
        writer.add("finish", "message_delta", self.fill("end", turn))
        writer.add("done", "message_stop", {})
        start = next((at for at, event in enumerate(writer.events, 1) if event.tag == "start"), None)
        if start is not None:
            writer.events.insert(start, _PING)
        return writer.events

    def _blocks(self, reply: Reply, rng: random.Random) -> list[_Block]:
        blocks: list[_Block] = []
        if reply.reasoning:
            signature = base64.b64encode(rng.randbytes(96)).decode()
            whole: dict[str, Json] = {"type": "thinking", "thinking": reply.reasoning, "signature": signature}
            deltas: list[Json] = [{"type": "thinking_delta", "thinking": one} for one in split_pieces(reply.reasoning)]
            deltas.append({"type": "signature_delta", "signature": signature})
            blocks.append(_Block(whole, [{"content_block": whole | {"thinking": "", "signature": ""}}], deltas))
        if reply.shown:
            deltas = [{"type": "text_delta", "text": piece} for piece in split_pieces(reply.shown)]
            begun: Json = {"type": "text", "text": ""}
            blocks.append(_Block({"type": "text", "text": reply.shown}, [{"content_block": begun}], deltas))
        for call in reply.calls:
            whole = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.value}
            start = whole | {"input": decode_value(call.start or "{}")}
            # A second start of one block is a fault (`id-unstable`).
            starts = [start, start | {"id": call.later_id}] if call.later_id else [start]
            pieces = ("", *split_pieces(call.arguments))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
            blocks.append(_Block(whole, [{"content_block": one} for one in starts], deltas))
        return blocks


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

    def make_body(self, turn: Turn) -> Json:
        return self.fill("body", turn, content=[block.whole for block in self._blocks(turn.reply)])

    def make_events(self, turn: Turn) -> list[Event]:
        rng = turn.rng
        writer = _EventWriter(lambda _, value: dump_json({**value, "p": _PADDING[: rng.randrange(1, len(_PADDING))]}))
        writer.add("open", "messageStart", {"role": "assistant"})
        names = ("contentBlockStart", "contentBlockDelta", "contentBlockStop")
        for index, block in enumerate(self._blocks(turn.reply)):
            writer.add_block(names, {"contentBlockIndex": index}, block)
        writer.add("finish", "messageStop", {"stopReason": self.finish[turn.reply.finish]})
        writer.add("done", "metadata", self.fill("end", turn))
        return writer.events

    def _blocks(self, reply: Reply) -> Iterator[_Block]:
        if reply.reasoning:
            signature: dict[str, Json] = {"signature": "c2lnbmVk"}
            deltas: list[Json] = [{"reasoningContent": {"text": piece}} for piece in split_pieces(reply.reasoning)]
            whole: Json = {"reasoningContent": {"reasoningText": {"text": reply.reasoning, **signature}}}
            yield _Block(whole, (), [*deltas, {"reasoningContent": signature}])
        if reply.shown:
            yield _Block({"text": reply.shown}, (), [{"text": piece} for piece in split_pieces(reply.shown)])
        for call in reply.calls:
            named: dict[str, Json] = {"toolUseId": call.id, "name": call.name}
            deltas = [{"toolUse": {"input": piece}} for piece in split_pieces(call.text)]
            yield _Block({"toolUse": {**named, "input": call.value}}, [{"start": {"toolUse": named}}], deltas)


class Cohere(Api):
    """Content blocks and calls have separate numbers, each with a start, deltas and an end event; a plan before the calls
    comes as `tool-plan-delta`. `message-end` has the finish reason and the usage; `[DONE]` follows.
    https://docs.cohere.com/v2/docs/streaming
    """

    def make_body(self, turn: Turn) -> Json:
        reply = turn.reply
        message: dict[str, Json] = {"role": "assistant"}
        if reply.calls:
            message["tool_plan"] = reply.reasoning
            message["tool_calls"] = [_write_call(call) for call in reply.calls]
        content: list[Json] = []
        if reply.reasoning and not reply.calls:
            content.append({"type": "thinking", "thinking": reply.reasoning})
        if reply.shown:
            content.append({"type": "text", "text": reply.shown})
        if content or not reply.calls:
            message["content"] = content
        return {"id": self.mint(turn), "message": message, **self.fill("end", turn)}

    def make_events(self, turn: Turn) -> list[Event]:
        reply = turn.reply
        writer = _EventWriter()
        writer.add("open", "message-start", {"id": self.mint(turn), "delta": self.fill("start")})
        if reply.calls:
            for piece in split_pieces(reply.reasoning):
                writer.add("delta", "tool-plan-delta", {"delta": {"message": {"tool_plan": piece}}})
        texts = {"thinking": "" if reply.calls else reply.reasoning, "text": reply.shown}
        for index, (kind, text) in enumerate((kind, text) for kind, text in texts.items() if text):
            begun: dict[str, Json] = {"delta": {"message": {"content": {"type": kind, kind: ""}}}}
            deltas: list[Json] = [{"message": {"content": {kind: piece}}} for piece in split_pieces(text)]
            names = ("content-start", "content-delta", "content-end")
            writer.add_block(names, {"index": index}, _Block(None, [begun], deltas))
        for index, call in enumerate(reply.calls):
            begun = {"delta": {"message": {"tool_calls": _write_call(replace(call, start="", arguments=""))}}}
            deltas = [{"message": {"tool_calls": {"function": {"arguments": one}}}} for one in split_pieces(call.text)]
            names = ("tool-call-start", "tool-call-delta", "tool-call-end")
            writer.add_block(names, {"index": index}, _Block(None, [begun], deltas))
        writer.add("finish", "message-end", {"delta": self.fill("end", turn)})
        return [*writer.events, _DONE]


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

    def make_body(self, turn: Turn) -> Json:
        parts = self._parts(turn, lambda text: [text] if text else [])
        if not (turn.reply.shown or turn.reply.calls):
            parts.append({"text": ""})
        return self._reply(parts, turn, self.mint(turn), ends=True)

    def make_events(self, turn: Turn) -> list[Event]:
        id_ = self.mint(turn)
        deltas = [self._reply([part], turn, id_) for part in self._parts(turn, split_pieces)]
        end = self._reply([{"text": ""}], turn, id_, ends=True)
        return [*(Event("delta", dump_json(delta)) for delta in deltas), Event("finish", dump_json(end))]

    def _parts(self, turn: Turn, split: Callable[[str], list[str]]) -> list[Json]:
        """Return the parts of a reply. The first call carries the signature of the thought before it."""
        reply = turn.reply
        parts: list[Json] = [{"text": piece, "thought": True} for piece in split(reply.reasoning)]
        parts += [{"text": piece} for piece in split(reply.shown)]
        calls: list[dict[str, Json]] = [{"functionCall": {"name": one.name, "args": one.value}} for one in reply.calls]
        for first in calls[:1]:
            first["thoughtSignature"] = base64.b64encode(turn.rng.randbytes(48)).decode()
        return [*parts, *calls]

    def _reply(self, parts: list[Json], turn: Turn, id_: str, *, ends: bool = False) -> Json:
        usage: dict[str, Json] = {"promptTokenCount": turn.values["prompt"], "totalTokenCount": turn.values["total"]}
        finish: dict[str, Json] = {}
        if ends:
            usage["candidatesTokenCount"] = turn.values["completion"]
            finish["finishReason"] = turn.values["finish"]
        content: Json = {"parts": parts, "role": "model"}
        candidates: Json = [{"content": content, **finish, "index": 0}]
        return {"candidates": candidates, "usageMetadata": usage, **self.fill("head", turn, id=id_)}


class OllamaChat(Api):
    """JSON lines unless the request declines the stream. A call comes whole, in a separate line, its arguments as a value;
    a reply with calls ends with `stop`. The last line has `done: true`, the reason and the counts. An error is a string.
    https://github.com/ollama/ollama/blob/main/docs/api.md
    """

    text_member = "content"

    def make_body(self, turn: Turn) -> Json:
        reply = turn.reply
        content: dict[str, Json] = {self.text_member: reply.shown}
        if reply.reasoning:
            content["thinking"] = reply.reasoning
        if reply.calls:
            content["tool_calls"] = _write_whole_calls(reply)
        return self._line(content, turn) | self.fill("end", turn)

    def make_events(self, turn: Turn) -> list[Event]:
        reply = turn.reply
        content: list[dict[str, Json]] = [{"thinking": piece} for piece in split_pieces(reply.reasoning)]
        content += [{self.text_member: piece} for piece in split_pieces(reply.shown)]
        content += [{"tool_calls": [call]} for call in _write_whole_calls(reply)]
        lines = [self._line({self.text_member: "", **one}, turn) for one in content]
        last = self._line({self.text_member: ""}, turn) | self.fill("end", turn)
        return [*(Event("delta", dump_json(line)) for line in lines), Event("done", dump_json(last))]

    def _line(self, content: dict[str, Json], turn: Turn) -> dict[str, Json]:
        return self.fill("line", turn, content={"role": "assistant", **content})


class OllamaGenerate(OllamaChat):
    text_member = "response"

    def _line(self, content: dict[str, Json], turn: Turn) -> dict[str, Json]:
        line = super()._line({}, turn)
        done = {"done": line.pop("done")}
        line.pop("message")
        return line | content | done


def _write_whole_calls(reply: Reply) -> list[Json]:
    return [
        {"function": {"index": at, "name": call.name, "arguments": call.value}} for at, call in enumerate(reply.calls)
    ]


OPENAI, ANTHROPIC = OpenAIChat("openai_chat"), Anthropic("anthropic")
APIS: tuple[Api, ...] = (
    Mistral("mistral"),
    OPENAI,
    ANTHROPIC,
    OpenAIResponses("openai_responses"),
    OpenAICompletions("openai_completions"),
    DeepInfra("deepinfra"),
    Gemini("gemini"),
    OllamaChat("ollama_chat"),
    OllamaGenerate("ollama_generate"),
    Cohere("cohere"),
    Bedrock("bedrock"),
    BedrockAnthropic("bedrock_anthropic"),
    Anthropic("vertex_anthropic"),
)
"""The APIs in the order in which `Api.serves` is called."""
