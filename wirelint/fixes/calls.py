"""Calls that fixes make, rename, renumber and remove.

Theory of operation. An id or a name may come in pieces or later (`"name":"get_"`, `"name":"weather"`), so a call waits
until its arguments begin or it ends; nearly always that is in the same frame. Then its start is checked once. Servers
that repeat the id or the name in every event do so in the frames of the arguments, so these frames are rewritten too. A
sentence replaces a removed call, and a candidate that would end with calls but has none left ends like an answer.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Literal, NamedTuple

from wirelint.apis.traits import traits
from wirelint.arguments.argument_faults import is_filled, is_normal_end
from wirelint.arguments.schemas import match
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Failure, Finish, Frame, Start, StreamViolation
from wirelint.fix import (
    MOST_HELD,
    PassingRewriter,
    RewriteContext,
    WaitingRewriter,
    completes_name,
    ends_call,
)
from wirelint.fixes.finish import without_calls
from wirelint.history.id_demands import mint_where_used, wrong_item_ids
from wirelint.jsonvalues import decode_json, write
from wirelint.model import Exchange, Json, Request, are_empty
from wirelint.rule import Fix, Fixable, Rule
from wirelint.text.escaping import amount, excerpt, listed, printable

_PLAIN = re.compile(r"[\w.:-]+", re.ASCII)
_MOST_LISTED = 20


def make_call(
    context: RewriteContext,
    choice: int,
    name: str | None,
    id_: str | None,
    arguments: dict[str, Json],
    frame: Frame | None,
    pointer: str | None = None,
) -> Iterator[Event]:
    """Yield the events of a whole call. `pointer`: its place, if it is not after the other calls of its candidate."""
    own = traits(context.exchange.api)
    block = context.new_block()
    place = (own.calls_at or "").format(choice) if pointer is None else pointer
    held = own.start_holds_arguments(streamed=context.streamed)
    given: Json = arguments if held else {} if own.arguments == "block" else None
    yield Start(block, "tool_call", place, choice, frame, None, id_, name, given)
    if not held:
        yield Delta(block, write(arguments), frame)
    yield Close(block, frame)


def removal_text(name: str, request: Request) -> str:
    """Return the sentence that replaces a call of an undeclared tool."""
    names = [f"`{_shown(tool.name)}`" for tool in request.client_tools]
    offered = listed(names, _MOST_LISTED) if names else "no tools at all"
    why = f"because this request declares no such tool; it declares {offered}"
    return f"wirelint took out a call of `{_shown(name)}`, {why}."


def _shown(name: str) -> str:
    return printable(excerpt(name)).replace("`", "'")


def joined_name(pieces: Sequence[str | None]) -> str:
    """Return a name as clients join it from pieces. Servers that repeat the whole name send equal pieces."""
    said = [piece for piece in pieces if piece]
    return said[0] if len(set(said)) == 1 else "".join(said)


def may_repeat(frame: Frame | None, text: str) -> bool:
    """Return True if a frame may repeat an id or a name, in any JSON notation."""
    return frame is not None and frame.data is not None and (text in frame.data or not _PLAIN.fullmatch(text))


class CallRemover:
    """Replaces calls of a reply by texts, and corrects the finish reason."""

    def __init__(self, context: RewriteContext) -> None:
        self._context = context
        self._gone: set[int] = set()
        self._left: dict[int, int] = {}
        self._emptied: set[int] = set()
        self._texts: dict[int, tuple[int, int]] = {}
        """The text block of each candidate, with its place in the frame."""

    def note(self, start: Start) -> None:
        """Record a part that has not been removed."""
        if start.kind == "tool_call":
            self._left[start.choice] = self._left.get(start.choice, 0) + 1
        elif start.kind == "text":
            self._texts[start.choice] = (start.block, start.item)

    def is_removed(self, event: Event) -> bool:
        """Return True if an event belongs to a removed call."""
        return isinstance(event, (Delta, CallUpdate, Close)) and event.block in self._gone

    def remove(self, start: Start, text: str) -> list[Event]:
        """Return the events to send instead of a noted call: its text, in a separate block if the API has blocks."""
        choice, frame = start.choice, start.frame
        self._gone.add(start.block)
        self._emptied.add(choice)
        self._left[choice] -= 1
        if not text:
            return []
        own = traits(self._context.exchange.api)
        if choice in self._texts and not own.has_block_events:
            block, item = self._texts[choice]
            return [Delta(block, f"\n\n{text}", frame, item)]
        block = self._context.new_block()
        begun: list[Event] = [
            Start(block, "text", own.text_at.format(choice), choice, frame),
            Delta(block, text, frame),
        ]
        if own.has_block_events:
            return [*begun, Close(block, frame)]
        self._texts[choice] = (block, -1)
        return begun

    def finish(self, event: Finish) -> Finish:
        """Return the end of a candidate. One without its calls ends like an answer."""
        if event.choice in self._emptied and not self._left.get(event.choice):
            right = without_calls(self._context.exchange.api, event.reason)
            return event._replace(reason=right) if right else event
        return event


class Head(NamedTuple):
    """The start of a call, with its id, its name, and the name as clients join it from pieces."""

    start: Start
    id: str | None
    name: str | None
    joined: str


class HeadChange(NamedTuple):
    """A change of a call: another name, another id, or a text in place of the call."""

    what: Literal["name", "id", "text"]
    value: str


def item_faults(rule: Rule, exchange: Exchange, *, mixed_up: bool) -> Iterator[Fixable]:
    """Yield the wrong ids of items in a request: ids of other things, or ids of a wrong form."""
    for item in wrong_item_ids(exchange):
        if item.mixed_up is mixed_up:
            verdict = "is none of an item" if mixed_up else "does not fit OpenAI's API"
            finding = rule.finding(
                "request",
                f"the id `{excerpt(item.id) or '(empty)'}` of the {item.what} {verdict}: {item.fault}",
                item.pointer,
                severity="error" if item.refused else None,
                fix=Fix("safe", "remove it: the API takes items without an id") if item.edit is not None else None,
            )
            title = f"removed the id `{excerpt(item.id)}` of the {item.what}"
            record = rule.repair("request", "safe", title, item.pointer, before=item.id)
            yield finding, ((item.edit,), record) if item.edit is not None else None


class ItemIds(PassingRewriter):
    """Gives a call of OpenAI's Responses a new item id if an earlier call's item has its id."""

    phase: ClassVar[float] = 3
    heeds_text: ClassVar[bool] = False

    def __init__(self, rule: Rule, context: RewriteContext) -> None:
        self._rule, self._context = rule, context
        self._shared: dict[str, tuple[str, str]] = {}
        self._ids: dict[str, str | None] = {}

    def push(self, event: Event) -> Iterable[Event]:
        match event:
            case StreamViolation("shared-item", detail):
                place, before, id_ = detail.split(" ", 2)
                self._shared[place] = before, id_
            case Start(kind="tool_call", pointer=place):
                self._ids[place] = event.id
                before, id_ = self._shared.pop(place, (place, ""))
                if before == place or (id_ and self._ids.get(before) == event.id):
                    return (event,)  # a call with a new id gets a new item id as well
                prefix = id_.partition("_")[0] or ("ctc" if event.form == "custom" else "fc")
                seed = f"{self._context.exchange.id}/{place}/{id_}".encode("utf-8", "surrogatepass")
                event = event._replace(item_id=f"{prefix}_{hashlib.sha256(seed).hexdigest()[:50]}")
                title, new = (
                    f"gave the output item of the call of `{excerpt(event.name or '')}` a new id",
                    event.item_id,
                )
                self._rule.record(self._context, "unsafe", title, place, at=event, before=id_, after=new or "")
        return (event,)


class CallHeads(WaitingRewriter[Start]):
    """Changes ids and names of calls and removes calls, as a rule decides, call by call in order."""

    def __init__(
        self,
        context: RewriteContext,
        judge: Callable[[Head], HeadChange | None],
        is_settled: Callable[[Start], bool | None],
        phase: float,
        may_grow: Callable[[str], bool] | None = None,
    ) -> None:
        """`judge` returns the change of a call and records it. `may_grow`: more of a name may follow the first arguments.

        `is_settled` returns True for a start that needs no check, False for one that can be checked at once, and None
        for one whose id or name may be incomplete.
        """
        super().__init__()
        self.phase = phase
        self._context = context
        self._judge, self._is_settled, self._may_grow = judge, is_settled, may_grow
        self._names: dict[int, str] = {}
        """The original names of renamed calls."""
        self._ids: dict[int, str] = {}
        """The original ids of renumbered calls."""
        self._starting: dict[int, str] = {}
        """The ids with which renamed calls start; one of them in a later event is repeated."""
        self._remover = CallRemover(context)

    def decides(self, first: Start, event: Event) -> bool | None:
        if isinstance(event, Delta) and self._may_grow is not None:
            said = (one for one in self._held if isinstance(one, Start | CallUpdate) and one.block == first.block)
            if self._may_grow(joined_name([one.name for one in said])):
                return None
        return completes_name(first, event) or None

    def settle(self, start: Start, later: Sequence[Event], event: Event, decided: bool) -> Iterable[Event]:
        """Return the events for the start of a call whose id and name are complete."""
        self._remover.note(start)
        said: list[Start | CallUpdate] = [start]
        said += [one for one in later if isinstance(one, CallUpdate) and one.block == start.block]
        id_, name = (next(filter(None, some), None) for some in ([one.id for one in said], [one.name for one in said]))
        match self._judge(Head(start, id_, name, joined_name([one.name for one in said]))):
            case HeadChange("text", text):
                return self._remover.remove(start, text)
            case HeadChange("name", right):
                self._names[start.block], self._starting[start.block] = name or "", id_ or ""
                return (start._replace(name=right, id=id_),)
            case HeadChange("id", new):
                self._context.taken.add(new)
                self._ids[start.block] = id_ or ""
                return (start._replace(id=new),)
        return (start,)

    def release(self) -> Iterable[Event]:
        out: list[Event] = []
        for event in super().release():
            if isinstance(event, Start) and event.kind == "tool_call":
                self._remover.note(event)
                out.append(event)
            else:
                out += self.take(event)
        return out

    def take(self, event: Event) -> Iterable[Event]:
        if self._remover.is_removed(event):
            return ()
        match event:
            case Start(kind="tool_call") if (settled := self._is_settled(event)) is not True:
                # In a whole body the id and the name are complete, even if the end of the call is missing.
                now = settled is False or not self._context.streamed
                return self.settle(event, (), event, True) if now else self.wait_for(event)
            case Start():
                self._remover.note(event)
            case Delta(block=block):
                words = [known[block] for known in (self._ids, self._names) if block in known]
                return (event._replace(),) if any(may_repeat(event.frame, word) for word in words) else (event,)
            case CallUpdate(block=block) if block in self._ids:
                return (event._replace(id=None),) if event.name else ()
            case CallUpdate(block=block) if block in self._names and event.name:
                return () if event.id in (None, "", self._starting[block]) else (event._replace(name=None),)
            case Finish():
                return (self._remover.finish(event),)
        return (event,)


class EmptyCalls(WaitingRewriter[Start]):
    """Removes calls without a name and arguments beside other calls or after text.

    `{"index":1,"function":{"name":"","arguments":""}}`: a name may come later, so the call waits until another one begins
    or its candidate ends.
    """

    phase = 2

    def __init__(self, rule: Rule, context: RewriteContext) -> None:
        super().__init__()
        self._rule, self._context = rule, context
        self._remover = CallRemover(context)
        self._spoken: set[int] = set()
        """Candidates with text or a call that has a name."""
        self._text = ""

    def take(self, event: Event) -> Iterable[Event]:
        if self._remover.is_removed(event):
            return ()
        match event:
            case Start(kind="tool_call", name=None | "", form="function") if not is_filled(event.input):
                self._text = ""
                return self.wait_for(event)
            case Start():
                self._note(event)
            case Finish():
                return (self._remover.finish(event),)
        return (event,)

    def decides(self, first: Start, event: Event) -> bool | None:
        match event:
            case Delta(block=block) if block == first.block:
                self._text += event.text
                return None if are_empty(self._text.removesuffix("{")) else False
            case CallUpdate(block=block, name=str(name)) if block == first.block and name:
                return False
            case Start(kind="tool_call", choice=choice, name=str(name)) if choice == first.choice and name:
                return True
            case Finish(choice=choice, reason=reason) if choice == first.choice:
                return choice in self._spoken and is_normal_end(reason)
            case Start(choice=choice) if choice == first.choice:
                return choice in self._spoken
            case Done():
                return first.choice in self._spoken
            case Failure():
                return False
            case _:
                return None

    def settle(self, start: Start, later: Sequence[Event], event: Event, decided: bool) -> Iterable[Event]:
        self._note(start)
        if not decided:
            return (start,)
        title = "removed a call without a name and arguments"
        self._rule.record(self._context, "unsafe", title, start.pointer, at=start, before=start.id or "")
        return self._remover.remove(start, "")

    def _note(self, start: Start) -> None:
        self._remover.note(start)
        if start.kind == "text" or (start.kind == "tool_call" and start.name):
            self._spoken.add(start.choice)


def has_head(start: Start) -> bool | None:
    """Return False if a start has an id and a name, so that it can be checked at once; None if one may follow."""
    return False if start.id and start.name else None


# Rewriter that replaces a call of `multi_tool_use.parallel` with the calls that it wraps.
#
# OpenAI's models were trained with a tool that runs several others:
# `{"tool_uses": [{"recipient_name": "functions.lookup", "parameters": {…}}]}`. No client has such a tool. The call is held
# until it is complete, and replaced if all wrapped calls are of declared tools.

_WRAPPER = re.compile(r"(?:functions?\.)?multi_tool_use[._]parallel")


class Use(NamedTuple):
    name: str
    arguments: dict[str, Json]


def named_uses(inside: Sequence[Use]) -> str:
    """Return wrapped calls in words: `2 calls of lookup, search`."""
    return f"{amount(len(inside), 'call')} of {', '.join(dict.fromkeys(use.name for use in inside))}"


def wraps(name: str | None) -> bool:
    return name is not None and _WRAPPER.fullmatch(name) is not None


def uses(arguments: Json, request: Request) -> tuple[Use, ...]:
    """Return the calls in a wrapper's arguments; none unless all of them are of declared tools."""
    listed = arguments.get("tool_uses") if isinstance(arguments, dict) else None
    names = [tool.name for tool in request.client_tools]
    found: list[Use] = []
    for use in listed if isinstance(listed, list) else ():
        recipient, given = (use.get("recipient_name"), use.get("parameters")) if isinstance(use, dict) else (None, None)
        if not isinstance(recipient, str) or not isinstance(given, dict):
            return ()
        other = match(recipient, names)
        if recipient not in names and (other is None or not other.certain):
            return ()
        found.append(Use(recipient if recipient in names or other is None else other.name, given))
    return tuple(found)


class ParallelSplitter(WaitingRewriter[Start]):
    """Replaces a wrapper by the wrapped calls."""

    phase = 2
    most_waiting: ClassVar[int] = MOST_HELD

    def __init__(self, rule: Rule, context: RewriteContext, request: Request) -> None:
        super().__init__()
        self._rule, self._context, self._request = rule, context, request
        self._size = 0
        self._gone: set[int] = set()

    def take(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Start) and event.kind == "tool_call" and wraps(event.name):
            self._size = 0
            return self.wait_for(event)
        own = isinstance(event, (Delta, CallUpdate, Close)) and event.block in self._gone
        return () if own else (event,)

    def decides(self, first: Start, event: Event) -> bool | None:
        if isinstance(event, Delta) and event.block == first.block:
            self._size += len(event.text)
            return False if self._size > MOST_HELD else None
        return ends_call(first, event) or None

    def settle(self, start: Start, later: Sequence[Event], event: Event, decided: bool) -> Iterable[Event]:
        text = "".join(one.text for one in later if isinstance(one, Delta) and one.block == start.block)
        inside = uses(decode_json(text) if text else start.input, self._request) if decided else ()
        if not inside:
            return (start,)
        title, before = (
            f"unwrapped {named_uses(inside)} from {excerpt(start.name or '')}",
            text or json.dumps(start.input),
        )
        after = "\n".join(f"{use.name}({json.dumps(use.arguments, ensure_ascii=False)})" for use in inside)
        self._rule.record(self._context, "unsafe", title, start.pointer, at=start, before=before, after=after)
        self._gone.add(start.block)
        closes = isinstance(event, Close) and event.block == start.block
        frame = event.frame if closes else (later[-1] if later else start).frame
        made: list[Event] = []
        for number, use in enumerate(inside):
            id_ = start.id if number == 0 and start.id else mint_where_used(self._context, use.name)
            made += make_call(self._context, start.choice, use.name, id_, use.arguments, frame, start.pointer)
        return made
