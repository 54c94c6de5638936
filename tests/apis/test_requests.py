"""Which API a request belongs to, and what is read of its body: one table for all APIs.

`recognition.json`, `requests.json` and `replies.json` hold a case a row. `reads` has what differs from an empty request:
parts as [kind, pointer, …], tools as [name, pointer, type, …].
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.apis.harness import raw, the
from tests.build import Talk, exchange, read, some
from tests.selection import in_batches
from wirelint.apis import channel_of, recognise, recognise_reply
from wirelint.engine import Session
from wirelint.model import (
    HostedCall,
    HostedResult,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Request,
    Rpc,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
)


def cases(name: str) -> list[Any]:
    rows = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    return [pytest.param(row, id=f"{row.get('api')}-{row['case']}") for row in rows]


@in_batches("row", cases("recognition.json"))
def test_a_request_belongs_to_its_api(row: dict[str, Any]) -> None:
    method, headers, host = row.get("method", "POST"), row.get("headers", {}), row.get("host", "")
    api = recognise(method, row["path"], headers, row.get("body"), host)
    assert (api and api.name) == row["api"]
    assert channel_of(row["api"] or "") == ("mcp" if row["api"] == "mcp" else "model")


RESULT_KINDS = {True: "error", False: "success", None: "result"}


def part(one: Part) -> list[Any]:
    match one:
        case Text(text, pointer):
            return ["text", pointer, text]
        case Reasoning(text, pointer, opaque=opaque):
            return ["sealed" if opaque else "reasoning", pointer, *([text] if text else [])]
        case Refusal(text, pointer):
            return ["refusal", pointer, text]
        case ToolCall():
            kind = "call" if one.form == "function" else f"{one.form} call"
            value = one.arguments.value
            return [kind, one.pointer, one.id, one.name, one.arguments.text if value is None else value]
        case ToolResult():
            return [RESULT_KINDS[one.is_error], one.pointer, one.call_id, one.name, one.text]
        case HostedCall(id_, name, pointer):
            return ["hosted call", pointer, id_, name]
        case HostedResult(id_, pointer, kind):
            return ["hosted result", pointer, id_, kind]
        case Opaque(kind, pointer):
            return ["opaque", pointer, kind]
        case Rpc():
            return [one.form, one.pointer, one.id, one.method]


DEFAULTS: dict[str, Any] = {
    "model": "", "stream": False, "hosted": False, "tools_known": True, "max_tokens": None, "wants_usage": None,
    "parallel_tool_calls": None, "on_server": "nothing", "previous": None, "stored": None,
}  # fmt: skip


def summary(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if request.messages:
        found["messages"] = [[one.role, one.pointer, *map(part, one.parts)] for one in request.messages]
    if request.tools:
        found["tools"] = [
            [
                one.name,
                one.pointer,
                one.type,
                *(["hosted"] if one.hosted else ()),
                *filter(None, (one.description, one.schema)),
            ]
            for one in request.tools
        ]
    if (choice := request.tool_choice) != ToolChoice("auto"):
        found["tool_choice"] = [choice.mode, *filter(None, (choice.name, *choice.names))]
    return found | {name: value for name, empty in DEFAULTS.items() if (value := getattr(request, name)) != empty}


@in_batches("row", cases("requests.json"))
def test_a_request_reads_as(row: dict[str, Any]) -> None:
    request = the(row["api"]).read_request(row["body"], row.get("path", ""))
    assert request.api == row["api"]
    assert summary(request) == row["reads"]
    assert request.is_partial == (request.on_server != "nothing")


@pytest.mark.parametrize("stream", [False, True])
def test_a_session_passes_the_path_on(stream: bool) -> None:
    for api in ("google.generate_content", "bedrock.converse"):
        request = some(read(Talk(model="acme-2.5").record(api, stream)).request)
        assert (request.model, request.stream) == ("acme-2.5", stream)
    path = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-acme@1:streamRawPredict"
    body = {"anthropic_version": "vertex-2023-10-16", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    session = some(Session.begin(id="1", method="POST", url=f"http://llm.test{path}", headers={}, body=raw(body)))
    assert session.request is not None
    assert (session.request.model, session.request.stream) == ("claude-acme@1", True)


@in_batches("row", cases("replies.json"))
def test_a_reply_is_recognised_without_its_request(row: dict[str, Any]) -> None:
    api = recognise_reply(row["body"])
    assert (api and api.name) == row["api"]


def test_candidates_of_several_prompts_have_their_own_places() -> None:
    choices = [{"text": str(number), "index": number, "finish_reason": "stop"} for number in range(4)]
    body = {"model": "m", "prompt": ["Once", "Twice"], "n": 2}
    found = some(read(exchange("/v1/completions", body, {"choices": choices})).reply)
    assert [one.parts[0].pointer for one in found.choices] == [f"/choices/{number}/text" for number in range(4)]
    assert found.choices[3].finish_pointer == "/choices/3/finish_reason"
