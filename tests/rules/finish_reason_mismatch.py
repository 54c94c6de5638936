from __future__ import annotations

from typing import Any

from tests.build import Call, Talk, User, chunk, exchange, forms, schema, sse
from tests.rules.case import Fires, Silent

ASK = (User("Ring the bell."),)
BELL = {"ring": schema()}
RING = (Call("ring", {}),)
OPENAI = (("openai.chat", False), ("openai.chat", True))
CLAUDE = (("anthropic.messages", False), ("anthropic.messages", True))
FORCED = {"type": "function", "function": {"name": "ring"}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "ring", "arguments": "{}"}}


def chat(*choices: tuple[dict[str, Any], str | None], **more: Any) -> dict[str, Any]:
    body = {"model": "acme-1", "messages": [{"role": "user", "content": "Ring."}], **more}
    made = [{"index": n, "message": message, "finish_reason": reason} for n, (message, reason) in enumerate(choices)]
    return exchange("/v1/chat/completions", body, {"choices": made})


def claude(reason: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    body = {"model": "acme-1", "max_tokens": 64, "messages": [{"role": "user", "content": "Ring."}]}
    return exchange("/v1/messages", body, {"type": "message", "content": list(blocks), "stop_reason": reason})


def stream(body: str) -> dict[str, Any]:
    request = {"model": "acme-1", "stream": True, "messages": [{"role": "user", "content": "Ring."}]}
    return exchange("/v1/chat/completions", request, body, content_type="text/event-stream")


ALL_CHATS = (
    *("openai.chat", "anthropic.messages", "mistral.chat", "cohere.chat", "bedrock.converse"),
    *("google.generate_content", "ollama.chat"),
)

FIRES = {
    "calls and stop": Fires(Talk(ASK, calls=RING, tools=BELL, finish="stop"), says="a call (ring)", fix="safe"),
    "text, calls and stop": Fires(Talk(ASK, text="Ringing.", calls=RING, tools=BELL, finish="stop"), fix="safe"),
    "two calls and stop": Fires(Talk(ASK, calls=RING * 2, tools=BELL, finish="stop"), says="2 calls"),
    "calls and stop, choice required": Fires(
        Talk(ASK, calls=RING, tools=BELL, finish="stop", tool_choice="required"), fix="safe"
    ),
    "OpenAI's word in an Anthropic reply": Fires(
        Talk(ASK, calls=RING, tools=BELL, finish="stop"), fix="safe", forms=CLAUDE, pointer="/stop_reason"
    ),
    "forced, on Anthropic": Fires(
        Talk(ASK, calls=RING, tools=BELL, finish="stop", tool_choice={"type": "tool", "name": "ring"}), forms=CLAUDE
    ),
    "calls and no reason": Fires(
        Talk(ASK, calls=RING, tools=BELL, finish=None),
        says="without a finish reason",
        fix="safe",
        forms=OPENAI,
        pointer="/choices/0/finish_reason",
    ),
    "calls and an empty reason": Fires(chat(({"tool_calls": [CALL]}, "")), fix="safe"),
    "calls and COMPLETE": Fires(
        Talk(ASK, calls=RING, tools=BELL, finish="stop"),
        fix="safe",
        forms=forms("cohere.chat"),
        pointer="/finish_reason",
    ),
    "calls and end_turn at Bedrock": Fires(
        Talk(ASK, calls=RING, tools=BELL, finish="stop"),
        fix="safe",
        forms=forms("bedrock.converse"),
        pointer="/stopReason",
    ),
    "calls and stop at Mistral": Fires(
        Talk(ASK, calls=RING, tools=BELL, finish="stop"), fix="safe", forms=forms("mistral.chat")
    ),
    "a promise of Cohere's": Fires(
        Talk(ASK, text="Ding.", tools=BELL, finish="tool"), fix="safe", forms=forms("cohere.chat", "bedrock.converse")
    ),
    "legacy call and stop": Fires(
        chat(({"function_call": {"name": "ring", "arguments": "{}"}}, "stop"), functions=[{"name": "ring"}]), fix="safe"
    ),
    "second choice": Fires(
        chat(({"tool_calls": [CALL]}, "tool_calls"), ({"tool_calls": [CALL]}, "stop")),
        pointer="/choices/1/finish_reason",
    ),
    "both choices": Fires(chat(({"tool_calls": [CALL]}, "stop"), ({"content": "Ding."}, "tool_calls")), count=2),
    "text and no call": Fires(
        Talk(ASK, text="The bell rang.", tools=BELL, finish="tool"), says="holds no call", fix="safe"
    ),
    "nothing and no call": Fires(Talk(ASK, tools=BELL, finish="tool"), says="no text either", fix="none"),
    "reasoning only": Fires(Talk(ASK, reasoning="Ring it.", tools=BELL, finish="tool"), fix="none"),
    "markup in place of the call": Fires(
        Talk(ASK, text='<tool_call>{"name": "ring"}</tool_call>', tools=BELL, finish="tool"), fix="none"
    ),
    "empty list of calls": Fires(
        chat(
            ({"content": "Ding.", "tool_calls": []}, "tool_calls"),
        ),
        fix="safe",
    ),
    "null calls": Fires(
        chat(
            ({"content": "Ding.", "tool_calls": None}, "tool_calls"),
        ),
        fix="safe",
    ),
    "function_call and none": Fires(
        chat(
            ({"content": "Ding."}, "function_call"),
        ),
        says="function_call",
        fix="safe",
    ),
    "reason in an event of its own": Fires(
        stream(sse(chunk({"tool_calls": [{"index": 0, **CALL}]}), chunk({}), chunk({}, "stop"))), fix="safe"
    ),
    **{
        f"{word} of another API": Fires(
            Talk(ASK, text="Ding.", tools=BELL, finish=word),
            says="no finish reason of",
            severity="info",
            fix="none",
            forms=forms(*apis),
        )
        for word, apis in {
            "eos": ALL_CHATS,
            "end_turn": ("openai.chat", "mistral.chat", "cohere.chat", "google.generate_content", "ollama.chat"),
            "STOP": ("openai.chat", "anthropic.messages", "cohere.chat", "bedrock.converse", "ollama.chat"),
            "max_tokens": ("openai.chat", "mistral.chat", "google.generate_content"),
        }.items()
    },
    "calls, and a server's own word": Fires(
        Talk(ASK, calls=RING, tools=BELL, finish="eos"), severity="info", fix="none"
    ),
    "calls, in another API's word": Fires(
        Talk(ASK, calls=RING, tools=BELL, finish="tool_use"),
        says="ends with 'tool_use'",
        severity="warning",
        fix="safe",
        forms=forms("openai.chat", "mistral.chat", "cohere.chat"),
    ),
    "zero-valued legacy call": Fires(
        chat(({"content": "Ding.", "function_call": {"name": "", "arguments": ""}}, "stop")),
        says="which is no call",
        severity="info",
        pointer="/choices/0/message/function_call",
    ),
    "zero-valued legacy call in the second choice": Fires(
        chat(
            ({"content": "Ding."}, "stop"),
            ({"content": "Dong.", "function_call": {"name": "", "arguments": ""}}, "stop"),
        ),
        severity="info",
        pointer="/choices/1/message/function_call",
    ),
    "zero-valued legacy call in every event": Fires(
        stream(
            sse(
                chunk({"content": "Ding", "function_call": {"name": "", "arguments": ""}}),
                chunk({"content": ".", "function_call": {"name": "", "arguments": ""}}, "stop"),
            )
        ),
        severity="info",
    ),
}

SILENT = {
    "calls": Talk(ASK, calls=RING, tools=BELL),
    "text": Talk(ASK, text="Ding.", tools=BELL),
    "calls and stop, where all replies end so": Silent(
        Talk(ASK, calls=RING, tools=BELL, finish="stop"),
        forms("ollama.chat", "google.generate_content", "openai.responses"),
    ),
    "calls elsewhere": Silent(
        Talk(ASK, calls=RING, tools=BELL), forms("cohere.chat", "bedrock.converse", "mistral.chat")
    ),
    "a stop sequence of Cohere's": Silent(
        Talk(ASK, calls=RING, tools=BELL, finish="STOP_SEQUENCE"), forms("cohere.chat")
    ),
    "a raw endpoint's own word": Silent(
        Talk(ASK, text="Ding.", tools=BELL, finish="tool_calls"), forms("openai.completions")
    ),
    "forced by name": Silent(Talk(ASK, calls=RING, tools=BELL, finish="stop", tool_choice=FORCED), OPENAI),
    "forced by name, tool_calls": Silent(Talk(ASK, calls=RING, tools=BELL, tool_choice=FORCED), OPENAI),
    "forced legacy function": chat(
        ({"function_call": {"name": "ring", "arguments": "{}"}}, "stop"),
        functions=[{"name": "ring"}],
        function_call={"name": "ring"},
    ),
    "legacy call": chat(
        ({"function_call": {"name": "ring", "arguments": "{}"}}, "function_call"),
    ),
    "calls cut by length": Talk(ASK, calls=RING, tools=BELL, finish="length"),
    "calls and a filter": Talk(ASK, calls=RING, tools=BELL, finish="filter"),
    "a word of no API": Talk(ASK, text="Ding.", tools=BELL, finish="finished"),
    "a server's word for a failure": Talk(ASK, text="Di", tools=BELL, finish="insufficient_system_resource"),
    "a complete response": Silent(Talk(ASK, text="Ding.", tools=BELL), forms("openai.responses")),
    "no reason for a text": Talk(ASK, text="Ding.", tools=BELL, finish=None),
    "no reason for a call that was cut": Silent(
        Talk(ASK, calls=(Call("ring", '{"bell": '),), tools=BELL, finish=None), (("openai.chat", True),)
    ),
    "no reason, and none is told": Silent(
        Talk(ASK, calls=RING, tools=BELL, finish=None), forms("ollama.chat", "google.generate_content")
    ),
    "text cut by length": Talk(ASK, text="Di", tools=BELL, finish="length"),
    "refusal": chat(
        ({"refusal": "No bells."}, "stop"),
    ),
    "no legacy call": chat(({"content": "Ding.", "function_call": None}, "stop")),
    "a legacy call whose name comes later": stream(
        sse(
            chunk({"function_call": {"name": "", "arguments": ""}}),
            chunk({"function_call": {"name": "ring", "arguments": "{}"}}),
            chunk({}, "function_call"),
        )
    ),
    "the provider ran it": claude(
        "end_turn",
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        {"type": "text", "text": "Ding."},
    ),
    "paused for the provider": claude("pause_turn", {"type": "server_tool_use", "id": "s1", "name": "x", "input": {}}),
    "tool_use after the provider's tool": claude(
        "tool_use", {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    ),
    "a block of a newer version": claude("tool_use", {"type": "client_action", "id": "b1"}),
    "stop sequence": claude("stop_sequence", {"type": "text", "text": "1 2 3"}),
    "hosted tools of a compatible server": chat(
        ({"content": "Ding.", "executed_tools": [{"type": "search"}]}, "tool_calls"),
    ),
    "an event was lost": stream(
        sse(chunk({"content": "Di"}), done=False) + "data: {{\n\n" + sse(chunk({}, "tool_calls"))
    ),
    "error in the stream": stream(sse(chunk({}, "tool_calls"), {"error": {"message": "busy"}})),
    "http error": {
        **chat(
            ({"tool_calls": [CALL]}, "stop"),
        ),
        "response": {"status": 500, "headers": {}, "body": "{}"},
    },
}
