from __future__ import annotations

from collections.abc import Iterator

from wirelint.apis.traits import traits
from wirelint.model import Exchange, Reply
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger
from wirelint.text.pauses import seconds, shown, unseen
from wirelint.timing import Arrivals

_AT_ONCE = 50.0
"""Milliseconds in which a reply of some length cannot have been generated."""
_MANY = 8
_SHORT, _LONG, _VERY_LONG = 64, 400, 1200
"""Characters: of many events, of few, and of a reply that no model writes in that time, however fast."""


class StreamBurst(Rule):
    """A stream is silent for long, and then all of it comes at once.

    ## What it does
    Reports a stream that brings nothing that could be shown for 8 seconds or more (`wirelint_burst` and `--burst` set
    another limit), and then the whole reply within 50 milliseconds: eight events or more with 64 characters of text and
    visible reasoning, or 400 characters in fewer events. A stream whose only event is its last one is reported whatever
    its length where the API has others before it (OpenAI's Responses, Anthropic), elsewhere as info from 64 characters on.

    ## Why is this bad?
    The client asked for a stream and got a whole body in the form of one. A person looks at an empty screen for all of the
    time, and clients with a timeout for the first token give up on a reply that is being written. Somewhere between model
    and client the events are collected: a proxy that buffers (nginx without `X-Accel-Buffering: no`), a compression that
    is not flushed, a gateway that calls the model without streaming and cuts the answer up.

    ## Example
    Nothing for 31 s, then three hundred deltas, the finish reason and `[DONE]` within the same millisecond.

    ## False positives
    Silent on short replies, and on tool calls, which many servers send whole. Where the model thought without showing it,
    or the provider ran a tool, the silence has its reason: then only a reply of 1200 characters and more is reported,
    since no model writes that much in the twinkling of an eye. Captures without the times of chunks are not judged.

    ## Fix safety
    Reported only: what has come late cannot be sent earlier.

    ## References
    - nginx, module ngx_http_proxy_module, `proxy_buffering`
    """

    code = "ST603"
    name = "stream-burst"
    severity = "warning"
    layer = "gateway"
    needs = frozenset({"times"})

    @property
    def takes(self) -> float:
        return self.limits.burst

    def check_course(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        arrivals, reply = exchange.arrivals, exchange.reply
        if exchange.open or not arrivals or max(arrivals.times) < self.limits.burst * 1000:
            return
        if reply is None or not exchange.ok or not (arrivals.framed and reply.streamed and reply.finished):
            return
        if arrivals.answered is None:
            return
        begun, last, events, size = _extent(reply)
        # A block that begins with nothing in it is no answer yet.
        first = max(arrivals.answered, arrivals.at(begun) or 0.0)
        if first < self.limits.burst * 1000:
            return
        end = arrivals.at(last)
        if end is None or end - first > _AT_ONCE:
            return
        explained = unseen(reply, first)
        least = _VERY_LONG if explained else _SHORT if events >= _MANY else _LONG
        if size < least:
            if not explained and _is_last_alone(reply, begun, arrivals):
                yield from self._alone(exchange, size, first)
            return
        yield self.finding(
            "response",
            f"nothing for {seconds(first)}, then {size} characters in {events} event{'s' if events > 1 else ''} "
            f"within {end - first:.0f} ms",
            event=arrivals.answer,
            confidence="medium" if explained else None,
        )

    def _alone(self, exchange: Exchange, size: int, first: float) -> Iterator[Finding]:
        """A stream in name: one event. Where the API has others before the last, a short reply shows it, too."""
        opens = traits(exchange.api).opens
        if opens or size >= _SHORT:
            yield self.finding(
                "response",
                f"nothing for {seconds(first)}, then the whole reply in the stream's last event",
                event=exchange.arrivals.answer,
                severity=None if opens else "info",
                confidence=None if opens else "low",
            )


def _is_last_alone(reply: Reply, event: int, arrivals: Arrivals) -> bool:
    """Return True if the event with which a reply ends is the first that is no ping."""
    if event != arrivals.answer or not all(choice.finish_event == event for choice in reply.choices):
        return False
    return sum(number < event for number in arrivals.idle) == event


def _extent(reply: Reply) -> tuple[int, int, int, int]:
    """What can be shown of a reply: the numbers of its first and last events, how many events, how many characters."""
    parts = [part for choice in reply.choices for part in shown(choice)]
    numbers = {number for part in parts for _, number in part.events}
    calls = [number for choice in reply.choices for call in choice.calls for _, number in call.events]
    return (
        min([*numbers, *calls], default=0),
        max([*numbers, *calls], default=0),
        len(numbers),
        sum(len(part.text) for part in parts),
    )
