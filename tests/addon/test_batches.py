"""Pieces that are read together say what they say one by one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import APIS, Call, Talk, as_record, schema
from tests.fixes.drive import open_session
from wirelint.engine import Session

WORDS = (
    "the ", "ferry", " function", "s", ".find:0", " to", "=self", " analysis", "assistant", "final", " Observation", ":",
    "call", " count", " mm:", "antml:", "invoke", " think", "ing", '{"name": "find"', "`code`", "*", "#", " | ", "…", "語",
    "\n", ".\n", "\n\n", "Then", "\n- two", "\nObserved", "\nCalls", "\nHuman", "\n{", "\nfin", "## Return", "/think",
    "<b>", " < b", "<", "[", "[0]", "[1](", "<String>", "<=", " << 2", "<div class", "<a href=", "[i][j]", " x<y", ". ",
    "Here is my response:", " thought", "DSML", " 3 ", ", ",
)  # fmt: skip


def told(session: Session) -> tuple[str, ...]:
    exchange = session.finish()
    return tuple(map(repr, (exchange.reply, exchange.end, exchange.chunks, exchange.arrivals, exchange.timing)))


@pytest.mark.parametrize("api", APIS)
@given(
    words=st.lists(st.sampled_from(WORDS), max_size=12),
    called=st.booleans(),
    step=st.integers(1, 9),
    cuts=st.lists(st.floats(0, 1), max_size=6),
    whole=st.booleans(),
    timed=st.booleans(),
)
def test_all_is_as_one_by_one(
    api: str, words: list[str], called: bool, step: int, cuts: list[float], whole: bool, timed: bool
) -> None:
    calls = (Call("find", {"place": "Bodø"}),) if called else ()
    talk = Talk(text="The " + "".join(words), calls=calls, tools={"find": schema(place="string")}, step=step)
    record = as_record(talk.record(api, not whole), 1)
    body = record.response_body or b""
    ends = {end + 2 for end in range(len(body)) if body[end : end + 2] == b"\n\n"} | {
        int(cut * len(body)) for cut in cuts
    }
    edges = sorted({0, len(body)} | {end for end in ends if end <= len(body)})
    cut = [body[start:end] for start, end in itertools.pairwise(edges)]
    pieces = [(piece, 5.0 * number if timed else None) for number, piece in enumerate(cut, 1)]
    together, alone = open_session(record), open_session(record)
    together.feed_all(pieces)
    for piece, at in pieces:
        alone.feed(piece, at)
    assert told(together) == told(alone)
