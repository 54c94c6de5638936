"""Exchanges as the lineage remembers them, and indexes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlsplit

from wirelint.history.turns import Size, Turn
from wirelint.model import Exchange

COMPARED = 64
"""Exchanges that say the same, of which no more are looked at: the latest."""


@dataclass(slots=True, eq=False)
class Said:
    """A turn as it is remembered. `size` is that in the latest request, since clients change a turn at most once."""

    mark: bytes
    size: Size
    ids: tuple[str, ...] = ()
    ends: tuple[str, str] = ("", "")

    @classmethod
    def of(cls, turn: Turn) -> Said:
        return cls(turn.mark, turn.size, turn.ids, turn.ends if turn.assistant else ("", ""))

    def resembles(self, turn: Turn) -> bool:
        """Return True if a turn begins or ends like it."""
        return any(one and one == other for one, other in zip(self.ends, turn.ends, strict=True))


class Scope(NamedTuple):
    """Client, model and host of an exchange. Equal words in two scopes are no sign of one conversation.

    `client` is the identity of the client in the headers of its requests.
    """

    client: str
    host: str
    model: str

    @classmethod
    def of(cls, exchange: Exchange) -> Scope:
        headers = exchange.request_headers
        client = "\0".join([headers.get(name, "") for name in _CLIENT])
        return cls(client, urlsplit(exchange.url).netloc, exchange.model)


_CLIENT = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "user-agent")


@dataclass(slots=True, eq=False)
class Node:
    """An exchange: the turns that its request adds to those of `parent`, and its answers. `number` counts exchanges.

    `replies` are the ids that the API gave the answers, `lines` what a summary among them is known by.
    `broken`: there was no answer, or not all of one. `cut`: what it goes on from has been forgotten.
    `repeated`: several exchanges said the same, words and ids; `exchange` is the last of them.
    """

    exchange: str
    number: int
    scope: Scope
    conversation: str | None
    parent: Node | None
    asked: tuple[Said, ...]
    answers: tuple[Said, ...]
    children: list[Node] = field(default_factory=list)
    lines: tuple[bytes, ...] = ()
    replies: list[str] = field(default_factory=list)
    broken: bool = False
    cut: bool = False
    repeated: bool = False

    @property
    def continued(self) -> bool:
        """Return True if its conversation has gone on from here."""
        return any(
            child.conversation == self.conversation and (child.children or not child.broken) for child in self.children
        )

    @property
    def weight(self) -> int:
        return 1 + len(self.asked) + sum([1 + len(answer.ids) for answer in self.answers])


class Index:
    """Nodes by something in their text, the latest last."""

    def __init__(self) -> None:
        self._nodes: dict[bytes | str, dict[int, Node]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def add(self, marks: Iterable[bytes | str], node: Node) -> None:
        for mark in marks:
            self._nodes.setdefault(mark, {})[node.number] = node

    def drop(self, marks: Iterable[bytes | str], node: Node) -> None:
        for mark in marks:
            found = self._nodes[mark]
            del found[node.number]
            if not found:
                del self._nodes[mark]

    def newest(self, mark: bytes | str) -> Iterator[Node]:
        """Yield the nodes with a mark, the latest first."""
        return reversed(self._nodes.get(mark, {}).values())

    def latest(self, mark: bytes | str) -> dict[int, Node]:
        """Return the last nodes with a mark by their numbers, the latest last."""
        found = self._nodes.get(mark, {})
        return found if len(found) <= COMPARED else dict(reversed([*islice(reversed(found.items()), COMPARED)]))


def asks_the_same(node: Node, added: Sequence[Turn]) -> bool:
    """Return True if a node was asked these turns. Equal calls with other ids belong to another conversation."""
    if len(node.asked) != len(added):
        return False
    both = zip(reversed(node.asked), reversed(added), strict=True)
    return all(said.mark == turn.mark and said.ids == turn.ids for said, turn in both)


def said_the_same(node: Node, made: Sequence[Turn]) -> bool:
    """Return True if a node has given all of these answers."""
    said = [(answer.mark, answer.ids) for answer in node.answers]
    return not [turn for turn in made if (turn.mark, turn.ids) not in said]


def mark_of(turns: Iterable[Turn | Said]) -> bytes:
    return b"".join([turn.mark for turn in turns])
