"""The watcher of words for nothing sends the same text at every cut."""

from __future__ import annotations

import pytest

from wirelint.arguments.argument_repairs import VoidWatcher

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
def test_from_where_on_arguments_are_kept(name: str) -> None:
    text, kept = CASES[name]
    wanted = len(text) if kept is None else kept
    for size in (1, 2, 3, 5, len(text)):
        watcher = VoidWatcher(NAMES)
        safe = 0
        for start in range(0, len(text), size):
            before, safe = safe, watcher.feed(text[start : start + size])
            assert safe >= before
            assert safe <= wanted
        assert watcher.suspicious is (kept is not None), size
        assert safe == wanted, size


def test_a_member_leaves_as_soon_as_its_value_is_another_word() -> None:
    watcher = VoidWatcher(NAMES)
    fed = ['{"a":', "1", ",", '"cw', 'd"', ":", '"', "/", 'srv"', "}"]
    left = [watcher.feed(piece) for piece in fed]
    comma = len('{"a":1')
    assert left[:2] == [len(fed[0]), comma]
    assert left[2:7] == [comma] * 5
    assert left[7:] == [len("".join(fed[: n + 1])) for n in (7, 8, 9)]


def test_a_member_of_another_name_leaves_when_its_name_is_over() -> None:
    watcher = VoidWatcher(NAMES)
    assert [watcher.feed(piece) for piece in ("{", '"text"', ":", '"nu')] == [1, 7, 8, 11]
