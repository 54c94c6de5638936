from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.build import Assistant, Call, Result, Talk, User, chunk, exchange, schema, sse
from tests.rules.case import Fires, Silent

ASK = (User("What is in the pantry?"),)
SHELF = {"shelf": schema(("name",), name="string", row="integer")}
TEXTUAL = (("openai.chat", False), ("openai.chat", True), ("anthropic.messages", True))
OPENAI = (("openai.chat", False), ("openai.chat", True))
MILK, RICE = {"name": "milk"}, {"name": "rice"}


def glued(*values: object, between: str = "") -> Talk:
    text = between.join(json.dumps(value) for value in values)
    return Talk(ASK, calls=(Call("shelf", text),), tools=SHELF)


def block(start: object, *deltas: str, id_: str = "toolu_1", index: int = 0) -> list[dict[str, object]]:
    return [
        {
            "type": "content_block_start",
            "index": index,
            "content_block": {"type": "tool_use", "id": id_, "name": "shelf", "input": start},
        },
        *(
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
            for piece in deltas
        ),
        {"type": "content_block_stop", "index": index},
    ]


def messages(*events: dict[str, object], tools: Mapping[str, object] = SHELF) -> dict[str, object]:
    body = {
        "model": "acme-1",
        "max_tokens": 64,
        "stream": True,
        "messages": [{"role": "user", "content": "What is in the pantry?"}],
        "tools": [{"name": name, "input_schema": declared} for name, declared in tools.items()],
    }
    stream = sse(
        {"type": "message_start", "message": {"id": "msg_1", "model": "acme-1", "content": []}},
        *events,
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
        named=True,
    )
    return exchange("/v1/messages", body, stream, content_type="text/event-stream")


def whole_message(given: object) -> dict[str, object]:
    body = {"model": "acme-1", "max_tokens": 64, "messages": [{"role": "user", "content": "Pantry?"}]}
    reply = {
        "type": "message",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "shelf", "input": given}],
        "stop_reason": "tool_use",
    }
    return exchange("/v1/messages", body, reply)


def legacy(*pieces: str) -> dict[str, object]:
    body = {
        "model": "acme-1",
        "stream": True,
        "messages": [{"role": "user", "content": "Pantry?"}],
        "functions": [{"name": "shelf", "parameters": SHELF["shelf"]}],
    }
    chunks = [chunk({"function_call": {"name": "shelf", "arguments": ""}})]
    chunks += [chunk({"function_call": {"arguments": piece}}) for piece in pieces]
    reply = sse(*chunks, chunk({}, "function_call"))
    return exchange("/v1/chat/completions", body, reply, content_type="text/event-stream")


def two_choices(first: str, second: str) -> dict[str, object]:
    body = {"model": "acme-1", "n": 2, "messages": [{"role": "user", "content": "Pantry?"}]}
    choices = [
        {
            "index": index,
            "finish_reason": "tool_calls",
            "message": {"tool_calls": [{"id": f"call_{index}", "function": {"name": "shelf", "arguments": text}}]},
        }
        for index, text in enumerate((first, second))
    ]
    return exchange("/v1/chat/completions", body, {"choices": choices})


def added(given: str, *deltas: str, done: str = "") -> dict[str, Any]:
    """A stream of OpenAI's Responses whose call is added with these arguments."""
    full = done or "".join(deltas)
    place = {"item_id": "fc_1", "output_index": 0}
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "shelf", "status": "in_progress"}
    whole = {**item, "arguments": full, "status": "completed"}
    events = (
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": given}},
        *({"type": "response.function_call_arguments.delta", **place, "delta": piece} for piece in deltas),
        {"type": "response.function_call_arguments.done", **place, "arguments": full},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": [whole]}},
    )
    tools = [{"type": "function", "name": "shelf", "parameters": SHELF["shelf"]}]
    body = {"model": "acme-1", "stream": True, "input": "What is in the pantry?", "tools": tools}
    return exchange("/v1/responses", body, sse(*events, named=True), content_type="text/event-stream")


HISTORY = (("openai.chat", False), ("openai.responses", False), ("mistral.chat", False), ("cohere.chat", False))


def said(text: str) -> Talk:
    """A history with a call that was answered."""
    return Talk((User("Milk?"), Assistant(calls=(Call("shelf", text, "c1"),)), Result("c1", "An error.")), text="None.")


FIRES = {
    "responses: added with what the deltas repeat": Fires(
        added('{"name":"milk"}', '{"name":', '"milk"}'),
        says="and the deltas bring them again",
        fix="safe",
        pointer="/output/0",
    ),
    "responses: added with an empty object": Fires(added("{}", '{"name":', '"milk"}'), fix="safe"),
    "responses: added with other arguments": Fires(added('{"name":"rice"}', '{"name":"milk"}'), fix="safe"),
    "history: equal": Fires(said('{"name":"milk"}' * 2), says="in the history", fix="safe", forms=HISTORY),
    "history: nothing, then one": Fires(said('{}{"name":"milk"}'), fix="safe", forms=HISTORY),
    "history: two that differ": Fires(said('{"name":"milk"}{"name":"rice"}'), fix="unsafe", forms=HISTORY),
    "history: the second is cut": Fires(said('{"name":"milk"}{"na'), fix="unsafe", forms=HISTORY),
    "history: two arrays": Fires(said("[1][2]"), fix="none", forms=HISTORY),
    "twice": Fires(glued(MILK, MILK), says="2 times over", fix="safe", layer="gateway", forms=TEXTUAL),
    "three times": Fires(glued(MILK, MILK, MILK), says="3 times over", fix="safe", forms=TEXTUAL),
    "same value, other spacing": Fires(
        Talk(ASK, calls=(Call("shelf", '{"name":"milk","row":1}\n{"row": 1, "name": "milk"}'),), tools=SHELF),
        fix="safe",
        forms=TEXTUAL,
    ),
    "empty object first": Fires(glued({}, MILK), fix="safe", forms=TEXTUAL),
    "empty object last": Fires(glued(MILK, {}), fix="safe", forms=TEXTUAL),
    "null first": Fires(glued(None, MILK), fix="safe", forms=TEXTUAL),
    "parallel calls that lost their index": Fires(
        glued(MILK, RICE), says="hold 2 JSON values", fix="unsafe", forms=TEXTUAL
    ),
    "one of two does not fit": Fires(glued(MILK, {"row": "top"}), fix="none", forms=TEXTUAL),
    "a line each": Fires(glued(MILK, RICE, between="\n"), fix="unsafe", forms=TEXTUAL),
    "a comma between": Fires(glued(MILK, RICE, between=","), says="go on after", fix="none", forms=TEXTUAL),
    "more members after the object": Fires(
        Talk(ASK, calls=(Call("shelf", '{"name":"milk"},"row":2}'),), tools=SHELF),
        says='"row":2',
        fix="unsafe",
        forms=TEXTUAL,
    ),
    "more members that do not fit": Fires(
        Talk(ASK, calls=(Call("shelf", '{"name":"milk"},"row":"top"}'),), tools=SHELF), fix="none", forms=TEXTUAL
    ),
    "one member again": Fires(
        Talk(ASK, calls=(Call("shelf", '{"name":"milk"},"name":"rice"}'),), tools=SHELF), fix="none", forms=TEXTUAL
    ),
    "empty object, then two that differ": Fires(glued({}, MILK, RICE), fix="unsafe", forms=TEXTUAL),
    "the client wants one call": Fires(
        Talk(
            ASK,
            calls=(Call("shelf", json.dumps(MILK) + json.dumps(RICE)),),
            tools=SHELF,
            request={"parallel_tool_calls": False},
        ),
        fix="none",
        forms=OPENAI,
    ),
    "legacy calls cannot be several": Fires(legacy('{"name":"milk"}', '{"name":"rice"}'), fix="none"),
    "the second is cut off": Fires(
        Talk(ASK, calls=(Call("shelf", '{"name":"milk"}{"name":"ri'),), tools=SHELF, finish="length"),
        fix="none",
        forms=TEXTUAL,
    ),
    "second of two calls": Fires(
        Talk(ASK, calls=(Call("shelf", MILK), Call("shelf", "{}" + json.dumps(RICE), "call_2")), tools=SHELF),
        pointer="/choices/0/message/tool_calls/1",
        forms=OPENAI,
    ),
    "both calls": Fires(
        Talk(ASK, calls=(Call("shelf", "{}{}"), Call("shelf", '{"name":"a"}{"name":"a"}', "call_2")), tools=SHELF),
        count=2,
        forms=TEXTUAL,
    ),
    "no tools known": Fires(Talk(ASK, calls=(Call("shelf", "{}{}"),)), fix="safe", forms=TEXTUAL),
    "start and the same deltas": Fires(
        messages(*block(MILK, '{"name": ', '"milk"}')), says="the deltas repeat it", fix="safe", pointer="/content/0"
    ),
    "start and other deltas": Fires(messages(*block(MILK, '{"name":"rice"}')), says="another one", fix="unsafe"),
    "deltas say more than the start": Fires(messages(*block(MILK, '{"name":"milk","row":3}')), fix="safe"),
    "deltas are empty": Fires(messages(*block(MILK, "{}")), says='{"name":"milk"}', fix="safe"),
    "deltas continue the start": Fires(messages(*block(MILK, ',"row":3}')), says="go on with", fix="unsafe"),
    "empty start, deltas twice": Fires(messages(*block({}, '{"name":"milk"}', '{"name":"milk"}')), fix="safe"),
    "second block only": Fires(
        messages(*block({}, '{"name":"rice"}'), *block(MILK, '{"name":"milk"}', id_="toolu_2", index=1)),
        pointer="/content/1",
    ),
    "glued inside a string": Fires(whole_message('{"name":"milk"}{"name":"milk"}'), fix="safe"),
    "legacy function call": Fires(legacy("{}", '{"name":"milk"}'), fix="safe"),
    "second choice": Fires(
        two_choices('{"name":"milk"}', '{"name":"milk"}{"name":"milk"}'), pointer="/choices/1/message/tool_calls/0"
    ),
}

SILENT = {
    "responses: added with nothing": added("", '{"name":', '"milk"}'),
    "responses: added with all, and no deltas": added('{"name":"milk"}', done='{"name":"milk"}'),
    "responses: added with the beginning": added('{"name":', '"milk"}', done='{"name":"milk"}'),
    "history: one": Silent(said('{"name":"milk"}'), HISTORY),
    "one value": Talk(ASK, calls=(Call("shelf", MILK),), tools=SHELF),
    "white space around it": Silent(
        Talk(ASK, calls=(Call("shelf", '\n {"name": "milk"} \n\n'),), tools=SHELF), TEXTUAL
    ),
    "braces inside a string": Talk(ASK, calls=(Call("shelf", {"name": '{"a":1}{"b":2}'}),), tools=SHELF),
    "json inside a string": Talk(ASK, calls=(Call("shelf", {"name": json.dumps(MILK) * 2}),), tools=SHELF),
    "nested objects": Talk(ASK, calls=(Call("shelf", {"name": "x", "more": [MILK, MILK, {}]}),), tools=SHELF),
    "no arguments": Talk(ASK, calls=(Call("shelf", {}),), tools=SHELF),
    "empty text": Silent(Talk(ASK, calls=(Call("shelf", ""),), tools=SHELF), TEXTUAL),
    "parallel calls": Talk(ASK, calls=(Call("shelf", MILK), Call("shelf", RICE, "call_2")), tools=SHELF),
    "equal parallel calls": Talk(ASK, calls=(Call("shelf", MILK), Call("shelf", MILK, "call_2")), tools=SHELF),
    "empty start, deltas": messages(*block({}, "", '{"name":', '"milk"}')),
    "null start, deltas": messages(*block(None, '{"name":"milk"}')),
    "whole start, no deltas": messages(*block(MILK)),
    "whole start, empty delta": messages(*block(MILK, "", "")),
    "text start, deltas": messages(*block("", '{"name":"milk"}')),
    "cut off": Silent(Talk(ASK, calls=(Call("shelf", '{"name":"mi'),), tools=SHELF, finish="length"), TEXTUAL),
    "an extra bracket is another fault": Silent(
        Talk(ASK, calls=(Call("shelf", '{"name":"milk"}}'),), tools=SHELF), TEXTUAL
    ),
    "prose after the object is another fault": Silent(
        Talk(ASK, calls=(Call("shelf", '{"name":"milk"} as asked'),), tools=SHELF), TEXTUAL
    ),
    "encoded twice is another fault": Silent(
        Talk(ASK, calls=(Call("shelf", json.dumps(json.dumps(MILK))),), tools=SHELF), TEXTUAL
    ),
    "array of objects is another fault": Silent(Talk(ASK, calls=(Call("shelf", "[{},{}]"),), tools=SHELF), TEXTUAL),
    "text of a reply": Talk(ASK, text='{"name":"milk"}{"name":"rice"}', tools=SHELF),
    "history": Talk((*ASK,), text="Milk.", tools=SHELF, request={"metadata": {"note": '{"a":1}{"b":2}'}}),
    "custom tool takes free text": exchange(
        "/v1/chat/completions",
        {
            "model": "acme-1",
            "messages": [{"role": "user", "content": "Run"}],
            "tools": [{"type": "custom", "custom": {"name": "py"}}],
        },
        {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {
                        "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "py", "input": "{}{}"}}]
                    },
                }
            ]
        },
    ),
    "legacy in pieces": legacy('{"name":', '"milk"}'),
    "http error": {**two_choices("{}{}", "{}{}"), "response": {"status": 500, "headers": {}, "body": "{}{}"}},
}
