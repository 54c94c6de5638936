"""One harness for all dialects: the vectors, round trips, what is held back, and that reading stays linear.

A vector file is named after its dialect. A line has `text`, the declared `tools`, and either `silent` (nothing may be
found) or the expected `calls` and `complete` over all blocks; `rest` is the text without the blocks, stripped; `dialect`
where the bytes belong to a sister dialect. `malformed`: the text departs from the notation of its dialect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.dialects.writers import JSON_WRITERS, SOUP, TEXT_WRITERS
from tests.selection import in_batches, is_complete, rotated, sampled
from tests.tables import tables
from wirelint.dialects import openers, scan
from wirelint.dialects.jsontext import Decoded
from wirelint.dialects.openers import Search
from wirelint.dialects.reader import Block, Match, Pattern, Reader, views
from wirelint.dialects.scan import find, held_suffix, is_damaged, look, may_hold_markup, next_opener
from wirelint.model import Json, Tool

TABLES = tables(__file__)

VENDORS = {"anthropic_xml", "anthropic_antml", "openai_functions_leak", "multi_tool_use", "gemini_default_api"}
"""Dialects of models that only their vendors serve."""
VECTORS = Path(__file__).parent / "vectors"


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
_READ: dict[tuple[str, str, str], tuple[Block, ...]] = {}


def read(vector: Vector) -> tuple[Block, ...]:
    """The blocks of a vector's text; most tests ask for them."""
    key = vector.dialect, vector.case, vector.text
    if key not in _READ:
        _READ[key] = find(vector.text, vector.tools)
    return _READ[key]


def per_dialect(vectors: Iterable[Vector]) -> Callable[[Callable[..., None]], Any]:
    """The vectors of a dialect together; assertions name the case."""
    files: dict[str, list[Vector]] = {}
    for vector in vectors:
        files.setdefault(vector.dialect, []).append(vector)
    return in_batches("vectors", files.values(), ids=files.keys(), size=10)


LOUD = per_dialect(vector for vector in ALL if not vector.data.get("silent"))
EVERY = per_dialect(ALL)


def calls_in(blocks: Iterable[Block]) -> list[dict[str, Json]]:
    return [{"name": call.name, "arguments": call.arguments, "id": call.id} for block in blocks for call in block.calls]


def without(text: str, blocks: Iterable[Block]) -> str:
    for block in reversed(tuple(blocks)):
        text = text[: block.start] + text[block.end :]
    return text.strip()


@LOUD
def test_markup_is_read(vectors: list[Vector]) -> None:
    for vector in vectors:
        blocks = read(vector)
        assert calls_in(blocks) == vector.data["calls"], vector.case
        assert {block.dialect for block in blocks} == {vector.data.get("dialect", vector.dialect)}, vector.case
        assert all(block.complete for block in blocks) == vector.data["complete"], vector.case
        assert all(call.complete for block in blocks for call in block.calls) or not vector.data["complete"], (
            vector.case
        )
        if vector.data.get("dialect", vector.dialect) in VENDORS and vector.data["complete"]:
            assert any(is_damaged(vector.text, block) for block in blocks) == vector.data["malformed"], vector.case
        if "rest" in vector.data:
            assert without(vector.text, blocks) == vector.data["rest"], vector.case


@EVERY
def test_clean_text_is_silent_and_the_probe_never_misses(vectors: list[Vector]) -> None:
    for vector in vectors:
        assert read(vector) == () or not vector.data.get("silent"), vector.case
        assert may_hold_markup(vector.text, vector.tools) or read(vector) == (), vector.case
        text = f"Before.\n{vector.text}\nAfter."
        assert may_hold_markup(text, vector.tools) or find(text, vector.tools) == (), vector.case


@EVERY
def test_blocks_are_in_order_and_inside_the_text(vectors: list[Vector]) -> None:
    for vector in vectors:
        text = f"{vector.text}\n\n{vector.text}"
        end = 0
        for block in find(text, vector.tools):
            assert end <= block.start < block.end <= len(text), vector.case
            end = block.end


@LOUD
def test_text_around_does_not_matter(vectors: list[Vector]) -> None:
    """Except for weak shapes, which are the whole message, tails, which end it, and cut blocks."""
    lead = "Erst schauen wir nach – ✓ a < b.\n\n"
    for vector in vectors:
        alone, shifted = read(vector), find(lead + vector.text, vector.tools)
        if not vector.data["complete"] or any(block.tier == "weak" for block in alone):
            continue
        assert [(block.start + len(lead), block.end + len(lead), block.calls) for block in alone] == [
            (block.start, block.end, block.calls) for block in shifted
        ], vector.case


@EVERY
def test_cut_openers_are_held(vectors: list[Vector]) -> None:
    """At every cut, a later block begins in the held suffix, or its opener is complete."""
    for vector in vectors:
        text = f"Some words first. {vector.text}" if vector.text[:1] == "<" else vector.text
        blocks = read(vector) if text is vector.text else find(text, vector.tools)
        for cut in sampled(range(len(text) + 1), 1):
            seen = text[:cut]
            released = cut - held_suffix(seen, vector.tools)
            assert 0 <= released <= cut, vector.case
            for block in blocks:
                if block.start < released:
                    assert any(mark in range(block.start, block.end) for mark in marks(seen, vector.tools)), (
                        vector.case,
                        seen,
                    )


def marks(text: str, tools: tuple[Tool, ...] = ()) -> list[int]:
    found, start = [], 0
    while (place := next_opener(text, start, tools)) is not None:
        found.append(place)
        start = place + 1
    return found


HELD: list[Any] = TABLES["held"]


@in_batches(("text", "held"), HELD, ids=[text[-24:] for text, _ in HELD])
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
# Dialects with tags cannot hold their own tags in a value: there is no escaping.
FLAT = st.dictionaries(
    KEYS, STRINGS.filter(lambda text: "<" not in text.replace("<|", "").replace("<｜", "")), max_size=4
)


def comes_back(dialect: str, text: str, tool: Tool | None, name: str, arguments: Mapping[str, Json]) -> None:
    blocks = find(text, () if tool is None else (tool,))
    assert [(block.dialect, block.start, block.end) for block in blocks] == [(dialect, 0, len(text))]
    assert blocks[0].complete, dialect
    assert not is_damaged(text, blocks[0]), dialect
    assert [(call.name, call.arguments) for call in blocks[0].calls] == [(name, arguments)], dialect


@settings(max_examples=300 if is_complete() else 8)
@given(name=NAMES, arguments=OBJECTS)
def test_json_dialects_round_trip(name: str, arguments: dict[str, Json]) -> None:
    for dialect, write in JSON_WRITERS:
        comes_back(dialect, write(name, arguments), None, name, arguments)


@settings(max_examples=300 if is_complete() else 8)
@given(name=NAMES, arguments=FLAT)
def test_text_dialects_round_trip(name: str, arguments: dict[str, str]) -> None:
    assume(not any(re.search(r"&#?\w+;", value) for value in arguments.values()))  # entities are decoded
    properties: dict[str, Json] = {key: {"type": "string"} for key in arguments}
    tool = Tool(name, "/tools/0", schema={"type": "object", "properties": properties})
    for dialect, write in TEXT_WRITERS:
        if arguments or dialect != "kimi_invoke_arg":  # without an <arg> nothing tells it from other invokes
            comes_back(dialect, write(name, arguments), tool, name, arguments)


@given(st.lists(st.one_of(TEXT, MARKUP, st.sampled_from([vector.text for vector in ALL])), max_size=5).map("".join))
def test_any_text_is_read(text: str) -> None:
    blocks = find(text, ALL[0].tools)
    assert all(first.end <= second.start for first, second in pairwise(blocks))
    assert may_hold_markup(text, ALL[0].tools) or not blocks
    assert 0 <= held_suffix(text) <= len(text)


# -- linear for any input ----------------------------------------------------------------------------------------------

UNITS = {
    "angle-brackets": "<",
    "angle-and-blank": "< ",
    "closers-in-text": "</tool_call> x ",
    "entities": "&lt;tool_call&gt;{",
    "escapes": '\\u003ctool_call\\u003e\\n{\\"',
    **SOUP,
}
ENDS = ("", "</parameter></invoke></function></tool_call>", "</parameter> x </invoke>")
DEEP = {"objects": '<tool_call>{"name": "x", "arguments": ' + '{"a":' * 20000, "arrays": "<tool_call>" + "[" * 50000}


@pytest.mark.parametrize("case", sampled(list(UNITS), 16))
def test_work_is_linear(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openers, "Search", CountingSearch)
    unit = UNITS[case]
    for end, declared in rotated(list(product(ENDS, (True, False))), case):
        tools = (Tool("x", "/tools/0", schema={"properties": {"y": {"type": "string"}}}),) if declared else ()
        small, large = work_for(unit, end, 2_500, tools), work_for(unit, end, 20_000, tools)
        assert large <= 10 * small + 25_000, (end, declared)
        assert large <= 60 * 20_000, (end, declared)


class CountingReader(Reader):
    """A reader that counts the characters it reads."""

    work = 0

    def match(self, pattern: Pattern, position: int) -> Match | None:
        return self._counted(super().match(pattern, position), position)

    def certain(self, pattern: Pattern, position: int) -> Match | None:
        return self._counted(super().certain(pattern, position), position)

    def _counted(self, found: Match | None, position: int) -> Match | None:
        self.work += found.end() - position if found is not None else 0
        return found

    def seek(self, pattern: Pattern, position: int) -> Match | None:
        known = self._found.get(pattern)
        found = super().seek(pattern, position)
        if self._found[pattern] is not known:
            self.sought(found, position)
        return found

    def sought(self, found: Match | None, position: int) -> None:
        self.work += (found.start() if found is not None else self.size) - position + 1

    def space(self, position: int) -> int:
        end = super().space(position)
        self.work += end - position + 1
        return end

    def json(self, position: int) -> Decoded:
        decoded = super().json(position)
        self.work += decoded.end - position + 1
        return decoded

    def repair(self, start: int, end: int) -> Decoded | None:
        self.work += end - start + 1
        return super().repair(start, end)


class CountingSearch(Search):
    """The search for openers, counted by its reader."""

    def _find(self, group: Any, position: int) -> Match | None:
        found = super()._find(group, position)
        assert isinstance(self._reader, CountingReader)
        self._reader.sought(found, position)
        return found


def work_for(unit: str, end: str, size: int, tools: tuple[Tool, ...]) -> int:
    """Return the characters read in all views."""
    total = 0
    for view in views(unit * (size // len(unit)) + end):
        reader = CountingReader(view, tools)
        scan._read_view(reader, 0)
        total += reader.work
    return total


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
def test_deep_nesting_is_read(text: str) -> None:
    assert all(not block.complete for block in find(text, (Tool("x", "/tools/0"),)))
    assert all(not block.complete for block in find(text + "</tool_call>", (Tool("x", "/tools/0"),)))


TURN_TOKENS: list[Any] = TABLES["turn_tokens"]
FRAMES = [block for block in ALL if block.data.get("complete") and not block.data.get("malformed")]


@per_dialect(FRAMES)
def test_a_turn_token_inside_an_opener_hides_no_call(vectors: list[Vector]) -> None:
    """Servers print a stop token or a turn header in `[TOOL_CALLS]`, or right behind it.

    Only openers in brackets are tested. Code behind `<|python_tag|>` may begin with any token, and a tag such as
    `<start_of_turn>` right behind the tag of a tool is a parameter.
    """
    for number, vector in enumerate(vectors):
        block = read(vector)[0]
        opener = re.compile(r"<\|?[\w:]{4,}[|>]|\[TOOL_CALLS\]").match(vector.text, block.start)
        if opener is None or block.tier == "weak" or "<|start|>" in vector.text:
            continue
        token = TURN_TOKENS[number % len(TURN_TOKENS)]
        is_parameter = block.dialect == "tool_named_xml" and token.startswith("<") and token[1].isalpha()
        behind = "<|python_tag|>" not in vector.text and not is_parameter
        for place in sampled([*range(block.start + 3, opener.end()), *[opener.end()] * behind], 2):
            cut = vector._replace(text=vector.text[:place] + token + vector.text[place:])
            blocks = find(cut.text, vector.tools)
            assert calls_in(blocks) == vector.data["calls"], (vector.case, cut.text)
            assert blocks[0].start == block.start, (vector.case, cut.text)
            settles(cut, cut.text, sampled(range(len(cut.text) + 1), 1))


@pytest.mark.parametrize(
    "text", ["Done.<|im_end|>", "Use <|im_end|> or </s> at the end", "a[1]</s>b[2] <b</s>>", "[TOOL_<|im_end|>"]
)
def test_a_turn_token_without_a_call_is_no_markup(text: str) -> None:
    assert find(text) == ()


MEGABYTES = ("<", "< ", "<tool_call", "<|tool_call", "[TOOL_", "functions.", "&lt;", "\n{", "</tool_call> x ")


@pytest.mark.parametrize("unit", [*sampled(list(UNITS.values()), 8), *MEGABYTES])
def test_long_repeated_units_end(unit: str) -> None:
    size = 1_000_000 if unit in MEGABYTES else 100_000
    text = unit * (size // (1 if is_complete() else 10) // len(unit))
    find(text)
    may_hold_markup(text)
    assert held_suffix(text) <= len(text)


# -- text that is still arriving ------------------------------------------------------------------


def settled(blocks: Iterable[Block]) -> list[tuple[object, ...]]:
    return [(block.dialect, block.start, block.end, block.calls) for block in blocks]


@EVERY
def test_settled_blocks_are_final(vectors: list[Vector]) -> None:
    """At every cut, settled blocks are those of the whole text, and the others begin after the open place."""
    for vector in vectors:
        size = len(vector.text)
        forms = [
            (vector.text, range(size + 1)),
            (f"Some words.\n{vector.text}", range(12, size + 13, 5)),
            (f"{vector.text}\nSome words, and more of them.", range(size, size + 31)),
        ]
        for text, cuts in rotated(forms, vector.case):
            settles(vector, text, sampled(cuts, 1))


def settles(vector: Vector, text: str, cuts: Iterable[int]) -> None:
    blocks = read(vector) if text is vector.text else find(text, vector.tools)
    declared = {tool.name for tool in vector.tools}
    for cut in cuts:
        seen = text[:cut]
        looked = look(seen, vector.tools)
        held = held_suffix(seen, vector.tools)
        first = min(cut - held, cut if looked.open is None else looked.open)
        known = [block for block in blocks if block.calls and block.start < first]
        assert settled(block for block in looked.blocks if block.calls) == settled(known), (vector.case, cut, seen)
        begun = next((block for block in blocks if block.complete and block.start == looked.open), None)
        if begun is not None and all(call.name in declared for call in begun.calls):
            assert looked.hopeful, (vector.case, cut, seen)
