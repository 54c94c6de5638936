"""The commands of mitmproxy's prompt: `wirelint.findings`, `wirelint.explain`, `wirelint.fix`; those that write: `papers`.

Results are lists of lines, which the console shows in a window and mitmweb beneath its prompt. What is wrong with an
argument is one line as well.
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
from wirelint.addon.log import finding_line, say
from wirelint.addon.looking import Insight, Looking
from wirelint.addon.memory import Memory
from wirelint.addon.verdict import CheckResult
from wirelint.addon.words import one_line, shorten
from wirelint.capture.cases import NoFindingError, encode_case, reproduce
from wirelint.capture.fixing import Fixed, fix, true_headers
from wirelint.capture.offline import Checked
from wirelint.capture.readers.flows import record_of
from wirelint.capture.record import Headers, Sent
from wirelint.fix import FixPolicy
from wirelint.model import Side
from wirelint.registry import Registry, RuleError, safeties
from wirelint.rule import Rule
from wirelint.view.findings import known_note, tally
from wirelint.view.html import write_report

# A fix tried on a flow that passed: a copy of it, as both ends would have had it.

_TRIED = "fix tried"


class Tried(NamedTuple):
    """`copy` is None when there was nothing to repair."""

    fixed: Fixed
    copy: http.HTTPFlow | None


def try_fix(
    flow: http.HTTPFlow, earlier: Sequence[http.HTTPFlow], rules: Sequence[Rule], permit: FixPolicy
) -> Tried | None:
    """What a repair makes of a flow, in the light of `earlier` ones. None: it is of no API that is understood."""
    records = [dataclasses.replace(record_of(one), source="flows") for one in (*earlier, flow)]
    *_, fixed = fix(records, rules, permit)
    if not isinstance(fixed, Fixed) or fixed.exchange is None:
        return None
    if not fixed.record.fixes:
        return Tried(fixed, None)
    return Tried(fixed, _copy(flow, fixed))


def _copy(flow: http.HTTPFlow, fixed: Fixed) -> http.HTTPFlow:
    copy: http.HTTPFlow = flow.copy()  # type: ignore[no-untyped-call, unused-ignore]
    came = fixed.record
    _put(copy.request, came.forwarded, came.request_headers, came.request_body, flow, "request")
    if copy.response is not None:
        _put(copy.response, came.delivered, came.response_headers, came.response_body, flow, "response")
    record = dataclasses.replace(came, id=copy.id, source="")
    exchange = dataclasses.replace(fixed.exchange, id=copy.id) if fixed.exchange is not None else None
    notes = came.annotations.get("notes")
    verdict = CheckResult(
        record,
        exchange,
        fixed.findings,
        exchange.api if exchange is not None else "",
        exchange.model if exchange is not None else "",
        tuple(note for note in notes if isinstance(note, str)) if isinstance(notes, list) else (),
    )
    made = annotation(verdict)
    copy.comment = copy.marked = ""
    annotate(copy, dataclasses.replace(made, comment=f"{_TRIED} · {made.comment}"), record)
    return copy


def _put(
    message: http.Message, sent: Sent | None, headers: Headers, body: bytes | None, flow: http.HTTPFlow, side: Side
) -> None:
    """Gives a message what was sent on; what came in, where that is not what the flow shows; else nothing new."""
    if sent is None:
        received = flow.metadata.get("wirelint.received")
        if not isinstance(received, dict) or side not in received or body is None:
            return
        sent = Sent(true_headers(headers, body), body)
    message.headers = http.Headers([_field(name, value) for name, value in sent.headers])
    message.raw_content = sent.body


def _field(name: str, value: str) -> tuple[bytes, bytes]:
    return name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape")


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


# The commands that write files: `wirelint.view` for a page of exchanges, `wirelint.case` for a reproducer of one.


class Papers:
    def __init__(self, insight: Insight, looking: Looking) -> None:
        self._insight, self._looking = insight, looking

    @command.command("wirelint.view")  # type: ignore[untyped-decorator]
    def report(self, flows: Sequence[flow.Flow], path: types.Path) -> str:
        """Write a report of these flows to an HTML file."""
        out = _file(path, "report.html")
        known = [one for one in flows if isinstance(one, http.HTTPFlow) and self._looking.knows(one)]
        if not known:
            raise wrong("none of these flows is an exchange that wirelint understands; nothing was written")
        items = (self._looking.look(one).checked for one in known)
        try:
            written = write_report(items, out, rules=self._insight.engine().rules, title="mitmproxy")
        except OSError as error:
            raise wrong(_unwritable(path, error)) from error
        many = "1 exchange" if written.exchanges == 1 else f"{written.exchanges} exchanges"
        return one_line(f"{many} written to {out.absolute()}")

    @command.command("wirelint.case")  # type: ignore[untyped-decorator]
    def case(self, flow: flow.Flow, path: types.Path) -> str:
        """Write a minimal redacted reproducer of this flow's findings to a file, fit to be given away."""
        out = _file(path, "case.jsonl")
        if not isinstance(flow, http.HTTPFlow) or not self._looking.knows(flow):
            raise wrong("this flow is no exchange that wirelint understands; nothing was written")
        if self._insight.open(flow.id) is not None:
            raise wrong("this exchange is still under way; make a case of it when it has ended")
        if not self._looking.look(flow).checked.findings:
            raise wrong("nothing was found in this exchange; there is nothing to reproduce")
        record, before = record_of(flow), [record_of(one) for one in flows_before(flow)]
        rules = self._insight.engine().rules

        def make() -> str:
            return _write(out, lambda: encode_case(reproduce(record, rules, prior=before)))

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return make()
        # It takes seconds, in which the traffic has to go on.
        loop.run_in_executor(None, lambda: say(f"wirelint: {make()}", logging.WARNING))
        return one_line(f"the case of {flow.id[:8]} is being made; the event log tells when it is at {out.absolute()}")


def _write(out: Path, make: Callable[[], bytes]) -> str:
    """Writes a file; what there is to say about it."""
    try:
        out.write_bytes(make())
    except NoFindingError as error:
        return one_line(f"no case was made: {error}")
    except OSError as error:
        return one_line(_unwritable(str(out), error))
    except Exception as error:  # fail open: in a thread nobody would hear of it
        return one_line(f"no case was made: {type(error).__name__}: {error}")
    return one_line(f"the case is written to {out.absolute()}; see it with: wirelint show {out}")


def _file(path: str, usual: str) -> Path:
    out = Path(path).expanduser()
    if not path or out.is_dir():
        raise wrong(f"{path or '(no path)'}: this is no file; name one, such as {out / usual}")
    if not out.parent.is_dir():
        raise wrong(f"{path}: there is no folder {out.parent}; name a file in one that is there")
    return out


def _unwritable(path: str, error: OSError) -> str:
    return f"{path}: {error.strerror or error}; name a file that can be written"
