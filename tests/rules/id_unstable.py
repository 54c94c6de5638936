from __future__ import annotations

from typing import Any

from tests.build import Call, Talk, chunk, exchange, sse
from tests.rules.case import Fires, Silent

BODY = {"model": "acme-1", "stream": True, "messages": [{"role": "user", "content": "Open the gate."}]}
STREAMED = (("openai.chat", True), ("anthropic.messages", True))


def part(id_: str | None = None, arguments: str = "", name: str | None = None, index: int | None = 0) -> dict[str, Any]:
    function: dict[str, Any] = {"arguments": arguments} | ({"name": name} if name else {})
    call: dict[str, Any] = {"function": function} | ({} if index is None else {"index": index})
    return chunk({"tool_calls": [call if id_ is None else {**call, "id": id_}]})


def stream(*chunks: dict[str, Any], model: str = "acme-1") -> dict[str, Any]:
    reply = sse(*chunks, chunk({}, "tool_calls"))
    return exchange("/v1/chat/completions", {**BODY, "model": model}, reply, content_type="text/event-stream")


def named(*ids: str, model: str = "acme-1") -> dict[str, Any]:
    """A stream whose chunks carry these reply ids."""
    words = [chunk({"content": f"{n} "}, id=id_) for n, id_ in enumerate(ids)]
    reply = sse(*words, chunk({}, "stop", id=ids[-1]))
    return exchange("/v1/chat/completions", {**BODY, "model": model}, reply, content_type="text/event-stream")


def blocks(*starts: tuple[str, str], start_id: str = "msg_1", again: str | None = None) -> dict[str, Any]:
    """An Anthropic stream in which block 0 is started several times."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": start_id, "model": "m", "content": []}}]
    for id_, piece in starts:
        block = {"type": "tool_use", "id": id_, "name": "open", "input": {}}
        events.append({"type": "content_block_start", "index": 0, "content_block": block})
        delta = {"type": "input_json_delta", "partial_json": piece}
        events.append({"type": "content_block_delta", "index": 0, "delta": delta})
    if again is not None:
        events.append({"type": "message_start", "message": {"id": again, "model": "m", "content": []}})
    events.append({"type": "content_block_stop", "index": 0})
    events.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    events.append({"type": "message_stop"})
    body = {**BODY, "max_tokens": 64}
    return exchange("/v1/messages", body, sse(*events, named=True), content_type="text/event-stream")


def items(*ids: str, restarts: bool = False, kind: str = "function_call") -> dict[str, Any]:
    """A stream of OpenAI Responses with one item: the ids under which it begins, goes on, ends and stands in the whole."""
    added, said, done, last = ids
    called = {"type": "function_call", "call_id": "call_1", "name": "open", "arguments": '{"gate":1}'}
    spoken = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}
    whole = called if kind == "function_call" else spoken
    begun = {**whole, "arguments": ""} if kind == "function_call" else {**whole, "content": []}
    stem = "function_call_arguments" if kind == "function_call" else "output_text"
    piece = {"delta": '{"gate":1}' if kind == "function_call" else "Yes.", "content_index": 0}
    start: dict[str, Any] = {"type": "response.output_item.added", "output_index": 0}
    events = [
        {**start, "item": {**begun, "id": added}},
        *([{**start, "item": {**begun, "id": said}}] if restarts else []),
        {"type": f"response.{stem}.delta", "output_index": 0, "item_id": said, **piece},
        {"type": "response.output_item.done", "output_index": 0, "item": {**whole, "id": done}},
        {"type": "response.completed", "response": {"status": "completed", "output": [{**whole, "id": last}]}},
    ]
    body = {"model": "acme-1", "stream": True, "input": "Open the gate."}
    return exchange("/v1/responses", body, sse(*events, named=True, done=False), content_type="text/event-stream")


FIRES = {
    "item: its deltas have another": Fires(
        items("fc_1", "fc_2", "fc_1", "fc_1"), says="`fc_1` to `fc_2`", fix="none", count=1
    ),
    "item: every event has another": Fires(items("a+/=", "b+/=", "c+/=", "d"), says="`a+/=` to `b+/=`", count=1),
    "item: a text's end has another": Fires(items("msg_1", "msg_1", "msg_2", "msg_2", kind="message"), says="`msg_2`"),
    "second event": Fires(
        stream(part("a1", name="open"), part("b2", '{"gate":1}')),
        says="from `a1` to `b2`",
        pointer="/choices/0/message/tool_calls/0",
        fix="safe",
        layer="gateway",
    ),
    "every event": Fires(
        stream(part("u-1", name="open"), part("u-2", '{"ga'), part("u-3", 'te":'), part("u-4", "1}")),
        says="4 ids in all",
    ),
    "name repeated": Fires(stream(part("a1", '{"gate"', "open"), part("b2", ":1}", "open"))),
    "in the middle": Fires(stream(part("a1", '{"ga', "open"), part(None, 'te":'), part("b2", "1}"))),
    "the second of two calls": Fires(
        stream(part("a1", "{}", "open"), part("b1", '{"n"', "shut", 1), part("b2", ":2}", None, 1)),
        pointer="/choices/0/message/tool_calls/1",
    ),
    "both of two calls": Fires(
        stream(part("a1", "", "open"), part("b1", "", "shut", 1), part("a2", "{}", None, 0), part("b2", "{}", None, 1)),
        count=2,
    ),
    "without an index": Fires(stream(part("a1", "", "open", None), part("b2", "{}", None, None))),
    "anthropic, started twice": Fires(blocks(("toolu_a", '{"gate"'), ("toolu_b", ":1}")), says="`toolu_b`"),
    "reply id": Fires(named("chatcmpl-1", "chatcmpl-2"), says="`chatcmpl-2`", severity="warning", pointer="/id"),
    "reply id, at the last chunk": Fires(named("chatcmpl-1", "chatcmpl-1", "chatcmpl-9")),
    "reply id, with every chunk": Fires(named(*(f"gen-{n}" for n in range(12))), says="`gen-1`"),
    "reply id, composed": Fires(named("chatcmpl-1", "chatcmpl-2", model="compound-beta"), severity="info"),
    "an id and a name repeated": Fires(
        stream(part("a1", "", "open"), part("a1", '{"gate"', "open"), part("a1", ":1}", "open")),
        says="`open` again",
        severity="info",
        fix="safe",
    ),
    "an id repeated": Fires(stream(part("a1", "", "open"), part("a1", '{"gate":1}')), says="`a1` again"),
    "anthropic, message id": Fires(blocks(("toolu_a", "{}"), start_id="msg_1", again="msg_2"), says="`msg_2`"),
}

SILENT = {
    "elsewhere": Silent(
        Talk(calls=(Call("open", {"gate": 1}),)),
        (("openai.responses", True), ("mistral.chat", True), ("cohere.chat", True)),
    ),
    "healthy": Silent(Talk(calls=(Call("open", {"gate": 1}),)), STREAMED),
    "parallel": Silent(Talk(calls=(Call("open", {"gate": 1}, "a1"), Call("open", {"gate": 2}, "b2"))), STREAMED),
    "empty later": stream(part("a1", "", "open"), part("", '{"gate"'), part("", ":1}")),
    "item: one id": items("fc_1", "fc_1", "fc_1", "fc_1"),
    "item: one id of a text": items("msg_1", "msg_1", "msg_1", "msg_1", kind="message"),
    "item: none at first": items("", "fc_1", "fc_1", "fc_1"),
    "item: none later": items("fc_1", "", "fc_1", "fc_1"),
    "item: two under one index": items("fc_1", "fc_2", "fc_2", "fc_2", restarts=True),
    "Mistral's word for none": {
        **stream(part("Zk3Pq9LmA", "", "open"), part("null", '{"gate":1}')),
        "request": {
            **stream()["request"],
            "url": "https://api.mistral.ai/v1/chat/completions",
        },
    },
    "null later": stream(part("a1", "", "open"), part(None, '{"gate":1}')),
    "first comes late": stream(part("", "", "open"), part("a1", '{"gate":1}')),
    "another call under the same index": stream(part("a1", '{"gate":1}', "open"), part("b2", '{"gate":2}', "open")),
    "another call, its name tells": stream(part("a1", "", "open"), part("b2", '{"gate":2}', "shut")),
    "complete arguments, then an id": stream(part("a1", '{"gate":1}', "open"), part("b2")),
    "calls without an index": stream(part("a1", '{"gate":1}', "open", None), part("b2", '{"gate":2}', "open", None)),
    "whole body": Silent(Talk(calls=(Call("open", {"gate": 1}),)), (("openai.chat", False),)),
    "reply id": named("chatcmpl-1", "chatcmpl-1", "chatcmpl-1"),
    "azure's first chunk": stream(
        {"id": "", "object": "", "choices": [], "prompt_filter_results": []}, part("a1", "{}", "open")
    ),
    "an error event has its own": stream(
        chunk({"content": "I"}), {"id": "err_1", "error": {"message": "overloaded"}, "choices": []}
    ),
    "usage without an id": stream(part("a1", "{}", "open"), {"choices": [], "usage": {"total_tokens": 3}}),
    "after the end": exchange(
        "/v1/chat/completions",
        BODY,
        sse(chunk({"content": "Open."}, "stop")) + sse(chunk({"content": "!"}, id="chatcmpl-late"), done=False),
        content_type="text/event-stream",
    ),
    "candidates": exchange(
        "/v1/chat/completions",
        {**BODY, "n": 2},
        sse(
            *(
                chunk(
                    choices=[
                        {"index": n, "delta": {"tool_calls": [{"index": 0, "id": id_, "function": {"name": "open"}}]}}
                    ]
                )
                for n, id_ in enumerate(("a1", "b2"))
            ),
            chunk({}, "tool_calls"),
        ),
        content_type="text/event-stream",
    ),
}
