"""Native markup in arguments: found and cleaned; changes of members in an argument text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.build import Talk, User, read, schema, some
from tests.selection import in_batches
from tests.tables import rows, tables
from wirelint.arguments.argument_faults import GONE, may_be_polluted, polluted, rewrite
from wirelint.model import Json, Request, Tool

TABLES = tables(__file__)

TOOL = Tool(
    "pack", "/tools/0", schema=schema(("path",), path="string", content="string", note="string", limit="integer")
)

# id: (arguments, what they should be; None where no repair is sure, the markup that was found)
NOT_FOUND: dict[str, Json] = TABLES["not_found"]


def request(said: str = "Pack it.") -> Request:
    return some(read(Talk((User(said),)).record("openai.chat", False)).request)


@rows(TABLES["found"])
def test_found(arguments: Json, cleaned: Json, markup: str) -> None:
    found = some(polluted(arguments, TOOL, request()))
    assert (found.cleaned, found.markup) == (cleaned, markup)
    assert may_be_polluted(json.dumps(arguments))


@in_batches("arguments", NOT_FOUND.values(), ids=NOT_FOUND)
def test_not_found(arguments: Json) -> None:
    assert polluted(arguments, TOOL, request()) is None


def test_markup_in_the_request_is_no_fault() -> None:
    assert polluted({"note": "a</parameter>"}, TOOL, request("What stands before </parameter>?")) is None


# text, changes ("GONE": taken out), text after
@rows(TABLES["changes"])
def test_changes(text: str, changes: dict[str, Any], wanted: str) -> None:
    changes = {name: GONE if value == "GONE" else value for name, value in changes.items()}
    made = some(rewrite(text, changes))
    assert made.text == wanted
    assert made.text[: made.offset] == text[: made.offset]
    after = {**json.loads(text), **changes}
    assert json.loads(made.text) == {key: value for key, value in after.items() if value is not GONE}


@pytest.mark.parametrize(
    "text", ["", "[1]", '{"a":1', '{"a":1}{}', '{"a" 1}', '{"a":1,"a":2}', "{a:1}", '{"a":1 "b":2}']
)
def test_other_texts_are_unchanged(text: str) -> None:
    assert rewrite(text, {"a": 2}) is None
