"""Replies of Gemini's `generateContent`, and what a client makes of each."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.apis.shape import Shape
from tests.apis.talk_google_generate_content import SIGNATURE, USAGE, array, events, reply

ID = "kQ3vaP2wD4"
ONE = [[("text", "Hello")]]
FIRST = {"promptTokenCount": 11, "totalTokenCount": 11}
CALL = {"functionCall": {"name": "look", "args": {"at": "sky"}}}
LOOKS = ("call", 'look {"at":"sky"}')
ERROR = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}


def say(*texts: str) -> list[dict[str, Any]]:
    return [{"text": text} for text in texts]


def think(text: str) -> dict[str, Any]:
    return {"text": text, "thought": True}


def several(*candidates: Any) -> dict[str, Any]:
    return {**reply([]), "candidates": list(candidates)}


def candidate(text: str, index: int | None, reason: str | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {"content": {"parts": say(text), "role": "model"}}
    return made | ({} if index is None else {"index": index}) | ({} if reason is None else {"finishReason": reason})


def piece(**call: Any) -> list[dict[str, Any]]:
    """A part of a call whose arguments come value by value."""
    return [{"functionCall": call}]


def value(path: str, more: bool = False, **given: Any) -> dict[str, Any]:
    return {"jsonPath": path, **given, **({"willContinue": True} if more else {})}


HELLO = (reply(say("Hel"), usageMetadata=FIRST), reply(say("lo")), reply(say(""), "STOP"))
FULL: dict[str, Any] = {"usage": USAGE, "id": ID}

GEMINI: dict[str, Shape] = {
    "text": Shape(ONE, ["STOP"], reply(say("Hello"), "STOP"), events(*HELLO), **FULL),
    "text as an array": Shape(ONE, ["STOP"], stream=array(*HELLO), **FULL),
    "an array in one line": Shape(ONE, ["STOP"], stream=json.dumps(HELLO), **FULL),
    "the reason with the last text": Shape(ONE, ["STOP"], stream=events(HELLO[0], reply(say("lo"), "STOP")), **FULL),
    "the reason in every event": Shape(
        ONE, ["STOP"], stream=events(reply(say("Hel"), "STOP"), reply(say("lo"), "STOP")), **FULL
    ),
    "line feeds alone": Shape(ONE, ["STOP"], stream=events(*HELLO).replace("\r\n", "\n"), **FULL),
    "snake case": Shape(
        [[("reasoning", "Greet."), ("call", 'look {"at":"sky"}')]],
        ["STOP"],
        {
            "candidates": [
                {
                    "content": {
                        "parts": [
                            {"text": "Greet.", "thought": True, "thought_signature": SIGNATURE},
                            {"function_call": {"name": "look", "args": {"at": "sky"}}},
                        ]
                    },
                    "finish_reason": "STOP",
                }
            ],
            "usage_metadata": USAGE,
            "model_version": "gemini-2.5-pro",
            "response_id": ID,
        },
        **FULL,
    ),
    "two texts": Shape([[("text", "Hel"), ("text", "lo")]], ["STOP"], reply(say("Hel", "lo"), "STOP"), **FULL),
    "two texts in an event": Shape(ONE, ["STOP"], stream=events(reply(say("Hel", "lo"), "STOP")), **FULL),
    "thoughts": Shape(
        [[("reasoning", "Greet, then stop."), ("text", "Hello")]],
        ["STOP"],
        reply([think("Greet, then stop."), {"text": "Hello", "thoughtSignature": SIGNATURE}], "STOP"),
        events(reply([think("Greet, ")]), reply([think("then stop.")]), reply([*say("Hello")], "STOP")),
        **FULL,
    ),
    "a signature alone at the end": Shape(
        [[("text", "Hello"), ("sealed", "")]],
        ["STOP"],
        reply([*say("Hello"), {"text": "", "thoughtSignature": SIGNATURE}], "STOP"),
        events(*HELLO[:2], reply([{"text": "", "thoughtSignature": SIGNATURE}], "STOP")),
        **FULL,
    ),
    "a signature in the midst of a text": Shape(
        [[("text", "Hello"), ("sealed", "")]],
        ["STOP"],
        stream=events(HELLO[0], reply([{"thoughtSignature": SIGNATURE}]), reply(say("lo"), "STOP")),
        **FULL,
    ),
    "a call": Shape(
        [[LOOKS]],
        ["STOP"],
        several(
            {
                "content": {"parts": [{**CALL, "thoughtSignature": SIGNATURE}], "role": "model"},
                "finishReason": "STOP",
                "finishMessage": "Called.",
            }
        ),
        events(reply([{**CALL, "thoughtSignature": SIGNATURE}]), reply(say(""), "STOP")),
        **FULL,
    ),
    "a call, as an array": Shape([[LOOKS]], ["STOP"], stream=array(reply([CALL], "STOP")), **FULL),
    "text between calls": Shape(
        [[("text", "Up:"), LOOKS, ("text", "Again:"), ("call", 'look {"at":"sea"}')]],
        ["STOP"],
        reply(
            [*say("Up:"), CALL, *say("Again:"), {"functionCall": {"id": "x1y2z3", "name": "look", "args": {"at": "sea"}}}],
            "STOP",
        ),
        events(
            reply(say("Up")),
            reply([*say(":"), CALL]),
            reply([*say("Again:"), {"functionCall": {"id": "x1y2z3", "name": "look", "args": {"at": "sea"}}}], "STOP"),
        ),
        **FULL,
    ),
    "a call without arguments": Shape(
        [[("call", "now {}")]],
        ["STOP"],
        reply([{"functionCall": {"name": "now"}}], "STOP"),
        events(reply([{"functionCall": {"name": "now"}}], "STOP")),
        **FULL,
    ),
    "arguments value by value": Shape(
        [[("call", 'book {"to":"New York","at":{"hour":9,"notes":["late","\\"no\\""]},"sure":true,"why":null}'), LOOKS]],
        ["STOP"],
        stream=events(
            reply(piece(name="book", willContinue=True)),
            reply(piece(partialArgs=[value("$.to", True, stringValue="New ")], willContinue=True)),
            reply(piece(partialArgs=[value("$.to", stringValue="York")], willContinue=True)),
            reply(
                piece(
                    partialArgs=[value("$.at.hour", numberValue=9), value("$.at.notes[0]", stringValue="late")],
                    willContinue=True,
                )
            ),
            reply(piece(partialArgs=[value("$.at.notes[1]", stringValue='"no"')], willContinue=True)),
            reply(
                piece(
                    partialArgs=[value("$.sure", boolValue=True), value("$.why", nullValue="NULL_VALUE")],
                    willContinue=True,
                )
            ),
            reply([*piece(), CALL], "STOP"),
        ),
        **FULL,
    ),
    "code that the provider runs": Shape(
        [[("hosted", "code_execution"), ("hosted", "code_execution"), ("text", "It is 42.")]],
        ["STOP"],
        reply(
            [
                {"executableCode": {"language": "PYTHON", "code": "print(6 * 7)"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}},
                *say("It is 42."),
            ],
            "STOP",
        ),
        events(
            reply([{"executableCode": {"language": "PYTHON", "code": "print(6 * 7)"}}]),
            reply([{"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}}, *say("It is ")]),
            reply(say("42."), "STOP"),
        ),
        **FULL,
    ),
    "a search that the provider runs": Shape(
        [[("hosted", "google_search_web"), ("hosted", "google_search_web"), *ONE[0], ("hosted", "groundingMetadata")]],
        ["STOP"],
        several(
            {
                "content": {
                    "parts": [
                        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["a"]}, "id": "q1"}},
                        {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"hits": 2}, "id": "q1"}},
                        *say("Hello"),
                    ],
                    "role": "model",
                },
                "groundingMetadata": {"webSearchQueries": ["a"]},
                "finishReason": "STOP",
            }
        ),
        **FULL,
    ),
    "an image": Shape(
        [[("opaque", "inlineData")]],
        ["STOP"],
        reply([{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}], "STOP"),
        **FULL,
    ),
    "a part of tomorrow": Shape([[("opaque", "hologram"), *ONE[0]]], ["STOP"],
                                reply([{"hologram": {"size": 3}}, *say("Hello")], "STOP"), **FULL),
    "two candidates": Shape(
        [[("text", "Hello")], [("text", "Hi")]],
        ["STOP", "MAX_TOKENS"],
        several(candidate("Hello", None, "STOP"), candidate("Hi", 1, "MAX_TOKENS")),
        events(
            several(candidate("Hel", 0), candidate("H", 1)),
            several(candidate("i", 1, "MAX_TOKENS")),
            several(candidate("lo", 0, "STOP")),
        ),
        **FULL,
    ),
    "enums as numbers": Shape(
        ONE, ["MAX_TOKENS"], several({"content": {"parts": say("Hello")}, "finishReason": 2}), **FULL
    ),
    "an unspecified reason": Shape(ONE, [None], reply(say("Hello"), "FINISH_REASON_UNSPECIFIED"), **FULL),
    "nothing said": Shape([[]], ["STOP"], several({"content": {}, "finishReason": "STOP", "index": 0}),
                          events(several({"content": {}, "finishReason": "STOP", "index": 0})), **FULL),
    "a call that was malformed": Shape(
        [[]],
        ["MALFORMED_FUNCTION_CALL"],
        several({"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed function call: look(at=sky"}),
        **FULL,
    ),
    "stopped for safety": Shape(
        [[("text", "Hel")]],
        ["SAFETY"],
        stream=events(
            HELLO[0],
            several({"finishReason": "SAFETY", "index": 0, "safetyRatings": [{"category": "X", "blocked": True}]}),
        ),
        **FULL,
    ),
    "a prompt that is refused": Shape(
        [[("refusal", "PROHIBITED_CONTENT")]],
        ["PROHIBITED_CONTENT"],
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": FIRST, "responseId": ID},
        events({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": FIRST, "responseId": ID}),
        usage=FIRST,
        id=ID,
    ),
    "ratings of the prompt": Shape(
        ONE, ["STOP"], {**reply(say("Hello"), "STOP"), "promptFeedback": {"safetyRatings": []}}, **FULL
    ),
    "error body": Shape(whole=ERROR, error=True),
    "error body of a stream": Shape(whole=[ERROR], error=True),
    "error in the stream": Shape(
        [[("text", "Hel")]], [None], stream=events(HELLO[0], ERROR), error=True, terminated=False, usage=FIRST, id=ID
    ),
    "error in the stream, not framed": Shape(
        [[("text", "Hel")]],
        [None],
        stream=events(HELLO[0]) + json.dumps(ERROR, indent=1),
        error=True,
        terminated=False,
        usage=FIRST,
        id=ID,
        faults=["unknown-field"] * 7,
    ),
    "error in the array": Shape(
        [[("text", "Hel")]], [None], stream=array(HELLO[0], ERROR), error=True, usage=FIRST, id=ID
    ),
    "cut": Shape([[("text", "Hel")]], [None], stream=events(HELLO[0]), terminated=False, usage=FIRST, id=ID),
    "a cut array": Shape(
        [[("text", "Hel")]], [None], stream=array(HELLO[0]).rstrip("\n]"), terminated=False, usage=FIRST, id=ID
    ),
    "an array cut in an element": Shape(
        [[("text", "Hel")]],
        [None],
        stream=array(*HELLO)[: len(array(HELLO[0])) + 20],
        terminated=False,
        usage=FIRST,
        id=ID,
        faults=["cut-event", "broken-json"],
    ),
    "an array without its end": Shape(
        ONE, ["STOP"], stream=array(*HELLO).rstrip("\n]"), terminated=False, faults=["missing-end"], **FULL
    ),
    "empty body": Shape(whole={}),
    "wrong types": Shape(whole={"candidates": [{"content": {"parts": [None, 3, {"text": 4}, {"text": None}]}}]}),
}  # fmt: skip


def wrapped(shape: Shape) -> Shape:
    """The same as Code Assist has it; events of a stream within others."""
    whole = {"response": shape.whole, "traceId": "t1"} if shape.whole is not None else None
    stream = shape.stream
    if isinstance(stream, str):
        lines = (line.removeprefix("data: ") for line in stream.split("\r\n"))
        stream = events(*({"response": json.loads(line), "traceId": "t1"} for line in lines if line))
    return replace(shape, whole=whole, stream=stream)


def _is_wrapped(shape: Shape) -> bool:
    """Return True if Code Assist gives such a reply: it has events, and no errors in their place."""
    if shape.error or shape.faults or (shape.whole in ({}, None) and shape.stream is None):
        return False
    text = shape.stream
    return text is None or (isinstance(text, str) and text.startswith("data: {") and "\r\n" in text)


WRAPPED = {
    f"{name}, wrapped": wrapped(shape)
    for name, shape in GEMINI.items()
    if _is_wrapped(shape) and (shape.whole is None or "candidates" in shape.whole) and name != "wrong types"
}
SHAPES_GEMINI = {"google.generate_content": {**GEMINI, **WRAPPED}}
