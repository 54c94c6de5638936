"""The SDKs as they are used by agents. What they make of a reply is told in a few words."""

from __future__ import annotations

from typing import Any

from wirelint.launch.demo.steps import QUESTION, SEARCH, Json, Step

KEY = "sk-demo-0000000000000000000000000000"


class MissingSdkError(RuntimeError):
    """An SDK that the demonstration drives is not installed."""


def drive(step: Step, base_url: str) -> str:
    """Runs a step against a proxy and says what the client saw. Errors of the SDK are part of what it saw."""
    return _openai(step, base_url) if step.sdk == "openai" else _anthropic(step, base_url)


def _openai(step: Step, base_url: str) -> str:
    try:
        import openai
    except ImportError as error:
        raise MissingSdkError("openai") from error
    function = {"name": SEARCH["name"], "description": SEARCH["description"], "parameters": SEARCH["schema"]}
    tools: Any = [{"type": "function", "function": function}]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    asked: Any = {"stream_options": {"include_usage": True}} if step.stream else {}
    with openai.OpenAI(base_url=f"{base_url}/v1", api_key=KEY, max_retries=0, timeout=step.patience) as client:

        def ask() -> tuple[str, list[Json]]:
            answer: Any = client.chat.completions.create(
                model=step.model or "acme-large",
                messages=messages,
                tools=tools,
                stream=step.stream,
                extra_headers=dict(step.headers),
                **asked,
            )
            return _openai_stream(answer) if step.stream else _openai_whole(answer)

        try:
            text, calls = ask()
            if step.mangle is not None and calls:
                for call in calls:
                    call["id"] = step.mangle(call["id"])
                messages += [
                    {"role": "assistant", "content": text or None, "tool_calls": calls},
                    *({"role": "tool", "tool_call_id": call["id"], "content": "2 notes"} for call in calls),
                ]
                text, calls = ask()
        except (openai.OpenAIError, ValueError) as error:
            return f"the SDK raised {type(error).__name__}"
    return _told(text, [call["function"]["name"] for call in calls])


def _openai_whole(answer: Any) -> tuple[str, list[Json]]:
    message = answer.choices[0].message
    return message.content or "", [call.model_dump() for call in message.tool_calls or ()]


def _openai_stream(chunks: Any) -> tuple[str, list[Json]]:
    text: list[str] = []
    calls: dict[int, Json] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            text.append(choice.delta.content or "")
            for piece in choice.delta.tool_calls or ():
                blank = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                call = calls.setdefault(piece.index or 0, blank)
                call["id"] = call["id"] or piece.id or ""
                call["function"]["name"] = call["function"]["name"] or piece.function.name or ""
                call["function"]["arguments"] += piece.function.arguments or ""
    return "".join(text), list(calls.values())


def _anthropic(step: Step, base_url: str) -> str:
    try:
        import anthropic
    except ImportError as error:
        raise MissingSdkError("anthropic") from error
    tool = {"name": SEARCH["name"], "description": SEARCH["description"], "input_schema": SEARCH["schema"]}
    with anthropic.Anthropic(base_url=base_url, api_key=KEY, max_retries=0, timeout=step.patience) as client:
        request: Any = {
            "model": step.model or "acme-large",
            "max_tokens": 512,
            "messages": [{"role": "user", "content": QUESTION}],
            "tools": [tool],
            "extra_headers": dict(step.headers),
        }
        try:
            if step.stream:
                with client.messages.stream(**request) as stream:
                    message = stream.get_final_message()
            else:
                message = client.messages.create(**request)
        except (anthropic.AnthropicError, ValueError, AssertionError, RuntimeError) as error:
            return f"the SDK raised {type(error).__name__}"
    text = "".join(block.text for block in message.content if block.type == "text")
    return _told(text, [block.name for block in message.content if block.type == "tool_use"])


def _told(text: str, calls: list[str]) -> str:
    words = " ".join(text.split())
    shown = f"“{words[:70]}{'…' if len(words) > 70 else ''}”" if words else ""
    return " and ".join(part for part in (shown, *(f"a call of {name}" for name in calls)) if part) or "nothing"
