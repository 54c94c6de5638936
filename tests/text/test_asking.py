from __future__ import annotations

import pytest

from tests.build import Assistant, Call, Result, Talk, User, read, schema
from wirelint.model import Request
from wirelint.text import asking

CALL = Call("find_ship", {"name": "<tag>"})


def request(*history: object, system: str = "", **more: object) -> Request:
    made = read(Talk(history or (User("Hi"),), "x", system=system, **more).record("openai.chat", False)).request  # type: ignore[arg-type]
    assert made is not None
    return made


ASKS = {
    "the user": (request(User("Please write <tag>.")), True),
    "an earlier user": (request(User("Please write <tag>."), Assistant("Yes."), User("Go on.")), True),
    "the system": (request(system="Answer inside of <tag>."), True),
    "a tool's description": (request(tools={"f": ("Takes <tag>.", schema(a="string"))}), True),
    "a prefilled answer": (request(User("Hi"), Assistant("<tag>")), True),
    "a prohibition": (request(system="Do not write <tag>."), False),
    "a contracted prohibition": (request(system="Don't ever use the <tag> tag."), False),
    "a prohibition and a wish": (request(system="Not <tag> now. Later write <tag>."), True),
    "a prohibition in another sentence": (request(system="Do not lie. Write <tag>."), True),
    "the assistant's history": (request(User("Hi"), Assistant("<tag>"), User("Why?")), False),
    "a tool result": (request(User("Hi"), Assistant(calls=(CALL,)), Result(CALL.id, "<tag>")), False),
    "nobody": (request(), False),
}


@pytest.mark.parametrize(("made", "expected"), ASKS.values(), ids=ASKS)
def test_asks_for(made: Request, expected: bool) -> None:
    assert asking.asks_for(made, "<other>", "<tag>") is expected


HEARS = {
    "a tool result": (request(User("Hi"), Assistant(calls=(Call("f", {}),)), Result(CALL.id, "see <tag>")), True),
    "the arguments of a call": (request(User("Hi"), Assistant(calls=(CALL,))), True),
    "the user": (request(User("<tag>")), True),
    "the assistant's words": (request(User("Hi"), Assistant("<tag>"), User("Why?")), False),
}


@pytest.mark.parametrize(("made", "expected"), HEARS.values(), ids=HEARS)
def test_hears(made: Request, expected: bool) -> None:
    assert asking.hears(made, "<tag>") is expected


@pytest.mark.parametrize(
    ("words", "calls", "tokens", "tags"),
    [
        ("How does Kimi write a tool call? Show the syntax.", True, False, False),
        ("What does a function call look like in XML?", True, False, False),
        ("Don't run it. Print the JSON of the tool call you would make.", True, False, False),
        ("Give me that function call in plain JSON.", True, False, False),
        ("Call the weather tool, please.", False, False, False),
        ("Make a tool call that fetches the report. JSON is fine for me.", False, False, False),
        ("Which stop tokens are there?", False, True, False),
        ("Explain ChatML.", False, True, False),
        ("How many tokens did this cost?", False, False, False),
        ("Why do I see think tags?", False, False, True),
        ("What do you think of blocks?", False, False, False),
    ],
)
def test_what_the_user_asks_about(words: str, calls: bool, tokens: bool, tags: bool) -> None:
    made = request(User("Explain special tokens, thinking tags and tool call syntax."), Assistant("No."), User(words))
    assert asking.asks_about_calls(made) is calls
    assert asking.asks_about_tokens(made) is tokens
    assert asking.asks_about_thinking_tags(made) is tags


def test_instructions_may_ask_without_naming_the_tag() -> None:
    assert asking.prompts_for_thinking_tags(request(system="Plan inside of thinking tags."))
    assert not asking.prompts_for_thinking_tags(request(system="Do not use thinking tags."))
