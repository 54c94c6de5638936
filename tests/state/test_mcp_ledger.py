"""What is remembered of servers of tools: which tools are whose, which calls passed, and within which bounds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.build import read
from tests.rules.mcp import QUERY, call, called, error, introduced, listed, note, post, result, text
from tests.tables import rows, tables
from wirelint.model import Tool
from wirelint.state.mcp_ledger import McpLedger, Passed

SEARCH = Tool("search", "/tools/0", "Search the wiki.", QUERY)
SERVED = {"search": ("Search the wiki.", QUERY)}


def wire(records: Iterable[Mapping[str, Any]], **bounds: int) -> McpLedger:
    made = McpLedger(**bounds)
    for number, record in enumerate(records):
        made.record(read(record, number))
    return made


def facts(passed: Passed) -> tuple[str, str, bool | None, bool]:
    return passed.name, passed.text, passed.error, passed.answered


ANSWERS = {
    "a result": (called("search", {}, "2 hits"), ("search", "2 hits", None, True)),
    "a failure": (called("search", {}, text("no", is_error=True)), ("search", "no", True, True)),
    "an error of the protocol": (
        post(call("search"), error("Unknown tool", 2)),
        ("search", "Unknown tool", True, True),
    ),
    "another id": (post(call("search"), result(text("x"), 3)), ("search", "", None, False)),
    "nothing": (post(call("search"), "", status=202), ("search", "", None, False)),
}


@pytest.mark.parametrize(("record", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_what_came_of_a_call(record: dict[str, Any], expected: Any) -> None:
    (passed,) = wire([record]).passed("search", None)
    assert facts(passed) == expected


# name, description, schema (or `QUERY`) of a tool that a model is offered, whether the server's `search` is meant
@rows(tables(__file__)["same"])
def test_whether_a_tool_is_the_server_s(name: str, described: str, parameters: Any, same: bool) -> None:
    tool = Tool(name, "/tools/0", described, QUERY if parameters == "QUERY" else parameters)
    url = "http://intranet.test:8765/mcp"
    known = wire([introduced("acme-wiki", url=url), listed(SERVED, url=url), called("search", {}, "x", url=url)])
    assert bool(known.serving(tool.name, tool)) == same
    assert bool(known.passed(tool.name, tool)) == same


def test_a_call_of_an_undeclared_tool_goes_by_its_name() -> None:
    known = wire([listed(SERVED), called("search", {}, "x")])
    assert known.passed("search", None)
    assert not known.passed("web_search", None)


def test_ids_are_those_of_a_session() -> None:
    """Two clients begin to count at the same number; each gets its own answer, on a stream that ends later."""
    asked = [post(call("search", id_=1), "", status=202, headers={"mcp-session-id": one}) for one in ("a", "b")]
    opens = {"accept": "text/event-stream"}
    heard = [
        post(None, [result(text(f"for {one}"), 1)], stream=True, method="GET", headers={"mcp-session-id": one, **opens})
        for one in ("b", "a")
    ]
    assert [passed.text for passed in wire([*asked, *heard]).passed("search", None)] == ["for a", "for b"]


def test_the_older_transport_is_put_together() -> None:
    base = "http://127.0.0.1:8765"
    asked = post(call("search", id_=4), "Accepted", status=202, url=f"{base}/messages/?session_id=7c")
    answer = json.dumps(result(text("3 hits"), 4))
    stream = f"event: endpoint\ndata: /messages/?session_id=7c\n\nevent: message\ndata: {answer}\n\n"
    heard = {
        "request": {"method": "GET", "url": f"{base}/sse", "headers": {"accept": "text/event-stream"}},
        "response": {"headers": {"content-type": "text/event-stream"}, "body": stream},
    }
    other = {**heard, "response": {**heard["response"], "body": stream.replace("7c", "8d").replace("3 hits", "9 hits")}}
    (passed,) = wire([asked, other, heard]).passed("search", None)
    assert facts(passed) == ("search", "3 hits", None, True)


def test_each_call_of_a_batch_gets_its_result() -> None:
    asked = [call("search", {"query": "a"}, 1), note(), call("search", {"query": "b"}, 2)]
    known = wire([post(asked, [result(text("for b"), 2), result(text("for a"), 1)])])
    assert [passed.text for passed in known.passed("search", None)] == ["for a", "for b"]


def test_something_passed_unread() -> None:
    lost = post(call("search"), "", end="unread")
    known = wire([listed(SERVED)])
    assert known.is_read(known.serving("search", SEARCH)[0])
    known.record(read(lost))
    assert not known.is_read(known.serving("search", SEARCH)[0])


def test_the_ledger_is_bounded() -> None:
    many = [called("search", {"n": n}, "x" * 100, n) for n in range(50)]
    assert len(wire(many, max_calls=10).passed("search", None)) == 10
    kept = wire(many, max_text=1000).passed("search", None)
    assert [passed.exchange for passed in kept] == [f"test:{n}" for n in range(40, 50)]
    servers = wire([listed(SERVED, url=f"http://h{n}.test/mcp") for n in range(20)], max_servers=5)
    assert len(servers.serving("search", SEARCH)) == 5
    waiting = wire([post(call("search", id_=n), "", status=202) for n in range(30)], max_calls=3)
    assert [bool(waiting.waits(read(post(note(), "")), str(n))) for n in (0, 29)] == [False, True]
