from __future__ import annotations

from tests.build import Call, Talk, User, chunk, exchange, schema, sse
from tests.rules.case import Fires, Silent

BODY = {"model": "acme-1", "stream": True, "messages": [{"role": "user", "content": "Name the planets."}]}
STREAMED = (("openai.chat", True), ("anthropic.messages", True))


def chat(reply: str, **more: object) -> dict[str, object]:
    return {**exchange("/v1/chat/completions", BODY, reply, content_type="text/event-stream"), **more}


FIRES = {
    "mid-text": Fires(
        chat(sse(chunk({"role": "assistant"}), chunk({"content": "Mercury, Ve"}), done=False)),
        says="Mercury, Ve",
        pointer="/choices/0/message/content",
    ),
    "mid-arguments": Fires(
        chat(
            sse(
                chunk(
                    {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "orbit", "arguments": '{"pl'}}]}
                ),
                done=False,
            )
        ),
        says='{"pl',
    ),
    "nothing said yet": Fires(
        chat(sse(chunk({"role": "assistant", "content": ""}), done=False)), says="before anything"
    ),
    "inside an event": chat(sse(chunk({"content": "Mercury"}), done=False) + 'data: {"choices":[{"index":0,"del'),
    "upstream died": chat(sse(chunk({"content": "Mercury"}), done=False), end="upstream-died"),
    "DONE, no reason": Fires(
        chat(sse(chunk({"content": "Mercury, Venus and"}))), says="without finish reason", severity="warning"
    ),
    "one of two candidates": Fires(
        chat(sse(chunk({"content": "Mars"}, "stop"), {"choices": [{"index": 1, "delta": {"content": "Ju"}}]})),
        severity="warning",
    ),
    "anthropic, no stop": exchange(
        "/v1/messages",
        {**BODY, "max_tokens": 64},
        sse(
            {"type": "message_start", "message": {"id": "msg_1", "model": "acme-1", "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Mercury"}},
            named=True,
        ),
        content_type="text/event-stream",
    ),
}

SILENT = {
    "healthy": Silent(Talk((User("Name the planets."),), text="Mercury and seven others."), STREAMED),
    "calls": Silent(
        Talk(calls=(Call("orbit", {"planet": "Venus"}),), tools={"orbit": schema(planet="string")}), STREAMED
    ),
    "honest length": Silent(Talk(text="Mercury, Ve", finish="length"), STREAMED),
    "an API that does not say why": Silent(Talk(text="Mercury and seven others."), (("deepinfra.inference", True),)),
    "complete elsewhere": Silent(
        Talk(text="Mercury and seven others."),
        tuple((api, True) for api in ("google.generate_content", "ollama.chat", "cohere.chat", "openai.responses")),
    ),
    "client left": chat(sse(chunk({"content": "Mercury"}), done=False), end="client-left"),
    "error event says why": chat(sse(chunk({"content": "Merc"}), {"error": {"message": "overloaded"}}, done=False)),
    "finished, no DONE": chat(sse(chunk({"content": "All."}), chunk({}, "stop"), done=False)),
    "nothing but DONE": chat(sse()),
    "empty body": chat(""),
    "only comments": chat(": waiting\n\n: waiting\n\n"),
    "whole body without reason": Silent(Talk(text="All.", finish=None), (("openai.chat", False),)),
    "http error": exchange("/v1/chat/completions", BODY, {"error": {"message": "busy"}}, status=529),
}
