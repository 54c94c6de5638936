from __future__ import annotations

import json

import pytest

from tests.shared import SHARED
from wirelint.text.thinking import find, find_in_argument, literals

# id: (text, what was thought, what is left of the text after it, evidence)
FOUND = {
    "pair": ("<think>a b</think>c", "a b", "c", "opened"),
    "pair after white space": ("\n <think>a</think>c", "a", "c", "opened"),
    "first closer wins": ("<think>a</think>b</think>c", "a", "b</think>c", "opened"),
    "any case of a prompted tag": ("<Thinking>a</THINKING>c", "a", "c", "opened"),
    "never closed": ("<think>\na", "\na", "", "opened"),
    "closer alone": ("a b.\n</think>\nc", "a b.", "\nc", "closed"),
    "closer in front": ("</think>c", "", "c", "closed"),
    "closer at the end": ("a b\n</think>", "a b", "", "closed"),
    "closer of kimi": ("a b◁/think▷c", "a b", "c", "closed"),
    "in the middle": ("Intro.\n<think>\na\n</think>\nc", "\na\n", "\nc", "inner"),
    "opened twice": ("<think>\n<think>a</think>c", "a", "c", "opened"),
    "any case, the first letter": ("<Thinking>a</Thinking>c", "a", "c", "opened"),
    "escaped": ("&lt;think&gt;a&lt;/think&gt;c", "a", "c", "opened"),
    "full-width bars": ("<｜START_THINKING｜>a<｜END_THINKING｜>c", "a", "c", "opened"),
    "a suffix of the tokenizer": ("<think:ab-12>a</think:ab-12>c", "a", "c", "opened"),
    "effort": ("<ifm|think_faster>a</ifm|think_faster>c", "a", "c", "opened"),
    "gemma's empty thought": ("<|channel>thought\n<channel|>c", "", "c", "opened"),
    "blanks after tokens": ("<|channel|> analysis<|message|> a<|end|>c", " a", "c", "opened"),
    "recipient": ("<|start|>assistant to=self<|message|>a<|eom|>c", "a", "c", "opened"),
    "web page": ('<details type="reasoning" done="true">a</details>c', "a", "c", "opened"),
    "harmony without tokens, any word": ("analysisGreet back.assistantfinalhi", "Greet back.", "hi", "residue"),
    "harmony without tokens": ("analysisWe add.assistantfinalTwo.", "We add.", "Two.", "residue"),
    "gemma without tokens": ("thought\nThe user wants a sum of two.", "The user wants a sum of two.", "", "residue"),
}
NOT_FOUND = {
    "prose": "I think reasoning about thought is analysis.",
    "inline code": "`<think>` and `</think>` frame it",
    "fence": "```\n<think>\na\n</think>\n```",
    "begins with a word on it": "<think> is a tag",
    "mention": "The </think> tag closes it",
    "pair in a sentence": "It says <think>a</think> first",
    "comma after": "R1 sends </think>, then the answer",
    "introduced": "Like this:\n<think>\na\n</think>",
    "placeholder body": "Shape\n<think>\n...\n</think>",
    "words": "thought\nthrough",
    "title": "analysis\nof two moons",
    "escaped, in the middle": "<p>\n&lt;think&gt;\na\n&lt;/think&gt;\n</p>",
    "escaped, the closer": "a b.\n&lt;/think&gt;\nc",
    "an element with attributes": '<r><thinking n="1">a</thinking>\n</r>',
    "a call in the channel": "<|channel|>analysis to=functions.f <|constrain|>json<|message|>{}",
    "a type in the channel": "<|channel|>analysis <|constrain|>xml<|message|>a",
    "an identifier": "analysisResults = 3",
    "HTML": '<details type="x">a</details>',
    "shared closer": "All right.</details>",
    "nothing": "",
}


@pytest.mark.parametrize(("text", "thought", "rest", "evidence"), FOUND.values(), ids=FOUND)
def test_found(text: str, thought: str, rest: str, evidence: str) -> None:
    found = find(text)
    assert found is not None
    assert (text[slice(*found.body)], text[found.end :], found.evidence) == (thought, rest, evidence)


@pytest.mark.parametrize("text", NOT_FOUND.values(), ids=NOT_FOUND)
def test_not_found(text: str) -> None:
    assert find(text) is None


def test_after_a_tool_block() -> None:
    text = "CALL <think>a</think>c"
    assert find(text) is None
    found = find(text, after=(4,))
    assert found is not None
    assert found.start == 5


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<think>a</think>Oslo", True),
        ("a b.\n</think>\nOslo", True),
        ("<think>a", False),
        ("<thinking>a</thinking>Oslo", False),
        ("the <think> tag", False),
        ("</think>", False),
    ],
)
def test_in_an_argument(value: str, expected: bool) -> None:
    assert (find_in_argument(value) is not None) is expected


def test_what_a_request_would_hold() -> None:
    thinking, word = find("<think>a</think>b"), find("analysisWe add.assistantfinalTwo.")
    assert thinking is not None
    assert word is not None
    assert "</think" in literals(thinking)
    assert literals(word) == ()


@pytest.mark.skipif(not SHARED.is_dir(), reason="the vectors are not beside this checkout")
def test_vectors() -> None:
    with (SHARED / "vectors.jsonl").open() as lines:
        vectors = [vector for vector in map(json.loads, lines) if vector.get("expect") == "reasoning"]
    assert vectors
    for vector in vectors:
        found = find(vector["text"])
        assert found is not None, vector["case"]
        assert vector["text"][slice(*found.body)].strip() == (vector.get("reasoning") or "").strip(), vector["case"]
