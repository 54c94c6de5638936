"""Rewriter for invented arguments and argument policies: it changes arguments while they stream, and removes blocked calls.

A call that a policy may change is kept until it is over, since the change depends on all arguments. Other calls pass; where
only words for "no value" are replaced, arguments pass up to the first such word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from wirelint.arguments.argument_markup import rewrite
from wirelint.arguments.argument_repairs import Change
from wirelint.arguments.argument_watchers import Everything, VoidWatcher, Watcher
from wirelint.arguments.placeholders import omittable
from wirelint.events import Event, Finish, Start
from wirelint.fix import RewriteContext
from wirelint.fixes.argument_rewriter import ArgumentRewriter, Call
from wirelint.fixes.calls import CallRemover
from wirelint.model import Json, Tool, ToolCall
from wirelint.policy import Fault, Outcome
from wirelint.rule import Rule, Safety

JudgeArguments = Callable[[ToolCall, "dict[str, Json]", "Tool | None", Callable[[Safety], bool]], Outcome]


class PolicyRewriter(ArgumentRewriter):
    """`has_policy` returns True if a policy may change calls of a name."""

    looks_ahead: ClassVar[bool] = False  # in a whole body too, an earlier fix may have made the call

    def __init__(
        self, rule: Rule, context: RewriteContext, judge: JudgeArguments, has_policy: Callable[[str], bool]
    ) -> None:
        super().__init__(rule, context)
        self._judge, self._has_policy = judge, has_policy
        self._remover = CallRemover(context)
        self._unsafe = context.permit.allows(rule.code, "unsafe")
        self._outcome = Outcome(())

    def watch(self, call: Call) -> Watcher | None:
        if call.name is not None and self._has_policy(call.name):
            return Everything()
        names = self._voidable(call.name)
        return VoidWatcher(names) if names else None

    def keeps_start(self, start: Start) -> bool:
        if start.name is None or self._has_policy(start.name):
            return True
        given = start.input
        return isinstance(given, dict) and any(isinstance(given.get(name), str) for name in self._voidable(start.name))

    def _voidable(self, name: str | None) -> frozenset[str]:
        tool = self._tool(name) if self._unsafe else None
        return omittable(tool) if tool is not None and not tool.hosted else frozenset()

    def judge(self, call: ToolCall) -> Change | None:
        arguments = call.arguments.mapping
        if arguments is None or not call.name or call.form == "custom":
            return None
        outcome = self._judge(call, arguments, self._tool(call.name), self._is_permitted)
        if not outcome.made:
            return None
        safety: Safety = "unsafe" if any(fault.safety == "unsafe" for fault in outcome.made) else "safe"
        text, offset = call.arguments.text, 0
        if outcome.blocked is None:
            changed = rewrite(text, outcome.changes or {})
            if changed is None:
                return None
            text, offset = changed.text, changed.offset
        self._outcome = outcome
        done = "; ".join(fault.done for fault in outcome.made)
        return Change(text, safety, done, done, offset=offset)

    def _is_permitted(self, safety: Safety) -> bool:
        return self._context.permit.allows(self._rule.code, safety)

    def push(self, event: Event) -> Iterable[Event]:
        if self._remover.is_removed(event):
            return ()
        if isinstance(event, Start):
            self._remover.note(event)
        return super().push(event)

    def finish(self, event: Finish) -> Finish:
        return self._remover.finish(event)

    def release(self) -> Sequence[Event]:
        if not self._context.streamed:
            self._settle(None)
        return super().release()

    def _carry_out(self, call: Call, made: ToolCall, change: Change) -> None:
        outcome = self._outcome
        first = call.kept[0].event if call.kept else None
        if outcome.blocked is not None:
            self._remove(call, made, outcome.blocked)
        else:
            self._replace(call, change)
        for fault in outcome.made:
            self._rule.record(
                self._context,
                fault.safety or "unsafe",
                f"{made.name}: {fault.done}",
                made.pointer,
                at=first,
                before=made.arguments.text,
                after="" if outcome.blocked is not None else change.text,
            )

    def _remove(self, call: Call, made: ToolCall, why: Fault) -> None:
        """Put a sentence in the place of a blocked call."""
        for entry in self._queue:
            if entry.event is call.start:
                entry.out = self._remover.remove(call.start, block_text(made.name or "a tool", why))
            elif getattr(entry.event, "block", None) == call.start.block:
                entry.out = []
        self._leave(call)


def block_text(name: str, why: Fault) -> str:
    """Return the sentence that replaces a blocked call."""
    shown = name.replace("`", "'")
    return f"wirelint blocked a call of `{shown}`: {why.message}."
