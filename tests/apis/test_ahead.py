"""A reply that was read before it is fed is read once, and says what it says."""

from __future__ import annotations

import orjson
import pytest

from tests.build import REGISTRY
from tests.fixes.drive import UNSAFE
from wirelint.apis import by_name
from wirelint.apis.ahead import ReadAhead
from wirelint.engine import Session
from wirelint.events import Event, Frame
from wirelint.model import Json, Reply
from wirelint.rewrite import rewrite_reply
from wirelint.state.ledger import Ledger
from wirelint.wire.whole import whole_frame

REQUEST: dict[str, Json] = {"model": "m", "messages": [{"role": "user", "content": "What is it?"}]}
HEADERS = {"content-type": "application/json"}


def _body(text: str, **more: Json) -> bytes:
    message: dict[str, Json] = {"role": "assistant", "content": text, **more}
    return orjson.dumps({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


PLAIN = _body("It is a letter.")
BODIES = {
    "plain": PLAIN,
    "a token": _body("It is.<|im_end|>"),
    "a call": _body("", tool_calls=[{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]),
    "no choices": b'{"id":"c"}',
    "an error": b'{"error":{"message":"no"}}',
    "cut off": PLAIN[:-9],
    "nothing": b"",
}


class _Counted:
    """A reader that counts what it is asked."""

    def __init__(self) -> None:
        api = by_name("openai.chat")
        assert api is not None
        self._reader = api.reply_reader(streamed=False)
        self.asked: list[str] = []

    def read(self, frame: Frame) -> list[Event]:
        self.asked.append("read")
        return self._reader.read(frame)

    def close(self) -> list[Event]:
        self.asked.append("close")
        return self._reader.close()


def test_what_comes_as_announced_is_not_read_again() -> None:
    readers: list[_Counted] = []

    def make() -> _Counted:
        readers.append(_Counted())
        return readers[-1]

    ahead = ReadAhead(whole_frame(PLAIN), make)
    events, closing = ahead.read(whole_frame(PLAIN)), ahead.close()
    assert [*events, *closing] == ahead.events
    assert [reader.asked for reader in readers] == [["read", "close"]]


def test_anything_else_is_read() -> None:
    ahead = ReadAhead(whole_frame(PLAIN), _Counted)
    other = whole_frame(_body("Something else."))
    assert ahead.read(other) == _Counted().read(other)
    assert ahead.close() == []


def _session() -> Session:
    session = Session.begin(
        id="1", method="POST", url="https://h/v1/chat/completions", headers={}, body=orjson.dumps(REQUEST)
    )
    assert session is not None
    session.respond(200, HEADERS)
    return session


def _read(body: bytes, parts: int) -> Reply | None:
    session = _session()
    size = max(len(body) // parts, 1)
    for start in range(0, len(body), size):
        session.feed(body[start : start + size])
    return session.finish().reply


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("body", BODIES)
def test_a_repaired_reply_is_read_as_any(body: str, parts: int) -> None:
    came = BODIES[body]
    session = _session()
    size = max(len(came) // parts, 1)
    chunks = [(float(start), len(came[start : start + size])) for start in range(0, len(came), size)]
    pieces: list[tuple[bytes, float | None]] = []
    rewrite_reply(session, came, REGISTRY.rules, Ledger(), UNSAFE, chunks=chunks, later=pieces.extend)
    for data, at in pieces:
        session.feed(data, at)
    read, plain = session.finish().reply, _read(came, parts)
    assert (read is None) == (plain is None)
    assert bool(pieces) == (body == "plain")
    if read is not None and plain is not None:
        for name in ("choices", "error", "faults", "finished", "id", "usage", "events"):
            assert getattr(read, name) == getattr(plain, name), name
