from __future__ import annotations

from collections.abc import Iterator, Set
from typing import ClassVar

from wirelint.conversation import Ledger
from wirelint.events import Stop
from wirelint.model import Choice, Exchange, Json, Opaque, Reply, Request
from wirelint.rewriters.finish import MARKUP, UNREAD, WITHOUT_CALLS, FinishReasons, Held
from wirelint.rule import Finding, Fix, Rewriter, Rule, Situation, excerpt

_ENDED = frozenset({"stop", "end_turn"})


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
            elif choice.finish_reason in WITHOUT_CALLS and not choice.calls and _is_understood(choice, reply):
                yield self._unkept(choice, choice.finish_reason, request)

    def rewriter(self, situation: Situation) -> Rewriter | None:
        request = situation.exchange.request
        if request is None or not situation.permit.allows(self.code, "safe"):
            return None

        def right(stop: Stop, held: Held) -> str | None:
            if stop.reason in _ENDED and held.forms:
                reason = None if _is_forced(request) else _with_calls(request, held.forms)
            elif stop.reason in WITHOUT_CALLS and not held.forms and not held.hidden:
                reason = _without_calls(request, stop.reason) if held.text and not held.markup else None
            else:
                reason = None
            if reason is not None:
                number = stop.frame.number if stop.frame is not None and situation.streamed else None
                made = f"said {reason} in the place of {excerpt(stop.reason)}"
                changed = {"before": stop.reason, "after": reason}
                situation.repairs.append(self.repair("response", "safe", made, stop.pointer, event=number, **changed))
            return reason

        return FinishReasons(right)

    def _unsaid(self, choice: Choice, reason: str, request: Request) -> Finding:
        names = ", ".join(call.name or "?" for call in choice.calls)
        count = "a call" if len(choice.calls) == 1 else f"{len(choice.calls)} calls"
        right = _with_calls(request, {call.form for call in choice.calls})
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
        right = _without_calls(request, reason)
        lost = not text or any(mark in choice.text or mark in choice.reasoning for mark in MARKUP)
        return self.finding(
            "response",
            f"the reply ends with {reason!r} and holds no call; {said}",
            choice.finish_pointer,
            event=choice.finish_event,
            fix=None if lost else Fix("safe", f"say {right}"),
        )


def _with_calls(request: Request, forms: Set[str]) -> str:
    if request.api.startswith("anthropic"):
        return "tool_use"
    return "function_call" if forms == {"legacy"} else "tool_calls"


def _without_calls(request: Request, reason: str) -> str:
    return "end_turn" if request.api.startswith("anthropic") else WITHOUT_CALLS[reason]


def _is_forced(request: Request) -> bool:
    """Whether OpenAI documents `stop` for this request. Anthropic says `tool_use` whatever was asked for."""
    return request.tool_choice.mode == "named" and not request.api.startswith("anthropic")


def _is_understood(choice: Choice, reply: Reply) -> bool:
    """Whether a call can really not be there: nothing unread, unknown or run by the provider."""
    unread = any(fault.kind in UNREAD for fault in reply.faults)
    return not unread and not choice.hosted and not any(isinstance(part, Opaque) for part in choice.parts)
