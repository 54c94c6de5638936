from __future__ import annotations

from typing import Any

from tests.build import Talk, User, chunk, exchange, sse
from tests.rules.case import Fires, Silent

ASK = User("Say yes.")
PATH = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "acme-1", "stream": True, "messages": [{"role": "user", "content": "Say yes."}]}
WANTED: dict[str, Any] = {"stream_options": {"include_usage": True}}
SAID = (chunk({"content": "Yes."}), chunk({}, "stop"))
COUNTS = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}}
PICTURE = [{"type": "image_url", "image_url": {"url": "https://pictures.example/1.png"}}]
CLAUDE: dict[str, Any] = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "acme-1",
    "content": [],
    "stop_reason": None,
}


def at(url: str, *documents: Any, done: bool = True, **asked: Any) -> dict[str, Any]:
    """A stream at a URL of its own."""
    made = exchange(PATH, {**BODY, **asked}, sse(*(documents or SAID), done=done), content_type="text/event-stream")
    return {**made, "request": {**made["request"], "url": url}}


def stream(*documents: Any, done: bool = True, **asked: Any) -> dict[str, Any]:
    return at(f"http://llm.test{PATH}", *documents, done=done, **asked)


def azure(version: str, **asked: Any) -> dict[str, Any]:
    return at(f"https://acme.openai.azure.com/openai/deployments/m/chat/completions?api-version={version}", **asked)


def elsewhere(path: str, body: Any, *documents: Any, named: bool = False) -> dict[str, Any]:
    return exchange(path, body, sse(*documents, named=named), content_type="text/event-stream")


FIRES = {
    "asked, and what is Groq's holds none": Fires(
        stream(chunk({"content": "Yes."}, x_groq={"id": "req_1"}), chunk({}, "stop"), **WANTED), severity="warning"
    ),
    "not asked": Fires(stream(), severity="info", layer="client", fix="unsafe", pointer="/stream"),
    "not asked, options without it": Fires(
        stream(stream_options={"include_obfuscation": False}), fix="unsafe", pointer="/stream_options"
    ),
    "not asked, options of null": Fires(stream(stream_options=None), fix="unsafe"),
    "not asked, a call": Fires(
        stream(
            chunk({"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "ping", "arguments": "{}"}}]}),
            chunk({}, "tool_calls"),
        ),
        fix="unsafe",
    ),
    "not asked, the vendor": Fires(at("https://api.openai.com/v1/chat/completions"), fix="unsafe"),
    "not asked, Azure of today": Fires(azure("2024-10-21"), fix="unsafe"),
    "not asked, Azure without versions": Fires(
        at("https://acme.openai.azure.com/openai/v1/chat/completions"), fix="unsafe"
    ),
    "asked in vain": Fires(stream(**WANTED), severity="warning", layer="gateway", fix="none"),
    "asked in vain, and null came": Fires(stream(*SAID, {"choices": [], "usage": None}, **WANTED), severity="warning"),
    "asked in vain, two candidates": Fires(
        stream(
            {"choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}]},
            {"choices": [{"index": 1, "delta": {"content": "No."}, "finish_reason": "stop"}]},
            **WANTED,
        ),
        severity="warning",
    ),
    "asked in vain in the words of a router": Fires(
        at("https://openrouter.ai/api/v1/chat/completions", usage={"include": True}), severity="warning"
    ),
    "asked in vain, raw": Fires(
        elsewhere(
            "/v1/completions",
            {"model": "m", "prompt": "Yes,", "stream": True, **WANTED},
            {"choices": [{"index": 0, "text": " and no.", "finish_reason": "stop"}]},
        ),
        severity="warning",
    ),
    "an API that always tells": Fires(
        elsewhere(
            "/v1/messages",
            {**BODY, "max_tokens": 9},
            {"type": "message_start", "message": CLAUDE},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Yes."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
            named=True,
        ),
        severity="info",
        says="always tells",
        fix="none",
    ),
    "an API that always tells, Mistral": Fires(Talk((ASK,), "Yes."), severity="info", forms=(("mistral.chat", True),)),
    "an API that always tells, Ollama": Fires(
        exchange(
            "/api/chat",
            {"model": "acme-1", "messages": BODY["messages"]},
            '{"model":"acme-1","message":{"role":"assistant","content":"Yes."},"done":false}\n'
            '{"model":"acme-1","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}\n',
            content_type="application/x-ndjson",
        ),
        severity="info",
    ),
}

SILENT = {
    "asked and told": stream(*SAID, COUNTS, **WANTED),
    "asked and told beside the reason": stream(chunk({"content": "Yes."}, "stop", usage=COUNTS["usage"]), **WANTED),
    "asked and told as Groq does": stream(
        chunk({"content": "Yes."}), chunk({}, "stop", x_groq={"id": "req_1", "usage": COUNTS["usage"]}), **WANTED
    ),
    "the caller wants none": stream(stream_options={"include_usage": False}),
    "the caller wants none, and none by another name": stream(usage={"include": False}),
    "a host that tells unasked": at("https://openrouter.ai/api/v1/chat/completions"),
    "a host that tells unasked, and did": at("https://api.deepseek.com/chat/completions", *SAID, COUNTS),
    "a host that may refuse the option": at("https://adb-1.azuredatabricks.net/serving-endpoints/chat/completions"),
    "an old version of Azure": azure("2023-12-01-preview"),
    "pictures at Azure": azure("2024-10-21", messages=[{"role": "user", "content": PICTURE}]),
    "data sources at Azure": azure("2024-10-21", data_sources=[{"type": "azure_search"}]),
    "no stream": Silent(Talk((ASK,), "Yes."), (("openai.chat", False), ("mistral.chat", False))),
    "raw, not asked": Silent(Talk((ASK,), "Yes."), (("openai.completions", True), ("deepinfra.inference", True))),
    "other APIs": Silent(
        Talk((ASK,), "Yes."),
        tuple(
            (api, True)
            for api in (
                *("anthropic.messages", "openai.responses", "cohere.chat", "bedrock.converse"),
                *("google.generate_content", "ollama.chat", "ollama.generate"),
            )
        ),
    ),
    "cut off": stream(chunk({"content": "Ye"}), done=False, **WANTED),
    "without a terminator": stream(*SAID, done=False, **WANTED),
    "an error": stream(chunk({"content": "Ye"}), {"error": {"message": "worker died"}}, **WANTED),
    "the client left": {**stream(chunk({"content": "Ye"}), done=False, **WANTED), "end": "client-left"},
    "a failure": exchange(PATH, {**BODY, **WANTED}, {"error": {"message": "busy"}}, status=429),
}
