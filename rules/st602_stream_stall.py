from __future__ import annotations

from collections.abc import Iterator

from wirelint.model import Exchange
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger
from wirelint.text.pauses import alive, describe, seconds, unseen
from wirelint.timing import Arrivals, Gap


class StreamStall(Rule):
    """A stream stays open and brings no event for a long time.

    ## What it does
    Reports a stream with 30 seconds or more (`wirelint_stall`, `--stall`) between two events, or between the last event
    and the end of the connection of an unfinished reply. Comments, pings and keep-alives are not events: they show a
    live server, not progress. The chunks of a whole body count as events. Live, the finding appears when the limit
    passes; the final one follows at the end. It names the longest gap, the events around it, and whether pings came.

    ## Why is this bad?
    Clients wait until their own timeout, mostly ten minutes, and show nothing. Pings hide the stall from every timeout
    of the connection. Usual causes: a server that holds back a tool call until its arguments are complete, a worker
    that died behind a gateway, a gateway that waits for a full buffer.

    ## Example
    `data: {"choices":[{"delta":{"content":"First of all,"}}]}` comes after 0.9 s, a comment after 15 s, and the next delta
    after 46 s.

    ## False positives
    Silent on the time before the first event and on replies of which only the head came (`silent-hang`), on time for
    which wirelint holds text back, and on captures without chunk times. Hidden reasoning and the provider's own tools
    explain a gap: where token counts or parts of the reply show them, the finding is an info.

    ## Fix safety
    Reported only: nothing arrived that could be forwarded.

    ## References
    - HTML standard, 9.2.7 Authoring notes: comments as keep-alives
    - Anthropic, Streaming messages: ping events
    """

    severity = "warning"
    layer = "gateway"
    needs = frozenset({"times"})

    @property
    def patience(self) -> float:
        return self.limits.stall

    def due(self, arrivals: Arrivals) -> float | None:
        _, at = arrivals.last() or (None, 0.0)
        return at + self.limits.stall * 1000

    def check_course(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        arrivals, reply, limit = exchange.arrivals, exchange.reply, self.limits.stall * 1000
        under_way = exchange.open and not arrivals.framed and exchange.status is not None and exchange.status < 300
        if not arrivals or not (exchange.ok or under_way):
            return
        if max(arrivals.times[-1], exchange.timing.duration or 0.0) < limit:
            return
        gaps = [gap for gap in arrivals.gaps(limit) if gap.before is not None]
        gaps += [gap for gap in self._rest(exchange) if gap.before is not None and gap.length >= limit]
        if not gaps:
            return
        gap = max(gaps, key=lambda one: one.length)
        more = f"; {len(gaps) - 1} more such gap{'s' if len(gaps) > 2 else ''}" if len(gaps) > 1 else ""
        meanwhile = f"; only {came} came" if (came := alive(exchange, gap.idle)) else ""
        so_far = " so far" if exchange.open and gap.after is None else ""
        explained = reply is not None and unseen(reply, gap.length)
        yield self.finding(
            "response",
            f"no event for {seconds(gap.length)}{so_far}, {describe(exchange, gap)}{meanwhile}{more}",
            event=gap.before if arrivals.framed else None,
            severity="info" if explained else None,
            confidence="medium" if explained else None,
            layer="model" if gap.idle else None,
        )

    def _rest(self, exchange: Exchange) -> Iterator[Gap]:
        """Yield the gap after the last event, if more events should have come."""
        arrivals, reply, end = exchange.arrivals, exchange.reply, exchange.timing.duration
        if end is None or (reply is not None and reply.error is not None):
            return
        cut = exchange.open or exchange.end in ("client-left", "upstream-died")
        hangs = arrivals.answered is None and end >= self.limits.hang * 1000
        if not hangs and (not (reply is not None and reply.terminated) if arrivals.framed else cut):
            yield arrivals.rest(end)
