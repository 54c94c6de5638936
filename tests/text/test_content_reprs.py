"""Content parts that were printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelint.text.content_reprs import find_reprs, unwrap

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
