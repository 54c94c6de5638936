from __future__ import annotations

import json
import re
from typing import Any

from tests.build import Call, Talk, User, chunk, exchange, schema, sse
from tests.rules.case import Fires, Silent

BODY = {"model": "acme-1", "stream": True, "messages": [{"role": "user", "content": "Two words, please."}]}
STREAMED = (("openai.chat", True), ("anthropic.messages", True))


def chat(reply: str, **more: Any) -> dict[str, Any]:
    return {**exchange("/v1/chat/completions", BODY, reply, content_type="text/event-stream"), **more}


def asked(reply: str) -> dict[str, Any]:
    """A stream that was asked for its token counts."""
    body = {**BODY, "stream_options": {"include_usage": True}}
    return exchange("/v1/chat/completions", body, reply, content_type="text/event-stream")


def claude(reply: str, **more: Any) -> dict[str, Any]:
    body = {**BODY, "max_tokens": 64}
    return {**exchange("/v1/messages", body, reply, content_type="text/event-stream"), **more}


def line(document: Any) -> str:
    return f"data: {json.dumps(document)}"


GOOD, MORNING, END = chunk({"content": "Good"}), chunk({"content": " morning"}), chunk({}, "stop")
WHOLE = sse(GOOD, MORNING, END)
HEAD = {"type": "message_start", "message": {"id": "msg_1", "content": []}}
OPEN = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
HELLO = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}
CLOSE = {"type": "content_block_stop", "index": 0}
REASON = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
STOP = {"type": "message_stop"}
MESSAGE = sse(HEAD, OPEN, HELLO, CLOSE, REASON, STOP, named=True)
CALL: dict[str, Any] = {
    "type": "content_block_start",
    "index": 0,
    "content_block": {"type": "tool_use", "id": "t", "name": "x", "input": {}},
}

COUNTS = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}}


def parted(record: dict[str, Any], *names: str) -> dict[str, Any]:
    """A blank line behind the names of events: of these, or of all."""
    of = "|".join(map(re.escape, names)) if names else r"[\w.-]+"
    body = re.sub(rf"(event: (?:{of})\n)(?=data)", r"\1\n", record["response"]["body"])
    return {**record, "response": {**record["response"], "body": body}}


TALK = Talk((User("Two words, please."),), "Good morning.")
PARTED = "a blank line between an event's name and its data"

FIRES = {
    **{
        f"a name parted from its data, {api}": Fires(
            parted(TALK.record(api, True)), says=PARTED, severity="error", fix="safe"
        )
        for api in ("anthropic.messages", "openai.responses", "cohere.chat")
    },
    "one name parted from its data": Fires(
        parted(TALK.record("openai.responses", True), "response.completed"), says=PARTED, fix="safe"
    ),
    "the name of an error": Fires(
        chat(sse(GOOD, done=False) + 'event: error\n\ndata: {"error":{"message":"busy"}}\n\n'), says=PARTED, fix="safe"
    ),
    "a comment behind the name": Fires(
        claude(MESSAGE.replace("event: message_stop\n", "event: message_stop\n: x\n\n")), says=PARTED, fix="safe"
    ),
    "counts that were asked for, behind the terminator": Fires(
        asked(WHOLE + line(COUNTS) + "\n\n"), says="token counts", severity="warning", fix="none"
    ),
    "one line feed between events": Fires(
        chat("\n".join((line(GOOD), line(MORNING), line(END), "data: [DONE]")) + "\n\n"), says="blank line", fix="safe"
    ),
    "two events run together": Fires(
        chat(f"{line(GOOD)}\n{line(MORNING)}\n\n{sse(END)}"), says="blank line", severity="error", fix="safe"
    ),
    "run together, twice": Fires(chat(f"{line(GOOD)}\n{line(MORNING)}\n\n" * 2 + sse(END)), says=", 2 times", count=1),
    "lines of JSON without any framing": Fires(
        chat("\n".join(json.dumps(document) for document in (GOOD, MORNING, END)) + "\n"),
        says="lines of JSON",
        fix="none",
    ),
    "the terminator right after the last event": Fires(
        chat(sse(GOOD, done=False) + line(END) + "\ndata: [DONE]\n\n"), says="blank line", severity="error"
    ),
    "two documents in one line": Fires(
        chat(sse(GOOD, done=False) + line(MORNING) + json.dumps(END) + "\n\n" + "data: [DONE]\n\n"), says="no JSON"
    ),
    "the field twice": Fires(chat(sse(GOOD, done=False) + "data: " + sse(MORNING, END)), says="no JSON"),
    "blanks before the field": Fires(
        chat(sse(GOOD, done=False) + "   " + sse(MORNING, END)), says="white space", severity="error", fix="safe"
    ),
    "a tab before the field": Fires(chat(sse(GOOD, done=False) + "\t" + sse(MORNING, END)), fix="safe"),
    "blank at the very beginning": Fires(chat(" " + WHOLE), severity="info"),
    "broken JSON": Fires(
        chat(sse(GOOD, done=False) + 'data: {"choices": [{"delta": {"content": \n\n' + sse(END)),
        says="no JSON",
        fix="none",
    ),
    "prose as data": Fires(chat(sse(GOOD, done=False) + "data: Internal Server Error\n\n" + sse(END)), says="Internal"),
    "an array as data": Fires(chat(sse(GOOD, done=False) + "data: [1]\n\n" + sse(END))),
    "JSON over two events": Fires(
        chat(sse(GOOD, done=False) + line(MORNING)[:40] + "\n\ndata: " + line(MORNING)[40:] + "\n\n" + sse(END)),
        says="2 events",
        fix="safe",
    ),
    "JSON without a field name": Fires(
        chat(sse(GOOD, done=False) + json.dumps({"error": {"message": "busy"}}) + "\n\n" + sse(END)),
        says="no field name",
    ),
    "upper-case field": Fires(chat(sse(GOOD, done=False) + "DATA: " + json.dumps(MORNING) + "\n\n" + sse(END))),
    "text after the end": Fires(
        chat(WHOLE + sse(chunk({"content": "!"}), done=False)), says="after the end", fix="safe"
    ),
    "error after the end": Fires(chat(WHOLE + sse({"error": {"message": "late"}}, done=False)), says="after the end"),
    "no terminator": Fires(
        chat(sse(GOOD, END, done=False)), says="without its terminator", severity="info", fix="safe"
    ),
    "last event without its blank line": Fires(
        chat(sse(GOOD, done=False) + line(END)), says="no blank line", severity="warning"
    ),
    "JSON of another language": Fires(
        chat(sse(GOOD, done=False) + "data: {'content': 'x'}\n\n" + sse(END)), says="no JSON", fix="none"
    ),
    "no event names": Fires(
        claude(sse(HEAD, OPEN, HELLO, CLOSE, REASON, STOP, done=False)), says="no event name", fix="safe"
    ),
    "a wrong event name": Fires(
        claude(MESSAGE.replace("event: content_block_delta", "event: message")), says="event message", fix="safe"
    ),
    "block never started": Fires(
        claude(sse(HEAD, HELLO, CLOSE, REASON, STOP, named=True)), says="never started", fix="none"
    ),
    "delta after the block's stop": Fires(
        claude(sse(HEAD, OPEN, HELLO, CLOSE, HELLO, REASON, STOP, named=True)), says="already stopped"
    ),
    "no message_start": Fires(claude(sse(OPEN, HELLO, CLOSE, REASON, STOP, named=True)), says="before message_start"),
    "block started twice": Fires(
        claude(sse(HEAD, OPEN, OPEN, HELLO, CLOSE, REASON, STOP, named=True)), says="starts twice", severity="error"
    ),
    "tool block started twice": Fires(
        claude(sse(HEAD, CALL, CALL, CLOSE, REASON, STOP, named=True)), says="starts twice"
    ),
    "message started twice": Fires(
        claude(sse(HEAD, HEAD, OPEN, HELLO, CLOSE, REASON, STOP, named=True)), severity="warning"
    ),
    "block never stopped": Fires(
        claude(sse(HEAD, OPEN, HELLO, REASON, STOP, named=True)), says="never stopped", severity="warning"
    ),
    "events after message_stop": Fires(claude(MESSAGE + sse(HELLO, named=True)), says="after the end"),
    "no message_stop": Fires(
        claude(sse(HEAD, OPEN, HELLO, CLOSE, REASON, named=True)), says="without its terminator", severity="warning"
    ),
    "two kinds of fault": Fires(chat(sse(GOOD, done=False) + "  " + sse(MORNING, END, done=False)), count=2),
}

SILENT = {
    "names without data that keep a stream open": claude(
        "event: ping\n\n" + MESSAGE.replace("event: m", "event: ping\n\nevent: m")
    ),
    "a greeting without data": chat("event: connected\n\n" + WHOLE),
    "a ping without data before an event without a name": chat(f"event: ping\n\n{WHOLE}"),
    "a name without data at the end": chat(WHOLE + "event: done\n\n"),
    "healthy": Silent(Talk((User("Two words."),), text="Good morning"), STREAMED),
    "healthy calls": Silent(
        Talk(calls=(Call("x", {"y": 1}), Call("x", {"y": 2}, "c2")), tools={"x": schema(y="integer")}), STREAMED
    ),
    "CRLF": chat(WHOLE.replace("\n", "\r\n")),
    "CR": chat(WHOLE.replace("\n", "\r")),
    "byte order mark": chat("\ufeff" + WHOLE),
    "comments": chat(": OPENROUTER PROCESSING\n\n" * 3 + WHOLE.replace("\n\n", "\n\n: keep-alive\n\n")),
    "ids, retry and event names": chat(WHOLE.replace("data: ", "id: 7\nretry: 500\nevent: message\ndata: ")),
    "no blank after the colon": chat(WHOLE.replace("data: ", "data:")),
    "fields of tomorrow": chat(WHOLE.replace("data: ", "priority: low\ndata: ")),
    "a document on several data lines": chat(
        "".join(f"data: {part}\n" for part in json.dumps(GOOD, indent=1).split("\n")) + "\n" + sse(END)
    ),
    "more blank lines than needed": chat(WHOLE.replace("\n\n", "\n\n\n\n")),
    "blank lines first": chat("\n\n" + WHOLE),
    "empty data": chat("data:\n\n" + WHOLE),
    "usage after the finish": chat(sse(GOOD, END, {**chunk(), "choices": [], "usage": {"total_tokens": 3}})),
    "usage after the end": chat(WHOLE + sse({**chunk(), "choices": [], "usage": {"total_tokens": 3}}, done=False)),
    "counts once more behind the terminator": asked(sse(GOOD, MORNING, END, COUNTS) + line(COUNTS) + "\n\n"),
    "an event of its own behind the terminator": chat(WHOLE + line({"cost": 0.1}) + "\n\n"),
    "two terminators": chat(WHOLE + "data: [DONE]\n\n"),
    "comment after the end": chat(WHOLE + ": bye\n\n"),
    "terminator without its blank line": chat(sse(GOOD, END, done=False) + "data: [DONE]"),
    "terminator with one line end": chat(sse(GOOD, END, done=False) + "data: [DONE]\n"),
    "usage without its blank line": chat(sse(GOOD, END) + line({**chunk(), "choices": [], "usage": {}})),
    "Anthropic ends without [DONE]": claude(MESSAGE),
    "Anthropic with [DONE]": claude(MESSAGE + "data: [DONE]\n\n"),
    "pings": claude(
        MESSAGE.replace(
            "event: content_block_delta", 'event: ping\ndata: {"type": "ping"}\n\nevent: content_block_delta'
        )
    ),
    "ping without a name": claude(MESSAGE + 'data: {"type": "ping"}\n\n'),
    "ping with something else": claude(
        MESSAGE.replace("event: content_block_stop", "event: ping\ndata: 17\n\nevent: content_block_stop")
    ),
    "message_stop without its blank line": claude(MESSAGE.rstrip("\n")),
    "an event of tomorrow": claude(
        MESSAGE.replace("event: content_block_stop", 'event: hint\ndata: {"type": "hint"}\n\nevent: content_block_stop')
    ),
    "two calls under one index are another fault": claude(
        sse(
            HEAD,
            CALL,
            CLOSE,
            {**CALL, "content_block": {**CALL["content_block"], "id": "t2"}},
            CLOSE,
            REASON,
            STOP,
            named=True,
        )
    ),
    "broke off": chat(sse(GOOD, done=False)),
    "broke off inside an event": chat(sse(GOOD, done=False) + line(MORNING)[:30]),
    "client left": chat(sse(GOOD, END, done=False), end="client-left"),
    "upstream died after the finish": chat(sse(GOOD, END, done=False), end="upstream-died"),
    "whole body": Silent(Talk(text="Good morning"), (("openai.chat", False), ("anthropic.messages", False))),
    "whole body for a stream": exchange(
        "/v1/chat/completions", BODY, {"choices": [{"index": 0, "message": {"content": "Good"}}]}
    ),
    "lines of JSON, and no stream was asked for": exchange(
        "/v1/chat/completions", {**BODY, "stream": False}, json.dumps(GOOD) + "\n" + json.dumps(END)
    ),
    "chunk size that leaked": chat(WHOLE + "0\r\n\r\n"),
    "http error": exchange("/v1/chat/completions", BODY, "data: busy\n\n", status=503),
    "error event": chat(sse(GOOD, {"error": {"message": "overloaded"}})),
    "empty": chat(""),
}
