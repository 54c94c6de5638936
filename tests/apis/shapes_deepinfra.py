"""Replies of DeepInfra's own inference API, and what a client makes of each."""

from __future__ import annotations

from tests.apis.shape import Shape
from tests.apis.talk_deepinfra_inference import token, whole
from tests.build import sse

ONE = [[("text", "Hello")]]
COUNTS = {"num_tokens": 7, "num_input_tokens": 11, "tokens_input": 11, "tokens_generated": 7}
SPENT = {"num_input_tokens": 11, "num_output_tokens": 2}

DEEPINFRA: dict[str, Shape] = {
    "text": Shape(ONE, [None], whole("Hello", request_id="r1"), usage=COUNTS, id="r1"),
    "text, streamed": Shape(
        ONE, [None], stream=sse(token("Hel"), token("lo"), token("", generated_text="Hello", **SPENT)), usage=SPENT
    ),
    "several results": Shape([[("text", "Hello")], [("text", "Bye")]], [None, None], whole("Hello", "Bye"), usage=COUNTS),
    "the reason told": Shape(
        ONE, ["length"], stream=sse(token("Hel"), token("lo", details={"finish_reason": "length"}))
    ),
    "the reason told in a body": Shape(
        ONE, ["stop"], {"results": [{"generated_text": "Hello", "details": {"finish_reason": "stop"}}]}
    ),
    "all in one event": Shape(ONE, [None], stream=sse(token("", generated_text="Hello"))),
    "a special token at the end": Shape(
        [[("text", "Hello<|im_end|>")]],
        [None],
        stream=sse(token("Hello"), token("", token={"id": 2, "text": "<|im_end|>", "special": True})),
    ),
    "nothing": Shape([[]], [None], whole(""), usage=COUNTS),
    "nothing, streamed": Shape([[]], [None], stream=sse(token(""))),
    "cut off": Shape([[("text", "Hel")]], [None], stream=sse(token("Hel"), done=False), terminated=False),
    "refused": Shape(whole={"detail": {"error": "the model is busy"}}, error=True),
    "failed": Shape(
        [[]],
        [None],
        {"results": [{"generated_text": ""}], "inference_status": {"status": "failed", "runtime_ms": 3}},
        error=True,
    ),
    "error in the stream": Shape(
        [[("text", "Hel")]], [None], stream=sse(token("Hel"), {"error": "no capacity"}), error=True
    ),
    "empty body": Shape(whole={}),
}  # fmt: skip

SHAPES_DEEPINFRA = {"deepinfra.inference": DEEPINFRA}
