from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from wirelint.apis.traits import traits
from wirelint.events import Start
from wirelint.fixes.callids import NewIds
from wirelint.history.id_demands import demand_of, is_kimi_k3
from wirelint.history.minting import mint
from wirelint.history.pairing import Answer, Pair, next_id, pair, rename
from wirelint.model import Arguments, Choice, Exchange, Opaque, Request, Text, ToolCall, ToolResult
from wirelint.rule import (
    AppliedFix,
    Finding,
    Fix,
    FixPolicy,
    RequestFix,
    RewriteContext,
    Rewriter,
    Rule,
    Severity,
    Side,
    excerpt,
)
from wirelint.state.ledger import Ledger


class DuplicateId(Rule):
    """Two tool calls, or two results, share one id, or a call has none.

    ## What it does
    Looks for ids that stand on more than one call, in one message or across the turns of a history, on more than one result
    of a single call, on parallel calls of a reply, and on a call of a reply that reuses the id of an earlier one. Calls of
    a reply that have no id (missing, null, empty) are reported too: no result can say that it answers them.

    ## Why is this bad?
    A result says by its id which call it answers. Where two calls share it, APIs reject the request, and clients that keep
    calls by id overwrite one with the other or give one call's result to the other.

    ## Example
    Every request of the same client numbers its calls from zero: `"id": "lookup_0"` in the first turn and again in the
    second.

    ## False positives
    Silent when the same message was sent twice (same call, same result), on the candidates of one reply (`n` > 1), on
    empty ids in different turns, on calls without ids where the API does without (Gemini, Ollama), and on Kimi K3, whose
    ids count from zero for every message of the user.

    ## Fix safety
    Unsafe: renumbering the later call and its result assumes that results stand in the order of their calls. A call without
    an id gets one, save where the server keeps the conversation and would not know it.

    ## References
    - Anthropic, Tool use: "each tool_use must have a single result"; ids are unique
    - OpenAI, Chat API: `tool_calls[].id`
    """

    code = "ID305"
    name = "duplicate-id"
    severity = "error"
    layer = "client"
    ignored_fields = frozenset({"stream_options"})
    requires_in_request = frozenset({"history"})
    requires_in_reply = frozenset({"calls"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None:
            return
        groups, turns = _groups(request), _turns(request) if is_kimi_k3(exchange.model) else None
        for id_, group in groups.items():
            twins = next(_twins(group, turns), None)
            if twins is not None:
                yield self._tell_calls(id_, *twins, len(group))
        lone = {id_: group[0].answer for id_, group in groups.items() if len(group) == 1}
        yield from self._check_repeats(exchange, lone, pair(request).repeats)

    def mend(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[RequestFix]:
        request = exchange.request
        if request is None or not permit.allows(self.code, "unsafe"):
            return
        turns = _turns(request) if is_kimi_k3(exchange.model) else None
        taken: set[str] | None = None
        for id_, group in _groups(request).items():
            if "[redacted:" in id_ or next(_twins(group, turns), None) is None:
                continue
            taken = taken if taken is not None else _taken(request)
            renamed = list(_renumber(group, turns, exchange, taken))
            edits = [edit for each, new in renamed for edit in rename(each, new, exchange.api)]
            first = renamed[0][0].call
            shown = ", ".join(f"`{excerpt(new)}`" for new in dict.fromkeys(new for _, new in renamed[:3]))
            more = f" and {len(renamed) - 3} more" if len(renamed) > 3 else ""
            title = f"gave later calls of `{excerpt(id_)}` and their results ids of their own: {shown}{more}"
            yield edits, self.repair("request", "unsafe", title, first.pointer, before=id_, after=renamed[0][1])

    def _check_repeats(
        self, exchange: Exchange, first: Mapping[str, Answer | None], repeats: Iterable[Answer]
    ) -> Iterator[Finding]:
        told: set[str] = set()
        for repeat in repeats:
            id_ = repeat.result.call_id or ""
            before = first.get(id_)
            if before is None or id_ in told:
                continue
            same = repeat.result.text == before.result.text
            if same and repeat.position != before.position:
                continue  # the same message, sent twice
            told.add(id_)
            yield self._tell(
                "request",
                f"{'the same' if same else 'another'} result for the call `{excerpt(id_)}`, which was answered before",
                repeat.result,
                severity="warning" if same else "error",
            )

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.reply is None or not exchange.ok:
            return
        known = _Known(exchange)
        for choice in exchange.reply.choices:
            for call in choice.calls:
                if known.alone(choice, call):
                    yield self._tell("response", f"the call of `{_name(call)}` has no id", call, severity="warning")
                other = known.shares(choice.index, call)
                if isinstance(other, Pair):
                    names = f"`{_name(call)}` and an earlier one of `{_name(other.call)}`"
                    told = f"a new call of {names} ({other.call.pointer}) share the id `{excerpt(call.id or '')}`"
                    yield self._tell("response", told, call, severity="warning")
                elif isinstance(other, Answer):
                    answered = (
                        f"`{excerpt(call.id or '')}` of a call that this request answers ({other.result.pointer})"
                    )
                    told = f"a new call of `{_name(call)}` has the id {answered}"
                    yield self._tell("response", told, call, severity="warning")
                elif other is not None:
                    share = f"share the id `{excerpt(call.id)}`" if call.id else "have no id"
                    told = f"parallel calls of {_names(other, call)} {share}"
                    yield self._tell("response", told, call, severity="error")
                known.add(choice.index, call)

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        if context.exchange.request is None or not context.permit.allows(self.code, "unsafe"):
            return None
        known = _Known(context.exchange)

        def choose(start: Start, id_: str | None, name: str | None) -> tuple[str, AppliedFix] | None:
            call = ToolCall(id_, name, Arguments(""), start.pointer, "legacy" if start.form == "legacy" else "function")
            missing, other = known.missing(call), known.shares(start.choice, call)
            known.add(start.choice, call)
            if other is None and not missing:
                return None
            new = mint(context, name)
            known.add(start.choice, replace(call, id=new))  # a call that is still to come may have this one, too
            event = start.frame.number if start.frame is not None and context.streamed else None
            title = f"gave the {'' if missing else 'later '}call of `{_name(call)}` the id `{new}`"
            where = start.pointer
            return new, self.repair("response", "unsafe", title, where, event=event, before=id_ or "", after=new)

        return NewIds(context, choose)

    def _tell_calls(self, id_: str, one: Pair, two: Pair, count: int) -> Finding:
        together = one.position == two.position
        where = "in one message" if together else f"in two turns (the other is {one.call.pointer})"
        shared = f"the id `{excerpt(id_)}`" if id_ else "an empty id"
        more = f", {count} calls in all" if count > 2 else ""
        message = f"calls of {_names(one.call, two.call)} {where} share {shared}{more}"
        return self._tell("request", message, two.call, severity="error" if together else "warning")

    def _tell(self, side: Side, message: str, part: ToolCall | ToolResult, *, severity: Severity) -> Finding:
        call = part if isinstance(part, ToolCall) else None
        return self.finding(
            side,
            message,
            part.pointer,
            event=call.event if call is not None and side == "response" else None,
            severity=severity,
            layer="client" if side == "request" else "gateway",
            fix=_fix(call, side) if call is not None else None,
        )


class _Known:
    """The calls that a new call of a reply may share its id with: those of the history, and those beside it."""

    def __init__(self, exchange: Exchange) -> None:
        request = exchange.request
        self._needs_ids = traits(exchange.api).call_ids
        pairs = pair(request).pairs if request is not None else ()
        self._earlier: dict[str, Pair | Answer] = {each.call.id: each for each in pairs if each.call.id}
        self._turns = _turns(request) if request is not None and is_kimi_k3(exchange.model) else None
        self._seen: dict[tuple[int, str | None], ToolCall] = {}
        self._kept = request is not None and request.is_partial
        if request is not None and self._kept and self._turns is None:  # the server has the calls of these results
            orphans = [orphan for orphan in pair(request).orphans if orphan.result.call_id]
            self._earlier = {**{orphan.result.call_id or "": orphan for orphan in orphans}, **self._earlier}

    def missing(self, call: ToolCall) -> bool:
        """Whether a call has no id and needs one, which a server that keeps the conversation itself would not know."""
        return self._needs_ids and not self._kept and not call.id and bool(call.name) and call.form != "legacy"

    def alone(self, choice: Choice, call: ToolCall) -> bool:
        """Whether a call is the only one of a reply that lacks an id."""
        return self.missing(call) and sum(not other.id for other in choice.calls) == 1

    def shares(self, choice: int, call: ToolCall) -> ToolCall | Pair | Answer | None:
        """The call that has this call's id, in the reply or in the history, or the result of one that the server has."""
        if not call.id and (not self._needs_ids or call.form == "legacy"):
            return None  # calls are known by their order
        beside = self._seen.get((choice, call.id))
        if beside is not None and call.name:
            return beside
        before = self._earlier.get(call.id or "")
        scoped = before is not None and self._turns is not None and self._turns[before.position] != self._turns[-1]
        return None if scoped else before

    def add(self, choice: int, call: ToolCall) -> None:
        if call.id or call.name:
            self._seen.setdefault((choice, call.id), call)


def _fix(call: ToolCall, side: Side) -> Fix:
    if side == "response" and not call.id:
        return Fix("unsafe", "give each call an id of its own")
    return Fix("unsafe", "give the later call and its result an id of their own")


def _name(call: ToolCall) -> str:
    return excerpt(call.name or "")


def _names(one: ToolCall, two: ToolCall) -> str:
    return f"`{_name(one)}`" if one.name == two.name else f"`{_name(one)}` and `{_name(two)}`"


def _turns(request: Request) -> list[int]:
    """For each message, the number of the user's words that it follows; one more entry for the reply."""
    turns, turn = [], 0
    for message in request.messages:
        turn += message.role == "user" and any(isinstance(part, (Text, Opaque)) for part in message.parts)
        turns.append(turn)
    return [*turns, turn]


def _twins(group: Sequence[Pair], turns: Sequence[int] | None) -> Iterator[tuple[Pair, Pair]]:
    """Neighbours among calls of one id that cannot be told apart by it, and are not one call sent twice."""
    for one, two in itertools.pairwise(group):
        scoped = turns is not None and turns[one.position] != turns[two.position]
        if _together(one, two) or not (scoped or not two.call.id or _resent(one, two)):
            yield one, two


def _together(one: Pair, two: Pair) -> bool:
    """Whether two calls stand in one message. Where each is an item of its own (Responses), it can be sent again alone."""
    return one.position == two.position and (not two.call.id or one.call.pointer.count("/") > 2)


def _groups(request: Request) -> dict[str, list[Pair]]:
    """The calls of a history by their ids."""
    groups: dict[str, list[Pair]] = {}
    needed = traits(request.api).call_ids
    for each in pair(request).pairs:
        if each.call.id or (needed and each.call.id is not None):
            groups.setdefault(each.call.id, []).append(each)
    return groups


def _taken(request: Request) -> set[str]:
    paired = pair(request)
    answers = (*paired.orphans, *(each.answer for each in paired.pairs if each.answer is not None))
    ids = {answer.result.call_id for answer in answers} | {each.call.id for each in paired.pairs}
    return {id_ for id_ in ids if id_}


def _renumber(
    group: Sequence[Pair], turns: Sequence[int] | None, exchange: Exchange, taken: set[str]
) -> Iterator[tuple[Pair, str]]:
    """New ids for calls that share one; what was sent twice shares one on. The ids are then taken."""
    demand, latest = demand_of(exchange), group[0].call.id or ""
    sent: dict[tuple[str | None, str], str] = {}
    last: dict[str, Pair] = {}
    for each in group:
        call, own = (each.call.name, each.call.arguments.text), each.call.id or ""
        for id_ in (sent.get(call, own), own):
            if id_ not in last or next(_twins((last[id_], each), turns), None) is None:
                break
        else:
            latest = id_ = next_id(latest, each.call.name, exchange.model, demand, taken)
            taken.add(id_)
        sent[call], last[id_] = id_, each
        if id_ != own:
            yield each, id_


def _resent(one: Pair, two: Pair) -> bool:
    same = one.call.name == two.call.name and one.call.arguments == two.call.arguments
    if not same or one.answer is None or two.answer is None:
        return same
    return one.answer.result.text == two.answer.result.text
