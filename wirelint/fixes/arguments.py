"""The three repairs of arguments: several values in the place of one, no JSON object, values of wrong types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from wirelint.arguments.argument_faults import breaks, flaw, glued
from wirelint.arguments.argument_markup import MarkupWatcher, Polluted, may_be_polluted, polluted
from wirelint.arguments.argument_repairs import Change, as_text, in_order, retyped, unglued
from wirelint.arguments.argument_watchers import KindWatcher, SyntaxWatcher, ValuesWatcher, Watcher
from wirelint.arguments.json_continuation import continuation, write
from wirelint.arguments.schemas import accepts, validator
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Failure, Finish, Start, StreamViolation
from wirelint.fix import MOST_HELD, RewriteContext
from wirelint.fixes.argument_rewriter import ArgumentRewriter, Call
from wirelint.model import Arguments, Tool, ToolCall
from wirelint.text.excerpts import excerpt

# Native markup that stuck to keys and values of a call's arguments goes.


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


# Argument deltas that each repeat all that came before: what each of them adds is passed on.
#
# Theory of operation. `{"ci`, `{"city":"O`, `{"city":"Oslo"}` are the deltas of one call; joined they are no JSON.
# The first
# one passes. The second begins like the first and breaks the JSON, which may still be damage of another kind, so it
# waits for
# what comes next: a delta that begins like both of them, or the end of the call, if the second alone is an object.

_MOST_WAITING = 256
"""Events that wait for what follows a second delta."""


@dataclass(slots=True)
class _Call:
    """`told` is the last delta, `state` what is known of the deltas."""

    start: Start
    told: str = ""
    state: Literal["open", "grows", "plain"] = "open"


class Increments:
    """Passes on what each delta adds. `repaired` is called once per call: (start, the second delta)."""

    phase: ClassVar[int] = 4
    heeds_text: ClassVar[bool] = False

    def __init__(self, context: RewriteContext, repaired: Callable[[Start, Delta], None]) -> None:
        self._repaired = repaired
        self._streamed = context.streamed
        self._calls: dict[int, _Call] = {}
        self._waiting: list[Event] = []

    @property
    def held(self) -> int | None:
        return self._waiting[0].frame.number if self._waiting and self._waiting[0].frame else None

    def push(self, event: Event) -> Iterable[Event]:
        if not self._waiting:
            return self._take(event)
        second = self._waiting[0]
        assert isinstance(second, Delta)
        grows = self._grows(second, event)
        if grows is None and len(self._waiting) < _MOST_WAITING:
            self._waiting.append(event)
            return ()
        waiting, self._waiting = [*self._waiting[1:], event], []
        out = list(self._decide(second, grows=bool(grows)))
        for one in waiting:
            out += self.push(one)
        return out

    def release(self) -> Iterable[Event]:
        waiting, self._waiting = self._waiting, []
        for event in waiting[:1]:
            assert isinstance(event, Delta)
            self._calls[event.block].state = "plain"
        return waiting

    def _take(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Start):
            if event.kind == "tool_call" and event.form != "custom" and event.input in (None, {}, "", []):
                self._calls[event.block] = _Call(event)
            return (event,)
        call = self._calls.get(event.block) if isinstance(event, Delta) else None
        if (
            call is None
            or not isinstance(event, Delta)
            or call.state == "plain"
            or not self._streamed
            or not event.text
        ):
            return (event,)
        told, text = call.told, event.text
        if not text.startswith(told) or len(text) > MOST_HELD or (call.state == "open" and told == text):
            call.state, call.told = "plain", ""
            return (event,)
        if call.state == "grows":
            return self._add(call, event)
        if not told:
            call.told = text
            return (event,)
        if not breaks(told + text):
            call.state, call.told = "plain", ""
            return (event,)
        self._waiting.append(event)
        return ()

    def _grows(self, second: Delta, event: Event) -> bool | None:
        """Whether the deltas of a call grow, now that an event follows the second one; None: more has to come."""
        match event:
            case Delta(block=block, text=text) if block == second.block and text:
                return text.startswith(second.text) and text != second.text
            case CallUpdate(block=block) | Close(block=block) if block == second.block:
                pass
            case Start(choice=choice) | Finish(choice=choice) if choice == self._calls[second.block].start.choice:
                pass
            case Done():
                pass
            case _:
                return None
        return Arguments(second.text).mapping is not None

    def _decide(self, second: Delta, *, grows: bool) -> Iterable[Event]:
        call = self._calls[second.block]
        if not grows:
            call.state, call.told = "plain", ""
            return (second,)
        call.state = "grows"
        self._repaired(call.start, second)
        return self._add(call, second)

    def _add(self, call: _Call, event: Delta) -> Iterable[Event]:
        added = event.text[len(call.told) :]
        call.told = event.text
        return (event._replace(text=added),) if added else ()


# Arguments in the announcement of a call, taken out where deltas bring the arguments as well.
#
# `response.output_item.added` of OpenAI's Responses has empty arguments, and clients append the deltas to them. The
# start of
# a call that was announced with arguments waits for its first delta, or for whatever else shows that none comes.


class EmptyStarts:
    """Empties the start of a call whose deltas repeat it. `told` hears of each start that is emptied."""

    phase: ClassVar[int] = 4

    def __init__(self, told: Callable[[Start], None]) -> None:
        self._told = told
        self._waiting: list[Event] = []
        self._open: dict[int, int] = {}
        """The starts among them that nothing has followed yet: by block, their places."""

    @property
    def held(self) -> int | None:
        frame = self._waiting[0].frame if self._waiting else None
        return frame.number if frame is not None else None

    def push(self, event: Event) -> Iterable[Event]:
        match event:
            case Start() if event.given:
                self._open[event.block] = len(self._waiting)
            case StreamViolation("repeated-start", detail):
                self._empty(detail.partition(" ")[0])
            case Delta(block) | Close(block):
                self._open.pop(block, None)
            case Finish() | Done() | Failure():
                self._open.clear()
            case _:
                pass
        if not self._waiting and not self._open:
            return (event,)
        self._waiting.append(event)
        return () if self._open else self.release()

    def release(self) -> list[Event]:
        waiting, self._waiting = self._waiting, []
        self._open.clear()
        return waiting

    def _empty(self, pointer: str) -> None:
        for place in self._open.values():
            start = self._waiting[place]
            if isinstance(start, Start) and start.pointer == pointer:
                self._told(start)
                self._waiting[place] = start._replace(given="")


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
