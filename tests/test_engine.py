"""Sessions: what is ours, how exchanges end, what is read and what is left unread."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.build import Talk, as_record, chunk, exchange, read, some, sse
from tests.tables import rows, tables
from wirelint.engine import Engine, Session, lower
from wirelint.model import End, Exchange
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger

CHAT = {"model": "acme-1", "messages": [{"role": "user", "content": "Hello"}]}


def begin(path: str, body: Any, headers: dict[str, str] | None = None, method: str = "POST") -> Session | None:
    raw = (body if isinstance(body, str) else json.dumps(body)).encode()
    return Session.begin(id="x", method=method, url=f"http://host{path}", headers=headers or {}, body=raw)


@rows(tables(__file__)["foreign"])
def test_everything_else_is_none_of_ours(path: str, body: Any, method: str) -> None:
    assert begin(path, body, method=method) is None


def finish(record: dict[str, Any], end: End, max_body: int | None = None) -> Exchange:
    made = as_record(record)
    session = some(
        Session.begin(id="x", method="POST", url=made.url, headers={}, body=made.request_body or b"", max_body=max_body)
    )
    session.respond(made.status, lower(made.response_headers))
    session.feed(made.response_body or b"", 40.0)
    return session.finish(end)


def streamed(body: str) -> dict[str, Any]:
    return exchange("/v1/chat/completions", CHAT, body, content_type="text/event-stream")


def test_a_client_that_hangs_up_at_the_terminator_is_done() -> None:
    whole = Talk(text="All said.").record("openai.chat", True)
    assert finish(whole, "client-left").end == "complete"
    cut = streamed(sse(chunk({"content": "All"}), done=False))
    assert finish(cut, "client-left").end == "client-left"


def test_a_body_over_the_limit_is_left_unread_and_judged_by_no_rule() -> None:
    cut = streamed(sse(chunk({"content": "A" * 500}), done=False))
    found = finish(cut, "complete", max_body=200)
    assert found.end == "unread"
    assert found.reply is None
    assert Engine(()).check(found) == ()


def test_rules_hear_of_their_own_channel_alone() -> None:
    heard: list[tuple[str, str]] = []

    def rule(channels: frozenset[str], title: str) -> Rule:
        class Listening(Rule):
            code, name, severity, layer = "XX901", title, "info", "model"

            def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
                heard.append((title, exchange.api))
                yield from ()

        Listening.channels = channels
        return Listening()

    mine = [rule(frozenset({name}), name) for name in ("model", "mcp")] + [rule(frozenset({"model", "mcp"}), "both")]
    engine = Engine(mine)
    for path, body in (
        ("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "x"}]}),
        ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    ):
        engine.check(read({"request": {"url": f"http://x.test{path}", "body": body}, "response": {"body": {}}}))
    assert heard == [("model", "openai.chat"), ("both", "openai.chat"), ("mcp", "mcp"), ("both", "mcp")]
