"""Rewriters for the arguments of calls: several JSON values, no JSON object, values of wrong types, markup, policies.

Theory of operation. A watcher follows the text of each call (`arguments.argument_repairs`). While nothing is
suspicious, deltas pass unchanged. From the first suspicious place on (`{"city":"Oslo"}` followed by `{`), the events of
the call are kept, and all later events wait for them (their frames would wait anyway). When the call is over, the
function that the rule uses checks its whole text, and the unsent part of the changed text replaces the kept events. A
call is over when another part follows its close, when another call begins and its own text is complete (servers may
fill calls in turns), or when the candidate ends. If only the end can confirm a fault, since in a reply cut by length it
is none, the call waits for the end.

A whole body needs no waiting: the end of each candidate is looked up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import orjson

from wirelint.apis.traits import traits
from wirelint.arguments import argument_faults as faults
from wirelint.arguments import argument_repairs as repairs
from wirelint.arguments.argument_repairs import Change, Watcher, thought_watcher
from wirelint.arguments.placeholders import omittable
from wirelint.arguments.schemas import accepts, validator
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Failure, Finish, Fold, Frame, Start, StreamViolation
from wirelint.fix import MOST_HELD, RewriteContext, first_frame
from wirelint.fixes.calls import CallRemover
from wirelint.history.id_demands import mint_where_used
from wirelint.jsonvalues import write
from wirelint.model import Exchange, Json, Tool, ToolCall
from wirelint.policy import Fault, Outcome
from wirelint.rule import Fix, Fixable, Rule, Safety, Severity
from wirelint.state.ledger import Ledger
from wirelint.text.escaping import REDACTED, excerpt
from wirelint.text.thinking import NATIVE_TAG, Thinking, may_hold_thinking

# Argument texts that the classes below repair, each with a result:
#
#     SeparateValues   {"at":1}{"at":1}                              {"at":1}; of two different values, two calls
#     CompleteJson     <tool_call>{"at":1}</tool_call>               {"at":1}
#     CoerceTypes      {"at":"1"}                                    {"at":1}, where the schema has an integer
#     StripThoughts    {"at":"<think>North?</think>north"}           {"at":"north"}
#     GrowingDeltas    `{"a`, `{"at":`, `{"at":1}`, each a delta     {"at":1}

_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))

_MOST_BEHIND = 16 * MOST_HELD
"""Most characters that may wait for kept events."""


@dataclass(slots=True, eq=False)
class Entry:
    """An event in the queue. `size`: length of its text; `end`: of its call's text after it. `out`: the events to send."""

    event: Event
    out: list[Event]
    size: int
    end: int
    kept: bool


@dataclass(slots=True, eq=False)
class Call:
    """A call in transit. `kept` are its entries that must not leave yet, `last` is its last entry in the queue.

    The text and the updates that have been sent are kept without their frames, which are many times as long.
    """

    start: Start
    name: str | None
    watcher: Watcher | None = None
    length: int = 0
    kept: deque[Entry] = field(default_factory=deque)
    last: Entry | None = None
    closed: bool = False
    tried: bool = False
    _texts: list[str] = field(default_factory=list)
    _updates: list[tuple[int, CallUpdate]] = field(default_factory=list)

    @property
    def sent(self) -> int:
        """The number of characters that have been sent."""
        return self.kept[0].end - self.kept[0].size if self.kept else self.length

    def add(self, text: str) -> None:
        self._texts.append(text)
        self.length += len(text)

    def update(self, update: CallUpdate) -> None:
        self._updates.append((self.length, update._replace(frame=_bare(update.frame))))
        self.name = self.name or update.name

    def assembled(self) -> ToolCall:
        """Return the call as rules see it."""
        fold, start = Fold(streamed=True), self.start._replace(frame=_bare(self.start.frame))
        fold.push(start)
        text, place = "".join(self._texts), 0
        for offset, update in self._updates:
            fold.push(Delta(start.block, text[place:offset], start.frame))
            fold.push(update)
            place = offset
        fold.push(Delta(start.block, text[place:], start.frame))
        return fold.reply().choices[0].calls[0]


def _bare(frame: Frame | None) -> Frame | None:
    return None if frame is None else Frame(frame.number, b"", None, None)


class ArgumentRewriter(ABC):
    """Base of rewriters of arguments. A subclass defines the watcher and the change of a call.

    `watcher` makes the watcher of a call, unless a subclass overrides `watch`. `ends_whole`: a cut reply has no such
    fault. `looks_ahead`: in a whole body, a call is decided on as soon as it appears.
    """

    phase: ClassVar[float] = 4
    heeds_text: ClassVar[bool] = False
    ends_whole: ClassVar[bool] = True
    looks_ahead: ClassVar[bool] = True
    watcher: ClassVar[Callable[[], Watcher]]

    def __init__(self, rule: Rule, context: RewriteContext) -> None:
        self._rule = rule
        self._context = context
        self._own = traits(context.exchange.api)
        self._calls: dict[int, Call] = {}
        self._queue: deque[Entry] = deque()
        self._out_of_order = False
        """True if an event may wait behind one of a later frame, since another rewriter held it first."""
        self._size = 0
        """Characters in the queue."""
        self._keeping: dict[int, Call] = {}
        """By block: the calls with kept events."""
        self._fresh: dict[int, Call] = {}
        """By block: those that the next start may settle."""
        self._reasons: dict[int, str] = {}
        self._last: dict[int, int] = {}
        """By candidate: the block of its last call so far; where blocks do not overlap, of its last part."""
        self._unread = self._failed = self._looked_ahead = False

    # --- for subclasses -----------------------------------------------------------------------------------------------

    def watch(self, call: Call) -> Watcher | None:
        """Return a watcher for the argument text of a call; None if nothing in it can be fixed."""
        return type(self).watcher()

    @abstractmethod
    def keeps_start(self, start: Start) -> bool:
        """Return True if the input of a start may have to change."""

    @abstractmethod
    def judge(self, call: ToolCall) -> Change | None:
        """Return the change of a call that is over."""

    def over_at_close(self, call: Call) -> bool:
        """Return True if the close of a block shows that the kept events need no change."""
        return call.watcher is None or not call.watcher.is_suspicious

    def finish(self, event: Finish) -> Finish:
        """Return the end of a candidate, whose calls are decided on."""
        return event

    # --- the interface of the pipeline --------------------------------------------------------------------------------

    @property
    def held(self) -> int | None:
        if not self._out_of_order:
            return first_frame((self._queue[0].event,)) if self._queue else None
        return first_frame(entry.event for entry in self._queue)

    def push(self, event: Event) -> Iterable[Event]:
        match event:
            case Delta():
                call = self._calls.get(event.block)
                if call is None:
                    return self._pass(event) if self._queue else (event,)
                call.add(event.text)
                call.watcher = call.watcher or self.watch(call)
                if call.watcher is None:
                    self._leave(call)
                    return self._pass(event)
                safe = call.watcher.feed(event.text)
                if not self._queue and safe >= call.length:
                    return (event,)
                self._let_go(call, safe)
                kept = safe < call.length
                if kept and self._context.streamed and call.length - safe > MOST_HELD:
                    self._abandon(call)
                    kept = False
                return self._pass(event, call, kept=kept)
            case Start():
                return self._start(event)
            case CallUpdate(block):
                call = self._calls.get(block)
                if call is not None:
                    call.update(event)
                return self._pass(event, call)
            case Close(block):
                return self._close(event, self._calls.get(block))
            case Finish(choice):
                self._note_end(event)
                return [*self._settle(choice), *self._pass(self.finish(event))]
            case Done():
                return [*self._settle(None), event]
            case Failure():
                self._note_end(event)
                return [*self.release(), event]
            case _:
                self._note_end(event)
                return (event,)

    def release(self) -> Sequence[Event]:
        for call in list(self._keeping.values()):
            self._leave(call)
        return self._flush()

    # --- events -------------------------------------------------------------------------------------------------------

    def _note_end(self, event: Event) -> None:
        """Record an event that shows how a candidate ends."""
        match event:
            case Start(kind=kind) if self._own.has_block_events or kind == "tool_call":
                self._last[event.choice] = event.block
            case Finish(choice, reason):
                self._reasons[choice] = reason
            case Failure():
                self._failed = True
            case StreamViolation("broken-json"):
                self._unread = True

    def _start(self, event: Start) -> Iterable[Event]:
        if self._context.streamed:
            self._note_end(event)
        out = self._settle_before(event)
        if event.kind != "tool_call" or event.form in ("custom", "built-in"):
            return [*out, *self._pass(event)]
        call = self._calls[event.block] = Call(event, event.name)
        kept = self.keeps_start(event)
        if kept:
            call.watcher = repairs.Everything()
        return [*out, *self._pass(event, call, kept=kept)]

    def _close(self, event: Close, call: Call | None) -> Iterable[Event]:
        out = self._pass(event, call)
        if call is None:
            return out
        call.closed = True
        if not call.kept or self.over_at_close(call):
            self._leave(call)
            out = [*out, *self._flush()]
        return out

    # --- the queue ----------------------------------------------------------------------------------------------------

    def _pass(self, event: Event, call: Call | None = None, *, kept: bool = False) -> Sequence[Event]:
        """Return an event to send it, or queue it after the kept events."""
        if not self._queue and not kept:
            return (event,)
        size = len(event.text) if type(event) is Delta else 0
        entry = Entry(event, [event], size, call.length if call is not None else 0, kept)
        before = self._queue[-1].event.frame if self._queue else None
        if before is not None and event.frame is not None and event.frame.number < before.number:
            self._out_of_order = True
        self._queue.append(entry)
        self._size += size
        if call is not None and kept:
            call.kept.append(entry)
            self._keeping[call.start.block] = call
            if not call.tried:
                self._fresh[call.start.block] = call
        if call is not None and call.kept:
            call.last = entry
        if self._size > _MOST_BEHIND and self._context.streamed:
            for other in list(self._keeping.values()):
                self._abandon(other)
        if not self._context.streamed and call is not None and kept:
            if not self._looked_ahead:
                self._looked_ahead = True
                for one in self._context.frame_events:
                    self._note_end(one)
            if self.looks_ahead:
                self._decide(call, final=True)
        return self._flush()

    def _let_go(self, call: Call, safe: int | None = None) -> None:
        """Stop keeping the entries of a call up to this length of its text; all of them by default."""
        while call.kept and (safe is None or call.kept[0].end <= safe):
            call.kept.popleft().kept = False
        if not call.kept:
            call.last = None
            self._keeping.pop(call.start.block, None)
            self._fresh.pop(call.start.block, None)

    def _leave(self, call: Call) -> None:
        """Stop watching a call, and release its kept events."""
        self._let_go(call)
        self._calls.pop(call.start.block, None)

    def _abandon(self, call: Call) -> None:
        what = f"the arguments of {call.name or 'a call'}"
        self._context.notes.append(f"{self._rule.name}: {what} are too long to be held back; left unchanged")
        self._leave(call)

    def _flush(self) -> list[Event]:
        out: list[Event] = []
        queue, left = self._queue, 0
        while queue and not queue[0].kept:
            entry = queue.popleft()
            left += entry.size
            out += entry.out
        self._out_of_order = self._out_of_order and bool(queue)
        self._size -= left
        return out

    # --- the end of a call --------------------------------------------------------------------------------------------

    def _settle_before(self, start: Start) -> list[Event]:
        """Decide on the calls that are closed, or complete when another call follows."""
        for block, call in list(self._fresh.items()):
            if call.start.choice == start.choice and (call.closed or start.kind == "tool_call"):
                self._fresh.pop(block, None)
                self._decide(call, final=call.closed)
        return self._flush()

    def _settle(self, choice: int | None) -> list[Event]:
        """Decide on all calls of a candidate that is over; None for all candidates."""
        for call in list(self._keeping.values()):
            if choice in (None, call.start.choice):
                self._decide(call, final=True)
        return self._flush()

    def _decide(self, call: Call, *, final: bool) -> None:
        watcher = call.watcher
        if watcher is None or not watcher.is_suspicious:
            if watcher is None or final or watcher.complete:
                self._let_go(call)
            return
        if call.tried and not final:
            return
        call.tried = True
        made = call.assembled()
        change = self.judge(made) if self._is_over(call.start, made) else None
        if change is not None and not self._context.permit.allows(self._rule.code, change.safety):
            change = None
        if change is not None and change.text.startswith(made.deltas[: call.sent]):
            self._carry_out(call, made, change)
        elif final or (made.arguments.values and not made.arguments.rest):
            self._leave(call)

    def _is_over(self, start: Start, call: ToolCall) -> bool:
        """Return True if a call may be checked, by the condition that the rules use."""
        if self.ends_whole and (self._unread or REDACTED in call.arguments.text):
            return False
        if self._last.get(start.choice) != start.block:
            return True  # a cut reply has only its last call cut
        reason = self._reasons.get(start.choice)
        return not self._failed and (not self.ends_whole or reason is None or faults.is_normal_end(reason))

    def _tool(self, name: str | None) -> Tool | None:
        request = self._context.exchange.request
        return request.tool(name) if name is not None and request is not None else None

    # --- the change ---------------------------------------------------------------------------------------------------

    def _carry_out(self, call: Call, made: ToolCall, change: Change) -> None:
        came = [made.start_input.text] if made.start_input is not None else []
        self._rule.record(
            self._context,
            change.safety,
            f"{made.name or 'a call without a name'}: {change.done}",
            made.pointer,
            at=self._replace(call, change),
            before="\n".join([*came, made.deltas] if made.deltas else came),
            after="\n".join([change.text, *(separated.text for separated in change.separated)]),
        )

    def _replace(self, call: Call, change: Change) -> Event:
        """Replace the kept arguments of a call. Return the event at which the change begins."""
        rest = change.text[call.sent :]
        entries = list(call.kept)
        where = next((entry for entry in entries if entry.end > change.offset), entries[0]).event
        if isinstance(entries[0].event, Start):
            rest = self._refill(entries[0], entries[0].event, rest, alone=len(entries) == 1)
            del entries[0]
        # Deltas that carry the beginning of the rest are kept; the first other one gets the remainder.
        for number, entry in enumerate(entries):
            delta = entry.event
            assert isinstance(delta, Delta)
            last = number + 1 == len(entries)
            if rest.startswith(delta.text) and not (last and len(rest) > len(delta.text)):
                rest = rest[len(delta.text) :]
                continue
            entry.out = [delta._replace(text=rest)] if rest else []
            rest = ""
        if change.separated:
            self._separate(call, change)
        self._leave(call)
        return where

    def _refill(self, entry: Entry, start: Start, text: str, *, alone: bool) -> str:
        """Change the input of a start. Return the text that is left for deltas. `alone`: the call has no deltas."""
        if alone and self._own.arguments != "text":
            given: Json = orjson.loads(text)
            entry.out = [start._replace(input=given)]
            return ""
        entry.out = [start._replace(input={} if self._own.arguments == "block" else None)]
        if not alone:
            return text
        entry.out.append(Delta(start.block, text, start.frame, start.item))
        return ""

    def _separate(self, call: Call, change: Change) -> None:
        """Put the separated calls after the call that they were joined to, and drop its updates that named them."""
        start, last = call.start, call.last
        for entry in self._queue:
            event = entry.event
            if isinstance(event, CallUpdate) and event.block == start.block and entry.end >= change.offset:
                entry.out = []
        assert last is not None
        taken, frame = self._context.taken, last.event.frame
        for separated in change.separated:
            known = separated.id is not None and separated.id not in taken
            id_ = separated.id if known else mint_where_used(self._context, separated.name)
            if id_ is not None:
                taken.add(id_)
            block = self._context.new_block()
            last.out += [
                Start(block, "tool_call", start.pointer, start.choice, frame, None, id_, separated.name),
                Delta(block, separated.text, frame),
                Close(block, frame),
            ]


class SeparateValues(ArgumentRewriter):
    """Makes one value of several JSON values, or one call of each."""

    ends_whole = False
    watcher = repairs.ValuesWatcher

    def keeps_start(self, start: Start) -> bool:
        return faults.is_filled(start.input)

    def over_at_close(self, call: Call) -> bool:
        return not call.length or super().over_at_close(call)

    def judge(self, call: ToolCall) -> Change | None:
        return repairs.separate_values(call, self._context.exchange.request)


class CompleteJson(ArgumentRewriter):
    """Makes a JSON object of missing or damaged arguments."""

    watcher = repairs.SyntaxWatcher

    def keeps_start(self, start: Start) -> bool:
        if not faults.is_filled(start.input):
            return False
        return self._own.has_only_strings or not isinstance(start.input, dict)

    def judge(self, call: ToolCall) -> Change | None:
        found = faults.flaw(call, self._tool(call.name))
        if found is not None:
            return repairs.repair_flaw(call, found, self._tool(call.name))
        if call.start_input is not None and self._own.has_only_strings and faults.concatenated(call) is None:
            return repairs.write_as_text(call)
        return None


class CoerceTypes(ArgumentRewriter):
    """Converts values to the types of the declared schema."""

    def watch(self, call: Call) -> Watcher | None:
        tool = self._checked(call.name)
        return repairs.KindWatcher(tool) if tool is not None else None

    def keeps_start(self, start: Start) -> bool:
        tool = self._checked(start.name)
        schema = validator(tool) if isinstance(start.input, dict) and start.input else None
        return schema is not None and not schema.accepts(start.input)

    def judge(self, call: ToolCall) -> Change | None:
        tool = self._checked(call.name)
        schema = validator(tool)
        return repairs.coerce_types(call, tool, schema) if tool is not None and schema is not None else None

    def _checked(self, name: str | None) -> Tool | None:
        """Return the client's tool of a name, if its schema can be checked."""
        tool = self._tool(name)
        return tool if tool is not None and not tool.hosted and validator(tool) is not None else None


class StripMarkup(ArgumentRewriter):
    """Removes native markup that stuck to keys and values."""

    phase: ClassVar[float] = 3.2
    watcher = repairs.markup_watcher

    def keeps_start(self, start: Start) -> bool:
        return bool(start.input) and faults.may_be_polluted(write(start.input))

    def judge(self, call: ToolCall) -> Change | None:
        request, tool = self._context.exchange.request, self._tool(call.name)
        found = faults.polluted(call.arguments.mapping, tool, request) if request is not None else None
        return unmarked(call, found, tool) if found is not None else None


class StripThoughts(ArgumentRewriter):
    """Removes reasoning in tags from the edges of values. `judge` returns the change of a call."""

    phase: ClassVar[float] = 3.15
    """After markup has become calls, before other changes of arguments."""
    watcher = thought_watcher

    def __init__(self, rule: Rule, context: RewriteContext, judge: Callable[[ToolCall], Change | None]) -> None:
        super().__init__(rule, context)
        self._judge = judge

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
    cleaned = faults.with_strings(arguments, kept)
    changed = {name: value for name, value in cleaned.items() if value != arguments[name]}
    made = repairs.continued(text, cleaned, thought_watcher()) or faults.rewrite(text, changed)
    if (
        not changed
        or made is None
        or call.event_at(made.offset) != call.event_at(thought_watcher().feed(text))
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


def unmarked(call: ToolCall, found: faults.Polluted, tool: Tool | None) -> Change | None:
    """Return the arguments without markup; None if they do not fit then, or cannot continue the text sent so far."""
    if found.cleaned is None or accepts(tool, found.cleaned) is False:
        return None
    made = repairs.continued(call.arguments.text, found.cleaned, repairs.markup_watcher())
    if made is None:
        return None
    what = f"{excerpt(found.markup)} from {found.where}"
    return Change(made.text, "unsafe", f"remove {what}", f"removed {what}", offset=made.offset)


def history_faults(rule: Rule, exchange: Exchange, ledger: Ledger | None, *, concatenated: bool) -> Iterator[Fixable]:
    """Yield the damaged arguments in the history: several values in a row, or all other faults."""
    refused = exchange.status is not None and 400 <= exchange.status < 500
    for fault in repairs.past_faults(exchange, ledger):
        if fault.concatenated is concatenated:
            damaged: Severity = "error" if refused else "info" if fault.nothing else "warning"
            severity: Severity = damaged if fault.layer is None else "warning"
            before, after, place = fault.call.arguments.text, fault.right or "", fault.call.pointer
            fix = Fix(fault.safety, f"write them as {excerpt(after)}") if after else None
            message = f"{fault.name}: in the history the arguments are {fault.words}"
            title = f"{fault.name}: wrote the arguments, {fault.words}, as {excerpt(after)}"
            record = rule.repair("request", fault.safety, title, place, before=before, after=after)
            finding = rule.finding("request", message, place, layer=fault.layer, severity=severity, fix=fix)
            yield finding, ((fault.edit,), record) if fault.edit is not None else None


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
            return repairs.Everything()
        names = self._voidable(call.name)
        return repairs.void_watcher(names) if names else None

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
        allows = partial(self._context.permit.allows, self._rule.code)
        outcome = self._judge(call, arguments, self._tool(call.name), allows)
        if not outcome.made:
            return None
        safety: Safety = "unsafe" if any(fault.safety == "unsafe" for fault in outcome.made) else "safe"
        text, offset = call.arguments.text, 0
        if outcome.blocked is None:
            changed = faults.rewrite(text, outcome.changes or {})
            if changed is None:
                return None
            text, offset = changed.text, changed.offset
        self._outcome = outcome
        done = "; ".join(fault.done for fault in outcome.made)
        return Change(text, safety, done, done, offset=offset)

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
