"""A blocked call in a batch: the other messages reach the server, and the client gets an answer to each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.harness import SCRIPT, Peer, Proxy, Upstream, post, replying, running
from tests.rules.mcp import call, error, note, request, result

pytestmark = [pytest.mark.live, pytest.mark.complete]

POLICY = """
[[policy]]
name = "nothing of the payroll"
tools = "search_notes"
arguments = "query"
not-one-of = ["payroll"]
action = "block"
"""
BLOCKED = call("search_notes", {"query": "payroll"}, 1)
OTHER = call("search_notes", {"query": "harbour"}, 2)
LISTED = result({"tools": []}, 3)


@pytest.fixture(scope="module")
def policing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("batches")
    (folder / "policies.toml").write_text(POLICY)
    options = ("wirelint_fix=unsafe", f"wirelint_policy={folder / 'policies.toml'}")
    with running(folder, "", *options) as proxy:
        yield proxy


def whole(document: Any) -> tuple[bytes, str]:
    return json.dumps(document).encode(), "application/json"


def streamed(*documents: Any) -> tuple[bytes, str]:
    events = (f"event: message\ndata: {json.dumps(one)}\n\n" for one in documents)
    return "".join(events).encode(), "text/event-stream"


BATCHES: dict[str, tuple[list[Any], list[Any] | None, tuple[bytes, str], list[Any]]] = {
    # the batch, what the server gets of it, its reply, the ids of the answers that the client gets
    "an array": (
        [BLOCKED, OTHER, request("tools/list", 3)],
        [OTHER, request("tools/list", 3)],
        whole([result({"content": []}, 2), LISTED]),
        [1, 2, 3],
    ),
    "a document": ([request("tools/list", 3), BLOCKED], [request("tools/list", 3)], whole(LISTED), [1, 3]),
    "a stream": ([BLOCKED, request("tools/list", 3)], [request("tools/list", 3)], streamed(LISTED), [1, 3]),
    "nothing in answer": ([BLOCKED, note()], [note()], (b"", "text/plain"), [1]),
    "all are blocked": ([BLOCKED, {**BLOCKED, "id": 4}], None, whole([]), [1, 4]),
    "none is blocked": ([OTHER, note()], [OTHER, note()], whole([error("busy", 2)]), [2]),
}


@pytest.mark.parametrize("name", BATCHES)
def test_each_message_finds_its_answer(name: str, policing: Proxy, upstream: Upstream) -> None:
    batch, sent, (body, kind), ids = BATCHES[name]
    asked: list[Any] = []

    def script(peer: Peer) -> None:
        asked.append(json.loads(peer.body))
        replying([body], status=200 if body else 202, content_type=kind)(peer)

    upstream.scripts[name] = script
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json", SCRIPT: name}
    reply = post(policing.port, f"{upstream.url}/mcp", json.dumps(batch).encode(), {**headers, "x-test-id": name})
    assert asked == ([sent] if sent is not None else [])
    assert (reply.status, reply.complete) == (200, True)
    text = reply.body.decode()
    if kind == "text/event-stream":
        answers = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data")]
    else:
        told = json.loads(text)
        answers = told if isinstance(told, list) else [told]
    assert sorted(one["id"] for one in answers) == ids
    ours = [one for one in answers if one["id"] in (1, 4)]
    assert all(one["result"]["isError"] for one in ours)
    record = policing.wait_for_record(name)
    if sent is not None and sent != batch:
        assert json.loads(record["forwarded"]["body"]) == sent
        assert record["delivered"]["body"] == text
        assert (record["response"]["body"] or "") == body.decode()
        assert [fix["name"] for fix in record["fixes"]] == ["placeholder-argument"]
    else:
        assert "delivered" not in record
