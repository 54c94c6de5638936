"""Edits of a JSON text: the same as edits of the decoded value, and not a byte more."""

from __future__ import annotations

import itertools
import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.selection import in_batches
from wirelint.fix import Edit
from wirelint.rewrite.edits import apply


def put(pointer: str, value: Any) -> Edit:
    return Edit("replace", pointer, value)


def before(pointer: str, value: Any) -> Edit:
    return Edit("insert", pointer, value)


def cut(pointer: str) -> Edit:
    return Edit("remove", pointer)


CASES: dict[str, tuple[str, list[Edit], str]] = {
    "nothing to do": ('{"a" : 1}', [], '{"a" : 1}'),
    "replaced": ('{ "a" : 1.50 , "b":2e0}', [put("/b", "x")], '{ "a" : 1.50 , "b":"x"}'),
    "the same value in another spelling": ('{"a": [1, 2]}', [put("/a", [1, 2])], '{"a": [1,2]}'),
    "in an array": ('{"a":[ 1 ,\n 2 ]}', [put("/a/1", None)], '{"a":[ 1 ,\n null ]}'),
    "added to an object": ('{"a":1 }', [put("/b", {"c": "ü"})], '{"a":1,"b":{"c":"ü"} }'),
    "added to an empty object": ("{ }", [put("/b", 1)], '{"b":1}'),
    "added where all others go": ('{"a":1, "b":2}', [cut("/a"), cut("/b"), put("/c", 3)], '{"c":3}'),
    "first removed": ("[ 1, 2, 3 ]", [cut("/0")], "[ 2, 3 ]"),
    "middle removed": ("[ 1, 2, 3 ]", [cut("/1")], "[ 1, 3 ]"),
    "last removed": ("[ 1, 2, 3 ]", [cut("/2")], "[ 1, 2 ]"),
    "all removed": ('{"a":[ 1,\n2 ]}', [cut("/a/0"), cut("/a/1")], '{"a":[]}'),
    "member removed": ('{"a":1,\n "b":[1, {}],\n "c":3}', [cut("/b")], '{"a":1,\n "c":3}'),
    "only member removed": ('{"a": {"b": 1}}', [cut("/a/b")], '{"a": {}}'),
    "put before the first": ("[ 1, 2 ]", [before("/0", "x")], '[ "x",1, 2 ]'),
    "put before the last, two of them": (
        '{"a":[1,\n 2]}',
        [before("/a/1", 8), before("/a/1", 9)],
        '{"a":[1,\n 8,9,2]}',
    ),
    "put before one, its neighbours removed": ("[1, 2, 3]", [cut("/0"), before("/1", 9), cut("/2")], "[9,2]"),
    "put where no array is": ('{"a":1}', [before("/a", 9), before("/b/0", 9), before("", 9)], '{"a":1}'),
    "inside of a removed part": ('[{"a":1},2]', [put("/0/a", 5), cut("/0")], "[2]"),
    "inside of a replaced part": ('[{"a":1},2]', [put("/0", 7), put("/0/a", 5)], "[7,2]"),
    "the last of two": ('{"a":1}', [put("/a", 2), put("/a", 3)], '{"a":3}'),
    "repeated keys: the last is replaced": ('{"a":1,"a":2}', [put("/a", 3)], '{"a":1,"a":3}'),
    "repeated keys: the last is entered": ('{"a":{"b":1},"a":{"b":2}}', [put("/a/b", 3)], '{"a":{"b":1},"a":{"b":3}}'),
    "repeated keys: all are removed": ('{"a":1,"b":0,"a":2}', [cut("/a")], '{"b":0}'),
    "a key with escapes": (r'{"\u0061/b~c": 1}', [put("/a~1b~0c", 2)], r'{"\u0061/b~c": 2}'),
    "the whole body": (' {"a":1} ', [put("", [])], " [] "),
    "beyond the array": ("[1]", [put("/1", 2), put("/-", 2), put("/00", 2), cut("/5")], "[1]"),
    "a byte order mark": ('\ufeff{"a":1}', [put("/a", 2)], '\ufeff{"a":2}'),
    "brackets in strings": (r'{"a":"]},{\"","b":[1]}', [put("/b/0", 2)], r'{"a":"]},{\"","b":[2]}'),
    "huge numbers": (f'{{"n":{"9" * 5000},"a":1}}', [put("/a", 2)], f'{{"n":{"9" * 5000},"a":2}}'),
    "what JSON does not have": ('{"n":NaN,"a":1}', [put("/a", 2)], '{"n":NaN,"a":2}'),
    "a lone surrogate": ('{"a":1}', [put("/a", "\ud83d")], r'{"a":"\ud83d"}'),
}


@in_batches(("body", "edits", "wanted"), CASES.values(), ids=CASES.keys())
def test_edits_change_their_places_and_no_other_byte(body: str, edits: list[Edit], wanted: str) -> None:
    assert apply(body.encode(), edits).decode() == wanted


def test_bytes_that_are_no_utf8_stay() -> None:
    assert apply(b'{"a":"\xff\xc3","b":1}', [put("/b", "\u00e9")]) == b'{"a":"\xff\xc3","b":"\xc3\xa9"}'


@pytest.mark.parametrize("edits", [[], [put("/x/y", 1)], [cut("/x")], [put("/a", 1)]], ids=repr)
def test_nothing_changed_is_the_same_object(edits: list[Edit]) -> None:
    body = b'{"a":1}'
    assert apply(body, edits) is body


@pytest.mark.parametrize(
    "body", ["", "{", "[1", "[1,", "[1,]", '{"a"}', '{"a":1,}', '{"a":1 "b":2}', "{1:2}", '{"a":', '{"a', "[" * 100_000]
)
def test_no_json_is_a_value_error(body: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|at character|Unterminated"):
        apply(body.encode(), [put("/a/b", 1), put("/0/0", 1)])


def test_no_pointer_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="JSON Pointer"):
        apply(b"{}", [put("a", 1)])


# --- properties -----------------------------------------------------------------------------------------------------


SPELLINGS = st.sampled_from(
    ["1", "1.0", "-0", "1E+2", "1.50e-3", '"A"', r'"\u0041"', r'"\/"', '"ü"', "true", "null", '{"a":1, "a":2}', "[ ]"]
)
SPACES = st.sampled_from(["", " ", "\n\t", "  "])


@given(st.lists(st.tuples(SPELLINGS, SPACES, SPACES, st.booleans()), min_size=1, max_size=8), st.booleans())
def test_what_no_edit_touches_keeps_its_spelling(parts: list[tuple[str, str, str, bool]], named: bool) -> None:
    """Replaced values are put back as they were spelled, and nothing else may differ."""
    members = [(f'"k{n}"{after}: ' if named else "") + raw for n, (raw, _, after, _) in enumerate(parts)]
    inside = ",".join(f"{before}{member}{after}" for member, (_, before, after, _) in zip(members, parts, strict=True))
    body = f'{{"x": {"{" if named else "["}{inside}{"}" if named else "]"} }}'
    chosen = [n for n, (*_, wanted) in enumerate(parts) if wanted]
    made = apply(body.encode(), [put(f"/x/{'k' if named else ''}{n}", f"<<{n}>>") for n in chosen]).decode()
    for n in chosen:
        assert made.count(f'"<<{n}>>"') == 1
        made = made.replace(f'"<<{n}>>"', parts[n][0])
    assert made == body


def test_hundreds_of_edits_in_a_large_body_are_one_walk() -> None:
    """Every character is scanned a bounded number of times, however many edits there are."""
    messages = [{"role": "tool", "tool_call_id": f"id{n}", "content": "é" * 400} for n in range(1200)]
    body = json.dumps({"messages": messages}, ensure_ascii=False).encode()
    edits = [put(f"/messages/{n}/tool_call_id", f"new{n}") for n in range(0, 1200, 2)]
    edits += [cut(f"/messages/{n}") for n in range(1, 1200, 4)]
    made = orjson.loads(apply(body, edits))
    left = [n for n in range(1200) if n % 4 != 1]
    assert [one["tool_call_id"] for one in made["messages"]] == [f"new{n}" if n % 2 == 0 else f"id{n}" for n in left]
    assert all(len(one["content"]) == 400 for one in itertools.islice(made["messages"], 50))
