"""Responses over a WebSocket, through a real mitmdump: the vendor's SDK sees what the server said, and we judged it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.harness import PATIENCE, Proxy, running, wait_until
from tests.live.scenes import FOUND, PREAMBLE, TOOLS, Seen
from tests.live.vendors import QUESTION, response_seen
from tests.mock.client import parse_sse
from tests.selection import sampled
from wirelint.capture.offline import Checked, check
from wirelint.capture.readers import read
from wirelint.mock.answer import Pause
from wirelint.mock.service import Service

pytestmark = pytest.mark.live

openai = pytest.importorskip("openai")
server = pytest.importorskip("websockets.sync.server")
client = pytest.importorskip("websockets.sync.client")

DECLARED = [{"type": "function", "name": name, "parameters": one, "strict": False} for name, one in TOOLS.items()]
HANGS = "hangs"
"""A model that never says the end."""


def serve(socket: Any) -> None:
    """At `/v1/responses` the mock server's events, a message each; elsewhere an echo."""
    service, number = Service(seed=3), 0
    for message in socket:
        document = json.loads(message) if isinstance(message, str) and message.endswith("}") else {}
        if socket.request.path != "/v1/responses" or document.get("type") != "response.create":
            socket.send(message)
            continue
        number += 1
        hangs = document["model"] == HANGS
        asked = json.dumps({**document, "stream": True}).encode()
        answer = service.answer(number, "POST", "/v1/responses", {}, asked)
        events = parse_sse(b"".join(step for step in answer.steps if not isinstance(step, Pause)).decode())
        for _, data in events[:8] if hangs else events:
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


def ask(url: str, *models: str, headers: dict[str, str]) -> list[Seen]:
    """What the SDK makes of one response after the other on one socket."""
    made = []
    sdk = openai.OpenAI(base_url=f"{url}/v1", api_key="k")
    with sdk.responses.connect(extra_headers=headers) as connection:
        for model in models:
            connection.response.create(model=model, input=[{"role": "user", "content": QUESTION}], tools=DECLARED)
            for event in connection:
                if event.type == "response.completed":
                    made.append(response_seen(event.response))
                    break
    return made


def records_of(proxy: Proxy, test: str, count: int) -> list[dict[str, Any]]:
    def found() -> list[dict[str, Any]]:
        made = [one for one in proxy.records() if one["request"]["headers"].get("x-test-id") == test]
        return made if len(made) >= count else []

    return wait_until(found, f"{count} exchanges of {test}", proxy)


@pytest.mark.parametrize("repairs", [False, True], ids=["judging", "repairing"])
def test_exchanges_of_one_socket(
    upstream_url: str, judging: Proxy, repairs: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    models = ("acme-1", "mock/xml-leak+dialect=kimi_invoke_arg", "acme-1")
    direct = ask(upstream_url, *models, headers={})
    if repairs:
        folder = tmp_path_factory.mktemp("repairing")
        saved = folder / "saved.mitm"
        with running(folder, upstream_url, "wirelint_fix=unsafe", f"save_stream_file={saved}") as proxy:
            seen = ask(proxy.url, *models, headers={"x-test-id": "three"})
            records = records_of(proxy, "three", 3)
            proxy.stop()
        assert [call[1:] for call in seen[1].calls] == [("search_notes", FOUND)]
        assert seen[1].text == PREAMBLE + "\n\n"
        assert [seen[0], seen[2]] == [direct[0], direct[2]]
        delivered = [record.get("delivered", {}).get("body", "") for record in records]
        assert [bool(body) for body in delivered] == [False, True, False]
        told = [json.loads(line) for line in delivered[1].splitlines()]
        assert [one["sequence_number"] for one in told] == list(range(told[0]["sequence_number"], len(told)))
        assert "<invoke" not in delivered[1]
        assert [fix["name"] for fix in records[1]["fixes"]] == ["xml-leak"]
        (first, second, third) = (
            found.exchange for found in check(read([str(saved)]), ()) if isinstance(found, Checked)
        )
        assert None not in (first, third)
        assert second is not None  # mitmproxy's own file has what the client got
        assert second.reply is not None
        assert [call.name for call in second.reply.choices[0].calls] == ["search_notes"]
    else:
        seen = ask(judging.url, *models, headers={"x-test-id": "three"})
        records = records_of(judging, "three", 3)
        assert seen == direct
        assert [call[1:] for call in seen[0].calls] == [("search_notes", FOUND)]
        assert (seen[1].calls, seen[1].text.startswith(PREAMBLE)) == ((), True)
        assert [record for record in records if "delivered" in record] == []
    assert [record["api"] for record in records] == ["openai.responses"] * 3
    assert [record["end"] for record in records] == ["complete"] * 3
    assert [[one["name"] for one in record["findings"]] for record in records] == [[], ["xml-leak"], []]
    assert len({record["id"] for record in records}) == 3
    for record in records:
        assert record["request"]["url"].startswith("ws://127.0.0.1:")
        assert json.loads(record["request"]["body"])["type"] == "response.create"
        assert json.loads(record["response"]["body"].splitlines()[-1])["type"] == "response.completed"
        assert record.get("notes", []) == []


def test_who_leaves_in_the_middle_is_told(judging: Proxy) -> None:
    sdk = openai.OpenAI(base_url=f"{judging.url}/v1", api_key="k")
    with sdk.responses.connect(extra_headers={"x-test-id": "left"}) as connection:
        connection.response.create(model=HANGS, input=QUESTION)
        assert connection.recv().type == "response.created"
    (record,) = records_of(judging, "left", 1)
    assert (record["end"], record["error"].startswith("the client closed the socket")) == ("client-left", True)
    assert [one for one in record["findings"] if one["severity"] in ("error", "warning")] == []


@pytest.mark.parametrize("fix", sampled(["off", "unsafe"], 1))
def test_a_model_that_stands_still_is_reported_while_it_does(upstream_url: str, tmp_path: Path, fix: str) -> None:
    sdk_arguments = {"api_key": "k", "timeout": PATIENCE}
    with running(tmp_path, upstream_url, "wirelint_stall=1", f"wirelint_fix={fix}") as proxy:
        sdk = openai.OpenAI(base_url=f"{proxy.url}/v1", **sdk_arguments)
        with sdk.responses.connect(extra_headers={"x-test-id": "still"}) as connection:
            connection.response.create(model=HANGS, input=QUESTION)
            assert connection.recv().type == "response.created"
            wait_until(lambda: "stream-stall" in proxy.log, "the report", proxy)
            assert proxy.records() == []
        (record,) = records_of(proxy, "still", 1)
    assert (record["end"], [one["name"] for one in record["findings"]]) == ("client-left", ["stream-stall"])


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
    assert len(records_of(judging, "after", 1)) == 1
    assert len(judging.records()) == before + 1


@pytest.mark.parametrize("name", sampled(["exchanges.jsonl", "flows.mitm", "saved by mitmproxy"], 1))
def test_the_captures_are_judged_the_same(upstream_url: str, tmp_path: Path, name: str) -> None:
    saved = tmp_path / "saved.mitm"
    with running(tmp_path, upstream_url, f"save_stream_file={saved}") as proxy:
        ask(proxy.url, "acme-1", "mock/xml-leak", "mock/think-leak", headers={"x-test-id": "kept"})
        live = [(record["id"], one["name"]) for record in records_of(proxy, "kept", 3) for one in record["findings"]]
        proxy.stop()
    file = saved if name.startswith("saved") else proxy.capture(name)
    done = subprocess.run(
        [sys.executable, "-m", "wirelint", "check", "--output-format", "jsonl", str(file)],
        capture_output=True,
        timeout=PATIENCE * 3,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert [(one["exchange"], one["name"]) for one in map(json.loads, done.stdout.splitlines())] == live
    assert {name for _, name in live} == {"xml-leak", "think-leak"}
