"""Tools that are declared again are not read again."""

from __future__ import annotations

import orjson
import pytest

from wirelint.apis import by_name, read_request
from wirelint.apis import declared as module
from wirelint.apis.declared import Declared
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
    assert len(read._known) <= module._MOST
    long: Json = ["x" * (module._LONGEST + 1)]
    assert read(long) is not read(long)
