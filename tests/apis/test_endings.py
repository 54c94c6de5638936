"""What finish reasons and counts say about what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import Talk, User, read
from wirelint.apis.traits import ended_by_itself, has_stop_words, output_tokens
from wirelint.model import Choice

REASONS = {
    "stop": True, "end_turn": True, "STOP": True, "COMPLETE": True, "completed": True, "tool_calls": True,
    "length": False, "MAX_TOKENS": False, "content_filter": False, "SAFETY": False, "refusal": False, "pause_turn": False,
    "stop_sequence": False, "error": False, "": False, None: False,
}  # fmt: skip


@pytest.mark.parametrize("reason", REASONS)
def test_by_itself(reason: str | None) -> None:
    assert ended_by_itself(Choice(0, (), reason, "")) is REASONS[reason]


STOPS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "none": ("openai.chat", {}, False),
    "null": ("openai.chat", {"stop": None}, False),
    "an empty list": ("openai.chat", {"stop": []}, False),
    "a word": ("openai.chat", {"stop": "END"}, True),
    "sequences": ("anthropic.messages", {"stop_sequences": ["\n\n"]}, True),
    "Converse": ("bedrock.converse", {"inferenceConfig": {"stopSequences": ["END"]}}, True),
    "Gemini": ("google.generate_content", {"generationConfig": {"stopSequences": ["END"]}}, True),
    "Ollama": ("ollama.chat", {"options": {"stop": ["END"]}}, True),
}


@pytest.mark.parametrize("name", STOPS)
def test_stop_words(name: str) -> None:
    api, more, expected = STOPS[name]
    request = read(Talk((User("Hi."),), "Hi.", request=more).record(api, False)).request
    assert request is not None
    assert has_stop_words(request) is expected


COUNTS: dict[str, tuple[Any, int | None]] = {
    "none": (None, None),
    "OpenAI": ({"prompt_tokens": 9, "completion_tokens": 7}, 7),
    "with hidden reasoning": ({"completion_tokens": 70, "completion_tokens_details": {"reasoning_tokens": 64}}, 6),
    "Responses": ({"output_tokens": 70, "output_tokens_details": {"reasoning_tokens": 70}}, 0),
    "Gemini": ({"promptTokenCount": 9, "candidatesTokenCount": 5}, 5),
    "Cohere": ({"tokens": {"input_tokens": 4, "output_tokens": 3}}, 3),
    "Converse": ({"inputTokens": 3, "outputTokens": 2}, 2),
    "nothing of the kind": ({"cost": 0.1}, None),
}


@pytest.mark.parametrize("name", COUNTS)
def test_tokens_said(name: str) -> None:
    usage, expected = COUNTS[name]
    assert output_tokens(usage) == expected
