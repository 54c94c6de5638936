"""The copy of a reply: what is kept, what is let go, whatever the pieces."""

from __future__ import annotations

import gzip

import pytest

from tests.addon.build import recorder_of
from tests.build import Talk, chunk, some, sse
from tests.cuts import split
from tests.fakes import Clock
from wirelint.addon.log import Failures
from wirelint.addon.streamed_reply import HttpReply
from wirelint.engine import MOST_TEXT

RECORD = Talk(text="Ein Satz, übersät mit Häkchen: ✓✓✓.").record("openai.chat", True)
PLAIN = RECORD["response"]["body"].encode()


class Never(Failures):
    """Failures of which there may be none."""

    def log(self, culprit: str, error: BaseException) -> None:
        raise AssertionError(culprit) from error


def test_pieces_are_read_together_each_as_of_its_time() -> None:
    clock = Clock()
    recorder = recorder_of(RECORD, clock=clock, failures=Never())
    recorder.respond(200, ())
    stream = HttpReply(recorder)
    assert recorder.session is not None
    for piece in (PLAIN[:700], PLAIN[700:]):
        clock.time += 0.5
        stream(piece)
    assert not recorder.session.streamed, "nothing is read yet"
    stream(b":" * (1 << 15))
    assert recorder.session.terminated, "enough has come to be read"
    stream(b"\n\n")
    recorder.catch_up()
    exchange = recorder.session.finish("complete")
    assert exchange.chunks == ((500.0, 700), (1000.0, len(PLAIN) - 700), (1000.0, 1 << 15), (1000.0, 2))
    assert exchange.timing.first_token == 500.0


LETTING_GO: dict[str, tuple[str, bytes, int, bool]] = {
    "larger than the limit": ("", PLAIN, 64, False),
    "larger when unpacked": ("gzip", gzip.compress(bytes(50_000)), 4096, False),
    "not what the coding says": ("gzip", b"plain text under a wrong name", 4096, True),
    "a coding that nobody knows": ("x-own", PLAIN, 4096, True),
}


@pytest.mark.parametrize("name", LETTING_GO)
def test_what_is_not_read_passes_all_the_same(name: str) -> None:
    coding, body, limit, kept = LETTING_GO[name]
    recorder = recorder_of(RECORD, limit, failures=Never())
    recorder.respond(200, (("content-encoding", coding),))
    stream = HttpReply(recorder)
    pieces = split(body, (10, 20))
    assert [stream(piece) for piece in pieces] == pieces
    recorder.catch_up()
    assert recorder.is_unread
    assert len(recorder.notes) == 1
    assert recorder.record().response_body is None
    assert recorder.raw_body() == (body if kept else None)
    assert some(recorder.session).finish("complete").end == "unread"


def test_a_reply_that_says_too_much_is_let_go() -> None:
    recorder = recorder_of(RECORD, 1 << 30, failures=Never())
    recorder.respond(200, (("content-type", "text/event-stream"),))
    stream = HttpReply(recorder)
    event = sse(chunk({"content": "more and more " * 5000}), done=False).encode()
    for _ in range(MOST_TEXT // 70_000 + 2):
        assert stream(event) == event
    recorder.catch_up()
    assert recorder.is_unread
    assert recorder.notes == ["the reply is too long to be judged; it passed unread"]
    assert (recorder.raw_body(), recorder.record().response_body) == (None, None)
    assert some(recorder.session).finish("complete").end == "unread"
