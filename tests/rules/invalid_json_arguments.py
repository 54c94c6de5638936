from __future__ import annotations

import json

from tests.build import Assistant, Call, Result, Talk, User, chunk, exchange, schema, sse
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


def said(text: str, status: int = 200) -> Talk:
    """A history with a call that was answered."""
    history = (*ASK, Assistant(calls=(Call("move", text, "call_1"),)), Result("call_1", "Done."))
    return Talk(history, text="It is upstairs.", tools=MOVE, status=status)


HISTORIES = (*TEXTUAL[:1], ("openai.responses", False), ("mistral.chat", False), ("cohere.chat", False))
PIANO = '{"what": "piano", "floor": 2}'

TEXT = (("openai.chat", False), ("openai.responses", False), ("mistral.chat", False), ("cohere.chat", False))
PAST = (
    *TEXT,
    *((api, False) for api in ("anthropic.messages", "bedrock.converse", "google.generate_content", "ollama.chat")),
)


def past(arguments: object) -> Talk:
    """A history in which a call has these arguments: a value, or the text of them."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = Assistant(calls=(Call("move", text, "call_1"),))
    return Talk((*ASK, call, Result("call_1", "Moved.")), text="It is upstairs.", tools=MOVE)


def chat_history(arguments: object) -> dict[str, object]:
    """The same with arguments as they are to stand on the wire."""
    call = {"id": "call_1", "type": "function", "function": {"name": "move", "arguments": arguments}}
    messages = [
        {"role": "user", "content": "Move the piano upstairs."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Moved."},
    ]
    done = {"choices": [{"index": 0, "message": {"content": "It is upstairs."}, "finish_reason": "stop"}]}
    return exchange("/v1/chat/completions", {"model": "acme-1", "messages": messages}, done)


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
    "input is a string with a code fence": Fires(
        message(f"```json\n{PIANO}\n```"), says="in a code fence", fix="unsafe"
    ),
    "input is other code in a fence": Fires(message("```sh\nmv piano\n```"), says="a string instead", fix="none"),
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
    "closing markup after it": Fires(move(PIANO + "</parameter>"), says="</parameter>", fix="unsafe", forms=TEXTUAL),
    "a control token after it": Fires(
        move(PIANO + "<|tool_call_end|>"), says="<|tool_call_end|>", fix="unsafe", layer="gateway", forms=TEXTUAL
    ),
    "a control token before it": Fires(
        move("<|tool_call_argument_begin|>" + PIANO), says="control tokens", fix="unsafe", forms=TEXTUAL
    ),
    "a control token and nothing else": Fires(
        Talk(ASK, calls=(Call("rest", "<｜tool▁call▁end｜>"),), tools=MOVE), fix="unsafe", forms=TEXTUAL
    ),
    "a control token after a cut": Fires(move('{"what":"pi<|im_end|>'), says="cut off", fix="none", forms=TEXTUAL),
    "input is a string with a control token": Fires(message(PIANO + "<|call|>"), says="<|call|>", fix="unsafe"),
    "words after it": Fires(move(PIANO + " is done"), says="followed by", fix="none", forms=TEXTUAL),
    "stop instead of tool_calls": Fires(move('{"what":"pi', finish="stop"), says="cut off", forms=TEXTUAL),
    "no reason, but the end was reached": Fires(stream(HALF), says="cut off"),
    "second call": Fires(
        Talk(ASK, calls=(Call("move", PIANO), Call("move", "{what}", "call_2")), tools=MOVE),
        pointer="/choices/0/message/tool_calls/1",
        forms=OPENAI,
    ),
    "history: empty": Fires(said(""), says="are empty", severity="info", fix="safe", forms=HISTORIES),
    "history: blank": Fires(said(" \n"), severity="info", fix="safe", forms=HISTORIES),
    "history: single quotes": Fires(said("{'what': 'piano'}"), severity="warning", fix="unsafe", forms=HISTORIES),
    "history: a control token": Fires(said(PIANO + "<|call|>"), says="control tokens", fix="unsafe", forms=HISTORIES),
    "legacy": Fires(
        reply({"function_call": {"name": "move", "arguments": "what=piano"}}, "function_call"), says="no JSON"
    ),
    "undeclared tool": Fires(Talk(ASK, calls=(Call("lift", "{'a': 1}"),)), fix="unsafe", forms=TEXTUAL),
    **{
        f"history: {id_}": Fires(
            past(arguments), says=says, severity="warning", layer="client", fix=fix, pointer=None, forms=PAST
        )
        for id_, arguments, says, fix in (
            ("an empty array", [], "an array instead of an object", "safe"),
            ("an array", ["piano"], "an array instead of an object", "none"),
            ("a string", '"piano"', "a string instead of an object", "none"),
            ("encoded twice", json.dumps(json.dumps({"what": "piano"})), "in the history", "safe"),
        )
    },
    "history: null as text": Fires(past("null"), says="null instead of an object", fix="safe", forms=TEXT),
    "history: bare text": Fires(past("piano"), says="bare text", fix="none", forms=TEXT),
    "history: bare text, and the call passed here": Fires(
        [Talk(ASK, calls=(Call("move", {"what": "piano"}, "call_1"),), tools=MOVE), past("piano")],
        says="bare text",
        fix="safe",
        layer="client",
        forms=TEXT,
    ),
    "history: bare text that the model wrote": Fires(
        [Talk(ASK, calls=(Call("move", "piano", "call_1"),), tools=MOVE), past("piano")],
        layer="model",
        fix="none",
        forms=OPENAI,
    ),
    "history: an object where the API has text": Fires(
        [chat_history({"what": "piano"})], says="where the API has JSON as text", fix="safe"
    ),
    "history: an empty array where the API has text": Fires([chat_history([])], fix="safe"),
}

SILENT = {
    "history: an object": Silent(past({"what": "piano"}), PAST),
    "history: an empty object": Silent(past({}), PAST),
    "history: cut off, as the model left it": Silent(past('{"what": "pi'), TEXT),
    "history: values in a row": Silent(past('{"what": "a"}{"what": "b"}'), TEXT),
    "history: no arguments at all": chat_history(None),
    "history: an empty `function_call` in every message": exchange(
        "/v1/chat/completions",
        {
            "model": "acme-1",
            "messages": [
                {"role": role, "content": text, "function_call": {"name": "", "arguments": ""}}
                for role, text in (("user", "Hello."), ("assistant", "Hello!"), ("user", "Sum it."))
            ],
        },
        {"choices": [{"index": 0, "message": {"content": "2"}, "finish_reason": "stop"}]},
    ),
    "history: a custom tool's text": exchange(
        "/v1/chat/completions",
        {
            "model": "acme-1",
            "messages": [
                {"role": "user", "content": "Sum it."},
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "py", "input": "1 + 1"}}],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "2"},
            ],
        },
        {"choices": [{"index": 0, "message": {"content": "2"}, "finish_reason": "stop"}]},
    ),
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
    "control tokens in a value": Silent(move('{"what":"<|im_end|> is a token<|tool_call_end|>"}'), TEXTUAL),
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
    "history: healthy": Silent(said(PIANO), HISTORIES),
    "history: redacted": Silent(said("{'what': '[redacted:0a1b2c3d]'}"), HISTORIES),
    "error body": reply({"tool_calls": []}, error={"message": "no"}),
}
