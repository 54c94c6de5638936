"""A call that wraps others becomes the calls that it wraps.

OpenAI's models were trained with a tool that runs several at once, `multi_tool_use.parallel`; its arguments name them:
`{"tool_uses": [{"recipient_name": "functions.lookup", "parameters": {…}}]}`. Where it comes out as a call, no client has
such a tool. It is held until it is whole; then the calls inside stand in its place, if every one of them is of a declared
tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import orjson

from wirelint.arguments.tool_names import match
from wirelint.events import CallUpdate, Close, Delta, Done, Event, Finish, Frame, Start
from wirelint.fix import MOST_HELD, AppliedFix, RewriteContext
from wirelint.fixes.callids import make_call
from wirelint.history.minting import mint_where_used
from wirelint.model import Json, Request

_WRAPPER = re.compile(r"(?:functions?\.)?multi_tool_use[._]parallel")


@dataclass(frozen=True, slots=True)
class Use:
    """One of the calls inside."""

    name: str
    arguments: dict[str, Json]


def wraps(name: str | None) -> bool:
    """Whether a name is that of the wrapper."""
    return name is not None and _WRAPPER.fullmatch(name) is not None


def uses(arguments: Json, request: Request) -> tuple[Use, ...]:
    """The calls that a wrapper's arguments hold; empty unless all of them are calls of declared tools."""
    listed = arguments.get("tool_uses") if isinstance(arguments, dict) else None
    names = [tool.name for tool in request.client_tools]
    found: list[Use] = []
    for use in listed if isinstance(listed, list) else ():
        recipient = use.get("recipient_name") if isinstance(use, dict) else None
        given = use.get("parameters") if isinstance(use, dict) else None
        if not isinstance(recipient, str) or not isinstance(given, dict):
            return ()
        meant = recipient if recipient in names else None
        if meant is None and (other := match(recipient, names)) is not None and other.certain:
            meant = other.name
        if meant is None:
            return ()
        found.append(Use(meant, given))
    return tuple(found)


class FanOut:
    """Puts the calls inside in the place of a wrapper. `record` makes the record of that."""

    patient: ClassVar[bool] = True
    heeds_text: ClassVar[bool] = False
    phase: ClassVar[float] = 2

    def __init__(
        self, context: RewriteContext, request: Request, record: Callable[[Start, str, tuple[Use, ...]], AppliedFix]
    ) -> None:
        self._situation = context
        self._request = request
        self._record = record
        self._held: list[Event] = []
        self._size = 0

    @property
    def held(self) -> int | None:
        return self._held[0].frame.number if self._held and self._held[0].frame else None

    def push(self, event: Event) -> Iterable[Event]:
        if not self._held:
            if isinstance(event, Start) and event.kind == "tool_call" and wraps(event.name):
                self._held.append(event)
                return ()
            return (event,)
        start = self._held[0]
        assert isinstance(start, Start)
        match event:
            case Delta(block, text) if block == start.block:
                self._size += len(text)
                self._held.append(event)
                return () if self._size <= MOST_HELD else self.release()
            case Close(block) if block == start.block:
                self._held.append(event)
                return self._decide(start)
            case Start(choice=choice) | Finish(choice=choice) if choice == start.choice:
                return [*self._decide(start), *self.push(event)]
            case Done():
                return [*self._decide(start), event]
            case _:
                self._held.append(event)
                return ()

    def release(self) -> Iterable[Event]:
        held, self._held, self._size = self._held, [], 0
        return held

    def _decide(self, start: Start) -> Iterable[Event]:
        held = list(self.release())
        text = "".join(event.text for event in held if isinstance(event, Delta) and event.block == start.block)
        inside = uses(_value(text) if text else start.input, self._request)
        if not inside:
            return held
        self._situation.repairs.append(self._record(start, text or json.dumps(start.input), inside))
        own = (Delta, CallUpdate, Close)
        others = [event for event in held[1:] if not (isinstance(event, own) and event.block == start.block)]
        return [*self._make(start, inside, held[-1].frame), *others]

    def _make(self, start: Start, inside: tuple[Use, ...], frame: Frame | None) -> Iterator[Event]:
        for number, use in enumerate(inside):
            id_ = start.id if number == 0 and start.id else mint_where_used(self._situation, use.name)
            yield from make_call(self._situation, start.choice, use.name, id_, use.arguments, frame, start.pointer)


def _value(text: str) -> Json:
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value
