from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirelint.apis.traits import traits
from wirelint.fixes.call_index import CallIds, LateHeads, RepeatRemover, ReplyIds
from wirelint.history.pairing import Announced, announced
from wirelint.model import Exchange, ToolCall
from wirelint.rule import Finding, Fix, RewriteContext, Rewriter, Rule, excerpt
from wirelint.state.ledger import Ledger

_SEND_FIRST = Fix("safe", "send it with the first event of the call")


class IdUnstable(Rule):
    """The id of a tool call or the reply changes within a stream, or an id or a name comes late.

    ## What it does
    Follows the id of every call through the events of a stream. Reports a later event that continues the call (equal
    index, no other name, incomplete arguments) with another id, a call whose first id or name follows its first
    arguments, a stream whose chunks carry several reply ids, and a stream of OpenAI Responses whose events refer to an
    output item under another id than its first. An id or a name that OpenAI's chat repeats in later events is an info.

    ## Why is this bad?
    Clients keep the first or the last id. The result may go back under an id that the server has forgotten, and clients
    that group chunks by id see several broken replies. Clients that join all deltas make `get_weatherget_weather` of a
    repeated name, and those that make a call of its first event have no id or no name.

    ## Example
    `{"index":0,"id":"3f0c…","function":{"name":"look_up","arguments":""}}`, then
    `{"index":0,"id":"b71e…","function":{"arguments":"{\\"wo"}}`: a fresh UUID with every chunk.

    ## False positives
    Silent on ids that are empty or missing in later events. A later event that begins a call of its own (a new name, or
    complete arguments before it) is `tool-index-collision`. For systems that answer with several models in turn, a
    changing reply id is an info and stays.

    ## Fix safety
    Safe: the first id stays, as in most clients, repetitions are removed, and a call without an id or a name waits for
    a later one. A server of OpenAI's Responses that keeps the conversation knows the last id, which is unknown when the
    first must leave: a result in the next request gets the last id. Ids of output items are reported only.

    ## References
    - OpenAI, Chat streaming: "each chunk has the same ID"; tool call deltas carry the id once
    """

    severity = "warning"
    layer = "gateway"
    needs = frozenset({"framing"})
    requires_in_reply = frozenset({"more", "stream"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        reply = exchange.reply
        if reply is None or not exchange.ok:
            return
        end = min((fault.event for fault in reply.faults if fault.kind == "after-end"), default=reply.events)
        ids = [(id_, event) for id_, event in reply.ids if event < end]  # later events are sse-framing
        if len(ids) > 1 and reply.error is None:  # an error event has its own id
            (first, _), (second, event) = ids[:2]
            composed = _is_composed(exchange.model)
            yield self.finding(
                "response",
                f"the reply's id changes from `{excerpt(first)}` to `{excerpt(second)}` within the stream",
                "/id",
                event=event,
                severity="info" if composed else None,
                confidence="medium",
                fix=None if composed else Fix("safe", f"keep the first id, `{excerpt(first)}`"),
            )
        if items := [fault for fault in reply.faults if fault.kind == "other-item"]:
            first, _, second = items[0].detail.partition(" ")
            more = f", and so do {len(items) - 1} more" if len(items) > 1 else ""
            changes = f"changes from `{excerpt(first)}` to `{excerpt(second)}` within the stream"
            yield self.finding("response", f"the id of an output item {changes}{more}", event=items[0].event)
        if repeats := [fault for fault in reply.faults if fault.kind == "said-again"]:
            more = f", and so do {len(repeats) - 1} more calls" if len(repeats) > 1 else ""
            said, event = excerpt(repeats[0].detail), repeats[0].event
            message = f"later events repeat `{said}` of a call; clients that join deltas double it{more}"
            fix = Fix("safe", "send ids and names once")
            yield self.finding("response", message, event=event, severity="info", fix=fix)
        has_late_heads = not traits(exchange.api).has_block_events  # there, only the start of a block has an id
        undeclared = {fault.event for fault in reply.faults if fault.kind == "undeclared-part"}  # sse-framing
        for call in reply.calls:
            later = list(announced(call, exchange.api))
            # Events that continue the call under another id than its first.
            if strays := [found for found in later if found.verdict == "stray"]:
                yield self._report_call(call, strays, exchange.api)
            elif has_late_heads and call.event not in undeclared and (late := next((o for o in later if o.late), None)):
                if late.piece.id and not late.id:
                    head = f"the id of the `{excerpt(call.name or '')}` call, `{excerpt(late.piece.id)}`,"
                else:
                    head = f"the name of a call, `{excerpt(late.piece.name or '')}`,"
                message, fix = f"{head} comes only after its arguments began", _SEND_FIRST
                yield self.finding("response", message, call, event=late.piece.event, fix=fix)

    def rewriter(self, context: RewriteContext) -> Sequence[Rewriter]:
        if not context.streamed or not context.permit.allows(self.code, "safe"):
            return ()
        late = () if traits(context.exchange.api).has_block_events else (LateHeads(self, context),)
        calls = (*late, CallIds(self, context), RepeatRemover(self, context))
        return calls if _is_composed(context.exchange.model) else (ReplyIds(self, context), *calls)

    def _report_call(self, call: ToolCall, strays: list[Announced], api: str) -> Finding:
        first, second, last = (excerpt(id_ or "") for id_ in (strays[0].id, strays[0].piece.id, strays[-1].piece.id))
        kept = f"; a server that keeps the conversation knows `{last}`" if api == "openai.responses" else ""
        ids = len({stray.piece.id for stray in strays} | {strays[0].id})
        changes = f"the id of the `{excerpt(call.name or '')}` call changes from `{first}` to `{second}`"
        more = f", {ids} ids in all" if ids > 2 else ""
        message = f"{changes} while its arguments are still coming{more}{kept}"
        fix = Fix("safe", f"keep the first id, `{first}`")
        return self.finding("response", message, call, event=strays[0].piece.event, fix=fix)


def _is_composed(model: str) -> bool:
    """Return True for a system that answers with several models in turn and keeps the reply id of each."""
    return "compound" in model
