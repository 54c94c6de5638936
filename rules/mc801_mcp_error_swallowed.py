from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirelint.claims import evidence
from wirelint.claims.contradictions import error_of, mcp_errors, misreported_errors
from wirelint.claims.evidence import Fact, Ran
from wirelint.history.handed_back import compare_result, confirmed, handed_back
from wirelint.model import Choice, Exchange, Request, Text
from wirelint.rule import REDACTED, Finding, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text import prose
from wirelint.text.error_texts import is_own_error

_FLAGGED = ("anthropic.messages", "bedrock.converse")
"""APIs whose results have a flag for errors."""


class McpErrorSwallowed(Rule):
    """An MCP tool's error is lost on its way, or retold as success or as nothing found.

    ## What it does
    Compares results that a request returns to the model with the MCP server's answer to the same call on this wire.
    Reports a result without the server's error (`isError: true`, or a JSON-RPC error), and a reply that retells such an
    error as success or as an empty result.

    ## Why is this bad?
    The model cannot correct a call that seems to have worked, and the user reads that a failed search found nothing.

    ## Example
    `{"isError": true, "content": [{"type": "text", "text": "404 Not Found"}]}`, and the client hands `{}` to the model.

    ## False positives
    Silent when the result still reads as an error in any words, when another call of the tool with equal arguments
    succeeded, and when the reply admits the error.

    ## Fix safety
    Reported only.

    ## References
    - Model Context Protocol, Tools: error handling
    """

    severity = "error"
    layer = "client"
    requires_in_request = frozenset({"history"})
    requires_in_reply = frozenset({"history"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.request is None or not ledger.tools:
            return
        for back in handed_back(exchange.request, ledger, exchange.conversation):
            failed, text, place = error_of(back.passed(ledger.tools)), back.result.text, back.result.pointer
            if failed is None or back.result.is_error is True or REDACTED in text or back.admits:
                continue
            how, error = compare_result(text, failed.text), f"{excerpt(failed.text)!r}"
            if how == "same" and failed.text.strip():
                if exchange.api in _FLAGGED and not is_own_error(text, ""):
                    message = f"the MCP server flagged the result of {back.name} as an error ({error})"
                    lacks = "the model gets it without the flag"
                    yield self.finding("request", f"{message}; {lacks}", place, severity="warning", confidence="medium")
            elif how not in ("marked", "shortened"):
                shown = f"{excerpt(text)!r}" if text.strip() else "an empty result"
                message = f"the MCP server answered {back.name} with the error {error}; the model gets {shown}"
                yield self.finding("request", message, place)

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None or not exchange.ok or request.hosted or not request.shows_turn:
            return
        ran = evidence.ran(request.turn)
        known = mcp_errors(request, ran, ledger)
        sure = bool(known) and {fact.result.pointer for fact in known} <= confirmed(request, ledger)
        for choice in exchange.choices if known else ():
            if not choice.calls and not choice.hosted:
                yield from self._retold(request, choice, known, ran, sure=sure)

    def _retold(
        self, request: Request, choice: Choice, known: Sequence[Fact], ran: Sequence[Ran], *, sure: bool
    ) -> Iterator[Finding]:
        for part in choice.parts:
            if not isinstance(part, Text) or REDACTED in part.text:
                continue
            for found in misreported_errors(prose.read(part.text), known, ran, request):
                against = f"{found.against}{', as the MCP server answered' if sure else ''}"
                yield self.text_finding(
                    part,
                    (found.start, found.end),
                    f"says {excerpt(part.text[found.start : found.end], 80)!r}, but {against}",
                    severity=found.severity,
                    confidence="high" if sure else found.confidence,
                    layer="model",
                )
                return
