"""Calls that a fix makes, and rewriters that give new ids to the calls of a reply.

Theory of operation. An id is judged together with the name of its call. A call that lacks one of them waits until its
arguments begin. Servers that repeat the id in every event do so in the frames of the arguments, so these frames are written
anew too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

import orjson

from wirelint.apis.traits import traits
from wirelint.events import CallUpdate, Close, Delta, Event, Frame, Start
from wirelint.fix import RewriteContext
from wirelint.fixes.names import may_repeat
from wirelint.fixes.rewriters import WaitingRewriter, completes_name
from wirelint.model import Json

ChooseId = Callable[[Start, str | None, str | None], str | None]
"""Return the new id of a call, given its start, id and name, and record the change; None if it keeps its own."""


def make_call(
    context: RewriteContext,
    choice: int,
    name: str | None,
    id_: str | None,
    arguments: dict[str, Json],
    frame: Frame | None,
    pointer: str | None = None,
) -> Iterator[Event]:
    """Yield the events of a whole call. `pointer`: its place, if that is not behind the other calls of its candidate."""
    own = traits(context.exchange.api)
    block = context.new_block()
    place = (own.calls_at or "").format(choice) if pointer is None else pointer
    held = own.start_holds_arguments(streamed=context.streamed)
    given: Json = arguments if held else {} if own.arguments == "block" else None
    yield Start(block, "tool_call", place, choice, frame, None, id_, name, given)
    if not held:
        yield Delta(block, write_arguments(arguments), frame)
    yield Close(block, frame)


def write_arguments(arguments: dict[str, Json]) -> str:
    try:
        return orjson.dumps(arguments).decode()
    except (orjson.JSONEncodeError, UnicodeDecodeError):  # integers of more than 64 bits, lone surrogates
        return json.dumps(arguments)


class NewIds(WaitingRewriter):
    """Gives calls the ids that a rule chooses. It asks for every call, in order.

    It comes after the fixes of names, since an id may contain the name.
    """

    phase: ClassVar[float] = 3

    def __init__(self, context: RewriteContext, choose: ChooseId) -> None:
        super().__init__()
        self._context = context
        self._choose = choose
        self._renamed: dict[int, str] = {}

    def decides(self, first: Event, event: Event) -> bool | None:
        assert isinstance(first, Start)
        return completes_name(first, event) or None

    def settle(self, held: Sequence[Event], event: Event, decided: bool) -> Iterable[Event]:
        start = held[0]
        assert isinstance(start, Start)
        updates = [one for one in held[1:] if isinstance(one, CallUpdate) and one.block == start.block]
        id_ = start.id or next((one.id for one in updates if one.id), None)
        name = start.name or next((one.name for one in updates if one.name), None)
        return (self._begin(start, id_, name),)

    def take(self, event: Event) -> Iterable[Event]:
        match event:
            case Start(kind="tool_call"):
                if (event.id and event.name) or not self._context.streamed:  # a whole body holds both, or never will
                    return (self._begin(event, event.id, event.name),)
                return self.wait_for(event)
            case CallUpdate() if event.block in self._renamed:
                return (event._replace(id=None),) if event.name else ()
            case Delta() if event.block in self._renamed and may_repeat(event.frame, self._renamed[event.block]):
                return (event._replace(),)
            case _:
                return (event,)

    def _begin(self, start: Start, id_: str | None, name: str | None) -> Start:
        new = self._choose(start, id_, name)
        if new is None:
            if id_:
                self._context.taken.add(id_)
            return start
        self._context.taken.add(new)
        self._renamed[start.block] = id_ or ""
        return start._replace(id=new)
