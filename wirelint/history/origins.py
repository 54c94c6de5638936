"""Ids of a history that were altered after they passed, and their originals.

Theory of operation. Calls and results are paired first (`pairing`), so an id is compared together with its counterpart.
The recorded calls (`Ledger`) are searched for the same id, then for the same letters and digits, then for the same call
under another id. If none was recorded, the form of an id decides in the few cases in which it can (`ids.restore`).

If the server keeps a part of the conversation, a result without its call is compared with the recorded calls only. Results
whose ids identify nothing belong to the calls that wait for one, if there are as many.

An id is restored only if no two calls with different ids then share one. An equal function with equal arguments identifies
the call, but is no reason to change its id: if call and result agree on an id that the target accepts, the client makes its
own ids, and they stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from wirelint.apis.traits import traits
from wirelint.history.id_demands import KimiK2, demand_of, is_broken_native, is_kimi_k2, is_kimi_k3
from wirelint.history.ids import Match, Origin, form_of, is_drawn, is_placeholder, key, match, restore, restore_counted
from wirelint.history.pairing import Answer, Pair, pair
from wirelint.model import Arguments, Exchange, ToolCall, ToolResult
from wirelint.state.ledger import Issued, Ledger

Place: TypeAlias = Literal["call", "result", "call and its result"]

_COMPARED = 64
_REPLACED = "another id in its place"
_BARE_UUID = 36
_TELLING = 12
_OF_A_REPLY = re.compile(r"(?P<stem>(?:[A-Za-z]+[_-])?)\d{1,3}")
_QUALIFIED = re.compile(r"[^A-Za-z0-9](?P<stem>(?:[A-Za-z]+[_-])?)\d{1,3}\Z")


@dataclass(frozen=True, slots=True)
class Mangling:
    """An altered id: of a call, of its result, or of both. `restorable`: the original is known and can be put back."""

    pair: Pair
    origin: Origin
    place: Place
    restorable: bool

    @property
    def part(self) -> ToolCall | ToolResult:
        """The part that carries the reported id."""
        answer = self.pair.answer
        return answer.result if self.place == "result" and answer is not None else self.pair.call

    @property
    def given(self) -> str:
        """The id in the request."""
        part = self.part
        return (part.id if isinstance(part, ToolCall) else part.call_id) or ""


def manglings(exchange: Exchange, ledger: Ledger) -> Iterator[Mangling]:
    """Yield the altered ids of a request's history, in order, one per call."""
    request = exchange.request
    if request is None:
        return
    pairs, needed = pair(request).pairs, traits(request.api).has_call_ids
    left = {answer.result.call_id for answer in pair(request).orphans}
    history = {each.call.id for each in pairs if each.call.id}
    found: list[Mangling] = []
    for each in pairs:
        is_redacted = any(id_ is not None and "[redacted:" in id_ for id_ in each.ids)
        is_left_out = not (needed or each.call.id)  # as the API allows
        if each.call.form != "legacy" and not is_redacted and not is_left_out:
            found += filter(None, (_judge(each, exchange, ledger, history, left),))
    if found:
        yield from _without_collisions(found, pairs)
    if request.is_partial:
        yield from _answers_elsewhere(exchange, ledger)


def _answers_elsewhere(exchange: Exchange, ledger: Ledger) -> Iterator[Mangling]:
    """Yield altered ids of results whose calls the server keeps: the passed ids are the only reference."""
    request, conversation = exchange.request, exchange.conversation
    orphans = pair(request).orphans if request is not None else ()
    given = {answer.result.call_id for answer in orphans}
    passed = ledger.calls(conversation)[-_COMPARED:] if orphans else ()
    unanswered = [issued for issued in passed if not ledger.is_returned(issued.id, issued.conversation)]
    mute = [answer for answer in orphans if _is_mute(answer.result.call_id or "", ledger, conversation)]
    waiting = [issued for issued in unanswered if issued.id not in given]
    if mute and len(mute) == len(waiting):  # in order, as if the calls were in this request
        for answer, issued in zip(mute, waiting, strict=True):
            yield _elsewhere(answer, issued, Match("something that is no id in its place", "medium"))
    for answer in orphans:
        id_ = answer.result.call_id or ""
        if len(key(id_)) < _TELLING or "[redacted:" in id_ or ledger.issued(id_, conversation) is not None:
            continue
        others = (
            each for each in ledger.similar(id_, conversation) if not ledger.is_returned(each.id, each.conversation)
        )
        near = {
            issued.id: (issued, altered)
            for issued in (*others, *unanswered)
            if (altered := match(issued.id, id_)) is not None
        }
        if len(near) == 1:  # the only recorded call of whose id it is an altered form
            yield _elsewhere(answer, *next(iter(near.values())))


def _is_mute(id_: str, ledger: Ledger, conversation: str | None) -> bool:
    """Return True if an id in a request identifies no call, and did not pass as an id."""
    return (is_placeholder(id_) or not key(id_)) and ledger.issued(id_, conversation) is None


def _elsewhere(answer: Answer, issued: Issued, altered: Match) -> Mangling:
    """Return the mangling of a result's id whose call is not in the request."""
    call = ToolCall(issued.id, issued.name, Arguments(issued.arguments), answer.result.pointer)
    each = Pair(call, answer.position, replace(answer, match=altered))
    return Mangling(each, Origin(issued.id, altered.how, altered.certainty), "result", restorable=True)


def _without_collisions(found: Sequence[Mangling], pairs: Sequence[Pair]) -> Iterator[Mangling]:
    """Yield manglings. A mangling is not restorable if a call with another id has, or would get, the same id."""
    wanted = {id(one.pair): one.origin.id for one in found if one.restorable and one.place != "result"}
    sharing: dict[str, list[Pair]] = {}
    for each in pairs:
        final = wanted.get(id(each), each.call.id)
        if final:
            sharing.setdefault(final, []).append(each)
    collide = {final for final, group in sharing.items() if len(group) > 1 and _collide(group)}
    for one in found:
        yield replace(one, restorable=False) if wanted.get(id(one.pair)) in collide else one


def _collide(group: Sequence[Pair]) -> bool:
    """Return True if calls with different ids are different calls, not one call that was sent several times."""
    if len({each.call.id for each in group}) == 1:
        return False
    said = {
        (each.call.name, each.call.arguments.text, each.answer.result.text if each.answer is not None else None)
        for each in group
    }
    return len(said) > 1 or len({each.position for each in group}) < len(group)


def _judge(each: Pair, exchange: Exchange, ledger: Ledger, history: set[str], left: set[str | None]) -> Mangling | None:
    """Return the mangling of a call's or its result's id. `left` are the ids of results without a call."""
    given, answered = each.ids
    alteration = each.answer.match if each.answer is not None else None
    origin = _origin(each, exchange, ledger, history)
    if origin is not None and origin.id == given:
        origin = None
    if alteration is None:
        if origin is None or (origin.id is not None and _is_forced(exchange, each.call, origin.id)):
            return None
        if origin.how == _REPLACED and origin.id not in left and _is_accepted(exchange, each.call):
            return None
        return Mangling(each, origin, "call and its result" if each.answer is not None else "call", bool(origin.id))
    if origin is None:  # no sign that the call's id was altered: the result's id was
        return Mangling(each, Origin(given or None, alteration.how, alteration.certainty), "result", bool(given))
    return Mangling(each, origin, "call" if answered == origin.id else "call and its result", bool(origin.id))


def _origin(each: Pair, exchange: Exchange, ledger: Ledger, history: set[str]) -> Origin | None:
    """Return the original id of a call, as it passed or must have passed; None without a sign of a change."""
    id_, name = each.call.id or "", each.call.name
    if id_ and ledger.issued(id_, exchange.conversation) is not None:
        return None
    passed = _passed(each.call, exchange, ledger, history)
    if passed is not None:
        return passed
    own = _by_form(id_, name, exchange.model)
    if (own is not None and own.id is not None) or each.answer is None or each.answer.match is None:
        return own
    other = each.answer.result.call_id or ""
    if ledger.issued(other, exchange.conversation) is None and not _is_result_original(other, id_):
        return own
    own = _by_form(other, name, exchange.model) if not id_ or is_placeholder(id_) else None
    if own is not None and own.id is not None:
        return own
    found = match(other, id_, name) or each.answer.match
    return Origin(other, found.how, found.certainty)


def _by_form(id_: str, name: str | None, model: str) -> Origin | None:
    """Return the original of an id by its form alone; None without a sign of a change."""
    own = restore(id_, name)
    if own is None and (is_kimi_k2(model) or is_kimi_k3(model)):
        return restore_counted(id_, name, "functions." if is_kimi_k2(model) else "")
    return own


def _is_result_original(other: str, id_: str) -> bool:
    """Return True if the result's id is the original, and that of the call the altered one."""
    if (id_ == other.casefold() and not other.isupper()) or not id_ or is_placeholder(id_):
        return True
    return form_of(other) is not None and form_of(id_) is None and len(key(other)) >= len(key(id_))


def _passed(call: ToolCall, exchange: Exchange, ledger: Ledger, history: set[str]) -> Origin | None:
    conversation = exchange.conversation
    id_, name = call.id or "", call.name or ""
    lineage = (*ledger.lineage(conversation), None)
    for issued in ledger.similar(id_, conversation) if id_ else ():
        near = issued.conversation in lineage and issued.name == name
        if (near or is_drawn(issued.id, issued.name)) and issued.id not in history:
            found = match(issued.id, id_)
            return Origin(issued.id, found.how if found else "other characters", "high")
    equal = () if _is_foreign(id_, name) else ledger.alike(name, call.arguments.text, conversation)
    alike = [
        issued
        for issued in equal
        if issued.id not in history
        and not _is_prefixed_counter(id_, issued.id)
        # An id that was sent back belongs to another run of the same prompt.
        and not ledger.is_returned(issued.id, conversation)
        and not ledger.is_returned(issued.id, issued.conversation)
    ]
    if len(alike) == 1:
        found = match(alike[0].id, id_, name)
        if found is None and id_ and alike[0].api != exchange.api:
            return None  # unrelated ids at another service: it got the same prompt
        how = found.how if found is not None else _REPLACED if id_ else "nothing in its place"
        return Origin(alike[0].id, how, "high" if found is not None else "medium")
    if not id_:
        return None
    altered = {
        issued.id: found
        for issued in ledger.calls(conversation)[-_COMPARED:]
        if issued.name == name and issued.id not in history and (found := match(issued.id, id_, name)) is not None
    }
    for certainty in ("high", "medium", "low"):
        fitting = [(one, found) for one, found in altered.items() if found.certainty == certainty]
        if fitting:
            one, found = fitting[0]
            return Origin(one, found.how, found.certainty) if len(fitting) == 1 else None
    return None


def _is_foreign(id_: str, name: str) -> bool:
    """Return True if an id has the form of a vendor: it comes from another model, not from the client."""
    maker = form_of(id_) if not is_placeholder(id_) else None  # `undefined` has nine letters, like ids of Mistral
    if maker == "a generator of UUIDs" and len(id_) == _BARE_UUID:
        return False  # clients that keep calls in their own store replace every id by one
    # Nine letters and digits that spell the function's name are no form of Mistral.
    return maker not in (None, "a counter") and not (maker == "Mistral" and key(name) in key(id_))


def _is_prefixed_counter(id_: str, issued: str) -> bool:
    """Return True if an id is a counter of one reply (`call_0`) with the prefix that a store of many replies needs."""
    counter, tail = _OF_A_REPLY.fullmatch(issued), _QUALIFIED.search(id_[-64:])
    return counter is not None and tail is not None and tail["stem"].endswith(counter["stem"])


def _is_accepted(exchange: Exchange, call: ToolCall) -> bool:
    """Return True if the target accepts the id of a call, or if no demand of the target is known."""
    demand = demand_of(exchange)
    if isinstance(demand, KimiK2):  # it accepts any id, but stops calling tools if its own ids are replaced
        return form_of(call.id or "") == "Kimi K2"
    id_ = (call.id or "").strip()
    return bool(id_) and not is_placeholder(id_) and (demand is None or demand.fault(call.id or "", call.name) is None)


def _is_forced(exchange: Exchange, call: ToolCall, original: str) -> bool:
    """Return True if the target would refuse the original, or be misled by it, and accepts the current id."""
    demand = demand_of(exchange)
    if demand is None or not call.id:
        return False
    refused = demand.fault(original, call.name) is not None
    broken = isinstance(demand, KimiK2) and is_broken_native(original, call.name)
    return (refused or broken) and demand.fault(call.id, call.name) is None
