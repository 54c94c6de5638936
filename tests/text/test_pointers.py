"""JSON Pointers, by the examples of RFC 6901 and beyond."""

from __future__ import annotations

import pytest

from wirelint.text.pointers import at, locate, spelled, tokens

BODY = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, "deep": [{"x": [1, {"y": None}]}]}


@pytest.mark.parametrize(
    ("pointer", "wanted"),
    [
        ("", BODY), ("/foo", ["bar", "baz"]), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1), ("/m~0n", 8), ("/foo/2", None),
        ("/foo/-", None), ("/foo/bar", None), ("/foo/0/x", None), ("/deep/0/x/1", {"y": None}), ("/none", None),
    ],
)  # fmt: skip
def test_a_pointer_finds_its_value(pointer: str, wanted: object) -> None:
    assert at(BODY, pointer) == wanted


def test_a_text_that_is_no_pointer_is_an_error() -> None:
    with pytest.raises(ValueError, match="JSON Pointer"):
        tokens("foo")


JSON_PLACES_BODY = '\ufeff {"a": [1, {"b/c": "x\\ny"}, 3], "k": 1, "k": [true], "e": {}, "n": 12345678901234567890}'

PLACES = {
    "the whole": ("", JSON_PLACES_BODY[2:], True),
    "an element": ("/a/0", "1", True),
    "a name with a slash": ("/a/1/b~1c", '"x\\ny"', True),
    "the last of two": ("/k", "[true]", True),
    "an empty object": ("/e", "{}", True),
    "a number that is too large": ("/n", "12345678901234567890", True),
    "a member that is not there": ("/a/1/z", '{"b/c": "x\\ny"}', False),
    "an element that is not there": ("/a/9", '[1, {"b/c": "x\\ny"}, 3]', False),
    "into a string": ("/a/1/b~1c/0", '"x\\ny"', False),
    "no pointer": ("a", JSON_PLACES_BODY[2:], False),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_pointer_finds_its_place_in_the_text(name: str) -> None:
    pointer, value, found = PLACES[name]
    start, end, there = locate(JSON_PLACES_BODY, pointer)
    assert (JSON_PLACES_BODY[start:end], there) == (value, found)


@pytest.mark.parametrize("text", ["", "no JSON", '{"a": ', "[" * 100_000, '{"a" 1}', '{"a": [1, ', '{"a":1 "b":2}'])
def test_what_is_no_json_is_one_value(text: str) -> None:
    start, end, found = locate(text, "/a/b/c")
    assert 0 <= start <= end <= len(text)
    assert not found


SPELLED = {
    "plain": ('{"a": "one two"}', "two", "two"),
    "escapes": ('["say \\"hi\\"\\nnow"]', 'hi"\nnow', 'hi\\"\\nnow'),
    "a surrogate pair is one character": ('["\\ud83d\\ude00 yes"]', "yes", "yes"),
    "the pair itself": ('["a\\ud83d\\ude00b"]', "😀", "\\ud83d\\ude00"),
    "a lone surrogate before": ('["\\ud83d yes"]', "yes", "yes"),
    "JSON in JSON": ('{"arguments": "{\\"q\\": \\"x\\"}"}', '"x"', '\\"x\\"'),
    "cut off": ('["half a stri', "stri", "stri"),
    "up to the end": ('["tail"]', "tail", "tail"),
    "not there": ('["a", "b"]', "ab", None),
    "nothing": ('["a"]', "", None),
}


@pytest.mark.parametrize("name", SPELLED)
def test_a_text_is_found_as_it_is_spelled(name: str) -> None:
    text, wanted, raw = SPELLED[name]
    found = spelled(text, 0, len(text), wanted)
    assert (text[slice(*found)] if found else None) == raw
