"""One call, followed from layer to layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from wirelint.capture.offline import Checked
from wirelint.history.ids import key
from wirelint.history.pairing import Pair, pair
from wirelint.history.turns import content_of
from wirelint.model import Choice, Exchange, Layer, Side, Tool, ToolCall
from wirelint.rule import Finding
from wirelint.state.mcp_ledger import Passed, ToolWire, digest_of
from wirelint.text.excerpts import excerpt
from wirelint.view.call_paths.calls import (
    calls_of,
    calls_of_exchange,
    came_at,
    changes_between,
    delivered_as,
    findings_on,
    is_within,
    plus,
    shown_id,
)
from wirelint.view.call_paths.values import Path, State, Step

_SHOWN = 160
_LEAK = "LK101"
_LOOKED_AT = 8
"""Later exchanges with the same call, of which one is looked for that was answered."""


class Carried(NamedTuple):
    """The exchange whose history a call stands in, and where."""

    checked: Checked
    exchange: Exchange
    pair: Pair


@dataclass(slots=True)
class Source:
    """The exchanges of one capture, in their order."""

    items: list[tuple[Checked, Exchange]] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    followers: dict[str, list[int]] = field(default_factory=dict)
    conversations: dict[str | None, list[int]] = field(default_factory=dict)
    tools: ToolWire = field(default_factory=ToolWire)

    def add(self, checked: Checked, exchange: Exchange) -> None:
        self.numbers[exchange.id] = len(self.items)
        if exchange.link is not None:
            self.followers.setdefault(exchange.link.exchange, []).append(len(self.items))
        if exchange.api != "mcp":
            self.conversations.setdefault(exchange.conversation, []).append(len(self.items))
        self.items.append((checked, exchange))
        self.tools.record(exchange)


def in_the_text(checked: Checked, exchange: Exchange) -> Iterator[Path]:
    """The path of a call that stands in the text of a reply and was made by nobody: it ends where it began."""
    reply = exchange.reply
    if reply is None or exchange.delivered is not None or any(choice.calls for choice in reply.choices):
        return
    for finding in checked.findings:
        if finding.code != _LEAK or finding.side != "response":
            continue
        at, took = came_at(exchange, finding.event), exchange.timing.duration
        place = (exchange.id, finding.side, finding.pointer, finding.event)
        blamed = finding.layer == "model"
        written = Step(
            "model", "changed", "wrote a call as text", "", at, took, *place, findings=(finding,) if blamed else ()
        )
        left = Step(
            "gateway", "missing", "left it in the text", "", took, None, *place, findings=() if blamed else (finding,)
        )
        source, conversation = checked.record.source, exchange.conversation
        end = "no call was made of the text"
        yield Path(None, None, "", source, exchange.id, conversation, (written, left), end)


class Tracer:
    """Follows one call."""

    def __init__(self, source: Source, number: int, choice: Choice, call: ToolCall) -> None:
        self._source, self._number, self._choice, self._call = source, number, choice, call
        self._checked, self._exchange = source.items[number]
        self._zero = self._exchange.timing.started
        self._steps: list[Step] = []

    def path(self) -> Path:
        end = self._follow()
        call, exchange = self._call, self._exchange
        return Path(
            call.id,
            call.name,
            call.arguments.text,
            self._checked.record.source,
            exchange.id,
            exchange.conversation,
            tuple(self._steps),
            end,
        )

    def _follow(self) -> str:
        """Takes the steps in order; the reason why there is no further one."""
        received = self._emit()
        if received is None:
            return "the call never reached the client"
        carried = self._carried(received)
        self._run(received, carried)
        if carried is None:
            return self._left(received)
        return self._send_back(received, carried) or self._answer(carried)

    # --- model and gateway -----------------------------------------------------------------------------------------

    def _emit(self) -> ToolCall | None:
        """The call as the client got it; None when it did not."""
        call, exchange = self._call, self._exchange
        written = exchange.reply is not None and any(call is one for _, one in calls_of(exchange.reply))
        said = f"{call.name or '(no name)'} {excerpt(call.arguments.text, _SHOWN)}"
        event = call.event if written else None
        at = came_at(exchange, event)
        what = f"called it as {shown_id(call.id)}" if written else "wrote the call as text"
        state: State = "ok" if written else "changed"
        took = exchange.timing.duration
        self._add("model", state, what, said, at, took=took, call=call, event=event, layers=("model",))
        if not written:
            self._add("gateway", "changed", f"delivered as the call {shown_id(call.id)}", at=at, layers=("gateway",))
            return call
        if exchange.delivered is None:
            # What a gateway got from the model is on a wire that was not recorded: only a finding tells of it.
            blamed = self._findings(("gateway",), call)
            told = "a finding blames it" if blamed else "not seen: what it got from the model is on another wire"
            self._add("gateway", "failed" if blamed else "unseen", told, at=at, layers=("gateway",), call=call)
            return call
        got = delivered_as(exchange.delivered, self._choice, call)
        if got is None:
            self._add("gateway", "missing", "taken out of what was delivered", at=at, layers=("gateway",), call=call)
            return None
        changes = changes_between(call, got)
        what = "repaired on its way" if changes else "passed on as it came"
        self._add(
            "gateway", "changed" if changes else "ok", what, at=at, changes=changes, layers=("gateway",), call=call
        )
        return got

    # --- client and tool -------------------------------------------------------------------------------------------

    def _carried(self, received: ToolCall) -> Carried | None:
        """The exchange that brings the call back, the first one that was answered if there are several."""
        numbers = self._source.followers.get(self._exchange.id, [])
        found = [one for number in numbers if (one := self._in_history(number, received)) is not None]
        if not found and received.id:
            later = (n for n in self._source.conversations[self._exchange.conversation] if n > self._number)
            same = (one for number in later if (one := self._in_history(number, received, exact=True)) is not None)
            found = list(islice(same, _LOOKED_AT))
        with_answer = [one for one in found if one.pair.answer is not None]
        return next((one for one in with_answer if one.exchange.ok), next(iter(with_answer or found), None))

    def _in_history(self, number: int, call: ToolCall, *, exact: bool = False) -> Carried | None:
        checked, exchange = self._source.items[number]
        if exchange.request is None:
            return None
        pairs = pair(exchange.request).pairs
        same = next((each for each in reversed(pairs) if call.id and each.call.id == call.id), None)
        if same is None and not exact:
            content = content_of(call.name or "", call.arguments.text)
            alike = [
                each
                for each in pairs
                if (call.id and each.call.id and key(each.call.id) == key(call.id))
                or content_of(each.call.name or "", each.call.arguments.text) == content
            ]
            same = alike[-1] if alike else None
        return Carried(checked, exchange, same) if same is not None else None

    def _run(self, call: ToolCall, carried: Carried | None) -> None:
        """What passed between the client and the server of the tool, as far as that is on this wire."""
        request = self._exchange.request
        declared = request.tool(call.name) if request is not None else None
        until = self._source.numbers[carried.exchange.id] if carried is not None else len(self._source.items)
        passed = self._passed(call, declared, until)
        if passed is None:
            served = self._source.tools.serving(call.name or "", declared)
            if carried is not None and carried.pair.answer is not None:
                told = (
                    f"{served[0].server} serves it, and no tools/call for it passed" if served else "not on this wire"
                )
                self._add("tool", "failed" if served else "unseen", told)
            return
        checked, exchange = self._source.items[self._source.numbers[passed.exchange]]
        at = self._since(exchange)
        changes = () if passed.digest == digest_of(call.arguments) else (("arguments", call.arguments.text, "others"),)
        what = f"called {passed.name} on {passed.server}"
        self._add("client", "changed" if changes else "ok", what, at=at, changes=changes, of=(checked, exchange))
        after = plus(at, exchange.timing.duration)
        if not passed.answered:
            of = (checked, exchange)
            self._add("tool", "missing", "never answered", at=after, of=of, side="response", layers=("tool",))
            return
        told = "answered with an error" if passed.error else "answered"
        state: State = "failed" if passed.error else "ok"
        took, of = exchange.timing.duration, (checked, exchange)
        self._add(
            "tool",
            state,
            told,
            excerpt(passed.text, _SHOWN),
            after,
            took=took,
            of=of,
            side="response",
            layers=("tool",),
        )

    def _passed(self, call: ToolCall, declared: Tool | None, until: int) -> Passed | None:
        """The `tools/call` that this call became: between its reply and the next request, with its arguments if any."""
        if not self._source.tools:
            return None
        between = [
            one
            for one in self._source.tools.passed(call.name or "", declared)
            if one.exchange in self._source.numbers and self._is_between(one, until)
        ]
        digest = digest_of(call.arguments)
        same = [one for one in between if one.digest == digest]
        return next(iter(same or between), None)

    def _is_between(self, passed: Passed, until: int) -> bool:
        """Exchanges stand in the order in which they ended; a call can begin before its reply has ended."""
        return self._number - 1 <= self._source.numbers[passed.exchange] < until

    def _left(self, call: ToolCall) -> str:
        followers = self._source.followers.get(self._exchange.id, [])
        if not followers:
            self._add("client", "missing", "never came back")
            return "no later request goes on from this reply"
        checked, exchange = self._source.items[followers[0]]
        at = self._since(exchange)
        self._add("client", "missing", "went on without the call", at=at, of=(checked, exchange), layers=("client",))
        return f"the client dropped {shown_id(call.id)} from the history"

    def _send_back(self, call: ToolCall, carried: Carried) -> str:
        """The next request: the call and its result as the client has them. The reason why the path ends there, if so."""
        at, given, answer = self._since(carried.exchange), carried.pair.call, carried.pair.answer
        of = (carried.checked, carried.exchange)
        changes = changes_between(call, given)
        if answer is None:
            what = "sent the call back, and no result"
            self._add("client", "missing", what, at=at, changes=changes, of=of, call=given, layers=("client",))
            return "no result ever came back"
        if answer.match is not None:
            changes = (*changes, ("id of the result", given.id or "", answer.result.call_id or ""))
        failed = answer.result.is_error is True
        what = "sent the call back with an error" if failed else "sent the call back with its result"
        state: State = "changed" if changes else "failed" if failed else "ok"
        said = excerpt(answer.result.text, _SHOWN) or "(empty)"
        near = (given.pointer, answer.result.pointer)
        self._add(
            "client", state, what, said, at, changes=changes, of=of, call=given, near=near, layers=("client", "tool")
        )
        return ""

    # --- model again -----------------------------------------------------------------------------------------------

    def _answer(self, carried: Carried) -> str:
        exchange, reply = carried.exchange, carried.exchange.reply
        of = (carried.checked, exchange)
        at = plus(self._since(exchange), exchange.timing.first_token or exchange.timing.duration)
        if reply is None or not exchange.ok or reply.error is not None or not reply.choices:
            status = f"answered {exchange.status}" if exchange.status is not None else "never answered"
            said = excerpt(
                f"{reply.error}" if reply is not None and reply.error is not None else exchange.error or "", _SHOWN
            )
            took = exchange.timing.duration
            self._add(
                "model", "missing", status, said, at, took=took, of=of, side="response", layers=("model", "gateway")
            )
            return "the request with the result was not answered"
        choice = reply.choices[0]
        calls = ", ".join(f"{call.name} {shown_id(call.id)}" for call in choice.calls)
        what = f"went on with {calls}" if calls else f"went on ({choice.finish_reason or 'no finish reason'})"
        said = excerpt(choice.text, _SHOWN)
        wrong = bool(findings_on(of[0], "response", ("model", "gateway"), ()))
        state: State = "failed" if wrong else "ok"
        took = exchange.timing.duration
        self._add(
            "model", state, what, said, at, took=took, of=of, side="response", layers=("model", "gateway", "tool")
        )
        return ""

    # --- the steps -------------------------------------------------------------------------------------------------

    def _add(
        self,
        layer: Layer,
        state: State,
        what: str,
        said: str = "",
        at: float | None = None,
        *,
        took: float | None = None,
        call: ToolCall | None = None,
        event: int | None = None,
        changes: tuple[tuple[str, str, str], ...] = (),
        of: tuple[Checked, Exchange] | None = None,
        side: Side | None = None,
        near: Sequence[str] = (),
        layers: Sequence[Layer] = (),
    ) -> None:
        checked, exchange = of or (self._checked, self._exchange)
        side = side or ("request" if of is not None else "response")
        if of is None and call is not None:
            findings = self._findings(layers, call)
        else:
            findings = findings_on(checked, side, layers, near or ((call.pointer,) if call is not None else ()))
        told = {id(finding) for step in self._steps for finding in step.findings}
        findings = tuple(finding for finding in findings if id(finding) not in told)
        pointer = call.pointer if call is not None else None
        place = exchange.id if (of is not None or layer in ("model", "gateway")) else None
        self._steps.append(
            Step(layer, state, what, said, at, took, place, side if place else None, pointer, event, changes, findings)
        )

    def _findings(self, layers: Sequence[Layer], call: ToolCall) -> tuple[Finding, ...]:
        """Findings on the reply that a call came in: about it, or about nothing that is another call."""
        others = [one.pointer for _, one in calls_of_exchange(self._exchange) if one.pointer != call.pointer]
        return tuple(
            finding
            for finding in findings_on(self._checked, "response", layers, ())
            if not any(is_within(finding.pointer, other) for other in others)
        )

    def _since(self, exchange: Exchange) -> float | None:
        """Milliseconds from the beginning of the path to that of an exchange."""
        started = exchange.timing.started
        return None if started is None or self._zero is None else round((started - self._zero) * 1000, 3)
