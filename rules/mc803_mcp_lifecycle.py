from __future__ import annotations

from collections.abc import Iterator

from wirelint.lexicon import Phrases
from wirelint.model import Exchange, Rpc, ToolCall
from wirelint.rule import Finding, Rule, excerpt
from wirelint.state.ledger import Ledger

_SETTLED_BY = 5_000.0
"""Milliseconds that a server may need to accept a notification; clients that disconnect sooner are shutting down."""

_PHRASES = Phrases("mcp_lifecycle")


class McpLifecycle(Rule):
    """A notification to an MCP server is answered or never accepted, or a call precedes the handshake.

    ## What it does
    Reports a JSON-RPC answer to a POST with notifications only, a notification whose POST gets no status or a reply
    that does not end, and requests before the session: in one batch with `initialize`, or refused as too early.

    ## Why is this bad?
    After `initialize` clients send `notifications/initialized` and wait for the end of the POST (status 202). A server
    that keeps it open or answers with an error stops the session: without a log line, the agent has no tools.

    ## Example
    `{"jsonrpc": "2.0", "method": "notifications/initialized"}` is answered with
    `{"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}}`.

    ## False positives
    Silent on an empty 200, on HTTP errors, on clients that disconnect within five seconds of a notification, and on
    notifications of the server in the stream of a reply.

    ## Fix safety
    Reported only.

    ## References
    - JSON-RPC 2.0, 4.1: Notification
    - Model Context Protocol, Lifecycle; Transports, Sending messages to the server
    """

    severity = "error"
    layer = "tool"
    channels = frozenset({"mcp"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.method.upper() != "POST":
            return
        requests = exchange.asked
        notes = [part for part in requests if isinstance(part, Rpc) and part.form == "notification"]
        if notes and len(notes) == len(requests):
            yield from self._notified(exchange, notes)
            return
        calls = {part.pointer: f"{part.name} is called" for part in requests if isinstance(part, ToolCall)}
        others = [part for part in requests if isinstance(part, Rpc) and part.form == "request"]
        allowed = ("initialize", "ping")
        early = calls | {part.pointer: f"{part.method} is requested" for part in others if part.method not in allowed}
        if early and any(isinstance(part, Rpc) and part.method == "initialize" for part in requests):
            pointer = next(part.pointer for part in requests if part.pointer in early)
            message = f"{early[pointer]} in one batch with initialize, before the session exists"
            yield self.finding("request", message, pointer, layer="client")

    def _notified(self, exchange: Exchange, notes: list[Rpc]) -> Iterator[Finding]:
        answer = next(iter(exchange.reply.answers), None) if exchange.reply is not None else None
        if answer is not None and exchange.ok:
            failed, error = (answer.form == "error", answer.error) if isinstance(answer, Rpc) else (False, None)
            shown = excerpt(error or "") or ("error" if failed else "a result")
            message = f"the notification {notes[0].method} was answered ({shown}) instead of accepted with status 202"
            yield self.finding("response", message, answer)
        elif exchange.end in ("client-left", "upstream-died") and (exchange.status or 0) < 300:
            waited = exchange.timing.duration
            if waited is None or waited >= _SETTLED_BY:
                after = f" in {waited / 1000:.0f} s" if waited is not None else ""
                message = f"the notification {notes[0].method} was never accepted: {_describe_reply(exchange)}{after}"
                yield self.finding("response", message)

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        parts = exchange.asked
        if not any(isinstance(part, ToolCall) or (isinstance(part, Rpc) and part.form == "request") for part in parts):
            return
        if any(isinstance(part, Rpc) and part.method == "initialize" for part in parts):
            return
        for answer in exchange.reply.answers if exchange.reply is not None else ():
            message = answer.error if isinstance(answer, Rpc) else None
            if message and _PHRASES["too_early"].search(message[:300]):
                early = "the server refuses a request that came before the session was initialized"
                yield self.finding("response", f"{early}: {excerpt(message)!r}", answer, layer="client")
                return


def _describe_reply(exchange: Exchange) -> str:
    if exchange.status is None:
        return "no status came"
    if not exchange.response_headers.get("content-type", "").startswith("text/event-stream"):
        return f"status {exchange.status} came, and the reply did not end"
    has_parts = exchange.reply is not None and exchange.reply.choices
    return "a stream was opened that did not end" if has_parts else "a stream was opened, and nothing came on it"
