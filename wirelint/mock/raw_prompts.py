"""The raw endpoints, a prompt in and its continuation out: OpenAI's Completions and DeepInfra's inference API.

Nothing there reads tools or writes calls. Where somebody sends tools all the same, the model calls them as it was trained
to, in markup, and that is the text.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import unquote

from wirelint.mock.answer import KEEP_ALIVE, Event, Headers
from wirelint.mock.api import Ability, Envelope, RequestError, count_of, object_of, objects_in, string_of
from wirelint.mock.ids import mint_call_id, random_text
from wirelint.mock.markup import MARKUP
from wirelint.mock.openai_chat import OpenAIChat
from wirelint.mock.plan import Ask, Reply, Tool, dump_json, split_pieces
from wirelint.model import Json


def _read_prompt(prompt: str, body: dict[str, Json], model: str, limit: int | None) -> Ask:
    functions = [object_of(tool.get("function")) for tool in objects_in(body.get("tools"))]
    return Ask(
        model=model,
        tools=tuple(Tool(string_of(one.get("name")), object_of(one.get("parameters"))) for one in functions),
        user_text=_last_turn(prompt),
        stream=body.get("stream") is True,
        limit=limit,
        usage=object_of(body.get("stream_options")).get("include_usage") is True,
        prompt_tokens=max(len(prompt) // 4, 1),
    )


def _last_turn(prompt: str) -> str:
    """What the user says last, as far as a model of the ChatML family reads prompts."""
    _, marked, rest = prompt.rpartition("<|im_start|>user\n")
    return rest.partition("<|im_end|>")[0] if marked else prompt.strip().rpartition("\n")[2]


def _write(reply: Reply) -> str:
    thought = f"<think>\n{reply.reasoning}\n</think>\n\n" if reply.reasoning else ""
    called = MARKUP["hermes_json"](reply.calls) if reply.calls else ""
    return thought + (reply.text or reply.refusal) + called


class OpenAICompletions:
    name = "openai.completions"
    path = "/v1/completions"
    abilities: frozenset[Ability] = frozenset({"counts", "ends"})
    busy_status = 429
    ping = KEEP_ALIVE

    def serves(self, headers: Mapping[str, str]) -> bool:
        return True

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        prompt = body.get("prompt")
        if not isinstance(prompt, str) or not prompt:
            raise RequestError("prompt: text is required")
        model = string_of(body.get("model"))
        if not model:
            raise RequestError("you must provide a model parameter")
        ask = _read_prompt(prompt, body, model, count_of(body.get("max_tokens")))
        return replace(ask, choices=min(count_of(body.get("n")) or 1, 16))

    def mint_call_id(self, model: str, rng: random.Random, name: str, number: int, position: int) -> str:
        return mint_call_id(model, rng, name, number, position)

    def make_headers(self, envelope: Envelope) -> Headers:
        return (("x-request-id", f"req_{random_text(envelope.rng, 32, '0123456789abcdef')}"),)

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        choices = [_make_choice(index, _write(reply), _finish(reply)) for index, reply in enumerate(replies)]
        return _make_head(envelope) | {"choices": choices, "usage": _make_usage(replies, ask)}

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        head = _make_head(envelope)
        events: list[Event] = []
        for index, reply in enumerate(replies):
            pieces = split_pieces(_write(reply))
            events += [Event("delta", dump_json(head | {"choices": [_make_choice(index, one)]})) for one in pieces]
            end: list[Json] = [_make_choice(index, "", _finish(reply))]
            events.append(Event("finish", dump_json(head | {"choices": end})))
        if ask.usage:
            events.append(Event("usage", dump_json(head | {"choices": [], "usage": _make_usage(replies, ask)})))
        return [*events, Event("done", "[DONE]")]

    def make_error(self, status: int, message: str) -> Json:
        return OpenAIChat().make_error(status, message)

    def make_error_events(self, status: int, message: str) -> list[Event]:
        return OpenAIChat().make_error_events(status, message)


def _make_head(envelope: Envelope) -> dict[str, Json]:
    return {
        "id": f"cmpl-{random_text(envelope.rng, 29)}",
        "object": "text_completion",
        "created": envelope.created,
        "model": envelope.model,
    }


def _make_choice(index: int, text: str, finish: str | None = None) -> Json:
    return {"text": text, "index": index, "logprobs": None, "finish_reason": finish}


def _finish(reply: Reply) -> str:
    return "length" if reply.finish == "length" else "stop"


def _make_usage(replies: tuple[Reply, ...], ask: Ask) -> Json:
    completion = sum(reply.tokens for reply in replies)
    total = ask.prompt_tokens + completion
    return {"prompt_tokens": ask.prompt_tokens, "completion_tokens": completion, "total_tokens": total}


class DeepInfra:
    name = "deepinfra.inference"
    path = r"/v1/inference/(?P<model>[^/]+/.+)"
    abilities: frozenset[Ability] = frozenset()
    busy_status = 429
    ping = KEEP_ALIVE

    def serves(self, headers: Mapping[str, str]) -> bool:
        return True

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        prompt = body.get("input")
        if not isinstance(prompt, str) or not prompt:
            raise RequestError("input: field required")
        model = unquote(target.partition("?")[0].partition("/inference/")[2])
        return _read_prompt(prompt, body, model, count_of(body.get("max_new_tokens")))

    def mint_call_id(self, model: str, rng: random.Random, name: str, number: int, position: int) -> str:
        return mint_call_id(model, rng, name, number, position)

    def make_headers(self, envelope: Envelope) -> Headers:
        return (("x-deepinfra-request-id", random_text(envelope.rng, 22)),)

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        counts: dict[str, Json] = {"tokens_generated": reply.tokens, "tokens_input": ask.prompt_tokens}
        return {
            "request_id": random_text(envelope.rng, 22),
            "inference_status": {"status": "succeeded", "runtime_ms": 41, "cost": 0.0001, **counts},
            "results": [{"generated_text": _write(reply)}],
            "num_tokens": reply.tokens,
            "num_input_tokens": ask.prompt_tokens,
        }

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply = replies[0]
        text = _write(reply)
        events = [Event("delta", dump_json(_make_token(number, one))) for number, one in enumerate(split_pieces(text))]
        counts: dict[str, Json] = {"num_output_tokens": reply.tokens, "num_input_tokens": ask.prompt_tokens}
        last = _make_token(len(events), "") | {"generated_text": text, **counts}
        return [*events, Event("finish", dump_json(last)), Event("done", "[DONE]")]

    def make_error(self, status: int, message: str) -> Json:
        return {"detail": {"error": message}}

    def make_error_events(self, status: int, message: str) -> list[Event]:
        return [Event("error", dump_json({"error": {"message": message}}))]


def _make_token(number: int, text: str) -> dict[str, Json]:
    token: Json = {"id": number, "text": text, "logprob": 0.0, "special": False}
    return {"token": token, "generated_text": None, "details": None}
