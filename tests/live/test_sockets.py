"""Responses over a WebSocket, through a real mitmdump: the vendor's SDK, silence, ends, many messages at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.apis.talk_openai_responses import events, request, response
from tests.build import Assistant, Talk, User, checked, events_of, some
from tests.live.harness import PATIENCE, Proxy, running
from tests.live.scenes import FOUND, PREAMBLE, QUESTION, TOOLS, Seen
from tests.live.vendors import response_seen
from wirelint.capture.readers import read
from wirelint.mock.answer import Pause
from wirelint.mock.service import Service

server = pytest.importorskip("websockets.sync.server")
client = pytest.importorskip("websockets.sync.client")
ConnectionClosed = pytest.importorskip("websockets.exceptions").ConnectionClosed

# --- the server -------------------------------------------------------------------------------------------------------

DECLARED = [{"type": "function", "name": name, "parameters": one, "strict": False} for name, one in TOOLS.items()]
MARKUP = '<tool_call>\n{"name": "read_note", "arguments": {"id": 7}}\n</tool_call>'
NOTES = {"read_note": {"type": "object"}}
LEAK = Talk(text=f"A moment.\n\n{MARKUP}", tools=NOTES, step=6)
CLEAN = Talk(text="All is well.", step=4)
TOLD = [json.dumps({**event, "sequence_number": n}) for n, event in enumerate(events(response(LEAK), 6))]
HELD = next(n for n, one in enumerate(TOLD) if "tool" in one and ".delta" in one) + 1
"""Messages that have come when the markup has begun and is not over."""
ASKED: dict[str, str] = {}
"""The first message of each socket, as the server got it."""


def in_one_piece(socket: Any, messages: list[str] = TOLD, *, close: bool = False) -> None:
    with socket.protocol_mutex:
        for message in messages:
            socket.protocol.send_text(message.encode())
        if close:
            socket.protocol.send_close(1000)
        socket.socket.sendall(b"".join(socket.protocol.data_to_send()))


def silent_in_the_middle(socket: Any) -> None:
    for message in TOLD[:HELD]:
        socket.send(message)
    socket.recv(PATIENCE)  # the client has got what was held
    for message in TOLD[HELD:]:
        socket.send(message)
    socket.recv(PATIENCE)


def spaced_and_binary(socket: Any) -> None:
    for event in events(response(CLEAN), 4):
        socket.send(json.dumps(event, indent=2))
        socket.send(b"\0\1")
    socket.recv(PATIENCE)


def in_one_piece_and_stay(socket: Any) -> None:
    in_one_piece(socket)
    socket.recv(PATIENCE)


SCRIPTS: dict[str, Callable[[Any], None]] = {
    "in one piece": in_one_piece_and_stay,
    "in one piece with the end": lambda socket: in_one_piece(socket, close=True),
    "silent in the middle": silent_in_the_middle,
    "closed in the middle": lambda socket: in_one_piece(socket, TOLD[:HELD]),
    "spaced and binary": spaced_and_binary,
}


def serve(socket: Any) -> None:
    """Plays the script that `x-test-id` names; else the mock server's events at `/v1/responses`, elsewhere an echo."""
    name = socket.request.headers.get("x-test-id", "")
    if play := SCRIPTS.get(name.partition(":")[0]):
        ASKED[name] = socket.recv(PATIENCE)
        play(socket)
        return
    service, number = Service(seed=3), 0
    for message in socket:
        document = json.loads(message) if isinstance(message, str) and message.endswith("}") else {}
        if socket.request.path != "/v1/responses" or document.get("type") != "response.create":
            socket.send(message)
            continue
        number += 1
        asked = json.dumps({**document, "stream": True}).encode()
        answer = service.answer(number, "POST", "/v1/responses", {}, asked)
        for _, data in events_of(b"".join(step for step in answer.steps if not isinstance(step, Pause)).decode()):
            socket.send(data)


@pytest.fixture(scope="module")
def upstream_url() -> Iterator[str]:
    with server.serve(serve, "127.0.0.1", 0) as listening:
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.socket.getsockname()[1]}"
        listening.shutdown()
    thread.join(PATIENCE)


@pytest.fixture(scope="module")
def judging(upstream_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with running(tmp_path_factory.mktemp("sockets"), upstream_url) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def repairing(upstream_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    options = ("wirelint_fix=unsafe", "wirelint_hold=3")
    with running(tmp_path_factory.mktemp("sockets"), upstream_url, *options) as proxy:
        yield proxy


# --- the vendor's SDK -------------------------------------------------------------------------------------------------


def ask(url: str, *models: str, headers: dict[str, str]) -> list[Seen]:
    """What the SDK makes of one response after the other on one socket."""
    made = []
    sdk = pytest.importorskip("openai").OpenAI(base_url=f"{url}/v1", api_key="k")
    with sdk.responses.connect(extra_headers=headers) as connection:
        for model in models:
            connection.response.create(model=model, input=[{"role": "user", "content": QUESTION.text}], tools=DECLARED)
            for event in connection:
                if event.type == "response.completed":
                    made.append(response_seen(event.response))
                    break
    return made


MODELS = ("acme-1", "mock/xml-leak+dialect=kimi_invoke_arg", "acme-1")


def _three(proxy: Proxy) -> list[dict[str, Any]]:
    """The captures of the three exchanges of a socket."""
    records = proxy.wait_for_records("three", 3)
    assert [record["api"] for record in records] == ["openai.responses"] * 3
    assert [record["end"] for record in records] == ["complete"] * 3
    assert [[one["name"] for one in record["findings"]] for record in records] == [[], ["xml-leak"], []]
    assert len({record["id"] for record in records}) == 3
    for record in records:
        assert record["request"]["url"].startswith("ws://127.0.0.1:")
        assert json.loads(record["request"]["body"])["type"] == "response.create"
        assert json.loads(record["response"]["body"].splitlines()[-1])["type"] == "response.completed"
        assert record.get("notes", []) == []
    return records


def test_each_response_of_a_socket_is_an_exchange(upstream_url: str, judging: Proxy) -> None:
    seen = ask(judging.url, *MODELS, headers={"x-test-id": "three"})
    assert seen == ask(upstream_url, *MODELS, headers={})
    assert [call[1:] for call in seen[0].calls] == [("search_notes", FOUND)]
    assert (seen[1].calls, seen[1].text.startswith(PREAMBLE)) == ((), True)
    assert [record for record in _three(judging) if "delivered" in record] == []


def test_a_leaked_call_becomes_a_call(upstream_url: str, repairing: Proxy) -> None:
    direct = ask(upstream_url, *MODELS, headers={})
    seen = ask(repairing.url, *MODELS, headers={"x-test-id": "three"})
    assert [call[1:] for call in seen[1].calls] == [("search_notes", FOUND)]
    assert seen[1].text == PREAMBLE + "\n\n"
    assert [seen[0], seen[2]] == [direct[0], direct[2]]
    records = _three(repairing)
    delivered = [record.get("delivered", {}).get("body", "") for record in records]
    assert [bool(body) for body in delivered] == [False, True, False]
    told = [json.loads(line) for line in delivered[1].splitlines()]
    assert [one["sequence_number"] for one in told] == list(range(told[0]["sequence_number"], len(told)))
    assert "<invoke" not in delivered[1]
    assert [fix["name"] for fix in records[1]["fixes"]] == ["xml-leak"]


def test_other_sockets_pass_untouched(judging: Proxy) -> None:
    messages = ['{"type": "response.create", "response": {"modalities": ["text"]}}', b"\x00\xff" * 900, "no JSON", "{}"]
    before = len(judging.records())
    url = judging.url.replace("http", "ws")
    with client.connect(f"{url}/v1/realtime", additional_headers={"x-test-id": "other"}) as socket:
        for message in messages:
            socket.send(message)
            assert socket.recv(PATIENCE) == message
    with client.connect(f"{url}/v1/responses", additional_headers={"x-test-id": "late"}) as socket:
        for message in ("{", '"response.create"', '{"type": "response.cancel"}'):
            socket.send(message)
            assert socket.recv(PATIENCE) == message
    assert ask(judging.url, "acme-1", headers={"x-test-id": "after"})
    assert len(judging.wait_for_records("after")) == 1
    assert len(judging.records()) == before + 1


# --- messages ---------------------------------------------------------------------------------------------------------


def talk_to(proxy: Proxy, test: str, talk: Talk, count: int | None = None, then: str = "") -> list[Any]:
    """What the client gets until the response or the socket is over. After `count` messages it sends `then`."""
    got: list[Any] = []
    url = proxy.url.replace("http", "ws")
    with client.connect(f"{url}/v1/responses", additional_headers={"x-test-id": test}) as socket:
        socket.send(json.dumps({"type": "response.create", **request(talk)}))
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


@pytest.mark.parametrize("name", ["in one piece", "in one piece with the end"])
def test_messages_that_come_together_leave_in_order(repairing: Proxy, name: str) -> None:
    got = talk_to(repairing, name, LEAK)
    told = [json.loads(one) for one in got]
    assert told[-1]["type"] == "response.completed"
    numbers = [one["sequence_number"] for one in told]
    assert numbers == list(range(numbers[0], numbers[0] + len(told)))
    assert text_of(got) == "A moment.\n\n"
    assert [one["type"] for one in told[-1]["response"]["output"]] == ["message", "function_call"]
    (record,) = repairing.wait_for_records(name)
    assert record["delivered"]["body"].splitlines() == got
    assert record["response"]["body"].splitlines() == TOLD
    assert record["end"] == "complete"


def test_held_messages_leave_while_the_server_is_silent(repairing: Proxy) -> None:
    got = talk_to(repairing, "silent in the middle", LEAK, HELD, "go on")
    assert got[:HELD] == TOLD[:HELD]
    assert "<tool_call>" in text_of(got)
    assert any("was held for" in note for note in repairing.wait_for_records("silent in the middle")[0]["notes"])


def test_held_messages_leave_before_the_socket_closes(repairing: Proxy) -> None:
    assert talk_to(repairing, "closed in the middle", LEAK) == TOLD[:HELD]
    assert repairing.wait_for_records("closed in the middle")[0]["end"] == "upstream-died"


def test_messages_without_a_fault_leave_as_they_came(repairing: Proxy) -> None:
    got = talk_to(repairing, "spaced and binary", CLEAN)
    sent = [one for event in events(response(CLEAN), 4) for one in (json.dumps(event, indent=2), b"\0\1")]
    assert got == sent[: len(got)]
    assert len(got) == len(sent) - 1
    assert "delivered" not in repairing.wait_for_records("spaced and binary")[0]


def test_a_request_is_repaired(repairing: Proxy) -> None:
    history = (User("Read it."), Assistant("Which?"), User("[{'type': 'text', 'text': 'the first one'}]"))
    test = "in one piece:asked"
    talk_to(repairing, test, Talk(history, tools=NOTES))
    (record,) = repairing.wait_for_records(test)
    assert record["forwarded"]["body"] == ASKED[test]
    assert record["fixes"][0]["side"] == "request"
    assert [one["content"][0]["text"] for one in json.loads(ASKED[test])["input"]][-1] == "the first one"


def test_the_flows_of_mitmproxy_have_what_the_client_got(upstream_url: str, tmp_path: Path) -> None:
    saved = tmp_path / "saved.mitm"
    with running(tmp_path, upstream_url, "wirelint_fix=unsafe", f"save_stream_file={saved}") as proxy:
        ask(proxy.url, *MODELS, headers={"x-test-id": "three"})
        proxy.wait_for_records("three", 3)
    replies = [some(some(one.exchange).reply) for one in checked(read([str(saved)]), ())]
    assert [call.name for one in replies for choice in one.choices for call in choice.calls] == ["search_notes"] * 3
