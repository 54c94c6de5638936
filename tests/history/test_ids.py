"""Ids as strings: whose they are, which is which altered, what they were before."""

from __future__ import annotations

import pytest

from tests.build import some
from tests.tables import rows, tables
from wirelint.history.ids import is_placeholder, match, restore

TABLES = tables(__file__)


@rows(TABLES["one_id_is_another_altered"])
def test_one_id_is_another_altered(one: str, other: str, how: str, certainty: str) -> None:
    found = some(match(one, other, "read_map"))
    assert how in found.how
    assert found.certainty == certainty


@rows(TABLES["strangers_do_not_match"])
def test_strangers_do_not_match(one: str, other: str) -> None:
    assert match(one, other, "read_map") is None


@rows(TABLES["what_an_id_was_before"])
def test_what_an_id_was_before(id_: str, name: str | None, before: str) -> None:
    origin = some(restore(id_, name))
    assert origin.id == before
    assert restore(before, name) is None


@pytest.mark.parametrize(
    "id_", ["undefined", "NULL", "None", "nil", "[object Object]", "call_undefined", "defaulttoolid"]
)
def test_the_words_for_no_id(id_: str) -> None:
    assert is_placeholder(id_)
    origin = some(restore(id_, "go"))
    assert origin.id is None


@rows(TABLES["what_needs_no_restoring"])
def test_what_needs_no_restoring(id_: str, name: str | None) -> None:
    assert restore(id_, name) is None
