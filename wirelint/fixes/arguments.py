"""Rewriters for the arguments of calls: several JSON values, no JSON object, values of wrong types, markup, repetition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from wirelint.arguments.argument_faults import concatenated, flaw, is_broken
from wirelint.arguments.argument_markup import Polluted, Rewritten, may_be_polluted, polluted, rewrite, with_strings
from wirelint.arguments.argument_repairs import (
    Change,
    coerce_types,
    past_faults,
    repair_flaw,
    separate_values,
    write_as_text,
)
from wirelint.arguments.argument_watchers import (
    Everything,
    KindWatcher,
    SyntaxWatcher,
    ValuesWatcher,
    Watcher,
    markup_watcher,
    thought_watcher,
    void_watcher,
)
from wirelint.arguments.json_continuation import continuation, write
from wirelint.arguments.placeholders import omittable
from wirelint.arguments.schemas import accepts, validator
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Failure, Finish, Start, StreamViolation
from wirelint.fix import (
    MOST_HELD,
    FixPolicy,
    PassingRewriter,
    RequestFix,
    RewriteContext,
    WaitingRewriter,
    ends_call,
    first_frame,
)
from wirelint.fixes.argument_rewriter import ArgumentRewriter, Call
from wirelint.fixes.calls import CallRemover
from wirelint.model import Arguments, Exchange, Json, Tool, ToolCall
from wirelint.policy import Fault, Outcome
from wirelint.rule import Finding, Fix, Rule, Safety, Severity
from wirelint.state.ledger import Ledger
from wirelint.text.escaping import excerpt
from wirelint.text.thinking import NATIVE_TAG, Thinking, may_hold_thinking

# Argument texts that the classes below repair, each with a result:
#
#     SeparateValues   {"at":1}{"at":1}                              {"at":1}; of two different values, two calls
#     CompleteJson     <tool_call>{"at":1}</tool_call>               {"at":1}
#     CoerceTypes      {"at":"1"}                                    {"at":1}, where the schema has an integer
#     StripThoughts    {"at":"<think>North?</think>north"}           {"at":"north"}
#     GrowingDeltas    `{"a`, `{"at":`, `{"at":1}`, each a delta     {"at":1}

_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
_EMPTY: tuple[Json, ...] = (None, {}, "", [])


class SeparateValues(ArgumentRewriter):
    """Makes one value of several JSON values, or one call of each."""

    ends_whole = False

    def watch(self, call: Call) -> Watcher | None:
        return ValuesWatcher()

    def keeps_start(self, start: Start) -> bool:
        return start.input not in _EMPTY

    def over_at_close(self, call: Call) -> bool:
        return not call.length or super().over_at_close(call)

    def judge(self, call: ToolCall) -> Change | None:
        request = self._context.exchange.request
        parallel = request is None or request.parallel_tool_calls is not False
        return separate_values(call, self._tool, parallel=parallel)


class CompleteJson(ArgumentRewriter):
    """Makes a JSON object of missing or damaged arguments."""

    def watch(self, call: Call) -> Watcher | None:
        return SyntaxWatcher()

    def keeps_start(self, start: Start) -> bool:
        if start.input in _EMPTY:
            return False
        return self._own.has_only_strings or not isinstance(start.input, dict)

    def judge(self, call: ToolCall) -> Change | None:
        found = flaw(call, self._tool(call.name))
        if found is not None:
            return repair_flaw(call, found, self._tool(call.name))
        if call.start_input is not None and self._own.has_only_strings and concatenated(call) is None:
            return write_as_text(call)
        return None


class CoerceTypes(ArgumentRewriter):
    """Converts values to the types of the declared schema."""

    def watch(self, call: Call) -> Watcher | None:
        tool = self._checked(call.name)
        return KindWatcher(tool) if tool is not None else None

    def keeps_start(self, start: Start) -> bool:
        tool = self._checked(start.name)
        schema = validator(tool) if isinstance(start.input, dict) and start.input else None
        return schema is not None and not schema.accepts(start.input)

    def judge(self, call: ToolCall) -> Change | None:
        tool = self._checked(call.name)
        schema = validator(tool)
        return coerce_types(call, tool, schema) if tool is not None and schema is not None else None

    def _checked(self, name: str | None) -> Tool | None:
        """Return the client's tool of a name, if its schema can be checked."""
        tool = self._tool(name)
        return tool if tool is not None and not tool.hosted and validator(tool) is not None else None


class StripMarkup(ArgumentRewriter):
    """Removes native markup that stuck to keys and values."""

    phase: ClassVar[float] = 3.2

    def watch(self, call: Call) -> Watcher | None:
        return markup_watcher()

    def keeps_start(self, start: Start) -> bool:
        return bool(start.input) and may_be_polluted(write(start.input))

    def judge(self, call: ToolCall) -> Change | None:
        request, tool = self._context.exchange.request, self._tool(call.name)
        found = polluted(call.arguments.mapping, tool, request) if request is not None else None
        return unmarked(call, found, tool) if found is not None else None


class StripThoughts(ArgumentRewriter):
    """Removes reasoning in tags from the edges of values. `judge` returns the change of a call."""

    phase: ClassVar[float] = 3.15
    """After markup has become calls, before other changes of arguments."""

    def __init__(self, rule: Rule, context: RewriteContext, judge: Callable[[ToolCall], Change | None]) -> None:
        super().__init__(rule, context)
        self._judge = judge

    def watch(self, call: Call) -> Watcher | None:
        return thought_watcher()

    def keeps_start(self, start: Start) -> bool:
        return bool(start.input) and thought_watcher().feed(text := write(start.input)) < len(text)

    def judge(self, call: ToolCall) -> Change | None:
        return self._judge(call)


def unthought(call: ToolCall, thoughts: Mapping[tuple[str, str], Thinking], tool: Tool | None) -> Change | None:
    """Return the arguments without the thoughts at an edge of their values; None if no value is evident.

    `thoughts` are by dotted name and value.

    A thought before a lone closing tag is kept if the value began in an earlier event of the stream, which has been
    sent.
    """
    arguments, text = call.arguments.mapping or {}, call.arguments.text
    rests = {(path, value): _without(value, found) for (path, value), found in thoughts.items()}
    kept = {place: rest for place, rest in rests.items() if rest is not None}
    cleaned = with_strings(arguments, kept)
    changed = {name: value for name, value in cleaned.items() if value != arguments[name]}
    offset = thought_watcher().feed(text)
    ending = continuation(text[:offset], cleaned)
    made = Rewritten(text[:offset] + ending, offset) if ending is not None else rewrite(text, changed)
    if (
        not changed
        or made is None
        or call.event_at(made.offset) != call.event_at(offset)
        or accepts(tool, cleaned) is False
    ):
        return None
    what = f"the reasoning in the value of {excerpt(', '.join(dict.fromkeys(path for path, _ in kept)))}"
    return Change(made.text, "unsafe", f"remove {what}", f"removed {what}", offset=made.offset)


def _without(value: str, found: Thinking) -> str | None:
    """Return a value without the thought before or after it; None if the value is not evident."""
    rest = value[found.end :].strip()
    if not rest:  # a thought or a lone closing tag at the end
        tag = NATIVE_TAG.search(value, found.body[1]) if found.evidence == "closed" else None
        kept = value[: tag.start() if tag is not None else found.start]
    else:
        is_leading = found.whole and not value[: found.start].strip()
        kept = rest if is_leading else ""
    if not found.native or not kept.strip() or may_hold_thinking(kept):
        return None
    is_pair = found.whole and found.evidence != "closed"
    return kept if is_pair or all(kept.count(opener) == kept.count(closer) for opener, closer in _BRACKETS) else None


def unmarked(call: ToolCall, found: Polluted, tool: Tool | None) -> Change | None:
    """Return the arguments without markup; None if they do not fit then, or cannot continue the text sent so far."""
    if found.cleaned is None or accepts(tool, found.cleaned) is False:
        return None
    text = call.arguments.text
    begun = text[: markup_watcher().feed(text)]
    rest = continuation(begun, found.cleaned)
    if rest is None:
        return None
    what = f"{excerpt(found.markup)} from {found.where}"
    return Change(begun + rest, "unsafe", f"remove {what}", f"removed {what}", offset=len(begun))


def report_history(rule: Rule, exchange: Exchange, ledger: Ledger | None, *, concatenated: bool) -> Iterator[Finding]:
    """Yield findings on arguments in the history: on several values in a row, or on all other faults."""
    refused = exchange.status is not None and 400 <= exchange.status < 500
    for fault in past_faults(exchange, ledger):
        if fault.concatenated is concatenated:
            damaged: Severity = "error" if refused else "info" if fault.nothing else "warning"
            yield rule.finding(
                "request",
                f"{fault.name}: in the history the arguments are {fault.words}",
                fault.call.pointer,
                layer=fault.layer,
                severity=damaged if fault.layer is None else "warning",
                fix=Fix(fault.safety, f"write them as {excerpt(fault.right)}") if fault.right else None,
            )


def fix_history(
    rule: Rule, exchange: Exchange, ledger: Ledger | None, permit: FixPolicy, *, concatenated: bool
) -> Iterator[RequestFix]:
    """Yield the fixes of the arguments that `report_history` reports."""
    for fault in past_faults(exchange, ledger):
        if fault.concatenated is concatenated and fault.edit is not None and permit.allows(rule.code, fault.safety):
            before, after = fault.call.arguments.text, fault.right or ""
            title = f"{fault.name}: wrote the arguments, {fault.words}, as {excerpt(after)}"
            yield (
                (fault.edit,),
                rule.repair("request", fault.safety, title, fault.call.pointer, before=before, after=after),
            )


@dataclass(slots=True)
class _Growing:
    """A call whose deltas may repeat. `before` is the last delta."""

    start: Start
    before: str = ""
    state: Literal["open", "grows", "plain"] = "open"

    def is_plain(self) -> None:
        self.state, self.before = "plain", ""


class GrowingDeltas(WaitingRewriter):
    """Reduces deltas that each repeat all text before them. `record` gets the start and the second delta of each call.

    `{"ci`, `{"city":"O`, `{"city":"Oslo"}` are the deltas of one call; joined they are no JSON. The first passes. The
    second begins like the first, which may be another fault, or an object in an object (`{"a":`, `{"a":1}`, `}`). So it
    waits for the next delta, which must begin like both, or for the end of the call, if the second alone is an object.
    """

    phase = 4

    def __init__(self, context: RewriteContext, record: Callable[[Start, Delta], None]) -> None:
        super().__init__()
        self._record = record
        self._streamed = context.streamed
        self._calls: dict[int, _Growing] = {}

    def release(self) -> Iterable[Event]:
        for event in self._held[:1]:
            assert isinstance(event, Delta)
            self._calls[event.block].state = "plain"
        return super().release()

    def take(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Start) and event.kind == "tool_call" and event.form != "custom" and event.input in _EMPTY:
            self._calls[event.block] = _Growing(event)
        if not isinstance(event, Delta) or not self._streamed or not event.text:
            return (event,)
        call = self._calls.get(event.block)
        if call is None or call.state == "plain":
            return (event,)
        before, text = call.before, event.text
        if not text.startswith(before) or len(text) > MOST_HELD or (call.state == "open" and before == text):
            call.is_plain()
            return (event,)
        if call.state == "grows":
            return self._add(call, event)
        if not before:
            call.before = text
            return (event,)
        return self.wait_for(event)

    def decides(self, first: Event, event: Event) -> bool | None:
        assert isinstance(first, Delta)
        call = self._calls[first.block]
        match event:
            case Delta(block=block, text=text) if block == first.block and text:
                if not (text.startswith(first.text) and is_broken(call.before + first.text + text)):
                    return False
                if text != first.text:
                    return True
            case CallUpdate(block=block) if block == first.block:
                pass
            case _ if ends_call(call.start, event):
                pass
            case _:
                return None
        return Arguments(first.text).mapping is not None

    def settle(self, held: Sequence[Event], event: Event, decided: bool) -> Iterable[Event]:
        second = held[0]
        assert isinstance(second, Delta)
        call = self._calls[second.block]
        if not decided:
            call.is_plain()
            return (second,)
        call.state = "grows"
        self._record(call.start, second)
        return self._add(call, second)

    def _add(self, call: _Growing, event: Delta) -> Iterable[Event]:
        added = event.text[len(call.before) :]
        call.before = event.text
        return (event._replace(text=added),) if added else ()


class CallShapes(PassingRewriter):
    """Drops the violations by misshapen calls, so that their events are written anew. `record` records the first of a
    call."""

    heeds_text: ClassVar[bool] = False

    def __init__(self, record: Callable[[StreamViolation], None]) -> None:
        self._record = record
        self._recorded: set[str] = set()

    def push(self, event: Event) -> Iterable[Event]:
        if not (isinstance(event, StreamViolation) and event.kind == "misshapen-call"):
            return (event,)
        if event.detail not in self._recorded:
            self._recorded.add(event.detail)
            self._record(event)
        return ()


class EmptyStarts:
    """Empties the arguments in the start of a call whose deltas repeat them. `record` records each of these starts.

    In OpenAI's Responses, `response.output_item.added` has empty arguments, and clients append the deltas. A start with
    arguments waits for its first delta, or for an event that shows that none will come.
    """

    phase: ClassVar[float] = 4
    heeds_text: ClassVar[bool] = False

    def __init__(self, record: Callable[[Start], None]) -> None:
        self._record = record
        self._waiting: list[Event] = []
        self._open: dict[int, int] = {}
        """By block, the positions of waiting starts whose block has had no event yet."""

    @property
    def held(self) -> int | None:
        return first_frame(self._waiting)

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
                self._record(start)
                self._waiting[place] = start._replace(given="")


# Rewriter for invented arguments and argument policies: it changes arguments while they stream, and removes blocked calls.
#
# A call that a policy may change is kept until it is over, since the change depends on all arguments. Other calls pass;
# where only words for "no value" are replaced, arguments pass up to the first such word.

JudgeArguments = Callable[[ToolCall, "dict[str, Json]", "Tool | None", Callable[[Safety], bool]], Outcome]


class PolicyRewriter(ArgumentRewriter):
    """`has_policy` returns True if a policy may change calls of a name."""

    looks_ahead: ClassVar[bool] = False  # even in a whole body, an earlier fix may have made the call

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
        return void_watcher(names) if names else None

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
            for entry in self._queue:
                if entry.event is call.start:
                    entry.out = self._remover.remove(call.start, block_text(made.name or "a tool", outcome.blocked))
                elif getattr(entry.event, "block", None) == call.start.block:
                    entry.out = []
            self._leave(call)
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


def block_text(name: str, why: Fault) -> str:
    """Return the sentence that replaces a blocked call."""
    shown = name.replace("`", "'")
    return f"wirelint blocked a call of `{shown}`: {why.message}."
