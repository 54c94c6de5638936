from __future__ import annotations

from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, exchange
from tests.rules.case import Fires, Silent

ASK = User("Fetch both parcels.")
A, B = "call_Rw4kTz8QnXv2LbYc6MsPdHfG", "toolu_01Hk3TnBv5QxWz8LrMc2PdYf"
CHAT = (("openai.chat", False), ("openai.chat", True))
CLAUDE = (("anthropic.messages", False), ("anthropic.messages", True))
TEXT: dict[str, Any] = {"text": "Here they are."}


def called(*ids: str | None, text: str = "") -> Assistant:
    return Assistant(text, tuple(Call("fetch", {"n": n}, id_) for n, id_ in enumerate(ids)))


def refused(talk: Talk) -> dict[str, object]:
    message = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    )
    error = exchange("", {}, {"error": {"message": message}}, status=400)
    return {**talk.record("openai.chat", False), "response": error["response"]}


FIRES = {
    "interrupted": Fires(Talk((ASK, called(A), User("Stop.")), **TEXT), says=A, severity="warning", fix="none"),
    "interrupted, text beside the call": Fires(Talk((ASK, called(A, text="One moment."), User("Stop.")), **TEXT)),
    "one of two": Fires(Talk((ASK, called(A, B), Result(A, "ok")), **TEXT), says=B),
    "one of two, then on": Fires(
        Talk((ASK, called(A, B), Result(B, "ok"), User("Go on.")), **TEXT), says="result of another"
    ),
    "both of two": Fires(Talk((ASK, called(A, B), User("Stop.")), **TEXT), count=2),
    "an early turn": Fires(Talk((ASK, called(A), ASK, called(B), Result(B, "ok")), **TEXT), says=A),
    "the assistant goes on": Fires(
        Talk((ASK, called(A), Assistant("Done."), ASK), **TEXT), says="the assistant's next"
    ),
    "answered under a stranger's id": Fires(Talk((ASK, called(A), Result(B, "ok")), **TEXT), says=A, layer="client"),
    "refused": Fires(refused(Talk((ASK, called(A), User("Stop.")))), severity="error"),
    "anthropic, too late": Fires(
        Talk((ASK, called(A), User("Wait."), Assistant("Waiting."), Result(A, "ok")), **TEXT),
        says="later",
        forms=CLAUDE,
    ),
}

SILENT = {
    "answered": Talk((ASK, called(A), Result(A, "ok"), ASK), **TEXT),
    "parallel": Talk((ASK, called(A, B), Result(B, "ok"), Result(A, "ok")), **TEXT),
    "an error is a result": Talk((ASK, called(A), Result(A, "timed out", is_error=True), ASK), **TEXT),
    "an empty result is a result": Talk((ASK, called(A), Result(A, ""), ASK), **TEXT),
    "the last message": Talk((ASK, called(A)), **TEXT),
    "mangled": Talk((ASK, called("functions.fetch:0"), Result("functionsfetch0", "ok"), ASK), **TEXT),
    "undefined": Talk((ASK, called(A), Result("undefined", "ok"), ASK), **TEXT),
    "no id on the call": Silent(Talk((ASK, called(None), ASK), **TEXT), CHAT),
    "no id on the result": Silent(Talk((ASK, called(A), Result(None, "ok"), ASK), **TEXT), CHAT),
    "sent twice, answered once": Talk((ASK, called(A), called(A), Result(A, "ok")), **TEXT),
    "empty ids": Talk((ASK, called("", ""), Result("", "ok"), Result("", "ok"), ASK), **TEXT),
    "late, where order is free": Silent(Talk((ASK, called(A), User("Hurry."), Result(A, "ok")), **TEXT), CHAT),
    "two assistant messages in a row": Talk((ASK, called(A), called(B), Result(A, "ok"), Result(B, "ok")), **TEXT),
    "no calls": Talk((ASK,), **TEXT),
    "calls in the reply": Talk((ASK,), calls=(Call("fetch", {}, A),)),
    "legacy function, never answered": exchange(
        "/v1/chat/completions",
        {
            "model": "acme-1",
            "messages": [
                {"role": "user", "content": "Fetch."},
                {"role": "assistant", "content": None, "function_call": {"name": "fetch", "arguments": "{}"}},
                {"role": "user", "content": "Stop."},
            ],
        },
        {"choices": [{"index": 0, "message": {"content": "Fine."}, "finish_reason": "stop"}]},
    ),
    "hosted call": exchange(
        "/v1/messages",
        {
            "model": "acme-1",
            "max_tokens": 64,
            "messages": [
                {"role": "user", "content": "Search."},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                        {"type": "text", "text": "Searching."},
                    ],
                },
                {"role": "user", "content": "And?"},
            ],
        },
        {"type": "message", "content": [{"type": "text", "text": "Nothing."}], "stop_reason": "end_turn"},
    ),
}
