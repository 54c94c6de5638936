from __future__ import annotations

import json
from typing import Any

from tests.build import Call, Talk, User, exchange, schema
from tests.rules.case import Fires, Silent

ASK = (User("Book the small boat."),)
OPENAI = (("openai.chat", False), ("openai.chat", True))
TEXTUAL = (*OPENAI, ("anthropic.messages", True))
STREAMED_ANTHROPIC = (("anthropic.messages", True),)
BOAT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "seats": {"type": "integer", "minimum": 1},
        "size": {"enum": ["small", "large"]},
        "sail": {"type": "boolean"},
        "rate": {"type": "number"},
        "crew": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "options": {"type": "object"},
        "note": {"type": ["string", "null"]},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def book(arguments: Any, declared: Any = BOAT, **more: Any) -> Talk:
    return Talk(ASK, calls=(Call("book", arguments),), tools={"book": declared}, **more)


def one(declared: Any, value: Any) -> Talk:
    """A call with one parameter `x` of the given schema."""
    return book({"x": value}, {"type": "object", "properties": {"x": declared}})


def chat(
    tool: dict[str, Any], call: dict[str, Any], finish: str = "tool_calls", field: str = "tools"
) -> dict[str, Any]:
    body = {"model": "acme-1", "messages": [{"role": "user", "content": "Book."}], field: [tool]}
    reply = {"choices": [{"index": 0, "message": call, "finish_reason": finish}]}
    return exchange("/v1/chat/completions", body, reply)


STRICT = {"type": "function", "function": {"name": "book", "strict": True, "parameters": BOAT}}

FIRES = {
    "number as text": Fires(book({"name": "Elsa", "seats": "4"}), says='seats: "4" is not integer', fix="unsafe"),
    "number in words": Fires(book({"name": "Elsa", "seats": "four"}), says="seats", fix="none"),
    "truth as text": Fires(book({"name": "Elsa", "sail": "true"}), fix="unsafe"),
    "rate as text": Fires(book({"name": "Elsa", "rate": "2.5"}), fix="unsafe"),
    "the word null": Fires(one({"type": ["integer", "null"]}, "null"), says="integer or null", fix="unsafe"),
    "the word null, in anyOf": Fires(one({"anyOf": [{"type": "number"}, {"type": "null"}]}, "null"), fix="unsafe"),
    "an object as text": Fires(book({"name": "Elsa", "options": '{"deck":2}'}), says="options", fix="unsafe"),
    "all of it in a wrapper": Fires(book({"arguments": {"name": "Elsa", "seats": 4}}), fix="unsafe"),
    "a wrapper as text": Fires(book({"input": '{"name": "Elsa"}'}), fix="unsafe"),
    "a whole call in the place of its arguments": Fires(
        book({"name": "book", "parameters": {"title": "Elsa"}}, schema(title="string")), fix="unsafe"
    ),
    "a wrapper around values of wrong types": Fires(book({"args": {"name": "Elsa", "seats": "4"}}), fix="unsafe"),
    "a wrapper around what does not fit": Fires(book({"arguments": {"name": "Elsa", "deck": 4}}), fix="none"),
    "another call in the place of its arguments": Fires(
        book({"name": "cancel", "arguments": {"title": "Elsa"}}, schema(title="string")), fix="none"
    ),
    "an array as text": Fires(book({"name": "Elsa", "crew": '[{"name":"Ida"}]'}), fix="unsafe"),
    "a number for a text": Fires(book({"name": 17}), says="name: 17 is not string", fix="unsafe"),
    "several types at once": Fires(book({"name": "Elsa", "seats": "4", "sail": "false"}), fix="unsafe"),
    "one of two cannot be coerced": Fires(book({"name": "Elsa", "seats": "4", "size": "tiny"}), fix="none"),
    "coerced, and still out of bounds": Fires(book({"name": "Elsa", "seats": "0"}), fix="none"),
    "missing": Fires(book({"seats": 4}), says="name is missing", fix="none"),
    "nothing at all": Fires(book({}), says="name is missing", fix="none"),
    "a parameter that is none": Fires(
        book({"name": "Elsa", "colour": "red"}), says="colour is no parameter", fix="none"
    ),
    "outside the enumeration": Fires(book({"name": "Elsa", "size": "tiny"}), says='"small"'),
    "below the minimum": Fires(book({"name": "Elsa", "seats": 0}), says="seats"),
    "too short": Fires(book({"name": "E"}), says="name"),
    "deep inside": Fires(book({"name": "Elsa", "crew": [{"name": "Ida"}, {"name": 5}]}), says="crew[1].name: 5"),
    "null where null is not allowed": Fires(book({"name": "Elsa", "seats": None}), says="seats: null", fix="none"),
    "an object of the wrong kind": Fires(book({"name": "Elsa", "crew": {"name": "Ida"}}), says="crew"),
    "the pattern": Fires(one({"type": "string", "pattern": "^[A-Z]{2}$"}, "abc"), says="x"),
    "a reference inside": Fires(
        book({"x": {"y": "1"}}, {"$defs": {"n": schema(y="integer")}, "properties": {"x": {"$ref": "#/$defs/n"}}}),
        says="x.y",
        fix="unsafe",
    ),
    "draft 7": Fires(
        book(
            {"x": [1, 2]},
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "properties": {"x": {"type": "array", "items": [{"type": "string"}]}},
            },
        ),
        says="x[0]",
    ),
    "upper-case types": Fires(
        book({"x": "1"}, {"type": "OBJECT", "properties": {"x": {"type": "INTEGER"}}}), says="integer"
    ),
    "nullable does not make it any type": Fires(
        one({"type": "integer", "nullable": True}, "x"), says="integer or null"
    ),
    "many": Fires(book({"a": 1, "b": 2, "seats": "x", "sail": "x", "rate": "x"}), says="more", fix="none"),
    "second call": Fires(
        Talk(
            ASK,
            calls=(Call("book", {"name": "Elsa"}), Call("book", {"name": "Ida", "seats": "2"}, "call_2")),
            tools={"book": BOAT},
        ),
        count=1,
    ),
    "strict, elsewhere": Fires(
        Talk(
            calls=(Call("book", {"boat": 7}),),
            tools={"book": schema(boat="string")},
            request={"strict_tools": True},
        ),
        says="strict",
        forms=(("cohere.chat", False), ("cohere.chat", True)),
    ),
    "strict, and broken all the same": Fires(
        chat(STRICT, {"tool_calls": [{"id": "c", "function": {"name": "book", "arguments": '{"name":"Elsa","x":1}'}}]}),
        says="strict",
        layer="gateway",
        pointer="/choices/0/message/tool_calls/0",
    ),
    "legacy function": Fires(
        chat(
            {"name": "book", "parameters": BOAT},
            {"function_call": {"name": "book", "arguments": '{"seats":1}'}},
            "function_call",
            "functions",
        ),
        pointer="/choices/0/message/function_call",
    ),
    "before the last call, which was cut": Fires(
        Talk(
            ASK,
            calls=(Call("book", {"name": "Elsa", "seats": "4"}), Call("book", '{"na', "call_2")),
            tools={"book": BOAT},
            finish="length",
        ),
        fix="unsafe",
        forms=TEXTUAL,
    ),
    "text for a choice of numbers": Fires(one({"enum": [1, 2]}, "2"), fix="unsafe"),
    "text in a list of numbers": Fires(one({"type": "array", "items": {"type": "number"}}, [1, "2.5"]), fix="unsafe"),
    "text in one of two forms": Fires(
        one({"allOf": [{"properties": {"y": {"type": "integer"}}}, {"required": ["y"]}]}, {"y": "3"}), fix="unsafe"
    ),
    "no deltas at all": Fires(
        Talk(ASK, calls=(Call("book", ""),), tools={"book": BOAT}), says="name", forms=STREAMED_ANTHROPIC
    ),
}

SILENT = {
    "fits": book({"name": "Elsa", "seats": 4, "size": "small", "sail": True, "rate": 2, "note": None}),
    "a declared wrapper": book({"arguments": {"name": "Elsa"}}, schema(arguments="object")),
    "a declared input": book({"input": "Elsa", "name": "x"}, schema(input="string", name="string")),
    "whole number as a float": book({"name": "Elsa", "seats": 4.0}),
    "no additionalProperties said": one({"type": "string"}, "y"),
    "extra parameter, not forbidden": book({"name": "Elsa", "more": 1}, schema(name="string")),
    "tool without a schema": Silent(book({"x": 1}, None), OPENAI),
    "empty schema": book({"x": 1}, {}),
    "empty object schema": book({"x": 1}, {"type": "object", "properties": {}}),
    "OpenAPI: nullable": one({"type": "integer", "nullable": True}, None),
    "OpenAPI: nullable enumeration": one({"type": "string", "enum": ["a"], "nullable": True}, None),
    "OpenAPI: nullable reference": book(
        {"x": None}, {"$defs": {"n": {"type": "object"}}, "properties": {"x": {"$ref": "#/$defs/n", "nullable": True}}}
    ),
    "OpenAPI: boolean bound": one({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, 1),
    "draft 3: required on a parameter": book({}, {"properties": {"x": {"type": "string", "required": True}}}),
    "types of other languages": one({"type": "str"}, "a"),
    "a type that nobody knows": one({"type": "file"}, 5),
    "a parameter called nullable": book({"nullable": False}, {"properties": {"nullable": {"type": "boolean"}}}),
    "a parameter called required": book({"required": "x"}, {"properties": {"required": {"type": "string"}}}),
    "format is an annotation": one({"type": "string", "format": "email"}, "nobody"),
    "two decimals": one({"type": "number", "multipleOf": 0.01}, 19.99),
    "null descriptions": one({"type": "string", "description": None, "title": None}, "a"),
    "a pattern of another language": one({"type": "string", "pattern": "(?<unclosed"}, "a"),
    "a reference to somewhere else": one({"$ref": "https://schemas.test/boat.json"}, 5),
    "a reference to a file": one({"$ref": "file:///etc/hostname"}, 5),
    "a reference to nowhere": one({"$ref": "#/$defs/boat"}, 5),
    "a circle": book({"x": 1}, {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
    "a tree": book(
        {"kids": [{"kids": [{"kids": []}]}]},
        {
            "$defs": {
                "n": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}
            },
            "$ref": "#/$defs/n",
        },
    ),
    "an unknown $schema": book(
        {"x": 1}, {"$schema": "https://schemas.test/9", "properties": {"x": {"type": "integer"}}}
    ),
    "broken schema": one({"type": "string", "minLength": "two"}, "a"),
    "undeclared tool": Talk(ASK, calls=(Call("rent", {"seats": "x"}),), tools={"book": BOAT}),
    "no JSON object is another fault": Silent(book("{'seats': 'x'}"), TEXTUAL),
    "several values are another fault": Silent(book('{"seats":1}{"seats":2}'), TEXTUAL),
    "cut by length": Silent(book('{"seats":', finish="length"), TEXTUAL),
    "closed by the server, cut by length": book({"seats": "4"}, finish="length"),
    "filtered": book({}, finish="filter"),
    "redacted": book({"name": "[redacted:01234567]", "size": "[redacted:01234567]"}),
    "custom tool": chat(
        {"type": "custom", "custom": {"name": "book"}},
        {"tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "book", "input": "{}"}}]},
    ),
    "vendor's own tool": exchange(
        "/v1/messages",
        {
            "model": "acme-1",
            "max_tokens": 64,
            "messages": [{"role": "user", "content": "ls"}],
            "tools": [{"type": "bash_20250124", "name": "bash"}],
        },
        {
            "type": "message",
            "content": [{"type": "tool_use", "id": "t", "name": "bash", "input": {"restart": "yes"}}],
            "stop_reason": "tool_use",
        },
    ),
    "strict and kept": chat(
        STRICT, {"tool_calls": [{"id": "c", "function": {"name": "book", "arguments": json.dumps({"name": "Elsa"})}}]}
    ),
    "text": Talk(ASK, text='{"seats": "x"}', tools={"book": BOAT}),
}
