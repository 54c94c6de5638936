"""Edits of a JSON text: the same as edits of the decoded value, and not a byte more."""

from __future__ import annotations

import itertools
import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import rows, tables
from wirelint.fix import Edit
from wirelint.rewrite.edits import apply


def put(pointer: str, value: Any) -> Edit:
    return Edit("replace", pointer, value)


def cut(pointer: str) -> Edit:
    return Edit("remove", pointer)


@rows(tables(__file__)["cases"])
def test_edits_change_their_places_and_no_other_byte(body: str, edits: list[Any], wanted: str) -> None:
    assert apply(body.encode(), [Edit(*edit) for edit in edits]).decode() == wanted


def test_huge_numbers_stay() -> None:
    nines = "9" * 5000
    assert apply(f'{{"n":{nines},"a":1}}'.encode(), [put("/a", 2)]).decode() == f'{{"n":{nines},"a":2}}'


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
    with pytest.raises(ValueError, match=r"JSON|\bchar"):
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
