from __future__ import annotations

from collections.abc import Iterator

from wirelint.apis.traits import traits
from wirelint.arguments.argument_faults import lacks_finish_reason
from wirelint.model import Exchange, ToolCall
from wirelint.rule import Finding, Rule, excerpt
from wirelint.state.ledger import Ledger


class TruncatedStream(Rule):
    """A stream ends before the reply does.

    ## What it does
    Reports a streamed reply that stops without a finish reason and without the protocol's terminator (`[DONE]`,
    `message_stop`). A terminator without a finish reason is a warning: something between model and client closed the
    stream cleanly, and whether the reply was complete is unknown.

    ## Why is this bad?
    Some clients raise, some retry and pay twice, some take the half for the whole and run incomplete tool calls.

    ## Example
    The last event before the connection closes is
    `data: {"choices":[{"index":0,"delta":{"content":"The three steps are"},"finish_reason":null}]}`.

    ## False positives
    Silent when the client disconnected first, when the stream has an error object, when only the terminator is missing
    (`sse-framing`), when the API has no finish reasons (DeepInfra's own) and its terminator came, when whole calls end
    without a finish reason (`finish-reason-mismatch`), and when wirelint did not read the whole body.

    ## Fix safety
    Reported only: the missing part is unknown.

    ## References
    - HTML standard, 9.2 Server-sent events
    - Anthropic, Streaming messages; OpenAI, Chat streaming
    """

    severity = "error"
    layer = "gateway"
    needs = frozenset({"framing"})
    requires_in_reply = frozenset({"more", "stream"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        reply = exchange.reply
        if reply is None or not exchange.ok or not reply.streamed or exchange.end == "client-left":
            return
        if reply.error is not None or not (reply.choices or reply.id or reply.model):
            return
        if reply.terminated and not traits(exchange.api).has_finish_reason:
            return
        open_ = [choice for choice in reply.choices if not choice.finish_reason]
        # Whole calls without a finish reason before the terminator are finish-reason-mismatch.
        if all(lacks_finish_reason(exchange, choice) for choice in open_) and (reply.choices or reply.finished):
            return
        last = reply.parts[-1] if reply.parts else None
        shown = last.arguments.text if isinstance(last, ToolCall) else getattr(last, "text", "")
        where = f"after {excerpt(shown[-80:])!r}" if shown else "before anything was said"
        yield self.finding(
            "response",
            f"the stream ends {where}, without finish reason{'' if reply.terminated else ' or terminator'}",
            last.pointer if last is not None else None,
            event=max(reply.events - 1, 0),
            severity="warning" if reply.terminated else None,
            confidence="medium" if reply.terminated else None,
        )
