"""The one verdict on the arguments of a call that the rule reports and the repairs carry out.

Policies come first, as their file orders them; then values that nobody knew (`text.unsaid`) at places of which
no policy has complained. Of the latter only the word for nothing has a repair: null where the schema takes it, else the
argument goes where it need not be there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wirelint.arguments.argument_members import GONE, Gone
from wirelint.arguments.invented import Invention, Said, inventions
from wirelint.model import Confidence, Json, Severity, Tool
from wirelint.policy.judging import NO_POLICIES, Breach, Policies, Safety, describe
from wirelint.text.excerpts import excerpt

_FEWEST_SURE: Mapping[Confidence, Severity] = {"high": "warning", "medium": "warning", "low": "info"}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing about the arguments of a call. `safety` is that of its repair, None where it has none.

    `order` says what to do, `done` what was done; `path` is the place inside the arguments.
    """

    message: str
    severity: Severity
    confidence: Confidence
    path: tuple[str | int, ...]
    safety: Safety | None = None
    order: str = ""
    done: str = ""
    blocks: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """`changes` are the top-level arguments changed, `made` the faults whose repair that is; `blocked`: no call is left."""

    faults: tuple[Fault, ...]
    made: tuple[Fault, ...] = ()
    changes: Mapping[str, Json | Gone] | None = None
    blocked: Fault | None = None


def hold(
    name: str,
    arguments: dict[str, Json],
    tool: Tool | None,
    policies: Policies = NO_POLICIES,
    said: Said | None = None,
    allowed: Callable[[Safety], bool] = lambda _: True,
) -> Outcome:
    """Judges the arguments of a call. `said` None: nothing is known of the conversation, so only policies speak.

    `allowed` says which repairs are made.
    """
    judged = policies.judge(name, arguments, allowed) if policies else None
    breaches = judged.breaches if judged is not None else ()
    faults = [_of_breach(breach) for breach in breaches]
    made = [fault for fault in faults if fault.safety is not None and allowed(fault.safety)]
    now = judged.arguments if judged is not None else arguments
    if judged is not None and judged.blocked is not None:
        blocked = faults[-1]
        return Outcome(tuple(faults), tuple(made), None, blocked)
    changes: dict[str, Json | Gone] = {
        key: now.get(key, GONE)
        for key in {**arguments, **now}
        if not _same(now.get(key, GONE), arguments.get(key, GONE))
    }
    if tool is not None and said is not None:
        complained = {breach.path for breach in breaches if not breach.unjudged}
        for invention in inventions(arguments, tool, said):
            if invention.leaf.path in complained:
                continue
            fault = _of_invention(invention)
            faults.append(fault)
            if fault.safety is not None and allowed(fault.safety):
                made.append(fault)
                changes[str(invention.leaf.path[0])] = None if invention.instead == "null" else GONE
    return Outcome(tuple(faults), tuple(made), changes or None)


def _same(one: Json | Gone, other: Json | Gone) -> bool:
    return type(one) is type(other) and one == other


def _of_breach(breach: Breach) -> Fault:
    policy = breach.policy
    if breach.unjudged:
        return Fault(describe(breach), "info", "low", breach.path)
    acts = breach.act != "report"
    return Fault(
        describe(breach),
        policy.severity,
        "high",
        breach.path,
        policy.safety if acts else None,
        breach.order,
        breach.done,
        blocks=breach.act == "block",
    )


def _of_invention(invention: Invention) -> Fault:
    leaf, found = invention.leaf, invention.sign
    shown = f'"{excerpt(leaf.value)}"' if isinstance(leaf.value, str) else str(leaf.value)
    order, done = {
        "": ("", ""),
        "null": (f"replace {leaf.where} by null", f"replaced {leaf.where} by null"),
        "nothing": (f"drop {leaf.where}", f"dropped {leaf.where}"),
    }[invention.instead]
    return Fault(
        f"{leaf.where} {shown} is {found.why}",
        _FEWEST_SURE[found.confidence],
        found.confidence,
        leaf.path,
        "unsafe" if order else None,
        order,
        done,
    )
