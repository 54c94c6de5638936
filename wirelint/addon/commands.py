"""Commands of mitmproxy's prompt: `wirelint.findings`, `wirelint.explain`, `wirelint.fix`, `wirelint.view`,
`wirelint.case`.

Results are lists of lines, which the console shows in a window and mitmweb below its prompt. Errors are one line.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mitmproxy import command, ctx, exceptions, flow, http, types

from wirelint.addon.annotate import annotate, annotation
from wirelint.addon.exchange_cache import AddonState, ExchangeCache, ExchangeLookup
from wirelint.addon.log import finding_line, say
from wirelint.capture.cases import NoFindingError, encode_case, reproduce
from wirelint.capture.offline import Checked, Fixed, fix
from wirelint.capture.readers.flows import record_of
from wirelint.capture.writers.flows import show_sent
from wirelint.fix import FixPolicy
from wirelint.registry import Registry, RuleError, safeties
from wirelint.rule import Rule
from wirelint.text.escaping import counted, printable, shorten
from wirelint.view.findings import known_note, tally
from wirelint.view.html import write_report

_TRIED = "fix tried"


class FixPreview(NamedTuple):
    """Fixes tried on a recorded flow. `copy` is None if there was nothing to fix."""

    fixed: Fixed
    copy: http.HTTPFlow | None


def preview_fix(
    flow: http.HTTPFlow, earlier: Sequence[http.HTTPFlow], rules: Sequence[Rule], permit: FixPolicy
) -> FixPreview | None:
    """Try fixes on a flow, with `earlier` flows as history. None: the API is unknown."""
    records = [dataclasses.replace(record_of(one), source="flows") for one in (*earlier, flow)]
    *_, fixed = fix(records, rules, permit)
    if not isinstance(fixed, Fixed) or fixed.exchange is None:
        return None
    if not fixed.record.fixes:
        return FixPreview(fixed, None)
    return FixPreview(fixed, _copy(flow, fixed))


def _copy(flow: http.HTTPFlow, fixed: Fixed) -> http.HTTPFlow:
    copy: http.HTTPFlow = flow.copy()  # type: ignore[no-untyped-call, unused-ignore]
    show_sent(copy, fixed.record)
    record = dataclasses.replace(fixed.record, id=copy.id, source="")
    made = annotation(dataclasses.replace(fixed, record=record))
    copy.comment = copy.marked = ""
    annotate(copy, dataclasses.replace(made, comment=f"{_TRIED} · {made.comment}"), record)
    return copy


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

    def __init__(self, state: AddonState, lookup: ExchangeLookup, cache: ExchangeCache) -> None:
        self._state, self._lookup, self._cache = state, lookup, cache
        # mitmproxy's table of argument types accepts additions, though this is not documented. It enables completion.
        types.CommandTypes.typemap[RuleName] = _RuleNames(self._rules)

    # --- findings -----------------------------------------------------------------------------------------------

    @command.command("wirelint.findings")  # type: ignore[untyped-decorator]
    def findings(self, flows: Sequence[flow.Flow] = ()) -> Sequence[str]:
        """Print the findings of these flows (default: all flows): one line per exchange and one per finding."""
        lines: list[str] = []
        clean = 0
        for one, checked in self._exchanges(flows or _all_flows()):
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
            if isinstance(one, http.HTTPFlow) and self._lookup.knows(one):
                lines += self._try(one, made)
        if not lines:
            raise wrong("none of these flows is an exchange of a supported API")
        _add(made)
        return lines

    def _try(self, one: http.HTTPFlow, made: list[http.HTTPFlow]) -> list[str]:
        if self._state.open(one.id) is not None:
            return [f"{one.id[:8]}: still under way; try again when it has ended"]
        tried = preview_fix(one, flows_before(one), self._rules(), FixPolicy("unsafe"))
        if tried is None:
            return [f"{one.id[:8]}: not an exchange of a supported API"]
        if tried.copy is None:
            return [f"{one.id[:8]}: nothing to repair"]
        made.append(tried.copy)
        fixed = tried.fixed
        self._cache.keep(tried.copy, fixed.folded)
        left = tally(fixed.remaining) or "none"
        many = counted(len(fixed.record.fixes), "repair")
        lines = [f"{one.id[:8]}: {many}, findings left: {left}; see the copy {tried.copy.id[:8]}"]
        titles = [f"  ✎ {repair.name} ({repair.safety}) {repair.title}" for repair in fixed.record.fixes]
        return lines + [printable(shorten(title, 400)) for title in titles]

    # --- files --------------------------------------------------------------------------------------------------------

    @command.command("wirelint.view")  # type: ignore[untyped-decorator]
    def report(self, flows: Sequence[flow.Flow], path: types.Path) -> str:
        """Write a report of these flows to an HTML file."""
        out = _file(path, "report.html")
        known = [one for one in flows if isinstance(one, http.HTTPFlow) and self._lookup.knows(one)]
        if not known:
            raise wrong("none of these flows is an exchange of a supported API; nothing was written")
        items = (self._lookup.look(one).checked for one in known)
        try:
            written = write_report(items, out, rules=self._rules(), title="mitmproxy")
        except OSError as error:
            raise wrong(_unwritable(path, error)) from error
        return printable(f"{counted(written.exchanges, 'exchange')} written to {out.absolute()}")

    @command.command("wirelint.case")  # type: ignore[untyped-decorator]
    def case(self, flow: flow.Flow, path: types.Path) -> str:
        """Write a minimal redacted reproducer of this flow's findings to a file."""
        out = _file(path, "case.jsonl")
        if not isinstance(flow, http.HTTPFlow) or not self._lookup.knows(flow):
            raise wrong("this flow is not an exchange of a supported API; nothing was written")
        if self._state.open(flow.id) is not None:
            raise wrong("this exchange is still under way; make a case of it when it has ended")
        if not self._lookup.look(flow).checked.findings:
            raise wrong("nothing was found in this exchange; there is nothing to reproduce")
        record, before = record_of(flow), [record_of(one) for one in flows_before(flow)]
        rules = self._rules()

        def make() -> str:
            return _write(out, lambda: encode_case(reproduce(record, rules, prior=before)))

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

    def _exchanges(self, flows: Sequence[flow.Flow]) -> Iterator[tuple[http.HTTPFlow, Checked]]:
        for one in flows:
            if isinstance(one, http.HTTPFlow) and self._lookup.knows(one):
                yield one, self._lookup.look(one).checked

    def _rules(self) -> Sequence[Rule]:
        return self._state.engine().rules

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


def _add(flows: Sequence[http.HTTPFlow]) -> None:
    view = ctx.master.addons.get("view")  # type: ignore[no-untyped-call]
    if view is not None and flows:
        view.add(flows)
        view.focus.flow = flows[0]


def wrong(text: str) -> exceptions.CommandError:
    """Return an error of a command, in one line."""
    return exceptions.CommandError(printable(text))


def _write(out: Path, make: Callable[[], bytes]) -> str:
    """Write a file and return a message about it."""
    try:
        out.write_bytes(make())
    except NoFindingError as error:
        return printable(f"no case was made: {error}")
    except OSError as error:
        return printable(_unwritable(str(out), error))
    except Exception as error:  # fail open: an exception in a thread is not shown
        return printable(f"no case was made: {type(error).__name__}: {error}")
    return printable(f"the case is written to {out.absolute()}; see it with: wirelint show {out}")


def _file(path: str, usual: str) -> Path:
    out = Path(path).expanduser()
    if not path or out.is_dir():
        raise wrong(f"{path or '(no path)'}: not the name of a file; give one, such as {out / usual}")
    if not out.parent.is_dir():
        raise wrong(f"{path}: there is no folder {out.parent}; name a file in an existing folder")
    return out


def _unwritable(path: str, error: OSError) -> str:
    return f"{path}: {error.strerror or error}; name a file that can be written"
