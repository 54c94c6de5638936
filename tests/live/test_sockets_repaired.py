"""The repair of exchanges over a WebSocket through a real mitmdump: silence, ends, many messages at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apis.talk_openai_responses import events, request, response
from tests.build import Assistant, Talk, User
from tests.live.harness import PATIENCE, Proxy, running, wait_until

pytestmark = pytest.mark.live

server = pytest.importorskip("websockets.sync.server")
client = pytest.importorskip("websockets.sync.client")
ConnectionClosed = pytest.importorskip("websockets.exceptions").ConnectionClosed

MARKUP = '<tool_call>\n{"name": "read_note", "arguments": {"id": 7}}\n</tool_call>'
LEAK = Talk(text=f"A moment.\n\n{MARKUP}", tools={"read_note": {"type": "object"}}, step=6)
CLEAN = Talk(text="All is well.", step=4)
TOLD = [json.dumps({**event, "sequence_number": n}) for n, event in enumerate(events(response(LEAK), 6))]
HELD = next(n for n, one in enumerate(TOLD) if "tool" in one and ".delta" in one) + 1
"""How many messages have come when the markup has begun and is not over."""


def all_at_once(socket: Any, messages: list[str]) -> None:
    with socket.protocol_mutex:
        for message in messages:
            socket.protocol.send_text(message.encode())
        socket.socket.sendall(b"".join(socket.protocol.data_to_send()))


def in_one_piece(socket: Any) -> None:
    all_at_once(socket, TOLD)
    socket.recv(PATIENCE)


def in_one_piece_with_the_end(socket: Any) -> None:
    with socket.protocol_mutex:
        for message in TOLD:
            socket.protocol.send_text(message.encode())
        socket.protocol.send_close(1000)
        socket.socket.sendall(b"".join(socket.protocol.data_to_send()))


def silent_in_the_middle(socket: Any) -> None:
    for message in TOLD[:HELD]:
        socket.send(message)
    socket.recv(PATIENCE)  # the client has got what was held
    for message in TOLD[HELD:]:
        socket.send(message)
    socket.recv(PATIENCE)


def closed_in_the_middle(socket: Any) -> None:
    all_at_once(socket, TOLD[:HELD])


def spaced_and_binary(socket: Any) -> None:
    for event in events(response(CLEAN), 4):
        socket.send(json.dumps(event, indent=2))
        socket.send(b"\0\1")
    socket.recv(PATIENCE)


SCRIPTS: dict[str, Callable[[Any], None]] = {
    one.__name__: one
    for one in (in_one_piece, in_one_piece_with_the_end, silent_in_the_middle, closed_in_the_middle, spaced_and_binary)
}
ASKED: dict[str, str] = {}


def serve(socket: Any) -> None:
    asked = socket.recv(PATIENCE)
    name = socket.request.headers["x-test-id"]
    ASKED[name] = asked
    SCRIPTS[name.partition(":")[0]](socket)


@pytest.fixture(scope="module")
def repairing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with server.serve(serve, "127.0.0.1", 0) as listening:
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.socket.getsockname()[1]}"
        options = ("wirelint_fix=unsafe", "wirelint_hold=3", "wirelint_max_body=65536")
        with running(tmp_path_factory.mktemp("sockets"), url, *options) as proxy:
            yield proxy
        listening.shutdown()
    thread.join(PATIENCE)


def asks(talk: Talk) -> str:
    return json.dumps({"type": "response.create", **request(talk)})


def talk_to(proxy: Proxy, test: str, asked: str, count: int | None = None, then: str = "") -> list[Any]:
    """What the client gets: until the response is over, or the socket; after `count` messages it says `then`."""
    got: list[Any] = []
    url = proxy.url.replace("http", "ws")
    with client.connect(f"{url}/v1/responses", additional_headers={"x-test-id": test}) as socket:
        socket.send(asked)
        try:
            while True:
                got.append(socket.recv(PATIENCE))
                if len(got) == count:
                    socket.send(then)
                if isinstance(got[-1], str) and '"response.completed"' in got[-1]:
                    return got
        except ConnectionClosed:
            return got


def text_of(got: list[Any]) -> str:
    documents = [json.loads(one) for one in got if isinstance(one, str)]
    return "".join(one["delta"] for one in documents if one["type"] == "response.output_text.delta")


def record_of(proxy: Proxy, test: str) -> dict[str, Any]:
    def found() -> list[dict[str, Any]]:
        return [one for one in proxy.records() if one["request"]["headers"].get("x-test-id") == test]

    return wait_until(found, test, proxy)[0]


@pytest.mark.parametrize("name", ["in_one_piece", "in_one_piece_with_the_end"])
def test_what_comes_together_leaves_in_order(repairing: Proxy, name: str) -> None:
    got = talk_to(repairing, name, asks(LEAK))
    told = [json.loads(one) for one in got]
    assert told[-1]["type"] == "response.completed"
    numbers = [one["sequence_number"] for one in told]
    assert numbers == list(range(numbers[0], numbers[0] + len(told)))
    assert text_of(got) == "A moment.\n\n"
    assert [one["type"] for one in told[-1]["response"]["output"]] == ["message", "function_call"]
    record = record_of(repairing, name)
    assert record["delivered"]["body"].splitlines() == got
    assert record["response"]["body"].splitlines() == TOLD
    assert record["end"] == "complete"


def test_what_is_held_leaves_while_the_server_is_silent(repairing: Proxy) -> None:
    got = talk_to(repairing, "silent_in_the_middle", asks(LEAK), HELD, "go on")
    assert got[:HELD] == TOLD[:HELD]
    assert "<tool_call>" in text_of(got)
    record = record_of(repairing, "silent_in_the_middle")
    assert any("was held for" in note for note in record["notes"])


def test_what_is_held_leaves_before_the_socket_closes(repairing: Proxy) -> None:
    assert talk_to(repairing, "closed_in_the_middle", asks(LEAK)) == TOLD[:HELD]
    assert record_of(repairing, "closed_in_the_middle")["end"] == "upstream-died"


def test_what_is_not_repaired_leaves_as_it_came(repairing: Proxy) -> None:
    got = talk_to(repairing, "spaced_and_binary", asks(CLEAN))
    sent = [one for event in events(response(CLEAN), 4) for one in (json.dumps(event, indent=2), b"\0\1")]
    assert got == sent[: len(got)]
    assert len(got) == len(sent) - 1
    assert "delivered" not in record_of(repairing, "spaced_and_binary")


def test_the_request_is_repaired(repairing: Proxy) -> None:
    history = (User("Read it."), Assistant("Which?"), User("[{'type': 'text', 'text': 'the first one'}]"))
    test = "in_one_piece:asked"
    talk_to(repairing, test, asks(Talk(history, tools={"read_note": {"type": "object"}})))
    record = record_of(repairing, test)
    assert record["forwarded"]["body"] == ASKED[test]
    assert record["fixes"][0]["side"] == "request"
    assert [one["content"][0]["text"] for one in json.loads(ASKED[test])["input"]][-1] == "the first one"


def test_a_large_request_passes_unread(repairing: Proxy) -> None:
    test, asked = "in_one_piece:large", asks(Talk((User("x" * 70_000),)))
    assert talk_to(repairing, test, asked) == TOLD
    assert ASKED[test] == asked
    record = record_of(repairing, test)
    assert (record["api"], record["end"], record["request"]["body"]) == ("openai.responses", "unread", None)
    assert "wirelint_max_body" in record["notes"][0]


def test_the_capture_is_repaired_the_same_offline(repairing: Proxy, tmp_path: Path) -> None:
    from wirelint.capture.offline import Fixed, fix
    from wirelint.capture.readers import read
    from wirelint.fix import FixPolicy
    from wirelint.registry import Registry

    talk_to(repairing, "in_one_piece:kept", asks(LEAK))
    live = record_of(repairing, "in_one_piece:kept")
    made = fix(read([str(repairing.capture("exchanges.jsonl"))]), Registry.load().select(()), FixPolicy("unsafe"))
    (same,) = [one.record for one in made if isinstance(one, Fixed) and one.record.id == live["id"]]
    assert same.delivered is not None
    assert same.delivered.body is not None
    assert same.delivered.body.decode() == live["delivered"]["body"]
