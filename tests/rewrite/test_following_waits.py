"""Replies that follow a form while the end of their text waits for more: as if they had been read."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.addon.build import Clock
from tests.fixes.test_prefilter import WORDS
from tests.rewrite.test_following import PLAIN, REQUEST, Seen, events, known, passing, started
from wirelint.rewrite import ReplyStream
from wirelint.rewrite.following import Following, Forms

ENDS = ("; t", " <", "\nf", "\nfi", "\nto", " <tool", " [", "\n", " `", " func", "<|", "ss", "\u3010")
"""What may begin something, most of it."""


@pytest.mark.parametrize("more", ["", "b> now", " of it", "ind", ".", "\n\n", "<", " <"])
@pytest.mark.parametrize("end", ENDS)
def test_an_end_that_waits(end: str, more: str) -> None:
    forms = known()
    for pieces in ((*PLAIN, end, more), (*PLAIN, end, more, " and on."), (PLAIN[0], end, more, *PLAIN)):
        told = events([piece for piece in pieces if piece], number=9)
        for ends in (True, False):
            assert passing(told, forms, end=ends) == passing(told, None, end=ends)


@pytest.mark.parametrize(
    ("pieces", "leaves"),
    [
        (("The ferry", "\nf", "erries"), [1, 0, 2]),
        ((*PLAIN, "; t"), [1, 1, 1, 1, 0, 2]),
        (("The ferry", "\nf", "i", "nally."), [1, 0, 0, 3]),
        (("The ferry", " <", "b>", " it."), [1, 0, 2, 1]),
    ],
)
def test_what_waits_leaves_with_what_comes_next(
    pieces: tuple[str, ...], leaves: list[int], followed: list[Following]
) -> None:
    delivery, _ = started(known())
    came = events(pieces, number=9)
    assert delivery(came[0]) == [came[0]]
    got = [delivery(piece) for piece in came[1 : len(leaves) + 1]]
    assert [len(out) for out in got] == leaves
    sent = [came[0], *itertools.chain(*got)]
    assert sent == came[: len(sent)]
    rest = [delivery(piece) for piece in came[len(leaves) + 1 :]]
    assert [*sent, *itertools.chain(*rest)] == came
    assert delivery(b"") == []
    assert followed[-1].over


def test_a_text_that_ends_in_a_word_which_waits(followed: list[Following]) -> None:
    """The end of the text lets it leave, since a name alone is nothing."""
    told = events((*PLAIN, "; t"), number=9)
    forms = known()
    assert passing(told, forms) == passing(told, None)
    assert followed[-1].over
    other = events((*PLAIN, " <"), number=10)
    assert passing(other, forms) == passing(other, None)
    assert not followed[-1].over


def test_a_text_of_which_the_end_is_not_told_lets_nothing_leave(followed: list[Following]) -> None:
    """A usage alone says nothing of the text."""
    usage = {"total_tokens": 12}
    forms = known(reason=None, usage=usage)
    for pieces in (PLAIN, (*PLAIN, "; t")):
        told = events(pieces, number=9, reason=None, usage=usage)
        assert passing(told, forms) == passing(told, None)


Act = Callable[[Any, Clock], object]


def _passing(pieces: list[bytes], act: Act, after: int, forms: Forms | None, hold: float) -> tuple[object, ...]:
    """What a client gets of a reply, and all that is known of it, where something happens on the way."""
    clock = Clock()
    delivery, visit = started(forms, REQUEST, clock, hold)
    got: list[object] = []
    for number, piece in enumerate(pieces):
        clock.time += 0.005
        got.append(delivery(piece))
        if number == after:
            got.append(act(delivery, clock))
    clock.time += 0.005
    got.append(delivery(b""))
    delivery.settle()
    visit.catch_up()
    assert visit.session is not None
    exchange = visit.session.finish()
    return got, visit.faults, visit.notes, visit.fixes, visit.delivered, repr(exchange.reply), repr(exchange.arrivals)


def _wait(delivery: Any, clock: Clock) -> object:
    clock.time += 0.5
    return delivery.due() is not None, delivery.due()


def _wait_long(delivery: Any, clock: Clock) -> object:
    clock.time += 1.0
    return delivery.due(), delivery.overdue(), delivery.due(), delivery.due() is not None


def _look(delivery: Any, clock: Clock) -> object:
    return delivery.catch_up(), delivery.due()


def _go(delivery: Any, clock: Clock) -> object:
    clock.time += 3.0
    return None


WAITING = events(("The ferry", " leaves", "\nfi", "n", "ally", " at nine", " <", "b>", " or so"), number=9)


@pytest.mark.parametrize("act", [_wait, _wait_long, _look, _go])
@pytest.mark.parametrize("after", range(len(WAITING)))
def test_what_waits_is_held_for_as_long_as_what_was_read(after: int, act: Act) -> None:
    assert _passing(WAITING, act, after, known(), 1000.0) == _passing(WAITING, act, after, None, 1000.0)


@pytest.mark.parametrize("fails", ["replay", "passes", "over"])
@pytest.mark.parametrize("after", range(1, len(WAITING)))
def test_a_failure_while_something_waits_loses_nothing(fails: str, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def no(*_: object, **__: object) -> Any:
        raise RuntimeError("no")

    delivery, visit = started(known())
    came = WAITING
    got = [*itertools.chain(*(delivery(piece) for piece in came[:after]))]
    if fails == "replay":
        monkeypatch.setattr(ReplyStream, "feed", no)
        delivery.catch_up()
    elif fails == "passes":
        monkeypatch.setattr(Following, "passes", no)
    else:
        monkeypatch.setattr(Following, "over", property(no))
        monkeypatch.setattr(ReplyStream, "feed", no)
    got += itertools.chain(*(delivery(piece) for piece in came[after:]))
    got += delivery(b"")
    delivery.settle()
    assert b"".join(got) == b"".join(came)
    assert [fault.name for fault in visit.faults] == ["internal-error"]
    assert visit.delivered is None


texts = st.lists(st.one_of(st.sampled_from((*WORDS, *ENDS)), st.text(max_size=4)), min_size=1, max_size=9)


@given(pieces=texts, end=st.booleans(), reason=st.sampled_from(("stop", "stop", "length", None)))
def test_texts_that_wait_all_the_time(pieces: list[str], end: bool, reason: str | None) -> None:
    forms = known()
    told = events(["The ferry", *[piece for piece in pieces if piece]], number=9, reason=reason)
    seen: Seen = passing(told, forms, end=end)
    assert seen == passing(told, None, end=end)
