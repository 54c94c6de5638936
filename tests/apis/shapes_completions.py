"""Replies of OpenAI's raw completions, and what a client makes of each."""

from __future__ import annotations

from typing import Any

from tests.apis.shape import Shape
from tests.apis.talk_openai_completions import USAGE, completion
from tests.build import sse

ONE = [[("text", "Hello")]]
HEAD = {"id": "cmpl-7f", "object": "text_completion", "model": "acme-1"}


def choice(text: str | None, finish: str | None = None, index: int | None = 0, **more: Any) -> dict[str, Any]:
    made = {"text": text, "finish_reason": finish, **more}
    return made if index is None else {"index": index, **made}


def choices(*given: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**HEAD, "choices": list(given), **more}


COMPLETIONS: dict[str, Shape] = {
    "text": Shape(
        ONE,
        ["stop"],
        completion("Hello", "stop", usage=USAGE),
        sse(completion("Hel"), completion("lo"), completion("", "stop"), {**HEAD, "choices": [], "usage": USAGE}),
        usage=USAGE,
        id="cmpl-7f",
    ),
    "reason with the last text": Shape(
        ONE, ["length"], stream=sse(completion("Hel"), completion("lo", "length")), id="cmpl-7f"
    ),
    "usage in every event": Shape(
        ONE,
        ["stop"],
        stream=sse(completion("Hello", usage=None), completion("", "stop", usage=USAGE)),
        usage=USAGE,
        id="cmpl-7f",
    ),
    "two candidates": Shape(
        [[("text", "Hello")], [("text", "Good day")]],
        ["stop", "length"],
        choices(choice("Hello", "stop"), choice("Good day", "length", 1)),
        sse(
            choices(choice("Hel")),
            choices(choice("Good ", index=1)),
            choices(choice("lo", "stop"), choice("day", "length", 1)),
        ),
        id="cmpl-7f",
    ),
    "no index": Shape(
        [[("text", "Hello")], [("text", "Bye")]],
        [None, None],
        choices(choice("Hello", None, None), choice("Bye", None, None)),
        id="cmpl-7f",
    ),
    "echo": Shape([[("text", "Say hello: Hello")]], ["stop"], completion("Say hello: Hello", "stop"), id="cmpl-7f"),
    "log probabilities": Shape(
        ONE,
        ["stop"],
        choices(choice("Hello", "stop", logprobs={"tokens": ["Hello"], "token_logprobs": [-0.1], "text_offset": [9]})),
        sse(choices(choice("Hello", "stop", logprobs={"tokens": ["Hello"], "token_logprobs": [-0.1]}))),
        id="cmpl-7f",
    ),
    "reasoning beside the text": Shape(
        [[("reasoning", "Greet."), ("text", "Hello")]],
        ["stop"],
        choices(choice("Hello", "stop", reasoning="Greet.")),
        sse(choices(choice("", reasoning="Gre")), choices(choice("", reasoning="et.")), choices(choice("Hello", "stop"))),
        id="cmpl-7f",
    ),
    "native markup": Shape(
        [[("text", '<tool_call>\n{"name": "look"}\n</tool_call>')]],
        ["stop"],
        completion('<tool_call>\n{"name": "look"}\n</tool_call>', "stop"),
        sse(completion("<tool_call>\n"), completion('{"name": "look"}\n</tool_call>', "stop")),
        id="cmpl-7f",
    ),
    "nothing": Shape([[]], ["stop"], completion("", "stop"), sse(completion("", "stop")), id="cmpl-7f"),
    "null text": Shape([[]], ["stop"], choices(choice(None, "stop")), id="cmpl-7f"),
    "waiting lines": Shape(
        ONE, ["stop"], stream=": waiting\n\n" + sse(completion("Hello")) .replace("data: [DONE]\n\n", "")
        + ": waiting\n\n" + sse(completion("", "stop")), id="cmpl-7f"
    ),
    "no end": Shape(
        ONE,
        ["stop"],
        stream=sse(completion("Hello", "stop"), done=False),
        faults=["missing-end"],
        terminated=False,
        id="cmpl-7f",
    ),
    "text after the end": Shape(
        ONE,
        ["stop"],
        stream=sse(completion("Hello", "stop")) + sse(completion(" again"), done=False),
        faults=["after-end"],
        id="cmpl-7f",
    ),
    "error body": Shape(whole={"error": {"message": "no such model", "type": "invalid_request_error"}}, error=True),
    "error in the stream": Shape(
        [[("text", "Hel")]],
        [None],
        stream=sse(completion("Hel"), {"error": {"message": "out of memory", "code": 500}}, done=False),
        error=True,
        terminated=False,
        id="cmpl-7f",
    ),
    "empty body": Shape(whole={}),
}  # fmt: skip

SHAPES_COMPLETIONS = {"openai.completions": COMPLETIONS}
