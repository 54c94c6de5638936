"""Ollama's own API, chat and generate: JSON lines unless the request declines the stream.

A call comes whole, in a separate line, its arguments as a value; a reply with calls ends with `stop`. The last line has
`done: true`, the reason and the counts. An error is a string, in a stream a separate line.
https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from wirelint.mock.answer import Event
from wirelint.mock.api import (
    Api,
    Envelope,
    last_user_text,
    messages_of,
    object_of,
    objects_in,
    read_tools,
    string_of,
    text_of,
    usage_of,
)
from wirelint.mock.plan import Ask, Reply, dump_json, split_pieces
from wirelint.model import Json


class OllamaChat(Api):
    key = "ollama_chat"
    text_member = "content"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        messages = messages_of(body)
        calls = [call for message in messages for call in objects_in(message.get("tool_calls"))]
        functions = (object_of(tool.get("function")) for tool in objects_in(body.get("tools")))
        facts: dict[str, Any] = {"tools": read_tools(functions, "parameters"), "calls_before": len(calls)}
        if messages[-1].get("role") == "tool":
            facts["result"] = text_of(messages[-1].get("content"))
            facts["result_tool"] = string_of(messages[-1].get("tool_name"), "the tool")
        return self._ask(body, last_user_text(messages), **facts)

    def _ask(self, body: dict[str, Json], user_text: str, **facts: Any) -> Ask:
        stream, model = body.get("stream") is not False, string_of(body.get("model"))
        return self.ask(body, model, user_text=user_text, stream=stream, framing="lines", **facts)

    def make_body(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> Json:
        reply = replies[0]
        content: dict[str, Json] = {self.text_member: reply.shown}
        if reply.reasoning:
            content["thinking"] = reply.reasoning
        if reply.calls:
            content["tool_calls"] = _write_calls(reply)
        return self._line(content, envelope) | self._end(reply, ask)

    def make_events(self, replies: tuple[Reply, ...], ask: Ask, envelope: Envelope) -> list[Event]:
        reply = replies[0]
        content: list[dict[str, Json]] = [{"thinking": piece} for piece in split_pieces(reply.reasoning)]
        content += [{self.text_member: piece} for piece in split_pieces(reply.shown)]
        content += [{"tool_calls": [call]} for call in _write_calls(reply)]
        lines = [self._line({self.text_member: "", **one}, envelope) for one in content]
        last = self._line({self.text_member: ""}, envelope) | self._end(reply, ask)
        return [*(Event("delta", dump_json(line)) for line in lines), Event("done", dump_json(last))]

    def _line(self, content: dict[str, Json], envelope: Envelope) -> dict[str, Json]:
        created = datetime.fromtimestamp(envelope.created, UTC).isoformat().replace("+00:00", "Z")
        message: Json = {"role": "assistant", **content}
        return self.fill("line", {"model": envelope.model, "time": created, "content": message})

    def _end(self, reply: Reply, ask: Ask) -> dict[str, Json]:
        return self.fill("end", {"finish": self.finish[reply.finish], **usage_of((reply,), ask)})


class OllamaGenerate(OllamaChat):
    key = "ollama_generate"
    text_member = "response"

    def read_request(self, body: dict[str, Json], target: str) -> Ask:
        return self._ask(body, string_of(body.get("prompt")))

    def _line(self, content: dict[str, Json], envelope: Envelope) -> dict[str, Json]:
        line = super()._line({}, envelope)
        done = {"done": line.pop("done")}
        line.pop("message")
        return line | content | done


def _write_calls(reply: Reply) -> list[Json]:
    return [
        {"function": {"index": at, "name": call.name, "arguments": call.value}} for at, call in enumerate(reply.calls)
    ]
