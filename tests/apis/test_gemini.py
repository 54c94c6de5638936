"""Gemini's `generateContent`: requests, what only this API has in its replies, and what is written of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.apis.shapes_gemini import GEMINI, HELLO, say
from tests.apis.talk_google_generate_content import array, events, reply
from tests.apis.test_contract import body_of, understood
from tests.apis.test_gemini_writer import rewritten, shouting, silent, untouched
from tests.build import Call, Result, Talk, User, exchange, read, schema
from tests.cuts import split
from tests.fixes.drive import SAFE, run
from wirelint.apis import gemini, recognise, recognise_reply
from wirelint.apis.gemini_request import read_request_at
from wirelint.apis.gemini_schema import camel, json_schema, snake
from wirelint.events import Done
from wirelint.model import HostedCall, Json, Opaque, Reasoning, Text, ToolChoice, ToolResult
from wirelint.wire import Sniffer
from wirelint.wire.json_array import looks_like_array

# --- whose traffic it is ---------------------------------------------------------------------------------------------

ASK: dict[str, Json] = {"contents": [{"parts": [{"text": "Hi"}]}]}
PATHS = {
    "/v1beta/models/gemini-2.5-flash:generateContent": True,
    "/v1beta/models/gemini-2.5-flash:streamGenerateContent": True,
    "/v1/projects/p/locations/global/publishers/google/models/gemini-2.5-pro:generateContent": True,
    "/v1beta/tunedModels/mine:generateContent": True,
    "/gateway/chat": True,
    "/v1beta/models/gemini-2.5-flash:countTokens": False,
    "/v1beta/models/gemini-2.5-flash:embedContent": False,
    "/v1beta/models/gemini-2.5-flash:batchGenerateContent": False,
    "/v1beta/cachedContents": False,
}


@pytest.mark.parametrize(("path", "ours"), PATHS.items(), ids=PATHS)
def test_which_requests_are_claimed(path: str, ours: bool) -> None:
    assert (recognise("POST", path, {}, ASK) is gemini.API) == ours


@pytest.mark.parametrize(
    "body",
    [{"contents": "Hi"}, {"contents": []}, {"contents": [{"text": "Hi"}]}, {**ASK, "messages": []}, {}],
    ids=["a text", "nothing", "no parts", "messages too", "empty"],
)
def test_other_bodies_on_other_paths_are_not(body: dict[str, Json]) -> None:
    assert not gemini.claims("/anything", {}, body)


def test_a_body_within_a_body_is_read() -> None:
    """As Code Assist has it, at the same methods."""
    body: dict[str, Json] = {"model": "gemini-2.5-pro", "project": "p", "request": ASK}
    assert recognise("POST", "/v1internal:streamGenerateContent", {}, body) is gemini.API
    assert recognise("POST", "/v1internal:streamGenerateContent", {}, {"request": {"x": 1}}) is None
    assert recognise_reply({"response": reply(say("Hi"), "STOP"), "traceId": "t"}) is gemini.API
    assert recognise("POST", "/v1internal:streamGenerateContent", {}, {"messages": [{"role": "user"}]}) is gemini.API


def test_replies_are_known_by_their_shape() -> None:
    assert recognise_reply(reply(say("Hi"), "STOP")) is gemini.API
    assert recognise_reply({"promptFeedback": {}, "responseId": "x"}) is gemini.API
    assert not gemini.claims_reply({"candidates": [{"name": "Ada"}]})
    assert not gemini.claims_reply({"error": {"message": "no"}})


def test_a_stream_whose_request_is_lost_is_known_as_an_array_too() -> None:
    lost = exchange("", {}, array(*HELLO))
    lost["request"] = {"url": "", "headers": {}, "body": None}
    assert read(lost).api == "google.generate_content"


# --- requests --------------------------------------------------------------------------------------------------------

MODELS = {
    "/v1beta/models/gemini-2.5-flash:generateContent": ("gemini-2.5-flash", False),
    "/v1beta/models/gemini-2.5-flash:streamGenerateContent": ("gemini-2.5-flash", True),
    "/v1/projects/p/locations/l/publishers/google/models/gemini-3-pro:streamGenerateContent": ("gemini-3-pro", True),
    "/v1beta/tunedModels/my%20own:generateContent": ("my own", False),
    "/anything": ("gemini-2.0", False),
    "": ("gemini-2.0", False),
}


@pytest.mark.parametrize(("path", "expected"), MODELS.items(), ids=MODELS)
def test_model_and_stream_stand_in_the_path(path: str, expected: tuple[str, bool]) -> None:
    request = read_request_at({**ASK, "model": "models/gemini-2.0"}, path)
    assert (request.model, request.stream) == expected


@pytest.mark.parametrize("stream", [False, True])
def test_the_session_hands_the_path_over(stream: bool) -> None:
    exchange = read(Talk(model="gemini-2.5-pro").record("google.generate_content", stream))
    assert exchange.request is not None
    assert (exchange.request.model, exchange.request.stream) == ("gemini-2.5-pro", stream)


# (a part, what is read of it)
PARTS: dict[str, tuple[Any, list[Any]]] = {
    "text": ({"text": "Hi"}, [Text("Hi", "/contents/0/parts/0/text")]),
    "no text": ({"text": ""}, []),
    "thought": ({"text": "Hm", "thought": True}, [Reasoning("Hm", "/contents/0/parts/0/text")]),
    "signature": ({"text": "", "thoughtSignature": "x"}, [Reasoning("", "/contents/0/parts/0", opaque=True)]),
    "image": ({"inline_data": {"mime_type": "image/png"}}, [Opaque("inlineData", "/contents/0/parts/0/inline_data")]),
    "part of a film": (
        {"fileData": {"fileUri": "x"}, "videoMetadata": {"fps": 1}},
        [Opaque("fileData", "/contents/0/parts/0/fileData")],
    ),
    "code": (
        {"executableCode": {"code": "1", "id": "c"}},
        [HostedCall("c", "code_execution", "/contents/0/parts/0/executableCode")],
    ),
    "result": (
        {"functionResponse": {"id": "7", "name": "look", "response": {"output": "blue"}}},
        [ToolResult("7", "blue", "/contents/0/parts/0/functionResponse", "look")],
    ),
    "result in snake case, without id": (
        {"function_response": {"name": "look", "response": {"result": "blue"}}},
        [ToolResult(None, "blue", "/contents/0/parts/0/function_response", "look")],
    ),
    "result that is an error": (
        {"functionResponse": {"name": "look", "response": {"error": "no sky"}}},
        [ToolResult(None, "no sky", "/contents/0/parts/0/functionResponse", "look", True)],
    ),
    "result of several values": (
        {"functionResponse": {"name": "look", "response": {"hue": "blue", "stars": 0}}},
        [ToolResult(None, '{"hue":"blue","stars":0}', "/contents/0/parts/0/functionResponse", "look")],
    ),
    "result with a number": (
        {"functionResponse": {"name": "look", "response": {"output": 3}}},
        [ToolResult(None, "3", "/contents/0/parts/0/functionResponse", "look")],
    ),
    "result of an MCP server": (
        {
            "functionResponse": {
                "name": "look",
                "response": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "isError": False},
            }
        },
        [ToolResult(None, "a\nb", "/contents/0/parts/0/functionResponse", "look", False)],
    ),
    "result with a picture": (
        {"functionResponse": {"name": "look", "response": {}, "parts": [{"inlineData": {"data": ""}}]}},
        [
            ToolResult(None, "{}", "/contents/0/parts/0/functionResponse", "look"),
            Opaque("inlineData", "/contents/0/parts/0/functionResponse/parts/0"),
        ],
    ),
    "unknown": ({"hologram": {}}, [Opaque("hologram", "/contents/0/parts/0/hologram")]),
    "empty": ({}, []),
}  # fmt: skip


@pytest.mark.parametrize(("part", "expected"), PARTS.values(), ids=PARTS)
def test_parts_of_a_request(part: Any, expected: list[Any]) -> None:
    (message,) = gemini.read_request({"contents": [{"role": "user", "parts": [part]}]}).messages
    assert list(message.parts) == expected


def test_calls_of_a_request() -> None:
    called: Json = {"functionCall": {"id": "7", "name": "look", "args": {"at": "sky"}}, "thoughtSignature": "x"}
    bare: Json = {"function_call": {"name": "now"}}
    (message,) = gemini.read_request({"contents": [{"role": "model", "parts": [called, bare]}]}).messages
    assert message.role == "assistant"
    assert [(call.id, call.name, call.arguments.mapping, call.pointer) for call in message.calls] == [
        ("7", "look", {"at": "sky"}, "/contents/0/parts/0/functionCall"),
        (None, "now", {}, "/contents/0/parts/1/function_call"),
    ]


def test_a_history_with_a_system_instruction() -> None:
    history = (User("When?"), Result(None, "noon"))
    talk = Talk(history=history, system="Be brief.", text="At noon.", calls=[Call("now", {}, None)])
    request = read(talk.record("google.generate_content", False)).request
    assert request is not None
    assert [(message.role, message.pointer, message.speaks) for message in request.messages] == [
        ("system", "/systemInstruction", False),
        ("user", "/contents/0", True),
        ("user", "/contents/1", False),
    ]


@pytest.mark.parametrize(
    ("body", "text", "pointer"),
    [
        ({"systemInstruction": {"parts": [{"text": "Brief."}]}}, "Brief.", "/systemInstruction/parts/0/text"),
        ({"system_instruction": {"parts": {"text": "Brief."}}}, "Brief.", "/system_instruction/parts/text"),
        ({"systemInstruction": "Brief."}, "Brief.", "/systemInstruction"),
        ({"contents": {"role": "user", "parts": {"text": "Hi"}}}, "Hi", "/contents/parts/text"),
    ],
    ids=["list", "object, snake case", "text", "contents as an object"],
)
def test_objects_in_the_place_of_lists(body: dict[str, Json], text: str, pointer: str) -> None:
    (message,) = gemini.read_request(body).messages
    assert [(part.text, part.pointer) for part in message.parts if isinstance(part, Text)] == [(text, pointer)]


LOOK: dict[str, Json] = {"type": "object", "properties": {"at": {"type": "string"}}}
GOOGLES = {"type": "OBJECT", "properties": {"at": {"type": "STRING"}}}
# (tools, (name, schema, hosted) of each, whether all are known)
TOOLS: dict[str, tuple[Any, list[Any], bool]] = {
    "schema": (
        [{"functionDeclarations": [{"name": "look", "parameters": GOOGLES}]}],
        [("look", LOOK, False)],
        True,
    ),
    "JSON schema": (
        [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": LOOK}]}], [("look", LOOK, False)], True,
    ),
    "snake case": (
        [{"function_declarations": [{"name": "look", "parameters_json_schema": LOOK}]}], [("look", LOOK, False)], True,
    ),
    "an object": ({"function_declarations": {"name": "look", "parameters": {}}}, [("look", None, False)], True),
    "search": (
        [{"googleSearch": {}}, {"code_execution": {}}],
        [("googleSearch", None, True), ("codeExecution", None, True)],
        True,
    ),
    "screen": ([{"computerUse": {"environment": "X"}}], [("computerUse", None, False)], False),
    "nothing": ([{}], [], True),
}  # fmt: skip


@pytest.mark.parametrize(("tools", "expected", "known"), TOOLS.values(), ids=TOOLS)
def test_tools(tools: Any, expected: list[Any], known: bool) -> None:
    request = gemini.read_request({"tools": tools})
    assert [(tool.name, tool.schema, tool.hosted) for tool in request.tools] == expected
    assert request.tools_known == known
    assert request.hosted == any(hosted for _, _, hosted in expected)


def test_a_cache_may_hold_tools() -> None:
    assert not gemini.read_request({"cachedContent": "cachedContents/1"}).tools_known


CHOICES: dict[str, tuple[Any, ToolChoice]] = {
    "auto": ({"mode": "AUTO"}, ToolChoice("auto")),
    "validated": ({"mode": "VALIDATED"}, ToolChoice("auto")),
    "validated, of two": (
        {"mode": "VALIDATED", "allowedFunctionNames": ["a", "b"]},
        ToolChoice("auto", None, ("a", "b")),
    ),
    "any": ({"mode": "ANY"}, ToolChoice("required")),
    "any of two": ({"mode": "ANY", "allowedFunctionNames": ["a", "b"]}, ToolChoice("required", None, ("a", "b"))),
    "one": ({"mode": "ANY", "allowed_function_names": ["a"]}, ToolChoice("named", "a")),
    "none": ({"mode": "NONE"}, ToolChoice("none")),
    "a number": ({"mode": 2}, ToolChoice("required")),
    "unknown": ({"mode": ["?"]}, ToolChoice("auto")),
}


@pytest.mark.parametrize(("config", "expected"), CHOICES.values(), ids=CHOICES)
def test_tool_choice(config: Any, expected: ToolChoice) -> None:
    assert gemini.read_request({"toolConfig": {"functionCallingConfig": config}}).tool_choice == expected


SCHEMAS: dict[str, tuple[Any, Any]] = {
    "types": ({"type": "ARRAY", "items": {"type": "INTEGER"}}, {"type": "array", "items": {"type": "integer"}}),
    "numbers": (
        {"type": 6, "properties": {"type": {"type": 1}}},
        {"type": "object", "properties": {"type": {"type": "string"}}},
    ),
    "nullable": ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
    "nullable choice": (
        {"type": "STRING", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]},
    ),
    "nullable alternatives": (
        {"any_of": [{"type": "STRING"}], "nullable": True},
        {"anyOf": [{"anyOf": [{"type": "string"}]}, {"type": "null"}]},
    ),
    "counts as texts": ({"type": "ARRAY", "min_items": "1"}, {"type": "array", "minItems": 1}),
    "order of properties": ({"type": "OBJECT", "propertyOrdering": ["b", "a"]}, {"type": "object"}),
    "names are names": (
        {"properties": {"min_items": {"type": "STRING"}}},
        {"properties": {"min_items": {"type": "string"}}},
    ),
    "JSON schema already": ({"type": "object", "required": ["a"]}, {"type": "object", "required": ["a"]}),
    "no type": ({"type": "TYPE_UNSPECIFIED"}, None),
    "nothing": ({}, None),
    "no schema": ("OBJECT", None),
}  # fmt: skip


@pytest.mark.parametrize(("given_", "expected"), SCHEMAS.values(), ids=SCHEMAS)
def test_schemas(given_: Any, expected: Any) -> None:
    assert json_schema(given_) == expected


def test_names_in_both_cases() -> None:
    assert (camel("thought_signature"), snake("thoughtSignature")) == ("thoughtSignature", "thought_signature")
    assert camel("_x") == "_x"


# --- replies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "verdict"),
    {
        b"[": None, b"[{": None, b'[{"candi': None, b'[{"candidates"': True, b'\xef\xbb\xbf[\n{\n  "usageMetadata" :': True,
        b'[{"jsonrpc"': False, b'[{"id"': False, b'[{"error"': False, b"[{}": False, b"[]": False,
        b"[1": False, b"{": False,
    }.items(),
)  # fmt: skip
def test_which_arrays_are_streams(head: bytes, verdict: bool | None) -> None:
    assert looks_like_array(head) is verdict


@settings(deadline=None)
@given(st.binary(max_size=30) | st.text('[]{}",\\ 1a', max_size=30).map(str.encode), st.data())
def test_any_array_any_cut(rest: bytes, data: st.DataObject) -> None:
    body = b'[{"candidates"' + rest
    places = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    found = []
    for cut in ((), places, range(1, len(body))):
        sniffer = Sniffer({})
        found.append([frame for piece in split(body, cut) for frame in sniffer.feed(piece)] + sniffer.close())
        assert sniffer.streamed
    assert found[0] == found[1] == found[2]
    assert b"".join(frame.raw for frame in found[0]) == body


@pytest.mark.parametrize(
    ("late", "delivered", "repairs"),
    [
        ("\n] [1]", "\n]", ["dropped events after the end of the stream"]),
        ("\n]\n", "\n]\n", []),
        ("}, 1]", "}, 1]", []),
        ("", "\n]", ["added the terminator"]),
    ],
    ids=["text behind the end", "white space", "a brace in the place of the bracket", "no end"],
)
def test_the_end_of_an_array(late: str, delivered: str, repairs: list[str]) -> None:
    body = array(*HELLO).removesuffix("\n]\n")
    asked = exchange("/v1beta/models/gemini-2.5-flash:streamGenerateContent", ASK, body + late)
    done = run(asked, ["ST601"], SAFE)
    assert done.delivered.decode() == body + delivered
    assert [repair.title for repair in done.repairs] == repairs


def test_elements_come_before_the_end() -> None:
    sniffer = Sniffer({})
    first = array(*HELLO).split("\n,\n")[0].encode()
    assert [frame.raw for frame in sniffer.feed(first)] == [first]


def test_places_of_a_stream_are_those_of_a_whole_body() -> None:
    for form in ("whole", "stream"):
        _, _, found = understood(gemini.API, [body_of(GEMINI["text between calls"], form)])
        assert found is not None
        places = [part.pointer.removeprefix("/candidates/0/content") for part in found.choices[0].parts]
        assert places == ["/parts/0/text", "/parts/1/functionCall", "/parts/2/text", "/parts/3/functionCall"]
        assert [call.id for call in found.choices[0].calls] == [None, "x1y2z3"]
        assert found.choices[0].finish_pointer == "/candidates/0/finishReason"


WORDS = [
    "candidates", "content", "parts", "text", "thought", "thoughtSignature", "functionCall", "function_call", "name",
    "args", "id", "index", "finishReason", "promptFeedback", "blockReason", "usageMetadata", "responseId", "modelVersion",
    "partialArgs", "willContinue", "jsonPath", "stringValue", "executableCode", "codeExecutionResult", "inlineData",
    "functionResponse", "response", "groundingMetadata", "error", "tools", "functionDeclarations", "parameters", "type",
    "properties", "contents", "role", "toolConfig", "functionCallingConfig", "mode", "systemInstruction", "nullable",
]  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(["", "STOP", "look", "$.a[0].b", "$", "OBJECT"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)
PART = st.dictionaries(st.sampled_from(WORDS), JSON, max_size=4)
ANSWER = st.fixed_dictionaries(
    {
        "candidates": st.lists(
            st.fixed_dictionaries(
                {"content": st.fixed_dictionaries({"parts": st.lists(PART, max_size=3)})},
                optional={"index": SCALARS, "finishReason": SCALARS},
            ),
            max_size=2,
        )
    },
    optional={"promptFeedback": PART, "usageMetadata": JSON, "error": JSON, "responseId": JSON},
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(ANSWER, min_size=1, max_size=4), st.booleans())
def test_no_reply_makes_it_fail(documents: list[Any], framed: bool) -> None:
    for body in (json.dumps(documents[0]), events(*documents) if framed else array(*documents)):
        raw = body.encode()
        frames = understood(gemini.API, [raw])[0]
        assert b"".join(frame.raw for frame in frames) == raw
        for change in (untouched, shouting, silent):
            before, _, out, made = rewritten(raw, change)
            if [event for event in before if type(event) is not Done] == [e for e in out if type(e) is not Done]:
                assert made == raw


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(st.sampled_from(WORDS), JSON, max_size=6), st.lists(PART, max_size=3))
def test_no_request_makes_it_fail(body: dict[str, Any], parts: list[Any]) -> None:
    for asked in (body, {**body, "contents": [{"parts": parts}], "tools": parts}):
        assert read_request_at(asked, "/v1beta/models/m:generateContent").model == "m"


def test_tools_are_declared_as_json_schema_by_the_builders() -> None:
    exchange_ = read(Talk(tools={"look": schema(at="string")}).record("google.generate_content", False))
    assert exchange_.request is not None
    assert exchange_.request.tools[0].schema == schema(at="string")
