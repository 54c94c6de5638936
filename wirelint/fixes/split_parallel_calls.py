"""Rewriter that replaces a call of `multi_tool_use.parallel` with the calls that it wraps.

OpenAI's models were trained with a tool that runs several others:
`{"tool_uses": [{"recipient_name": "functions.lookup", "parameters": {…}}]}`. No client has such a tool. The call is held
until it is complete, and replaced if all wrapped calls are of declared tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import orjson

from wirelint.arguments.schemas import match
from wirelint.events import CallUpdate, Close, Delta, Event, Frame, Start
from wirelint.fix import MOST_HELD, RewriteContext
from wirelint.fixes.calls import make_call
from wirelint.fixes.rewriters import WaitingRewriter, ends_call
from wirelint.history.id_demands import mint_where_used
from wirelint.model import Json, Request

_WRAPPER = re.compile(r"(?:functions?\.)?multi_tool_use[._]parallel")


@dataclass(frozen=True, slots=True)
class Use:
    """One wrapped call."""

    name: str
    arguments: dict[str, Json]


def wraps(name: str | None) -> bool:
    """Return True for the name of the wrapper."""
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


class ParallelSplitter(WaitingRewriter):
    """Puts the wrapped calls in the place of a wrapper. `record` records the change."""

    phase = 2
    patient: ClassVar[bool] = True
    most_waiting: ClassVar[int] = MOST_HELD

    def __init__(
        self, context: RewriteContext, request: Request, record: Callable[[Start, str, tuple[Use, ...]], None]
    ) -> None:
        super().__init__()
        self._context = context
        self._request = request
        self._record = record
        self._size = 0
        self._gone: set[int] = set()

    def take(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Start) and event.kind == "tool_call" and wraps(event.name):
            self._size = 0
            return self.wait_for(event)
        own = isinstance(event, (Delta, CallUpdate, Close)) and event.block in self._gone
        return () if own else (event,)

    def decides(self, first: Event, event: Event) -> bool | None:
        assert isinstance(first, Start)
        if isinstance(event, Delta) and event.block == first.block:
            self._size += len(event.text)
            return False if self._size > MOST_HELD else None
        return ends_call(first, event) or None

    def settle(self, held: Sequence[Event], event: Event, decided: bool) -> Iterable[Event]:
        start = held[0]
        assert isinstance(start, Start)
        text = "".join(one.text for one in held if isinstance(one, Delta) and one.block == start.block)
        inside = uses(_value(text) if text else start.input, self._request) if decided else ()
        if not inside:
            return (start,)
        self._record(start, text or json.dumps(start.input), inside)
        self._gone.add(start.block)
        closes = isinstance(event, Close) and event.block == start.block
        return self._make(start, inside, event.frame if closes else held[-1].frame)

    def _make(self, start: Start, inside: tuple[Use, ...], frame: Frame | None) -> Iterator[Event]:
        for number, use in enumerate(inside):
            id_ = start.id if number == 0 and start.id else mint_where_used(self._context, use.name)
            yield from make_call(self._context, start.choice, use.name, id_, use.arguments, frame, start.pointer)


def _value(text: str) -> Json:
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value
