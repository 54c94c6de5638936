"""The table of the peculiarities of each API: finish reasons, layouts of histories, stop sequences, token counts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.build import Assistant, Call, Result, Talk, User, read, some
from tests.tables import rows, tables
from wirelint.apis import APIS, channel_of
from wirelint.apis.openai_chat import usage_report
from wirelint.apis.traits import RAW_APIS, ended_by_itself, ending, has_stop_words, history_of, traits
from wirelint.model import Choice, ToolCall, ToolResult
from wirelint.text.pointers import at

TABLES = tables(__file__)

MODELS = [api.name for api in APIS if channel_of(api.name) == "model"]
ENDINGS: dict[str, list[str | None]] = TABLES["endings"]


@pytest.mark.parametrize("meaning", ENDINGS)
def test_finish_reasons(meaning: str) -> None:
    for reason in ENDINGS[meaning]:
        assert ending(reason) == meaning, reason
        by_itself = meaning in ("ended", "calls") or reason == "eos"
        assert ended_by_itself(Choice(0, (), reason, "")) is by_itself, reason


@pytest.mark.parametrize("name", MODELS)
def test_every_api_has_a_consistent_row(name: str) -> None:
    own = traits(name)
    assert name == "openai.chat" or own is not traits("openai.chat")
    assert ending(own.ended) == "ended"
    assert ending(own.calls) == ("calls" if own.has_reason_for_calls else "ended")
    assert own.has_call_ids == (own.id_model is not None)
    assert not own.is_raw or own.calls_at is None


@pytest.mark.parametrize("api", [name for name in MODELS if name not in RAW_APIS])
def test_calls_and_results_are_where_the_table_says(api: str) -> None:
    id_ = "a1b2c3d4e"
    history = (User("Dig."), Assistant("", (Call("dig", {}, id_),)), Result(id_, "a root"), User("So?"))
    request, layout = read(Talk(history).record(api, False)).request, history_of(api)
    assert request is not None
    parts = [part for message in request.messages for part in message.parts if isinstance(part, ToolCall | ToolResult)]
    assert len(parts) == 2
    for part in parts:
        found, place = (part.id, layout.call_id) if isinstance(part, ToolCall) else (part.call_id, layout.result_id)
        assert at(request.body, f"{part.pointer}/{place}") == found
        assert found == id_ or not traits(api).has_call_ids
    assert isinstance(at(request.body, layout.place), list)
    path = parts[1].pointer.removeprefix(layout.place).split("/")
    assert path[1].isdecimal()
    assert (len(path) > 2) == layout.has_blocks
    assert not layout.has_blocks or (path[2] == layout.content and path[3].isdecimal())


@rows(TABLES["stops"])
def test_stop_sequences(api: str, more: dict[str, Any], expected: bool) -> None:
    request = some(read(Talk((User("Hi."),), "Hi.", request=more).record(api, False)).request)
    assert has_stop_words(request) is expected


URLS: dict[str, Any] = TABLES["urls"]


@pytest.mark.parametrize("url", URLS)
def test_services_that_report_token_counts_of_streams(url: str) -> None:
    assert usage_report(url) == URLS[url]
