"""The table of what the words and fields of each API mean."""

from __future__ import annotations

import pytest

from wirelint.apis import APIS, channel_of
from wirelint.apis.traits import Ending, ending, is_raw, traits
from wirelint.model import Request


@pytest.mark.parametrize(
    ("reason", "meaning"),
    [
        ("stop", "ended"),
        ("end_turn", "ended"),
        ("stop_sequence", "stopped"),
        ("STOP", "ended"),
        ("COMPLETE", "ended"),
        ("STOP_SEQUENCE", "stopped"),
        ("completed", "ended"),
        ("eos", "stopped"),
        ("tool_calls", "calls"),
        ("tool_use", "calls"),
        ("function_call", "calls"),
        ("TOOL_CALL", "calls"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("max_output_tokens", "length"),
        ("model_length", "length"),
        ("model_context_window_exceeded", "length"),
        ("content_filter", "filtered"),
        ("SAFETY", "filtered"),
        ("MODEL_ARMOR", "filtered"),
        ("guardrail_intervened", "filtered"),
        ("refusal", "refused"),
        ("pause_turn", "paused"),
        ("error", "failed"),
        ("MALFORMED_FUNCTION_CALL", "failed"),
        ("malformed_tool_use", "failed"),
        ("incomplete", "failed"),
        ("load", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_a_finish_reason_means_one_thing(reason: str | None, meaning: Ending) -> None:
    assert ending(reason) == meaning


@pytest.mark.parametrize("name", [api.name for api in APIS if channel_of(api.name) == "model"])
def test_every_api_has_a_row_that_makes_sense(name: str) -> None:
    own = traits(name)
    assert name == "openai.chat" or own is not traits("openai.chat")
    assert ending(own.ended) == "ended"
    assert ending(own.calls) == ("calls" if own.tells_calls else "ended")
    assert own.call_ids == (own.id_model is not None)
    assert not own.raw or own.calls_at is None


@pytest.mark.parametrize(
    ("api", "body", "raw"),
    [
        ("openai.chat", {"raw": True}, False),
        ("openai.completions", {}, True),
        ("deepinfra.inference", {}, True),
        ("ollama.generate", {}, False),
        ("ollama.generate", {"raw": False}, False),
        ("ollama.generate", {"raw": True}, True),
        ("ollama.chat", {"raw": True}, False),
    ],
)
def test_where_the_prompt_is_raw_so_is_the_reply(api: str, body: dict[str, object], raw: bool) -> None:
    request = Request(api, "m", (), (), body)  # type: ignore[arg-type]
    assert is_raw(api, request) is raw
