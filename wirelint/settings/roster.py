"""Which of the rules in force are asked about an exchange, and which of their checks.

Most exchanges hold nothing that most rules are about: no call, no history of calls. What a rule has to find in an exchange
(`Rule.of_request`, `Rule.of_reply`) is looked for once for all rules, and the rules that are left are kept for each answer,
so that those that cannot find anything are not even looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from wirelint.model import Exchange
from wirelint.rule import Finding, Holding, MissingInfo, Rule

if TYPE_CHECKING:
    from wirelint.state.ledger import Ledger

Check: TypeAlias = "Callable[[Exchange, Ledger], Iterable[Finding]]"


class Asked(NamedTuple):
    """A rule, and the checks of it that may find something."""

    rule: Rule
    checks: tuple[Check, ...]


class Kind(NamedTuple):
    """What of an exchange decides which checks may find something in it."""

    open: bool
    missing: frozenset[MissingInfo]
    request: bool
    reply: bool
    holds: frozenset[Holding]

    @classmethod
    def of(cls, exchange: Exchange) -> Kind:
        request, reply = exchange.request, exchange.reply
        holds: list[Holding] = []
        if request is not None:
            if request.has_history:
                holds.append("history")
            if request.tools:
                holds.append("tools")
        if reply is not None:
            if [choice for choice in reply.choices if choice.calls]:
                holds.append("calls")
            if reply.streamed:
                holds.append("stream")
            if not reply.is_plain:
                holds.append("more")
        read = request is not None and "request" not in exchange.missing
        return cls(exchange.open, exchange.missing, read, reply is not None, frozenset(holds))


def asked(rules: Iterable[Rule], kind: Kind, *, brief: bool = False) -> tuple[Asked, ...]:
    """The rules that may find something in exchanges of a kind, in their order. `brief`: they take less than `least_of`
    the rules."""
    able = (Asked(rule, checks_of(rule, kind, brief=brief)) for rule in rules)
    return tuple(one for one in able if one.checks)


def checks_of(rule: Rule, kind: Kind, *, brief: bool = False) -> tuple[Check, ...]:
    """The checks of a rule that may find something: of an exchange that is still open, those of its course alone."""
    if rule.needs & kind.missing:
        return ()
    checks: list[Check] = [rule.check_course] if rule.is_timed and not (brief and rule.min_duration) else []
    if kind.open:
        return tuple(checks)
    if (
        kind.request
        and rule.requires_in_request <= kind.holds
        and not _is_inherited(rule.check_request, Rule.check_request)
    ):
        checks.append(rule.check_request)
    if kind.reply and rule.requires_in_reply <= kind.holds and not _is_inherited(rule.check_reply, Rule.check_reply):
        checks.append(rule.check_reply)
    return tuple(checks)


def least_of(rules: Iterable[Rule]) -> float:
    """Seconds below which the course of an exchange is nothing to any rule that has such a bound."""
    return min((rule.min_duration for rule in rules if rule.is_timed and rule.min_duration), default=0.0)


def lasted(exchange: Exchange) -> float:
    """The seconds of an exchange, by all that is known of its times."""
    times, timing = exchange.arrivals.times, exchange.timing
    return max(max(times) if times else 0.0, timing.duration or 0.0, timing.first_byte or 0.0) / 1000


def _is_inherited(check: Check, empty: object) -> bool:
    """Whether a check is that of `Rule`, which finds nothing."""
    return getattr(check, "__func__", None) is empty
