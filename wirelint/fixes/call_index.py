"""Rewriters for calls in the events of a stream: one id and one index per call, one id per reply, each argument text once.

Theory of operation. A later event with an id or a name (`CallUpdate`) may continue a call or begin another one. That
can depend on the next events; until they arrive, the event and all later ones wait. Nearly always the decision falls
within the same frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from wirelint.apis.traits import Traits, traits
from wirelint.arguments.argument_faults import is_broken, is_filled
from wirelint.events import (
    CallUpdate,
    Close,
    Delta,
    Done,
    Event,
    Failure,
    Finish,
    Frame,
    ReplyMeta,
    Start,
    StreamViolation,
)
from wirelint.fix import MOST_HELD, PassingRewriter, RewriteContext, WaitingRewriter, ends_call
from wirelint.fixes.calls import may_repeat
from wirelint.history.id_demands import mint
from wirelint.history.pairing import CheckResult, Succession
from wirelint.model import Arguments, Json
from wirelint.rule import Rule
from wirelint.text.escaping import excerpt

# A healthy call: its first delta has the id and the name, the others have its index and more of its arguments.
#
#     {"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"look","arguments":""}}]}
#     {"tool_calls":[{"index":0,"function":{"arguments":"{\"at\":1}"}}]}
#
# Faults: another id for the same call (`CallIds`), a second call under the first one's index (`CallNumbers`), the id and
# the name after the first arguments (`LateHeads`) or again in every delta (`RepeatRemover`).
#
#     {"tool_calls":[{"index":0,"id":"call_2","function":{"arguments":"{\"at\":1}"}}]}
#     {"tool_calls":[{"index":0,"id":"call_2","function":{"name":"look","arguments":"{\"at\":2}"}}]}
#     {"tool_calls":[{"index":0,"id":"call_1","function":{"name":"look","arguments":"{\"at\":"}}]}

_BLANK = " \t\r\n"


def _succession(start: Start, own: Traits) -> Succession:
    return Succession(start.id, start.name, given=is_filled(start.input), repeated=own.has_repeated_calls)


class _UpdateJudge(WaitingRewriter[CallUpdate]):
    """Base of rewriters that classify every update of a call. A subclass returns the events to send for it."""

    def __init__(self, context: RewriteContext) -> None:
        super().__init__()
        self._context = context
        self._own = traits(context.exchange.api)
        self._calls: dict[int, Succession] = {}
        self._starts: dict[int, Start] = {}

    def decides(self, first: CallUpdate, event: Event) -> bool | None:
        """Return whether argument text follows an update; None while it may still come."""
        match event:
            case Delta(block=block) if block == first.block:
                return True if event.text.strip(_BLANK) else None
            case CallUpdate(block=block) if block == first.block:
                return False
        return False if ends_call(self._starts[first.block], event) else None

    def settle(self, start: CallUpdate, later: Sequence[Event], event: Event, decided: bool) -> Iterable[Event]:
        return self._judged(start, follows=decided)

    def release(self) -> Iterable[Event]:
        out: list[Event] = []
        for event in super().release():
            if isinstance(event, CallUpdate) and event.block in self._calls:
                out += self._judged(event, follows=False)
            else:
                out += self.take(event)
        return out

    def take(self, event: Event) -> Iterable[Event]:
        match event:
            case Start(kind="tool_call"):
                self._calls[event.block] = _succession(event, self._own)
                self._starts[event.block] = event
                return self.begins(event)
            case CallUpdate() if (calls := self._calls.get(event.block)) is not None:
                if calls.is_undecided(event.id, event.name):
                    return self.wait_for(event)
                return self._judged(event, follows=False)
            case Delta() if (calls := self._calls.get(event.block)) is not None:
                calls.text(event.text)
        return self.continues(event)

    def _judged(self, update: CallUpdate, *, follows: bool) -> Iterable[Event]:
        calls = self._calls[update.block]
        verdict = calls.judge(update.id, update.name, follows=follows)
        out = self.updates(update, verdict, calls)
        calls.take(verdict, update.id, update.name)
        return out

    def begins(self, start: Start) -> Iterable[Event]:
        """Return the events for the start of a call."""
        return (start,)

    def updates(self, update: CallUpdate, verdict: CheckResult, calls: Succession) -> Iterable[Event]:
        """Return the events for an update. `calls` does not include it yet."""
        return (update,)

    def continues(self, event: Event) -> Iterable[Event]:
        """Return the events for any other event."""
        return (event,)


class CallIds(_UpdateJudge):
    """Removes ids after the first one of a call. The first of them is recorded."""

    def __init__(self, rule: Rule, context: RewriteContext) -> None:
        super().__init__(context)
        self._rule = rule
        self._recorded: set[int] = set()

    def updates(self, update: CallUpdate, verdict: CheckResult, calls: Succession) -> Iterable[Event]:
        if verdict != "stray":
            return (update,)
        if update.block not in self._recorded:
            self._recorded.add(update.block)
            title, first = f"kept the first id of the call, {excerpt(calls.id or '')}", calls.id or ""
            self._rule.record(self._context, "safe", title, at=update, before=update.id or "", after=first)
        return ()


class LateHeads(WaitingRewriter[Start]):
    """Moves the id and the name of a call from after its first arguments to its start.

    `{"index":0,"function":{"arguments":"{"}}`, then `{"index":0,"id":"call_1","function":{"name":"look_up"}}`: a start
    without an id or a name waits for both, or for the end of its candidate.
    """

    def __init__(self, rule: Rule, context: RewriteContext) -> None:
        super().__init__()
        self._rule, self._context = rule, context
        self._own = traits(context.exchange.api)
        self._begun = Succession(None, None)
        self._undeclared: Frame | None = None
        self._late: list[CallUpdate] = []
        self._mended: dict[int, Start] = {}

    def decides(self, first: Start, event: Event) -> bool | None:
        """Return True at the last part of the head, False at the end of the call."""
        match event:
            case Delta(block=block, text=text) if block == first.block:
                self._begun.text(text)
            case CallUpdate(block=block) if block == first.block:
                if self._begun.is_late(event.id, event.name):
                    self._late.append(event)
                elif self._begun.complete:
                    return False  # another call
                self._begun.take("same", event.id, event.name)
                return self._has_head(self._begun.id, self._begun.name) or None
            case Close(block=block) if block == first.block:
                return False
            case Finish(choice=choice) if choice == first.choice:
                return False
            case Done() | Failure():
                return False
        return None

    def settle(self, start: Start, later: Sequence[Event], event: Event, decided: bool) -> Iterable[Event]:
        if not self._late:
            return (start,)
        id_ = next((one.id for one in self._late if one.id and not start.id), None)
        name = next((one.name for one in self._late if one.name and not start.name), None)
        head, first = f"id `{excerpt(id_)}`" if id_ else f"name `{excerpt(name or '')}`", self._late[0]
        title, before = f"sent the {head} with the first event of its call", start.id or ""
        self._rule.record(self._context, "safe", title, start.pointer, at=first, before=before, after=id_ or "")
        mended = self._mended[start.block] = start._replace(id=id_ or start.id, name=name or start.name)
        return (mended,)

    def take(self, event: Event) -> Iterable[Event]:
        match event:
            case StreamViolation(kind="undeclared-part"):
                self._undeclared = event.frame
            case Start(kind="tool_call", form=form) if form != "legacy" and not self._has_head(event.id, event.name):
                if event.frame is self._undeclared:
                    return (event,)  # no event of its own begins the call
                self._begun = _succession(event, self._own)
                self._late = []
                return self.wait_for(event)
            case CallUpdate(block=block) if (mended := self._mended.get(block)) is not None:
                id_ = None if event.id == mended.id else event.id
                name = None if event.name == mended.name else event.name
                if (id_, name) != (event.id, event.name):
                    return (event._replace(id=id_, name=name),) if id_ or name else ()
        return (event,)

    def _has_head(self, id_: str | None, name: str | None) -> bool:
        return bool(name) and (bool(id_) or not self._own.has_call_ids)


class RepeatRemover(PassingRewriter):
    """Removes the id and the name of a call from all events but its first. The first repetition is recorded.

    From then on each delta of the call is written anew, with its text alone.
    """

    heeds_text: ClassVar[bool] = False

    def __init__(self, rule: Rule, context: RewriteContext) -> None:
        self._rule, self._context = rule, context
        self._starts: dict[int, Start] = {}
        self._acts = False

    def push(self, event: Event) -> Iterable[Event]:
        match event:
            case Start(kind="tool_call"):
                self._starts[event.block] = event
            case StreamViolation(kind="said-again", detail=said):
                self._acts = True
                title = f"kept `{excerpt(said)}` in the first event of the call only"
                self._rule.record(self._context, "safe", title, at=event, before=said)
            case Delta() if self._acts and (start := self._starts.get(event.block)) is not None:
                repeats = any(word and may_repeat(event.frame, word) for word in (start.id, start.name))
                return (event._replace(),) if repeats and event.frame is not start.frame else (event,)
            case CallUpdate() if self._acts and (start := self._starts.get(event.block)) is not None:
                again = event.id in (None, start.id) and event.name in (None, start.name)
                return () if again else (event,)  # a call under another index, or without one
        return (event,)


class ReplyIds(PassingRewriter):
    """Gives every event of a stream the reply id of the first. The first other id is recorded."""

    patient: ClassVar[bool] = True

    def __init__(self, rule: Rule, context: RewriteContext) -> None:
        self._rule, self._context = rule, context
        self._everywhere = traits(context.exchange.api).has_id_in_each_event
        self._first: str | None = None
        self._stray = self._over = self._recorded = False
        self._stamped: Frame | None = None
        self._newest = 0

    def push(self, event: Event) -> Iterable[Event]:
        if self._over:
            return (event,)
        if isinstance(event, Failure) or (isinstance(event, StreamViolation) and event.kind == "after-end"):
            self._over = True  # an error has its own id, and no client reads events after the end
            return (event,)
        if isinstance(event, ReplyMeta):
            return (self._head(event),)
        frame = event.frame
        if not self._stray or frame is None or frame is self._stamped or isinstance(event, Done):
            return (event,)
        if frame.number < self._newest or not (frame.data or "").lstrip().startswith("{"):
            return (event,)  # a violation may name an earlier frame, which has been sent
        self._newest = frame.number
        self._stamped = frame
        return ReplyMeta(self._first, None, frame), event

    def _head(self, head: ReplyMeta) -> ReplyMeta:
        if not head.id or any(isinstance(event, Failure) for event in self._context.frame_events):
            self._stray = False
            return head
        self._first = self._first or head.id
        self._stray = head.id != self._first and self._everywhere
        if head.id == self._first:
            return head
        if not self._recorded:
            self._recorded = True
            title = f"kept the first id of the reply, {excerpt(self._first)}"
            self._rule.record(self._context, "safe", title, "/id", at=head, before=head.id, after=self._first)
        self._stamped = head.frame
        self._newest = head.frame.number if head.frame is not None else self._newest
        return ReplyMeta(self._first, head.model, head.frame)


class CallNumbers(_UpdateJudge):
    """Splits calls that share an index, and numbers calls without one. The writer numbers each start that is written."""

    def __init__(self, rule: Rule, context: RewriteContext, *, needs_index: bool) -> None:
        super().__init__(context)
        self._rule, self._needs_index = rule, needs_index
        self._now: dict[int, int] = {}
        """The block to which the events of a block belong now."""
        self._unnumbered: set[int] = set()
        self._minted: set[int] = set()
        self._open: set[int] = set()
        self._ids: set[tuple[int, str]] = set()

    def begins(self, start: Start) -> Iterable[Event]:
        self._open.add(start.block)
        if start.id:
            self._ids.add((start.choice, start.id))
            self._context.taken.add(start.id)
        if start.wire_index is not None or start.form == "legacy" or not self._needs_index:
            return (start,)
        self._number(start)
        return (start._replace(),)

    def updates(self, update: CallUpdate, verdict: CheckResult, calls: Succession) -> Iterable[Event]:
        if verdict == "anew":
            first, name = self._starts[update.block], update.name or calls.name
            block = self._context.new_block()
            id_ = update.id
            if not id_ or (first.choice, id_) in self._ids:
                id_ = mint(self._context, name)
                self._minted.add(block)
            self._ids.add((first.choice, id_))
            self._context.taken.add(id_)
            where = "no index" if update.wire_index is None else f"index {update.wire_index}"
            title = f"gave the call {excerpt(id_, 40)} of {excerpt(name or 'a tool')} its own index; it shared {where}"
            shared, own = f"{where} of {calls.id or calls.name}", f"its own index for {id_}"
            self._rule.record(self._context, "safe", title, at=update, before=shared, after=own)
            before = self._now.get(update.block, update.block)
            closed = [Close(before, update.frame)] if before in self._open and self._own.has_block_events else []
            self._open.discard(before)
            self._open.add(block)
            self._now[update.block] = block
            given: Json = None if self._own.arguments == "text" else {}
            if given is not None and update.frame is not None and '"content_block"' in (update.frame.data or ""):
                content = (Arguments(update.frame.data or "").mapping or {}).get("content_block")
                given = content.get("input") if isinstance(content, dict) else {}
            start = first._replace(
                block=block,
                frame=update.frame,
                wire_index=None,
                id=id_,
                name=name,
                input=given,
                item=max(update.item, 0),
            )
            return *closed, start
        if update.block not in self._now and update.block not in self._unnumbered:
            start = self._starts[update.block]
            if update.wire_index is not None or start.form == "legacy" or not self._needs_index:
                return (update,)
            self._number(start)
        block = self._now.get(update.block, update.block)
        id_ = None if block in self._minted or update.id == calls.id else update.id
        name = None if update.name == calls.name else update.name
        return (update._replace(block=block, id=id_, name=name),) if id_ or name else ()

    def _number(self, start: Start) -> None:
        self._unnumbered.add(start.block)
        title = f"numbered the call {excerpt(start.id or '', 40)} of {excerpt(start.name or 'a tool')}"
        record = self._rule.record
        record(self._context, "safe", title, start.pointer, at=start, before="no index", after="an index")

    def continues(self, event: Event) -> Iterable[Event]:
        if not isinstance(event, (Delta, Close)):
            return (event,)
        block = self._now.get(event.block, event.block)
        if isinstance(event, Close):
            self._open.discard(block)
        if block == event.block:
            return (event._replace(),) if block in self._unnumbered else (event,)
        return (event._replace(block=block),)


# --- argument texts in wrong events -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Growing:
    """A call whose deltas may repeat. `before` is the last delta; `grows`: they do."""

    start: Start
    before: str = ""
    grows: bool = False


class GrowingDeltas(WaitingRewriter[Delta]):
    """Reduces deltas that each repeat all text before them.

    `{"ci`, `{"city":"O`, `{"city":"Oslo"}` are the deltas of one call; joined they are no JSON. The first passes. The
    second begins like the first, which may be another fault, or an object in an object (`{"a":`, `{"a":1}`, `}`). So it
    waits for the next delta, which must begin like both, or for the end of the call, if the second alone is an object.
    """

    phase = 4

    def __init__(self, rule: Rule, context: RewriteContext) -> None:
        super().__init__()
        self._rule, self._context = rule, context
        self._calls: dict[int, _Growing] = {}

    def release(self) -> Iterable[Event]:
        if self._held:
            self._calls.pop(self._first.block)
        return super().release()

    def take(self, event: Event) -> Iterable[Event]:
        if (
            isinstance(event, Start)
            and event.kind == "tool_call"
            and event.form != "custom"
            and not is_filled(event.input)
        ):
            self._calls[event.block] = _Growing(event)
        if not isinstance(event, Delta) or not self._context.streamed or not event.text:
            return (event,)
        call = self._calls.get(event.block)
        if call is None:
            return (event,)
        before, text = call.before, event.text
        if not text.startswith(before) or len(text) > MOST_HELD or (before == text and not call.grows):
            del self._calls[event.block]
            return (event,)
        if call.grows:
            return self._add(call, event)
        if not before:
            call.before = text
            return (event,)
        return self.wait_for(event)

    def decides(self, first: Delta, event: Event) -> bool | None:
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

    def settle(self, start: Delta, later: Sequence[Event], event: Event, decided: bool) -> Iterable[Event]:
        call = self._calls[start.block]
        if not decided:
            del self._calls[start.block]
            return (start,)
        call.grows = True
        title = f"{call.start.name or 'a call'}: reduced each delta to what it adds"
        self._rule.record(self._context, "safe", title, call.start.pointer, at=start, before=start.text)
        return self._add(call, start)

    def _add(self, call: _Growing, event: Delta) -> Iterable[Event]:
        added = event.text[len(call.before) :]
        call.before = event.text
        return (event._replace(text=added),) if added else ()


class CallShapes(PassingRewriter):
    """Drops the violations by misshapen calls, so that their events are written anew. `titles`: those of the records."""

    heeds_text: ClassVar[bool] = False

    def __init__(self, rule: Rule, context: RewriteContext, titles: Mapping[str, str]) -> None:
        self._rule, self._context, self._titles = rule, context, titles
        self._recorded: set[str] = set()

    def push(self, event: Event) -> Iterable[Event]:
        if not (isinstance(event, StreamViolation) and event.kind == "misshapen-call"):
            return (event,)
        if event.detail not in self._recorded:
            self._recorded.add(event.detail)
            pointer, _, how = event.detail.partition(" ")
            self._rule.record(self._context, "safe", self._titles[how], pointer, at=event)
        return ()


class EmptyStarts(WaitingRewriter[Start]):
    """Empties the arguments in the start of a call whose deltas repeat them.

    In OpenAI's Responses, `response.output_item.added` has empty arguments, and clients append the deltas. A start with
    arguments waits for its first delta, or for an event that shows that none will come.
    """

    phase = 4

    def __init__(self, rule: Rule, context: RewriteContext) -> None:
        super().__init__()
        self._rule, self._context = rule, context

    def take(self, event: Event) -> Iterable[Event]:
        return self.wait_for(event) if isinstance(event, Start) and event.given else (event,)

    def decides(self, first: Start, event: Event) -> bool | None:
        match event:
            case StreamViolation("repeated-start", detail) if detail.partition(" ")[0] == first.pointer:
                return True
            case Delta(block) | Close(block) if block == first.block:
                return False
            case Finish() | Done() | Failure():
                return False
            case _:
                return None

    def settle(self, start: Start, later: Sequence[Event], event: Event, decided: bool) -> Iterable[Event]:
        if not decided:
            return (start,)
        title = f"{start.name or 'a call without a name'}: emptied the arguments that the item was added with"
        self._rule.record(self._context, "safe", title, start.pointer, at=start, before=start.given)
        return (start._replace(given=""),)
