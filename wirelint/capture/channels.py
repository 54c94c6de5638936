"""The strings of a stream's documents, put together as a client puts them together.

A *channel* is a place in the documents: the names on the way to a string, with the positions of list items replaced by
their `index`, under the numbers by which a document names its part (`output_index`, `content_index`, `item_id`). Channels
form a tree, so that a document is walked without a path being built for each of its strings.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from wirelint.model import Json

_PART_NUMBERS = ("index", "output_index", "content_index", "summary_index", "item_id")
_CONTAINERS = frozenset({"delta", "content_block"})
"""What begins in one of these goes on in the other: their names are no part of a channel."""

_DEEPEST = 40


class Channel(dict[Hashable, "Channel"]):
    """The strings that came at one place, and the places below it."""

    __slots__ = ("texts",)

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __missing__(self, name: Hashable) -> Channel:
        below = self[name] = Channel()
        return below


class Channels:
    """Takes documents in their order. `places` has the channel of every string, in the order in which they were taken."""

    def __init__(self) -> None:
        self.places: list[Channel] = []
        self._parts = Channel()
        self._broken = Channel()

    def add(self, document: Json) -> int:
        """Takes the strings of a document, if it is an object; tells how many there are."""
        if not isinstance(document, dict):
            return 0
        before = len(self.places)
        part: tuple[str | int, ...] = ()
        for name in _PART_NUMBERS:
            if name in document and isinstance(number := document[name], (str, int)):
                part = (*part, number)
        self._walk(document, self._parts[part], 1)
        return len(self.places) - before

    def add_text(self, text: str) -> None:
        """Takes a document that is none, as a piece of text."""
        self._broken.texts.append(text)
        self.places.append(self._broken)

    def moving(self) -> Iterator[Channel]:
        """The channels that carry something. A field that never changes (an id, a model) is none."""
        waiting = [self._broken, self._parts]
        while waiting:
            channel = waiting.pop()
            waiting += channel.values()
            texts = channel.texts
            if len(texts) > 1 and texts.count(texts[0]) < len(texts):
                yield channel

    # What a decoder gives is of exact types, and `type` is asked more quickly than `isinstance`.

    def _walk(self, items: dict[str, Json], channel: Channel, depth: int) -> None:
        for name, item in items.items():
            if type(item) is str:
                place = channel if name in _CONTAINERS else channel[name]
                place.texts.append(item)
                self.places.append(place)
            elif type(item) is dict:
                if depth < _DEEPEST:
                    self._walk(item, channel if name in _CONTAINERS else channel[name], depth + 1)
            elif type(item) is list and depth < _DEEPEST:
                self._number(item, channel if name in _CONTAINERS else channel[name], depth + 1)

    def _number(self, items: list[Json], channel: Channel, depth: int) -> None:
        for position, item in enumerate(items):
            if type(item) is dict:
                if depth < _DEEPEST:
                    index = item.get("index", position)
                    self._walk(item, channel[index if isinstance(index, int) else position], depth + 1)
            elif type(item) is str:
                place = channel[position]
                place.texts.append(item)
                self.places.append(place)
            elif type(item) is list and depth < _DEEPEST:
                self._number(item, channel[position], depth + 1)
