"""OpenAI's Responses as the vendor shapes them, streams included.

Every output item is told three times: `response.output_item.added`, its deltas with what ends them, and
`response.output_item.done`; the last event has the whole response once more. Every event is numbered.
https://platform.openai.com/docs/api-reference/responses-streaming
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from wirelint.mock.answer import KEEP_ALIVE, Event, Headers, Tag
from wirelint.mock.api import Ability, Envelope, RequestError, count_of, object_of, objects_in, string_of, text_of
from wirelint.mock.ids import mint_call_id, random_text
from wirelint.mock.openai_chat import OpenAIChat
from wirelint.mock.plan import Ask, Choice, Reply, Tool, dump_json, split_pieces
from wirelint.model import Json

_CHOICES: dict[str, Choice] = {"none": "none", "required": "required"}
_HEX = "0123456789abcdef"
_BEGUN: dict[str, dict[str, Json]] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "reasoning": {"summary": []},
}
"""What an item has of its contents when it is added."""


class OpenAIResponses:
    name = "openai.responses"
    path = "/v1/responses"
    abilities: frozenset[Ability] = frozenset({"text", "chat", "calls", "ids", "counts", "ends"})
    busy_status = 429
    ping = KEEP_ALIVE

    def serves(self, headers: Mapping[str, str]) -> bool:
        return True

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        given = body.get("input")
        items = objects_in(given)
        model = string_of(body.get("model"))
        if not model:
            raise RequestError("Missing required parameter: 'model'.")
        if not items and not isinstance(given, str):
            raise RequestError("Missing required parameter: 'input'.")
        calls = [item for item in items if item.get("type") == "function_call"]
        result, tool = _read_result(items, calls)
        users = [text_of(item.get("content")) for item in items if item.get("role") == "user"]
        choice = body.get("tool_choice")
        return Ask(
            model=model,
            tools=tuple(
                Tool(string_of(tool.get("name")), object_of(tool.get("parameters")))
                for tool in objects_in(body.get("tools"))
                if tool.get("type") == "function" and tool.get("name")
            ),
            choice=_CHOICES.get(string_of(choice), "auto"),
            forced=string_of(object_of(choice).get("name")) or None,
            user_text=given if isinstance(given, str) else next(reversed(users), ""),
            result=result,
            result_tool=tool,
            calls_before=len(calls),
            stream=body.get("stream") is True,
            parallel=body.get("parallel_tool_calls") is not False,
            limit=count_of(body.get("max_output_tokens")),
            usage=True,
            thinking=bool(object_of(body.get("reasoning")).get("summary")),
            prompt_tokens=max(len(dump_json([given, body.get("tools")])) // 4, 1),
        )

    def mint_call_id(self, model: str, rng: random.Random, name: str, number: int, position: int) -> str:
        return mint_call_id(model, rng, name, number, position)

    def make_headers(self, envelope: Envelope) -> Headers:
        return (("x-request-id", f"req_{random_text(envelope.rng, 32, _HEX)}"), ("openai-version", "2020-10-01"))

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        return _make_response(replies[0], ask, envelope)

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        response = _make_response(replies[0], ask, envelope)
        begun = response | {"status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        writer = _Writer()
        writer.add("open", "response.created", {"response": begun})
        writer.add("open", "response.in_progress", {"response": begun})
        for index, item in enumerate(objects_in(response["output"])):
            writer.add_item(index, item)
        writer.add("done", f"response.{response['status']}", {"response": response})
        return writer.events

    def make_error(self, status: int, message: str) -> Json:
        return OpenAIChat().make_error(status, message)

    def make_error_events(self, status: int, message: str) -> list[Event]:
        value: Json = {
            "type": "error",
            "code": "server_error",
            "message": message,
            "param": None,
            "sequence_number": 99,
        }
        return [Event("error", dump_json(value), "error")]


def _read_result(items: list[dict[str, Json]], calls: list[dict[str, Json]]) -> tuple[str | None, str]:
    """The outputs at the end of the input, and the name of the function that the last of them is of."""
    texts: list[str] = []
    name = "the tool"
    for item in reversed(items):
        if item.get("type") != "function_call_output":
            break
        if not texts:
            call = next((one for one in calls if one.get("call_id") == item.get("call_id")), {})
            name = string_of(call.get("name"), name)
        texts.insert(0, text_of(item.get("output")))
    return ("\n".join(texts) if texts else None), name


def _make_response(reply: Reply, ask: Ask, envelope: Envelope) -> dict[str, Json]:
    status, details = ("incomplete", "max_output_tokens") if reply.finish == "length" else ("completed", None)
    usage: Json = {
        "input_tokens": ask.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": reply.tokens,
        "output_tokens_details": {"reasoning_tokens": len(split_pieces(reply.reasoning))},
        "total_tokens": ask.prompt_tokens + reply.tokens,
    }
    return {
        "id": _mint(envelope.rng, "resp"),
        "object": "response",
        "created_at": envelope.created,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": details} if details else None,
        "model": envelope.model,
        "output": list(_make_items(reply, envelope.rng)),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def _make_items(reply: Reply, rng: random.Random) -> Iterator[Json]:
    if reply.reasoning:
        summary: list[Json] = [{"type": "summary_text", "text": reply.reasoning}]
        yield {"id": _mint(rng, "rs"), "type": "reasoning", "summary": summary}
    if reply.text or reply.refusal or not reply.calls:
        part: Json = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        if reply.refusal:
            part = {"type": "refusal", "refusal": reply.refusal}
        head: dict[str, Json] = {"id": _mint(rng, "msg"), "type": "message", "status": "completed", "role": "assistant"}
        yield {**head, "content": [part]}
    for call in reply.calls:
        head = {"id": _mint(rng, "fc"), "type": "function_call", "status": "completed", "call_id": call.id}
        yield {**head, "name": call.name, "arguments": call.start + call.arguments}


def _mint(rng: random.Random, prefix: str) -> str:
    return f"{prefix}_{random_text(rng, 48, _HEX)}"


@dataclass(frozen=True, slots=True)
class _Writer:
    """Collects the events of one stream."""

    events: list[Event] = field(default_factory=list)

    def add(self, tag: Tag, kind: str, value: dict[str, Json]) -> None:
        numbered: Json = {"type": kind, "sequence_number": len(self.events), **value}
        self.events.append(Event(tag, dump_json(numbered), kind))

    def add_item(self, index: int, item: dict[str, Json]) -> None:
        at: dict[str, Json] = {"output_index": index}
        place: dict[str, Json] = {"item_id": item["id"], **at}
        first: dict[str, Json] = {**item, **_BEGUN[string_of(item["type"])]}
        if "status" in item:
            first["status"] = "in_progress"
        self.add("start", "response.output_item.added", {**at, "item": first})
        for number, part in enumerate(objects_in(item.get("summary"))):
            self._add_part("response.reasoning_summary", {**place, "summary_index": number}, part, "text")
        for number, part in enumerate(objects_in(item.get("content"))):
            name = "refusal" if part["type"] == "refusal" else "text"
            self._add_part(f"response.{part['type']}", {**place, "content_index": number}, part, name)
        if item["type"] == "function_call":
            self._add_text("response.function_call_arguments", place, "arguments", string_of(item["arguments"]))
        self.add("stop", "response.output_item.done", {**at, "item": item})

    def _add_part(self, stem: str, place: dict[str, Json], part: dict[str, Json], name: str) -> None:
        summary = stem.endswith("summary")
        part_stem, text_stem = (f"{stem}_part", f"{stem}_text") if summary else ("response.content_part", stem)
        self.add("start", f"{part_stem}.added", {**place, "part": {**part, name: ""}})
        self._add_text(text_stem, place, name, string_of(part[name]))
        self.add("stop", f"{part_stem}.done", {**place, "part": part})

    def _add_text(self, stem: str, place: dict[str, Json], name: str, text: str) -> None:
        for piece in split_pieces(text):
            self.add("delta", f"{stem}.delta", {**place, "delta": piece})
        self.add("stop", f"{stem}.done", {**place, name: text})
