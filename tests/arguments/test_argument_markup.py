"""Native markup in arguments: found and cleaned; changes of members in an argument text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.build import Talk, User, read, schema, some
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


@pytest.mark.parametrize("arguments", NOT_FOUND.values(), ids=NOT_FOUND)
def test_not_found(arguments: Json) -> None:
    assert polluted(arguments, TOOL, request()) is None


def test_markup_in_the_request_is_no_fault() -> None:
    assert polluted({"note": "a</parameter>"}, TOOL, request("What stands before </parameter>?")) is None


CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    # text, changes, text after
    "replaced": ('{"a":1,"b":"x"}', {"b": "y"}, '{"a":1,"b":"y"}'),
    "replaced first": ('{"a": 1, "b": "x"}', {"a": None}, '{"a": null, "b": "x"}'),
    "by an object": ('{"a": 1}', {"a": {"b": [1]}}, '{"a": {"b": [1]}}'),
    "taken out first": ('{"a":1,"b":2}', {"a": GONE}, '{"b":2}'),
    "taken out last": ('{"a": 1, "b": 2}', {"b": GONE}, '{"a": 1}'),
    "taken out in the middle": ('{"a":1,"b":2,"c":3}', {"b": GONE}, '{"a":1,"c":3}'),
    "taken out first of three": ('{"a":1,"b":2,"c":3}', {"a": GONE}, '{"b":2,"c":3}'),
    "all taken out": ('{"a":1}', {"a": GONE}, "{}"),
    "two taken out": ('{"a":1,"b":2,"c":3}', {"a": GONE, "c": GONE}, '{"b":2}'),
    "added": ('{"a":1}', {"b": "x"}, '{"a":1,"b":"x"}'),
    "added with blanks": ('{"a": 1}', {"b": "x"}, '{"a": 1, "b": "x"}'),
    "added to nothing": ("{}", {"b": "x"}, '{"b": "x"}'),
    "added in the place of the only one": ('{"a":1}', {"a": GONE, "b": 2}, '{"b":2}'),
    "lines": ('{\n  "a": 1,\n  "b": 2\n}', {"b": GONE}, '{\n  "a": 1\n}'),
    "lines, the first": ('{\n  "a": 1,\n  "b": 2\n}', {"a": GONE}, '{\n  "b": 2\n}'),
    "what nothing changes stays odd": (
        '{ "a" :1.50 , "\\u00e4":"\\u00e4", "b":2}',
        {"b": 3},
        '{ "a" :1.50 , "\\u00e4":"\\u00e4", "b":3}',
    ),
    "letters": ('{"a":"x"}', {"a": "Göteborg"}, '{"a":"Göteborg"}'),
    "taken out and not there": ('{"a":1}', {"z": GONE}, '{"a":1}'),
}


@pytest.mark.parametrize("name", CASES)
def test_changes(name: str) -> None:
    text, changes, wanted = CASES[name]
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
