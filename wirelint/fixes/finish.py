"""Rewriter that corrects finish reasons by the content of each candidate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from wirelint.apis.traits import ending, traits
from wirelint.arguments.argument_faults import UNREAD, is_filled
from wirelint.arguments.json_continuation import Scanner
from wirelint.events import CallUpdate, Delta, Done, Event, Failure, Finish, Frame, Start, StreamViolation
from wirelint.fix import PassingRewriter, RewriteContext, first_frame
from wirelint.model import Kind
from wirelint.rule import Rule

# A reason that contradicts the content, and one that was written although there is none:
#
#     {"choices":[{"message":{"content":null,"tool_calls":[{"id":"call_1", …}]},"finish_reason":"stop"}]}
#     {"choices":[{"delta":{"content":"Hi"},"finish_reason":""}]}

MARKUP = ("<", "[TOOL", "```")
"""Beginnings of text that may be a call that the server did not parse."""

_TAIL = max(map(len, MARKUP)) - 1


def without_calls(api: str, reason: str) -> str | None:
    """Return the right finish reason for a reply without calls whose reason announces calls; None for other reasons.

    If the API has no form for calls, only the server knows the meaning of its reason, so the result is None.
    """
    own = traits(api)
    return own.ended if own.calls_at is not None and ending(reason) == "calls" else None


@dataclass(slots=True)
class Content:
    """The content of a candidate so far. `hidden`: parts that may hide a call. `forms`: the forms of its calls; `named`:
    one of them has a name, without which it cannot be run.

    `last` is the block of its last call; `given`: the arguments of that call came with its start; `scanner` reads them.
    """

    forms: set[str] = field(default_factory=set)
    named: bool = False
    text: bool = False
    markup: bool = False
    hidden: bool = False
    tails: dict[Kind, str] = field(default_factory=dict)
    stopped: bool = False
    last: int = -1
    given: bool = False
    scanner: Scanner = field(default_factory=Scanner)

    @property
    def lacks_finish_reason(self) -> bool:
        """Return True if the candidate has calls, all of them complete, and no finish reason."""
        whole = self.given or not self.scanner.top or self.scanner.is_object
        return self.named and not self.stopped and whole

    def begin(self, start: Start) -> None:
        if start.kind == "tool_call":
            self.forms.add(start.form)
            self.named = self.named or bool(start.name)
            self.last, self.scanner = start.block, Scanner()
            self.given = start.form == "custom" or is_filled(start.input)
        elif start.kind in ("hosted_call", "hosted_result", "opaque"):
            self.hidden = True

    def add(self, text: str, kind: Kind) -> None:
        self.text = self.text or (kind == "text" and bool(text.strip()))
        if not self.markup:
            joined = self.tails.get(kind, "") + text
            self.markup = any(mark in joined for mark in MARKUP)
            self.tails[kind] = joined[-_TAIL:]


class FinishReasons(PassingRewriter):
    """Replaces wrong finish reasons, and adds missing ones after complete calls.

    A missing reason is added before the terminator of a stream, or at the end of a whole body.
    """

    phase: ClassVar[float] = 5
    patient: ClassVar[bool] = True

    def __init__(
        self,
        rule: Rule,
        context: RewriteContext,
        correct: Callable[[Finish, Content], str | None],
        add: Callable[[int, Frame | None, Content], Finish],
    ) -> None:
        """`correct` returns another reason, or None to keep it. `add` returns the end of a candidate without one."""
        self._rule, self._context = rule, context
        self._correct, self._add = correct, add
        self._empty: list[StreamViolation] = []
        self._first: list[StreamViolation] = []
        self._dropped: set[tuple[str, str]] = set()
        self._frame: Frame | None = None
        self._kinds: dict[int, tuple[int, Kind]] = {}
        self._contents: defaultdict[int, Content] = defaultdict(Content)
        self._unread = False
        """True once an unreadable event may have held a call."""

    @property
    def held(self) -> int | None:
        return first_frame(self._first)

    def push(self, event: Event) -> Iterable[Event]:
        if self._first and not isinstance(event, StreamViolation):
            # `{"role": "assistant", "function_call": {"name": "", …}}` may begin a call whose name comes later.
            first, self._first = self._first, []
            if not (isinstance(event, Start) and event.form == "legacy"):
                return [*(one for empty in first for one in self._without(empty)), *self.push(event)]
            return [*first, *self.push(event)]
        self._frame = event.frame
        match event:
            case Start(choice=choice):
                self._kinds[event.block] = (choice, event.kind)
                self._contents[choice].begin(event)
            case Delta() if (known := self._kinds.get(event.block)) is not None:
                content = self._contents[known[0]]
                if known[1] in ("text", "reasoning"):
                    content.add(event.text, known[1])
                elif event.block == content.last:
                    content.scanner.feed(event.text)
            case CallUpdate(name=str(name)) if name and (known := self._kinds.get(event.block)) is not None:
                self._contents[known[0]].named = True
            case Finish(choice=choice):
                content = self._contents[choice]
                content.stopped = True
                reason = None if self._unread and not content.forms else self._correct(event, content)
                return (event if reason is None else event._replace(reason=reason),)
            case Failure():
                self._unread = True
            case StreamViolation(kind=kind) if kind in UNREAD:
                self._unread = True
            case StreamViolation(kind="written-null" | "empty-call" as kind):
                if kind == "empty-call" and self._context.streamed and not self._contents:
                    self._first.append(event)
                    return ()
                return self._without(event)
            case Done() if self._context.streamed:
                return [*self._missing(event.frame), event]
        return (event,)

    def release(self) -> Iterable[Event]:
        if self._context.streamed:
            first, self._first = self._first, []
            return first
        ends = self._missing(self._frame)
        for event in self._empty:
            if event.detail.partition(" ")[0] not in [end.pointer for end in ends]:
                self._drop(event)
        self._empty.clear()
        return ends

    def _without(self, event: StreamViolation) -> Iterable[Event]:
        """Drop an empty member. An empty text as the reason stays in streams: most servers of that kind send the reason."""
        written = event.kind != "written-null" or event.detail.partition(" ")[2]
        if self._context.streamed and not written:
            return (event,)
        if not self._context.streamed:
            self._empty.append(event)  # a reason may be added in its place
        elif (event.kind, event.detail) not in self._dropped:
            self._dropped.add((event.kind, event.detail))
            self._drop(event)
        return ()

    def _drop(self, violation: StreamViolation) -> None:
        """Record that an empty member is removed."""
        pointer, _, written = violation.detail.partition(" ")
        empty = violation.kind == "empty-call"
        title = "removed the empty function_call" if empty else f"set the finish reason {written!r} to null"
        self._rule.record(self._context, "safe", title, pointer, at=violation, before="" if empty else written)

    def _missing(self, frame: Frame | None) -> list[Finish]:
        """Return the ends that candidates lack."""
        if self._unread or not traits(self._context.exchange.api).has_reason_for_calls:
            return []
        ended = [(choice, content) for choice, content in self._contents.items() if content.lacks_finish_reason]
        for _, content in ended:
            content.stopped = True  # a second terminator adds nothing
        return [self._add(choice, frame, content) for choice, content in ended]
