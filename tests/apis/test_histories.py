"""Where histories have their calls, their results and the ids of both: what the table says, held against what is read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import Assistant, Call, Result, Talk, User, exchange, read
from wirelint.apis import APIS, recognise
from wirelint.apis.traits import history_of, is_signed, is_text, traits
from wirelint.model import Request, ToolCall, ToolResult
from wirelint.text.pointers import at

RAW = {"openai.completions", "deepinfra.inference", "ollama.generate"}
SPOKEN = [api.name for api in APIS if getattr(api, "channel", "model") == "model" and api.name not in RAW]
TALK = Talk((User("Dig."), Assistant("", (Call("dig", {}, "a1b2c3d4e"),)), Result("a1b2c3d4e", "a root"), User("So?")))


def request(api: str) -> Request:
    found = read(TALK.record(api, False)).request
    assert found is not None
    return found


@pytest.mark.parametrize("api", SPOKEN)
def test_ids_stand_where_the_table_says(api: str) -> None:
    made, history = request(api), history_of(api)
    parts = [part for message in made.messages for part in message.parts if isinstance(part, (ToolCall, ToolResult))]
    assert len(parts) == 2
    for part in parts:
        id_, place = (part.id, history.call_id) if isinstance(part, ToolCall) else (part.call_id, history.result_id)
        assert at(made.body, f"{part.pointer}/{place}") == id_
        assert id_ == "a1b2c3d4e" or not traits(api).call_ids


@pytest.mark.parametrize("api", SPOKEN)
def test_what_holds_a_result_is_what_the_table_says(api: str) -> None:
    made, history = request(api), history_of(api)
    (result,) = (result for message in made.messages for result in message.results)
    assert isinstance(at(made.body, history.place), list)
    path = result.pointer.removeprefix(history.place).split("/")
    assert path[1].isdecimal()
    assert (len(path) > 2) == history.blocks
    if history.blocks:
        assert path[2] == history.content
        assert path[3].isdecimal()


CHAT = [{"role": "user", "content": "Go."}]
RESULT = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a root"}]}]
THREAD = {"type": "continue", "previous_message_id": "msg_1"}
SUMMARY = [{"role": "user", "content": [{"type": "compaction", "content": "They dug."}]}, *RESULT]


@pytest.mark.parametrize(
    ("path", "body", "held"),
    [
        ("/v1/responses", {"input": "Go.", "previous_response_id": "resp_1"}, ("before", "resp_1", None)),
        ("/v1/responses", {"input": "Go.", "previous_response_id": None}, ("nothing", None, None)),
        ("/v1/responses", {"input": "Go.", "conversation": {"id": "conv_1"}}, ("before", None, "conv_1")),
        ("/v1/responses", {"input": "Go.", "conversation": "conv_1"}, ("before", None, "conv_1")),
        ("/v1/responses", {"input": "Go.", "prompt": {"id": "pmpt_1"}}, ("before", None, None)),
        ("/v1/responses", {"input": [{"type": "compaction", "id": "cmp_1"}]}, ("before", None, None)),
        ("/v1/responses", {"input": [{"type": "item_reference", "id": "fc_1"}]}, ("anywhere", None, None)),
        ("/v1/responses", {"input": CHAT, "store": True}, ("nothing", None, None)),
        ("/v1/messages", {"messages": RESULT, "thread": THREAD}, ("before", "msg_1", None)),
        ("/v1/messages", {"messages": CHAT, "thread": {"type": "create"}}, ("nothing", None, None)),
        ("/v1/messages", {"messages": CHAT, "thread": None}, ("nothing", None, None)),
        ("/v1/messages", {"messages": SUMMARY}, ("before", None, None)),
        ("/v1/messages", {"messages": CHAT, "container": "container_1"}, ("nothing", None, None)),
        (
            "/v1beta/models/m:generateContent",
            {"contents": [{"parts": [{"text": "Go."}]}], "cachedContent": "c/1"},
            ("before", None, None),
        ),
        ("/v1beta/models/m:generateContent", {"contents": [{"parts": [{"text": "Go."}]}]}, ("nothing", None, None)),
        ("/v1/chat/completions", {"messages": CHAT, "conversation": "c"}, ("nothing", None, None)),
    ],
)
def test_where_the_server_holds_messages(
    path: str, body: dict[str, Any], held: tuple[str, str | None, str | None]
) -> None:
    found = read(exchange(path, {"model": "m", "max_tokens": 9, **body}, {})).request
    assert found is not None
    assert (found.on_server, found.previous, found.stored) == held
    assert found.is_partial == (held[0] != "nothing")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/threads", {"messages": CHAT}),
        ("/v1/threads/thread_1/messages", {"role": "user", "content": "Go."}),
        ("/v1/threads/thread_1/runs", {"assistant_id": "asst_1", "model": "m"}),
        ("/v1/threads/runs", {"assistant_id": "asst_1", "thread": {"messages": CHAT}}),
        (
            "/v1/threads/thread_1/runs/run_1/submit_tool_outputs",
            {"tool_outputs": [{"tool_call_id": "call_1", "output": "a root"}]},
        ),
        ("/v1/conversations", {"inputs": "Go.", "agent_id": "ag_1"}),
        ("/v1/conversations/conv_1/items", {"items": [{"type": "message", "role": "user", "content": "Go."}]}),
        ("/v1beta/interactions", {"model": "m", "input": "Go.", "previous_interaction_id": "i_1"}),
    ],
)
def test_endpoints_of_stored_conversations_are_not_read_as_requests_that_show_all(
    path: str, body: dict[str, Any]
) -> None:
    assert recognise("POST", path, {}, body) is None


def test_blocks() -> None:
    assert is_text({"type": "text", "text": "x"})
    assert is_text({"text": "x"})
    assert not is_text({"type": "image"})
    assert not is_text({"toolUse": {}})
    assert is_signed({"text": "", "thoughtSignature": "c2ln"})
    assert not is_signed({"text": "", "thoughtSignature": ""})
    assert not is_signed("x")
