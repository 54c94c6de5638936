"""Replies of Ollama's own API, and what a client makes of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.apis.shape import Shape

MODEL = {"model": "acme:4b", "created_at": "2026-01-05T10:00:00.5Z"}
END: dict[str, Any] = {"done": True, "total_duration": 81, "prompt_eval_count": 9, "eval_count": 4}
COUNTS = {"prompt_eval_count": 9, "eval_count": 4}


def lines(*documents: Any) -> str:
    return "".join(f"{json.dumps(document, ensure_ascii=False)}\n" for document in documents)


def says(content: str = "", **more: Any) -> dict[str, Any]:
    """A line with a piece of a message."""
    return {**MODEL, "message": {"role": "assistant", "content": content, **more}, "done": False}


def over(reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    """The last line."""
    why = {} if reason is None else {"done_reason": reason}
    return {**MODEL, "message": {"role": "assistant", "content": "", **message}, **why, **END}


def call(name: str, arguments: Any, index: int | None = None, id_: str | None = None) -> dict[str, Any]:
    number = {} if index is None else {"index": index}
    known = {} if id_ is None else {"id": id_}
    return {**known, "function": {**number, "name": name, "arguments": arguments}}


def whole(reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    return over(reason, **message)


ONE = [[("text", "Hello")]]
TWO = [[("call", 'look {"at":"x"}'), ("call", "ask {}")]]

CHAT: dict[str, Shape] = {
    "text": Shape(
        ONE, ["stop"], whole(content="Hello"), lines(says("Hel"), says("lo"), over()), usage=COUNTS
    ),
    "thinking": Shape(
        [[("reasoning", "Greet."), ("text", "Hello")]],
        ["stop"],
        whole(content="Hello", thinking="Greet."),
        lines(says(thinking="Gre"), says(thinking="et."), says("Hello"), over()),
        usage=COUNTS,
    ),
    "thinking and text in one line": Shape(
        [[("reasoning", "Greet."), ("text", "Hello")]],
        ["stop"],
        stream=lines(says("Hel", thinking="Greet."), says("lo"), over()),
        usage=COUNTS,
    ),
    "one call": Shape(
        [[("call", 'look {"at":"x"}')]],
        ["stop"],
        whole(tool_calls=[call("look", {"at": "x"})]),
        lines(says(tool_calls=[call("look", {"at": "x"})]), over()),
        usage=COUNTS,
    ),
    "calls, a line each": Shape(
        TWO,
        ["stop"],
        whole(tool_calls=[call("look", {"at": "x"}, 0), call("ask", {}, 1)]),
        lines(says(tool_calls=[call("look", {"at": "x"}, 0)]), says(tool_calls=[call("ask", {}, 1)]), over()),
        usage=COUNTS,
    ),
    "calls in one line, with ids": Shape(
        TWO,
        ["stop"],
        stream=lines(
            says(tool_calls=[call("look", {"at": "x"}, 0, "call_a1"), call("ask", {}, 1, "call_b2")]), over()
        ),
        usage=COUNTS,
    ),
    "calls under one number": Shape(
        TWO,
        ["stop"],
        stream=lines(says(tool_calls=[call("look", {"at": "x"}, 0)]), says(tool_calls=[call("ask", {}, 0)]), over()),
        usage=COUNTS,
    ),
    "arguments as text": Shape(
        [[("call", 'look {"at": "x"}')]],
        ["stop"],
        whole(tool_calls=[call("look", '{"at": "x"}')]),
        lines(says(tool_calls=[call("look", '{"at": "x"}')]), over()),
        usage=COUNTS,
    ),
    "text, then a call": Shape(
        [[("text", "Hello"), ("call", "ask {}")]],
        ["stop"],
        whole(content="Hello", tool_calls=[call("ask", {})]),
        lines(says("Hello"), says(tool_calls=[call("ask", {})]), over()),
        usage=COUNTS,
    ),
    "text in the last line": Shape(ONE, ["stop"], stream=lines(says("Hel"), over(content="lo")), usage=COUNTS),
    "cut by length": Shape(
        [[("text", "Hel")]], ["length"], whole("length", content="Hel"), lines(says("Hel"), over("length")), usage=COUNTS
    ),
    "no reason, as early servers": Shape(
        ONE, [None], whole(None, content="Hello"), lines(says("Hello"), over(None)), usage=COUNTS
    ),
    "a model that was loaded": Shape(
        [[]], ["load"], {**MODEL, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "load"}
    ),
    "error": Shape(whole={"error": "model 'acme' not found"}, error=True),
    "error in a stream": Shape(
        [[("text", "Hel")]],
        [None],
        stream=lines(says("Hel"), {"error": "an error was encountered while running the model"}),
        error=True,
        terminated=False,
    ),
    "cut off": Shape(
        [[("text", "Hel")]],
        [None],
        stream=lines(says("Hel")) + lines(says("lo"))[:40],
        faults=["cut-event", "broken-json"],
        terminated=False,
    ),
    "no line feed at the end": Shape(
        ONE, ["stop"], stream=lines(says("Hello"), over()).rstrip("\n"), usage=COUNTS
    ),
    "CRLF and blank lines": Shape(
        ONE, ["stop"], stream=lines(says("Hel"), says("lo"), over()).replace("\n", "\r\n\r\n"), usage=COUNTS
    ),
    "lines after the end": Shape(
        ONE, ["stop"], stream=lines(says("Hello"), over(), says("!")), usage=COUNTS, faults=["after-end"]
    ),
    "pictures": Shape(
        [[("text", "Hello"), ("opaque", "images")]],
        ["stop"],
        whole(content="Hello", images=["aGk="]),
        lines(says("Hello"), says(images=["aGk="]), over()),
        usage=COUNTS,
    ),
}  # fmt: skip


def wrote(response: str = "", **more: Any) -> dict[str, Any]:
    return {**MODEL, "response": response, "done": False, **more}


def wrote_all(response: str = "", reason: str = "stop", **more: Any) -> dict[str, Any]:
    return {**MODEL, "response": response, **more, **END, "done_reason": reason, "context": [1, 2, 3]}


GENERATE: dict[str, Shape] = {
    "text": Shape(
        ONE, ["stop"], wrote_all("Hello"), lines(wrote("Hel"), wrote("lo"), wrote_all()), usage=COUNTS
    ),
    "thinking": Shape(
        [[("reasoning", "Greet."), ("text", "Hello")]],
        ["stop"],
        wrote_all("Hello", thinking="Greet."),
        lines(wrote(thinking="Gre"), wrote(thinking="et."), wrote("Hello"), wrote_all()),
        usage=COUNTS,
    ),
    "markup of a raw prompt": Shape(
        [[("text", "<think>Greet.</think>Hello<|im_end|>")]],
        ["stop"],
        wrote_all("<think>Greet.</think>Hello<|im_end|>"),
        lines(wrote("<think>Greet."), wrote("</think>Hello<|im_end|>"), wrote_all()),
        usage=COUNTS,
    ),
    "JSON": Shape(
        [[("text", '{"n":\n 1}')]],
        ["stop"],
        wrote_all('{"n":\n 1}'),
        lines(wrote('{"n"'), wrote(":\n 1}"), wrote_all()),
        usage=COUNTS,
    ),
    "cut by length": Shape(
        [[("text", "Hel")]], ["length"], wrote_all("Hel", "length"), lines(wrote("Hel"), wrote_all("", "length")),
        usage=COUNTS,
    ),
    "nothing": Shape([[]], ["stop"], wrote_all(""), lines(wrote(""), wrote_all("")), usage=COUNTS),
    "a model that was loaded": Shape([[]], ["load"], {**MODEL, "response": "", "done": True, "done_reason": "load"}),
    "error": Shape(whole={"error": "model requires more system memory"}, error=True),
    "error in a stream": Shape(
        [[("text", "Hel")]], [None], stream=lines(wrote("Hel"), {"error": "busy"}), error=True, terminated=False
    ),
    "not ended": Shape([[("text", "Hello")]], [None], stream=lines(wrote("Hel"), wrote("lo")), terminated=False),
}  # fmt: skip

SHAPES_OLLAMA: Mapping[str, Mapping[str, Shape]] = {"ollama.chat": CHAT, "ollama.generate": GENERATE}
