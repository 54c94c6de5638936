from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wirelint.apis.traits import traits
from wirelint.fixes.framing import Framing
from wirelint.lexicon import Phrases
from wirelint.model import Exchange, Fault, FaultKind, Reply
from wirelint.rule import Finding, Fix, RewriteContext, Rewriter, Rule, Severity, excerpt
from wirelint.state.ledger import Ledger


class _Verdict(NamedTuple):
    """Severity and wording for one kind of fault, with the wording of its fix before and after."""

    severity: Severity
    words: str
    fix: str | None = None
    done: str = ""


_PHRASES = Phrases("sse_framing")
_VERDICTS: dict[FaultKind, _Verdict] = {kind: _Verdict(**row) for kind, row in _PHRASES.table("verdicts").items()}


class SseFraming(Rule):
    """The event stream violates its grammar.

    ## What it does
    Reports violations of the grammar of server-sent events, or of the API's order of events: events without a blank
    line between them, white space before `data:`, broken JSON or JSON split over events, an event name that is missing
    or contradicts its content, deltas for a block that never started, events after the end, no terminator.

    ## Why is this bad?
    Parsers differ in their tolerance. One client shows the whole answer, another silently loses a word or a tool call,
    a third raises in the middle of the stream.

    ## Example
    `   data: {"choices":[{"delta":{"content":" not"}}]}`: by the standard this line has an unknown field and is ignored.

    ## False positives
    Comments, pings, `retry`, `id`, CRLF or CR line ends, a byte order mark, several data lines of one document and
    unknown fields are valid. A stream that breaks off is `truncated-stream`. A missing terminator after a complete
    reply is an info, since most clients ignore it.

    ## Fix safety
    Safe: equal events in correct framing. Data that was lost or damaged upstream is reported only, and so are lines of
    JSON instead of an event stream, since the response headers have left.

    ## References
    - HTML standard, 9.2 Server-sent events
    - OpenAI, Chat streaming; Anthropic, Streaming messages
    """

    severity = "error"
    layer = "gateway"
    needs = frozenset({"framing"})
    requires_in_reply = frozenset({"more"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        reply = exchange.reply
        if reply is None or not exchange.ok:
            return
        if not reply.streamed:
            lines = [fault for fault in reply.faults if fault.kind == "missing-blank-line"]
            if lines and exchange.request is not None and exchange.request.stream:
                message = f"lines of JSON where an event stream was asked for: {lines[0].detail}"
                yield self.finding("response", message)  # the response headers have left, so no fix is possible
            return
        groups: dict[FaultKind, list[Fault]] = {}
        for fault in _real_faults(exchange, reply):
            groups.setdefault(fault.kind, []).append(fault)
        for kind, faults in groups.items():
            verdict, evidence = _VERDICTS[kind], excerpt(faults[0].detail)
            count = f", {len(faults)} times" if len(faults) > 1 else ""
            message = f"{verdict.words}{count}{f': {evidence}' if evidence else ''}"
            severity = _severity(verdict, kind, faults, exchange)
            fix = Fix("safe", verdict.fix) if verdict.fix and _is_repaired(kind, exchange, reply) else None
            yield self.finding("response", message, event=faults[0].event, severity=severity, fix=fix)

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        if not context.streamed or not context.permit.allows(self.code, "safe"):
            return None
        return Framing(self, context, {kind: verdict.done for kind, verdict in _VERDICTS.items() if verdict.fix})


def _real_faults(exchange: Exchange, reply: Reply) -> Iterator[Fault]:
    """Yield faults of the stream's framing, without those that other rules report."""
    torn = {fault.event for fault in reply.faults if fault.kind == "cut-event"}
    restarted = {piece.event for call in reply.calls for piece in call.pieces[1:] if piece.id != call.id}
    for fault in reply.faults:
        match fault.kind:
            case "cut-event" | "missing-end" if exchange.end in ("client-left", "upstream-died"):
                continue
            case "cut-event" if _loses_nothing(fault, reply):
                continue
            case "missing-end" if torn:
                continue
            case "broken-json" | "unknown-field" | "bad-utf8" if fault.event in torn and not reply.finished:
                continue  # the stream was cut off inside its last event
            case "restarted-part" if fault.event in restarted:
                continue  # tool-index-collision or id-unstable
            case "late-usage" if exchange.request is None or not exchange.request.wants_usage:
                continue  # the client did not ask for counts
            case kind if kind not in _VERDICTS:
                continue  # not a fault of the framing
            case "unknown-field" if not _holds_data(fault.detail):
                continue  # clients ignore it by the standard
            case "event-missing" if fault.detail.endswith(" ping"):
                continue
            case _:
                yield fault


def _is_repaired(kind: FaultKind, exchange: Exchange, reply: Reply) -> bool:
    """Return True if a fault can be repaired here. A terminator would make a reply seem whole that is not."""
    if kind == "unfinished-part":
        return traits(exchange.api).has_block_events
    return kind != "missing-end" or (reply.finished and reply.error is None)


def _loses_nothing(fault: Fault, reply: Reply) -> bool:
    """Return True if a client that drops the unfinished last event still has the whole reply."""
    if not reply.finished or fault.detail.strip() == "[DONE]":
        return True
    ends = [choice.finish_event for choice in reply.choices if choice.finish_event is not None]
    return bool(ends) and max(ends) < fault.event


def _holds_data(line: str) -> bool:
    """Return True for a line that should have been a field: `DATA: …`, or JSON without a field name."""
    return line.lstrip().startswith("{") or line.lstrip(" \t\ufeff\"'").lower().startswith(("data", "event:"))


def _severity(verdict: _Verdict, kind: FaultKind, faults: list[Fault], exchange: Exchange) -> Severity:
    if kind == "missing-end" and traits(exchange.api).has_block_events:
        return "warning"  # the vendor's SDKs return the message at its stop event
    if kind == "leading-space" and [fault.event for fault in faults] == [0]:
        return "info"  # keep-alive blanks before the stream; the first event is seldom content
    if kind == "restarted-part" and faults[0].detail == "message_start":
        return "warning"
    return verdict.severity
