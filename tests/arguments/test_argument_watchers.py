"""Watchers of arriving argument texts: the same text may be sent at every cut."""

from __future__ import annotations

import pytest

from wirelint.arguments.argument_watchers import KindWatcher, MarkupWatcher, VoidWatcher
from wirelint.model import Json, Tool

DECLARED: dict[str, Json] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "s": {"type": "string"},
        "list": {
            "type": "array",
            "items": {"type": "object", "properties": {"n": {"type": "integer", "nullable": True}}},
        },
        "open": {},
    },
}

# text → the offset of the first value of a wrong type that may be converted
WRONG: dict[str, int | None] = {
    '{"n":1,"s":"x"}': None,
    '{"n":"1"': 5,
    '{"s":"x","n" : "1"': 15,
    '{"s":1': 5,
    '{"s":true': 5,
    '{"s":null': None,
    '{"s":{}': None,
    '{"n":true': None,
    '{"n":null': None,
    '{"list":"[]"': 8,
    '{"list":[{"n":null},{"n":2},{"n":"3"': 33,
    '{"open":{"n":"1","list":[{"n":"2"}]},"n":"3"': 41,
    '{"list":[[{"n":"2"}]],"other":"x"}': None,
    '{"\\u006e":"1"': 10,
    '"text"': 0,
}


@pytest.mark.parametrize(("text", "expected"), WRONG.items(), ids=WRONG)
def test_the_first_wrong_value(text: str, expected: int | None) -> None:
    for step in (1, 2, 100):
        watcher = KindWatcher(Tool("t", "/tools/0", schema=DECLARED))
        safe = 0
        for place in range(0, len(text), step):
            safe = watcher.feed(text[place : place + step])
        assert safe == (len(text) if expected is None else expected)
        assert watcher.is_suspicious == (expected is not None)


# id: (argument text, the part that may be sent)
TEXTS = {
    "plain": ('{"a": "b<c>d"}', '{"a": "b<c>d"}'),
    "at the end of a value": ('{"a": "b</parameter>"}', '{"a": "b'),
    "at the end of a key": ('{"a</arg_key>": "b"}', '{"a'),
    "several, with line ends": ('{"a": "b</parameter>\\n</function>", "c": 1}', '{"a": "b'),
    "escaped": ('{"a": "b\\u003c/parameter\\u003e"}', '{"a": "b'),
    "in the middle": ('{"a": "b</parameter> c"}', '{"a": "b</parameter> c"}'),
    "of HTML": ('{"a": "b</p>"}', '{"a": "b</p>"}'),
    "begun": ('{"a": "b</para', '{"a": "b'),
    "begun with an escape": ('{"a": "b\\u00', '{"a": "b'),
}


@pytest.mark.parametrize(("text", "leaves"), TEXTS.values(), ids=TEXTS)
def test_watching(text: str, leaves: str) -> None:
    for size in (len(text), 1, 3):
        watcher = MarkupWatcher()
        safe = [watcher.feed(text[start : start + size]) for start in range(0, len(text), size)]
        assert safe[-1] == len(leaves)
        assert safe == sorted(safe)
        assert watcher.is_suspicious is (len(leaves) < len(text) and text.endswith("}"))


def test_every_beginning_of_a_closing_tag_waits() -> None:
    """However many there are: each is looked up, not compared with every tag that there is."""
    for tag in ("</parameter>", "</tool_call>", "</arg_value>"):
        for length in range(1, len(tag)):
            assert MarkupWatcher().feed(f'{{"a": "b{tag[:length]}') == len('{"a": "b'), tag[:length]
    assert MarkupWatcher().feed('{"a": "b</parametric') == len('{"a": "b</parametric')


NAMES = frozenset({"cwd", "user"})

CASES: dict[str, tuple[str, int | None]] = {
    # text, place from which it is kept once all has come; None: it leaves
    "first": ('{"cwd":"null","a":1}', 1),
    "after another": ('{"a":1,"cwd":"null"}', 6),
    "blanks": ('{ "a": 1 , "cwd" : "None" }', 9),
    "another word": ('{"a":1,"cwd":"nullable"}', None),
    "the same beginning": ('{"cwd":"no","user":"nobody"}', None),
    "null itself": ('{"cwd":null}', None),
    "of another member": ('{"a":"null"}', None),
    "deeper": ('{"a":{"cwd":"null"},"b":[{"user":"null"}]}', None),
    "after something deeper": ('{"a":{"x":[1,2]},"user":"undefined"}', 16),
    "the second that may": ('{"cwd":"/a","user":"null"}', 11),
    "in a text": ('{"a":"\\"cwd\\":\\"null\\"","cwd":"x"}', None),
    "no object": ('["null"]', None),
    "no JSON": ("cwd null", None),
}


@pytest.mark.parametrize("name", CASES)
def test_held_text(name: str) -> None:
    text, kept = CASES[name]
    wanted = len(text) if kept is None else kept
    for size in (1, 2, 3, 5, len(text)):
        watcher = VoidWatcher(NAMES)
        safe = 0
        for start in range(0, len(text), size):
            before, safe = safe, watcher.feed(text[start : start + size])
            assert safe >= before
            assert safe <= wanted
        assert watcher.is_suspicious is (kept is not None), size
        assert safe == wanted, size


def test_a_member_is_sent_once_its_value_is_another_word() -> None:
    watcher = VoidWatcher(NAMES)
    fed = ['{"a":', "1", ",", '"cw', 'd"', ":", '"', "/", 'srv"', "}"]
    left = [watcher.feed(piece) for piece in fed]
    comma = len('{"a":1')
    assert left[:2] == [len(fed[0]), comma]
    assert left[2:7] == [comma] * 5
    assert left[7:] == [len("".join(fed[: n + 1])) for n in (7, 8, 9)]


def test_members_of_other_names_are_sent_at_once() -> None:
    watcher = VoidWatcher(NAMES)
    assert [watcher.feed(piece) for piece in ("{", '"text"', ":", '"nu')] == [1, 7, 8, 11]
