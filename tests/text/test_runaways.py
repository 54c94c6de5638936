from __future__ import annotations

import pytest

from wirelint.text.loops import find_runaway

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
