from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from wirelint.apis.traits import traits
from wirelint.fix import FixPolicy, RequestFix, RewriteContext, Rewriter
from wirelint.fixes.calls import CallHeads, Head, HeadChange, ItemIds, has_head
from wirelint.history.id_demands import demand_of, is_kimi_k3, mint
from wirelint.history.pairing import Answer, Pair, next_id, pair, rename
from wirelint.model import Arguments, Exchange, Opaque, Reply, Request, Text, ToolCall, ToolResult
from wirelint.rule import REDACTED, Finding, Fix, Fixable, Layer, RequestRule, Severity, Side, excerpt, listed
from wirelint.state.ledger import Ledger


class DuplicateId(RequestRule):
    """Two tool calls or two results share one id, or a call has none.

    ## What it does
    Looks for ids on more than one call (in one message, across turns, in a reply and its history) and on more than one
    result of a call. Calls of a reply without an id (missing, null, empty) count too: no result can refer to them.

    ## Why is this bad?
    The id assigns a result to its call. Where two calls share an id, APIs reject the request, and clients that store
    calls by id overwrite one call or give its result to the other.

    ## Example
    A client numbers the calls of every turn from zero: `"id": "lookup_0"` in the first turn and again in the second.

    ## False positives
    Silent on a message that was sent twice (equal call, equal result), on candidates of one reply (`n` > 1), on empty
    ids in different turns, on calls without ids where the API needs none (Gemini, Ollama), and on Kimi K3, whose ids
    restart at zero with every user message.

    ## Fix safety
    Unsafe: the later call and its result get a new id, which assumes that results follow the order of their calls. A
    call without an id gets one, except where the server keeps the conversation and would not know it.

    ## References
    - Anthropic, Tool use: "each tool_use must have a single result"; ids are unique
    - OpenAI, Chat API: `tool_calls[].id`
    """

    severity = "error"
    layer = "client"
    requires_in_request = frozenset({"history"})
    request_safety = "unsafe"
    requires_in_reply = frozenset({"calls"})

    def faults(self, request: Request, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[Fixable]:
        groups, turns, paired = _groups(request), _turns(exchange), pair(request)
        ids = {id_ for each in paired.pairs for id_ in each.ids} | {orphan.result.call_id for orphan in paired.orphans}
        taken = {id_ for id_ in ids if id_}
        for id_, group in groups.items():
            if (twins := next(_twins(group, turns), None)) is not None:
                one, two = twins
                together = one.position == two.position
                where = "in one message" if together else f"in two turns (the other is {one.call.pointer})"
                shared = f"the id `{excerpt(id_)}`" if id_ else "an empty id"
                more = f", {len(group)} calls in all" if len(group) > 2 else ""
                message = f"calls of {_names(one.call, two.call)} {where} share {shared}{more}"
                finding = self._report("request", message, two.call, severity="error" if together else "warning")
                yield finding, self._separate(id_, group, exchange, taken) if REDACTED not in id_ else None
        lone = {id_: group[0].answer for id_, group in groups.items() if len(group) == 1}
        for repeat in paired.repeats:
            id_ = repeat.result.call_id or ""
            if (before := lone.get(id_)) is None:
                continue
            same = repeat.result.text == before.result.text
            if same and repeat.position != before.position:
                continue  # one message, sent twice
            del lone[id_]
            which = "the same" if same else "another"
            message = f"{which} result for the call `{excerpt(id_)}`, which has a result already"
            yield self._report("request", message, repeat.result, severity="warning" if same else "error"), None

    def _separate(self, id_: str, group: list[Pair], exchange: Exchange, taken: set[str]) -> RequestFix:
        """Return the fix that gives calls with one id different ones, which join `taken`."""
        renamed = list(_renumber(group, _turns(exchange), exchange, taken))
        edits = [edit for each, new in renamed for edit in rename(each, new, exchange.api)]
        shown = listed([f"`{excerpt(new)}`" for new in dict.fromkeys(new for _, new in renamed)], 3)
        which = f"later calls of `{excerpt(id_)}`" if id_.strip() else "the calls without an id"
        title, (first, new) = f"gave {which} and their results new ids: {shown}", renamed[0]
        return edits, self.repair("request", "unsafe", title, first.call.pointer, before=id_, after=new)

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.reply is None or not exchange.ok:
            return
        known = _Known(exchange)
        for choice, call in exchange.calls:
            # A call alone without an id; several are parallel calls that share none.
            if known.missing(call) and sum(not _id(other) for other in choice.calls) == 1:
                yield self._report("response", f"the call of `{_name(call)}` has no id", call, severity="warning")
            other, shared = known.shares(choice.index, call), f"the id `{excerpt(call.id or '')}`"
            known.add(choice.index, call)
            if isinstance(other, Pair):
                names = f"`{_name(call)}` and an earlier one of `{_name(other.call)}`"
                message = f"a new call of {names} ({other.call.pointer}) share {shared}"
            elif isinstance(other, Answer):
                answered = f"of a call that this request answers ({other.result.pointer})"
                message = f"a new call of `{_name(call)}` has {shared} {answered}"
            elif other is not None:
                message = f"parallel calls of {_names(other, call)} {f'share {shared}' if _id(call) else 'have no id'}"
            else:
                continue
            severity: Severity = "error" if isinstance(other, ToolCall) else "warning"
            yield self._report("response", message, call, severity=severity)
        yield from self._check_items(exchange.reply)

    def _check_items(self, reply: Reply) -> Iterator[Finding]:
        """Yield a finding for each call of OpenAI's Responses with a unique `call_id` and the `id` of another item."""
        calls = {call.pointer: call for call in reply.calls}
        for fault in reply.faults:
            if fault.kind != "shared-item":
                continue
            place, before, id_ = fault.detail.split(" ", 2)
            call, other = calls.get(place), calls.get(before)
            if call is not None and other is not None and call.id != other.id:
                share = f"share the item id `{excerpt(id_)}`" if id_ else "have an empty item id"
                message = f"the output items of calls of {_names(other, call)} {share}"
                fix = Fix("unsafe", "give the later item a new id")
                yield self.finding("response", message, call, layer="gateway", fix=fix)

    def rewriter(self, context: RewriteContext) -> Sequence[Rewriter]:
        if context.exchange.request is None or not context.permit.allows(self.code, "unsafe"):
            return ()
        known = _Known(context.exchange)

        def judge(head: Head) -> HeadChange | None:
            start, id_ = head.start, head.id
            form: Literal["legacy", "function"] = "legacy" if start.form == "legacy" else "function"
            call = ToolCall(id_, head.name, Arguments(""), start.pointer, form)
            missing, other = known.missing(call), known.shares(start.choice, call)
            known.add(start.choice, call)
            if other is None and not missing:
                context.taken.update([id_] if id_ else [])
                return None
            new = mint(context, head.name)
            known.add(start.choice, replace(call, id=new))  # a later call may have this id too
            title = f"gave the {'' if missing else 'later '}call of `{_name(call)}` the id `{new}`"
            self.record(context, "unsafe", title, start.pointer, at=start, before=id_ or "", after=new)
            return HeadChange("id", new)

        heads = CallHeads(context, judge, has_head, 3)
        return (ItemIds(self, context), heads) if context.exchange.api == "openai.responses" else (heads,)

    def _report(self, side: Side, message: str, part: ToolCall | ToolResult, *, severity: Severity) -> Finding:
        layer: Layer = "client" if side == "request" else "gateway"
        if not isinstance(part, ToolCall):
            return self.finding(side, message, part, severity=severity, layer=layer)
        title = "give each call its own id" if not _id(part) else "give the later call and its result a new id"
        return self.finding(side, message, part, severity=severity, layer=layer, fix=Fix("unsafe", title))


class _Known:
    """Calls that a new call of a reply may share its id with: calls of the history and of the reply."""

    def __init__(self, exchange: Exchange) -> None:
        request = exchange.request
        self._needs_ids = traits(exchange.api).has_call_ids
        self._earlier: dict[str, Pair | Answer] = {}
        self._turns = _turns(exchange)
        self._seen: dict[tuple[int, str | None], ToolCall] = {}
        self._kept = request is not None and request.is_partial
        if request is None:
            return
        if self._kept and self._turns is None:  # the server keeps the calls of these results
            self._earlier |= {one.result.call_id: one for one in pair(request).orphans if one.result.call_id}
        self._earlier |= {each.call.id: each for each in pair(request).pairs if each.call.id}

    def missing(self, call: ToolCall) -> bool:
        """Return True if a call lacks a necessary id. A server that keeps the conversation would not know a new one."""
        return self._needs_ids and not self._kept and not _id(call) and bool(call.name) and call.form != "legacy"

    def shares(self, choice: int, call: ToolCall) -> ToolCall | Pair | Answer | None:
        """Return the call with an equal id in the reply or the history, or the result of a call that the server keeps."""
        if not _id(call) and (not self._needs_ids or call.form == "legacy"):
            return None  # calls pair by order
        beside = self._seen.get((choice, _id(call)))
        if beside is not None and call.name:
            return beside
        before = self._earlier.get(_id(call) or "")
        scoped = before is not None and self._turns is not None and self._turns[before.position] != self._turns[-1]
        return None if scoped else before

    def add(self, choice: int, call: ToolCall) -> None:
        if _id(call) or call.name:
            self._seen.setdefault((choice, _id(call)), call)


def _id(call: ToolCall) -> str | None:
    """Return the id of a call; white space alone is none."""
    return call.id if call.id is None or call.id.strip() else ""


def _name(call: ToolCall) -> str:
    return excerpt(call.name or "")


def _names(one: ToolCall, two: ToolCall) -> str:
    return f"`{_name(one)}`" if one.name == two.name else f"`{_name(one)}` and `{_name(two)}`"


def _turns(exchange: Exchange) -> list[int] | None:
    """Return, for each message and for the reply, the number of the user message that it follows.

    None if an id may not occur in two turns: for all models but Kimi K3.
    """
    if exchange.request is None or not is_kimi_k3(exchange.model):
        return None
    begins = (
        message.role == "user" and any(isinstance(part, (Text, Opaque)) for part in message.parts)
        for message in exchange.request.messages
    )
    turns = list(itertools.accumulate(begins, initial=0))
    return [*turns[1:], turns[-1]]


def _twins(group: Sequence[Pair], turns: Sequence[int] | None) -> Iterator[tuple[Pair, Pair]]:
    """Yield neighbouring calls of one id that are different calls."""
    for one, two in itertools.pairwise(group):
        scoped = turns is not None and turns[one.position] != turns[two.position]
        # Separate items (Responses) may be sent again alone.
        beside = one.position == two.position and (not two.call.id or one.call.pointer.count("/") > 2)
        if beside or not (scoped or not two.call.id or _is_resent(one, two)):
            yield one, two


def _groups(request: Request) -> dict[str, list[Pair]]:
    groups: defaultdict[str, list[Pair]] = defaultdict(list)
    needed = traits(request.api).has_call_ids
    for each in pair(request).pairs:
        if each.call.id or (needed and each.call.id is not None):
            groups[each.call.id].append(each)
    return groups


def _renumber(
    group: Sequence[Pair], turns: Sequence[int] | None, exchange: Exchange, taken: set[str]
) -> Iterator[tuple[Pair, str]]:
    """Yield new ids for calls that share one; the first call keeps it, unless it is empty. A repeated call shares the new
    id; new ids join `taken`."""
    demand, latest = demand_of(exchange), group[0].call.id or ""
    sent: dict[tuple[str | None, str], str] = {}
    last: dict[str, Pair] = {}
    for each in group:
        call, own = (each.call.name, each.call.arguments.text), each.call.id or ""
        for id_ in (sent.get(call, own), own):
            if id_.strip() and (id_ not in last or next(_twins((last[id_], each), turns), None) is None):
                break
        else:
            latest = id_ = next_id(latest, each.call.name, exchange.model, demand, taken)
            taken.add(id_)
        sent[call], last[id_] = id_, each
        if id_ != own:
            yield each, id_


def _is_resent(one: Pair, two: Pair) -> bool:
    same = one.call.name == two.call.name and one.call.arguments == two.call.arguments
    if not same or one.answer is None or two.answer is None:
        return same
    return one.answer.result.text == two.answer.result.text
