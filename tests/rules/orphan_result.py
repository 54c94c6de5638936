from __future__ import annotations

from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, exchange
from tests.rules.case import ELSEWHERE, Fires, Silent, without

ASK = User("Which lamps are lit?")
A, B = "call_Rw4kTz8QnXv2LbYc6MsPdHfG", "toolu_01Hk3TnBv5QxWz8LrMc2PdYf"
CHAT = (("openai.chat", False), ("openai.chat", True))
CLAUDE = (("anthropic.messages", False), ("anthropic.messages", True))
TEXT: dict[str, Any] = {"text": "The left one."}


def called(*ids: str | None) -> Assistant:
    return Assistant(calls=tuple(Call("lamp", {"n": n}, id_) for n, id_ in enumerate(ids)))


def refused(talk: Talk, message: str) -> dict[str, object]:
    error = exchange("", {}, {"error": {"message": message}}, status=400)
    return {**talk.record("openai.chat", False), "response": error["response"]}


FIRES = {
    "history trimmed": Fires(
        Talk((Result(A, "lit"), User("And now?")), **TEXT), says="none before it", fix="unsafe", severity="warning"
    ),
    "trimmed, then another call": Fires(Talk((Result(A, "lit"), ASK, called(B), Result(B, "dark")), **TEXT), says=A),
    "foreign id": Fires(Talk((ASK, called(A), Result(A, "lit"), Result(B, "dark")), **TEXT), says=f"`{A}`"),
    "another id in its place": Fires(Talk((ASK, called(A), Result(B, "lit")), **TEXT), says=f"`{B}`", layer="client"),
    "two of them": Fires(Talk((ASK, Result(A, "lit"), Result(B, "dark")), **TEXT), count=2),
    "nothing else was said": Fires(Talk((Result(A, "lit"),), **TEXT), fix="none", forms=CHAT),
    "at the end, behind the assistant": Fires(Talk((ASK, Assistant("Well."), Result(A, "lit")), **TEXT), fix="unsafe"),
    "nothing in it, and its place is needed": Fires(
        Talk((ASK, Assistant("Well."), Result(A, "")), **TEXT), fix="none", forms=CLAUDE
    ),
    "counters of another turn": Fires(
        Talk((ASK, called("functions.lamp:1"), Result("functions.lamp:10", "lit")), **TEXT), says="functions.lamp:10"
    ),
    "the call was dropped from a pair": Fires(
        Talk((ASK, called(A), Result(A, "lit"), Result("call_Zx9QmN4vTb7RkLw2CsHdPfYg", "dark"), User("So?")), **TEXT)
    ),
    "refused": Fires(
        refused(Talk((ASK, Result(A, "lit"))), "messages with role 'tool' must follow a message with 'tool_calls'"),
        severity="error",
    ),
    "empty text": Fires(Talk((ASK, Result(A, "")), **TEXT), says="(empty)"),
}

SILENT = {
    "paired": Talk((ASK, called(A), Result(A, "lit")), **TEXT),
    "parallel, out of order": Talk((ASK, called(A, B), Result(B, "dark"), Result(A, "lit")), **TEXT),
    "many turns": Talk((ASK, called(A), Result(A, "lit"), ASK, called(B), Result(B, "dark"), ASK), **TEXT),
    "mangled": Talk((ASK, called("functions.lamp:0"), Result("functionslamp0", "lit")), **TEXT),
    "cut": Talk((ASK, called(A), Result(A[:20], "lit")), **TEXT),
    "case changed": Talk((ASK, called(A), Result(A.lower(), "lit")), **TEXT),
    "undefined": Talk((ASK, called(A), Result("undefined", "lit")), **TEXT),
    "the name as id": Talk((ASK, called(A), Result("lamp", "lit")), **TEXT),
    "answered twice": Talk((ASK, called(A), Result(A, "lit"), Result(A, "still lit")), **TEXT),
    "no id on the result": Silent(Talk((ASK, called(A), Result(None, "lit")), **TEXT), CHAT),
    "no id and no call": Silent(Talk((ASK, Result(None, "lit")), **TEXT), CHAT),
    "no id on either side": Silent(Talk((ASK, called(None), Result(None, "lit")), **TEXT), CHAT),
    "empty ids": Talk((ASK, called("", ""), Result("", "lit"), Result("", "dark")), **TEXT),
    "late": Talk((ASK, called(A), Assistant("Wait."), Result(A, "lit")), **TEXT),
    "call without a result": Talk((ASK, called(A), User("Never mind.")), **TEXT),
    "same id in two turns": Talk((ASK, called(A), Result(A, "lit"), ASK, called(A), Result(A, "dark")), **TEXT),
    "no tools at all": Talk((ASK,), **TEXT),
    "legacy function": exchange(
        "/v1/chat/completions",
        {
            "model": "acme-1",
            "messages": [
                {"role": "user", "content": "Lamp?"},
                {"role": "assistant", "content": None, "function_call": {"name": "lamp", "arguments": "{}"}},
                {"role": "function", "name": "lamp", "content": "lit"},
            ],
        },
        {"choices": [{"index": 0, "message": {"content": "Lit."}, "finish_reason": "stop"}]},
    ),
    "hosted results": exchange(
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
                        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_9", "content": []},
                    ],
                },
                {"role": "user", "content": "And?"},
            ],
        },
        {"type": "message", "content": [{"type": "text", "text": "Nothing."}], "stop_reason": "end_turn"},
    ),
}


# --- other APIs --------------------------------------------------------------------------------------------------------

_NAMED = without("ollama.chat")
BLOCKS = (("bedrock.converse", False), ("google.generate_content", False))
ROWS = (("openai.responses", False), ("cohere.chat", False), ("mistral.chat", False))
FREE = (("google.generate_content", False), ("ollama.chat", False))
FIRES |= {
    "history trimmed, elsewhere": Fires(FIRES["history trimmed"].case, says="none before it", fix="unsafe", forms=ELSEWHERE),
    "trimmed, then another call, elsewhere": Fires(FIRES["trimmed, then another call"].case, fix="unsafe", forms=ELSEWHERE),
    "foreign id, elsewhere": Fires(FIRES["foreign id"].case, says=f"`{A}`", fix="unsafe", forms=_NAMED),
    "another id in its place, elsewhere": Fires(
        FIRES["another id in its place"].case, forms=without("ollama.chat", "google.generate_content")
    ),
    "two of them, elsewhere": Fires(FIRES["two of them"].case, count=2, forms=ELSEWHERE),
    "nothing else was said, in a row": Fires(FIRES["nothing else was said"].case, fix="none", forms=ROWS),
    "nothing else was said, in a block": Fires(FIRES["nothing else was said"].case, fix="unsafe", forms=BLOCKS),
    "nothing in it, and its place is needed, elsewhere": Fires(
        FIRES["nothing in it, and its place is needed"].case, fix="none", forms=BLOCKS
    ),
    "more results than calls, and no ids": Fires(
        Talk((ASK, called(None), Result(None, "lit"), Result(None, "dark")), **TEXT), says="of `lamp`", fix="unsafe",
        forms=FREE[:1],
    ),
    "nothing was called, and no ids": Fires(Talk((ASK, Assistant("Well."), ASK, Result(None, "lit")), **TEXT), forms=FREE),
    "another turn's, and no ids": Fires(
        Talk((ASK, called(None), Result(None, "lit"), Assistant("Lit."), ASK, Result(None, "dark"), ASK), **TEXT), forms=FREE
    ),
}  # fmt: skip


def responses(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    body = {"model": "acme-1", "input": [*items, {"role": "user", "content": "And now?"}], **more}
    return exchange("/v1/responses", body, {"output": [], "status": "completed"})


OUTPUT = {"type": "function_call_output", "call_id": A, "output": "lit"}


def gemini(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    contents = [{"role": "user", "parts": list(parts)}, {"role": "user", "parts": [{"text": "And now?"}]}]
    reply = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Lit."}]}, "finishReason": "STOP"}]}
    return exchange("/v1beta/models/gemini-2.5-pro:generateContent", {"contents": contents, **more}, reply)


ANSWER = {"functionResponse": {"name": "lamp", "response": {"output": "lit"}}}
FIRES |= {
    "responses: a shell's": Fires(responses({"type": "local_shell_call_output", "call_id": "call_3", "output": "ok"})),
    "responses: beside a search": Fires(
        responses({"type": "web_search_call", "id": "ws_1"}, OUTPUT), pointer="/input/1"
    ),
    "gemini: a function nobody called": Fires(gemini(ANSWER), says="of `lamp`", fix="unsafe"),
    "gemini: words beside it": Fires(gemini({"text": "Here:"}, ANSWER), fix="unsafe"),
}
SILENT |= {
    f"{id_}, elsewhere": Silent(case.case if isinstance(case, Silent) else case, ELSEWHERE)
    for id_, case in SILENT.items()
    if isinstance(case, Talk) or (isinstance(case, Silent) and id_ != "no id and no call")
} | {
    "before its call, which is a matter of order": Silent(
        Talk((ASK, Result(A, "lit"), called(A)), **TEXT), CHAT + CLAUDE + _NAMED
    ),
    "responses: the call is in the response before": responses(OUTPUT, previous_response_id="resp_1"),
    "responses: the call is in a conversation": responses(OUTPUT, conversation="conv_1"),
    "responses: the call is in a conversation, named": responses(OUTPUT, conversation={"id": "conv_1"}),
    "responses: the call is referred to": responses({"type": "item_reference", "id": "fc_1"}, OUTPUT),
    "responses: the history is compacted": responses({"type": "compaction", "encrypted_content": "Z0"}, OUTPUT),
    "responses: hosted": responses({"type": "code_interpreter_call", "id": "ci_1", "outputs": [{"type": "logs", "logs": "1"}]}),
    "responses: found by the provider": responses({"type": "tool_search_output", "call_id": "x", "tools": []}),
    "responses: a text": exchange("/v1/responses", {"model": "acme-1", "input": "Lamp?"}, {"output": [], "status": "completed"}),
    "gemini: the call is cached": gemini(ANSWER, cachedContent="cachedContents/1"),
    "gemini: hosted": gemini({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}),
    "no ids, elsewhere": Silent(Talk((ASK, called(None, None), Result(None, "a"), Result(None, "b")), **TEXT), FREE),
    "one result in two messages": Silent(
        Talk((ASK, called(None), Result(None, "lit"), Result(None, "and dark"), ASK), **TEXT), (("ollama.chat", False),)
    ),
}  # fmt: skip
