from __future__ import annotations

from collections.abc import Iterator

from wirelint.model import Exchange, Rpc
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger
from wirelint.text.pauses import alive, seconds, unseen, written
from wirelint.timing import Arrivals

_ENDS = {"client-left": "the client disconnected", "upstream-died": "the upstream disconnected"}


class SilentHang(Rule):
    """A request gets no answer for a long time.

    ## What it does
    Reports a request without a byte of an answer for 60 seconds or more (`wirelint_hang`, `--hang`). White space,
    comments, pings and the head of a message are no answer. Live, the finding appears when the limit passes, while the
    client still waits; the final one follows at the end: an error where no answer came (the client disconnected, the
    connection broke, a gateway returned an error page), an info where a good answer came late. A stream that stops
    after a timely head has stalled (`stream-stall`).

    ## Why is this bad?
    No error, no log line: the client waits for its default timeout of ten minutes and then retries.

    ## Example
    `200 OK`, `event: message_start`, and then nothing until the client gives up after 300 s.

    ## False positives
    Silent on an answer whose length or token counts explain the wait: a whole reply takes as long as its writing, and
    hidden reasoning is silent. MCP servers may take any time if they answer in the end; streams that a client opens for
    a server (`GET`) are no requests. A hanging POST of notifications is reported while it hangs; afterwards it is
    `mcp-lifecycle`. Silent without times. Raise the limit for slow hardware and long prompts.

    ## Fix safety
    Reported only: there is nothing to fix.

    ## References
    - RFC 9110, 15.6.5 504 Gateway Timeout
    """

    severity = "error"
    layer = "gateway"
    needs = frozenset({"times"})
    channels = frozenset({"model", "mcp"})

    @property
    def patience(self) -> float:
        return self.limits.hang

    def due(self, arrivals: Arrivals) -> float | None:
        return self.limits.hang * 1000 if arrivals.answered is None else None

    def check_course(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        limit = self.limits.hang * 1000
        end = exchange.timing.duration
        first = exchange.arrivals.times[-1] if exchange.arrivals else exchange.timing.first_byte
        if exchange.end == "unread" or max(end or 0.0, first or 0.0) < limit:
            return
        answered = _answered(exchange)
        reply, status = exchange.reply, exchange.status
        failed = (status is not None and status >= 400) or (reply is not None and reply.error is not None)
        good = answered is not None and not failed
        # A gap between the head of a reply and its first text is a stall.
        begun = exchange.arrivals.begun if good else None
        silence = end if answered is None else answered if begun is None else begun
        if silence is None or silence < limit or exchange.method != "POST":
            return
        mcp, parts = exchange.api == "mcp", exchange.asked
        notes = [part for part in parts if isinstance(part, Rpc) and part.form == "notification"]
        if mcp and (good or (not exchange.open and notes and len(notes) == len(parts))):
            return
        if good and reply is not None and (unseen(reply, silence) if reply.streamed else written(reply, silence)):
            return
        whole = exchange.request is not None and not exchange.request.stream
        unsure = good or exchange.open or (whole and exchange.end == "client-left")
        missing = "no response bytes" if status is None else "no answer bytes"
        yield self.finding(
            "response",
            f"{missing} for {seconds(silence)}{_meanwhile(exchange)}{_outcome(exchange, answered)}",
            severity="info" if good else "warning" if exchange.open else None,
            confidence="medium" if unsure else None,
            layer="tool" if mcp else "model" if status is not None and not failed else None,
        )


def _answered(exchange: Exchange) -> float | None:
    """Return the arrival of the answer; None if none came, or if it is unknown."""
    if exchange.status is None:
        return None
    if exchange.arrivals:
        return exchange.arrivals.answered
    if exchange.reply is None and (exchange.open or exchange.end in _ENDS) and exchange.status < 300:
        return None
    return exchange.timing.first_byte if exchange.timing.first_byte is not None else 0.0


def _meanwhile(exchange: Exchange) -> str:
    arrivals = exchange.arrivals
    if not arrivals or arrivals.answered is not None:
        return ""
    keep = alive(exchange, len(arrivals.idle))
    head = "the head of a message" if arrivals.last() is not None else ""
    came = " and ".join(filter(None, (head, keep)))
    return f"; only {came} came" if came else ""


def _outcome(exchange: Exchange, answered: float | None) -> str:
    if exchange.open:
        return " so far"
    if exchange.status is not None and exchange.status >= 400:
        return f", then HTTP {exchange.status}"
    if answered is None:
        return f"; {_ENDS.get(exchange.end, 'the exchange ended without one')}"
    if exchange.reply is not None and exchange.reply.error is not None:
        return ", then an error"
    return ", then it came"
