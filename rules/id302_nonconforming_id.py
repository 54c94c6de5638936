from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from wirelint.apis.traits import traits
from wirelint.fix import FixPolicy, RewriteContext, Rewriter
from wirelint.fixes.calls import CallHeads, Head, HeadChange, has_head, item_faults
from wirelint.history.id_demands import Demand, KimiK2, complaint, demand_of, is_broken_native, is_kimi_k2
from wirelint.history.ids import restore
from wirelint.history.pairing import Pair, pair, rename, rename_repeats
from wirelint.model import Arguments, Exchange, Request, Text, ToolCall
from wirelint.rule import REDACTED, Finding, Fix, Fixable, Layer, RequestRule, Side, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text.quoting import is_quoted

_BODY = "<|tool_call_argument_begin|>"
_HEADER = re.compile(r"(?<![^\s>])(?P<id>[^\s<>|]{1,128})\s{0,4}<\|tool_call_argument_begin\|>")


class NonconformingId(RequestRule):
    """A tool call's id has a form that the target does not accept.

    ## What it does
    Compares the ids of the history with the target's demands: `functions.NAME:N` for Kimi K2 (only for damaged ids of
    this form: `search:2`, `functions.search`, `2`), nine letters and digits for Mistral's own API, `[a-zA-Z0-9_-]+` for
    Claude, at most 64 characters for OpenAI, both for Converse, ids that begin with `fc`, `msg`, `rs` for items of
    OpenAI's Responses. An error reply that names a constraint on ids takes precedence. A reply of Kimi K2 with short
    ids is reported too: that is the origin of damaged histories.

    ## Why is this bad?
    The vendors' own services reject the whole request. Kimi K2 does not, but imitates the broken form, and parsers that
    split the id at its dot discard valid calls.

    ## Example
    `{"role": "tool", "tool_call_id": "functions.search:0", …}` sent to Claude:
    `String should match pattern '^[a-zA-Z0-9_-]+$'`.

    ## False positives
    Silent on `call_…`, UUIDs and other foreign ids in a Kimi history, on `NAME:N` for Kimi K3, on Mistral models at
    hosts without checks, on ids that a server of this API issued in this conversation, and on 41 to 64 characters for
    OpenAI unless the reply complains, since newer routes accept them. An id that the client mangled is `mangled-id`.

    ## Fix safety
    Safe: the call and its result get one new id, made from the old one and equal in every turn. Item ids are removed.

    ## References
    - Moonshot AI, Kimi K2 tool call guidance
    - Mistral AI, Function calling (error 3280); Anthropic, Messages API: `tool_use.id`; OpenAI, Chat API: `tool_calls[].id`
    """

    severity = "warning"
    layer = "client"
    requires_in_request = frozenset({"history"})

    def faults(self, request: Request, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[Fixable]:
        yield from item_faults(self, exchange, mixed_up=False)
        paired = pair(request)
        groups: defaultdict[str, list[Pair]] = defaultdict(list)
        for each in paired.pairs:
            groups[each.call.id or ""].append(each)
        for each, new, finding in self._refused(exchange, ledger):
            if new is None:
                yield finding, None
                continue
            id_ = each.call.id or ""
            edits = [edit for one in (groups[id_] if id_ else (each,)) for edit in rename(one, new, exchange.api)]
            edits += rename_repeats(paired.repeats, {id_: new} if id_ else {}, exchange.api)
            title = f"renamed `{excerpt(id_)}` to `{new}` on the call and its result"
            yield finding, (edits, self.repair("request", "safe", title, each.call.pointer, before=id_, after=new))

    def _refused(self, exchange: Exchange, ledger: Ledger) -> Iterator[tuple[Pair, str | None, Finding]]:
        """Yield the first call of each id that the target refuses, its new id, and a finding.

        Calls with empty ids count separately: each gets its own id.
        """
        if not (pairs := _pairs(exchange)):
            return
        complained = complaint(exchange)
        if complained is None and exchange.status is None:
            complained = ledger.complaint(exchange)  # the target refused such ids before
        demand = complained or demand_of(exchange)
        if demand is None:
            return
        given: set[str] = set()
        if complained is None and not isinstance(demand, KimiK2):  # the issuer of an id accepts it
            given = {call.id for call in ledger.calls(exchange.conversation) if call.api == exchange.api}
        needed = traits(exchange.api).has_call_ids
        taken = {each.call.id for each in pairs if each.call.id}
        seen: set[str] = set()
        for ordinal, each in enumerate(pairs):
            call = each.call
            if call.id is None or (call.id and call.id in seen) or REDACTED in call.id or not (call.id or needed):
                continue
            seen.add(call.id)
            if _fault(demand, call) is None or call.id in given:
                continue
            issued = ledger.issued(call.id, exchange.conversation) is not None
            if isinstance(demand, KimiK2) and not issued and restore(call.id, call.name) is not None:
                continue  # mangled by the client: mangled-id
            layer: Layer = "gateway" if issued else "client"
            counted = re.search(r":([0-9]{1,6})$", call.id)
            number = max(ordinal, int(counted[1]) if counted else 0)  # a trimmed history keeps its numbers
            finding, new = self._judge("request", call, demand, number, taken, layer, complained is not None)
            if finding is not None:
                yield each, new, finding

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.reply is None or not exchange.ok or not is_kimi_k2(exchange.model):
            return
        demand, before = KimiK2(), _pairs(exchange)
        taken = {each.call.id for each in before if each.call.id}
        for choice in exchange.reply.choices:
            for number, call in enumerate(choice.calls, len(before)):
                found, _ = self._judge("response", call, demand, number, taken, "model", refused=False)
                if found is not None:
                    # During rewriting only the request names the model.
                    yield found if exchange.request and exchange.request.model else replace(found, fix=None)
            for part in choice.parts:
                if isinstance(part, Text) and _BODY in part.text:
                    yield from self._judge_markup(part, demand)

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        demand, before = demand_of(context.exchange), _pairs(context.exchange)
        if not isinstance(demand, KimiK2) or not context.permit.allows(self.code, "safe"):
            return None
        taken = {each.call.id for each in before if each.call.id}
        counts: Counter[int] = Counter()

        def judge(head: Head) -> HeadChange | None:
            start, id_ = head.start, head.id
            number = len(before) + counts[start.choice]
            counts[start.choice] += 1
            call = ToolCall(id_, head.name, Arguments(""), start.pointer)
            _, new = self._judge("response", call, demand, number, taken, "model", refused=False)
            if new is None:
                context.taken.update([id_] if id_ else [])
                return None
            title = f"renamed `{excerpt(id_ or '')}` to `{new}` on the call"
            self.record(context, "safe", title, start.pointer, at=start, before=id_ or "", after=new)
            return HeadChange("id", new)

        return CallHeads(context, judge, has_head, 3)

    def _judge_markup(self, part: Text, demand: Demand) -> Iterator[Finding]:
        """Yield findings on native markup in text, which is normal at raw endpoints: the header before a body is the id."""
        for header in _HEADER.finditer(part.text):
            fault = demand.fault(header["id"], None)
            if fault is not None and not is_quoted(part.text, *header.span()):
                wish = f"does not fit {demand.target}, which wants {demand.form}: {fault}"
                message = f"id `{excerpt(header['id'])}` in native markup {wish}"
                yield self.text_finding(part, header.span("id"), message, layer="model")

    def _judge(
        self, side: Side, call: ToolCall, demand: Demand, ordinal: int, taken: set[str], layer: Layer, refused: bool
    ) -> tuple[Finding | None, str | None]:
        """Return a finding on an id that the target refuses and a new id, which joins `taken`.

        `refused`: an error reply named the demand.
        """
        id_, fault = call.id, _fault(demand, call)
        if id_ is None or fault is None:
            return None, None
        origin = restore(id_, call.name)  # the original of a mangled id, if the target accepts it
        if origin is not None and origin.id and origin.id not in taken and demand.fault(origin.id, call.name) is None:
            new: str | None = origin.id
        else:
            new = demand.mint(id_, call.name, ordinal, taken)
        taken.add(new or "")
        where = "the call and its result" if side == "request" else "the call"
        verdict = "is refused by the API" if refused else f"does not fit {demand.target}"
        subject = f"id `{excerpt(id_)}` of the `{excerpt(call.name or '')}` call"
        message = f"{subject} {verdict}, which wants {demand.form}: {fault}"
        fix = Fix("safe", f"rename `{excerpt(id_)}` to `{new}` on {where}") if new else None
        return self.finding(side, message, call, severity="error" if refused else None, layer=layer, fix=fix), new


def _fault(demand: Demand, call: ToolCall) -> str | None:
    if call.id is None:
        return None
    fault = demand.fault(call.id, call.name)
    if fault is None and isinstance(demand, KimiK2) and is_broken_native(call.id, call.name):
        return "its separators are missing"
    return fault


def _pairs(exchange: Exchange) -> tuple[Pair, ...]:
    return pair(exchange.request).pairs if exchange.request is not None else ()
