from __future__ import annotations

from collections.abc import Iterable, Iterator

from wirelint.apis.openai_chat import usage_report
from wirelint.apis.traits import traits
from wirelint.apis.writing import frame_document
from wirelint.events import Event, Frame, ReplyMeta, Usage
from wirelint.fix import PassingRewriter
from wirelint.model import Exchange, Opaque, Request
from wirelint.rule import Edit, Finding, Fix, Fixable, FixPolicy, RequestRule, RewriteContext, Rewriter, Rule
from wirelint.state.ledger import Ledger

_ASKABLE = frozenset({"openai.chat", "openai.completions"})


class MissingUsage(RequestRule):
    """A stream ends without its token counts.

    ## What it does
    Reports a stream of OpenAI Chat Completions or of raw completions that was asked for token counts
    (`stream_options.include_usage`) and ends without them. As an info it reports a stream without counts of an API that
    always sends them, and a chat request that should have asked for them.

    ## Why is this bad?
    Clients insert zeros or estimates, and a full context goes unnoticed until the API refuses it.

    ## Example
    The request says `"stream": true` and has no `stream_options`: no event of the reply carries a `usage`.

    ## False positives
    Silent on `include_usage: false`, on streams that were cut off, hold an error, lost their client or lack their
    terminator (the counts come last), on streams that got counts unasked, on hosts that send them unasked, and on hosts
    and versions not known to accept the option.

    ## Fix safety
    Unsafe: `stream_options.include_usage` is added to the request, only for OpenAI's chat API and never for a service
    that may refuse it. The event with the counts has no choices; it is counted and then removed from the reply, since
    many clients read `choices[0]` of every event. Counts in an event with a choice stay, as does `"usage": null`.

    ## References
    - OpenAI, Chat API: `stream_options`
    - Azure OpenAI, REST API reference: `stream_options` since version 2024-09-01-preview
    """

    severity = "warning"
    layer = "gateway"
    request_apis = frozenset({"openai.chat"})
    request_safety = "unsafe"
    needs = frozenset({"framing"})
    requires_in_reply = frozenset({"stream"})

    def faults(self, request: Request, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[Fixable]:
        if not _should_ask(exchange, request):
            return
        message = "the request does not ask for token counts, so the cost of the stream is unknown"
        place = "/stream_options" if "stream_options" in request.body else "/stream"
        fix = Fix("unsafe", "ask for them with stream_options.include_usage")
        finding = self.finding("request", message, place, severity="info", layer="client", fix=fix)
        edit = Edit("replace", "/stream_options", {"include_usage": True})
        if isinstance(request.body.get("stream_options"), dict):
            edit = Edit("replace", "/stream_options/include_usage", True)
        title = "asked for token counts with stream_options.include_usage"
        after = '"stream_options": {"include_usage": true}'
        yield finding, ([edit], self.repair("request", "unsafe", title, edit.pointer, after=after))

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None or exchange.reply is None or not _ended_without(exchange):
            return
        last = max(exchange.reply.events - 1, 0)
        if exchange.api in _ASKABLE and request.wants_usage:
            message = "the stream was asked for its token counts and ends without them"
            yield self.finding("response", message, event=last)
        elif traits(exchange.api).has_usage_unasked:
            message = f"the stream ends without token counts, which {exchange.api} always sends"
            yield self.finding("response", message, event=last, severity="info")

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        if not context.streamed or not context.asks_for_counts or not context.permit.allows(self.code, "unsafe"):
            return None
        return _CountsRemover(self, context)


class _CountsRemover(PassingRewriter):
    """Rewriter that removes the event with the token counts from a reply whose client did not ask for them."""

    phase = 3
    heeds_text = False

    def __init__(self, rule: Rule, context: RewriteContext) -> None:
        self._rule, self._context = rule, context
        self._gone: Frame | None = None

    def push(self, event: Event) -> Iterable[Event]:
        if not isinstance(event, (ReplyMeta, Usage)) or event.frame is None:
            return (event,)
        if event.frame is not self._gone:
            document = frame_document(event.frame)
            if not isinstance(document.get("usage"), dict) or document.get("choices"):
                return (event,)  # `{"choices": [], "usage": {…}}` is sent for the option alone
            self._gone = event.frame
            title = "removed the event with the token counts, which the client did not ask for"
            self._rule.record(self._context, "unsafe", title, at=event, before=event.frame.data or "")
        return ()


def _should_ask(exchange: Exchange, request: Request) -> bool:
    """Return True if the request could have asked for counts, did not, and the stream has none so far."""
    if not request.stream or request.wants_usage is not None or exchange.api != "openai.chat":
        return False
    if usage_report(exchange.url) != "asked":
        return False
    # Azure refuses the option together with pictures or its own data sources.
    azure = "azure.com" in exchange.url
    if azure and (request.body.get("data_sources") or any(isinstance(part, Opaque) for part in request.parts)):
        return False
    begun = exchange.reply is not None or exchange.status is not None or exchange.end != "unknown"
    return not begun or _ended_without(exchange)


def _ended_without(exchange: Exchange) -> bool:
    """Return True if a stream is complete up to its terminator and has no counts."""
    reply = exchange.reply
    if reply is None or not reply.streamed or not exchange.ok or exchange.end == "client-left":
        return False
    if reply.usage is not None or reply.error is not None or not reply.terminated or not reply.choices:
        return False
    return all(choice.finish_reason for choice in reply.choices)
