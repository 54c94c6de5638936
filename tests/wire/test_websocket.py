"""Messages of a socket and the exchanges that they make."""

from __future__ import annotations

import pytest

from tests.build import read
from wirelint.wire.websocket import as_line, closes, opens, socket_url, turns

ASK = b'{"type": "response.create", "model": "acme-1", "input": "Hi"}'
BEGUN = b'{"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}'
OVER = b'{"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": []}}'

OPENERS = {
    "a request": (ASK, True),
    "written on several lines": (b'{\n  "type": "response.create",\n  "input": []\n}', True),
    "another event of the client": (b'{"type": "response.cancel"}', False),
    "one that speaks of it": (b'{"type": "note", "text": "response.create"}', False),
    "the word in a text": (b'{"type": "note", "text": "\\"response.create\\""}', False),
    "no object": (b'"response.create"', False),
    "cut off": (b'{"type": "response.create", "input": "H', False),
}
CLOSERS = {
    "completed": (OVER, True),
    "failed": (b'{"type":"response.failed","response":{}}', True),
    "incomplete": (b'{"response": {}, "type": "response.incomplete"}', True),
    "an error": (b'{"type": "error", "status": 429, "error": {"message": "slow down"}}', True),
    "begun": (BEGUN, False),
    "its output": (
        b'{"type": "response.output_text.delta", "delta": "\\"response.completed\\" or \\"error\\""}',
        False,
    ),
    "an error that is null": (b'{"type": "response.created", "response": {"error": null}}', False),
}


@pytest.mark.parametrize(("message", "expected"), OPENERS.values(), ids=OPENERS)
def test_what_opens(message: bytes, expected: bool) -> None:
    assert opens(message) is expected


@pytest.mark.parametrize(("message", "expected"), CLOSERS.values(), ids=CLOSERS)
def test_what_closes(message: bytes, expected: bool) -> None:
    assert closes(message) is expected


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


def test_a_message_is_one_line() -> None:
    assert as_line(b'{\r\n "a": "x\\ny"\n}') == b'{   "a": "x\\ny" }\n'


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.test/v1/responses", "wss://a.test/v1/responses"),
        ("http://a:1/x", "ws://a:1/x"),
        ("wss://a/", "wss://a/"),
    ],
)
def test_the_url(url: str, expected: str) -> None:
    assert socket_url(url) == expected


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
    assert exchange.request is not None
    assert exchange.request.stream
    assert exchange.reply is not None
    assert (exchange.reply.streamed, exchange.reply.finished, exchange.reply.faults) == (True, True, ())
