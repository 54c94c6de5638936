"""Policies on calls to MCP servers: the request is changed, or answered instead of the server."""

from __future__ import annotations

import json
from typing import Any

from tests.build import as_record, exchange, read, some
from tests.fixes.drive import SAFE, UNSAFE
from tests.policy.test_repairs import POLICIES, WORKSPACE, rule
from tests.tables import rows, tables
from wirelint.engine import Engine
from wirelint.fix import NO_FIXES, FixPolicy
from wirelint.rewrite.edits import apply
from wirelint.rewrite.request import answer_request, mend_request
from wirelint.state.ledger import Ledger

DROP, NULL, BLOCK = (POLICIES[name] for name in ("drop", "null", "block"))


def message(arguments: Any, name: str = "lookup", id_: Any = 7) -> dict[str, Any]:
    params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}


def record(body: Any) -> dict[str, Any]:
    made = exchange("/mcp", {}, {"jsonrpc": "2.0", "id": 7, "result": {"content": []}})
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    return {**made, "request": {**made["request"], "headers": headers, "body": json.dumps(body)}}


def mended(text: str, body: Any, permit: FixPolicy = UNSAFE) -> tuple[Any, list[tuple[str, str]]]:
    made = as_record(record(body))
    result = mend_request(read(record(body)), made.request_body or b"", [rule(text)], Ledger(), permit)
    assert result.faults == ()
    again = mend_request(read(record(json.loads(result.body))), result.body, [rule(text)], Ledger(), permit)
    assert again.body is result.body
    return json.loads(result.body), [(repair.safety, repair.title) for repair in result.repairs]


@rows(tables(__file__)["changes"])
def test_a_call_is_changed_before_it_is_sent(names: list[str], given: Any, wanted: Any, titles: list[str]) -> None:
    text = "".join(POLICIES[name] for name in names)
    body, repairs = mended(text, message(given))
    assert body == message(wanted)
    assert [title for _, title in repairs] == [f"lookup: {title}" for title in titles]
    findings = Engine([rule(text)]).check(read(record(message(given))))
    assert [finding.side for finding in findings] == ["request"] * len(titles)
    assert all(finding.fix is not None for finding in findings)


def test_each_call_of_a_batch_is_changed() -> None:
    batch = [
        message({"shelf": "Harbour"}, id_=1),
        message({"shelf": "letters"}, id_=2),
        message({"shelf": "x"}, id_="3"),
    ]
    body, repairs = mended(DROP, batch)
    assert body == [message({}, id_=1), message({"shelf": "letters"}, id_=2), message({}, id_="3")]
    assert len(repairs) == 2


def test_only_permitted_changes_are_made() -> None:
    given = message({"workspace": "x", "shelf": "Harbour"})
    assert mended(WORKSPACE + DROP, given, SAFE) == (
        message({"workspace": "/srv/kb", "shelf": "Harbour"}),
        [("safe", "lookup: replaced workspace by /srv/kb")],
    )
    assert mended(WORKSPACE + DROP, given, NO_FIXES) == (given, [])


def test_other_bytes_of_a_request_stay() -> None:
    given = b'{"a" : 1.50,"shelf":"x"}'
    text = b'{"jsonrpc":"2.0", "id": 7,"method":"tools/call","params":{"name":"lookup","arguments":' + given + b"}}"
    head = read({**record({}), "request": {**record({})["request"], "body": text.decode()}})
    body = mend_request(head, text, [rule(NULL)], Ledger(), UNSAFE).body
    assert body == text.replace(b'"shelf":"x"', b'"shelf":null')


def test_a_blocked_call_is_answered_instead_of_the_server() -> None:
    head = read(record(message({"shelf": "Harbour"}, id_="a")))
    answer = some(answer_request(head, [rule(BLOCK)], Ledger(), UNSAFE).answer)
    document: Any = answer.document
    assert document["id"] == "a"
    assert document["result"]["isError"] is True
    (block,) = document["result"]["content"]
    assert block["text"].startswith("wirelint blocked a call of `lookup`: policy a shelf: ")
    assert answer.repair.safety == "unsafe"


UNANSWERED: dict[str, tuple[Any, FixPolicy]] = {
    "a call that may pass": (message({"shelf": "letters"}), UNSAFE),
    "another method": ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, UNSAFE),
    "a batch that may pass": ([message({"shelf": "letters"})], UNSAFE),
    "only what is safe": (message({"shelf": "Harbour"}), SAFE),
    "nothing": (message({"shelf": "Harbour"}), NO_FIXES),
}


@rows(UNANSWERED)
def test_other_requests_are_sent(body: Any, permit: FixPolicy) -> None:
    head = read(record(body))
    assert answer_request(head, [rule(BLOCK)], Ledger(), permit).answer is None
    assert mend_request(head, b"{}", [rule(BLOCK)], Ledger(), permit).body == b"{}"


def test_of_a_batch_the_rest_is_sent() -> None:
    blocked, other = message({"shelf": "Harbour"}, id_=1), message({"shelf": "letters"}, id_=2)
    answer = some(answer_request(read(record([other, blocked, blocked])), [rule(BLOCK)], Ledger(), UNSAFE).answer)
    assert [one["id"] for one in answer.document] == [1, 1]  # type: ignore[union-attr,call-overload,index]
    assert apply(json.dumps([other, blocked, blocked]).encode(), answer.edits) == json.dumps([other]).encode()
    whole = some(answer_request(read(record([blocked])), [rule(BLOCK)], Ledger(), UNSAFE).answer)
    assert (len(whole.document), whole.edits) == (1, ())  # type: ignore[arg-type]


def test_a_rule_that_fails_to_answer_lets_the_request_pass() -> None:
    class Broken(type(rule(BLOCK))):  # type: ignore[misc]
        def answer(self, *given: object) -> None:
            raise RuntimeError("out of ink")

    answered = answer_request(read(record(message({"shelf": "x"}))), [Broken()], Ledger(), UNSAFE)
    assert answered.answer is None
    assert "out of ink" in answered.faults[0].message
