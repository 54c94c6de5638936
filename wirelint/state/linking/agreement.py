"""How far a remembered exchange agrees with a history that may go on from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from wirelint.history.ids import is_drawn, key
from wirelint.history.turns import Turn
from wirelint.model import ToolCall
from wirelint.state.linking.nodes import Node, Said

_TELLING_WORDS = 60
"""Characters of an answer that no two conversations share by accident."""


class Agreement(NamedTuple):
    """How far a node agrees with a history, the most telling field first.

    `whole`: to the beginning, in every turn. `like`: to the beginning, except for some user turns. `ids`: number of
    turns with equal ids. `turns`: number of equal turns, from the last one back. `fresh`: nothing continues the node.
    `same_ids`: the last turns have equal ids.
    """

    whole: bool
    like: bool
    ids: int
    turns: int
    fresh: bool
    number: int
    same_ids: bool

    @property
    def content(self) -> tuple[bool, bool, int]:
        """How far the node agrees when ids are left aside."""
        return self.whole, self.like, self.turns


def agree(node: Node, turns: Sequence[Turn], at: int, *, exact: bool = False) -> Agreement:
    """Return how far the path to a node agrees with a history whose turn `at` is the node's answer.

    Beyond the last two turns, equal sizes count as agreement and ids are not compared, unless `exact`.
    """
    same_ids = _same_ids(node.answers, turns[at])
    agreed, heard, missed, ids, here, ended = 0, 0, 0, int(same_ids), at, False
    for said in _path(node):
        near = exact or here >= at - 1
        if here < 0:
            break
        if any(_equal(one, turns[here], exact=near) for one in said):
            agreed, heard = agreed + 1, heard + (not turns[here].assistant)
        elif turns[here].assistant:
            break
        else:
            missed += 1
        ids += exact and here < at and _same_ids(said, turns[here])
        here -= 1
    else:
        ended = here < 0 or _root(node).cut
    whole, like = ended and not missed, ended and heard >= missed
    return Agreement(whole, like, ids, agreed, not node.continued, node.number, same_ids)


def _path(node: Node) -> Iterator[tuple[Said, ...]]:
    """Yield the turns that lead to a node, from its answers back, with all of its several answers."""
    current: Node | None = node
    while current is not None:
        yield current.answers
        for said in reversed(current.asked):
            yield (said,)
        current = current.parent


def _root(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def _same_ids(said: Iterable[Said], turn: Turn) -> bool:
    ids = [key(id_) for id_ in turn.ids]
    return any(ids) and any(ids == [key(id_) for id_ in one.ids] for one in said)


def _equal(said: Said, turn: Turn, *, exact: bool) -> bool:
    if not exact and said.size == turn.size:
        return True
    return said.mark == turn.mark


def settle(node: Node, turns: Sequence[Turn], at: int) -> None:
    """Remembers the sizes that the turns of a history have in this client's shape."""
    for said, turn in zip(_path(node), reversed(turns[: at + 1]), strict=False):
        for one in said:
            if one.size != turn.size and one.mark == turn.mark:
                one.size = turn.size


def is_telling(turn: Turn, agreement: Agreement) -> bool:
    """Return True if an agreement is no accident: nearly all agrees, or drawn ids, a long answer or several turns
    do.
    """
    if agreement.like and agreement.turns > 1:
        return True
    if agreement.same_ids and any(drawn_ids(turn.calls)):
        return True
    _, arguments, _, characters = turn.size
    return agreement.turns > 0 and (arguments + characters >= _TELLING_WORDS or agreement.turns >= 4)


def drawn_ids(calls: Iterable[ToolCall]) -> Iterator[str]:
    """Return the letters and digits of ids that no two calls share."""
    return (key(call.id) for call in calls if call.id and is_drawn(call.id, call.name))
