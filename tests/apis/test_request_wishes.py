"""What requests say about their replies: which tools may be called, how long they may be, whether tokens are counted."""

from __future__ import annotations

from typing import Any

import pytest

from wirelint.apis import by_name, read_request
from wirelint.model import Request, ToolChoice

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
ONE = {"type": "function", "function": {"name": "a"}}


def asked(api: str, **body: Any) -> Request:
    found = by_name(api)
    assert found is not None
    return read_request(found, {**CHAT, **body}, "/")


LIMITS: dict[str, tuple[str, dict[str, Any], int | None]] = {
    "none": ("openai.chat", {}, None),
    "chat": ("openai.chat", {"max_tokens": 7}, 7),
    "chat, by its new name": ("openai.chat", {"max_completion_tokens": 0}, 0),
    "a word": ("openai.chat", {"max_tokens": "7"}, None),
    "completions": ("openai.completions", {"prompt": "Hi", "max_tokens": 7}, 7),
    "deepinfra": ("deepinfra.inference", {"input": "Hi", "max_new_tokens": 7}, 7),
    "mistral": ("mistral.chat", {"max_tokens": 7}, 7),
    "messages": ("anthropic.messages", {"max_tokens": 7}, 7),
    "responses": ("openai.responses", {"input": "Hi", "max_output_tokens": 7}, 7),
    "cohere": ("cohere.chat", {"max_tokens": 7}, 7),
    "converse": ("bedrock.converse", {"inferenceConfig": {"maxTokens": 7}}, 7),
    "gemini": ("google.generate_content", {"generationConfig": {"maxOutputTokens": 7}}, 7),
    "gemini, in snake case": ("google.generate_content", {"generation_config": {"max_output_tokens": 7}}, 7),
    "ollama": ("ollama.chat", {"options": {"num_predict": 7}}, 7),
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_limit(name: str) -> None:
    api, body, limit = LIMITS[name]
    assert asked(api, **body).max_tokens == limit


WISHES: dict[str, tuple[dict[str, Any], bool | None]] = {
    "nothing": ({}, None),
    "null": ({"stream_options": None}, None),
    "other options": ({"stream_options": {"include_obfuscation": False}}, None),
    "asked": ({"stream_options": {"include_usage": True}}, True),
    "declined": ({"stream_options": {"include_usage": False}}, False),
    "no boolean": ({"stream_options": {"include_usage": "yes"}}, None),
    "a router's": ({"usage": {"include": True}}, True),
}


@pytest.mark.parametrize("name", WISHES)
def test_whether_tokens_are_counted(name: str) -> None:
    body, wish = WISHES[name]
    assert asked("openai.chat", **body).wants_usage is wish


def allowed(mode: str, *tools: Any) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(tools)}}


CHOICES: dict[str, tuple[str, Any, ToolChoice]] = {
    "allowed": ("openai.chat", allowed("auto", ONE), ToolChoice("auto", names=("a",))),
    "allowed and required": ("openai.chat", allowed("required", ONE), ToolChoice("required", names=("a",))),
    "allowed, without a name": ("openai.chat", allowed("auto", ONE, {"type": "web_search"}), ToolChoice("auto")),
    "allowed, of no tools": ("openai.chat", allowed("auto"), ToolChoice("auto")),
    "allowed, broken": ("openai.chat", {"type": "allowed_tools", "allowed_tools": 3}, ToolChoice("auto")),
    "responses": (
        "openai.responses",
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "a"}]},
        ToolChoice("required", names=("a",)),
    ),
    "responses, a provider's": (
        "openai.responses",
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}, {"type": "function", "name": "a"}]},
        ToolChoice("auto", names=("a",)),
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_allowed_tools(name: str) -> None:
    api, choice, expected = CHOICES[name]
    body = {"input": "Hi"} if api == "openai.responses" else {}
    assert asked(api, tool_choice=choice, **body).tool_choice == expected
