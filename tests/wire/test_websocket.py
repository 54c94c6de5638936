"""Messages of a socket and the exchanges that they make."""

from __future__ import annotations

import pytest

from tests.build import read, some
from wirelint.wire.websocket import as_line, turns

ASK = b'{"type": "response.create", "model": "acme-1", "input": "Hi"}'
BEGUN = b'{"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}'
OVER = b'{"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": []}}'


SOCKETS: dict[str, tuple[list[tuple[bool, bytes]], list[tuple[bytes, bytes, bool]]]] = {
    "one exchange": (
        [(True, ASK), (False, BEGUN), (False, OVER)],
        [(ASK, BEGUN + b"\n" + OVER + b"\n", True)],
    ),
    "two at once, answered in their order": (
        [(True, ASK), (True, ASK + b" "), (False, OVER), (False, BEGUN), (False, OVER)],
        [(ASK, OVER + b"\n", True), (ASK + b" ", BEGUN + b"\n" + OVER + b"\n", True)],
    ),
    "cut off": ([(True, ASK), (False, BEGUN)], [(ASK, BEGUN + b"\n", False)]),
    "never answered": ([(True, ASK)], [(ASK, b"", False)]),
    "what nobody asked for": ([(False, BEGUN), (True, b"{}"), (False, OVER), (False, b"pong")], []),
    "after the end": ([(True, ASK), (False, OVER), (False, BEGUN)], [(ASK, OVER + b"\n", True)]),
}


@pytest.mark.parametrize(("messages", "expected"), SOCKETS.values(), ids=SOCKETS)
def test_the_exchanges_of_a_socket(
    messages: list[tuple[bool, bytes]], expected: list[tuple[bytes, bytes, bool]]
) -> None:
    assert [(turn.asked, bytes(turn.answered), turn.closed) for turn in turns(messages)] == expected


def test_an_exchange_is_read_as_a_stream_of_responses() -> None:
    record = {
        "request": {"method": "GET", "url": "wss://llm.test/v1/responses", "headers": {}, "body": ASK.decode()},
        "response": {
            "status": 200,
            "headers": {"content-type": "application/x-ndjson"},
            "body": (as_line(BEGUN) + as_line(OVER)).decode(),
        },
    }
    exchange = read(record)
    assert (exchange.api, exchange.ok) == ("openai.responses", True)
    assert some(exchange.request).stream
    assert exchange.reply is not None
    assert (exchange.reply.streamed, exchange.reply.finished, exchange.reply.faults) == (True, True, ())
