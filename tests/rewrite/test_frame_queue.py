"""Events that come out of the rewriters find the frames that they belong to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import pytest

from wirelint.events import Delta, Frame
from wirelint.rewrite.frame_queue import Waiting, place


class Counted(deque[Waiting]):
    """A queue that counts the frames that are looked at."""

    steps = 0

    def __iter__(self) -> Iterator[Waiting]:
        for one in super().__iter__():
            self.steps += 1
            yield one


def queue_of(first: int, last: int) -> Counted:
    return Counted(Waiting(Frame(number, b"x", None, "x"), ()) for number in range(first, last))


def event(number: int) -> Delta:
    return Delta(0, str(number), Frame(number, b"x", None, "x"))


@pytest.mark.parametrize("count", [1, 3, 500])
def test_events_go_to_their_frames(count: int) -> None:
    queue = queue_of(10, 10 + count)
    events = [event(number) for number in range(9, 10 + count)]
    place([*events, Delta(0, "made", None)], queue)
    texts = [[one.text for one in waiting.out if isinstance(one, Delta)] for waiting in queue]
    last = texts.pop()
    assert texts == [[str(number)] for number in range(10, 9 + count)]
    assert last == ["9", str(9 + count), "made"], "what belongs to no frame that waits stands with the last one"


def test_the_work_grows_with_the_events() -> None:
    queue = queue_of(0, 2000)
    place([event(number) for number in range(2000)], queue)
    assert queue.steps <= 2 * 2000
