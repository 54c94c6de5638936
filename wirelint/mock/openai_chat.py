"""OpenAI's Chat Completions as the vendor shapes it, streams included.

A stream opens with a chunk that has the role, goes on with one delta a token, ends with an empty delta that has the
finish reason, then (`stream_options.include_usage`) a chunk without choices that has the usage, then `[DONE]`.
Reasoning stands in `reasoning_content`, where DeepSeek, Kimi and the open servers put it.
https://platform.openai.com/docs/api-reference/chat/streaming
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import zip_longest

from wirelint.mock.answer import KEEP_ALIVE, Event, Headers, Tag
from wirelint.mock.api import (
    Ability,
    Envelope,
    RequestError,
    count_of,
    messages_of,
    object_of,
    objects_in,
    string_of,
    text_of,
)
from wirelint.mock.ids import mint_call_id, random_text
from wirelint.mock.plan import Ask, Call, Choice, Reply, Tool, dump_json, split_pieces
from wirelint.model import Json

_ERROR_TYPES = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "not_found"),
    405: ("invalid_request_error", "method_not_supported"),
    429: ("requests", "rate_limit_exceeded"),
}


class OpenAIChat:
    name = "openai.chat"
    path = "/v1/chat/completions"
    abilities: frozenset[Ability] = frozenset({"numbers", "text", "reasons", "chat", "calls", "ids", "counts", "ends"})
    busy_status = 429
    ping = KEEP_ALIVE

    def serves(self, headers: Mapping[str, str]) -> bool:
        return True

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        messages = messages_of(body)
        model = body.get("model")
        if not isinstance(model, str) or not model:
            raise RequestError("you must provide a model parameter")
        choice = body.get("tool_choice")
        options = object_of(body.get("stream_options"))
        calls = [call for message in messages for call in objects_in(message.get("tool_calls"))]
        result, tool = _read_result(messages, calls)
        last_user = next((one for one in reversed(messages) if one.get("role") == "user"), {})
        return Ask(
            model=model,
            tools=tuple(_read_tools(body)),
            choice=_CHOICES.get(string_of(choice), "auto"),
            forced=string_of(object_of(object_of(choice).get("function")).get("name")) or None,
            user_text=text_of(last_user.get("content")),
            result=result,
            result_tool=tool,
            calls_before=len(calls),
            stream=body.get("stream") is True,
            choices=min(count_of(body.get("n")) or 1, 16),
            parallel=body.get("parallel_tool_calls") is not False,
            limit=count_of(body.get("max_completion_tokens"), body.get("max_tokens")),
            usage=options.get("include_usage") is True,
            prompt_tokens=max(len(dump_json(body.get("messages"))) // 4, 1),
        )

    def mint_call_id(self, model: str, rng: random.Random, name: str, number: int, position: int) -> str:
        return mint_call_id(model, rng, name, number, position)

    def make_headers(self, envelope: Envelope) -> Headers:
        request = random_text(envelope.rng, 32, "0123456789abcdef")
        return (("x-request-id", f"req_{request}"), ("openai-version", "2020-10-01"))

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        return {
            "id": _mint_completion_id(envelope),
            "object": "chat.completion",
            "created": envelope.created,
            "model": envelope.model,
            "choices": [_make_choice(at, reply, ask) for at, reply in enumerate(replies)],
            "usage": _make_usage(replies, ask),
            "service_tier": "default",
            "system_fingerprint": "fp_5f2a91c07b",
        }

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        completion = _mint_completion_id(envelope)

        def chunk(tag: Tag, choices: list[Json], usage: Json = None) -> Event:
            value: dict[str, Json] = {
                "id": completion,
                "object": "chat.completion.chunk",
                "created": envelope.created,
                "model": envelope.model,
                "service_tier": "default",
                "system_fingerprint": "fp_5f2a91c07b",
                "choices": choices,
            }
            if ask.usage:
                value["usage"] = usage
            # Padding against traffic analysis: its length varies, its text means nothing.
            value["obfuscation"] = random_text(envelope.rng, envelope.rng.randrange(16))
            return Event(tag, dump_json(value))

        events = [Event("open", dump_json(_AZURE_OPENER))] if envelope.options.azure else []
        # The choices of one answer take turns, as with the vendor.
        per_choice = (_make_deltas(at, reply, ask) for at, reply in enumerate(replies))
        for row in zip_longest(*per_choice):
            events += [chunk(tag, [choice]) for tag, choice in filter(None, row)]
        if ask.usage:
            events.append(chunk("usage", [], _make_usage(replies, ask)))
        return [*events, Event("done", "[DONE]")]

    def make_error(self, status: int, message: str) -> Json:
        kind, code = _ERROR_TYPES.get(status, ("server_error", None))
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def make_error_events(self, status: int, message: str) -> list[Event]:
        return [Event("error", dump_json(self.make_error(status, message))), Event("done", "[DONE]")]


_CHOICES: dict[str, Choice] = {"none": "none", "required": "required"}


def _read_tools(body: dict[str, Json]) -> list[Tool]:
    functions = [object_of(tool.get("function")) for tool in objects_in(body.get("tools"))]
    functions += objects_in(body.get("functions"))
    return [
        Tool(string_of(function.get("name")), object_of(function.get("parameters")))
        for function in functions
        if function.get("name")
    ]


def _read_result(messages: list[dict[str, Json]], calls: list[dict[str, Json]]) -> tuple[str | None, str]:
    """The text of the tool messages at the end, and the name of the tool that the last of them answers."""
    texts: list[str] = []
    name = "the tool"
    for message in reversed(messages):
        if message.get("role") not in ("tool", "function"):
            break
        if not texts:
            call = next((one for one in calls if one.get("id") == message.get("tool_call_id")), {})
            name = string_of(object_of(call.get("function")).get("name"), string_of(message.get("name"), name))
        texts.insert(0, text_of(message.get("content")))
    return ("\n".join(texts) if texts else None), name


def _mint_completion_id(envelope: Envelope) -> str:
    return f"chatcmpl-{random_text(envelope.rng, 29)}"


def _finish_reason(reply: Reply, ask: Ask) -> str:
    match reply.finish:
        case "tool_calls":
            # Documented: a forced function ends with `stop`.
            return "stop" if ask.forced else "tool_calls"
        case "refusal":
            return "stop"
        case _:
            return reply.finish


def _make_choice(index: int, reply: Reply, ask: Ask) -> Json:
    message: dict[str, Json] = {"role": "assistant", "content": reply.text or None}
    if not (reply.text or reply.calls or reply.refusal):
        message["content"] = ""
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    message |= {"refusal": reply.refusal or None, "annotations": []}
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.start + call.arguments},
            }
            for call in reply.calls
        ]
    return {"index": index, "message": message, "logprobs": None, "finish_reason": _finish_reason(reply, ask)}


def _make_deltas(index: int, reply: Reply, ask: Ask) -> list[tuple[Tag, Json]]:
    """The choices of one index in order, each with the tag of its event."""

    def choice(delta: dict[str, Json], finish: str | None = None) -> Json:
        return {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}

    opening: dict[str, Json] = {"role": "assistant", "content": "" if reply.text else None, "refusal": None}
    deltas: list[dict[str, Json]] = [{"reasoning_content": piece} for piece in split_pieces(reply.reasoning)]
    deltas += [{"content": piece} for piece in split_pieces(reply.text)]
    deltas += [{"refusal": piece} for piece in split_pieces(reply.refusal)]
    for position, call in enumerate(reply.calls):
        deltas += [{"tool_calls": [delta]} for delta in _make_call_deltas(position, call)]
    return [
        ("open", choice(opening)),
        *(("delta", choice(delta)) for delta in deltas),
        ("finish", choice({}, _finish_reason(reply, ask))),
    ]


def _make_call_deltas(position: int, call: Call) -> list[Json]:
    place: dict[str, Json] = {}
    if call.place != "none":
        place["index"] = position if call.place == "own" else 0
    function: dict[str, Json] = {"name": call.name, "arguments": call.start}
    deltas: list[Json] = [{**place, "id": call.id, "type": "function", "function": function}]
    for piece in split_pieces(call.arguments):
        later: dict[str, Json] = {"id": call.later_id} if call.later_id else {}
        deltas.append({**place, **later, "function": {"arguments": piece}})
    return deltas


def _make_usage(replies: tuple[Reply, ...], ask: Ask) -> Json:
    completion = sum(reply.tokens for reply in replies)
    reasoning = sum(len(split_pieces(reply.reasoning)) for reply in replies)
    return {
        "prompt_tokens": ask.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": ask.prompt_tokens + completion,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reasoning, "audio_tokens": 0},
    }


_SAFE: Json = {"filtered": False, "severity": "safe"}
_AZURE_OPENER: Json = {
    "choices": [],
    "created": 0,
    "id": "",
    "model": "",
    "object": "",
    "prompt_filter_results": [
        {
            "prompt_index": 0,
            "content_filter_results": dict.fromkeys(("hate", "self_harm", "sexual", "violence"), _SAFE),
        }
    ],
}
"""Azure's first chunk: the verdict on the prompt, with no choice and empty ids."""
