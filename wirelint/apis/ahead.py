"""A whole reply that was read before it is fed, so that it is read once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from wirelint.events import Event, Frame

if TYPE_CHECKING:
    from wirelint.apis import ReplyReader


class ReadAhead:
    """The reader of a reply whose only frame has been read by it: it says the same again when the frame comes."""

    def __init__(self, frame: Frame, make: Callable[[], ReplyReader]) -> None:
        """`make` gives a reader of the API. Raises what reading raises."""
        reader = make()
        self._make, self._raw = make, frame.raw
        self._events, self._closing = reader.read(frame), reader.close()
        self._other: ReplyReader | None = None

    @property
    def events(self) -> list[Event]:
        return [*self._events, *self._closing]

    def read(self, frame: Frame) -> list[Event]:
        if self._other is None and frame.raw == self._raw:
            return self._events
        if self._other is None:  # not what was announced
            self._other = self._make()
        return self._other.read(frame)

    def close(self) -> list[Event]:
        return self._closing if self._other is None else self._other.close()
