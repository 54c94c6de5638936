from __future__ import annotations

from typing import Any

from tests.build import Call, Talk, User, chunk, exchange, schema, sse
from tests.rules.case import Fires, Silent

STREAMED = (("openai.chat", True), ("anthropic.messages", True))
URL = "http://llm.test/v1/chat/completions"


def chat(*deltas: dict[str, Any], url: str = URL) -> dict[str, Any]:
    body = {"model": "acme-1", "stream": True, "messages": [{"role": "user", "content": "Paint both doors."}]}
    reply = sse(chunk({"role": "assistant"}), *(chunk(delta) for delta in deltas), chunk({}, "tool_calls"))
    made = exchange("/v1/chat/completions", body, reply, content_type="text/event-stream")
    return {**made, "request": {**made["request"], "url": url}}


def calls(*items: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(items)}


def paint(
    index: Any = None, id_: str | None = None, name: str | None = None, arguments: str | None = None, **more: Any
) -> dict[str, Any]:
    """One entry of `tool_calls`; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    made: dict[str, Any] = {"function": function} if function else {}
    return made | ({} if index is None else {"index": index}) | ({} if id_ is None else {"id": id_}) | more


def claude(*events: dict[str, Any]) -> dict[str, Any]:
    body = {"model": "acme-1", "max_tokens": 64, "stream": True, "messages": [{"role": "user", "content": "Paint."}]}
    reply = sse(
        {"type": "message_start", "message": {"id": "msg_1", "content": []}},
        *events,
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
        named=True,
    )
    return exchange("/v1/messages", body, reply, content_type="text/event-stream")


def start(index: int, id_: str, name: str = "paint", kind: str = "tool_use") -> dict[str, Any]:
    block = {"type": kind, "id": id_, "name": name, "input": {}}
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": text}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


RED, BLUE = '{"colour":"red"}', '{"colour":"blue"}'

FIRES = {
    "whole calls under one index": Fires(
        chat(calls(paint(0, "a", "paint", RED)), calls(paint(0, "b", "paint", BLUE))), says="b of paint", fix="safe"
    ),
    "in one event": Fires(chat(calls(paint(0, "a", "paint", RED), paint(0, "b", "paint", BLUE)))),
    "three of them": Fires(
        chat(*(calls(paint(0, id_, "paint", RED)) for id_ in "abc")), says="b and c", fix="safe", count=1
    ),
    "in pieces": Fires(
        chat(
            calls(paint(0, "a", "paint", "")),
            calls(paint(0, arguments=RED[:5])),
            calls(paint(0, arguments=RED[5:])),
            calls(paint(0, "b", "paint", "")),
            calls(paint(0, arguments=BLUE)),
        ),
        pointer="/choices/0/message/tool_calls/0",
    ),
    "another tool before the first has arguments": Fires(
        chat(calls(paint(0, "a", "paint")), calls(paint(0, "b", "sand", BLUE))), says="b of sand"
    ),
    "another tool without an id": Fires(chat(calls(paint(0, "a", "paint", RED)), calls(paint(0, None, "sand", "{}")))),
    "another id after empty arguments": Fires(
        chat(calls(paint(0, "a", "paint", "{}")), calls(paint(0, "b", "paint", "{}")))
    ),
    "under a later index": Fires(
        chat(
            calls(paint(0, "a", "paint", RED)),
            calls(paint(1, "b", "paint", BLUE)),
            calls(paint(1, "c", "paint", RED)),
        ),
        says="index 1",
        pointer="/choices/0/message/tool_calls/1",
    ),
    "no index": Fires(chat(calls(paint(None, "a", "paint", RED))), says="has no index", fix="safe"),
    "no index, in pieces": Fires(chat(calls(paint(None, "a", "paint", "")), calls(paint(None, arguments=RED)))),
    "no index, two calls": Fires(
        chat(calls(paint(None, "a", "paint", RED)), calls(paint(None, "b", "paint", BLUE))), says="no index"
    ),
    "null index": Fires(chat(calls({**paint(None, "a", "paint", RED), "index": None}))),
    "index as text": Fires(chat(calls(paint("0", "a", "paint", RED)))),
    "block started again": Fires(
        claude(start(0, "a"), delta(0, RED), stop(0), start(0, "b"), delta(0, BLUE), stop(0)), pointer="/content/0"
    ),
    "another tool's block started at once": Fires(
        claude(start(1, "a"), start(1, "b", "sand"), delta(1, BLUE), stop(1)), says="index 1"
    ),
    "block without an index": Fires(
        claude(
            *(
                {key: one for key, one in event.items() if key != "index"}
                for event in (start(0, "a"), delta(0, RED), stop(0))
            )
        ),
        says="has no index",
        fix="safe",
    ),
}

SILENT = {
    "parallel": Silent(
        Talk(
            (User("Paint both doors."),),
            calls=(Call("paint", {"colour": "red"}, "a"), Call("paint", {"colour": "blue"}, "b")),
            tools={"paint": schema(colour="string")},
        )
    ),
    "parallel, where calls are not numbered": Silent(
        Talk(
            (User("Paint both doors."),),
            calls=(Call("paint", {"colour": "red"}, "a"), Call("paint", {"colour": "blue"}, "b")),
            tools={"paint": schema(colour="string")},
        ),
        (("ollama.chat", True), ("google.generate_content", True)),
    ),
    "parallel, elsewhere": Silent(
        Talk(
            (User("Paint both doors."),),
            calls=(Call("paint", {"colour": "red"}, "a"), Call("paint", {"colour": "blue"}, "b")),
            tools={"paint": schema(colour="string")},
        ),
        (("mistral.chat", True), ("cohere.chat", True), ("bedrock.converse", True), ("openai.responses", True)),
    ),
    "one call a chunk, numbered": chat(calls(paint(0, "a", "paint", RED)), calls(paint(1, "b", "paint", BLUE))),
    "several in one event, numbered": chat(calls(paint(0, "a", "paint", RED), paint(1, "b", "paint", BLUE))),
    "interleaved": chat(
        calls(paint(0, "a", "paint", ""), paint(1, "b", "paint", "")),
        calls(paint(1, arguments=BLUE[:4])),
        calls(paint(0, arguments=RED)),
        calls(paint(1, arguments=BLUE[4:])),
    ),
    "counted from one": chat(calls(paint(1, "a", "paint", RED)), calls(paint(2, "b", "paint", BLUE))),
    "gaps": chat(calls(paint(0, "a", "paint", RED)), calls(paint(4, "b", "paint", BLUE))),
    "id and name with every delta": chat(
        *(calls(paint(0, "a", "paint", piece)) for piece in ('{"colour"', ':"re', 'd"}'))
    ),
    "empty id and name with every delta": chat(
        calls(paint(0, "a", "paint", "")), *(calls(paint(0, "", "", piece)) for piece in ('{"colour"', ':"red"}'))
    ),
    "another id in the middle": chat(
        calls(paint(0, "a", "paint", '{"colour"')), calls(paint(0, "a2", None, ':"red"}'))
    ),
    "another id and the same name in the middle": chat(
        calls(paint(0, "a", "paint", '{"colour"')), calls(paint(0, "a2", "paint", ':"red"}'))
    ),
    "id that comes late": chat(calls(paint(0, None, "paint", "")), calls(paint(0, "a", None, RED))),
    "name in pieces": chat(calls(paint(0, "a", "pa", "")), calls(paint(0, None, "int", RED))),
    "the same block started again": claude(start(0, "a"), start(0, "a"), delta(0, RED), stop(0)),
    "announced twice, with another id": claude(start(1, "a"), start(1, "b"), delta(1, BLUE), stop(1)),
    "two blocks": claude(start(0, "a"), delta(0, RED), stop(0), start(1, "b"), delta(1, BLUE), stop(1)),
    "a call of the provider in between": claude(
        start(0, "s", "web_search", "server_tool_use"), stop(0), start(1, "a"), delta(1, RED), stop(1)
    ),
    "Mistral's own API": chat(calls(paint(None, "a", "paint", RED)), url="https://api.mistral.ai/v1/chat/completions"),
    "legacy": chat({"function_call": {"name": "paint", "arguments": ""}}, {"function_call": {"arguments": RED}}),
    "the same index in two choices": exchange(
        "/v1/chat/completions",
        {"model": "acme-1", "stream": True, "n": 2, "messages": [{"role": "user", "content": "Paint."}]},
        sse(
            *(
                {"choices": [{"index": n, "delta": calls(paint(0, id_, "paint", RED)), "finish_reason": "tool_calls"}]}
                for n, id_ in enumerate("ab")
            )
        ),
        content_type="text/event-stream",
    ),
    "whole body without index": exchange(
        "/v1/chat/completions",
        {"model": "acme-1", "messages": [{"role": "user", "content": "Paint."}]},
        {"choices": [{"index": 0, "message": calls(paint(None, "a", "paint", RED), paint(None, "b", "paint", BLUE))}]},
    ),
    "text": Talk((User("Paint."),), text="Both doors are dry."),
}
