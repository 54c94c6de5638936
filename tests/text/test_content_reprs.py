"""Content parts that were printed."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelint.text.content_reprs import LiteralReader, find_reprs, unwrap

PARTS = st.lists(st.text(max_size=12), min_size=1, max_size=3)


@given(PARTS)
def test_what_was_printed_is_found_and_undone(texts: list[str]) -> None:
    printed = repr([{"type": "text", "text": text} for text in texts])
    assert [(one.start, one.end, one.whole) for one in find_reprs(printed)] == [(0, len(printed), True)]
    said = "".join(texts)
    if not find_reprs(said):
        assert unwrap(printed) == said


RAW = {
    "in a template's turn": ("<|User|>[{'type': 'text', 'text': 'Read.'}]<|Assistant|>", "<|User|>Read.<|Assistant|>"),
    "behind a header": (
        "<|im_start|>user\n[{'type': 'text', 'text': 'a'}, {'type': 'text', 'text': 'b'}]<|im_end|>\n",
        "<|im_start|>user\nab<|im_end|>\n",
    ),
    "nothing, before calls": ("<|im_middle|>[{'type': 'text', 'text': ''}]<|calls|>", "<|im_middle|><|calls|>"),
    "between instructions": ("<s>[INST] [{'type': 'text', 'text': 'Hi'}] [/INST]", "<s>[INST] Hi [/INST]"),
    "in two turns": (
        "Human: [{'type': 'text', 'text': 'Hi'}]\n\nAssistant: [TextBlock(text='Ho', type='text')]\n\nHuman: So?",
        "Human: Hi\n\nAssistant: Ho\n\nHuman: So?",
    ),
    "wrapped thrice": (repr([{"type": "text", "text": repr([{"type": "text", "text": "x"}])}]), "x"),
}


@pytest.mark.parametrize(("text", "wanted"), RAW.values(), ids=RAW.keys())
def test_printed_parts_in_a_prompt_are_unwrapped(text: str, wanted: str) -> None:
    assert unwrap(text) == wanted
    assert find_reprs(wanted) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain words",
        "[1, 2]",
        "[{'type': 'text'}]",
        "x = [{'type': 'text', 'text': 'a'}]",
        "<|im_start|>tool\n[{'type': 'text', 'text': 'a'}]<|im_end|>",
        "The log:\n<|User|>[{'type': 'text', 'text': 'a'}]<|Assistant|>",
        "Behold:\n\n[{'type': 'text', 'text': 'a'}]",
        "One.\n\n[{'type': 'text', 'text': ''}]",
        '{"type": "object", "text": "a"}',
        "[" * 5000,
        "[{'type': 'text', 'text': 'a'}" * 50,
    ],
    ids=lambda text: text[:30],
)
def test_other_texts_stay(text: str) -> None:
    assert find_reprs(text) == ()
    assert unwrap(text) == text


VALUES = st.recursive(
    st.none() | st.booleans() | st.text(max_size=8) | st.integers(-999, 999),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_what_python_and_json_print_is_read(value: Any) -> None:
    for text in (repr(value), json.dumps(value), json.dumps(value, ensure_ascii=False)):
        if any(mark in text for mark in ("\u2028", "\x85")):
            continue
        reader = LiteralReader(f"{text} and more")
        assert reader.read() == (value if text.startswith(("[", "{", "'", '"')) else ast.literal_eval(repr(value)))
        assert not reader.failed
        assert reader.position == len(text)


CASES = {
    "a constructor": ("B(text='a', n=None)", {"text": "a", "n": None}, True),
    "one inside of a list": ("[a.B(x=True), C()]", [{"x": True}, {}], True),
    "a tuple": ("(1, 'a')", [1.0, "a"], True),
    "json": ('{"a": [null, true, -1.5e3, "\\ud83d\\ude00"]}', {"a": [None, True, -1500.0, "😀"]}, False),
    "python": (r"{'it\'s': '\x41\u00e9\U0001f600\n'}", {"it's": "Aé😀\n"}, True),
    "the same key twice": ('{"a": 1, "a": 2}', {"a": 2.0}, False),
}
NONE = [
    "",
    "[",
    "[1",
    "[1,]",
    "[1 2]",
    "{1: 2}",
    "{'a'}",
    "{'a': }",
    "'a",
    '"a\n"',
    "name",
    "B(",
    "B(1)",
    "B(a=)",
    "[" * 99,
    "1x",
]


@pytest.mark.parametrize(("text", "wanted", "pythonic"), CASES.values(), ids=CASES.keys())
def test_literals_are_read(text: str, wanted: Any, pythonic: bool) -> None:
    reader = LiteralReader(f"..{text}", 2)
    assert reader.read() == wanted
    assert (reader.failed, reader.pythonic, reader.position) == (False, pythonic, len(text) + 2)


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_literal(text: str) -> None:
    reader = LiteralReader(text)
    assert reader.read() is None
    assert reader.failed
