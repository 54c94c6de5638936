"""The three repairs of arguments: several values in the place of one, no JSON object, values of wrong types."""

from __future__ import annotations

from wirelint.arguments.argument_faults import flaw, glued
from wirelint.arguments.argument_repairs import Change, as_text, in_order, retyped, unglued
from wirelint.arguments.argument_watchers import KindWatcher, SyntaxWatcher, ValuesWatcher, Watcher
from wirelint.arguments.schemas import validator
from wirelint.events import Start
from wirelint.fixes.argument_calls import Call
from wirelint.fixes.argument_rewriter import ArgumentRewriter
from wirelint.model import Tool, ToolCall


class Unglue(ArgumentRewriter):
    """One value where several stand, or one call for each."""

    ends_whole = False

    def watch(self, call: Call) -> Watcher | None:
        return ValuesWatcher()

    def keeps_start(self, start: Start) -> bool:
        return start.input not in (None, {}, "", [])

    def over_at_close(self, call: Call) -> bool:
        return not call.length or super().over_at_close(call)

    def judge(self, call: ToolCall) -> Change | None:
        request = self._situation.exchange.request
        parallel = request is None or request.parallel_tool_calls is not False
        return unglued(call, self._tool, parallel=parallel)


class PutInOrder(ArgumentRewriter):
    """An object where there is none, or damaged text."""

    def watch(self, call: Call) -> Watcher | None:
        return SyntaxWatcher()

    def keeps_start(self, start: Start) -> bool:
        if start.input in (None, {}, "", []):
            return False
        return self._own.text_only or not isinstance(start.input, dict)

    def judge(self, call: ToolCall) -> Change | None:
        found = flaw(call, self._tool(call.name))
        if found is not None:
            return in_order(call, found, self._tool(call.name))
        if call.start_input is not None and self._own.text_only and glued(call) is None:
            return as_text(call)
        return None


class Retype(ArgumentRewriter):
    """Values of the types that the declared schema allows."""

    def watch(self, call: Call) -> Watcher | None:
        tool = self._judged(call.name)
        return KindWatcher(tool) if tool is not None else None

    def keeps_start(self, start: Start) -> bool:
        tool = self._judged(start.name)
        schema = validator(tool) if isinstance(start.input, dict) and start.input else None
        return schema is not None and not schema.accepts(start.input)

    def judge(self, call: ToolCall) -> Change | None:
        tool = self._judged(call.name)
        schema = validator(tool)
        return retyped(call, tool, schema) if tool is not None and schema is not None else None

    def _judged(self, name: str | None) -> Tool | None:
        """The tool of a name, if it has a schema that arguments can be held to."""
        tool = self._tool(name)
        return tool if tool is not None and not tool.hosted and validator(tool) is not None else None
