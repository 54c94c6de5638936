from __future__ import annotations

import pytest

from tests.build import Assistant, Call, Talk, User, read, schema
from wirelint import dialects
from wirelint.text.markup import Leak, blame, call_spans, leaks, siblings

TOOLS = {"find_ship": schema(name="string")}
ONE = '<tool_call>\n{"name": "find_ship", "arguments": {"name": "Aurora"}}\n</tool_call>'
V31 = (
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find_ship<｜tool▁sep｜>{"name":"Aurora"}<｜tool▁call▁end｜>'
    "<｜tool▁calls▁end｜>"
)
INVOKE = '<invoke name="find_ship">\n<parameter name="name">Aurora</parameter>\n</invoke>'


def found(text: str, **more: object) -> list[Leak]:
    talk = Talk(**{"history": (User("Where?"),), "text": text, "tools": TOOLS, **more})  # type: ignore[arg-type]
    return list(leaks(read(talk.record("openai.chat", False))))


def test_a_declared_call_can_be_promoted() -> None:
    (leak,) = found(f"So: {ONE}")
    assert (leak.names, leak.span, leak.certainty) == (("find_ship",), (4, 4 + len(ONE)), "high")
    assert leak.promotable
    assert leak.declared


PROMOTION = {
    "cut off": {"text": ONE[:-30]},
    "not declared": {"text": V31.replace("find_ship", "sink_ship")},
    "one of two not declared": {"text": f"{ONE}\n{ONE.replace('find_ship', 'sink_ship')}"},
    "forbidden": {"text": ONE, "tool_choice": "none"},
    "structured calls beside it": {"text": ONE, "calls": (Call("find_ship", {"name": "B"}),)},
    "fenced": {"text": f"```\n{ONE}\n```"},
    "a draft": {"text": "In Oslo.", "reasoning": ONE},
    "the prompt sets up the protocol": {"text": ONE, "system": "Write <tool_call>{…}</tool_call>."},
}


@pytest.mark.parametrize("more", PROMOTION.values(), ids=PROMOTION)
def test_never_promoted(more: dict[str, object]) -> None:
    (leak,) = found(**more)  # type: ignore[arg-type]
    assert not leak.promotable


def test_the_same_call_is_a_duplicate() -> None:
    (same,) = found(ONE, calls=(Call("find_ship", {"name": "Aurora"}),))
    (other,) = found(ONE, calls=(Call("find_ship", {"name": "Beagle"}),))
    assert same.duplicate
    assert not other.duplicate


def test_siblings_are_parted_by_words_only() -> None:
    text = f"{ONE}\n\n{ONE}<|im_end|>\n{ONE} and {ONE}"
    assert [len(run) for run in siblings(text, dialects.find(text))] == [3, 1]


def test_an_earlier_leak_in_the_history_excuses_nothing() -> None:
    (leak,) = found(ONE, history=(User("Where?"), Assistant(ONE), User("Again, please.")))
    assert leak.certainty == "high"


def test_raw_endpoints_are_left_alone() -> None:
    record = Talk((User("Where?"),), ONE, tools=TOOLS).record("openai.chat", False)
    exchange = read(record)
    object.__setattr__(exchange, "api", "openai.completions")
    assert list(leaks(exchange)) == []


@pytest.mark.parametrize(
    ("text", "model", "layer"),
    [
        (ONE, "Qwen/Qwen3-32B", "gateway"),
        (ONE, "gpt-4o", "model"),
        (ONE, "acme-1", "gateway"),
        (V31, "deepseek-chat", "gateway"),
        (V31, "gemini-2.5-pro", "model"),
        (f"court\n{INVOKE}", "claude-opus-4-5", "model"),
        (f"<function_calls>\n{INVOKE}\n</function_calls>", "claude-opus-4-5", "gateway"),
    ],
)
def test_blame(text: str, model: str, layer: str) -> None:
    (leak,) = found(text)
    assert blame(leak, model) == layer


def test_call_spans_cover_quoted_calls_too() -> None:
    request = read(Talk((User("Where?"),), "x", tools=TOOLS).record("openai.chat", False)).request
    assert request is not None
    assert list(call_spans(f"`{ONE}`", request)) == [(1, 1 + len(ONE))]
    assert list(call_spans("a < b", request)) == []
