"""Builders of exchanges for the tests: said once, written in every API's own shape, whole and streamed.

A `Talk` is vendor-neutral: history, tools, and the reply. `talk.record(api, stream)` gives the hand-made record that the
command line reads too (`{"request": …, "response": …}`); `lint` runs rules over records and gives findings of the last.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, AnyStr, TypeVar

import pytest

from wirelint.capture.offline import Checked, check
from wirelint.capture.readers import Problem
from wirelint.capture.record import Record
from wirelint.capture.replay import replay
from wirelint.engine import Engine
from wirelint.model import Exchange, Timing
from wirelint.registry import Registry
from wirelint.rule import Finding, Rule

REGISTRY = Registry.load()
APIS = ("openai.chat", "anthropic.messages")
_HERE = frozenset(APIS)
"""APIs whose shapes are written in this file."""
CALLING = (
    *("openai.chat", "anthropic.messages", "openai.responses", "google.generate_content", "ollama.chat"),
    *("mistral.chat", "cohere.chat", "bedrock.converse"),
)
"""APIs that have a form for calls."""
FORMS = tuple(itertools.product(APIS, (False, True)))
T = TypeVar("T")
_TIMES = ("started", "first_byte_ms", "first_token_ms", "duration_ms")


def some(value: T | None) -> T:
    """The value, which must be there."""
    assert value is not None
    return value


def complaint(kind: type[Exception], act: Callable[[], object]) -> str:
    """The message of the error that a call raises: one line."""
    with pytest.raises(kind) as caught:
        act()
    message = str(caught.value)
    assert "\n" not in message
    return message


def forms(*apis: str) -> tuple[tuple[str, bool], ...]:
    """APIs, whole and streamed."""
    return tuple(itertools.product(apis, (False, True)))


def schema(required: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    """An object schema. A property given as a plain type name is `{"type": …}`."""
    shaped = {name: {"type": kind} if isinstance(kind, str) else kind for name, kind in properties.items()}
    return {"type": "object", "properties": shaped, "required": list(required or properties)}


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Any = field(default_factory=dict)
    """A value, or the argument text itself."""
    id: str | None = "call_8Zr2kQmVw4TnXc1LbYd6HsPe"

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)

    @property
    def value(self) -> Any:
        return json.loads(self.arguments) if isinstance(self.arguments, str) else self.arguments


@dataclass(frozen=True)
class User:
    text: str


@dataclass(frozen=True)
class Assistant:
    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""


@dataclass(frozen=True)
class Result:
    call_id: str | None
    text: str
    is_error: bool | None = None


Turn = User | Assistant | Result


def turns_of(told: Iterable[Any], known: Mapping[str, Any]) -> list[Turn]:
    """Turns from their rows in a table: a call is [name, arguments, id], a result [id of the call, text].

    A name in the place of a turn or a call stands for one that is `known`.
    """
    turns: list[Turn] = []
    for one in told:
        match one:
            case str():
                turns.append(known[one])
            case {"user": text}:
                turns.append(User(text))
            case {"result": [id_, text]}:
                turns.append(Result(id_, text))
            case _:
                calls = tuple(known[call] if isinstance(call, str) else Call(*call) for call in one.get("calls", ()))
                turns.append(Assistant(one.get("text", ""), calls, one.get("reasoning", "")))
    return turns


_OPENAI_REASONS = {"stop": "stop", "tool": "tool_calls", "length": "length", "filter": "content_filter"}
_ANTHROPIC_REASONS = {"stop": "end_turn", "tool": "tool_use", "length": "max_tokens", "filter": "refusal"}


@dataclass(frozen=True)
class Talk:
    """One exchange, vendor-neutral. `finish` is stop | tool | length | filter | None (left out) or a literal value.

    `tools` maps names to a schema or to (description, schema). `request` is merged over the request body.
    """

    history: Sequence[Turn] = (User("Please go on."),)
    text: str = ""
    calls: Sequence[Call] = ()
    reasoning: str = ""
    tools: Mapping[str, Any] = field(default_factory=dict)
    finish: str | None = ""
    system: str = ""
    model: str = "acme-1"
    tool_choice: Any = None
    request: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    step: int = 7
    """Characters a streamed delta carries."""
    first: int = 0
    """Characters of the first delta of the text, if not as many; for OpenAI's chat and Anthropic's messages."""

    @property
    def reason(self) -> str | None:
        return ("tool" if self.calls else "stop") if self.finish == "" else self.finish

    def reason_in(self, words: Mapping[str, Any]) -> Any:
        """Return the finish reason in the words of an API; None without one."""
        return None if self.reason is None else words.get(self.reason, self.reason)

    @property
    def declared(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Name, description and schema of each tool."""
        return [(name, *(one if isinstance(one, tuple) else ("", one))) for name, one in self.tools.items()]

    def answered(
        self, path: str, body: Mapping[str, Any], reply: str | Mapping[str, Any], **more: Any
    ) -> dict[str, Any]:
        """Return the record of a request and its reply: an event stream, or the document of a whole body."""
        kind = "text/event-stream" if isinstance(reply, str) else "application/json"
        return exchange(path, {**body, **self.request}, reply, content_type=kind, status=self.status, **more)

    def record(self, api: str, stream: bool) -> dict[str, Any]:
        if api not in _HERE:  # written by tests/apis/talk_<api>.py
            module = importlib.import_module(f"tests.apis.talk_{api.replace('.', '_')}")
            made: dict[str, Any] = module.record(self, stream)
            return made
        streamed: dict[str, Any] = {"stream": True} if stream else {}
        if api == "openai.chat":
            if stream:  # the reply tells no counts, and so none are asked for
                streamed["stream_options"] = {"include_usage": False}
            reply = _openai_stream(self) if stream else _openai_reply(self)
            return self.answered("/v1/chat/completions", _openai_request(self) | streamed, reply)
        reply = _anthropic_stream(self) if stream else _anthropic_reply(self)
        headers = {"anthropic-version": "2023-06-01"}
        return self.answered("/v1/messages", _anthropic_request(self) | streamed, reply, request_headers=headers)


def exchange(
    path: str,
    body: Mapping[str, Any],
    reply: str | Mapping[str, Any],
    *,
    request_headers: Mapping[str, str] | None = None,
    content_type: str = "application/json",
    status: int = 200,
) -> dict[str, Any]:
    """A hand-made record."""
    return {
        "request": {
            "method": "POST",
            "url": f"http://llm.test{path}",
            "headers": {"content-type": "application/json", **(request_headers or {})},
            "body": json.dumps(body, ensure_ascii=False),
        },
        "response": {
            "status": status,
            "headers": {"content-type": content_type},
            "body": reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False),
        },
    }


def sse(*documents: Any, done: bool = True, named: bool = False) -> str:
    """An event stream of JSON documents. `named`: with Anthropic's event lines and without `[DONE]`."""
    events = []
    for document in documents:
        name = f"event: {document['type']}\n" if named else ""
        events.append(f"{name}data: {json.dumps(document, ensure_ascii=False)}\n\n")
    return "".join(events) + ("data: [DONE]\n\n" if done and not named else "")


def events_of(stream: str, *, comments: bool = False) -> Iterator[tuple[str | None, str]]:
    """Read the events of a stream by the letter of the standard, as (name, data); what it would ignore fails.

    `comments`: yield them too, as (None, ": …").
    """
    text = stream.removeprefix("\ufeff").replace("\r\n", "\n")
    assert not text or text.endswith("\n\n"), text[-80:]
    for event in filter(None, text.split("\n\n")):
        name, data = None, []
        for line in event.split("\n"):
            field, colon, value = line.partition(":")
            assert colon, line
            assert field in ("", "data", "event", "id", "retry"), line
            if field == "event":
                name = value.removeprefix(" ")
            elif field == "data":
                data.append(value.removeprefix(" "))
            elif not field and comments:
                yield None, line
        if data:
            yield name, "\n".join(data)


def chunk(delta: Mapping[str, Any] | None = None, finish: str | None = None, **extra: Any) -> dict[str, Any]:
    """One `chat.completion.chunk`."""
    choices = [{"index": 0, "delta": dict(delta or {}), "finish_reason": finish}]
    head = {"id": "chatcmpl-7f", "object": "chat.completion.chunk", "created": 1767225600, "model": "acme-1"}
    return {**head, "choices": choices, **extra}


def as_record(record: Mapping[str, Any], number: int = 1) -> Record:
    request, response = record["request"], record["response"]
    return Record(
        id=str(record.get("id", f"test:{number}")),
        method=request.get("method", "POST"),
        url=request.get("url", ""),
        request_headers=tuple(request.get("headers", {}).items()),
        request_body=_bytes(request.get("body")),
        status=response.get("status", 200),
        response_headers=tuple(response.get("headers", {}).items()),
        response_body=_bytes(response.get("body")),
        chunks=tuple((float(at), size) for at, size in response.get("chunks", ())),
        timing=Timing(*(record.get("timing", {}).get(name) for name in _TIMES)),
        end=record.get("end", "unknown"),
    )


def read(record: Mapping[str, Any], number: int = 1) -> Exchange:
    """The exchange of a record; it must be of an API that is understood."""
    found = replay(as_record(record, number))
    assert found is not None, f"not understood: {record['request'].get('url')}"
    return found


_selected = functools.cache(REGISTRY.select)


def lint(records: Iterable[Mapping[str, Any]], rules: Sequence[str] = ()) -> tuple[Finding, ...]:
    """Findings on the last of some records that pass one after the other."""
    engine = Engine(_selected(tuple(rules)))
    findings: tuple[Finding, ...] = ()
    for number, record in enumerate(records, 1):
        findings = engine.check(read(record, number))
    return findings


def judged(record: Mapping[str, Any] | Record, *rules: str) -> Checked:
    """A record with the findings of some rules."""
    made = record if isinstance(record, Record) else as_record(record)
    (found,) = check([made], _selected(rules) if rules else ())
    assert isinstance(found, Checked)
    return found


def checked(items: Iterable[Record | Problem], rules: Sequence[Rule] = REGISTRY.rules) -> list[Checked]:
    """The exchanges among what was read, with the findings of rules."""
    return [one for one in check(items, rules) if isinstance(one, Checked)]


def _bytes(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body, ensure_ascii=False).encode()


def in_pieces(text: AnyStr, step: int, first: int = 0) -> Iterator[AnyStr]:
    """Cut a text, or bytes, into pieces of `step` characters, behind a piece of `first` characters."""
    if first:
        yield text[:first]
    yield from (text[start : start + step] for start in range(first, len(text), step))


def functions(talk: Talk) -> dict[str, Any]:
    """Return the tools of a talk in OpenAI's form, as the member of a request; nothing without tools."""
    tools = [
        {"type": "function", "function": {"name": name, "description": described, "parameters": parameters}}
        for name, described, parameters in talk.declared
    ]
    return {"tools": tools} if tools else {}


def _openai_call(call: Call) -> dict[str, Any]:
    made = {"type": "function", "function": {"name": call.name, "arguments": call.text}}
    return made if call.id is None else {"id": call.id, **made}


def _openai_request(talk: Talk) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": talk.system}] if talk.system else []
    for turn in talk.history:
        match turn:
            case User(text):
                messages.append({"role": "user", "content": text})
            case Assistant(text, calls, reasoning):
                message: dict[str, Any] = {"role": "assistant", "content": text or None}
                if reasoning:
                    message["reasoning_content"] = reasoning
                if calls:
                    message["tool_calls"] = [_openai_call(call) for call in calls]
                messages.append(message)
            case Result(call_id, text, _):
                messages.append({"role": "tool", "tool_call_id": call_id, "content": text})
    body: dict[str, Any] = {"model": talk.model, "messages": messages, **functions(talk)}
    if talk.tool_choice is not None:
        body["tool_choice"] = talk.tool_choice
    return body


def _openai_reply(talk: Talk) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": talk.text or None}
    if talk.reasoning:
        message["reasoning_content"] = talk.reasoning
    if talk.calls:
        message["tool_calls"] = [_openai_call(call) for call in talk.calls]
    return {
        "id": "chatcmpl-7f",
        "object": "chat.completion",
        "created": 1767225600,
        "model": talk.model,
        "choices": [{"index": 0, "message": message, "finish_reason": talk.reason_in(_OPENAI_REASONS)}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def _openai_stream(talk: Talk) -> str:
    chunks = [chunk({"role": "assistant", "content": ""})]
    chunks += [chunk({"reasoning_content": piece}) for piece in in_pieces(talk.reasoning, talk.step)]
    chunks += [chunk({"content": piece}) for piece in in_pieces(talk.text, talk.step, talk.first)]
    for index, call in enumerate(talk.calls):
        head: dict[str, Any] = {"index": index, "type": "function", "function": {"name": call.name, "arguments": ""}}
        if call.id is not None:
            head["id"] = call.id
        chunks.append(chunk({"tool_calls": [head]}))
        chunks += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in in_pieces(call.text, talk.step)
        ]
    chunks.append(chunk({}, talk.reason_in(_OPENAI_REASONS)))
    return sse(*chunks)


def _anthropic_call(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.value}


def _anthropic_request(talk: Talk) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for turn in talk.history:
        match turn:
            case User(text):
                messages.append({"role": "user", "content": text})
            case Assistant(text, calls, reasoning):
                blocks: list[dict[str, Any]] = []
                if reasoning:
                    blocks.append({"type": "thinking", "thinking": reasoning, "signature": "c2ln"})
                if text:
                    blocks.append({"type": "text", "text": text})
                messages.append({"role": "assistant", "content": [*blocks, *map(_anthropic_call, calls)]})
            case Result(call_id, text, is_error):
                block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": text}
                if is_error is not None:
                    block["is_error"] = is_error
                last = messages[-1] if messages else {}
                if last.get("role") == "user" and isinstance(last["content"], list):
                    last["content"].append(block)
                else:
                    messages.append({"role": "user", "content": [block]})
    body: dict[str, Any] = {"model": talk.model, "max_tokens": 1024, "messages": messages}
    if talk.system:
        body["system"] = talk.system
    if talk.tools:
        body["tools"] = [
            {"name": name, "description": described, "input_schema": parameters}
            for name, described, parameters in talk.declared
        ]
    if talk.tool_choice is not None:
        choice = talk.tool_choice
        body["tool_choice"] = {"type": "any" if choice == "required" else choice} if isinstance(choice, str) else choice
    return body


def _anthropic_reply(talk: Talk) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if talk.reasoning:
        blocks.append({"type": "thinking", "thinking": talk.reasoning, "signature": "c2ln"})
    if talk.text:
        blocks.append({"type": "text", "text": talk.text})
    blocks += map(_anthropic_call, talk.calls)
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": talk.model,
        "content": blocks,
        "stop_reason": talk.reason_in(_ANTHROPIC_REASONS),
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


def _anthropic_stream(talk: Talk) -> str:
    # The deltas carry the argument text as it is, JSON or not.
    whole = _anthropic_reply(replace(talk, calls=[replace(call, arguments={}) for call in talk.calls]))
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "ping"},
    ]
    calls = iter(talk.calls)
    for index, block in enumerate(whole["content"]):
        arguments = next(calls).text if block["type"] == "tool_use" else ""
        empty, deltas = _anthropic_deltas(block, arguments, talk.step, talk.first)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}})
    events.append({"type": "message_stop"})
    return sse(*events, named=True)


def _anthropic_deltas(
    block: dict[str, Any], arguments: str, step: int, first: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""}, [
                {"type": "text_delta", "text": piece} for piece in in_pieces(block["text"], step, first)
            ]
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in in_pieces(block["thinking"], step)]
            return {"type": "thinking", "thinking": "", "signature": ""}, [
                *deltas,
                {"type": "signature_delta", "signature": "c2ln"},
            ]
        case _:
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": piece} for piece in in_pieces(arguments, step)
            ]
