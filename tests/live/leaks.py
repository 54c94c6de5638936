"""A call that leaks as text, in every form: what the tests of rewriting in real processes send through the proxy."""

from __future__ import annotations

from typing import Any

from tests.build import FORMS, Assistant, Call, Result, Talk
from tests.live.harness import SCRIPT, Headers, Proxy, Reply, post
from tests.live.scenes import ANTHROPIC, OPENAI, QUESTION, TOOLS, Form
from tests.live.strict import assemble

PATHS = {OPENAI: "/v1/chat/completions", ANTHROPIC: "/v1/messages"}
PROSE = "First the plan.\n\n"
CALL = '<invoke name="read_note"><arg name="path">plans/2026.md</arg></invoke>'
CALLED = [("read_note", {"path": "plans/2026.md"})]


def records(text: str, **more: Any) -> dict[Form, dict[str, Any]]:
    """The exchange in which a model says this, in every form."""
    talk = Talk(**{"history": (QUESTION,), "tools": TOOLS, "text": text, **more})
    return {form: talk.record(*form) for form in FORMS}


LEAK = records(PROSE + CALL)
OPEN = records(PROSE + CALL.removesuffix("</invoke>"))
CLEAN = records("All is well, all the same.")
STRIPPED, RESTORED = "functionssearchnotes0", "functions.search_notes:0"
DAMAGED = records(
    PROSE + CALL,
    history=(
        QUESTION,
        Assistant(calls=(Call("search_notes", {"query": "date"}, STRIPPED),)),
        Result(STRIPPED, "2 notes"),
    ),
    model="moonshotai/kimi-k2.5",
)
"""Both sides are repaired: the client has altered an id of the history, and the reply has a leaked call."""


def body_of(record: dict[str, Any]) -> bytes:
    return bytes(record["response"]["body"].encode())


def kind_of(record: dict[str, Any]) -> dict[str, Any]:
    """The header fields of its reply, as scripts take them."""
    return {"content_type": record["response"]["headers"]["content-type"]}


def asked(api: str, record: dict[str, Any], test: str, headers: Headers | None = None) -> tuple[str, bytes, Headers]:
    """Path, body and headers of the request of a record, to be answered by the script with the name of the test."""
    request = record["request"]
    given = {**request["headers"], SCRIPT: test, "x-test-id": test, **(headers or {})}
    return PATHS[api], request["body"].encode(), given


def ask(proxy: Proxy, api: str, record: dict[str, Any], test: str, headers: Headers | None = None) -> Reply:
    return post(proxy.port, *asked(api, record, test, headers))


def calls_of(api: str, stream: bool, body: bytes) -> list[tuple[str, Any]]:
    return [(name, arguments) for _, name, arguments in assemble(api, stream, body).calls]
