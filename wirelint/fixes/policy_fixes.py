"""Arguments that nobody knew or that a policy does not allow, repaired while they stream; calls that are taken out.

A call that a policy acts on is kept from its start until it is over, since what becomes of it hangs on all of it; other
calls pass, and where nothing but the word for nothing is looked for, arguments pass up to the first that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple

from wirelint.apis.traits import ending, traits
from wirelint.arguments.argument_members import rewrite
from wirelint.arguments.argument_repairs import Change
from wirelint.arguments.argument_watchers import Everything, VoidWatcher, Watcher
from wirelint.arguments.invented import voidable
from wirelint.events import CallUpdate, Close, Delta, Event, Finish, Start
from wirelint.fix import RewriteContext
from wirelint.fixes.argument_rewriter import ArgumentRewriter, Call
from wirelint.model import Json, Tool, ToolCall
from wirelint.policy import Fault, Outcome
from wirelint.rule import Rule, Safety

Judge = Callable[[ToolCall, "dict[str, Json]", "Tool | None", Callable[[Safety], bool]], Outcome]


class _Made(NamedTuple):
    faults: tuple[Fault, ...]
    blocked: Fault | None


class Police(ArgumentRewriter):
    """`acts(name)`: whether a policy that may act is about calls of this name."""

    ends_whole: ClassVar[bool] = True

    def __init__(self, rule: Rule, context: RewriteContext, judge: Judge, acts: Callable[[str], bool]) -> None:
        super().__init__(rule, context)
        self._hold, self._acts = judge, acts
        self._outcomes: dict[int, _Made] = {}
        self._gone: set[int] = set()
        self._left: dict[int, int] = {}
        self._emptied: set[int] = set()
        self._spoken: set[int] = set()
        self._passing = False
        self._voidable: dict[str, frozenset[str]] = {}
        self._unsafe = context.permit.allows(rule.code, "unsafe")
        self._current: Call | None = None

    # What the repair of arguments asks.

    def watch(self, call: Call) -> Watcher | None:
        if call.name is not None and self._acts(call.name):
            return Everything()
        names = self._voids(call.name)
        return VoidWatcher(names) if names else None

    def keeps_start(self, start: Start) -> bool:
        if start.name is None or self._acts(start.name):
            return True
        words = start.input
        return isinstance(words, dict) and any(isinstance(words.get(name), str) for name in self._voids(start.name))

    def judge(self, call: ToolCall) -> Change | None:
        arguments = call.arguments.mapping
        if arguments is None or not call.name or call.form == "custom":
            return None
        outcome = self._hold(call, arguments, self._tool(call.name), self._allowed)
        if not outcome.made:
            return None
        safety: Safety = "unsafe" if any(fault.safety == "unsafe" for fault in outcome.made) else "safe"
        assert self._current is not None
        text = call.arguments.text
        offset = 0
        if outcome.blocked is None:
            changed = rewrite(text, outcome.changes or {})
            if changed is None:
                return None
            text, offset = changed.text, changed.offset
        self._outcomes[self._current.start.block] = _Made(outcome.made, outcome.blocked)
        done = "; ".join(fault.done for fault in outcome.made)
        return Change(text, safety, done, done, offset=offset)

    def _allowed(self, safety: Safety) -> bool:
        return self._situation.permit.allows(self._rule.code, safety)

    def _voids(self, name: str | None) -> frozenset[str]:
        tool = self._tool(name) if self._unsafe and name is not None else None
        if tool is None or tool.hosted or name is None:
            return frozenset()
        if name not in self._voidable:
            self._voidable[name] = voidable(tool)
        return self._voidable[name]

    # What it does beyond.

    def push(self, event: Event) -> Iterable[Event]:
        match event:
            case Delta() | CallUpdate() | Close() if event.block in self._gone:
                return ()
            case Start(kind="tool_call"):
                self._left[event.choice] = self._left.get(event.choice, 0) + 1
            case Start(kind="text"):
                self._spoken.add(event.choice)
            case Finish() if self._queues or self._emptied:
                return self._stop(event, list(super().push(event)))
            case _:
                pass
        return super().push(event)

    def _stop(self, stop: Finish, out: list[Event]) -> list[Event]:
        """A candidate that was to end with calls and has none left ends as an answer does."""
        if stop.choice in self._emptied and not self._left.get(stop.choice) and ending(stop.reason) == "calls":
            ended = traits(self._situation.exchange.api).ended
            return [one._replace(reason=ended) if one is stop else one for one in out]
        return out

    def _pass(self, event: Event, choice: int, call: Call | None = None, *, kept: bool = False) -> Sequence[Event]:
        # Other repairs may have made the call, in whole bodies too: it is over when its candidate is.
        before, self._passing = self._passing, True
        try:
            return super()._pass(event, choice, call, kept=kept)
        finally:
            self._passing = before

    def _decide(self, call: Call, *, final: bool) -> None:
        if self._passing and not self._situation.streamed:
            return
        self._current = call
        super()._decide(call, final=final)

    def release(self) -> Sequence[Event]:
        if not self._situation.streamed:
            for keeping in tuple(self._keeping.values()):
                for call in tuple(keeping.values()):
                    self._decide(call, final=True)
        return super().release()

    def _carry_out(self, call: Call, made: ToolCall, change: Change) -> None:
        faults, blocked = self._outcomes.pop(call.start.block)
        before = len(self._situation.repairs)
        first = call.kept[0].event.frame if call.kept else None
        if blocked is not None:
            self._take_out(call, made, blocked)
        else:
            super()._carry_out(call, made, change)
            del self._situation.repairs[before:]
        number = first.number if first is not None and self._situation.streamed else None
        for fault in faults:
            self._situation.repairs.append(
                self._rule.repair(
                    "response",
                    fault.safety or "unsafe",
                    f"{made.name}: {fault.done}",
                    made.pointer,
                    event=number,
                    before=made.arguments.text,
                    after="" if blocked is not None else change.text,
                )
            )

    def _take_out(self, call: Call, made: ToolCall, why: Fault) -> None:
        """A sentence in the place of a call."""
        block, choice = call.start.block, call.start.choice
        self._gone.add(block)
        self._emptied.add(choice)
        self._left[choice] -= 1
        said = farewell(made.name or "a tool", why)
        if choice in self._spoken and not traits(self._situation.exchange.api).blocks:
            said = f"\n\n{said}"
        self._spoken.add(choice)
        for entry in self._queues[choice].entries:
            if getattr(entry.event, "block", None) == block:
                entry.out = self._say(entry.event, said) if isinstance(entry.event, Start) else []
        self._leave(call)

    def _say(self, start: Start, text: str) -> list[Event]:
        """A part of text, with words in it, in the place of a call."""
        place = traits(self._situation.exchange.api)
        block = self._situation.new_block()
        pointer = start.pointer if place.blocks else place.text_at.format(start.choice)
        begun = Start(block, "text", pointer, start.choice, start.frame)
        return [begun, Delta(block, text, start.frame), Close(block, start.frame)]


def farewell(name: str, why: Fault) -> str:
    """What a client reads in the place of a call that is blocked."""
    shown = name.replace("`", "'")
    return f"wirelint blocked a call of `{shown}`: {why.message}."
