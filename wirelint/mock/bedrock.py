"""Amazon Bedrock's Converse: a JSON body, or the messages of an AWS event stream.

A content block is an object with one member, whose name is its kind. In a stream only the block of a tool has a start;
`messageStop` has the reason and `metadata` the usage. Every event has padding `p` of varying length.
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
"""

from __future__ import annotations

import string

from wirelint.mock.answer import Event, encode_message
from wirelint.mock.api import (
    Api,
    Envelope,
    EventWriter,
    last_user_text,
    messages_of,
    object_of,
    objects_in,
    read_results,
    read_tools,
    string_of,
    usage_of,
)
from wirelint.mock.plan import Ask, Reply, dump_json, split_pieces
from wirelint.model import Json

_PADDING = string.ascii_letters + string.digits


class Bedrock(Api):
    key = "bedrock"
    ping = encode_message(Event("ping", "{}", "ping"))

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        messages = messages_of(body)
        blocks = [block for message in messages for block in objects_in(message.get("content"))]
        calls = [object_of(block["toolUse"]) for block in blocks if "toolUse" in block]
        last = objects_in(messages[-1].get("content"))
        results = [object_of(block["toolResult"]) for block in last if "toolResult" in block]
        config = object_of(body.get("toolConfig"))
        specs = (object_of(one.get("toolSpec")) for one in objects_in(config.get("tools")))
        return self.ask(
            {**body, "toolConfig": config},
            self.model_in(target)[0],
            tools=read_tools(specs, "inputSchema.json"),
            choice="required" if "any" in object_of(config.get("toolChoice")) else "auto",
            user_text=last_user_text(messages),
            stream=target.partition("?")[0].endswith("-stream"),
            framing="messages",
            **read_results(results, calls, _text_of_result, id_member="toolUseId", call_id="toolUseId"),
        )

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        content: list[Json] = []
        if reply.reasoning:
            content.append({"reasoningContent": {"reasoningText": {"text": reply.reasoning, "signature": "c2lnbmVk"}}})
        if reply.shown:
            content.append({"text": reply.shown})
        for call in reply.calls:
            content += [{"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.value}}]
        values: dict[str, Json] = {"content": content, "finish": self.finish[reply.finish]}
        return self.fill("body", values | usage_of(replies, ask))

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply, rng = replies[0], envelope.rng
        writer = EventWriter(lambda _, value: dump_json({**value, "p": _PADDING[: rng.randrange(1, len(_PADDING))]}))
        writer.add("open", "messageStart", {"role": "assistant"})
        blocks: list[tuple[list[Json], list[Json]]] = []
        if reply.reasoning:
            thoughts: list[Json] = [{"reasoningContent": {"text": piece}} for piece in split_pieces(reply.reasoning)]
            blocks.append(([], [*thoughts, {"reasoningContent": {"signature": "c2lnbmVk"}}]))
        if reply.shown:
            blocks.append(([], [{"text": piece} for piece in split_pieces(reply.shown)]))
        for call in reply.calls:
            start: Json = {"start": {"toolUse": {"toolUseId": call.id, "name": call.name}}}
            blocks.append(([start], [{"toolUse": {"input": piece}} for piece in split_pieces(call.text)]))
        names = ("contentBlockStart", "contentBlockDelta", "contentBlockStop")
        for index, (starts, deltas) in enumerate(blocks):
            writer.add_block(names, {"contentBlockIndex": index}, starts, deltas)
        writer.add("finish", "messageStop", {"stopReason": self.finish[reply.finish]})
        writer.add("done", "metadata", self.fill("end", usage_of(replies, ask)))
        return writer.events


def _text_of_result(result: dict[str, Json]) -> str:
    parts = objects_in(result.get("content"))
    return "\n".join(string_of(part.get("text")) or dump_json(part.get("json")) for part in parts)
