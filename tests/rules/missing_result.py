from __future__ import annotations

from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, exchange
from tests.rules.case import ELSEWHERE, Fires, Silent, without

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


# --- other APIs --------------------------------------------------------------------------------------------------------

BLOCKS = (("bedrock.converse", False), ("google.generate_content", False))
FREE = (("google.generate_content", False), ("ollama.chat", False))
FIRES |= {
    f"{id_}, elsewhere": Fires(FIRES[id_].case, FIRES[id_].count, says="has no result", fix="none", forms=ELSEWHERE)
    for id_ in (
        "interrupted",
        "one of two",
        "one of two, then on",
        "both of two",
        "an early turn",
        "the assistant goes on",
    )
    if id_ != "the assistant goes on"
} | {
    "under a stranger's id, elsewhere": Fires(
        FIRES["answered under a stranger's id"].case, says=A, forms=without("google.generate_content", "ollama.chat")
    ),
    "too late, elsewhere": Fires(FIRES["anthropic, too late"].case, says="later", forms=BLOCKS),
    "no id, interrupted": Fires(Talk((ASK, called(None), User("Stop.")), **TEXT), says="call of `fetch`", forms=FREE),
    "no ids, one of two": Fires(Talk((ASK, called(None, None), Result(None, "ok"), ASK), **TEXT), forms=FREE),
    "no id, the same call in another turn": Fires(
        Talk((ASK, called(None), User("Stop."), called(None), Result(None, "ok"), ASK), **TEXT), forms=FREE
    ),
}


def responses(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    body = {"model": "acme-1", "input": [*items, {"role": "user", "content": "And now?"}], **more}
    return exchange("/v1/responses", body, {"output": [], "status": "completed"})


CALL = {"type": "function_call", "call_id": A, "name": "fetch", "arguments": "{}"}
FIRES |= {
    "responses: first of two": Fires(
        responses(CALL, {**CALL, "call_id": B}, {"type": "function_call_output", "call_id": B, "output": "ok"}), says=A
    ),
    "responses: behind another response": Fires(responses(CALL, previous_response_id="resp_1"), says=A),
    "responses: a custom tool": Fires(
        responses({"type": "custom_tool_call", "call_id": "call_2", "name": "patch", "input": "*** Begin"}),
        says="`patch`",
    ),
    "responses: a local shell": Fires(
        responses({"type": "local_shell_call", "call_id": "call_2", "action": {"type": "exec", "command": ["ls"]}})
    ),
}
SILENT |= {
    f"{id_}, elsewhere": Silent(case.case if isinstance(case, Silent) else case, ELSEWHERE)
    for id_, case in SILENT.items()
    if isinstance(case, Talk)
} | {
    "no id on the result, elsewhere": Silent(Talk((ASK, called(A), Result(None, "ok"), ASK), **TEXT), ELSEWHERE),
    "no ids, answered": Silent(
        Talk((ASK, called(None, None), Result(None, "a"), Result(None, "b"), ASK), **TEXT), FREE
    ),
    "no ids, the last message": Silent(Talk((ASK, called(None)), **TEXT), FREE),
    "late, where order is free, elsewhere": Silent(
        Talk((ASK, called(A), User("Hurry."), Result(A, "ok")), **TEXT),
        without("bedrock.converse", "google.generate_content"),
    ),
    "responses: hosted": responses({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
    "responses: a provider's shell": responses(
        {"type": "shell_call", "call_id": "call_1", "action": {}, "environment": {"type": "container_reference"}}
    ),
    "responses: the provider's search for tools": responses(
        {"type": "tool_search_call", "call_id": "s1", "arguments": {}}
    ),
    "responses: the output is referred to": responses(CALL, {"type": "item_reference", "id": "fco_1"}),
    "responses: the last item": exchange(
        "/v1/responses", {"model": "acme-1", "input": [{"role": "user", "content": "Go."}, CALL]}, {"output": []}
    ),
    "responses: thoughts behind the call": exchange(
        "/v1/responses",
        {"model": "acme-1", "input": [CALL, {"type": "reasoning", "id": "rs_1", "summary": []}]},
        {"output": []},
    ),
}
