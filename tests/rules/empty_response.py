from __future__ import annotations

import json
from typing import Any

from tests.apis.talk_google_generate_content import events as gemini_events
from tests.apis.talk_google_generate_content import reply as gemini_reply
from tests.build import Assistant, Call, Result, Talk, User, chunk, exchange, sse
from tests.rules.case import Fires, Silent


def both(*apis: str) -> tuple[tuple[str, bool], ...]:
    return tuple((api, stream) for api in apis for stream in (False, True))


CHAT, CLAUDE = both("openai.chat"), both("anthropic.messages")
ALL = both(
    "openai.chat", "anthropic.messages", "openai.responses", "mistral.chat", "cohere.chat", "bedrock.converse",
    "google.generate_content", "ollama.chat", "ollama.generate", "openai.completions",
)  # fmt: skip
ASK = User("What comes next?")
CALL = Call("fetch", {"n": 1}, "call_Rw4kTz8QnXv2LbYc6MsPdHfG")
DONE = (ASK, Assistant("", (CALL,)), Result(CALL.id, "ok"))
PATH = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "acme-1", "messages": [{"role": "user", "content": "What comes next?"}]}


def whole(message: Any, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    body = {"id": "c1", "choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}
    return exchange(PATH, BODY, body)


def stream(*documents: Any, done: bool = True, **asked: Any) -> dict[str, Any]:
    return exchange(
        PATH, {**BODY, "stream": True, **asked}, sse(*documents, done=done), content_type="text/event-stream"
    )


def loading(**body: Any) -> dict[str, Any]:
    line = {"model": "acme-1", "response": "", "done": True, "done_reason": "stop"}
    return exchange("/api/generate", {"model": "acme-1", **body}, json.dumps(line))


NOTHING = {"role": "assistant", "content": None}
COUNTED: dict[str, Any] = {"usage": {"prompt_tokens": 9, "completion_tokens": 57}}
HIDDEN: dict[str, Any] = {"usage": {"completion_tokens": 57, "completion_tokens_details": {"reasoning_tokens": 56}}}

FIRES = {
    "nothing": Fires(Talk((ASK,)), severity="warning", forms=ALL),
    "nothing after a tool result": Fires(Talk(DONE), severity="warning", forms=both("openai.chat", "mistral.chat")),
    "nothing after a tool result, Claude": Fires(Talk(DONE), severity="info", says="Claude", forms=CLAUDE),
    "white space": Fires(Talk((ASK,), "\n\n  "), says="white space", forms=ALL),
    "tokens were counted and are nowhere": Fires(whole(NOTHING, **COUNTED), says="57 tokens", layer="gateway"),
    "all but one were thought": Fires(whole(NOTHING, **HIDDEN), layer="model"),
    "a call that is announced": Fires(whole({"content": "", "tool_calls": []}, "tool_calls"), says="tool_calls"),
    "no candidate": Fires(exchange(PATH, BODY, {"id": "c1", "choices": []}), says="no candidate"),
    "no candidate in a stream": Fires(stream({"id": "c1", "choices": [], **COUNTED}), says="no candidate"),
    "a stream that only ends": Fires(exchange(PATH, BODY, "data: [DONE]\n\n", content_type="text/event-stream")),
    "a body of no bytes": Fires(
        {
            **exchange(PATH, BODY, ""),
            "response": {
                "status": 200,
                "headers": {"content-type": "application/json", "content-length": "0"},
                "body": "",
            },
        },
        says="no bytes",
    ),
    "one of two": Fires(
        exchange(
            PATH,
            {**BODY, "n": 2},
            {
                "choices": [
                    {"index": 0, "message": {"content": "Dusk."}, "finish_reason": "stop"},
                    {"index": 1, "message": {"content": ""}, "finish_reason": "stop"},
                ]
            },
        ),
        says="candidate 1",
    ),
    "the request has stop words": Fires(
        Talk((ASK,), request={"stop": ["\n"]}), severity="info", says="stop words", forms=CHAT
    ),
    "the assistant is continued": Fires(
        Talk((ASK, Assistant("The end."))),
        severity="info",
        says="continues",
        forms=both("openai.chat", "anthropic.messages"),
    ),
    "gemini, an empty content": Fires(
        exchange(
            "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
            {"contents": [{"role": "user", "parts": [{"text": "What comes next?"}]}]},
            gemini_events({"candidates": [{"content": {}, "finishReason": "STOP", "index": 0}], "modelVersion": "g"}),
            content_type="text/event-stream",
        )
    ),
    "gemini, a call that could not be read": Fires(
        exchange(
            "/v1beta/models/gemini-2.5-flash:generateContent",
            {"contents": [{"role": "user", "parts": [{"text": "What comes next?"}]}]},
            gemini_reply([], "MALFORMED_FUNCTION_CALL"),
        ),
        says="MALFORMED",
    ),
    "responses, no output": Fires(Talk((ASK,)), forms=both("openai.responses"), says="completed"),
}

SILENT = {
    "text": Silent(Talk((ASK,), "Dusk."), ALL),
    "one character": Silent(Talk((ASK,), "7"), ALL),
    "a call": Talk((ASK,), calls=(CALL,)),
    "reasoning alone": Talk((ASK,), reasoning="Hm."),
    "a refusal": whole({"role": "assistant", "content": None, "refusal": "No."}),
    "a limit": Silent(
        Talk((ASK,), finish="length"), both("openai.chat", "anthropic.messages", "google.generate_content")
    ),
    "a filter": Silent(
        Talk((ASK,), finish="filter"), both("openai.chat", "anthropic.messages", "google.generate_content")
    ),
    "one token was asked for": Silent(
        Talk((ASK,), request={"max_tokens": 1}), both("openai.chat", "anthropic.messages")
    ),
    "none was asked for": Silent(
        Talk((ASK,), request={"max_tokens": 0}), both("anthropic.messages", "openai.completions")
    ),
    "one token, converse": Silent(
        Talk((ASK,), request={"inferenceConfig": {"maxTokens": 1}}), both("bedrock.converse")
    ),
    "one token, gemini": Silent(
        Talk((ASK,), request={"generationConfig": {"maxOutputTokens": 1}}), both("google.generate_content")
    ),
    "a stop sequence that says so": Silent(Talk((ASK,), finish="stop_sequence"), CLAUDE),
    "a turn that pauses": Silent(Talk((ASK,), finish="pause_turn"), CLAUDE),
    "cut off": stream(chunk({"role": "assistant", "content": ""}), done=False),
    "an error": stream(chunk({"role": "assistant", "content": ""}), {"error": {"message": "worker died"}}),
    "the client left": {**stream(chunk({"role": "assistant"}), done=False), "end": "client-left"},
    "a body that was not kept": exchange(PATH, BODY, ""),
    "not understood": exchange(PATH, BODY, "<html><body>It works!</body></html>", content_type="text/html"),
    "a failure": exchange(PATH, BODY, {"error": {"message": "busy"}}, status=503),
    "a model is loaded": loading(),
    "a model is unloaded": loading(prompt="", keep_alive=0),
    "a gap with nothing in it": exchange(
        "/v1/completions",
        {"model": "m", "prompt": "def f(x):\n    return x", "suffix": "\n"},
        {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]},
    ),
    "a gap by marks": exchange(
        "/v1/completions",
        {"model": "m", "prompt": "<|fim_prefix|>x = 1<|fim_suffix|>\n<|fim_middle|>"},
        {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]},
    ),
    "a picture": whole({"role": "assistant", "content": "", "images": [{"type": "image_url"}]}),
    "sound": whole({"role": "assistant", "content": None, "audio": {"id": "audio_1", "data": "AAAA"}}),
    "gemini, blocked": exchange(
        "/v1beta/models/gemini-2.5-flash:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "What comes next?"}]}]},
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "modelVersion": "g", "responseId": "r"},
    ),
    "responses, a job that runs": exchange(
        "/v1/responses",
        {"model": "acme-1", "input": "What comes next?", "background": True},
        {"id": "resp_1", "object": "response", "status": "queued", "model": "acme-1", "output": []},
    ),
    "responses, a warm-up": exchange(
        "/v1/responses",
        {"model": "acme-1", "input": [], "generate": False},
        {"id": "resp_1", "object": "response", "status": "completed", "model": "acme-1", "output": []},
    ),
}
