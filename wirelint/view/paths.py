"""The path of a tool call through the layers model, gateway, client, tool, client, model, and where it ends.

Theory of operation. A path begins with a call in a reply. The same exchange has the reply that the client received:
this reply, or the one delivered instead. The exchange that continues from there (`Exchange.link`, else a later history
of the conversation with the call in it) has the call and its result as the client sent them back, and its reply is the
model's reaction. If MCP servers are on the same wire, the exchange between client and tool is known too, otherwise only
the result in the history.

A path ends if the next step did not happen. That is no error: a capture has a last exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from wirelint.capture.offline import Checked
from wirelint.history.ids import key
from wirelint.history.pairing import Pair, pair
from wirelint.history.turns import content_of
from wirelint.model import Choice, Exchange, Json, Layer, Reply, Side, Tool, ToolCall
from wirelint.rule import Finding
from wirelint.state.mcp_ledger import McpLedger, Passed, digest_of
from wirelint.text.escaping import excerpt
from wirelint.view.conversation import is_within
from wirelint.view.findings import STYLES, flat, note_of, short_id, visible

State = Literal["ok", "changed", "failed", "unseen", "missing"]
"""`changed`: the call continued as something else. `unseen`: not on this wire. `missing`: the step did not happen."""
Change = tuple[str, str, str]
"""(changed member, before, after)."""

_SHOWN = 160
_LEAK = "LK101"
_MOST_LATER = 8
"""Later exchanges with the call that are searched for one that was answered."""
_MARKS = {"ok": "✓", "changed": "✎", "failed": "▲", "unseen": "·", "missing": "✗"}
_STYLES = {"ok": "green", "changed": "yellow", "failed": "red", "unseen": "dim", "missing": "bold red"}


@dataclass(frozen=True, slots=True)
class Step:
    """One layer's part in a call. `at`: milliseconds after the path's first request, None if unknown; `took`: its duration.

    `exchange`, `side`, `pointer` and `event` are the place on the wire.
    """

    layer: Layer
    state: State
    action: str
    text: str = ""
    at: float | None = None
    took: float | None = None
    exchange: str | None = None
    side: Side | None = None
    pointer: str | None = None
    event: int | None = None
    changes: tuple[Change, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Path:
    """A call and its steps. `end`: the reason for no further step; empty if the result came back to the model."""

    id: str | None
    name: str | None
    arguments: str
    source: str
    exchange: str
    conversation: str | None
    steps: tuple[Step, ...]
    end: str = ""


class Paths:
    """The paths of all calls in captures. Exchanges are added in the order of the capture."""

    def __init__(self, items: Iterable[Checked] = ()) -> None:
        self._sources: dict[str, _Source] = {}
        for checked in items:
            if checked.exchange is not None:
                self._sources.setdefault(checked.record.source, _Source()).add(checked, checked.exchange)

    def all(self) -> Iterator[Path]:
        """Yield a path for each call of each reply, and for each call that is only in the text of a reply."""
        for source in self._sources.values():
            for number, (checked, exchange) in enumerate(source.items):
                if exchange.api == "mcp":
                    continue
                for choice, call in _calls_of_exchange(exchange):
                    yield _Tracer(source, number, choice, call).trace()
                yield from _paths_in_text(checked, exchange)

    def of_call(self, id_: str) -> tuple[Path, ...]:
        """Return the paths of calls with this id, else with one that differs in punctuation or case, else of this name."""
        found = tuple(self.all())
        exact = [path for path in found if path.id == id_]
        similar = [path for path in found if path.id and key(path.id) == key(id_)]
        return tuple(exact or similar or [path for path in found if path.name == id_])


@dataclass(slots=True)
class _Source:
    """The exchanges of one capture in order. `followers`: numbers of the exchanges that continue from an exchange."""

    items: list[tuple[Checked, Exchange]] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    followers: dict[str, list[int]] = field(default_factory=dict)
    conversations: dict[str | None, list[int]] = field(default_factory=dict)
    tools: McpLedger = field(default_factory=McpLedger)

    def add(self, checked: Checked, exchange: Exchange) -> None:
        self.numbers[exchange.id] = len(self.items)
        if exchange.link is not None:
            self.followers.setdefault(exchange.link.exchange, []).append(len(self.items))
        if exchange.api != "mcp":
            self.conversations.setdefault(exchange.conversation, []).append(len(self.items))
        self.items.append((checked, exchange))
        self.tools.record(exchange)


# --- following a call -------------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """The side of an exchange on which a step happened."""

    checked: Checked
    exchange: Exchange
    side: Side = "response"


class _Tracer:
    def __init__(self, source: _Source, number: int, choice: Choice, call: ToolCall) -> None:
        self._source, self._number, self._choice, self._call = source, number, choice, call
        self._own = _Place(*source.items[number])
        self._steps: list[Step] = []

    def trace(self) -> Path:
        end = self._collect_steps()
        (checked, exchange, _), call = self._own, self._call
        place = checked.record.source, exchange.id, exchange.conversation
        return Path(call.id, call.name, call.arguments.text, *place, tuple(self._steps), end)

    def _collect_steps(self) -> str:
        """Collect the steps in order. Returns the reason why there is no further step, or an empty text."""
        received = self._add_emission()
        if received is None:
            return "the call never reached the client"
        # The exchange that sends the call back: the first that was answered, if there are several.
        exchange = self._own.exchange
        followers = self._source.followers.get(exchange.id, [])
        found = [one for number in followers for one in self._find_in_history(number, received)]
        if not found and received.id:
            later = (n for n in self._source.conversations[exchange.conversation] if n > self._number)
            same = (one for number in later for one in self._find_in_history(number, received, exact=True))
            found = list(islice(same, _MOST_LATER))
        with_result = [(of, sent) for of, sent in found if sent.answer is not None]
        carried = next((one for one in with_result if one[0].exchange.ok), next(iter(with_result or found), None))
        self._add_tool_run(received, carried)
        if carried is None:
            if not followers:
                self._add("client", "missing", "never sent it back", layers=())
                return "no later request continues from this reply"
            of = _Place(*self._source.items[followers[0]], "request")
            self._add("client", "missing", "continued without the call", at=self._offset_of(of.exchange), of=of)
            return f"the client dropped {_id(received.id)} from the history"
        of, sent = carried
        return self._add_return(received, of, sent) or self._add_reaction(of._replace(side="response"))

    def _add_emission(self) -> ToolCall | None:
        """Add the steps of model and gateway. Returns the call as the client received it, or None."""
        call, (_, exchange, _) = self._call, self._own
        written = exchange.reply is not None and any(call is one for _, one in _calls_of(exchange.reply))
        text = f"{call.name or '(no name)'} {excerpt(call.arguments.text, _SHOWN)}"
        event = call.event if written else None
        at, took = _time_of_event(exchange, event), exchange.timing.duration
        if not written:
            self._add("model", "changed", "wrote the call as text", text, at, took=took, call=call)
            self._add("gateway", "changed", f"delivered it as call {_id(call.id)}", at=at)
            return call
        self._add("model", "ok", f"called it as {_id(call.id)}", text, at, took=took, call=call, event=event)
        if exchange.delivered is None:
            # The gateway's own request to the model is on another wire: only a finding can tell of a change.
            if self._findings(("gateway",), call):
                self._add("gateway", "failed", "a finding blames it", at=at, call=call)
            else:
                self._add("gateway", "unseen", "not seen: its exchange with the model is on another wire", at=at)
            return call
        calls = [one for other, one in _calls_of(exchange.delivered) if other.index == self._choice.index]
        same = [one for one in calls if one.id and one.id == call.id] or [one for one in calls if _is_same(call, one)]
        received = next(iter(same), None)
        if received is None:
            self._add("gateway", "missing", "removed it before delivery", at=at, call=call)
            return None
        if changes := _compare_calls(call, received):
            self._add("gateway", "changed", "fixed it before delivery", at=at, changes=changes, call=call)
        else:
            self._add("gateway", "ok", "passed it through unchanged", at=at, call=call)
        return received

    def _find_in_history(self, number: int, call: ToolCall, *, exact: bool = False) -> Iterator[tuple[_Place, Pair]]:
        """Yield the request whose history has the call, and the call with its result there, if it is so."""
        checked, exchange = self._source.items[number]
        if exchange.request is None:
            return
        pairs = pair(exchange.request).pairs
        same = next((each for each in reversed(pairs) if call.id and each.call.id == call.id), None)
        if same is None and not exact:
            content = content_of(call.name or "", call.arguments.text)
            for each in pairs:  # the last one that is similar
                other = each.call
                has_same_id = call.id and other.id and key(other.id) == key(call.id)
                if has_same_id or content_of(other.name or "", other.arguments.text) == content:
                    same = each
        if same is not None:
            yield _Place(checked, exchange, "request"), same

    def _add_tool_run(self, call: ToolCall, carried: tuple[_Place, Pair] | None) -> None:
        """Add the exchange between client and tool server, if it is on this wire."""
        request = self._own.exchange.request
        declared = request.tool(call.name) if request is not None else None
        until = self._source.numbers[carried[0].exchange.id] if carried is not None else len(self._source.items)
        passed = self._find_tool_call(call, declared, until)
        if passed is None:
            served = self._source.tools.serving(call.name or "", declared)
            if carried is None or carried[1].answer is None:
                return
            if served:
                self._add("tool", "failed", f"{served[0].server} serves it, but received no tools/call for it")
            else:
                self._add("tool", "unseen", "not on this wire")
            return
        of = _Place(*self._source.items[self._source.numbers[passed.exchange]])
        at, took = self._offset_of(of.exchange), of.exchange.timing.duration
        changes = () if passed.digest == digest_of(call.arguments) else (("arguments", call.arguments.text, "others"),)
        what = f"called {passed.name} on {passed.server}"
        state: State = "changed" if changes else "ok"
        self._add("client", state, what, at=at, changes=changes, of=of._replace(side="request"), layers=())
        if not passed.answered:
            self._add("tool", "missing", "never answered", at=_plus(at, took), of=of)
            return
        state, what = ("failed", "answered with an error") if passed.error else ("ok", "answered")
        self._add("tool", state, what, excerpt(passed.text, _SHOWN), _plus(at, took), took=took, of=of)

    def _find_tool_call(self, call: ToolCall, declared: Tool | None, until: int) -> Passed | None:
        """Return the `tools/call` that the client sent for this call: before the next request, with equal arguments if any.

        Exchanges are in the order in which they ended; a call can begin before its reply has ended.
        """
        if not self._source.tools:
            return None
        numbers, passed = self._source.numbers, self._source.tools.passed(call.name or "", declared)
        wanted = range(self._number - 1, until)
        between = [one for one in passed if numbers.get(one.exchange) in wanted]
        digest = digest_of(call.arguments)
        return next(iter([one for one in between if one.digest == digest] or between), None)

    def _add_return(self, call: ToolCall, of: _Place, found: Pair) -> str:
        """Add the next request, with call and result as the client has them. Returns the reason if the path ends there."""
        sent, answer, at = found.call, found.answer, self._offset_of(of.exchange)
        changes = _compare_calls(call, sent)
        if answer is None:
            what = "sent the call back without a result"
            self._add("client", "missing", what, at=at, changes=changes, of=of, call=sent)
            return "no result was ever sent back"
        if answer.match is not None:
            changes = (*changes, ("id of the result", sent.id or "", answer.result.call_id or ""))
        failed = answer.result.is_error is True
        what = "sent the call back with an error" if failed else "sent the call back with its result"
        state: State = "changed" if changes else "failed" if failed else "ok"
        text = excerpt(answer.result.text, _SHOWN) or "(empty)"
        near, layers = (sent.pointer, answer.result.pointer), ("client", "tool")
        self._add("client", state, what, text, at, changes=changes, of=of, call=sent, near=near, layers=layers)
        return ""

    def _add_reaction(self, of: _Place) -> str:
        exchange, reply, took = of.exchange, of.exchange.reply, of.exchange.timing.duration
        at = _plus(self._offset_of(exchange), exchange.timing.first_token or took)
        if reply is None or not exchange.ok or reply.error is not None or not reply.choices:
            status = f"answered {exchange.status}" if exchange.status is not None else "never answered"
            error = f"{reply.error}" if reply is not None and reply.error is not None else exchange.error or ""
            text = excerpt(error, _SHOWN)
            self._add("model", "missing", status, text, at, took=took, of=of, layers=("model", "gateway"))
            return "the request with the result was not answered"
        choice = reply.choices[0]
        calls = ", ".join(f"{call.name} {_id(call.id)}" for call in choice.calls)
        what = f"continued with {calls}" if calls else f"continued ({choice.finish_reason or 'no finish reason'})"
        state: State = "failed" if _blaming(of, ("model", "gateway"), ()) else "ok"
        layers = ("model", "gateway", "tool")
        self._add("model", state, what, excerpt(choice.text, _SHOWN), at, took=took, of=of, layers=layers)
        return ""

    def _add(
        self,
        layer: Layer,
        state: State,
        action: str,
        text: str = "",
        at: float | None = None,
        *,
        took: float | None = None,
        call: ToolCall | None = None,
        event: int | None = None,
        changes: tuple[Change, ...] = (),
        of: _Place | None = None,
        near: Sequence[str] = (),
        layers: Sequence[str] | None = None,
    ) -> None:
        """Add a step with the findings that blame `layers` (by default `layer`), if given `near` these places."""
        layers = (layer,) if layers is None else layers
        pointer = call.pointer if call is not None else None
        if of is None and call is not None:
            findings = self._findings(layers, call)
        else:
            findings = _blaming(of or self._own, layers, near or ((pointer,) if pointer is not None else ()))
        shown = {id(finding) for step in self._steps for finding in step.findings}
        findings = tuple(finding for finding in findings if id(finding) not in shown)
        place = of or (self._own if layer in ("model", "gateway") else None)
        exchange, side = (place.exchange.id, place.side) if place is not None else (None, None)
        where = exchange, side, pointer, event
        self._steps.append(Step(layer, state, action, text, at, took, *where, changes, findings))

    def _findings(self, layers: Sequence[str], call: ToolCall) -> tuple[Finding, ...]:
        """Return the findings on the reply that made the call, except those about another call."""
        others = [one.pointer for _, one in _calls_of_exchange(self._own.exchange) if one.pointer != call.pointer]
        found = _blaming(self._own, layers, ())
        return tuple(one for one in found if not any(is_within(one.pointer, other) for other in others))

    def _offset_of(self, exchange: Exchange) -> float | None:
        """Return the milliseconds from the begin of the path to the begin of an exchange."""
        began, started = self._own.exchange.timing.started, exchange.timing.started
        return None if started is None or began is None else round((started - began) * 1000, 3)


def _paths_in_text(checked: Checked, exchange: Exchange) -> Iterator[Path]:
    """Yield the path of each call that is only in the text of a reply: it ends where it began."""
    reply = exchange.reply
    if reply is None or exchange.delivered is not None or any(choice.calls for choice in reply.choices):
        return
    for finding in checked.findings:
        if finding.code != _LEAK or finding.side != "response":
            continue
        at, took = _time_of_event(exchange, finding.event), exchange.timing.duration
        place = (exchange.id, finding.side, finding.pointer, finding.event)
        own, others = ((finding,), ()) if finding.layer == "model" else ((), (finding,))
        steps = (
            Step("model", "changed", "wrote a call as text", "", at, took, *place, findings=own),
            Step("gateway", "missing", "left it in the text", "", took, None, *place, findings=others),
        )
        source, end = checked.record.source, "no call was made of the text"
        yield Path(None, None, "", source, exchange.id, exchange.conversation, steps, end)


def _calls_of_exchange(exchange: Exchange) -> Iterator[tuple[Choice, ToolCall]]:
    """Yield the calls of a reply, and those that only the delivered reply has."""
    received = list(_calls_of(exchange.reply))
    yield from received
    for choice, call in _calls_of(exchange.delivered):
        if not any(_is_same(one, call) for origin, one in received if origin.index == choice.index):
            yield choice, call


def _calls_of(reply: Reply | None) -> Iterator[tuple[Choice, ToolCall]]:
    choices = reply.choices if reply is not None else ()
    return ((choice, call) for choice in choices for call in choice.calls)


def _is_same(before: ToolCall, after: ToolCall) -> bool:
    if before.id and before.id == after.id:
        return True
    same = content_of("", before.arguments.text) == content_of("", after.arguments.text)
    return same or (before.name == after.name and before.pointer == after.pointer)


def _compare_calls(before: ToolCall, after: ToolCall) -> tuple[Change, ...]:
    pairs = ("id", before.id or "", after.id or ""), ("name", before.name or "", after.name or "")
    changes = [(what, one, other) for what, one, other in pairs if one != other]
    one, other = before.arguments.text, after.arguments.text
    if content_of("", one or "{}") != content_of("", other or "{}"):
        changes.append(("arguments", one, other))
    return tuple(changes)


def _blaming(of: _Place, layers: Sequence[str], near: Sequence[str]) -> tuple[Finding, ...]:
    """Return the findings on one side of an exchange that blame some layers and, if given, are at some places."""
    blaming = (one for one in of.checked.findings if one.side == of.side and one.layer in layers)
    return tuple(one for one in blaming if not near or any(is_within(one.pointer, place) for place in near))


def _time_of_event(exchange: Exchange, event: int | None) -> float | None:
    """Return the time of an event in milliseconds after the request; without an event, that of the complete reply."""
    return exchange.timing.duration if event is None else exchange.arrivals.at(event)


def _plus(at: float | None, more: float | None) -> float | None:
    return at if at is None or more is None else round(at + more, 3)


def _id(id_: str | None) -> str:
    return f"`{excerpt(id_)}`" if id_ else "a call without an id"


def render_path(traced: Path) -> RenderableType:
    """Render a path for a terminal of 80 columns or more: its layers in a line, then a row per step."""
    grid = Table.grid(padding=(0, 1), expand=True)
    grid.add_column(width=9, justify="right", no_wrap=True, style="dim")
    grid.add_column(width=1, no_wrap=True)
    grid.add_column(width=7, no_wrap=True)
    grid.add_column(ratio=1, overflow="fold")
    for step in traced.steps:
        style = _STYLES[step.state]
        at, seconds = step.at, (step.at or 0) / 1000
        time = "" if at is None else f"{seconds:+.3f} s" if abs(at) < 100_000 else f"{seconds:+.0f} s"
        grid.add_row(time, Text(_MARKS[step.state], style), Text(step.layer, style), _step_text(step))
        for finding in step.findings:
            code = Text(finding.code, f"bold {STYLES[finding.severity]}")
            grid.add_row("", "", code, Text.assemble(*note_of(finding)))
    head = Text.assemble((visible(traced.name or "(no name)"), "bold blue"))
    head.append(f"  {visible(traced.id or '(no id)')}", "cyan").append(f"  exchange {short_id(traced.exchange)}", "dim")
    head.append(f", conversation {traced.conversation}" if traced.conversation else "", "dim")
    return Group(head, render_trail(traced), Text(""), grid, Text(""))


def render_trail(traced: Path) -> Text:
    """Return the layers of a path in one line, and its end."""
    line = Text(overflow="fold")
    for number, step in enumerate(traced.steps):
        line.append(" → " if number else "", "dim")
        line.append(f"{step.layer} {_MARKS[step.state]}", _STYLES[step.state])
    if traced.end:
        line.append(f"  ends here: {visible(traced.end)}", "bold red")
    return line


def render_trails(traced: Iterable[Path]) -> RenderableType:
    """Render several paths, two lines each, for choosing one."""
    lines: list[RenderableType] = []
    for one in traced:
        head = Text.assemble((visible(one.name or "(no name)"), "bold blue"), overflow="fold")
        head.append(f" {visible(excerpt(one.arguments, 40))}")
        head.append(f"  {visible(one.id or '(no id)')}", "cyan").append(f"  exchange {short_id(one.exchange)}", "dim")
        lines += [head, Text("  ").append_text(render_trail(one))]
    return Group(*lines)


def path_document(traced: Path, items: Sequence[Checked]) -> dict[str, Json]:
    """Return a path as JSON. `items`: the exchanges of its findings."""
    by_id = {checked.record.id: checked for checked in items if checked.record.source == traced.source}
    names = ("id", "name", "arguments", "source", "exchange", "conversation")
    steps: list[Json] = []
    for step in traced.steps:
        checked = by_id.get(step.exchange or "")
        acted = {"layer": step.layer, "state": step.state, "what": step.action, "said": step.text or None}
        times = {"at_ms": step.at, "took_ms": step.took}
        where = {name: getattr(step, name) for name in ("exchange", "side", "pointer", "event")}
        changes: list[Json] = [dict(zip(("what", "before", "after"), one, strict=True)) for one in step.changes]
        findings: list[Json] = [flat(checked, one) for one in step.findings] if checked is not None else []
        steps.append({**acted, **times, **where, "changes": changes, "findings": findings})
    ending: dict[str, Json] = {"complete": not traced.end, "end": traced.end or None, "steps": steps}
    return {name: getattr(traced, name) for name in names} | ending


def _step_text(step: Step) -> Text:
    text = Text(visible(step.action), overflow="fold")
    if step.exchange:
        event = f", event {step.event}" if step.event is not None else ""
        text.append(f"  [{short_id(step.exchange)}{event}]", "dim")
    if step.took is not None:
        took = f"{step.took:.0f} ms" if step.took < 1000 else f"{step.took / 1000:.2f} s"
        text.append(f"  took {took}", "dim")
    text.append(f"\n{visible(step.text)}" if step.text else "", "italic")
    for what, before, after in step.changes:
        text.append("\n").append(f"{what} ", "yellow").append(visible(excerpt(before)) or "(none)", "red")
        text.append(" → ", "dim").append(visible(excerpt(after)) or "(none)", "green")
    return text
