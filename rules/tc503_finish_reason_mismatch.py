from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from wirelint.conversation import Ledger
from wirelint.model import Choice, Exchange, Json, Opaque, Reply, Request
from wirelint.rule import Finding, Fix, Rule, excerpt

_ENDED = frozenset({"stop", "end_turn"})
_CALLED = {"tool_calls": "stop", "tool_use": "end_turn", "function_call": "stop"}
_MARKUP = ("<", "[TOOL", "```")


class FinishReasonMismatch(Rule):
    """The finish reason contradicts the reply.

    ## What it does
    Reports a reply that holds calls and says `stop` or `end_turn`, and one that says `tool_calls` or `tool_use` and holds
    no call.

    ## Why is this bad?
    Many clients decide by the reason alone: a call that ends with `stop` is never run and the agent halts without an error;
    a promised call that is not there makes it wait, loop or raise.

    ## Example
    `{"message":{"tool_calls":[…]},"finish_reason":"stop"}`

    ## False positives
    OpenAI answers `stop` when `tool_choice` names a function. Any other reason (`length`, `content_filter`, `pause_turn`,
    `refusal`, values of a server's own) admits more than a call can tell and is left alone, as are replies with parts that
    are not understood, and calls that the provider ran itself.

    ## Fix safety
    Safe: the reason is derived from what the reply holds. Where a promised call is missing and the text is empty or holds
    markup, the call was lost on the way; that is only reported.

    ## References
    - OpenAI, Chat: `finish_reason`, and Function calling: edge cases
    - Anthropic, Messages: `stop_reason`
    """

    code = "TC503"
    name = "finish-reason-mismatch"
    severity = "warning"
    layer = "gateway"
    fires: ClassVar[dict[str, Json]] = {
        "request": {
            "url": "https://llm.example/v1/chat/completions",
            "body": {
                "model": "m",
                "messages": [{"role": "user", "content": "Weather in Oslo?"}],
                "tools": [{"type": "function", "function": {"name": "get_weather"}}],
            },
        },
        "response": {
            "body": {
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {
                            "tool_calls": [{"id": "call_1", "function": {"name": "get_weather", "arguments": "{}"}}]
                        },
                    }
                ]
            }
        },
    }
    silent: ClassVar[dict[str, Json]] = {
        "request": {
            "url": "https://llm.example/v1/chat/completions",
            "body": {
                "model": "m",
                "messages": [{"role": "user", "content": "Weather in Oslo?"}],
                "tools": [{"type": "function", "function": {"name": "get_weather"}}],
                "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
            },
        },
        "response": fires["response"],
    }

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not exchange.ok or reply.error is not None:
            return
        for choice in reply.choices:
            if choice.finish_reason in _ENDED and choice.calls:
                if not _is_forced(request):
                    yield self._unsaid(choice, choice.finish_reason, request)
            elif choice.finish_reason in _CALLED and not choice.calls and _is_understood(choice, reply):
                yield self._unkept(choice, choice.finish_reason, request)

    def _unsaid(self, choice: Choice, reason: str, request: Request) -> Finding:
        names = ", ".join(call.name or "?" for call in choice.calls)
        count = "a call" if len(choice.calls) == 1 else f"{len(choice.calls)} calls"
        legacy = all(call.form == "legacy" for call in choice.calls)
        right = "tool_use" if request.api.startswith("anthropic") else "function_call" if legacy else "tool_calls"
        return self.finding(
            "response",
            f"the reply holds {count} ({excerpt(names)}) and ends with {reason!r}",
            choice.finish_pointer,
            event=choice.finish_event,
            fix=Fix("safe", f"say {right}"),
        )

    def _unkept(self, choice: Choice, reason: str, request: Request) -> Finding:
        text = choice.text.strip()
        said = f"only text: {excerpt(text)!r}" if text else "no text either"
        right = "end_turn" if request.api.startswith("anthropic") else _CALLED[reason]
        lost = not text or any(mark in choice.text or mark in choice.reasoning for mark in _MARKUP)
        return self.finding(
            "response",
            f"the reply ends with {reason!r} and holds no call; {said}",
            choice.finish_pointer,
            event=choice.finish_event,
            fix=None if lost else Fix("safe", f"say {right}"),
        )


def _is_forced(request: Request) -> bool:
    """Whether OpenAI documents `stop` for this request. Anthropic says `tool_use` whatever was asked for."""
    return request.tool_choice.mode == "named" and not request.api.startswith("anthropic")


def _is_understood(choice: Choice, reply: Reply) -> bool:
    """Whether a call can really not be there: nothing unread, unknown or run by the provider."""
    unread = any(fault.kind in ("broken-json", "unknown-field", "cut-event") for fault in reply.faults)
    return not unread and not choice.hosted and not any(isinstance(part, Opaque) for part in choice.parts)
