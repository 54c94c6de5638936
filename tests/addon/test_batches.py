"""Pieces that are read together say what they say one by one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import APIS, Call, Talk, as_record, chunk, schema, some, sse
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


def test_events_that_are_alike_are_taken_in_together(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    real = Session.feed_texts

    def counted(self: Session, block: int, pieces: list[tuple[bytes, float | None, str]]) -> None:
        taken.append(len(pieces))
        real(self, block, pieces)

    monkeypatch.setattr(Session, "feed_texts", counted)
    record = as_record(Talk(text="x").record("openai.chat", True), 1)
    session = open_session(record)
    body = sse(*(chunk({"content": f" {number}"}) for number in range(20)), chunk({}, "stop")).encode()
    session.feed_all([(event + b"\n\n", 1.0) for event in body.split(b"\n\n") if event])
    assert taken == [17]  # all but the three that the pattern is made from
    reply = some(session.finish().reply)
    assert reply.choices[0].text == "".join(f" {number}" for number in range(20))
