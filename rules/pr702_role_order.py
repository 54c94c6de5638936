from __future__ import annotations

from collections.abc import Iterator

from wirelint.history.role_order import CONTRACTS, misplaced, refused
from wirelint.model import Exchange, Json
from wirelint.rule import Finding, Rule, excerpt
from wirelint.state.ledger import Ledger

_UNSTARTED = frozenset({"openai.completions", "deepinfra.inference", "ollama.generate"})
_STAYS_WRONG = frozenset({"result-before-call"})
"""Orders that mislead the model even where a server lets them pass."""


class RoleOrder(Rule):
    """Messages stand in an order that the API forbids.

    ## What it does
    Looks at the order of a request's messages, in the light of what the API says of it and of what became of the request.
    A tool result before its call, or with other messages between the two (OpenAI, Mistral, Cohere); words before the tool
    results of a message, a system message among the others, an assistant that speaks first (Anthropic); two messages of one
    role (Converse); a function call that answers nobody, a function response that follows no call (Gemini); an assistant
    that speaks last (Mistral). Where the upstream refused the request and its error speaks of roles or order, whatever
    prompt templates forbid is looked for as well: two messages of one role, a system message that is not the first.

    ## Why is this bad?
    The request is refused, and so is every one after it, since the history is sent again and again.

    ## Example
    `[{"role": "user"}, {"role": "system"}, {"role": "user"}]` for a model whose template wants user and assistant to
    alternate: the server answers 500, "Conversation roles must alternate user/assistant".

    ## False positives
    An order that was accepted is not forbidden there: then only a result before its own call is reported, as a
    warning. A result without any call is `orphan-result`, whatever its place, and a call whose result is missing or comes
    too late for Anthropic is `missing-result`. Two user messages in a row are fine for most APIs, as is an assistant's
    message at the end, which it is to go on with.

    ## Fix safety
    Reported only: which order was meant is the client's to know.

    ## References
    - OpenAI, Chat API: messages of role `tool` follow the `tool_calls` that they answer
    - Anthropic, Tool use: tool results come first in the content, and right after the calls
    - Google, Gemini API: function call and function response turns
    - Mistral, API errors: `invalid_request_message_order`
    """

    code = "PR702"
    name = "role-order"
    severity = "error"
    layer = "client"

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or exchange.api in _UNSTARTED:
            return
        error = reply.error if reply is not None else None
        kinds = CONTRACTS.get(exchange.api, frozenset())
        accepted = exchange.ok and error is None
        if accepted:
            kinds &= _STAYS_WRONG
        told = refused(error) if error is not None else frozenset()
        for one in misplaced(request, kinds | told, error) if kinds or told else ():
            why = f"; the request was refused: {excerpt(_said(error), 120)!r}" if one.kind in told else ""
            yield self.finding(
                "request",
                f"this message {one.what}{why}",
                one.pointer,
                severity="warning" if accepted else None,
                confidence="high" if accepted or one.kind in told else "medium",
            )


def _said(error: Json) -> str:
    while isinstance(error, dict):
        inner = error.get("error")
        if not isinstance(inner, dict | str):
            break
        error = inner
    return str(error.get("message") or error.get("detail") or error) if isinstance(error, dict) else str(error)
