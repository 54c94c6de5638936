"""Native markup that stuck to keys and values of a call's arguments goes."""

from __future__ import annotations

from wirelint.arguments.argument_markup import MarkupWatcher, Polluted, may_be_polluted, polluted
from wirelint.arguments.argument_repairs import Change
from wirelint.arguments.argument_watchers import Watcher
from wirelint.arguments.json_continuation import continuation, write
from wirelint.arguments.schemas import accepts
from wirelint.events import Start
from wirelint.fixes.argument_calls import Call
from wirelint.fixes.argument_rewriter import ArgumentRewriter
from wirelint.model import Tool, ToolCall
from wirelint.text.excerpts import excerpt


class Unmark(ArgumentRewriter):
    """Arguments without the tags of the notation that they came in."""

    def watch(self, call: Call) -> Watcher | None:
        return MarkupWatcher()

    def keeps_start(self, start: Start) -> bool:
        return bool(start.input) and may_be_polluted(write(start.input))

    def judge(self, call: ToolCall) -> Change | None:
        request, tool = self._situation.exchange.request, self._tool(call.name)
        found = polluted(call.arguments.mapping, tool, request) if request is not None else None
        return unmarked(call, found, tool) if found is not None else None


def unmarked(call: ToolCall, found: Polluted, tool: Tool | None) -> Change | None:
    """The arguments without markup; None where they would not fit then, or cannot follow what a stream has sent."""
    if found.cleaned is None or accepts(tool, found.cleaned) is False:
        return None
    text = call.arguments.text
    begun = text[: MarkupWatcher().feed(text)]
    rest = continuation(begun, found.cleaned)
    if rest is None:
        return None
    tags = excerpt(found.markup)
    return Change(
        begun + rest, "unsafe", f"take {tags} off {found.where}", f"took {tags} off {found.where}", offset=len(begun)
    )
