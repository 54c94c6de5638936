"""Cohere's chat, version 2.

Content blocks and calls have separate numbers, each with a start, deltas and an end event; a plan before the calls comes
as `tool-plan-delta`. `message-end` has the finish reason and the usage; `[DONE]` follows.
https://docs.cohere.com/v2/docs/streaming
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from wirelint.mock.answer import Event, Tag
from wirelint.mock.api import Envelope, object_of, objects_in, string_of, usage_of
from wirelint.mock.openai import OpenAIChat
from wirelint.mock.plan import Ask, Reply, dump_json, split_pieces
from wirelint.model import Json


class Cohere(OpenAIChat):
    """A format of its own, but requests as OpenAI's."""

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
        if reply.said:
            content.append({"type": "text", "text": reply.said})
        if content or not reply.calls:
            message["content"] = content
        head: dict[str, Json] = {"id": self.mint(envelope), "message": message}
        return head | self._end(replies, ask)

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply = replies[0]
        writer = _Writer()
        writer.add("open", "message-start", {"id": self.mint(envelope), "delta": self.fill("start", {})})
        if reply.calls:
            for piece in split_pieces(reply.reasoning):
                writer.add_message("delta", "tool-plan-delta", None, {"tool_plan": piece})
        elif reply.reasoning:
            writer.add_content("thinking", reply.reasoning)
        if reply.said:
            writer.add_content("text", reply.said)
        for number, call in enumerate(reply.calls):
            start: Json = {"tool_calls": _write_call(call.id, call.name, "")}
            writer.add_message("start", "tool-call-start", number, start)
            for piece in split_pieces(call.text):
                arguments: Json = {"tool_calls": {"function": {"arguments": piece}}}
                writer.add_message("delta", "tool-call-delta", number, arguments)
            writer.add("stop", "tool-call-end", {"index": number})
        writer.add("finish", "message-end", {"delta": self._end(replies, ask)})
        return [*writer.events, Event("done", "[DONE]")]

    def _end(self, replies: tuple[Reply, ...], ask: Ask) -> dict[str, Json]:
        return self.fill("end", {"finish": self.finish[replies[0].finish], **usage_of(replies, ask)})


def _write_call(id_: str, name: str, arguments: str) -> Json:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


@dataclass(slots=True)
class _Writer:
    """Collects the events of one stream; numbers its content blocks."""

    events: list[Event] = field(default_factory=list)
    blocks: int = 0

    def add(self, tag: Tag, kind: str, value: dict[str, Json]) -> None:
        self.events.append(Event(tag, dump_json({"type": kind, **value}), kind))

    def add_message(self, tag: Tag, kind: str, index: int | None, message: Json) -> None:
        number: dict[str, Json] = {} if index is None else {"index": index}
        self.add(tag, kind, {**number, "delta": {"message": message}})

    def add_content(self, kind: str, text: str) -> None:
        index = self.blocks
        self.blocks += 1
        self.add_message("start", "content-start", index, {"content": {"type": kind, kind: ""}})
        for piece in split_pieces(text):
            self.add_message("delta", "content-delta", index, {"content": {kind: piece}})
        self.add("stop", "content-end", {"index": index})
