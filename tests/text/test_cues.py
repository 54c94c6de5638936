"""The first look never rules out what the pattern behind it would find."""

from __future__ import annotations

import re

import pytest

from tests.shared import SHARED, traffic
from wirelint.capture.replay import replay
from wirelint.claims import evidence
from wirelint.text import asking
from wirelint.text.prose import mentions

LOOKS: dict[str, tuple[re.Pattern[str], tuple[tuple[str, ...], ...]]] = {
    "calls": (asking._CALLS, (asking._CALL_CUES,)),
    "tokens": (asking._TOKENS, (asking._TOKEN_CUES,)),
    "tags": (asking._TAGS, asking._TAG_CUES),
    "results": (evidence._RESULT_TEXT, ((*evidence._RESULT_WORDS.words, *evidence._RESULT_MARKS.words),)),
    "summaries": (evidence._SUMMARY, (evidence._SUMMARY_WORDS,)),
}
FOUND: dict[str, tuple[str, ...]] = {
    "calls": ("Tool calls", "a toolcall", "FUNCTION-CALLING", "tool_use", "an \u0130nvocation", "to \u0131nvoke it"),
    "tokens": (
        "Which STOP tokens end it?", "eos_token", "a Tokenizer", "it tokenises", "Chat-Templates", "the prompt_format",
        "prompt template", "ChatML", "Harmony response", "a jinja2 file", "End-of-turn", "the end of sequence",
    ),
    "tags": (
        "thinking tags", "the reason-token", "THOUGHTS: none; thought markers", "scratchpad delimiters", "xml blocks",
        "reflection` elements", "Chain-of-thought sections", "CoT traces", "reasoning\u201d block",
    ),
    "results": (
        "<tool_response>", "<Function_Results >", "<observation>", "Observation: 4", "[read_file for a.md] Result:",
        "Tool result: 4", "**Command output**", "[Function Responses]", "<TOOL_OUTPUT a='1'>",
    ),
    "summaries": (
        "continued from a previous conversation", "Conversation Summary", "a summary of our session", "<summary>",
        "compacted", "earlier in this session", "Progress so far", "work completed so far",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in FOUND.items() for text in texts])
def test_what_the_pattern_finds_is_mentioned(name: str, text: str) -> None:
    pattern, cues = LOOKS[name]
    assert pattern.search(text)
    assert mentions(text, *cues)


def test_one_of_each_group() -> None:
    assert mentions("An Ox and a mare", ("ox", "cow"), ("mare",))
    assert not mentions("An ox", ("ox", "cow"), ("mare",))


@pytest.mark.skipif(not SHARED.is_dir(), reason="no recordings beside this checkout")
def test_nothing_recorded_is_ruled_out() -> None:
    texts = {
        message.text
        for _, record in traffic(("openai.chat", "anthropic.messages"))
        if (exchange := replay(record)) is not None and exchange.request is not None
        for message in exchange.request.messages
    }
    assert texts
    for pattern, cues in LOOKS.values():
        assert [text for text in texts if pattern.search(text) and not mentions(text, *cues)] == []
