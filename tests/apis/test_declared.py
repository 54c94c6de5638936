"""Tool declarations that a client repeats are parsed once; similar bytes in other places are not taken for them."""

from __future__ import annotations

import json

import orjson
import pytest

from wirelint.apis.declared import Declared, Repeated
from wirelint.model import Json, Tool

SCHEMA: Json = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
TOOLS: Json = [
    {"type": "function", "function": {"name": f"tool_{n}", "description": "Finds “it”. " * 9, "parameters": SCHEMA}}
    for n in range(4)
]
BODY: dict[str, Json] = {"model": "m", "messages": [{"role": "user", "content": "a"}], "tools": TOOLS, "stream": True}
COMPACT = orjson.dumps(BODY)
SPACED = json.dumps(BODY).encode()


def named(tools: Json) -> tuple[Tool, ...]:
    assert isinstance(tools, list)
    return tuple(Tool(str(tool), f"/tools/{number}") for number, tool in enumerate(tools))


@pytest.mark.parametrize(
    ("one", "other"),
    [([{"a": 1, "b": 2}], [{"b": 2, "a": 1}]), ([1], [1.0]), ([1], [True]), (["a"], ["a", "b"]), ([], ["\ud800"])],
)
def test_only_identical_declarations_are_read_once(one: Json, other: Json) -> None:
    read = Declared(named)
    first = read(one)
    assert [tool.name for tool in read(other)] == [str(tool) for tool in other]  # type: ignore[union-attr]
    assert read(one) is first


def knowing() -> Repeated:
    known = Repeated()
    known.learn(orjson.dumps(TOOLS))
    return known


BODIES = {
    "compact": COMPACT,
    "spaced": SPACED,
    "letters unescaped": json.dumps(BODY, ensure_ascii=False).encode(),
    "indented": orjson.dumps(BODY, option=orjson.OPT_INDENT_2),
    "twice, others last": COMPACT[:-1] + b',"tools":[1]}',
    "twice, equal": COMPACT[:-1] + b',"tools":' + orjson.dumps(TOOLS) + b"}",
    "twice, others first": b'{"tools":[1],' + COMPACT[1:],
    "not outermost": b'{"inner":' + COMPACT + b"}",
    "not outermost, others there": b'{"tools":[1],"inner":' + COMPACT + b"}",
    "in an array": b"[" + COMPACT + b"]",
    "in a string": orjson.dumps({"tools": "x", "said": COMPACT.decode()}),
    "in a name that ends so": b'{"my \\"tools":' + orjson.dumps(TOOLS) + b"}",
    "under a longer name": b'{"more_tools":' + orjson.dumps(TOOLS) + b"}",
    "nothing behind them": COMPACT[: COMPACT.index(b'"tools"')] + b'"tools":' + orjson.dumps(TOOLS),
    "letters behind them": b'{"tools":' + orjson.dumps(TOOLS) + b"x}",
    "one tool more": b'{"tools":' + orjson.dumps(TOOLS)[:-1] + b",1]}",
    "another tool": COMPACT.replace(b"tool_2", b"tool_7"),
    "none": b'{"model":"m"}',
    "nothing": b"",
    "a number": b"7",
}


@pytest.mark.parametrize("name", BODIES)
def test_every_body_is_decoded_as_json(name: str) -> None:
    body = BODIES[name]
    try:
        expected = orjson.loads(body)
    except orjson.JSONDecodeError:
        expected = None
    known = knowing()
    for before in (COMPACT, body, SPACED) * 3:
        known.document_of(before)
        assert known.document_of(body) == expected


def test_memory_is_bounded() -> None:
    known = Repeated()
    bodies = [orjson.dumps({"tools": [f"{n}" * 600]}) for n in range(20)] + [orjson.dumps({"tools": ["x" * (1 << 19)]})]
    for body in bodies * 2:
        known.learn(orjson.dumps(orjson.loads(body)["tools"]))
        assert known.document_of(body) == orjson.loads(body)
    assert len(known._known) <= 16
