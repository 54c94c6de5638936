"""What a text of tags without end is: told by the text alone, however it comes, and never of a text that is none."""

from __future__ import annotations

import pytest

from tests.bench import payloads
from tests.fuzz.shapes import units
from wirelint.dialects import FAMILIES
from wirelint.text.control_tokens import EDGES, SURE
from wirelint.text.loops import MOST_MARKS, REACH, STEP, MarkCount, find_runaway, plain_from
from wirelint.text.thinking import REASONING_TAGS

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


@pytest.mark.parametrize("token", sorted(SURE | EDGES | {tag.name for tag in REASONING_TAGS if tag.name[0] in "<[◁"}))
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


def test_units_of_all_families_are_shapes() -> None:
    assert len(units()) > 10 * len(FAMILIES)


# id: (text, the label at which it goes on as the user; empty where it does not)
CASES = {
    "a whole turn, and the next answer": ("Two.\n\nHuman: And Venus has how many?\n\nAssistant: None.", "Human"),
    "the label at the end": ("Two.\n\nHuman:", "Human"),
    "a question at the end": ("Two.\n\nHuman: And how many has Venus?", "Human"),
    "vicuna": ("Two.\n\nUSER: And how about Venus?\nASSISTANT: None.", "USER"),
    "alpaca": ("Two.\n\n### Instruction: Now count the moons of Venus.\n\n### Response: None.", "Instruction"),
    "lines": ("Two.\nuser\nAnd how many has Venus?\nassistant\nNone.", "user"),
    "gemma's lines": ("Two.\nuser\nAnd how many has Venus?\nmodel\nNone.", "user"),
    "a play": ("Robot: Two.\n\nHuman: And how many has Venus?\n\nRobot: None.", ""),
    "a play in bold": ("**Ida:** Two.\n\nHuman: And how many has Venus?", ""),
    "a table of two": ("Compared:\n\nHuman: slow and careful\n\nAssistant: fast and blind", ""),
    "at the beginning": ("Human: all too human, is it not?", ""),
    "a statement at the end": ("Two.\n\nHuman: the only species that counts moons.", ""),
    "a list of roles": ("Roles are these.\nuser\nadmin\nguest", ""),
    "roles without a sentence": ("admin\nuser\nAnd how many?\nassistant\nx", ""),
    "inline code": ("Two.\n\n`Human: And how many has Venus?`", ""),
    "a fence": ("So:\n```\nx\n\nHuman: And how many has Venus?\n\nAssistant: None.\n```", ""),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("text", "label"), CASES.values(), ids=CASES)
def test_runaways(text: str, label: str) -> None:
    found = find_runaway(text)
    assert (found.label if found else "") == label
    if found is not None:
        assert text[found.start :].startswith(label)
