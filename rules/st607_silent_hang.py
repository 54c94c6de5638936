from __future__ import annotations

from collections.abc import Iterator

from wirelint.model import Exchange, Json, Rpc
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger
from wirelint.text.pauses import alive, seconds, unseen, written
from wirelint.timing import Arrivals

_REQUEST: Json = {
    "url": "https://llm.example/v1/messages",
    "body": {"model": "m", "max_tokens": 512, "messages": [{"role": "user", "content": "Are you there?"}]},
}
_ENDS = {"client-left": "the client left", "upstream-died": "the upstream broke off"}


class SilentHang(Rule):
    """A request gets no answer for a long time.

    ## What it does
    Reports a request that has had no byte of an answer for 60 seconds or more (`wirelint_hang` and `--hang` set another
    limit). White space, comments, pings and the head of a message are no answer: they come from servers that have nothing
    to say yet. Live, it is reported when the limit passes, while the client still waits. When the exchange has ended it is
    judged again: an error where no answer ever came (the client left, the connection broke, a gateway's error page came
    in its place), an info where a good answer came after all. A stream whose head came in time and that went on late has
    stalled instead (`stream-stall`).

    ## Why is this bad?
    It is the quietest of all failures: no error, no line in a log, a client that waits for the ten minutes of its default
    timeout and then tries again. Whoever looks for it finds each component doing its job.

    ## Example
    `200 OK`, `event: message_start`, and then nothing until the client gives up after 300 s.

    ## False positives
    A reply that is not streamed takes as long as it takes to be written, and a model that thinks without showing it is
    silent meanwhile: an answer that came is not reported where its length or its token counts explain the wait. Servers of
    tools (MCP) may take as long as they like when they answer in the end; streams that a client opens for a server to
    speak on (`GET`) are no requests in this sense. A post of notifications that nobody took is told of while it hangs; what
    became of it is `mcp-lifecycle`'s to say. Set the limit higher for slow hardware and long prompts. Silent where
    the times are not known.

    ## Fix safety
    Reported only: there is nothing to repair.

    ## References
    - RFC 9110, 15.6.5 504 Gateway Timeout
    """

    code = "ST607"
    name = "silent-hang"
    severity = "error"
    layer = "gateway"
    needs = frozenset({"times"})
    channels = frozenset({"model", "mcp"})

    @property
    def patience(self) -> float:
        return self.limits.hang

    def due(self, arrivals: Arrivals) -> float | None:
        return self.limits.hang * 1000 if arrivals.answered is None else None

    @property
    def takes(self) -> float:
        return self.limits.hang

    def check_course(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        limit = self.limits.hang * 1000
        end = exchange.timing.duration
        if exchange.end == "unread" or max(end or 0.0, _first(exchange) or 0.0) < limit:
            return
        came = _answered(exchange)
        reply, status = exchange.reply, exchange.status
        failed = (status is not None and status >= 400) or (reply is not None and reply.error is not None)
        good = came is not None and not failed
        # What comes between the head of a reply that goes on and its first words is a stall.
        begun = exchange.arrivals.begun if good else None
        silence = end if came is None else came if begun is None else begun
        if silence is None or silence < limit:
            return
        mcp = exchange.api == "mcp"
        if exchange.method != "POST" or (mcp and (good or not (exchange.open or _asks(exchange)))):
            return
        if good and reply is not None and (unseen(reply, silence) if reply.streamed else written(reply, silence)):
            return
        whole = exchange.request is not None and not exchange.request.stream
        unsure = good or (whole and exchange.end == "client-left")
        yield self.finding(
            "response",
            f"no byte of an answer for {seconds(silence)}{_meanwhile(exchange)}{_outcome(exchange, came)}",
            severity="info" if good else "warning" if exchange.open else None,
            confidence="medium" if unsure or exchange.open else None,
            layer="tool" if mcp else "model" if exchange.status is not None and not failed else None,
        )


def _asks(exchange: Exchange) -> bool:
    """Whether a post holds anything that is to be answered, as far as that is known."""
    messages = exchange.request.messages if exchange.request is not None else ()
    parts = [part for message in messages for part in message.parts]
    return not parts or any(not (isinstance(part, Rpc) and part.form == "notification") for part in parts)


def _first(exchange: Exchange) -> float | None:
    """When the first byte of the reply came, as far as that is known."""
    return exchange.arrivals.times[-1] if exchange.arrivals else exchange.timing.first_byte


def _answered(exchange: Exchange) -> float | None:
    """When the answer began; None when it never did, or nobody knows."""
    if exchange.status is None:
        return None
    if exchange.arrivals:
        return exchange.arrivals.answered
    if exchange.reply is None and (exchange.open or exchange.end in _ENDS) and exchange.status < 300:
        return None
    return exchange.timing.first_byte if exchange.timing.first_byte is not None else 0.0


def _meanwhile(exchange: Exchange) -> str:
    if exchange.status is None:
        return ", nor any other"
    arrivals = exchange.arrivals
    if not arrivals or arrivals.answered is not None:
        return ""
    keep = alive(exchange, len(arrivals.idle))
    head = "the head of a message" if arrivals.last() is not None else ""
    return f"; only {' and '.join(filter(None, (head, keep)))} came" if head or keep else ""


def _outcome(exchange: Exchange, came: float | None) -> str:
    if exchange.open:
        return " so far"
    if exchange.status is not None and exchange.status >= 400:
        return f", then HTTP {exchange.status}"
    if came is None:
        return f"; {_ENDS.get(exchange.end, 'the exchange ended without one')}"
    if exchange.reply is not None and exchange.reply.error is not None:
        return ", then an error"
    return ", then it came"
