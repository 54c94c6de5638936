"""Limits of what is read of one reply, and the notes on them."""

from __future__ import annotations

import pytest

from tests.build import Call, Talk, User, as_record, schema, some
from wirelint.capture.replay import replay
from wirelint.text import prose
from wirelint.text.loops import MOST_MARKS, MOST_SEPARATORS, MarkCount, note_on, plain_from
from wirelint.text.quoting import MOST_LINES, is_unread

TOOLS = {"look": schema(q="string")}
OPENER = "<tool_call>"
CODE = "def total(items: list[int]) -> int:\n    return sum(item for item in items if item > 0)\n\n\n"
LINE = '{"path": "a/b.py", "text": "The ferry leaves at nine."}\n'
LOG = (
    "<tool_call>\n"
    '{"name": "look", "arguments": {"q": "ferry"}}\n</tool_call>\n\nIt leaves at nine, from the second pier.\n\n'
)

LOOPS = {
    "marks": OPENER * (MOST_MARKS + 1),
    "separators": OPENER + "a:1," * MOST_SEPARATORS,
    "calls": f"{OPENER}z()z()z()z()" * MOST_MARKS,
    "lines": ">>>look\n" * (MOST_MARKS + 1),
    "text": "look\n{" + '"q": 1, ' * MOST_SEPARATORS,
}
USUAL = {
    "code": CODE * 2000,
    "code behind a tag": f"Chat templates use {OPENER}.\n\n" + CODE * 600,
    "json behind a tag": f"Chat templates use {OPENER}.\n\n" + LINE * 1000,
    "numbers": "[" + "1, " * 40_000 + "1]",
    "a log of calls": LOG * 50,
    "html": '<tr><td class="a">1</td><td><b>two</b></td></tr>\n' * 2000,
}


@pytest.mark.parametrize("text", LOOPS.values(), ids=LOOPS)
def test_a_loop_is_plain_from_one_place_on_however_it_is_cut(text: str) -> None:
    text += " " * 2000
    end = some(plain_from(text, frozenset(TOOLS)))
    assert end < len(text) - 1000
    for step in (1, 8, 64, 5000):
        count = MarkCount(frozenset(TOOLS))
        for at in range(0, len(text), step):
            count.add(text[at : at + step])
        assert count.plain_from == end


@pytest.mark.parametrize("text", USUAL.values(), ids=USUAL)
def test_long_replies_are_no_loops(text: str) -> None:
    assert plain_from(text, frozenset(TOOLS)) is None


def notes(text: str = "Well.", **said: object) -> tuple[str, ...]:
    talk = Talk((User("Go on."),), text=text, tools=TOOLS, **said)  # type: ignore[arg-type]
    return some(replay(as_record(talk.record("openai.chat", False)))).notes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LOOPS["marks"] + " " * 2000, note_on(some(plain_from(LOOPS["marks"] + " " * 2000)))),
        ("<|a_1|>" * 2049, "more than 2,048 control tokens in a text of the reply; they were not checked"),
        ("one\n" * 2049, "the lines after the first 2,048 in a text of the reply count as quoted"),
        ("It is. " * 600, "the sentences between the first and the last 256 in a text of the reply were not read"),
        ("word " * 4000, "the characters of a sentence after the first 16,384 in a text of the reply were not read"),
        (
            "```tool_code\nlook(q='a')\n```\n\nThen:\n\n" * 17,
            "more than 16 calls with code fences in a text of the reply",
        ),
        ("word. " * 34_000, "the characters after the first 200,000 in a text of the reply were not read for claims"),
    ],
    ids=["markup", "tokens", "lines", "sentences", "sentence", "fences", "characters"],
)
def test_a_limit_of_a_text_makes_a_note(text: str, says: str) -> None:
    assert any(says in note for note in notes(text))


def test_a_limit_of_arguments_makes_a_note() -> None:
    assert "more than 256 JSON values; the others were not checked" in notes(calls=[Call("look", "0 " * 300)])[0]
    many = notes(calls=[Call("look", {"q": ["a"] * 401})])
    assert many == ("the arguments of look hold more than 400 values; the others were not checked for invented ones",)


@pytest.mark.parametrize(
    "text", ["It leaves at nine. " * 200, f"```python\n{CODE * 400}```", LOG * 40], ids=["prose", "code", "log"]
)
def test_usual_replies_get_no_note(text: str) -> None:
    assert notes(text) == ()


@pytest.mark.parametrize(
    "text", ["Yes. " * 511, "Yes. " * 513, "是。" * 513, "yes\n\n" * 513, "a" * 16384, "a" * 16385, "3.5" * 999]
)
def test_notes_on_unread_prose_are_those_of_reading_it(text: str) -> None:
    assert prose.unread(text) == prose.read(text).unread


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_beyond_the_limit_are_unread(end: str) -> None:
    text = f"line{end}" * (MOST_LINES - 1)
    assert not is_unread(text, len(text))
    assert is_unread(text + f"one{end}last", len(text) + 10)
