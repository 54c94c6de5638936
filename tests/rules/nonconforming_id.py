from __future__ import annotations

from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, chunk, exchange, sse
from tests.rules.case import Fires, Silent, without

ASK = User("Is the tide in?")
CHAT = (("openai.chat", False), ("openai.chat", True))
CLAUDE = (("anthropic.messages", False), ("anthropic.messages", True))
HOSTS = {
    "mistral": "https://api.mistral.ai/v1/chat/completions",
    "openai": "https://api.openai.com/v1/chat/completions",
    "azure": "https://port.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
    "router": "https://openrouter.ai/api/v1/chat/completions",
}


def past(*ids: str, model: str = "kimi-k2.5", **more: Any) -> Talk:
    """A history with one call and its result per id."""
    turns = [(Assistant(calls=(Call("read_gauge", {"n": n}, id_),)), Result(id_, "2.1 m")) for n, id_ in enumerate(ids)]
    return Talk((ASK, *(part for turn in turns for part in turn)), text="It is.", model=model, **more)


def reply(*ids: str, model: str = "moonshotai/Kimi-K2-Instruct", **more: Any) -> Talk:
    calls = tuple(Call("read_gauge", {"n": n}, id_) for n, id_ in enumerate(ids))
    return Talk((ASK,), calls=calls, model=model, **more)


def at(host: str, id_: str, model: str, answer: dict[str, Any] | None = None) -> dict[str, Any]:
    """A request to a vendor's own host; with an answer, the vendor refuses it."""
    body = past(id_, model=model).record("openai.chat", False)["request"]["body"]
    made = exchange("", {}, answer or {"choices": []}, status=400 if answer else 200)
    return {**made, "request": {**made["request"], "url": HOSTS[host], "body": body}}


def said(text: str, model: str = "kimi-k2-thinking") -> Talk:
    return Talk((ASK,), text=text, model=model)


NINE = {
    "object": "error",
    "message": "Tool call id was g0 but must be a-z, A-Z, 0-9, with a length of 9.",
    "code": "3280",
}
FORTY = {
    "error": {
        "message": "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40,"
        " but got a string with length 45 instead."
    }
}
PATTERN = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    },
}
LONG = "call_" + "a7" * 20
TOO_LONG = "call_" + "a7" * 32

FIRES = {
    "kimi k2, prefix missing": Fires(
        past("read_gauge:0"), says="prefix `functions.`", fix="safe", severity="warning", layer="client"
    ),
    "kimi k2, number missing": Fires(past("functions.read_gauge"), says="number is missing"),
    "kimi k2, name missing": Fires(past("functions:3"), says="name is missing"),
    "kimi k2, bare number": Fires(past("2"), says="bare number"),
    "kimi k2, singular prefix": Fires(past("function.read_gauge:0"), says="prefix"),
    "kimi k2, each id once": Fires(past("read_gauge:0", "read_gauge:1", "call_8sKq"), count=2),
    "kimi k2, through a router": Fires(past("read_gauge:4", model="accounts/fireworks/routers/kimi-k2p6-turbo")),
    "kimi k2, the model began it": Fires([reply("read_gauge:0"), past("read_gauge:0")], layer="gateway"),
    "kimi k2, mangled already on the wire": Fires([reply("functionsreadgauge0"), past("functionsreadgauge0")]),
    "kimi k2, counted on from a trimmed history": Fires(past("read_gauge:22"), says="read_gauge:22"),
    "kimi k2 replies in the short form": Fires(reply("read_gauge:2"), says="`read_gauge:2`", layer="model", fix="safe"),
    "kimi k2 replies without separators": Fires(reply("functionsreadgauge0"), says="separators"),
    "kimi k2 replies twice": Fires(reply("read_gauge:0", "read_gauge:1"), count=2),
    "kimi k2, native markup": Fires(
        said("<|tool_call_begin|>read_gauge:2<|tool_call_argument_begin|>{}<|tool_call_end|>"), says="native markup"
    ),
    "claude": Fires(past("functions.read_gauge:0", model="claude-opus-5"), says="holds '.'", fix="safe", forms=CLAUDE),
    "claude, and another api gave it out": Fires(
        [
            reply("functions.read_gauge:0", model="kimi-k2").record("openai.chat", False),
            past("functions.read_gauge:0", model="claude-opus-5"),
        ],
        says="holds '.'",
        forms=CLAUDE,
    ),
    "claude behind a gateway's name": Fires(
        past("read/1", model="bedrock/us.anthropic.claude-haiku-4-5"), forms=CLAUDE
    ),
    "claude, two empty": Fires(past("", "", model="claude-opus-5"), count=2, fix="safe", forms=CLAUDE),
    "claude, empty": Fires(past("", model="claude-opus-5"), says="empty", forms=CLAUDE),
    "claude refuses": Fires(
        {
            **past("gauge 1", model="claude-opus-5").record("anthropic.messages", False),
            "response": exchange("", {}, PATTERN, status=400)["response"],
        },
        severity="error",
    ),
    "mistral's own api": Fires(
        at("mistral", "tide-1", "mistral-large-latest"), says="6 characters", severity="warning"
    ),
    "mistral refuses": Fires(at("mistral", "g0", "mistral-large-latest", NINE), severity="error", fix="safe"),
    "mistral refuses through a router": Fires(at("router", "g0", "mistralai/devstral", NINE), severity="error"),
    "openai, over 64": Fires(at("openai", TOO_LONG, "gpt-5"), says="69 characters", severity="warning"),
    "azure, over 64": Fires(at("azure", TOO_LONG, "gpt-4o")),
    "openai refuses over 40": Fires(at("openai", LONG, "gpt-4o", FORTY), says="1 to 40", severity="error"),
    "somebody refuses over 40": Fires(at("router", LONG, "openai/gpt-4o", FORTY), severity="error"),
}

SILENT = {
    "kimi k2, native": past("functions.read_gauge:0", "functions.read_gauge:1"),
    "kimi k2, openai's": past("call_9QfXb2LmZt7RkVw3Nc8HsYpD"),
    "kimi k2, claude's": past("toolu_01Hk3TnBv5QxWz8LrMc2PdYf"),
    "kimi k2, uuid": past("5f3c1a2b-7d4e-4f60-9a8b-1c2d3e4f5a6b"),
    "kimi k2, vllm's": past("chatcmpl-tool-3fa94c21bb07d6e8"),
    "kimi k2, lm studio's": past("365174485"),
    "kimi k2, dotted tool": past("functions.fs.read-all:12"),
    "kimi k2, mangled by the client": past("functionsreadgauge0"),
    "kimi k2 replies as it should": reply("functions.read_gauge:0", "functions.read_gauge:1"),
    "kimi k2 replies with a host's id": reply("call_9QfXb2LmZt7RkVw3Nc8HsYpD"),
    "kimi k2, native markup in order": said("<|tool_call_begin|>functions.read_gauge:2<|tool_call_argument_begin|>{}"),
    "kimi k2 explains markup": said("Write `<|tool_call_begin|>gauge:2<|tool_call_argument_begin|>{}` and no more."),
    "kimi k3": past("read_gauge:0", model="accounts/fireworks/models/kimi-k3"),
    "kimi k3 replies": reply("read_gauge:0", model="kimi-k3"),
    "moonshot's older models": past("read_gauge:0", model="moonshot-v1-32k"),
    "glm with kimi's short form": past("read_gauge:0", model="glm-5"),
    "claude's api gave it out itself": Silent(
        [reply("functions.read_gauge:0", model="claude-opus-5"), past("functions.read_gauge:0", model="claude-opus-5")],
        CLAUDE,
    ),
    "claude with foreign ids": Silent(past("call_1", "functions_read_0", "0", model="claude-opus-5"), CLAUDE),
    "kimi k2 over anthropic's api": Silent(past("functions.read_gauge:0"), CLAUDE),
    "another model over anthropic's api": Silent(past("read_gauge:0", model="glm-5"), CLAUDE),
    "claude over openai's api": Silent(past("functions.read_gauge:0", model="anthropic/claude-sonnet-4.5"), CHAT),
    "mistral's nine": at("mistral", "Zk93LmQ7t", "mistral-large-latest"),
    "mistral elsewhere": at("router", "call_8sKq", "mistralai/mistral-small"),
    "openai, 45 accepted": at("openai", LONG, "gpt-5"),
    "openai, short": at("openai", "x", "gpt-5"),
    "anybody else, very long": at("router", TOO_LONG, "qwen/qwen3-coder"),
    "refused for another length": at(
        "openai", LONG, "gpt-4o", {"error": {"message": "'tools[0].function.name': maximum length 64, got 70"}}
    ),
    "refused for a name's pattern": at(
        "router", "a:b", "m", {"error": {"message": "tools.0.name should match pattern '^[a-zA-Z0-9_-]{1,64}$'"}}
    ),
    "no ids at all": Talk((ASK,), text="It is.", model="kimi-k2.5"),
    "kimi k2, streamed, no id": {
        **exchange(
            "/v1/chat/completions",
            {"model": "kimi-k2.5", "stream": True, "messages": [{"role": "user", "content": "Go."}]},
            sse(chunk({"tool_calls": [{"index": 0, "function": {"name": "go", "arguments": "{}"}}]}, "tool_calls")),
            content_type="text/event-stream",
        )
    },
}


# --- other APIs --------------------------------------------------------------------------------------------------------

_NAMED = without("ollama.chat")
_LOOSE = without("mistral.chat", "bedrock.converse")
CONVERSE, MISTRAL = (("bedrock.converse", False),), (("mistral.chat", False),)
FIRES |= {
    f"{id_}, elsewhere": Fires(FIRES[id_].case, FIRES[id_].count, says=FIRES[id_].says, fix=FIRES[id_].fix, forms=_NAMED)
    for id_ in (
        "kimi k2, prefix missing", "kimi k2, number missing", "kimi k2, name missing", "kimi k2, bare number",
        "kimi k2, each id once", "kimi k2, the model began it", "kimi k2, counted on from a trimmed history",
    )
}  # fmt: skip


def responses(call_id: str, item: str | None = None, host: str = "api.openai.com", error: str = "") -> dict[str, Any]:
    call = {"type": "function_call", "call_id": call_id, "name": "read_gauge", "arguments": "{}"}
    items = [
        call if item is None else {"id": item, **call},
        {"type": "function_call_output", "call_id": call_id, "output": "2"},
    ]
    reply: dict[str, Any] = {"error": {"message": error}} if error else {"output": [], "status": "completed"}
    made = exchange("", {"model": "gpt-5", "input": items}, reply, status=400 if error else 200)
    made["request"]["url"] = f"https://{host}/v1/responses"
    return made


def refused(id_: str, message: str, api: str = "bedrock.converse") -> dict[str, Any]:
    made = past(id_, model="acme-1").record(api, False)
    return {**made, "response": exchange("", {}, {"message": message}, status=400)["response"]}


FIRES |= {
    "converse: too long": Fires(past("t" * 65, model="amazon.nova-pro-v1:0"), says="65 characters", fix="safe", forms=CONVERSE),
    "converse: a blank": Fires(past("read gauge", model="acme-1"), says="holds ' '", fix="safe", forms=CONVERSE),
    "converse: empty": Fires(past("", model="acme-1"), says="empty", fix="safe", forms=CONVERSE),
    "converse: a dot for claude": Fires(
        past("functions.read_gauge:0", model="us.anthropic.claude-opus-5-v1:0"), says="holds '.'", fix="safe", forms=CONVERSE
    ),
    "converse: joined ids": Fires(past("call_1|fc_2", model="acme-1"), says="holds '|'", fix="safe", forms=CONVERSE),
    "converse: refused": Fires(
        refused("a#b", "toolUse.toolUseId failed to satisfy constraint: regular expression pattern: [a-zA-Z0-9_.:-]+"),
        severity="error", fix="safe",
    ),
    "mistral: openai's": Fires(past("call_U7ZpbozYfIAQ0tyiqZ97HB65", model="mistral-small"), says="nine", forms=MISTRAL),
    "mistral: a counter": Fires(past("0", model="mistral-small"), says="nine", fix="safe", forms=MISTRAL),
    "mistral: empty": Fires(past("", model="mistral-small"), says="0 characters", fix="safe", forms=MISTRAL),
    "responses: too long": Fires(responses("call_" + "a" * 60), says="65 characters", pointer="/input/0", fix="safe"),
    "responses: empty": Fires(responses(""), says="empty", fix="safe"),
    "responses: forty at most, it says": Fires(
        responses("call_" + "a" * 36, host="llm.test", error="Invalid 'input[0].call_id': string too long, maximum length 40"),
        severity="error", fix="safe",
    ),
    "item: a uuid": Fires(responses("call_1", "0a1b2c3d-1f2e-4d3c-8b7a-665544332211"), says="begin with `fc`", fix="safe"),
    "item: too long": Fires(responses("call_1", "fc_" + "a" * 62), says="65 characters", pointer="/input/0/id", fix="safe"),
    "item: strange characters": Fires(responses("call_1", "fc_a+b="), says="holds '+'", fix="safe"),
    "item: empty": Fires(responses("call_1", ""), says="empty", fix="safe"),
    "item: refused elsewhere": Fires(
        responses("call_1", "item-1", "llm.test", "Invalid 'input[0].id': 'item-1'. Expected an ID that begins with 'fc'."),
        severity="error",
    ),
}  # fmt: skip
SILENT |= {
    "vendors' own, elsewhere": Silent(past("call_U7ZpbozYfIAQ0tyiqZ97HB65", "toolu_01Hk3TnBv5QxWz8LrMc2PdYf"), _LOOSE),
    "any id, elsewhere": Silent(past("7", "read gauge", "x" * 99, model="acme-1"), _LOOSE),
    "kimi's own, elsewhere": Silent(past("functions.read_gauge:0", "functions.read_gauge:1"), _NAMED),
    "kimi k3, elsewhere": Silent(past("read_gauge:0", model="kimi-k3"), without("ollama.chat", "mistral.chat")),
    "none at all, elsewhere": Silent(past(model="kimi-k2.5"), _NAMED),
    "kimi without ids": Silent(past("read_gauge:0"), (("ollama.chat", False),)),
    "converse: its own": Silent(past("tooluse_bpe71yCfRu2b5i-nKGDr5g", model="us.anthropic.claude-opus-5-v1:0"), CONVERSE),
    "converse: sixty-four": Silent(past("t" * 64, model="acme-1"), CONVERSE),
    "converse: dots and colons": Silent(past("functions.read_gauge:0", model="amazon.nova-pro-v1:0"), CONVERSE),
    "converse: refused for another reason": refused("tooluse_1", "The model returned the following errors: too many tokens"),
    "mistral: its own": Silent(past("D681PevKs", "a1B2c3D4e", model="mistral-small"), MISTRAL),
    "claude over gemini's api": Silent(past("functions.read_gauge:0", model="claude-opus-5"), (("google.generate_content", False),)),
    "claude over cohere's": Silent(past("read gauge", model="claude-opus-5"), (("cohere.chat", False),)),
    "responses: sixty-four": responses("call_" + "a" * 59),
    "responses: long, at another server": responses("call_" + "a" * 99, host="llm.test"),
    "item: its own": responses("call_1", "fc_0f0e50a1476a6c35006912c58dc9f8819192c25864eb16f07f"),
    "item: at another server": responses("call_1", "item-1", "llm.test"),
    "item: none": responses("call_1"),
}  # fmt: skip
