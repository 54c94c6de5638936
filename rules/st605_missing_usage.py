from __future__ import annotations

from collections.abc import Iterable, Iterator

from wirelint.apis.openai_chat import usage_report
from wirelint.apis.traits import traits
from wirelint.apis.writing import frame_document
from wirelint.events import Event, Frame, ReplyMeta, Usage
from wirelint.model import Exchange, Json, Opaque, Request
from wirelint.rule import Edit, Finding, Fix, FixPolicy, RequestFix, RewriteContext, Rewriter, Rule, Severity
from wirelint.state.ledger import Ledger

_ASKABLE = frozenset({"openai.chat", "openai.completions"})


class MissingUsage(Rule):
    """A stream ends without its token counts.

    ## What it does
    Reports a stream of OpenAI Chat Completions, or of raw completions, that was asked for its token counts
    (`stream_options.include_usage`) and ends well without them; as info, a stream of an API that always tells them and this
    time does not; and, as info on the request, a chat stream that did not ask where it would have had to.

    ## Why is this bad?
    Costs and limits are kept by these counts. Clients put zeros or estimates in their place; a context that fills up
    goes unnoticed until the API refuses it.

    ## Example
    The request says `"stream": true` and has no `stream_options`: no event of the reply carries a `usage`.

    ## False positives
    An explicit `include_usage: false` is the caller's wish. Silent on streams that were cut off, that hold an error, that
    the client left or that lack their terminator: the counts come last. Silent on a stream that did not ask and got them,
    on hosts known to tell them unasked, and on hosts and versions that are not known to take the option.

    ## Fix safety
    Unsafe: `stream_options.include_usage` is added to the request. The event with the counts, which has no choices, is
    counted and taken out of the reply again, since many clients read `choices[0]` of every event. Counts in an event with
    a choice stay, and so does the `"usage": null` that services then put into the other events. For OpenAI's chat API
    alone, and never for a service that may refuse the option. What a service does not send cannot be made up.

    ## References
    - OpenAI, Chat API: `stream_options`
    - Azure OpenAI, REST API reference: `stream_options` since version 2024-09-01-preview
    """

    code = "ST605"
    name = "missing-usage"
    severity = "warning"
    layer = "gateway"
    mends = frozenset({"openai.chat"})
    needs = frozenset({"framing"})
    requires_in_reply = frozenset({"stream"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.request is None or not _should_ask(exchange, exchange.request):
            return
        yield self.finding(
            "request",
            "the stream was not asked for its token counts, so nothing tells what it cost",
            "/stream_options" if "stream_options" in exchange.request.body else "/stream",
            severity="info",
            layer="client",
            fix=Fix("unsafe", "ask for them with stream_options.include_usage"),
        )

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None:
            return
        said: str
        severity: Severity | None
        if exchange.api in _ASKABLE and request.wants_usage:
            said, severity = "was asked for its token counts and ends without them", None
        elif traits(exchange.api).always_reports_usage:
            said, severity = f"ends without token counts, which {exchange.api} always tells", "info"
        else:
            return
        if not _ended_without(exchange):
            return
        last = exchange.reply.events - 1 if exchange.reply is not None else 0
        yield self.finding("response", f"the stream {said}", event=max(last, 0), severity=severity)

    def mend(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[RequestFix]:
        request = exchange.request
        if request is None or not permit.allows(self.code, "unsafe") or not _should_ask(exchange, request):
            return
        options = request.body.get("stream_options")
        made: tuple[str, Json] = ("/stream_options", {"include_usage": True})
        if isinstance(options, dict):
            made = ("/stream_options/include_usage", True)
        title = "asked for token counts with stream_options.include_usage"
        yield (
            [Edit("replace", *made)],
            self.repair("request", "unsafe", title, made[0], after='"stream_options": {"include_usage": true}'),
        )

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        if not context.streamed or not context.asks_for_counts or not context.permit.allows(self.code, "unsafe"):
            return None
        return _CountsOut(self, context)


class _CountsOut:
    """Takes the event with the token counts out of a reply whose client did not ask for them."""

    heeds_text = False
    held: int | None = None

    def __init__(self, rule: Rule, context: RewriteContext) -> None:
        self._rule, self._situation = rule, context
        self._gone: Frame | None = None

    def push(self, event: Event) -> Iterable[Event]:
        if not isinstance(event, (ReplyMeta, Usage)) or event.frame is None:
            return (event,)
        if event.frame is not self._gone:
            if not _holds_counts_alone(event.frame):
                return (event,)
            self._gone = event.frame
            title = "took out the event with the token counts, which the client did not ask for"
            made = self._rule.repair(
                "response", "unsafe", title, event=event.frame.number, before=event.frame.data or ""
            )
            self._situation.repairs.append(made)
        return ()

    def release(self) -> Iterable[Event]:
        return ()


def _holds_counts_alone(frame: Frame) -> bool:
    """Return True for `{"choices": [], "usage": {…}}`, which is sent for the option alone."""
    document = frame_document(frame)
    return isinstance(document.get("usage"), dict) and not document.get("choices")


def _should_ask(exchange: Exchange, request: Request) -> bool:
    """Whether a stream could have been asked for its counts, was not, and has none, as far as is known yet."""
    if not request.stream or request.wants_usage is not None or exchange.api != "openai.chat":
        return False
    if usage_report(exchange.url) != "asked":
        return False
    # Azure refuses the option beside pictures and data sources of its own.
    if "azure.com" in exchange.url:
        pictures = any(isinstance(part, Opaque) for message in request.messages for part in message.parts)
        if pictures or request.body.get("data_sources"):
            return False
    begun = exchange.reply is not None or exchange.status is not None or exchange.end != "unknown"
    return not begun or _ended_without(exchange)


def _ended_without(exchange: Exchange) -> bool:
    """Whether a stream came to its very end, where the counts stand, and had none."""
    reply = exchange.reply
    if reply is None or not reply.streamed or not exchange.ok or exchange.end == "client-left":
        return False
    if reply.usage is not None or reply.error is not None or not reply.terminated or not reply.choices:
        return False
    return not [choice for choice in reply.choices if not choice.finish_reason]
