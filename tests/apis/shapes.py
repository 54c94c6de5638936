"""Replies in every shape that APIs are known to give, and what a client makes of each.

A shape has a whole body, a stream, or both; both must come to the same. `parts` is written per candidate: (kind, words),
where the words of a call are its name and arguments, and of a hosted call its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from tests.apis.shape import Part, Shape
from tests.apis.shapes_bedrock import SHAPES_BEDROCK, SHAPES_CLAUDE_ON_BEDROCK
from tests.apis.shapes_cohere import SHAPES_COHERE
from tests.apis.shapes_completions import SHAPES_COMPLETIONS
from tests.apis.shapes_deepinfra import SHAPES_DEEPINFRA
from tests.apis.shapes_gemini import SHAPES_GEMINI
from tests.apis.shapes_mcp import SHAPES_MCP
from tests.apis.shapes_mistral import SHAPES_MISTRAL
from tests.apis.shapes_ollama import SHAPES_OLLAMA
from tests.apis.shapes_responses import SHAPES_RESPONSES
from tests.build import sse


def delta(
    content: Mapping[str, Any] | None = None, finish: str | None = None, index: int = 0, **more: Any
) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": dict(content or {}), "finish_reason": finish}], **more}


def body(message: Mapping[str, Any], finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": dict(message), "finish_reason": finish}], **more}


def piece(
    index: int | None = 0, id_: str | None = None, name: str | None = None, arguments: str | None = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    made: dict[str, Any] = {"function": function}
    return made | ({} if index is None else {"index": index}) | ({} if id_ is None else {"id": id_, "type": "function"})


def calls(*pieces: Mapping[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(pieces)}


def call(name: str, arguments: Any, id_: str = "call_1") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


USAGE = {"prompt_tokens": 3, "completion_tokens": 2}
ONE = [[("text", "Hello")]]

OPENAI: dict[str, Shape] = {
    "text": Shape(
        ONE,
        ["stop"],
        body({"role": "assistant", "content": "Hello"}, id="c1", usage=USAGE),
        sse(
            delta({"role": "assistant", "content": ""}, id="c1"),
            delta({"content": "Hel"}, id="c1"),
            delta({"content": "lo"}, id="c1"),
            delta({}, "stop", id="c1"),
            {"id": "c1", "choices": [], "usage": USAGE},
        ),
        usage=USAGE,
        id="c1",
    ),
    "Azure's first chunk": Shape(
        ONE,
        ["stop"],
        stream=sse(
            {"choices": [], "id": "", "model": "", "object": "", "prompt_filter_results": [{"prompt_index": 0}]},
            delta({"content": "Hello"}, id="c1"),
            delta({}, "stop", id="c1"),
        ),
        id="c1",
    ),
    "usage with the last choice": Shape(
        ONE, ["stop"], stream=sse(delta({"content": "Hello"}), delta({"content": ""}, "stop", usage=USAGE)), usage=USAGE
    ),
    "null usage in every chunk": Shape(
        ONE, ["stop"], stream=sse(delta({"content": "Hello"}, usage=None), delta({}, "stop", usage=None))
    ),
    "null deltas": Shape(
        ONE,
        ["stop"],
        stream=sse(
            delta({"role": "assistant", "content": None, "tool_calls": None, "function_call": None, "refusal": None}),
            {"choices": [{"index": 0, "delta": None, "finish_reason": None}]},
            delta({"content": "Hello", "tool_calls": []}),
            delta({"content": None}, "stop"),
        ),
    ),
    "no choice index": Shape(
        ONE,
        ["stop"],
        {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]},
        sse({"choices": [{"delta": {"content": "Hello"}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}),
    ),
    "a whole message in a stream": Shape(ONE, ["stop"], stream=sse(body({"content": "Hello"}))),
    "comments and pings": Shape(
        ONE,
        ["stop"],
        stream=": waiting\n\n" + sse(delta({"content": "Hel"}), done=False) + ": waiting\n\n"
        "event: ping\ndata:\n\n" + sse(delta({"content": "lo"}), delta({}, "stop")),
    ),
    "content as a list": Shape(
        [[("text", "Hel"), ("text", "lo")]],
        ["stop"],
        body({"content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}),
    ),
    "content as a list, streamed": Shape(
        ONE,
        ["stop"],
        stream=sse(
            delta({"content": [{"type": "text", "text": "Hel"}]}),
            delta({"content": [{"type": "text", "text": "lo"}]}),
            delta({}, "stop"),
        ),
    ),
    "thinking in a content list": Shape(
        [[("reasoning", "Greet."), ("text", "Hello")]],
        ["stop"],
        body(
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Greet."}]},
                    {"type": "text", "text": "Hello"},
                ]
            }
        ),
    ),
    **{
        f"reasoning as {name}": Shape(
            [[("reasoning", "Greet."), ("text", "Hello")]],
            ["stop"],
            body({name: "Greet.", "content": "Hello"}),
            sse(delta({name: "Gre"}), delta({name: "et."}), delta({"content": "Hello"}), delta({}, "stop")),
        )
        for name in ("reasoning_content", "reasoning")
    },
    "reasoning under two names": Shape(
        [[("reasoning", "Greet."), ("text", "Hello")]],
        ["stop"],
        body({"reasoning": "Greet.", "reasoning_content": "Greet.", "content": "Hello"}),
        sse(
            delta({"reasoning": "Greet.", "reasoning_details": [{"type": "reasoning.text", "text": "Greet."}]}),
            delta({"content": "Hello"}, "stop"),
        ),
    ),
    "reasoning in details only": Shape(
        [[("reasoning", "Greet."), ("text", "Hello")]],
        ["stop"],
        body({"reasoning_details": [{"type": "reasoning.summary", "summary": "Greet."}], "content": "Hello"}),
    ),
    "refusal": Shape(
        [[("refusal", "I cannot.")]],
        ["stop"],
        body({"content": None, "refusal": "I cannot."}),
        sse(delta({"refusal": "I can"}), delta({"refusal": "not."}), delta({}, "stop")),
    ),
    "one call": Shape(
        [[("call", 'look {"at":"x"}')]],
        ["tool_calls"],
        body({"content": None, **calls(call("look", '{"at":"x"}'))}, "tool_calls"),
        sse(
            delta({"role": "assistant", "content": None}),
            delta(calls(piece(0, "call_1", "look", ""))),
            delta(calls(piece(0, arguments='{"at"'))),
            delta(calls(piece(0, arguments=':"x"}'))),
            delta({}, "tool_calls"),
        ),
    ),
    "text and calls": Shape(
        [[("text", "Hello"), ("call", "look {}")]],
        ["tool_calls"],
        body({"content": "Hello", **calls(call("look", "{}"))}, "tool_calls"),
        sse(delta({"content": "Hello"}), delta(calls(piece(0, "call_1", "look", "{}"))), delta({}, "tool_calls")),
    ),
    "parallel calls": Shape(
        [[("call", "look {}"), ("call", 'ask {"q":1}')]],
        ["tool_calls"],
        body(calls(call("look", "{}"), call("ask", '{"q":1}', "call_2")), "tool_calls"),
        sse(
            delta(calls(piece(0, "call_1", "look", ""), piece(1, "call_2", "ask", '{"q"'))),
            delta(calls(piece(1, arguments=":1}"))),
            delta(calls(piece(0, arguments="{}"))),
            delta({}, "tool_calls"),
        ),
    ),
    "id and name with every delta": Shape(
        [[("call", 'look {"a":1}')]],
        ["tool_calls"],
        stream=sse(
            delta(calls(piece(0, "call_1", "look", '{"a"'))),
            delta(calls(piece(0, "call_1", "look", ":1}"))),
            delta({}, "tool_calls"),
        ),
        faults=["said-again"],
    ),
    "arguments as an object": Shape(
        [[("call", 'look {"a":1}')]],
        ["tool_calls"],
        body(calls(call("look", {"a": 1})), "tool_calls"),
        sse(delta(calls({"index": 0, "id": "c", "function": {"name": "look", "arguments": {"a": 1}}}), "tool_calls")),
    ),
    "no arguments": Shape(
        [[("call", "look ")]], ["tool_calls"], body(calls({"id": "c", "function": {"name": "look"}}), "tool_calls")
    ),
    "custom tool": Shape(
        [[("call", "py print(1)")]],
        ["tool_calls"],
        body(calls({"id": "c", "type": "custom", "custom": {"name": "py", "input": "print(1)"}}), "tool_calls"),
        sse(
            delta(calls({"index": 0, "id": "c", "type": "custom", "custom": {"name": "py", "input": "pri"}})),
            delta(calls({"index": 0, "custom": {"input": "nt(1)"}})),
            delta({}, "tool_calls"),
        ),
    ),
    "legacy function_call": Shape(
        [[("call", 'look {"a":1}')]],
        ["function_call"],
        body({"content": None, "function_call": {"name": "look", "arguments": '{"a":1}'}}, "function_call"),
        sse(
            delta({"function_call": {"name": "look", "arguments": ""}}),
            delta({"function_call": {"arguments": '{"a"'}}),
            delta({"function_call": {"arguments": ":1}"}}),
            delta({}, "function_call"),
        ),
    ),
    "zero-valued legacy function_call": Shape(
        ONE, ["stop"], body({"content": "Hello", "function_call": {"name": "", "arguments": ""}}), faults=["empty-call"]
    ),
    "zero-valued custom part": Shape(
        [[("call", "look {}")]],
        ["tool_calls"],
        body(calls({**call("look", "{}"), "custom": {"name": "", "input": ""}}), "tool_calls"),
    ),
    "two candidates": Shape(
        [[("text", "Hello")], [("text", "Hi")]],
        ["stop", "length"],
        {
            "choices": [
                {"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"},
                {"index": 1, "message": {"content": "Hi"}, "finish_reason": "length"},
            ]
        },
        sse(
            delta({"content": "H"}, index=1),
            delta({"content": "Hel"}),
            delta({"content": "i"}, "length", index=1),
            delta({"content": "lo"}, "stop"),
        ),
    ),
    "two candidates with calls": Shape(
        [[("call", "look {}")], [("call", "ask {}")]],
        ["tool_calls", "tool_calls"],
        stream=sse(
            delta(calls(piece(0, "a", "look", "{}"))),
            delta(calls(piece(0, "b", "ask", "{}")), index=1),
            delta({}, "tool_calls"),
            delta({}, "tool_calls", index=1),
        ),
    ),
    "run by the provider": Shape(
        [[("text", "Hello"), ("hosted", "annotations")]],
        ["stop"],
        body({"content": "Hello", "annotations": [{"type": "url_citation"}]}),
    ),
    "audio": Shape([[("opaque", "audio")]], ["stop"], body({"content": None, "audio": {"id": "a", "data": "AAAA"}})),
    "error body": Shape(whole={"error": {"message": "busy", "type": "server_error"}}, error=True),
    "error as text": Shape(whole={"error": "busy"}, error=True),
    "error that is the body": Shape(whole={"object": "error", "message": "busy", "code": 400}, error=True),
    "error in the stream": Shape(
        [[("text", "Hel")]],
        [None],
        stream=sse(delta({"content": "Hel"}), {"error": {"message": "busy"}}, done=False),
        error=True,
        terminated=False,
    ),
    "no terminator": Shape(
        ONE,
        ["stop"],
        stream=sse(delta({"content": "Hello"}, "stop"), done=False),
        faults=["missing-end"],
        terminated=False,
    ),
    "text after the end": Shape(
        ONE,
        ["stop"],
        stream=sse(delta({"content": "Hello"}, "stop")) + sse(delta({"content": "!"}), done=False),
        faults=["after-end"],
    ),
    "lines without blank lines": Shape(
        ONE,
        ["stop"],
        stream=sse(delta({"content": "Hel"}), delta({"content": "lo"}, "stop")).replace("\n\n", "\n") + "\n",
        faults=["missing-blank-line", "missing-blank-line"],
    ),
    "empty body": Shape(whole={}),
    "empty choices": Shape(whole={"choices": []}),
    "null choices": Shape(whole={"choices": None}),
}


def start(index: int, block: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": dict(block)}


def grow(index: int, kind: str, words: str) -> dict[str, Any]:
    field_ = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
    return {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": kind, field_.get(kind, kind.removesuffix("_delta")): words},
    }


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def block(index: int, first: Mapping[str, Any], *deltas: tuple[str, str]) -> list[dict[str, Any]]:
    return [start(index, first), *(grow(index, kind, words) for kind, words in deltas), stop(index)]


def ended(reason: str | None = "end_turn", **usage: Any) -> list[dict[str, Any]]:
    delta_ = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta_, "usage": usage or {"output_tokens": 2}},
        {"type": "message_stop"},
    ]


def message(*blocks: Mapping[str, Any], reason: str | None = "end_turn") -> dict[str, Any]:
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "content": list(blocks),
        "stop_reason": reason,
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }


BEGIN = {"type": "message_start", "message": {"id": "m1", "content": [], "usage": {"input_tokens": 1}}}
TOKENS = {"input_tokens": 1, "output_tokens": 2}
SAY = {"type": "text", "text": ""}
USE = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}


def named(*events: Any) -> str:
    flat = [item for event in events for item in (event if isinstance(event, list) else [event])]
    return sse(*flat, named=True)


ANTHROPIC: dict[str, Shape] = {
    "text": Shape(
        ONE,
        ["end_turn"],
        message({"type": "text", "text": "Hello"}),
        named(BEGIN, {"type": "ping"}, block(0, SAY, ("text_delta", "Hel"), ("text_delta", "lo")), ended()),
        usage=TOKENS,
        id="m1",
    ),
    "text in the start": Shape(
        ONE,
        ["end_turn"],
        stream=named(BEGIN, block(0, {"type": "text", "text": "Hel"}, ("text_delta", "lo")), ended()),
        usage=TOKENS,
        id="m1",
    ),
    "thinking": Shape(
        [[("reasoning", "Greet."), ("text", "Hello")]],
        ["end_turn"],
        message({"type": "thinking", "thinking": "Greet.", "signature": "c2ln"}, {"type": "text", "text": "Hello"}),
        named(
            BEGIN,
            block(
                0,
                {"type": "thinking", "thinking": "", "signature": ""},
                ("thinking_delta", "Gre"),
                ("thinking_delta", "et."),
                ("signature_delta", "c2ln"),
            ),
            block(1, SAY, ("text_delta", "Hello")),
            ended(),
        ),
        usage=TOKENS,
        id="m1",
    ),
    "redacted thinking": Shape(
        [[("sealed", ""), ("text", "Hello")]],
        ["end_turn"],
        message({"type": "redacted_thinking", "data": "Zm9v"}, {"type": "text", "text": "Hello"}),
        named(
            BEGIN,
            block(0, {"type": "redacted_thinking", "data": "Zm9v"}),
            block(1, SAY, ("text_delta", "Hello")),
            ended(),
        ),
        usage=TOKENS,
        id="m1",
    ),
    "one call": Shape(
        [[("call", 'look {"at":"x"}')]],
        ["tool_use"],
        message({**USE, "input": {"at": "x"}}, reason="tool_use"),
        named(
            BEGIN,
            block(0, USE, ("input_json_delta", ""), ("input_json_delta", '{"at"'), ("input_json_delta", ':"x"}')),
            ended("tool_use"),
        ),
        usage=TOKENS,
        id="m1",
    ),
    "call without parameters": Shape(
        [[("call", "look {}")]],
        ["tool_use"],
        message(USE, reason="tool_use"),
        named(BEGIN, block(0, USE), ended("tool_use")),
        usage=TOKENS,
        id="m1",
    ),
    "whole input in the start": Shape(
        [[("call", 'look {"at":"x"}')]],
        ["tool_use"],
        stream=named(BEGIN, block(0, {**USE, "input": {"at": "x"}}), ended("tool_use")),
        usage=TOKENS,
        id="m1",
    ),
    "null input": Shape(
        [[("call", "look ")]], ["tool_use"], message({**USE, "input": None}, reason="tool_use"), usage=TOKENS, id="m1"
    ),
    "input as text": Shape(
        [[("call", r'look "{\"at\":1}"')]],
        ["tool_use"],
        message({**USE, "input": '{"at":1}'}, reason="tool_use"),
        usage=TOKENS,
        id="m1",
    ),
    "text and parallel calls": Shape(
        [[("text", "Hello"), ("call", "look {}"), ("call", 'ask {"q":1}')]],
        ["tool_use"],
        message(
            {"type": "text", "text": "Hello"},
            USE,
            {**USE, "id": "toolu_2", "name": "ask", "input": {"q": 1}},
            reason="tool_use",
        ),
        named(
            BEGIN,
            block(0, SAY, ("text_delta", "Hello")),
            block(1, USE, ("input_json_delta", "{}")),
            block(2, {**USE, "id": "toolu_2", "name": "ask"}, ("input_json_delta", '{"q":1}')),
            ended("tool_use"),
        ),
        usage=TOKENS,
        id="m1",
    ),
    "blocks interleaved": Shape(
        [[("text", "Hello"), ("call", "look {}")]],
        ["tool_use"],
        stream=named(
            BEGIN,
            start(0, SAY),
            start(1, USE),
            grow(1, "input_json_delta", "{}"),
            grow(0, "text_delta", "Hello"),
            stop(1),
            stop(0),
            ended("tool_use"),
        ),
        usage=TOKENS,
        id="m1",
    ),
    "run by the provider": Shape(
        [[("text", "Hello"), ("hosted", "web_search"), ("hosted", "web_search_tool_result")]],
        ["end_turn"],
        message(
            {"type": "text", "text": "Hello"},
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        ),
        named(
            BEGIN,
            block(0, SAY, ("text_delta", "Hello")),
            block(
                1,
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                ("input_json_delta", '{"query":"x"}'),
            ),
            block(2, {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}),
            ended(),
        ),
        usage=TOKENS,
        id="m1",
    ),
    "remote MCP server": Shape(
        [[("hosted", "look"), ("hosted", "mcp_tool_result")]],
        ["end_turn"],
        message(
            {"type": "mcp_tool_use", "id": "x1", "name": "look", "server_name": "s", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "x1", "is_error": False, "content": []},
        ),
        usage=TOKENS,
        id="m1",
    ),
    "paused": Shape(
        [[("hosted", "web_search")]],
        ["pause_turn"],
        message({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}, reason="pause_turn"),
        usage=TOKENS,
        id="m1",
    ),
    "refused": Shape([[]], ["refusal"], message(reason="refusal"), named(BEGIN, ended("refusal")), usage=TOKENS, id="m1"),
    "a block of tomorrow": Shape(
        [[("opaque", "hologram"), ("text", "Hello")]],
        ["end_turn"],
        message({"type": "hologram", "data": "x"}, {"type": "text", "text": "Hello"}),
        named(
            BEGIN,
            block(0, {"type": "hologram"}, ("hologram_delta", "x")),
            block(1, SAY, ("text_delta", "Hello")),
            {"type": "weather"},
            ended(),
        ),
        usage=TOKENS,
        id="m1",
    ),
    "citations": Shape(
        ONE,
        ["end_turn"],
        message({"type": "text", "text": "Hello", "citations": [{"type": "char_location"}]}),
        named(
            BEGIN,
            start(0, SAY),
            {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {}}},
            grow(0, "text_delta", "Hello"),
            stop(0),
            ended(),
        ),
        usage=TOKENS,
        id="m1",
    ),
    "a whole message in a stream": Shape(
        ONE, ["end_turn"], stream=sse(message({"type": "text", "text": "Hello"}), done=False), usage=TOKENS, id="m1",
        terminated=False,
    ),
    "error body": Shape(whole={"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, error=True),
    "error without its object": Shape(whole={"type": "error", "message": "busy"}, error=True),
    "error in the stream": Shape(
        [[("text", "Hel")]],
        [None],
        stream=named(
            BEGIN,
            start(0, SAY),
            grow(0, "text_delta", "Hel"),
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
        ),
        usage={"input_tokens": 1},
        error=True,
        terminated=False,
        id="m1",
    ),
    "no block start": Shape(
        ONE,
        ["end_turn"],
        stream=named(BEGIN, grow(0, "text_delta", "Hello"), ended()),
        usage=TOKENS,
        faults=["undeclared-part"],
        id="m1",
    ),
    "no event names": Shape(
        ONE,
        ["end_turn"],
        stream=sse(BEGIN, *block(0, SAY, ("text_delta", "Hello")), *ended(), done=False),
        usage=TOKENS,
        faults=["event-missing"] * 6,
        id="m1",
    ),
    "two calls under one index": Shape(
        [[("call", "look {}{}")]],
        ["tool_use"],
        stream=named(
            BEGIN,
            block(0, USE, ("input_json_delta", "{}")),
            block(0, {**USE, "id": "toolu_2"}, ("input_json_delta", "{}")),
            ended("tool_use"),
        ),
        usage=TOKENS,
        faults=["restarted-part"],
        id="m1",
    ),
    "empty body": Shape(whole={}),
    "null content": Shape([[]], ["end_turn"], {"type": "message", "content": None, "stop_reason": "end_turn"}),
}  # fmt: skip

SHAPES: dict[str, Mapping[str, Shape]] = {
    "openai.chat": OPENAI,
    "anthropic.messages": ANTHROPIC | SHAPES_CLAUDE_ON_BEDROCK,
    **SHAPES_BEDROCK,
    **SHAPES_COMPLETIONS,
    **SHAPES_DEEPINFRA,
    **SHAPES_RESPONSES,
    **SHAPES_OLLAMA,
    **SHAPES_COHERE,
    **SHAPES_GEMINI,
    **SHAPES_MISTRAL,
    **SHAPES_MCP,
}
__all__ = ["SHAPES", "Part", "Shape", "field"]
