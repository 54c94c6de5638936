from __future__ import annotations

from collections.abc import Iterator

from wirelint.apis.traits import history_of, traits
from wirelint.history.pairing import Answer, Pair, pair
from wirelint.model import Exchange, Request
from wirelint.rule import REDACTED, Finding, Rule, excerpt
from wirelint.state.ledger import Ledger


class MissingResult(Rule):
    """A tool call in the history has no result, and the conversation continues.

    ## What it does
    Pairs the calls of the history with its results and reports every call without a result that messages follow.
    Anthropic Messages, Converse and Gemini need the result in the next user message; there a later result counts as
    missing. Calls without ids (Gemini, Ollama) pair by name and order.

    ## Why is this bad?
    The vendors' APIs reject the request and every later one. Elsewhere the model asks again, or invents the answer.

    ## Example
    The user interrupts while a tool runs. The client sends the assistant's message with its `tool_calls`, then the user's
    next words, and no message with `"role": "tool"` between them.

    ## False positives
    Silent on calls in the last message, on the provider's tools, on results whose id was altered (`mangled-id`), on
    calls without an id where the API has ids, on a call that appears twice and is answered once, and on items that
    stand for others on the server (`item_reference`).

    ## Fix safety
    Reported only: a result cannot be invented.

    ## References
    - OpenAI, Chat API: "an assistant message with 'tool_calls' must be followed by tool messages"
    - Anthropic, Tool use: `tool_use` ids without `tool_result` blocks immediately after
    """

    severity = "error"
    layer = "client"
    requires_in_request = frozenset({"history"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None or request.on_server == "anywhere":
            return
        pairs = pair(request).pairs
        answered = {_key(each, each.position) for each in pairs if each.answer is not None}
        for each in pairs:
            call, answer = each.call, each.answer
            known = bool(call.id) or not traits(request.api).has_call_ids
            if not known or each.position == len(request.messages) - 1 or REDACTED in (call.id or ""):
                continue
            if answer is None and _key(each, each.position + 1) not in answered:
                what = f"has no result, and {_next(request, each.position)} follows"
            elif answer is not None and history_of(request.api).has_results_next and _is_late(request, each, answer):
                what = f"has no result in the next message; it comes later, at {answer.result.pointer}"
            else:
                continue
            message = f"call {f'`{excerpt(call.id)}` ' if call.id else ''}of `{excerpt(call.name or '')}` {what}"
            yield self.finding("request", message, call, severity="warning" if exchange.succeeded else None)


def _key(each: Pair, position: int) -> tuple[int, str, str] | str:
    """Return a key that is equal for a call and its repetition: its id or, without one, its place and content."""
    return each.call.id or (position, each.call.name or "", each.call.arguments.text)


def _next(request: Request, position: int) -> str:
    """Return a description of the message that follows."""
    message = request.messages[position + 1]
    if message.results:
        return "the result of another call"
    words = {"user": "the user's next message", "assistant": "the assistant's next message"}
    return words.get(message.role, f"a {message.role} message")


def _is_late(request: Request, each: Pair, answer: Answer) -> bool:
    """Return True if an assistant's message lies between a call and its result, after merging neighbours of one role."""
    between = request.messages[each.position + 1 : answer.position]
    roles = [message.role for message in between if message.role != "system"]
    return "assistant" in roles[roles.index("user") :] if "user" in roles else False
