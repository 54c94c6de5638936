"""One harness for all dialects: the vectors, round trips, what is held back, and that reading stays linear.

A vector file is named after its dialect. A line has `text`, the declared `tools`, and either `silent` (nothing may be
found) or the expected `calls`, `complete` and `malformed` over all blocks; `rest` is the text without the blocks, stripped;
`dialect` where the bytes belong to a sister dialect.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wirelint import dialects
from wirelint.dialects import Block, find, held_suffix, may_hold_markup, next_opener
from wirelint.dialects.reader import Reader
from wirelint.dialects.shadow import views
from wirelint.model import Json, Tool

VECTORS = Path(__file__).parent / "vectors"
PREFIX = "antml" + ":"


class Vector(NamedTuple):
    dialect: str
    case: str
    text: str
    tools: tuple[Tool, ...]
    data: dict[str, Json]


def load_vectors() -> Iterator[Vector]:
    for path in sorted(VECTORS.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            data = json.loads(line)
            tools = tuple(
                Tool(tool["name"], f"/tools/{n}", schema=tool["schema"]) for n, tool in enumerate(data["tools"])
            )
            yield Vector(path.stem, data["case"], data["text"], tools, data)


ALL = list(load_vectors())
LOUD = [vector for vector in ALL if not vector.data.get("silent")]
SILENT = [vector for vector in ALL if vector.data.get("silent")]


def named(vectors: Iterable[Vector]) -> list[object]:
    return [pytest.param(vector, id=f"{vector.dialect}-{vector.case}") for vector in vectors]


def calls_in(blocks: Iterable[Block]) -> list[dict[str, Json]]:
    return [{"name": call.name, "arguments": call.arguments, "id": call.id} for block in blocks for call in block.calls]


def without(text: str, blocks: Iterable[Block]) -> str:
    for block in reversed(tuple(blocks)):
        text = text[: block.start] + text[block.end :]
    return text.strip()


@pytest.mark.parametrize("vector", named(LOUD))
def test_markup_is_read(vector: Vector) -> None:
    blocks = find(vector.text, vector.tools)
    assert calls_in(blocks) == vector.data["calls"]
    assert {block.dialect for block in blocks} == {vector.data.get("dialect", vector.dialect)}
    assert all(block.complete for block in blocks) == vector.data["complete"]
    assert all(call.complete for block in blocks for call in block.calls) or not vector.data["complete"]
    assert any(block.malformed for block in blocks) == vector.data["malformed"]
    if "rest" in vector.data:
        assert without(vector.text, blocks) == vector.data["rest"]


@pytest.mark.parametrize("vector", named(SILENT))
def test_clean_text_is_silent(vector: Vector) -> None:
    assert find(vector.text, vector.tools) == ()


@pytest.mark.parametrize("vector", named(ALL))
def test_probe_never_misses(vector: Vector) -> None:
    for text in (vector.text, f"Before.\n{vector.text}\nAfter."):
        assert may_hold_markup(text) or find(text, vector.tools) == ()


@pytest.mark.parametrize("vector", named(ALL))
def test_blocks_are_in_order_and_inside_the_text(vector: Vector) -> None:
    text = f"{vector.text}\n\n{vector.text}"
    end = 0
    for block in find(text, vector.tools):
        assert end <= block.start < block.end <= len(text)
        end = block.end


@pytest.mark.parametrize("vector", named(LOUD))
def test_text_around_does_not_matter(vector: Vector) -> None:
    """Other than for tails, which are tails only at the end, and for what is cut off."""
    if not vector.data["complete"]:
        pytest.skip("cut off or closers only")
    lead = "Erst schauen wir nach – ✓ a < b.\n\n"
    alone, shifted = find(vector.text, vector.tools), find(lead + vector.text, vector.tools)
    assert [(block.start + len(lead), block.end + len(lead), block.calls) for block in alone] == [
        (block.start, block.end, block.calls) for block in shifted
    ]


@pytest.mark.parametrize("vector", named(ALL))
def test_nothing_is_let_go_that_begins_markup(vector: Vector) -> None:
    """At every cut, a block found later begins in what is held, or its opener is complete and can be seen."""
    text = f"Some words first. {vector.text}" if vector.text[:1] == "<" else vector.text
    blocks = find(text, vector.tools)
    for cut in range(len(text) + 1):
        seen = text[:cut]
        released = cut - held_suffix(seen, vector.tools)
        assert 0 <= released <= cut
        for block in blocks:
            if block.start < released:
                opener = next_opener(seen, 0)
                assert opener is not None, (seen, block)
                assert any(mark in range(block.start, block.end) for mark in marks(seen)), (seen, block)


def marks(text: str) -> list[int]:
    found, start = [], 0
    while (place := next_opener(text, start)) is not None:
        found.append(place)
        start = place + 1
    return found


HELD = [
    ("", 0),
    ("plain words", 0),
    ("a <", 1),
    ("a < b", 0),
    ("a <|to", 4),
    ("a <|tool_calls_section_begin|", 27),
    ("a <|tool_calls_section_begin|>", 0),
    ("a <｜tool▁calls▁be", 15),
    ("a <tool_call", 10),
    ("a <tool_call>", 0),
    ("a <invoke na", 10),
    ("a <invoke name=", 0),
    ("a </tool_c", 8),
    ("a &l", 2),
    ("a &lt;tool_", 9),
    ("a \\u003ctool_", 11),
    ("R&", 1),
    ("R&D", 2),
    ("R&D ", 0),
    ("so functions.ping", 14),
    ("so functions.ping:0", 16),
    ("malfunctions are", 0),
    ("fine\ncoun", 4),
    ("fine\ncount\n<inv", 10),
    ("fine\ncounty", 0),
    ("my count", 0),
    ('{"na', 4),
    ('{"name": "run", "argum', 22),
    ('{"name": "run", "age', 0),
    ("<div class", 0),
    ("x" * 9000 + "<tool", 5),
    ("\n" + " " * 9000, 0),
    ("word\n    ", 4),
]


@pytest.mark.parametrize(("text", "held"), HELD, ids=[text[-24:] for text, _ in HELD])
def test_held_suffix(text: str, held: int) -> None:
    assert held_suffix(text) == held


def test_declared_names_are_held_at_line_starts() -> None:
    tools = (Tool("run_query", "/tools/0"),)
    assert held_suffix("Ok.\nrun_que", tools) == 7
    assert held_suffix("Ok.\nrun_query:1", tools) == 11
    assert held_suffix("Ok. run_que", tools) == 0
    assert held_suffix("Ok.\nrun_que") == 0


# -- round trips: arguments written in a dialect's canonical form come back equal -------------------------------------

TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
MARKUP = st.sampled_from(
    ["</tool_call>", "<|tool_call_end|>", "<｜tool▁calls▁end｜>", "```", "{", "\\u003c", "&lt;", "<invoke name=", "\n"]
)
STRINGS = st.lists(st.one_of(TEXT, MARKUP), max_size=4).map("".join)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), FLOATS, STRINGS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(STRINGS, inner, max_size=3)),
    max_leaves=8,
)  # fmt: skip
OBJECTS = st.dictionaries(STRINGS, JSON_VALUES, max_size=4)
NAMES = st.from_regex(r"[a-z][a-z0-9]{2,8}_[a-z]{3,8}[0-9]", fullmatch=True)
KEYS = st.from_regex(r"[a-z][a-zA-Z0-9_]{0,9}", fullmatch=True)
# XML-ish dialects cannot carry their own closing or opening tags in a value: there is no escaping.
FLAT = st.dictionaries(
    KEYS, STRINGS.filter(lambda text: "<" not in text.replace("<|", "").replace("<｜", "")), max_size=4
)


def write_kimi_k2(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps(arguments, ensure_ascii=False)
    return (
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{body}"
        "<|tool_call_end|><|tool_calls_section_end|>"
    )


def write_hermes_json(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{body}\n</tool_call>"


def write_deepseek_v3(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps(arguments, ensure_ascii=False)
    return (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{body}\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    )


def write_deepseek_v3_1(name: str, arguments: dict[str, Json]) -> str:
    body = json.dumps(arguments, ensure_ascii=False)
    return (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{body}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    )


def write_anthropic(name: str, arguments: dict[str, str], prefix: str = "") -> str:
    tag = "parameter"
    inside = "".join(f'<{prefix}{tag} name="{key}">{text}</{prefix}{tag}>\n' for key, text in arguments.items())
    invoke = f'<{prefix}invoke name="{name}">\n{inside}</{prefix}invoke>'
    return f"<{prefix}function_calls>\n{invoke}\n</{prefix}function_calls>"


def write_anthropic_antml(name: str, arguments: dict[str, str]) -> str:
    return write_anthropic(name, arguments, PREFIX)


def write_kimi_invoke_arg(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f'<arg name="{key}">{text}</arg>' for key, text in arguments.items())
    return f'<invoke name="{name}">{inside}</invoke>'


def write_qwen(name: str, arguments: dict[str, str]) -> str:
    inside = "".join(f"<parameter={key}>\n{text}\n</parameter>\n" for key, text in arguments.items())
    return f"<tool_call>\n<function={name}>\n{inside}</function>\n</tool_call>"


JSON_WRITERS = [
    ("kimi_k2", write_kimi_k2),
    ("hermes_json", write_hermes_json),
    ("deepseek_v3", write_deepseek_v3),
    ("deepseek_v3_1", write_deepseek_v3_1),
]
TEXT_WRITERS = [
    ("anthropic_xml", write_anthropic),
    ("anthropic_antml", write_anthropic_antml),
    ("kimi_invoke_arg", write_kimi_invoke_arg),
    ("qwen3_coder_xml", write_qwen),
]


@pytest.mark.parametrize(("dialect", "write"), JSON_WRITERS, ids=[dialect for dialect, _ in JSON_WRITERS])
@settings(max_examples=60, deadline=None)
@given(name=NAMES, arguments=OBJECTS)
def test_json_dialects_round_trip(dialect: str, write: object, name: str, arguments: dict[str, Json]) -> None:
    assert callable(write)
    text = write(name, arguments)
    (block,) = find(text, ())
    assert (block.dialect, block.start, block.end) == (dialect, 0, len(text))
    assert (block.complete, block.malformed) == (True, False)
    assert [(call.name, call.arguments) for call in block.calls] == [(name, arguments)]


@pytest.mark.parametrize(("dialect", "write"), TEXT_WRITERS, ids=[dialect for dialect, _ in TEXT_WRITERS])
@settings(max_examples=60, deadline=None)
@given(name=NAMES, arguments=FLAT)
def test_text_dialects_round_trip(dialect: str, write: object, name: str, arguments: dict[str, str]) -> None:
    assert callable(write)
    if dialect == "kimi_invoke_arg" and not arguments:
        return  # without an <arg> nothing tells it from other invokes
    properties: dict[str, Json] = {key: {"type": "string"} for key in arguments}
    tool = Tool(name, "/tools/0", schema={"type": "object", "properties": properties})
    text = write(name, arguments)
    (block,) = find(text, (tool,))
    assert (block.dialect, block.start, block.end) == (dialect, 0, len(text))
    assert (block.complete, block.malformed) == (True, False)
    assert [(call.name, call.arguments) for call in block.calls] == [(name, arguments)]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(TEXT, MARKUP, st.sampled_from([vector.text for vector in ALL])), max_size=5).map("".join))
def test_any_text_is_survived(text: str) -> None:
    blocks = find(text, ALL[0].tools)
    assert all(first.end <= second.start for first, second in pairwise(blocks))
    assert may_hold_markup(text) or not blocks
    assert 0 <= held_suffix(text) <= len(text)


# -- linear for any input ----------------------------------------------------------------------------------------------

SOUP = {
    "angle-brackets": "<",
    "angle-and-blank": "< ",
    "half-openers": "<tool_call",
    "openers": "<tool_call>",
    "openers-with-brace": "<tool_call>{",
    "openers-with-key": '<tool_call>{"a',
    "openers-with-name": '<tool_call>{"name": "x", "arguments": {',
    "openers-in-lists": '<tool_call>[{"name":',
    "openers-single-quoted": "<tool_call>{'name': ",
    "orphans": '{"name": "x", "arguments":\n',
    "invokes": '<invoke name="x">',
    "invokes-with-brace": '<invoke name="x">{',
    "invokes-with-parameter": '<invoke name="x"><parameter name="y">',
    "invokes-with-value": '<invoke name="x"><parameter name="y">z</parameter>',
    "placeholders": '<invoke name="function_name"><parameter name="y">z</parameter></invoke>',
    "wrapped-invokes": '<function_calls><invoke name="x"><arg name="y">',
    "stray-words": "\ncall\n\n<",
    "functions": "<function=x>",
    "functions-with-parameter": "<tool_call><function=x><parameter=y>",
    "closers": "</parameter></function>",
    "closers-in-text": "</tool_call> x ",
    "kimi-begin": "<|tool_call_begin|>",
    "kimi-end": "<|tool_call_end|> x ",
    "kimi-headers": "<|tool_call_begin|>functions.x:0<|tool_call_argument_begin|>{",
    "kimi-plain-begin": "<tool_call_begin>",
    "kimi-plain-header": "<tool_call_begin>functions.x:0<tool_call_arg>{",
    "hermes-weak": '<json>{"name": "x", "arguments": {}}',
    "kimi-stripped": "functions.x:0{",
    "deepseek-begin": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>x\n```json\n{",
    "deepseek-sep": "<｜tool▁sep｜>",
    "entities": "&lt;tool_call&gt;{",
    "escapes": '\\u003ctool_call\\u003e\\n{\\"',
    "brackets": "<tool_call>" + "[" * 40,
    "blanks": "<tool_call>" + " " * 400,
}
ENDS = {"open": "", "closed": "</parameter></invoke></function></tool_call>", "junk": "</parameter> x </invoke>"}
DEEP = {"objects": '<tool_call>{"name": "x", "arguments": ' + '{"a":' * 20000, "arrays": "<tool_call>" + "[" * 50000}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize("unit", SOUP.values(), ids=SOUP.keys())
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "undeclared"])
def test_work_is_linear(unit: str, end: str, declared: bool) -> None:
    tools = (Tool("x", "/tools/0", schema={"properties": {"y": {"type": "string"}}}),) if declared else ()
    small, large = work_for(unit, end, 10_000, tools), work_for(unit, end, 80_000, tools)
    assert large <= 10 * small + 100_000
    assert large <= 60 * 80_000


def work_for(unit: str, end: str, size: int, tools: tuple[Tool, ...]) -> int:
    """Characters looked at over all views."""
    total = 0
    for view in views(unit * (size // len(unit)) + end):
        reader = Reader(view, tools)
        for _ in dialects._find_in(reader):
            pass
        total += reader.work
    return total


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_depth_is_survived(text: str) -> None:
    assert all(not block.complete for block in find(text, (Tool("x", "/tools/0"),)))
    assert all(not block.complete for block in find(text + "</tool_call>", (Tool("x", "/tools/0"),)))


@pytest.mark.parametrize("unit", SOUP.values(), ids=SOUP.keys())
def test_a_megabyte_of_soup_ends(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    find(text)
    may_hold_markup(text)
    assert held_suffix(text) <= len(text)
