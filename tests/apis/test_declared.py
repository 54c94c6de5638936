"""Tools that are declared again are not read again."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelint.apis import by_name, declared, read_request
from wirelint.apis.declared import Declared, Repeated
from wirelint.model import Json, Tool

PATHS = {"openai.chat": "/v1/chat/completions", "anthropic.messages": "/v1/messages"}
SCHEMA: Json = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}


def named(tools: Json) -> tuple[Tool, ...]:
    assert isinstance(tools, list)
    return tuple(Tool(str(tool), f"/tools/{number}") for number, tool in enumerate(tools))


@pytest.mark.parametrize("api", PATHS)
def test_the_same_tools_are_the_same_objects(api: str) -> None:
    tool: Json = {"name": "find", "description": "Finds.", "input_schema": SCHEMA}
    if api == "openai.chat":
        tool = {"type": "function", "function": {"name": "find", "description": "Finds.", "parameters": SCHEMA}}
    body = orjson.dumps(
        {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "a"}], "tools": [tool]}
    )
    found = by_name(api)
    assert found is not None
    first, second = (read_request(found, orjson.loads(body), PATHS[api]) for _ in range(2))
    assert [tool.name for tool in first.tools] == ["find"]
    assert first.tools[0].schema == SCHEMA
    assert all(one is other for one, other in zip(first.tools, second.tools, strict=True))
    other = read_request(found, orjson.loads(body.replace(b"Finds.", b"Looks.")), PATHS[api])
    assert [tool.description for tool in other.tools] == ["Looks."]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param([{"a": 1, "b": 2}], [{"b": 2, "a": 1}], id="order"),
        pytest.param([1], [1.0], id="number"),
        pytest.param([1], [True], id="truth"),
        pytest.param(["a"], ["a", "b"], id="one more"),
    ],
)
def test_what_is_only_equal_is_read(one: Json, other: Json) -> None:
    read = Declared(named)
    first = read(one)
    assert read(other) is not first
    assert [tool.name for tool in read(other)] == [str(tool) for tool in other]  # type: ignore[union-attr]
    assert read(one) is first


@pytest.mark.parametrize("nothing", [None, [], {}, ""])
def test_nothing_is_declared(nothing: Json) -> None:
    assert Declared(named)(nothing) == ()


def test_what_json_cannot_say_is_read_each_time() -> None:
    read = Declared(named)
    odd: Json = ["\ud800"]
    assert [tool.name for tool in read(odd)] == ["\ud800"]
    assert read(odd) is not read(odd)


def test_few_are_remembered_and_none_of_any_length() -> None:
    read = Declared(named)
    for number in range(100):
        read([number])
    assert len(read._known) <= declared._MOST
    long: Json = ["x" * (declared._LONGEST + 1)]
    assert read(long) is not read(long)


# --- bodies that declare what is known ----------------------------------------------------------------------------------

TOOLS: Json = [
    {"type": "function", "function": {"name": f"tool_{n}", "description": "Finds “it”. " * 9, "parameters": SCHEMA}}
    for n in range(4)
]
BODY: dict[str, Json] = {"model": "m", "messages": [{"role": "user", "content": "a"}], "tools": TOOLS, "stream": True}
COMPACT = orjson.dumps(BODY)
SPACED = json.dumps(BODY).encode()
WAYS = {
    "compact": COMPACT,
    "spaced": SPACED,
    "letters as they are": json.dumps(BODY, ensure_ascii=False).encode(),
    "indented": orjson.dumps(BODY, option=orjson.OPT_INDENT_2),
}


def _knowing() -> Repeated:
    known = Repeated()
    known.learn(orjson.dumps(TOOLS))
    return known


@pytest.mark.parametrize("way", ["compact", "spaced"])
def test_known_tools_are_the_same_objects(way: str) -> None:
    known = _knowing()
    one, other = (known.document_of(WAYS[way]) for _ in range(2))
    assert isinstance(one, dict)
    assert isinstance(other, dict)
    assert one == other == BODY
    assert list(one) == list(BODY)
    assert one["tools"] is other["tools"]
    assert one is not other


@pytest.mark.parametrize("way", WAYS)
def test_a_body_says_what_it_says(way: str) -> None:
    known = _knowing()
    for _ in range(8):
        assert known.document_of(WAYS[way]) == BODY


AT_OTHER_PLACES = {
    "twice, others last": COMPACT[:-1] + b',"tools":[1]}',
    "twice, the same": COMPACT[:-1] + b',"tools":' + orjson.dumps(TOOLS) + b"}",
    "twice, others first": b'{"tools":[1],' + COMPACT[1:],
    "not outermost": b'{"inner":' + COMPACT + b"}",
    "not outermost, others there": b'{"tools":[1],"inner":' + COMPACT + b"}",
    "in an array": b"[" + COMPACT + b"]",
    "in a string": orjson.dumps({"tools": "x", "said": COMPACT.decode()}),
    "in a name that ends so": b'{"my \\"tools":' + orjson.dumps(TOOLS) + b"}",
    "under a longer name": b'{"more_tools":' + orjson.dumps(TOOLS) + b"}",
    "nothing behind them": COMPACT[: COMPACT.index(b'"tools"')] + b'"tools":' + orjson.dumps(TOOLS),
    "letters behind them": b'{"tools":' + orjson.dumps(TOOLS) + b"x}",
    "no more of them": b'{"tools":' + orjson.dumps(TOOLS)[:-1] + b",1]}",
    "other ones": COMPACT.replace(b"tool_2", b"tool_7"),
    "none": b'{"model":"m"}',
    "nothing": b"",
    "a number": b"7",
}


@pytest.mark.parametrize("place", AT_OTHER_PLACES)
def test_what_stands_elsewhere_is_no_declaration(place: str) -> None:
    body = AT_OTHER_PLACES[place]
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        said = None
    known = _knowing()
    for before in (COMPACT, body, SPACED):
        known.document_of(before)
        assert known.document_of(body) == said


@given(
    st.dictionaries(
        st.sampled_from(["model", "tools", "a", "b"]), st.sampled_from([TOOLS, [TOOLS], {"tools": TOOLS}, 1])
    ),
    st.lists(st.sampled_from([COMPACT, SPACED]), max_size=3),
    st.booleans(),
)
def test_bodies_of_all_kinds_say_what_they_say(body: dict[str, Json], before: list[bytes], spaced: bool) -> None:
    known = _knowing()
    written = json.dumps(body).encode() if spaced else orjson.dumps(body)
    for other in before:
        known.document_of(other)
    for _ in range(2):
        assert known.document_of(written) == body


def test_what_is_searched_for_in_vain_is_searched_no_more() -> None:
    known = _knowing()
    other = COMPACT.replace(b"tool_2", b"tool_7")
    for _ in range(9):
        assert known.document_of(other) == orjson.loads(other)
    moved = orjson.dumps({"tools": TOOLS, **BODY})
    first, second = known.document_of(moved), known.document_of(moved)
    assert first == second == orjson.loads(moved)
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["tools"] is not second["tools"]


def test_small_and_large_declarations_are_decoded_each_time() -> None:
    for tools in ([{"name": "a"}], ["x" * (1 << 19)]):
        known = Repeated()
        known.learn(orjson.dumps(tools))
        body = orjson.dumps({"tools": tools})
        one, other = known.document_of(body), known.document_of(body)
        assert one == other == {"tools": tools}
        assert isinstance(one, dict)
        assert isinstance(other, dict)
        assert one["tools"] is not other["tools"]


def test_many_declarations_are_known_in_turn() -> None:
    known = Repeated()
    bodies = [orjson.dumps({"tools": [f"{n}" * 600]}) for n in range(20)]
    for _ in range(2):
        for body in bodies:
            known.learn(orjson.dumps(orjson.loads(body)["tools"]))
            assert known.document_of(body) == orjson.loads(body)


def test_tools_that_come_twice_are_decoded_once() -> None:
    """The whole way, in the process's own memory: from the second request on they are looked for."""
    api = by_name("openai.chat")
    assert api is not None
    body = COMPACT.replace(b"tool_", b"one_of_a_kind_")
    read = []
    for _ in range(4):
        document = declared.repeated.document_of(body)
        assert document == orjson.loads(body)
        assert isinstance(document, dict)
        read.append((document["tools"], read_request(api, document, PATHS["openai.chat"]).tools))
    assert read[3][0] is read[2][0]
    assert read[3][0] is not read[0][0]
    assert all(tools is read[0][1] for _, tools in read)
