from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wirelint.apis.traits import traits
from wirelint.events import StreamViolation
from wirelint.fixes.framing import Framing
from wirelint.model import Exchange, Fault, FaultKind, Reply
from wirelint.rule import Finding, Fix, RewriteContext, Rewriter, Rule, Severity, excerpt
from wirelint.state.ledger import Ledger


class _Verdict(NamedTuple):
    """What a kind of fault does to clients, what a repair does, and what it has done."""

    severity: Severity
    words: str
    fix: str | None = None
    done: str = ""


_VERDICTS: dict[FaultKind, _Verdict] = {
    "missing-blank-line": _Verdict(
        *("error", "events without a blank line between them"),
        *("put a blank line after each event", "put a blank line after each event"),
    ),
    "leading-space": _Verdict(
        *("error", "white space before a field name; strict clients lose the event"),
        *("take it away", "took away the white space before a field name"),
    ),
    "broken-json": _Verdict("error", "data that is no JSON document"),
    "doubled-field": _Verdict(
        *("error", "data that is no JSON document, since it begins with the field's name again"),
        *("name the field once", "took away the second name of a field"),
    ),
    "split-json": _Verdict(
        *("error", "a JSON document broken across events"),
        *("join it into one event", "joined a document that was broken across events"),
    ),
    "parted-name": _Verdict(
        *("error", "a blank line between an event's name and its data; clients get the data without a name"),
        *("put the name to its data", "put an event's name to its data"),
    ),
    "event-missing": _Verdict(
        *("error", "no event name; SDKs that go by it drop the event"),
        *("name the events by their type", "named the events by their type"),
    ),
    "event-mismatch": _Verdict(
        *("error", "an event name that contradicts the type inside"),
        *("name the events by their type", "named the events by their type"),
    ),
    "undeclared-part": _Verdict("error", "events for a part that is not open"),
    "restarted-part": _Verdict("error", "a part that starts twice"),
    "unfinished-part": _Verdict(
        *("warning", "a part that is never stopped"),
        *("stop it before the message stops", "stopped a part before the message stops"),
    ),
    "after-end": _Verdict(
        *("error", "events after the end of the stream; clients have left"),
        *("drop them", "dropped what came after the end of the stream"),
    ),
    "late-usage": _Verdict("warning", "the token counts come after the end of the stream; clients have left"),
    "missing-end": _Verdict(
        *("info", "the stream ends without its terminator"), *("add the terminator", "added the terminator")
    ),
    "cut-event": _Verdict(
        *("warning", "the last event has no blank line; strict clients drop it"),
        *("add the blank line", "added the blank line after the last event"),
    ),
    "bad-utf8": _Verdict("warning", "bytes that are no UTF-8"),
    "unknown-field": _Verdict("error", "a line with data and no field name; every client drops it"),
}


class SseFraming(Rule):
    """The event stream breaks its own grammar.

    ## What it does
    Reports what the grammar of server-sent events, or the API's own order of events, does not allow: events that run into
    each other, white space before `data:`, JSON that is broken or spread over several events, an event name that is missing
    or contradicts its content, deltas for a block that was never started, events after the end, no terminator.

    ## Why is this bad?
    Parsers differ in how much they forgive. One client shows the whole answer, another loses a word or a tool call without
    an error, a third raises in the middle of the stream.

    ## Example
    `   data: {"choices":[{"delta":{"content":" not"}}]}`: by the standard this line has an unknown field and is ignored.

    ## False positives
    Comments, pings, `retry`, `id`, CRLF or CR line ends, a byte order mark, several data lines of one document and unknown
    fields are within the grammar. A stream that breaks off is `truncated-stream`. A terminator that is missing after a
    complete reply costs most clients nothing and is only mentioned.

    ## Fix safety
    Safe: the same events, framed as they should be. What was lost or damaged before it came here is only reported, and so
    are lines of JSON in the place of an event stream: the head of such a reply says that it is something else.

    ## References
    - HTML standard, 9.2 Server-sent events
    - OpenAI, Chat streaming; Anthropic, Streaming messages
    """

    code = "ST601"
    name = "sse-framing"
    severity = "error"
    layer = "gateway"
    needs = frozenset({"framing"})
    requires_in_reply = frozenset({"more"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        reply = exchange.reply
        if reply is None or not exchange.ok:
            return
        if not reply.streamed:
            yield from self._lines(exchange, reply)
            return
        groups: dict[FaultKind, list[Fault]] = {}
        for fault in _real_faults(exchange, reply):
            groups.setdefault(fault.kind, []).append(fault)
        for kind, faults in groups.items():
            verdict = _VERDICTS[kind]
            count = f", {len(faults)} times" if len(faults) > 1 else ""
            evidence = excerpt(faults[0].detail)
            yield self.finding(
                "response",
                f"{verdict.words}{count}{f': {evidence}' if evidence else ''}",
                event=faults[0].event,
                severity=_severity(verdict, kind, faults, exchange),
                fix=Fix("safe", verdict.fix) if verdict.fix and _is_repaired(kind, exchange, reply) else None,
            )

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        if not context.streamed or not context.permit.allows(self.code, "safe"):
            return None

        def told(offence: StreamViolation) -> None:
            number = offence.frame.number if offence.frame is not None else None
            done = _VERDICTS[offence.kind].done
            context.repairs.append(self.repair("response", "safe", done, event=number, before=excerpt(offence.detail)))

        return Framing(context, {kind for kind, verdict in _VERDICTS.items() if verdict.fix}, told)

    def _lines(self, exchange: Exchange, reply: Reply) -> Iterator[Finding]:
        """A stream was asked for, and what came are the documents of one, a line each."""
        lines = [fault for fault in reply.faults if fault.kind == "missing-blank-line"]
        if lines and exchange.request is not None and exchange.request.stream:
            message = f"lines of JSON where an event stream was asked for: {lines[0].detail}"
            yield self.finding("response", message)  # by its head, which has left, the reply is no event stream


def _real_faults(exchange: Exchange, reply: Reply) -> Iterator[Fault]:
    """Faults that are the stream's own, and are not the business of another rule."""
    torn = {fault.event for fault in reply.faults if fault.kind == "cut-event"}
    calls = [call for choice in reply.choices for call in choice.calls]
    restarted = {piece.event for call in calls for piece in call.pieces[1:] if piece.id != call.id}
    for fault in reply.faults:
        match fault.kind:
            case "cut-event" | "missing-end" if exchange.end in ("client-left", "upstream-died"):
                continue
            case "cut-event" if _loses_nothing(fault, reply):
                continue
            case "missing-end" if torn:
                continue
            case "broken-json" | "unknown-field" | "bad-utf8" if fault.event in torn and not reply.finished:
                continue  # the stream broke off inside its last event
            case "restarted-part" if fault.event in restarted:
                continue  # two calls under one index, or a call that changes its id
            case "late-usage" if exchange.request is None or not exchange.request.wants_usage:
                continue  # nobody waits for it
            case "other-item" | "empty-call" | "repeated-start" | "said-again":
                continue  # no fault of the framing
            case "unknown-field" if not _holds_data(fault.detail):
                continue  # the standard has clients ignore it
            case "event-missing" if fault.detail.endswith(" ping"):
                continue
            case _:
                yield fault


def _is_repaired(kind: FaultKind, exchange: Exchange, reply: Reply) -> bool:
    """Return True if a fault can be repaired here. A terminator would make a reply seem whole that is not."""
    if kind == "unfinished-part":
        return traits(exchange.api).blocks
    return kind != "missing-end" or (reply.finished and reply.error is None)


def _loses_nothing(fault: Fault, reply: Reply) -> bool:
    """Whether a client that drops the unfinished last event still has the whole reply."""
    if not reply.finished or fault.detail.strip() == "[DONE]":
        return True
    ends = [choice.finish_event for choice in reply.choices if choice.finish_event is not None]
    return bool(ends) and max(ends) < fault.event


def _holds_data(line: str) -> bool:
    """Whether a line that is no field was meant to be one: `DATA: …`, or JSON without any field name."""
    return line.lstrip().startswith("{") or line.lstrip(" \t\ufeff\"'").lower().startswith(("data", "event:"))


def _severity(verdict: _Verdict, kind: FaultKind, faults: list[Fault], exchange: Exchange) -> Severity:
    if kind == "missing-end" and traits(exchange.api).blocks:
        return "warning"  # the vendor's SDKs give the message out at its stop
    if kind == "leading-space" and [fault.event for fault in faults] == [0]:
        return "info"  # keep-alive blanks before the stream; the first event seldom says anything
    if kind == "restarted-part" and faults[0].detail == "message_start":
        return "warning"
    return verdict.severity
