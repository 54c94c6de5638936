from __future__ import annotations

from collections.abc import Iterator

from wirelint.apis.traits import RAW_APIS
from wirelint.history.role_order import CONTRACTS, misplaced, refused
from wirelint.model import Exchange, Json
from wirelint.rule import Finding, Rule, excerpt
from wirelint.state.ledger import Ledger

_STAYS_WRONG = frozenset({"result-before-call"})
"""Orders that mislead the model even if the server accepts them."""


class RoleOrder(Rule):
    """The order of the messages violates the API's rules.

    ## What it does
    Checks the order of a request's messages against the API's rules and the fate of the request: a tool result before
    its call, or apart from it (OpenAI, Mistral, Cohere); text before the tool results of a message, a system message
    among the others, an assistant first (Anthropic); two messages of one role (Converse); a function call without a
    turn to answer, a function response without a call (Gemini); an assistant last (Mistral). If the upstream refused
    the request with an error about roles or order, restrictions of prompt templates count too: two messages of one
    role, a system message that is not first.

    ## Why is this bad?
    The API refuses the request and every later one, since the history is sent again.

    ## Example
    `[{"role": "user"}, {"role": "system"}, {"role": "user"}]` for a model whose template wants user and assistant to
    alternate: the server answers 500, "Conversation roles must alternate user/assistant".

    ## False positives
    An accepted order is allowed: then only a result before its own call is reported, as a warning. A result without a
    call is `orphan-result`; a call whose result is missing, or late for Anthropic, is `missing-result`. Most APIs
    accept two user messages in a row, and an assistant's message at the end as a prefix to continue.

    ## Fix safety
    Reported only: the intended order is unknown.

    ## References
    - OpenAI, Chat API: messages of role `tool` follow the `tool_calls` that they answer
    - Anthropic, Tool use: tool results come first in the content, and right after the calls
    - Google, Gemini API: function call and function response turns
    - Mistral, API errors: `invalid_request_message_order`
    """

    severity = "error"
    layer = "client"

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or exchange.api in RAW_APIS:
            return
        error = reply.error if reply is not None else None
        kinds = CONTRACTS.get(exchange.api, frozenset())
        accepted = exchange.ok and error is None
        if accepted:
            kinds &= _STAYS_WRONG
        named = refused(error) if error is not None else frozenset()
        for one in misplaced(request, kinds | named, error) if kinds or named else ():
            why = f"; the request was refused: {excerpt(_error_text(error), 120)!r}" if one.kind in named else ""
            yield self.finding(
                "request",
                f"this message {one.what}{why}",
                one.pointer,
                severity="warning" if accepted else None,
                confidence="high" if accepted or one.kind in named else "medium",
            )


def _error_text(error: Json) -> str:
    while isinstance(error, dict):
        inner = error.get("error")
        if not isinstance(inner, dict | str):
            break
        error = inner
    return str(error.get("message") or error.get("detail") or error) if isinstance(error, dict) else str(error)
