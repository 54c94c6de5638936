from __future__ import annotations

from collections.abc import Iterator

from wirelint.events import CallUpdate, ReplyMeta, StreamViolation
from wirelint.fixes.call_index import CallIds, ReplyIds, SaidOnce
from wirelint.fixes.chained import Chained
from wirelint.history.succession import Announced, announced
from wirelint.model import Exchange, Fault, ToolCall
from wirelint.rule import Finding, Fix, RewriteContext, Rewriter, Rule, excerpt
from wirelint.state.ledger import Ledger

# Systems that answer with several models in turn and pass on the chunks of each under its own id.
_COMPOSED = ("compound",)


class IdUnstable(Rule):
    """The id of one tool call, or of the reply itself, changes within a stream.

    ## What it does
    Follows the id of every call through the events of a stream. A later event that continues the call (same index, no other
    name, arguments not yet complete) and carries another id is reported, and so is a stream whose chunks carry more than
    one reply id, and one of OpenAI Responses whose events speak of an output item under another id than it began with. An
    id or a name of a call that OpenAI's chat repeats in later events is reported as worth knowing.

    ## Why is this bad?
    Which id a client keeps, the first or the last, is up to its merging code. The result then goes back under an id that
    the server has forgotten, and clients that collect chunks by id see several broken replies instead of one. Clients that
    join what deltas say make `get_weatherget_weather` of a repeated name.

    ## Example
    `{"index":0,"id":"3f0c…","function":{"name":"look_up","arguments":""}}`, then
    `{"index":0,"id":"b71e…","function":{"arguments":"{\\"wo"}}`: a fresh UUID with every chunk.

    ## False positives
    Silent on ids that are empty or left out in later events. When the later event begins a call of its own (a new
    name, or the arguments before it are complete) two calls share an index: `tool-index-collision`. For systems that
    answer with several models in turn, a changing reply id is only worth knowing,
    and stays.

    ## Fix safety
    Safe: the first id is kept; it is the one that most clients keep. What is repeated is said once. A server of OpenAI's
    Responses that keeps the conversation knows the last id, which is not known yet when the first has to leave: a result in
    the next request gets it back, whichever of the two the client kept. Ids of output items are reported only.

    ## References
    - OpenAI, Chat streaming: "each chunk has the same ID"; tool call deltas carry the id once
    """

    code = "ID306"
    name = "id-unstable"
    severity = "warning"
    layer = "gateway"
    needs = frozenset({"framing"})
    requires_in_reply = frozenset({"more", "stream"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        reply = exchange.reply
        if reply is None or not exchange.ok or not reply.streamed:
            return
        end = min((fault.event for fault in reply.faults if fault.kind == "after-end"), default=reply.events)
        ids = [(id_, event) for id_, event in reply.ids if event < end]  # what comes after the end is sse-framing
        if len(ids) > 1 and reply.error is None:  # an error event has an id of its own
            yield self._tell_reply(ids, exchange.model)
        items = [fault for fault in reply.faults if fault.kind == "other-item"]
        if items:
            yield self._tell_items(items)
        again = [fault for fault in reply.faults if fault.kind == "said-again"]
        if again:
            yield self._tell_again(again)
        for choice in reply.choices:
            for call in choice.calls:
                strays = _strays(call, exchange.api)
                if strays:
                    yield self._tell_call(call, strays, exchange.api)

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        if not context.streamed or not context.permit.allows(self.code, "safe"):
            return None

        def told(event: ReplyMeta | CallUpdate, first: str) -> None:
            what = "the reply" if isinstance(event, ReplyMeta) else "the call"
            title = f"kept the first id of {what}, {excerpt(first)}"
            pointer = "/id" if isinstance(event, ReplyMeta) else None
            number = event.frame.number if event.frame is not None else None
            made = self.repair("response", "safe", title, pointer, event=number, before=event.id or "", after=first)
            context.repairs.append(made)

        def again(event: StreamViolation) -> None:
            number = event.frame.number if event.frame is not None else None
            title = f"said `{excerpt(event.detail)}` once, in the event that begins the call"
            context.repairs.append(self.repair("response", "safe", title, event=number, before=event.detail))

        calls = (CallIds(context, told), SaidOnce(again))
        if _is_composed(context.exchange.model):
            return Chained(1, *calls)
        return Chained(1, ReplyIds(context, told), *calls)

    def _tell_call(self, call: ToolCall, strays: list[Announced], api: str) -> Finding:
        first, second = excerpt(strays[0].id or ""), excerpt(strays[0].piece.id or "")
        last = excerpt(strays[-1].piece.id or "")
        kept = f"; a server that keeps the conversation knows `{last}`" if api == "openai.responses" else ""
        ids = len({stray.piece.id for stray in strays} | {strays[0].id})
        return self.finding(
            "response",
            f"the id of the `{excerpt(call.name or '')}` call changes from `{first}` to `{second}`"
            f" while its arguments are still coming{f', {ids} ids in all' if ids > 2 else ''}{kept}",
            call.pointer,
            event=strays[0].piece.event,
            fix=Fix("safe", f"keep the first id, `{first}`"),
        )

    def _tell_again(self, again: list[Fault]) -> Finding:
        more = f", and so do {len(again) - 1} more calls" if len(again) > 1 else ""
        return self.finding(
            "response",
            f"a call says `{excerpt(again[0].detail)}` again in later events; clients that join deltas double it{more}",
            event=again[0].event,
            severity="info",
            fix=Fix("safe", "say ids and names once"),
        )

    def _tell_items(self, items: list[Fault]) -> Finding:
        first, _, second = items[0].detail.partition(" ")
        more = f", and so do {len(items) - 1} more" if len(items) > 1 else ""
        return self.finding(
            "response",
            f"the id of an output item changes from `{excerpt(first)}` to `{excerpt(second)}` within the stream{more}",
            event=items[0].event,
        )

    def _tell_reply(self, ids: list[tuple[str, int]], model: str) -> Finding:
        (first, _), (second, event) = ids[:2]
        composed = _is_composed(model)
        return self.finding(
            "response",
            f"the reply's id changes from `{excerpt(first)}` to `{excerpt(second)}` within the stream",
            "/id",
            event=event,
            severity="info" if composed else None,
            confidence="medium",
            fix=None if composed else Fix("safe", f"keep the first id, `{excerpt(first)}`"),
        )


def _is_composed(model: str) -> bool:
    return any(mark in model for mark in _COMPOSED)


def _strays(call: ToolCall, api: str) -> list[Announced]:
    """Events that continue a call under another id than it began with."""
    return [found for found in announced(call, api) if found.verdict == "stray"]
