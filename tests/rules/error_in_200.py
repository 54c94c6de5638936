from __future__ import annotations

import json
from typing import Any

from tests.apis.talk_deepinfra_inference import token, whole
from tests.apis.talk_google_generate_content import events as gemini_events
from tests.apis.talk_google_generate_content import reply as gemini_reply
from tests.build import Talk, User, chunk, exchange, sse
from tests.rules.case import Fires

ASK = {"model": "acme-1", "messages": [{"role": "user", "content": "Name the tides."}]}
CHAT, CLAUDE, GEMINI = "/v1/chat/completions", "/v1/messages", "/v1beta/models/gemini-2.5-flash:generateContent"
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "Name the tides."}]}]}
EVENTS = "text/event-stream"
ERROR = {"message": "All workers are busy", "type": "overloaded", "code": 503}
MESSAGE: dict[str, Any] = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "acme-1",
    "content": [],
    "stop_reason": None,
}


def chat(body: Any, **more: Any) -> dict[str, Any]:
    return exchange(CHAT, ASK, body, **more)


def chat_stream(*documents: Any, done: bool = True) -> dict[str, Any]:
    return exchange(CHAT, {**ASK, "stream": True}, sse(*documents, done=done), content_type=EVENTS)


def claude(body: Any) -> dict[str, Any]:
    return exchange(CLAUDE, {**ASK, "max_tokens": 90}, body, request_headers={"anthropic-version": "2023-06-01"})


def claude_stream(*documents: Any) -> dict[str, Any]:
    asked = {**ASK, "max_tokens": 90, "stream": True}
    head = {"anthropic-version": "2023-06-01"}
    return exchange(CLAUDE, asked, sse(*documents, named=True), request_headers=head, content_type=EVENTS)


def responses(*documents: Any) -> dict[str, Any]:
    asked = {"model": "acme-1", "input": "Name the tides.", "stream": True}
    return exchange("/v1/responses", asked, sse(*documents, named=True), content_type=EVENTS)


def failed(error: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "model": "acme-1", "status": "failed", "error": error, "output": []}


def lines(*documents: Any, path: str = "/api/chat") -> dict[str, Any]:
    body = {"model": "acme-1", "prompt": "Name the tides."} if path == "/api/generate" else ASK
    text = "".join(f"{json.dumps(one)}\n" for one in documents)
    return exchange(path, body, text, content_type="application/x-ndjson")


def converse(body: Any) -> dict[str, Any]:
    asked = {"messages": [{"role": "user", "content": [{"text": "Name the tides."}]}]}
    return exchange("/model/acme-1/converse", asked, body)


FIRES = {
    "in the place of the reply": Fires(chat({"error": ERROR}), says="All workers are busy", layer="gateway"),
    "a string": Fires(chat({"error": "no route to the model"}), says="no route"),
    "beside an empty list": Fires(chat({"id": "c1", "choices": [], "error": ERROR}), count=1),
    "the document itself": Fires(chat({"object": "error", "message": "prompt is too long", "code": 400}), says="400"),
    "an envelope": Fires(
        chat({"code": 1113, "msg": "no credit left", "success": False, "data": None}), says="no credit"
    ),
    "an envelope of a word": Fires(chat({"status": "failed", "message": "the queue is full"}), says="queue"),
    "a web framework's word": Fires(chat({"detail": "Not authenticated"}), says="Not authenticated"),
    "beside null members": Fires(
        chat({"id": "", "choices": None, "base_resp": {"status_code": 1004, "status_msg": "login fail"}}), says="1004"
    ),
    "in a candidate": Fires(
        chat({"choices": [{"index": 0, "message": {"content": "High"}, "finish_reason": "error", "error": ERROR}]}),
        says="had begun to answer",
    ),
    "a reason and no more": Fires(
        chat({"choices": [{"index": 0, "message": {"content": "High"}, "finish_reason": "error"}]}),
        says="ends with 'error'",
    ),
    "in mid-stream": Fires(chat_stream(chunk({"content": "High"}), {"error": ERROR}), says="had begun to answer"),
    "first in a stream": Fires(chat_stream({"error": ERROR}), says="503"),
    "beside a candidate in a stream": Fires(chat_stream(chunk({}, "error", error=ERROR)), says="busy"),
    "after the reason": Fires(chat_stream(chunk({"content": "High"}, "stop"), {"error": ERROR}, done=False)),
    "messages": Fires(
        claude({"type": "error", "error": {"type": "api_error", "message": "Internal"}}), says="api_error"
    ),
    "messages, an event": Fires(
        claude_stream(
            {"type": "message_start", "message": MESSAGE},
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ),
        says="overloaded_error",
    ),
    "messages, another's envelope": Fires(claude({"code": 401, "message": "token expired"}), says="token expired"),
    "responses": Fires(
        responses({"type": "response.failed", "response": failed({"code": "server_error", "message": "Sorry"})}),
        says="server_error",
    ),
    "responses, nothing said": Fires(
        responses({"type": "response.failed", "response": failed(None)}), says="nothing says what failed"
    ),
    "responses, an event": Fires(
        responses({"type": "error", "code": "rate_limit_exceeded", "message": "Slow down", "param": None}),
        says="Slow down",
    ),
    "completions": Fires(
        exchange("/v1/completions", {"model": "m", "prompt": "Tides:"}, {"error": {"message": "no slot", "code": 503}})
    ),
    "deepinfra": Fires(
        exchange(
            "/v1/inference/acme/acme-1",
            {"input": "Tides:"},
            whole("", inference_status={"status": "failed", "runtime_ms": 3}),
        ),
        says="failed",
    ),
    "deepinfra streamed": Fires(
        exchange(
            "/v1/inference/acme/acme-1",
            {"input": "Tides:", "stream": True},
            sse(token("High"), {"error": {"message": "worker died"}}),
            content_type=EVENTS,
        ),
        says="worker died",
    ),
    "gemini": Fires(
        exchange(GEMINI, CONTENTS, {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}})
    ),
    "gemini, an array": Fires(exchange(GEMINI, CONTENTS, json.dumps([{"error": {"code": 429, "message": "Quota"}}]))),
    "gemini streamed": Fires(
        exchange(
            GEMINI.replace(":generate", ":streamGenerate") + "?alt=sse",
            CONTENTS,
            gemini_events(gemini_reply([{"text": "High"}]), {"error": {"code": 500, "message": "Internal"}}),
            content_type=EVENTS,
        ),
        says="Internal",
    ),
    "ollama": Fires(lines({"error": "model runner has unexpectedly stopped"}), says="unexpectedly stopped"),
    "ollama, on the way": Fires(
        lines(
            {"model": "acme-1", "message": {"role": "assistant", "content": "High"}, "done": False},
            {"error": "unexpected EOF"},
        ),
        says="had begun",
    ),
    "ollama generate": Fires(lines({"error": "out of memory"}, path="/api/generate"), says="out of memory"),
    "cohere": Fires(exchange("/v2/chat", ASK, {"id": "x", "message": "too many tokens"}), says="too many tokens"),
    "cohere, a reason": Fires(
        exchange(
            "/v2/chat", ASK, {"id": "x", "message": {"role": "assistant", "content": []}, "finish_reason": "ERROR"}
        ),
        says="ERROR",
    ),
    "converse": Fires(converse({"message": "Too many requests, please wait."}), says="Too many requests"),
}

SILENT = {
    "a reply": Talk((User("Name the tides."),), "Spring and neap."),
    "null": chat({"error": None, "choices": [{"index": 0, "message": {"content": "Neap."}, "finish_reason": "stop"}]}),
    "an empty object": chat(
        {"error": {}, "choices": [{"index": 0, "message": {"content": "Ebb."}, "finish_reason": "stop"}]}
    ),
    "an empty error in a candidate": chat(
        {"choices": [{"index": 0, "message": {"content": "Ebb."}, "finish_reason": "stop", "error": None}]}
    ),
    "the status says so": chat({"error": ERROR}, status=503),
    "the status says so, messages": {
        **claude({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        "response": {
            "status": 529,
            "headers": {"content-type": "application/json"},
            "body": '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        },
    },
    "text about an error": Talk((User("What went wrong?"),), '{"error": {"message": "disk full", "code": 28}}'),
    "a token limit": Talk((User("Name the tides."),), "Spring and", finish="length"),
    "a filter": Talk((User("Name the tides."),), "Spring and", finish="filter"),
    "an envelope that says all is well": chat(
        {
            "code": 0,
            "message": "ok",
            "base_resp": {"status_code": 0, "status_msg": "success"},
            "choices": [{"index": 0, "message": {"content": "Ebb."}, "finish_reason": "stop"}],
        }
    ),
    "a heartbeat with a status": chat_stream(
        {"status": "processing", "message": "in the queue"}, chunk({"content": "Ebb."}), chunk({}, "stop")
    ),
    "usage without candidates": chat_stream(
        chunk({"content": "Ebb."}, "stop"), {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    ),
    "incomplete": responses(
        {
            "type": "response.incomplete",
            "response": {
                **failed(None),
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
            },
        }
    ),
    "deepinfra": exchange("/v1/inference/acme/acme-1", {"input": "Tides:"}, whole("Ebb.")),
    "ollama": lines(
        {"model": "acme-1", "message": {"role": "assistant", "content": "Ebb."}, "done": True, "done_reason": "stop"}
    ),
    "gemini blocked": exchange(GEMINI, CONTENTS, {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "g"}),
}
