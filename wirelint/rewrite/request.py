"""Repairs of a request before it is sent. The rules change its body one after the other.

A request that needs no repair is returned unchanged: nothing is decoded again and nothing is copied.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import urlsplit

from wirelint.apis import as_object, by_name, channel_of
from wirelint.engine import internal
from wirelint.fix import Answer, AppliedFix, Edit, FixPolicy, RequestFix
from wirelint.jsonvalues import decode_json
from wirelint.model import Exchange, Json, Request
from wirelint.rewrite.edits import apply
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger, Unnamed
from wirelint.state.server_state import CODE, lost, resend, settle
from wirelint.text.pointers import at

_MOST_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Mended:
    """A request in the form in which it is forwarded. `body` is the original object if nothing was changed.

    `request` is the request that the forwarded body holds, None if the original could not be read. `faults` are
    failures of wirelint.
    """

    body: bytes
    request: Request | None
    repairs: tuple[AppliedFix, ...] = ()
    faults: tuple[Finding, ...] = ()


def mend_request(head: Exchange, body: bytes, rules: Sequence[Rule], ledger: Ledger, permit: FixPolicy) -> Mended:
    """Make every permitted repair that the rules have for a request. Never raises.

    `head` is the exchange before its reply, `body` the bytes of its request without content codings. Rules run in the
    order of their codes, and each sees the changes of those before it. A rule runs again if another rule changed a
    field that it reads, since one repair can make another one necessary. A rule that fails, or whose edits leave an
    unreadable request, changes nothing and is reported in `faults`.
    """
    if head.request is None or not permit:
        return Mended(body, head.request)
    able = _able(tuple(rules), head.api, "fix_request")
    asked: Sequence[Rule] = able
    state = ledger.server_state(head.request, head.url) if head.request.is_continued else None
    if not asked and state is None:
        return Mended(body, head.request)
    work = _Work(head, body, ledger, permit)
    if state is not None and (replay := state.replay) is not None:
        # The request continues from before the reply that it names. The rules then see all messages in it.
        work.adapt("sending the conversation again", lambda request: resend(request, replay))
    for _ in range(_MOST_ROUNDS if asked else 0):
        work.touched = {}
        for rule in asked:
            if rule.code not in work.failed:
                work.ask(rule)
        if not work.touched:
            break
        asked = work.concerned(able)
    if state is not None:
        # Earlier repairs of the previous reply require changes.
        work.adapt("fitting the request to the server's conversation", lambda request: settle(request, state))
    return Mended(work.body, work.exchange.request, tuple(work.repairs), tuple(work.faults))


@lru_cache(maxsize=256)
def _able(rules: tuple[Rule, ...], api: str, member: str) -> tuple[Rule, ...]:
    """Return the rules with a `member` (`fix_request`, `answer`) for an API's requests, in the order of their codes."""
    able = [rule for rule in rules if getattr(type(rule), member) is not getattr(Rule, member)]
    able = [rule for rule in able if channel_of(api) in rule.channels and api in (rule.request_apis or (api,))]
    return tuple(sorted(able, key=lambda rule: rule.code))


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request that is not forwarded, and failures. `answer` None: forward the request."""

    answer: Answer | None = None
    faults: tuple[Finding, ...] = ()


def answer_request(head: Exchange, rules: Sequence[Rule], ledger: Ledger, permit: FixPolicy) -> Answered:
    """Return the answer to a request that is not forwarded, because of the server's state or a rule. Never raises."""
    if head.request is None or not permit:
        return Answered()
    faults: list[Finding] = []
    state = ledger.server_state(head.request, head.url) if head.request.is_continued else None
    if state is not None and (answer := lost(head, state)) is not None:
        return Answered(answer)
    for rule in _able(tuple(rules), head.api, "answer"):
        try:
            answer = rule.answer(head, ledger, permit)
        except Exception as error:  # fail open: the request goes out
            faults.append(_fault(f"the answer of {rule.name}", error))
            continue
        if answer is not None and permit.allows(answer.repair.code, answer.repair.safety):
            return Answered(answer, tuple(faults))
    return Answered(None, tuple(faults))


def _fault(culprit: str, error: Exception) -> Finding:
    return dataclasses.replace(internal(culprit, error), side="request")


class _Work:
    """A request on its way through the rules."""

    def __init__(self, head: Exchange, body: bytes, ledger: Ledger, permit: FixPolicy) -> None:
        self.exchange: Exchange = Unnamed.of(head, ledger)
        self.body = body
        self.repairs: list[AppliedFix] = []
        self.faults: list[Finding] = []
        self.failed: set[str] = set()
        self.touched: dict[str, frozenset[str]] = {}
        """The top-level members changed since the set was last cleared, by the code of the rule that changed them."""
        self._ledger, self._permit = ledger, permit
        self._shifts: list[_Moves] = []

    def concerned(self, rules: Iterable[Rule]) -> list[Rule]:
        """Return the rules that read a field which another rule has changed."""
        return [
            rule
            for rule in rules
            if any(code != rule.code and not names <= rule.ignored_fields for code, names in self.touched.items())
        ]

    def ask(self, rule: Rule) -> None:
        """Make the repairs of one rule: all of them, or none if it fails."""
        request = self.exchange.request
        if "history" in rule.requires_in_request and request is not None and not request.has_history:
            return

        def find() -> list[RequestFix]:
            found = rule.fix_request(self.exchange, self._ledger, self._permit)
            return [fix for fix in found if self._permit.allows(fix[1].code, fix[1].safety)]

        self._make(rule.code, f"the repair of requests by {rule.name}", find)

    def adapt(self, what: str, find: Callable[[Request], Iterable[RequestFix]]) -> None:
        """Make the repairs that the server's state requires."""
        request = self.exchange.request
        if request is not None:
            self._make(CODE, what, lambda: list(find(request)))

    def _make(self, code: str, what: str, find: Callable[[], list[RequestFix]]) -> None:
        try:
            found = find()
            edits = [edit for some, _ in found for edit in some]
            if not edits:
                return
            changed = apply(self.body, edits)
            if changed is self.body:
                return
            again = _with_request(self.exchange, decode_json(changed))
            placed = [_placed(repair, self._shifts) for _, repair in found]
            moves = _moves(self.exchange, edits)
        except Exception as error:  # fail open: the request goes out without the repairs of this rule
            self.faults.append(_fault(what, error))
            self.failed.add(code)
            return
        self.body, self.exchange = changed, again
        self.touched[code] = frozenset([edit.pointer[1:].partition("/")[0] for edit in edits])
        self.repairs += placed
        if moves:
            self._shifts.append(moves)


def _with_request(exchange: Exchange, document: Json) -> Exchange:
    """Return the exchange with another request body, in the same conversation. Raises ValueError."""
    api = by_name(exchange.api)
    if api is None or not isinstance(document, (dict, list)):
        raise ValueError("what is left is no request")
    request = api.read_request(as_object(document), urlsplit(exchange.url).path)
    return exchange.but(request=request)


_Moves: TypeAlias = "dict[str, list[tuple[int, bool]]]"
"""The elements that one rule removed from arrays or inserted into them, by the array's pointer before the change: the
number of each element, and True if it was removed; in order."""


def _moves(exchange: Exchange, edits: Sequence[Edit]) -> _Moves:
    body = exchange.request.body if exchange.request is not None else None
    removed = {edit.pointer for edit in edits if edit.op == "remove"}  # two edits may remove one element
    inserted = [edit.pointer for edit in edits if edit.op == "insert"]
    moves: _Moves = {}
    for pointer, gone in [*((one, False) for one in inserted), *((one, True) for one in removed)]:
        array, _, number = pointer.rpartition("/")
        if number.isdecimal() and isinstance(at(body, array), list):
            moves.setdefault(array, []).append((int(number), gone))
    return {array: sorted(found) for array, found in moves.items()}


def _placed(repair: AppliedFix, shifts: Sequence[_Moves]) -> AppliedFix:
    """Return a repair with the pointer that its place had in the original body, before elements moved.

    An inserted element gets the place of the next element.
    """
    pointer = repair.pointer
    for moves in reversed(shifts):
        pointer = _before(pointer, moves) if pointer is not None else None
    return dataclasses.replace(repair, pointer=pointer)


def _before(pointer: str, moves: _Moves) -> str:
    path = ""
    for token in pointer.split("/")[1:]:
        if token.isdecimal() and path in moves:
            number = int(token)
            for moved, gone in moves[path]:
                number += moved <= number if gone else -(moved < number)
            token = str(number)
        path = f"{path}/{token}"
    return path
