from __future__ import annotations

from collections.abc import Iterator

from wirelint.apis.traits import traits
from wirelint.model import Exchange, Reply
from wirelint.rule import Confidence, Finding, Rule
from wirelint.state.ledger import Ledger
from wirelint.text.pauses import seconds, shown, unseen
from wirelint.timing import Arrivals

_AT_ONCE = 50.0
"""Milliseconds that are too short to generate a reply of some length."""
_MANY = 8
_SHORT, _LONG, _VERY_LONG = 64, 400, 1200
"""Minimum characters with many events, with few, and for a reply with a hidden reason for its silence."""


class StreamBurst(Rule):
    """A stream is silent for a long time, and then arrives all at once.

    ## What it does
    Reports a stream without visible content for 8 seconds or more (`wirelint_burst`, `--burst`) whose whole reply then
    arrives within 50 milliseconds: eight or more events with 64 characters of text and visible reasoning, or 400
    characters in fewer events. A stream whose only event is its last is reported at any length where the API sends
    others first (OpenAI's Responses, Anthropic), elsewhere as an info from 64 characters.

    ## Why is this bad?
    The user looks at an empty screen, and clients with a timeout for the first token give up. Something between model
    and client collects the events: a buffering proxy (nginx without `X-Accel-Buffering: no`), a compressor without
    flushes, a gateway that calls the model without streaming.

    ## Example
    Nothing for 31 s, then three hundred deltas, the finish reason and `[DONE]` within the same millisecond.

    ## False positives
    Silent on short replies, on tool calls, which many servers send whole, and on captures without chunk times. Hidden
    reasoning or a tool of the provider explains the silence, but not 1200 characters at once.

    ## Fix safety
    Reported only: late data cannot be sent earlier.

    ## References
    - nginx, module ngx_http_proxy_module, `proxy_buffering`
    """

    severity = "warning"
    layer = "gateway"
    needs = frozenset({"times"})

    def check_course(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        arrivals, reply = exchange.arrivals, exchange.reply
        limit = self.limits.burst * 1000
        if exchange.open or not arrivals or max(arrivals.times) < limit or arrivals.answered is None:
            return
        if reply is None or not exchange.ok or not (arrivals.framed and reply.streamed and reply.finished):
            return
        begun, last, events, size = _extent(reply)
        # An empty first block is not an answer yet.
        first, end = max(arrivals.answered, arrivals.at(begun) or 0.0), arrivals.at(last)
        if first < limit or end is None or end - first > _AT_ONCE:
            return
        explained = unseen(reply, first)
        least = _VERY_LONG if explained else _SHORT if events >= _MANY else _LONG
        wait, answer = f"nothing for {seconds(first)}", arrivals.answer
        if size >= least:
            said = f"{size} characters in {events} event{'s' if events > 1 else ''} within {end - first:.0f} ms"
            confidence: Confidence | None = "medium" if explained else None
            yield self.finding("response", f"{wait}, then {said}", event=answer, confidence=confidence)
        elif not explained and _is_last_alone(reply, begun, arrivals):
            message = f"{wait}, then the whole reply in the stream's last event"
            if traits(exchange.api).has_opening_events:  # so a short reply counts, too
                yield self.finding("response", message, event=answer)
            elif size >= _SHORT:
                yield self.finding("response", message, event=answer, severity="info", confidence="low")


def _is_last_alone(reply: Reply, event: int, arrivals: Arrivals) -> bool:
    """Return True if the event with which a reply ends is the first that is no ping."""
    if event != arrivals.answer or not all(choice.finish_event == event for choice in reply.choices):
        return False
    return sum(number < event for number in arrivals.idle) == event


def _extent(reply: Reply) -> tuple[int, int, int, int]:
    """Return the first and the last visible event of a reply, the number of such events, and of characters."""
    parts = [part for choice in reply.choices for part in shown(choice)]
    numbers = {number for part in parts for _, number in part.events}
    every = [*numbers, *(number for call in reply.calls for _, number in call.events)]
    return min(every, default=0), max(every, default=0), len(numbers), sum(len(part.text) for part in parts)
