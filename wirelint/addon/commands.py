"""The commands of mitmproxy's prompt: `wirelint.findings`, `wirelint.explain`, `wirelint.fix`; those that write: `papers`.

Results are lists of lines, which the console shows in a window and mitmweb beneath its prompt. What is wrong with an
argument is one line as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mitmproxy import command, ctx, exceptions, flow, http, types

from wirelint.addon.fix_preview import try_fix
from wirelint.addon.log import finding_line
from wirelint.addon.looking import Insight, Looking
from wirelint.addon.memory import Memory
from wirelint.addon.words import one_line, shorten
from wirelint.capture.offline import Checked
from wirelint.fix import FixPolicy
from wirelint.registry import Registry, RuleError, safeties
from wirelint.rule import Rule
from wirelint.view.findings import known_note, tally

_EARLIER = 50
"""Flows of the same conversation that a fix is tried in the light of."""
_MOST_LINES = 2000


class RuleName(str):
    """The type of an argument: the name or the code of a rule."""

    __slots__ = ()


_NO_RULE = RuleName()


class _RuleNames:
    """How mitmproxy completes and checks such an argument."""

    typ = RuleName
    display = "rule"

    def __init__(self, rules: Callable[[], Sequence[Rule]]) -> None:
        self._rules = rules

    def completion(self, manager: object, kind: object, start: str) -> list[str]:
        names = [rule.name for rule in self._rules()]
        return names if not start[:1].isupper() else [rule.code for rule in self._rules()]

    def parse(self, manager: object, kind: object, text: str) -> str:
        return text

    def is_valid(self, manager: object, kind: object, value: object) -> bool:
        return isinstance(value, str)


class Commands:
    def __init__(self, insight: Insight, looking: Looking, memory: Memory) -> None:
        self._insight, self._looking, self._memory = insight, looking, memory
        # A table of mitmproxy's that is open to additions, though nothing says so: completion comes with it.
        types.CommandTypes.typemap[RuleName] = _RuleNames(self._rules)

    # --- what was found -----------------------------------------------------------------------------------------------

    @command.command("wirelint.findings")  # type: ignore[untyped-decorator]
    def findings(self, flows: Sequence[flow.Flow] = ()) -> Sequence[str]:
        """What was found in these flows (all of them, when none are named): a line per exchange and one per finding."""
        lines: list[str] = []
        clean = 0
        for one, checked in self._exchanges(flows or _all_flows()):
            if not checked.findings and not checked.known:
                clean += 1
                continue
            exchange = checked.exchange
            what = " ".join(part for part in ((exchange.api, exchange.model) if exchange else ()) if part)
            counts = " ".join(filter(None, (tally(checked.findings), known_note(len(checked.known)))))
            lines.append(one_line(f"{what or one.request.path}: {counts} [{one.id[:8]}]"))
            lines += [one_line(finding_line(finding)) for finding in checked.findings]
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES:] = [f"… {len(lines) - _MOST_LINES} more lines; name fewer flows, as with ~marked"]
        many = "1 exchange" if clean == 1 else f"{clean} exchanges"
        return [*lines, f"{many} with nothing to complain about"]

    @command.command("wirelint.explain")  # type: ignore[untyped-decorator]
    def explain(self, rule: RuleName = _NO_RULE) -> Sequence[str]:
        """The manual of a rule, by its name or code."""
        if not rule:
            raise wrong("wirelint.explain RULE: name a rule, such as xml-leak or LK101")
        found = self._rule(rule)
        fixes = ", ".join(safeties(found)) or "none"
        head = f"{found.code} {found.name} · {found.severity} · {found.layer} · fix: {fixes}"
        return [head, "", *(inspect.getdoc(found) or "").split("\n")]

    # --- repairs ------------------------------------------------------------------------------------------------------

    @command.command("wirelint.fix")  # type: ignore[untyped-decorator]
    def fix(self, flows: Sequence[flow.Flow]) -> Sequence[str]:
        """Try all fixes on these flows: each that can be repaired gets a copy beside it, with the repaired bodies."""
        lines: list[str] = []
        made: list[http.HTTPFlow] = []
        for one in flows:
            if isinstance(one, http.HTTPFlow) and self._looking.knows(one):
                lines += self._try(one, made)
        if not lines:
            raise wrong("none of these flows is an exchange that wirelint understands")
        _add(made)
        return lines

    def _try(self, one: http.HTTPFlow, made: list[http.HTTPFlow]) -> list[str]:
        if self._insight.open(one.id) is not None:
            return [f"{one.id[:8]}: still under way; try again when it has ended"]
        tried = try_fix(one, flows_before(one), self._insight.engine().rules, FixPolicy("unsafe"))
        if tried is None:
            return [f"{one.id[:8]}: this is of no API that wirelint understands"]
        if tried.copy is None:
            return [f"{one.id[:8]}: nothing to repair"]
        made.append(tried.copy)
        fixed = tried.fixed
        self._memory.keep(tried.copy, Checked(fixed.record, fixed.exchange, fixed.findings).folded)
        left = tally(fixed.remaining) or "nothing"
        many = "1 repair" if len(fixed.record.fixes) == 1 else f"{len(fixed.record.fixes)} repairs"
        lines = [f"{one.id[:8]}: {many}, {left} left to complain about; see the copy {tried.copy.id[:8]}"]
        titles = [f"  ✎ {repair.name} ({repair.safety}) {repair.title}" for repair in fixed.record.fixes]
        return lines + [one_line(shorten(title, 400)) for title in titles]

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _exchanges(self, flows: Sequence[flow.Flow]) -> Iterator[tuple[http.HTTPFlow, Checked]]:
        for one in flows:
            if isinstance(one, http.HTTPFlow) and self._looking.knows(one):
                yield one, self._looking.look(one).checked

    def _rules(self) -> Sequence[Rule]:
        return self._insight.engine().rules

    def _rule(self, name: str) -> Rule:
        for rule in self._rules():
            if name.lower() in (rule.name, rule.code.lower()):
                return rule
        try:  # one that is left out in this run
            return Registry.load().get(name)
        except RuleError as error:
            raise wrong(str(error)) from error


def flows_before(one: http.HTTPFlow) -> list[http.HTTPFlow]:
    """The flows that passed before in the same conversation, the latest of them."""
    talk = one.metadata.get("wirelint.state.ledger")
    if not talk:
        return []
    before: list[http.HTTPFlow] = []
    for other in _all_flows():
        if other is one:
            break
        if isinstance(other, http.HTTPFlow) and other.metadata.get("wirelint.state.ledger") == talk:
            before.append(other)
    return before[-_EARLIER:]


def _all_flows() -> Sequence[flow.Flow]:
    found: Any = ctx.master.commands.call("view.flows.resolve", "@all")
    return tuple(found)


def _add(flows: Sequence[http.HTTPFlow]) -> None:
    view = ctx.master.addons.get("view")  # type: ignore[no-untyped-call]
    if view is not None and flows:
        view.add(flows)
        view.focus.flow = flows[0]


def wrong(text: str) -> exceptions.CommandError:
    """What is wrong with a command, in one line."""
    return exceptions.CommandError(one_line(text))
