"""What a text of tags without end is: told by the text alone, however it comes, and never of a text that is none."""

from __future__ import annotations

import pytest

from tests.bench import payloads
from wirelint.text.control_tokens import EDGES, SURE
from wirelint.text.loops import MOST_MARKS, REACH, STEP, MarkCount, plain_from
from wirelint.text.thinking import TAGS

NAMES = frozenset({"look", "run"})
MARKS = (
    "</think>",
    "<tool_call>",
    "[TOOL_CALLS]",
    "&lt;tool_call&gt;",
    "\nlook(",
    "<look>",
    " functions.x:0",
    "\nAction: ",
)


@pytest.mark.parametrize("token", sorted(SURE | EDGES | {tag.name for tag in TAGS if tag.name[0] in "<[◁"}))
def test_every_token_and_tag_is_a_mark(token: str) -> None:
    if token == '<|"|>':
        return  # a quotation mark of one dialect, which stands in values
    assert plain_from(f"{token} and " * 1000) is not None


@pytest.mark.parametrize("unit", MARKS)
@pytest.mark.parametrize("step", [1, 8, 64, 1000])
def test_the_cuts_do_not_matter(unit: str, step: int) -> None:
    text = f"Here it is. {unit}and so on " * 400
    whole, count = plain_from(text, NAMES), MarkCount(NAMES)
    found = [count.add(text[at : at + step]) for at in range(0, len(text), step)]
    assert whole is not None
    assert whole % STEP == 0
    assert {one for one in found if one is not None} == {whole}
    assert text[: whole - STEP - REACH].count(unit) <= MOST_MARKS


@pytest.mark.parametrize(
    "text",
    [
        payloads.text(200_000),
        '<div class="a"><p>Some <b>bold</b> text</p><ul><li>one</li></ul></div>\n' * 3000,
        "if (a < b && c[i] <= d) { x = v[i]; List<int> y; y <<= 2; } // a -> b\n" * 3000,
        '{"id": 1, "name": "a", "items": [1, 2, {"x": "y"}]},\n' * 3000,
        "| a | b |\n|---|---|\n| `x` | **y** |\n" * 3000,
        "```python\nfor one in some:\n    say(one)\n```\n" * 1000,
    ],
    ids=["prose", "html", "code", "json", "markdown", "fences"],
)
def test_other_text_has_no_marks(text: str) -> None:
    assert plain_from(text, NAMES) is None
    assert MarkCount(NAMES).add(text) is None


def test_many_calls_are_no_loop() -> None:
    call = '<tool_call>\n{"name": "look", "arguments": {"q": "a"}}\n</tool_call>\n'
    assert plain_from(call * 40, NAMES) is None
