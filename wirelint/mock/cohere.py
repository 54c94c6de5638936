"""Cohere's chat, version 2.

Content blocks and calls have separate numbers, each with a start, deltas and an end event; a plan before the calls comes
as `tool-plan-delta`. `message-end` has the finish reason and the usage; `[DONE]` follows.
https://docs.cohere.com/v2/docs/streaming
"""

from __future__ import annotations

from dataclasses import replace

from wirelint.mock.answer import Event
from wirelint.mock.api import Envelope, EventWriter, object_of, objects_in, string_of, usage_of
from wirelint.mock.openai import OpenAIChat
from wirelint.mock.plan import Ask, Reply, split_pieces
from wirelint.model import Json


class Cohere(OpenAIChat):
    """Cohere's API. Its requests resemble OpenAI's, its replies do not."""

    key = "cohere"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        ask = super().read_request(body, target)
        if ask.result is None:
            return replace(ask, choices=1)
        last = objects_in(body.get("messages"))[-1]
        documents = [object_of(one.get("document")) for one in objects_in(last.get("content"))]
        result = "\n".join(string_of(one.get("data")) for one in documents if one) or ask.result
        return replace(ask, result=result, choices=1)

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        message: dict[str, Json] = {"role": "assistant"}
        if reply.calls:
            message["tool_plan"] = reply.reasoning
            message["tool_calls"] = [_write_call(call.id, call.name, call.text) for call in reply.calls]
        content: list[Json] = []
        if reply.reasoning and not reply.calls:
            content.append({"type": "thinking", "thinking": reply.reasoning})
        if reply.shown:
            content.append({"type": "text", "text": reply.shown})
        if content or not reply.calls:
            message["content"] = content
        head: dict[str, Json] = {"id": self.mint(envelope), "message": message}
        return head | self._end(replies, ask)

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply = replies[0]
        writer = EventWriter()
        writer.add("open", "message-start", {"id": self.mint(envelope), "delta": self.fill("start", {})})
        if reply.calls:
            for piece in split_pieces(reply.reasoning):
                writer.add("delta", "tool-plan-delta", {"delta": {"message": {"tool_plan": piece}}})
        texts = {"thinking": "" if reply.calls else reply.reasoning, "text": reply.shown}
        for index, (kind, text) in enumerate((kind, text) for kind, text in texts.items() if text):
            begun: Json = {"delta": {"message": {"content": {"type": kind, kind: ""}}}}
            deltas: list[Json] = [{"message": {"content": {kind: piece}}} for piece in split_pieces(text)]
            writer.add_block(("content-start", "content-delta", "content-end"), {"index": index}, [begun], deltas)
        for index, call in enumerate(reply.calls):
            begun = {"delta": {"message": {"tool_calls": _write_call(call.id, call.name, "")}}}
            deltas = [{"message": {"tool_calls": {"function": {"arguments": one}}}} for one in split_pieces(call.text)]
            names = ("tool-call-start", "tool-call-delta", "tool-call-end")
            writer.add_block(names, {"index": index}, [begun], deltas)
        writer.add("finish", "message-end", {"delta": self._end(replies, ask)})
        return [*writer.events, Event("done", "[DONE]")]

    def _end(self, replies: tuple[Reply, ...], ask: Ask) -> dict[str, Json]:
        return self.fill("end", {"finish": self.finish[replies[0].finish], **usage_of(replies, ask)})


def _write_call(id_: str, name: str, arguments: str) -> Json:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
