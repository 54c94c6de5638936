"""The strings of a stream's documents, put together as a client puts them together.

A *channel* is a place in the documents: the names on the way to a string, with the positions of list items replaced by
their `index`, under the numbers by which a document names its part (`output_index`, `content_index`, `item_id`). Channels
form a tree, so that a document is walked without a path being built for each of its strings.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from wirelint.model import Json

_PART_NUMBERS = ("index", "output_index", "content_index", "summary_index", "item_id")
_CONTAINERS = frozenset({"delta", "content_block"})
"""What begins in one of these goes on in the other: their names are no part of a channel."""

_DEEPEST = 40


class _Channel(dict[Hashable, "_Channel"]):
    """The strings that came at one place, and the places below it."""

    __slots__ = ("texts",)

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __missing__(self, name: Hashable) -> _Channel:
        below = self[name] = _Channel()
        return below


class Channels:
    """Takes documents in their order. `places` has the channel of every string, in the order in which they were taken."""

    def __init__(self) -> None:
        self.places: list[_Channel] = []
        self._parts = _Channel()
        self._broken = _Channel()

    def add(self, document: Json) -> int:
        """Takes the strings of a document, if it is an object; tells how many there are."""
        if not isinstance(document, dict):
            return 0
        before = len(self.places)
        numbers = [document[name] for name in _PART_NUMBERS if name in document]
        part = tuple([number for number in numbers if isinstance(number, (str, int))])
        self._walk(document.items(), self._parts[part], 1)
        return len(self.places) - before

    def add_text(self, text: str) -> None:
        """Takes a document that is none, as a piece of text."""
        self._broken.texts.append(text)
        self.places.append(self._broken)

    def moving(self) -> Iterator[_Channel]:
        """The channels that carry something. A field that never changes (an id, a model) is none."""
        waiting = [self._broken, self._parts]
        while waiting:
            channel = waiting.pop()
            waiting += channel.values()
            texts = channel.texts
            if len(texts) > 1 and texts.count(texts[0]) < len(texts):
                yield channel

    def _walk(self, items: Iterable[tuple[Hashable, Json]], channel: _Channel, depth: int) -> None:
        for name, item in items:
            if item is None:
                continue
            if isinstance(item, str):
                place = channel if name in _CONTAINERS else channel[name]
                place.texts.append(item)
                self.places.append(place)
            elif isinstance(item, dict):
                if depth < _DEEPEST:
                    self._walk(item.items(), channel if name in _CONTAINERS else channel[name], depth + 1)
            elif isinstance(item, list) and depth < _DEEPEST:
                self._walk(_numbered(item), channel if name in _CONTAINERS else channel[name], depth + 1)


def _numbered(items: list[Json]) -> Iterator[tuple[Hashable, Json]]:
    for position, item in enumerate(items):
        index = item.get("index", position) if isinstance(item, dict) else position
        yield index if isinstance(index, int) else position, item
