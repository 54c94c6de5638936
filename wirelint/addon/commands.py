"""Commands of mitmproxy's prompt: `wirelint.findings`, `wirelint.explain`, `wirelint.fix`, `wirelint.view`,
`wirelint.case`.

Results are lists of lines, which the console shows in a window and mitmweb below its prompt. Errors are one line.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mitmproxy import command, ctx, exceptions, flow, http, types

from wirelint.addon.annotate import annotate, annotation
from wirelint.addon.log import finding_line, say
from wirelint.capture.offline import Fixed, fix
from wirelint.capture.readers.flows import record_of
from wirelint.capture.writers.flows import show_sent
from wirelint.fix import FixPolicy
from wirelint.registry import Registry, RuleError, safeties
from wirelint.rule import Rule
from wirelint.text.escaping import counted, printable, shorten
from wirelint.view.findings import known_note, tally

if TYPE_CHECKING:
    from wirelint.addon.addon import Inspector
    from wirelint.addon.ui import Exchanges

_TRIED = "fix tried"


_EARLIER = 50
"""Most earlier flows of the conversation that are read before a fix is tried."""
_MOST_LINES = 2000


class RuleName(str):
    """Argument type: name or code of a rule."""

    __slots__ = ()


_NO_RULE = RuleName()


class _RuleNames:
    """Completion and validation of that type in mitmproxy."""

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
    """The commands of mitmproxy's prompt."""

    def __init__(self, inspector: Inspector, exchanges: Exchanges) -> None:
        self._inspector, self._exchanges = inspector, exchanges
        # mitmproxy's table of argument types accepts additions, though this is not documented. It enables completion.
        types.CommandTypes.typemap[RuleName] = _RuleNames(self._rules)

    # --- findings -----------------------------------------------------------------------------------------------

    @command.command("wirelint.findings")  # type: ignore[untyped-decorator]
    def findings(self, flows: Sequence[flow.Flow] = ()) -> Sequence[str]:
        """Print the findings of these flows (default: all flows): one line per exchange and one per finding."""
        lines: list[str] = []
        clean = 0
        for one in flows or _all_flows():
            if not isinstance(one, http.HTTPFlow) or not self._exchanges.knows(one):
                continue
            checked = self._exchanges.look(one).checked
            if not checked.findings and not checked.known:
                clean += 1
                continue
            exchange = checked.exchange
            what = " ".join(part for part in ((exchange.api, exchange.model) if exchange else ()) if part)
            counts = " ".join(filter(None, (tally(checked.findings), known_note(len(checked.known)))))
            lines.append(printable(f"{what or one.request.path}: {counts} [{one.id[:8]}]"))
            lines += [printable(finding_line(finding)) for finding in checked.findings]
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES:] = [f"… {len(lines) - _MOST_LINES} more lines; name fewer flows, as with ~marked"]
        return [*lines, f"{counted(clean, 'exchange')} without findings"]

    @command.command("wirelint.explain")  # type: ignore[untyped-decorator]
    def explain(self, rule: RuleName = _NO_RULE) -> Sequence[str]:
        """Print the manual of a rule, by its name or code."""
        if not rule:
            raise wrong("wirelint.explain RULE: name a rule, such as xml-leak or LK101")
        found = self._rule(rule)
        fixes = ", ".join(safeties(found)) or "none"
        head = f"{found.code} {found.name} · {found.severity} · {found.layer} · fix: {fixes}"
        return [head, "", *(inspect.getdoc(found) or "").split("\n")]

    # --- repairs ------------------------------------------------------------------------------------------------------

    @command.command("wirelint.fix")  # type: ignore[untyped-decorator]
    def fix(self, flows: Sequence[flow.Flow]) -> Sequence[str]:
        """Try all fixes on these flows: each flow with a fix gets a copy with the repaired bodies."""
        lines: list[str] = []
        made: list[http.HTTPFlow] = []
        for one in flows:
            if isinstance(one, http.HTTPFlow) and self._exchanges.knows(one):
                lines += self._try(one, made)
        if not lines:
            raise wrong("none of these flows is an exchange of a supported API")
        view = ctx.master.addons.get("view")  # type: ignore[no-untyped-call]
        if view is not None and made:
            view.add(made)
            view.focus.flow = made[0]
        return lines

    def _try(self, one: http.HTTPFlow, made: list[http.HTTPFlow]) -> list[str]:
        """Try all fixes on a flow, add its fixed copy to `made`, and return the lines about it."""
        if one.id in self._inspector.open:
            return [f"{one.id[:8]}: still under way; try again when it has ended"]
        records = [dataclasses.replace(record_of(flow), source="flows") for flow in (*flows_before(one), one)]
        *_, fixed = fix(records, self._rules(), FixPolicy("unsafe"))
        if not isinstance(fixed, Fixed) or fixed.exchange is None:
            return [f"{one.id[:8]}: not an exchange of a supported API"]
        if not fixed.record.fixes:
            return [f"{one.id[:8]}: nothing to repair"]
        copy: http.HTTPFlow = one.copy()  # type: ignore[no-untyped-call, unused-ignore]
        show_sent(copy, fixed.record)
        record = dataclasses.replace(fixed.record, id=copy.id, source="")
        described = annotation(dataclasses.replace(fixed, record=record))
        copy.comment = copy.marked = ""
        annotate(copy, dataclasses.replace(described, comment=f"{_TRIED} · {described.comment}"), record)
        made.append(copy)
        self._exchanges.keep(copy, fixed.folded, copy.id)
        left = tally(fixed.remaining) or "none"
        many = counted(len(fixed.record.fixes), "repair")
        lines = [f"{one.id[:8]}: {many}, findings left: {left}; see the copy {copy.id[:8]}"]
        titles = [f"  ✎ {repair.name} ({repair.safety}) {repair.title}" for repair in fixed.record.fixes]
        return lines + [printable(shorten(title, 400)) for title in titles]

    # --- files --------------------------------------------------------------------------------------------------------

    @command.command("wirelint.view")  # type: ignore[untyped-decorator]
    def report(self, flows: Sequence[flow.Flow], path: types.Path) -> str:
        """Write a report of these flows to an HTML file."""
        from wirelint.view.html import write_report  # 5 MB, which most runs do not need

        out = _file(path, "report.html")
        known = [one for one in flows if isinstance(one, http.HTTPFlow) and self._exchanges.knows(one)]
        if not known:
            raise wrong("none of these flows is an exchange of a supported API; nothing was written")
        items = (self._exchanges.look(one).checked for one in known)
        try:
            written = write_report(items, out, rules=self._rules(), title="mitmproxy")
        except OSError as error:
            raise wrong(_unwritable(path, error)) from error
        return printable(f"{counted(written.exchanges, 'exchange')} written to {out.absolute()}")

    @command.command("wirelint.case")  # type: ignore[untyped-decorator]
    def case(self, flow: flow.Flow, path: types.Path) -> str:
        """Write a minimal redacted reproducer of this flow's findings to a file."""
        from wirelint.capture.cases import NoFindingError, encode_case, reproduce

        out = _file(path, "case.jsonl")
        if not isinstance(flow, http.HTTPFlow) or not self._exchanges.knows(flow):
            raise wrong("this flow is not an exchange of a supported API; nothing was written")
        if flow.id in self._inspector.open:
            raise wrong("this exchange is still under way; make a case of it when it has ended")
        if not self._exchanges.look(flow).checked.findings:
            raise wrong("nothing was found in this exchange; there is nothing to reproduce")
        record, before = record_of(flow), [record_of(one) for one in flows_before(flow)]
        rules = self._rules()

        def make() -> str:
            try:
                out.write_bytes(encode_case(reproduce(record, rules, prior=before)))
            except NoFindingError as error:
                return printable(f"no case was made: {error}")
            except OSError as error:
                return printable(_unwritable(str(out), error))
            except Exception as error:  # fail open: an exception in a thread is not shown
                return printable(f"no case was made: {type(error).__name__}: {error}")
            return printable(f"the case is written to {out.absolute()}; see it with: wirelint show {out}")

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return make()
        # It takes seconds, and must not block the traffic.
        loop.run_in_executor(None, lambda: say(f"wirelint: {make()}", logging.WARNING))
        return printable(
            f"the case of {flow.id[:8]} is being made; the event log will say when it is in {out.absolute()}"
        )

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _rules(self) -> Sequence[Rule]:
        return self._inspector.engine.rules

    def _rule(self, name: str) -> Rule:
        for rule in self._rules():
            if name.lower() in (rule.name, rule.code.lower()):
                return rule
        try:  # one that is left out in this run
            return Registry.load().get(name)
        except RuleError as error:
            raise wrong(str(error)) from error


def flows_before(one: http.HTTPFlow) -> list[http.HTTPFlow]:
    """Return the latest earlier flows of the conversation."""
    talk = one.metadata.get("wirelint.conversation")
    if not talk:
        return []
    before: list[http.HTTPFlow] = []
    for other in _all_flows():
        if other is one:
            break
        if isinstance(other, http.HTTPFlow) and other.metadata.get("wirelint.conversation") == talk:
            before.append(other)
    return before[-_EARLIER:]


def _all_flows() -> Sequence[flow.Flow]:
    found: Any = ctx.master.commands.call("view.flows.resolve", "@all")
    return tuple(found)


def wrong(text: str) -> exceptions.CommandError:
    """Return an error of a command, in one line."""
    return exceptions.CommandError(printable(text))


def _file(path: str, usual: str) -> Path:
    out = Path(path).expanduser()
    if not path or out.is_dir():
        raise wrong(f"{path or '(no path)'}: not the name of a file; give one, such as {out / usual}")
    if not out.parent.is_dir():
        raise wrong(f"{path}: there is no folder {out.parent}; name a file in an existing folder")
    return out


def _unwritable(path: str, error: OSError) -> str:
    return f"{path}: {error.strerror or error}; name a file that can be written"
