"""Where histories have their calls, their results and the ids of both: what the table says, held against what is read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import Assistant, Call, Result, Talk, User, exchange, read
from wirelint.apis import APIS
from wirelint.apis.histories import continues, history_of, is_signed, is_text
from wirelint.apis.traits import traits
from wirelint.knowledge.pointers import at
from wirelint.model import Request, ToolCall, ToolResult

RAW = {"openai.completions", "deepinfra.inference", "ollama.generate"}
SPOKEN = [api.NAME for api in APIS if getattr(api, "channel", "model") == "model" and api.NAME not in RAW]
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


@pytest.mark.parametrize(
    ("path", "body", "kept"),
    [
        ("/v1/responses", {"input": "Go.", "previous_response_id": "resp_1"}, True),
        ("/v1/responses", {"input": "Go.", "previous_response_id": None}, False),
        ("/v1/responses", {"input": "Go.", "conversation": {"id": "conv_1"}}, True),
        ("/v1/responses", {"input": [{"type": "item_reference", "id": "fc_1"}]}, True),
        ("/v1/responses", {"input": [{"role": "user", "content": "Go."}], "store": True}, False),
        (
            "/v1beta/models/m:generateContent",
            {"contents": [{"parts": [{"text": "Go."}]}], "cachedContent": "c/1"},
            True,
        ),
        ("/v1beta/models/m:generateContent", {"contents": [{"parts": [{"text": "Go."}]}]}, False),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "conversation": "c"}, False),
    ],
)
def test_whether_the_server_keeps_a_part(path: str, body: dict[str, Any], kept: bool) -> None:
    found = read(exchange(path, {"model": "m", **body}, {})).request
    assert found is not None
    assert continues(found) == kept


def test_blocks() -> None:
    assert is_text({"type": "text", "text": "x"})
    assert is_text({"text": "x"})
    assert not is_text({"type": "image"})
    assert not is_text({"toolUse": {}})
    assert is_signed({"text": "", "thoughtSignature": "c2ln"})
    assert not is_signed({"text": "", "thoughtSignature": ""})
    assert not is_signed("x")
