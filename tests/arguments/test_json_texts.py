"""JSON in pieces: the scanner, continuations of a prefix, repairs of damaged texts."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import rows, tables
from wirelint.arguments.argument_faults import repair_damaged, spells, unquoted
from wirelint.arguments.json_continuation import Scanner, continuation, same
from wirelint.jsonvalues import write
from wirelint.model import Json

TABLES = tables(__file__)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def spelled(value: Json, dice: random.Random) -> str:
    """Return a random spelling of a value."""

    def space() -> str:
        return dice.choice(["", "", "", " ", "\n", "\t\r "])

    match value:
        case dict():
            members = [f"{space()}{_string(key, dice)}{space()}:{spelled(inner, dice)}" for key, inner in value.items()]
            return f"{space()}{{{','.join(members)}{space()}}}{space()}"
        case list():
            return f"{space()}[{space()}{','.join(spelled(inner, dice) for inner in value)}]{space()}"
        case str():
            return space() + _string(value, dice) + space()
        case float():
            return space() + _number(value, dice) + space()
        case _:
            return space() + json.dumps(value) + space()


def _string(text: str, dice: random.Random) -> str:
    return '"' + "".join(_character(character, dice) for character in text) + '"'


def _character(character: str, dice: random.Random) -> str:
    way = dice.random()
    if way < 0.3:
        units = character.encode("utf-16-be").hex()
        escapes = "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
        return escapes.replace("a", "A") if dice.random() < 0.5 else escapes
    if way < 0.4 and character == "/":
        return "\\/"
    return json.dumps(character, ensure_ascii=way > 0.7)[1:-1]


def _number(value: float, dice: random.Random) -> str:
    exact = Decimal(repr(value))
    texts = [repr(value), f"{exact:f}", str(exact.normalize()), f"{value!r}e0", f"{value!r}e+00", f"{value!r}00"]
    return dice.choice([text for text in texts if _reads(text, value)])


def _reads(text: str, value: float) -> bool:
    try:
        return same(json.loads(text), value)
    except ValueError:
        return False


@given(VALUES, st.randoms(use_true_random=False), st.data())
def test_every_prefix_of_every_spelling_has_a_continuation(
    value: Json, dice: random.Random, data: st.DataObject
) -> None:
    text = spelled(value, dice)
    prefix = text[: data.draw(st.integers(0, len(text)))]
    rest = continuation(prefix, value)
    assert rest is not None, prefix
    assert same(json.loads(prefix + rest), value)


@given(VALUES, VALUES, st.randoms(use_true_random=False), st.data())
def test_a_prefix_of_another_value_has_none_or_a_right_one(
    one: Json, other: Json, dice: random.Random, data: st.DataObject
) -> None:
    text = spelled(one, dice)
    prefix = text[: data.draw(st.integers(0, len(text)))]
    rest = continuation(prefix, other)
    assert rest is None or same(json.loads(prefix + rest), other)


# (beginning, value) → the rest


@rows(TABLES["rests"])
def test_continuation(prefix: str, value: Json, expected: str | None) -> None:
    assert continuation(prefix, value) == expected


@pytest.mark.parametrize("value", ["\ud83d", 10**30, {"a": [1.5, None, "é"]}])
def test_any_value_can_be_written(value: Json) -> None:
    assert json.loads(write(value)) == value


# --- the scanner ----------------------------------------------------------------------------------------------------


@given(st.text(alphabet="{}[]:,\"\\ \n019-.eE+truefalsn'u", max_size=16))
def test_the_scanner_accepts_json(text: str) -> None:
    scanner = Scanner()
    for character in text:
        scanner.feed(character)
    try:
        json.loads(text, parse_constant=lambda name: int(name))
    except ValueError:
        assert scanner.closed is None or scanner.second is not None
    else:
        assert scanner.broken is scanner.second is None


# --- damaged texts ----------------------------------------------------------------------------------------------------

# text → (a value, whether the text says it)


@rows(TABLES["spelled"])
def test_spells(text: str, value: Json, expected: bool) -> None:
    assert spells(text, value) is expected


@given(VALUES, VALUES, st.randoms(use_true_random=False))
def test_a_text_spells_its_value_and_no_other(one: Json, other: Json, dice: random.Random) -> None:
    value, text = {"k": one}, spelled({"k": one}, dice)
    assert spells(text, value)
    assert not spells(text, {"k": other}) or same(json.loads(json.dumps(one)), json.loads(json.dumps(other)))


@given(st.text(alphabet="{}[]:,\"'ab1 \n\\T", max_size=24))
def test_repairs_add_and_lose_nothing(text: str) -> None:
    value = repair_damaged("{" + text)
    if value is not None:
        assert spells("{" + text, value)
        letters = [character for character in json.dumps(value) if character in "ab1"]
        assert letters == [character for character in text if character in "ab1"]


def test_lost_quotes() -> None:
    assert unquoted('{\\"a\\":\\"x\\\\n\\"}') == {"a": "x\n"}
    assert unquoted('{"a":1}') is None
    assert unquoted('{\\"a\\":') is None


def test_deep_or_long_damage() -> None:
    assert repair_damaged("{'a':" * 3000) is None
    assert repair_damaged("{'a': [" + "(" * 70_000) is None
    assert repair_damaged("{'a':'" + "x" * (1 << 20) + "'}") == {"a": "x" * (1 << 20)}
