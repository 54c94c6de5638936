"""Histories that a client damaged, sent with the real SDKs: the upstream gets them whole, and all else as it was sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest

from tests.build import Assistant, Call, Result, Talk, User, schema
from tests.live.harness import SCRIPT, Peer, Proxy, Upstream, running
from tests.live.scenes import ANTHROPIC, OPENAI, Playing
from wirelint.mock.service import Service

pytestmark = pytest.mark.live

QUESTION = User("Search my notes for the launch date.")
TOOLS = {"search_notes": schema(query="string")}


def history(*ids: str, results: tuple[str, ...] | None = None) -> tuple[Any, ...]:
    """One turn for every call; `results` where their ids differ from those of the calls."""
    turns: list[Any] = [QUESTION]
    for id_, result in zip(ids, results or ids, strict=True):
        turns += [Assistant(calls=(Call("search_notes", {"query": "date"}, id_),)), Result(result, "2 notes")]
    return tuple(turns)


@dataclass(frozen=True)
class Damage:
    """`sent` is the history as the client has it, `ids` what the upstream must get: (calls, results)."""

    api: str
    model: str
    sent: tuple[Any, ...]
    ids: tuple[tuple[str, ...], tuple[str, ...]]
    rules: tuple[str, ...] = ()


def _same(*ids: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return ids, ids


_KIMI, _CLAUDE = "moonshotai/kimi-k2.5", "claude-acme"
DAMAGES = {
    "ids stripped": Damage(
        OPENAI, _KIMI, history("functionssearchnotes0"), _same("functions.search_notes:0"), ("mangled-id",)
    ),
    "ids of another system": Damage(
        OPENAI, _KIMI, history("search_notes:0", "search_notes:1"),
        _same("functions.search_notes:0", "functions.search_notes:1"), ("nonconforming-id",),
    ),
    "ids of a third vendor": Damage(
        OPENAI, _KIMI, history("call_8Zr2kQmVw4TnXc1LbYd6HsPe"), _same("call_8Zr2kQmVw4TnXc1LbYd6HsPe")
    ),
    "native ids of others sent to Claude": Damage(
        ANTHROPIC, _CLAUDE, history("functions.search_notes:0"), _same(""), ("nonconforming-id",)
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def got() -> dict[str, bytes]:
    """Bodies that the upstream got, by the id of the test."""
    return {}


@pytest.fixture(scope="module")
def mending(upstream: Upstream, got: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    answer = Playing(Service(seed=3))

    def script(peer: Peer) -> None:
        got[peer.headers["x-test-id"]] = peer.body
        assert int(peer.headers["content-length"]) == len(peer.body)
        answer(peer)

    upstream.scripts["history"] = script
    with running(tmp_path_factory.mktemp("mending"), upstream.url, "wirelint_fix=safe") as proxy:
        yield proxy


def send(url: str, api: str, model: str, body: dict[str, Any], test: str) -> Any:
    """One whole reply of the SDK."""
    request = {**body, "model": model, "extra_headers": {"x-test-id": test, SCRIPT: "history"}}
    if api == OPENAI:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
            return client.chat.completions.create(**request)
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as claude:
        return claude.messages.create(**request)


def ids_in(api: str, body: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    messages = json.loads(body)["messages"]
    if api == OPENAI:
        calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
        return tuple(calls), tuple(message["tool_call_id"] for message in messages if message["role"] == "tool")
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    return (
        tuple(block["id"] for block in blocks if block["type"] == "tool_use"),
        tuple(block["tool_use_id"] for block in blocks if block["type"] == "tool_result"),
    )


@pytest.mark.parametrize("name", DAMAGES)
def test_the_upstream_gets_a_whole_history(mending: Proxy, got: dict[str, bytes], name: str) -> None:
    damage = DAMAGES[name]
    record = Talk(history=damage.sent, tools=TOOLS, model=damage.model).record(damage.api, False)
    body = json.loads(record["request"]["body"])
    send(mending.url, damage.api, damage.model, body, name)
    calls, results = ids_in(damage.api, got[name])
    assert calls == results
    if any(damage.ids[0]):
        assert (calls, results) == damage.ids
    captured = mending.wait_for_record(name)
    assert {fix["name"] for fix in captured.get("fixes", ())} == set(damage.rules)
    sent = captured["request"]["body"].encode()
    if damage.rules:
        assert captured["forwarded"]["body"].encode() == got[name]
        known = ids_in(damage.api, sent)
        restored = got[name].decode()
        for before, after in zip(known[0], calls, strict=True):
            restored = restored.replace(json.dumps(after), json.dumps(before))
        assert restored.encode() == sent, "nothing but the ids has changed"
    else:
        assert (got[name], "forwarded" in captured) == (sent, False)


def test_an_id_that_passed_is_remembered(mending: Proxy, got: dict[str, bytes]) -> None:
    """Cut to its last characters an id tells nothing any more; but the wire has seen it."""
    model = "gpt-4.1"
    talk = Talk(history=(QUESTION,), tools=TOOLS, model=model)
    body = json.loads(talk.record(OPENAI, False)["request"]["body"])
    first = send(mending.url, OPENAI, model, body, "passed")
    call = first.choices[0].message.tool_calls[0]
    damaged = call.id.replace("_", "")
    assert damaged != call.id
    kept = {"id": damaged, "type": "function", "function": call.function.model_dump()}
    body["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [kept]},
        {"role": "tool", "tool_call_id": damaged, "content": "2 notes"},
    ]
    send(mending.url, OPENAI, model, body, "remembered")
    assert ids_in(OPENAI, got["remembered"]) == _same(call.id)
    assert [fix["name"] for fix in mending.wait_for_record("remembered")["fixes"]] == ["mangled-id"]
