from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from wirelint.apis.traits import traits
from wirelint.fixes.call_index import CallNumbers
from wirelint.history.pairing import announced
from wirelint.model import Exchange
from wirelint.rule import Finding, Fix, RewriteContext, Rewriter, Rule, excerpt
from wirelint.state.ledger import Ledger


class ToolIndexCollision(Rule):
    """Two calls of a stream share an index, or a call has none.

    ## What it does
    Reports an event of a stream that begins another call under an index in use, and events of a call without an index.

    ## Why is this bad?
    Only the index assigns a delta to its call. Clients merge calls that share one: arguments run together, ids are
    lost, and one broken call runs, or none. Clients that need an index raise.

    ## Example
    `{"index":0,"id":"call_a",…,"arguments":"{\\"n\\":1}"}`, then `{"index":0,"id":"call_b",…,"arguments":"{\\"n\\":2}"}`

    ## False positives
    Silent on numbered calls in one event each, on several calls in one event, on ids and names that every delta
    repeats, on equal indexes in different choices, and on another id after the complete arguments of a call. Another id
    in the middle of a call's arguments is `id-unstable`. Gemini and Ollama's own API send whole calls without numbers.

    ## Fix safety
    Safe: calls are numbered in order. A call without an id, or with the id of another, gets a new one. OpenAI's
    Responses repeat each item at its end; there a collision is reported only.

    ## References
    - OpenAI, Chat streaming: `delta.tool_calls[].index`
    - Anthropic, Streaming messages: `index` of a content block; Amazon Bedrock, ConverseStream: `contentBlockIndex`
    """

    severity = "error"
    layer = "gateway"
    needs = frozenset({"framing"})
    requires_in_reply = frozenset({"calls", "stream"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        reply = exchange.reply
        if reply is None or not exchange.ok or not reply.streamed:
            return
        for call in reply.calls:
            tool, fix = call.name or "a tool", Fix("safe", "number the call")
            if others := [found.piece for found in announced(call, exchange.api) if found.verdict == "anew"]:
                index = others[0].index
                where = "no index" if index is None else f"index {index}"
                names = " and ".join(excerpt(piece.id or piece.name or "?", 40) for piece in others[:3])
                message = f"{names} of {others[0].name or tool} under {where}, which {call.id or call.name} holds"
                numbered = Fix("safe", f"number the {len(others) + 1} calls")
                repeats = traits(exchange.api).has_repeated_calls
                yield self.finding("response", message, call, event=others[0].event, fix=None if repeats else numbered)
            elif call.form != "legacy" and not _needs_none(exchange):
                for piece in [piece for piece in call.pieces if piece.index is None][:1]:
                    where = "" if piece is call.pieces[0] else " in a later delta"
                    message = f"the call {excerpt(call.id or '', 40)} of {tool} has no index{where}"
                    yield self.finding("response", message, call, event=piece.event, fix=fix)

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        if not context.streamed or not context.permit.allows(self.code, "safe"):
            return None
        if traits(context.exchange.api).has_repeated_calls:
            return None
        return CallNumbers(self, context, needs_index=not _needs_none(context.exchange))


def _needs_none(exchange: Exchange) -> bool:
    """Return True if calls have no number by design. Mistral's own API sends each in one event, as its SDK expects."""
    return not traits(exchange.api).has_call_index or (urlsplit(exchange.url).hostname or "").endswith(".mistral.ai")
