"""The example policies between a real client and a real server of tools, and between a model that guesses and its client.

The server searches a workspace on disk, as its tool describes: it fails for a workspace that is none and finds nothing in a
directory that is not there. Its own log tells what it was asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="takes the package of the protocol")

from tests.live.harness import SCRIPT, Proxy, Upstream, post, replying, running, scripted, wait_until
from tests.live.mcp_peers import TRANSPORTS, Transport, in_session, serving, text_of
from tests.rules import mcp
from tests.selection import sampled
from wirelint.rule import excerpt

EXAMPLE = Path(__file__).resolve().parents[2] / "addons" / "policies.toml"
BLOCK = """
[[policy]]
name = "nothing of the payroll"
tools = "search_notes"
arguments = "query"
not-one-of = ["payroll"]
action = "block"
"""


@dataclass
class Notes:
    """A workspace, the server's tool over it, and what that was asked."""

    workspace: Path
    asked: list[dict[str, Any]] = field(default_factory=list)

    def add_tools(self, server: Any) -> None:
        def search_notes(query: str, workspace: str = "", subWorkspace: str | None = None) -> str:  # noqa: N803
            """Search the notes of a workspace, or of one of its directories."""
            self.asked.append({"query": query, "workspace": workspace, "subWorkspace": subWorkspace})
            root = Path(workspace)
            if not root.is_absolute() or not root.is_dir():
                raise ValueError(f"there is no workspace {workspace}")
            files = (root / (subWorkspace or "")).rglob("*.md")
            found = sorted(path.name for path in files if query in path.read_text())
            return f"{len(found)} found: {', '.join(found)}"

        server.tool()(search_notes)


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    workspace = tmp_path_factory.mktemp("notes")
    for name, text in {
        "letters/tides.md": "harbour dues",
        "plans/quay.md": "harbour wall",
        "plans/pay.md": "pay",
    }.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text)
    return Notes(workspace)


@pytest.fixture(scope="module", params=sampled(TRANSPORTS, 1))
def transport(request: pytest.FixtureRequest) -> Transport:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def tools_url(transport: Transport, notes: Notes) -> Iterator[str]:
    with serving(transport, notes.add_tools) as url:
        yield url


@pytest.fixture(scope="module")
def policing(notes: Notes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("policing")
    policies = folder / "policies.toml"
    policies.write_text(EXAMPLE.read_text().replace("/srv/notes", str(notes.workspace)) + BLOCK)
    with running(folder, "", "wirelint_fix=unsafe", f"wirelint_policy={policies}") as proxy:
        yield proxy


def call(url: str, proxy: str, **arguments: Any) -> Any:
    """The result of a call, as the client of the protocol has it."""
    return in_session(url, proxy, lambda session: session.call_tool("search_notes", arguments))


def is_error(result: Any) -> bool:
    return bool(result.isError if hasattr(result, "isError") else result.is_error)


CALLS: dict[str, tuple[dict[str, Any], str]] = {
    # what the client asks: what it gets
    "a workspace that was guessed": ({"query": "harbour", "workspace": "default"}, "2 found: quay.md, tides.md"),
    "both": ({"query": "harbour", "workspace": "null", "subWorkspace": "harbour"}, "2 found: quay.md, tides.md"),
    "a directory that is there": (
        {"query": "harbour", "workspace": "WORKSPACE", "subWorkspace": "plans"},
        "1 found: quay.md",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_reaches_the_server_with_what_is_true(name: str, notes: Notes, tools_url: str, policing: Proxy) -> None:
    given, wanted = CALLS[name]
    arguments = {key: value.replace("WORKSPACE", str(notes.workspace)) for key, value in given.items()}
    notes.asked.clear()
    assert text_of(call(tools_url, policing.url, **arguments)) == wanted
    (asked,) = notes.asked
    assert asked["workspace"] == str(notes.workspace)
    assert asked["subWorkspace"] in (None, "plans")


def test_a_blocked_call_never_reaches_the_server(
    notes: Notes, tools_url: str, policing: Proxy, transport: Transport
) -> None:
    notes.asked.clear()
    result = call(tools_url, policing.url, query="payroll", workspace=str(notes.workspace))
    assert notes.asked == []
    assert is_error(result)
    assert text_of(result).startswith("wirelint blocked a call of `search_notes`: policy nothing of the payroll")


def test_both_sides_of_a_changed_call_are_kept(notes: Notes, tools_url: str, policing: Proxy) -> None:
    call(tools_url, policing.url, query="kept", workspace="default")
    records = wait_until(
        lambda: [record for record in policing.records() if "kept" in (record["request"]["body"] or "")],
        "the capture",
        policing,
    )
    assert "default" in records[-1]["request"]["body"]
    assert str(notes.workspace) in records[-1]["forwarded"]["body"]
    assert [fix["title"] for fix in records[-1]["fixes"]] == [
        f"search_notes: replaced workspace by {excerpt(str(notes.workspace))}"
    ]


def document(value: Any) -> tuple[bytes, str]:
    return json.dumps(value).encode(), "application/json"


BLOCKED, OTHER, LIST = mcp.call("search_notes", {"query": "payroll"}, 1), mcp.note(), mcp.request("tools/list", 3)
LISTED = mcp.result({"tools": []}, 3)
BATCHES: dict[str, tuple[list[Any], list[Any], tuple[bytes, str], list[Any]]] = {
    # the batch, what the server gets of it, its reply, the ids of the answers that the client gets
    "an array": ([BLOCKED, OTHER, LIST], [OTHER, LIST], document([LISTED]), [1, 3]),
    "a document": ([LIST, BLOCKED], [LIST], document(LISTED), [1, 3]),
    "a stream": (
        [BLOCKED, LIST], [LIST], (f"event: message\ndata: {json.dumps(LISTED)}\n\n".encode(), "text/event-stream"), [1, 3]
    ),
    "nothing in answer": ([BLOCKED, OTHER], [OTHER], (b"", "text/plain"), [1]),
    "all are blocked": ([BLOCKED, {**BLOCKED, "id": 4}], [], document([]), [1, 4]),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(list(BATCHES), 3))
def test_each_message_of_a_batch_gets_its_answer(name: str, policing: Proxy, upstream: Upstream) -> None:
    batch, sent, (body, kind), ids = BATCHES[name]
    heard: list[Any] = []
    answer = replying([body], status=200 if body else 202, content_type=kind)
    upstream.scripts[name] = scripted(lambda peer: heard.append(json.loads(peer.body)), answer)
    headers = {"accept": "application/json, text/event-stream", SCRIPT: name, "x-test-id": name}
    reply = post(policing.port, f"{upstream.url}/mcp", batch, headers)
    assert heard == ([sent] if sent else [])
    assert (reply.status, reply.complete) == (200, True)
    text = reply.body.decode()
    answers = [
        json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith(("data", "[", "{"))
    ]
    answers = answers[0] if isinstance(answers[0], list) else answers
    assert sorted(one["id"] for one in answers) == ids
    assert all(one["result"]["isError"] for one in answers if one["id"] in (1, 4))
    record = policing.wait_for_record(name)
    if sent:
        assert (json.loads(record["forwarded"]["body"]), record["delivered"]["body"]) == (sent, text)
        assert ((record["response"]["body"] or "").encode(), len(record["fixes"])) == (body, 1)
