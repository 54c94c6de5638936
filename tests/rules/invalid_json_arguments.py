from __future__ import annotations

import json

from tests.build import Call, Talk, User, chunk, exchange, schema, sse
from tests.rules.case import Fires, Silent

ASK = (User("Move the piano upstairs."),)
MOVE = {"move": schema(("what",), what="string", floor="integer"), "rest": schema()}
TEXTUAL = (("openai.chat", False), ("openai.chat", True), ("anthropic.messages", True))
OPENAI = (("openai.chat", False), ("openai.chat", True))
STREAMED = (("openai.chat", True), ("anthropic.messages", True))


def move(text: str, **more: object) -> Talk:
    return Talk(ASK, calls=(Call("move", text),), tools=MOVE, **more)  # type: ignore[arg-type]


def reply(call: dict[str, object], finish: str | None = "tool_calls", **more: object) -> dict[str, object]:
    body = {
        "model": "acme-1",
        "messages": [{"role": "user", "content": "Move it."}],
        "tools": [{"type": "function", "function": {"name": name, "parameters": made}} for name, made in MOVE.items()],
    }
    choice = {"index": 0, "message": {"role": "assistant", **call}, "finish_reason": finish}
    return exchange("/v1/chat/completions", body, {"choices": [choice], **more})


def message(given: object, stop: str = "tool_use") -> dict[str, object]:
    body = {
        "model": "acme-1",
        "max_tokens": 64,
        "messages": [{"role": "user", "content": "Move it."}],
        "tools": [{"name": name, "input_schema": made} for name, made in MOVE.items()],
    }
    block = {"type": "tool_use", "id": "toolu_1", "name": "move", "input": given}
    return exchange("/v1/messages", body, {"type": "message", "content": [block], "stop_reason": stop})


def stream(*documents: object, done: bool = True, end: str = "unknown") -> dict[str, object]:
    body = {"model": "acme-1", "stream": True, "messages": [{"role": "user", "content": "Move it."}]}
    made = exchange("/v1/chat/completions", body, sse(*documents, done=done), content_type="text/event-stream")
    return {**made, "end": end}


HALF = chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "move", "arguments": '{"what":"pi'}}]})
PIANO = '{"what": "piano", "floor": 2}'

FIRES = {
    "an object where the API has text": Fires(
        reply({"tool_calls": [{"id": "c1", "function": {"name": "move", "arguments": {"what": "x"}}}]}),
        says="as text",
        severity="warning",
        layer="gateway",
        fix="safe",
    ),
    "an object where the API has text, streamed": Fires(
        stream(
            chunk(
                {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "move", "arguments": {"what": "x"}}}]},
                "tool_calls",
            )
        ),
        says="as text",
    ),
    "cut off, and nobody says so": Fires(
        move('{"what":"piano","fl'), says="cut off", fix="none", layer="gateway", forms=TEXTUAL
    ),
    "cut before the last bracket": Fires(move('{"what":"piano"'), says="cut off", fix="none", forms=TEXTUAL),
    "cut inside a literal": Fires(move('{"what":"piano","grand":tr'), says="cut off", fix="none", forms=TEXTUAL),
    "only the first bracket": Fires(move("{"), says="cut off", forms=TEXTUAL),
    "single quotes": Fires(move("{'what': 'piano', 'floor': 2}"), says="single quotes", fix="unsafe", forms=TEXTUAL),
    "Python's literals": Fires(move('{"what": "piano", "grand": True}'), says="Python", fix="unsafe", forms=TEXTUAL),
    "trailing comma": Fires(move('{"what": "piano",}'), says="trailing comma", fix="unsafe", forms=TEXTUAL),
    "raw line feed": Fires(move('{"what": "grand\npiano"}'), says="raw line feed", fix="unsafe", forms=TEXTUAL),
    "unescaped quotes": Fires(move('{"what": "the "big" piano"}'), says="amiss", fix="none", forms=TEXTUAL),
    "bare names": Fires(move("{what: piano}"), says="no JSON", fix="none", forms=TEXTUAL),
    "bare keys": Fires(move('{what: "piano"}'), says="no JSON", fix="unsafe", forms=TEXTUAL),
    "an escape of a regular expression": Fires(move('{"what": "\\d+"}'), says="escape", fix="unsafe", forms=TEXTUAL),
    "an escape that may be one": Fires(move('{"what": "c:\\dir\\new"}'), says="escape", fix="none", forms=TEXTUAL),
    "not a number": Fires(move('{"what": "piano", "floor": NaN}'), says="NaN", fix="none", forms=TEXTUAL),
    "code fence": Fires(move(f"```json\n{PIANO}\n```"), says="code fence", fix="unsafe", forms=TEXTUAL),
    "markup": Fires(move("<what>piano</what>"), says="no JSON", fix="none", forms=TEXTUAL),
    "encoded twice": Fires(move(json.dumps(PIANO)), says="encoded twice", fix="unsafe", layer="gateway", forms=OPENAI),
    "encoded twice, the quotes lost": Fires(
        move(json.dumps(PIANO)[1:-1]), says="without the quotes", fix="unsafe", layer="gateway", forms=TEXTUAL
    ),
    "damaged before the last call, which was cut": Fires(
        Talk(ASK, calls=(Call("move", "{'what':'x'}"), Call("move", '{"wh', "call_2")), tools=MOVE, finish="length"),
        fix="unsafe",
        forms=TEXTUAL,
    ),
    "encoded twice, does not fit": Fires(move(json.dumps('{"floor": 2}')), fix="none", forms=OPENAI),
    "input is a string": Fires(message(PIANO), says="encoded twice", pointer="/content/0"),
    "input is a damaged string": Fires(message('{"what": pia'), says="damaged"),
    "an array": Fires(move('["piano", 2]'), says="an array", fix="none", forms=TEXTUAL),
    "input is an array": Fires(message(["piano"]), says="an array"),
    "a number": Fires(move("2"), says="a number", forms=TEXTUAL),
    "a plain string": Fires(move('"piano"'), says="a string", forms=TEXTUAL),
    "null, though something is required": Fires(move("null"), says="null", severity="error", forms=TEXTUAL),
    "null, and nothing is required": Fires(
        Talk(ASK, calls=(Call("rest", "null"),), tools=MOVE), severity="info", forms=TEXTUAL
    ),
    "empty, though something is required": Fires(move(""), says="what must be given", forms=OPENAI),
    "no arguments at all": Fires(
        reply({"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "move"}}]}), says="empty"
    ),
    "surplus bracket": Fires(move(PIANO + "}"), says="followed by '}'", fix="unsafe", forms=TEXTUAL),
    "closing markup after it": Fires(move(PIANO + "</parameter>"), says="</parameter>", fix="none", forms=TEXTUAL),
    "stop instead of tool_calls": Fires(move('{"what":"pi', finish="stop"), says="cut off", forms=TEXTUAL),
    "no reason, but the end was reached": Fires(stream(HALF), says="cut off"),
    "second call": Fires(
        Talk(ASK, calls=(Call("move", PIANO), Call("move", "{what}", "call_2")), tools=MOVE),
        pointer="/choices/0/message/tool_calls/1",
        forms=OPENAI,
    ),
    "legacy": Fires(
        reply({"function_call": {"name": "move", "arguments": "what=piano"}}, "function_call"), says="no JSON"
    ),
    "undeclared tool": Fires(Talk(ASK, calls=(Call("lift", "{'a': 1}"),)), fix="unsafe", forms=TEXTUAL),
}

SILENT = {
    "healthy": Talk(ASK, calls=(Call("move", {"what": "piano"}),), tools=MOVE),
    "no parameters": Talk(ASK, calls=(Call("rest", {}),), tools=MOVE),
    "empty text, nothing required": Silent(Talk(ASK, calls=(Call("rest", ""),), tools=MOVE), TEXTUAL),
    "empty text, tool without a schema": Silent(Talk(ASK, calls=(Call("nap", ""),), tools={"nap": None}), OPENAI),
    "empty text, undeclared tool": Silent(Talk(ASK, calls=(Call("nap", ""),)), TEXTUAL),
    "blank text, nothing required": Silent(Talk(ASK, calls=(Call("rest", "  \n"),), tools=MOVE), TEXTUAL),
    "honest length": Silent(move('{"what":"pia', finish="length"), TEXTUAL),
    "content filter": Silent(move('{"what":"pia', finish="filter"), TEXTUAL),
    "context window": Silent(move('{"what":"pia', finish="model_context_window_exceeded"), TEXTUAL),
    "a server's own reason": Silent(move('{"what":"pia', finish="abort"), TEXTUAL),
    "stream broke off": stream(HALF, done=False),
    "client left": stream(HALF, done=False, end="client-left"),
    "error in the stream": stream(HALF, {"error": {"message": "overloaded"}}),
    "an event was lost": stream(HALF, done=False)
    | {
        "response": {
            "status": 200,
            "headers": {"content-type": "text/event-stream"},
            "body": sse(HALF, done=False) + "data: {broken\n\n" + sse(chunk({}, "tool_calls")),
        }
    },
    "several values are another fault": Silent(move(PIANO * 2), TEXTUAL),
    "another object begins": Silent(move('{}{"what'), TEXTUAL),
    "escaped line feeds and quotes": Talk(ASK, calls=(Call("move", {"what": 'a\n"b"\t\\'}),), tools=MOVE),
    "escapes of all planes": Silent(move('{"what": "\\ud83c\\udfb9 \\u00e9"}'), TEXTUAL),
    "a lone surrogate is legal": Silent(move('{"what": "\\ud83c"}'), TEXTUAL),
    "large numbers": Silent(move('{"what": "x", "floor": 123456789012345678901234567890}'), TEXTUAL),
    "white space around": Silent(move(f"\r\n{PIANO}\n"), TEXTUAL),
    "redacted": Silent(move("{'what': '[redacted:0a1b2c3d]'}"), TEXTUAL),
    "text only": Talk(ASK, text="{'what': 'piano'}", tools=MOVE),
    "input in pieces": Silent(Talk(ASK, calls=(Call("move", PIANO),), tools=MOVE, step=1), STREAMED),
    "custom tool": reply(
        {"tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "py", "input": "print('piano')"}}]}
    ),
    "zero-valued legacy call": reply({"content": "Done.", "function_call": {"name": "", "arguments": ""}}, "stop"),
    "empty input block cut by length": message({}, "max_tokens"),
    "error body": reply({"tool_calls": []}, error={"message": "no"}),
}
