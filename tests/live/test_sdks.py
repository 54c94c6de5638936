"""The real SDKs through a real proxy: they get what the server said, and their way of closing is no fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.live.harness import Proxy, running
from tests.selection import is_complete
from wirelint.mock import MockServer

pytestmark = [pytest.mark.live, pytest.mark.complete]

ROUNDS = 12 if is_complete() else 3
"""The SDK's close races with the end of the reply; both orders turn up in a dozen streams."""
ASK: list[Any] = [{"role": "user", "content": "Say something."}]


@pytest.fixture(scope="module")
def sdk_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with MockServer(seed=3) as server, running(tmp_path_factory.mktemp("sdk"), server.url) as proxy:
        yield proxy


@pytest.mark.parametrize("encoding", ["identity", "gzip", "br"])
def test_openai(sdk_proxy: Proxy, encoding: str) -> None:
    with openai.OpenAI(base_url=f"{sdk_proxy.url}/v1", api_key="k", max_retries=0) as client:
        for number in range(ROUNDS):
            name = f"openai {encoding} {number}"
            headers = {"x-test-id": name, "x-wirelint-mock": f"encoding={encoding}" if encoding != "identity" else ""}
            headers = {key: value for key, value in headers.items() if value}
            stream = client.chat.completions.create(
                model="gpt-4o",
                messages=ASK,
                stream=True,
                stream_options={"include_usage": True},
                extra_headers=headers,
            )
            text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
            assert text
            record = sdk_proxy.wait_for_record(name)
            assert (record["end"], record["findings"]) == ("complete", []), record["findings"]
        whole = client.chat.completions.create(
            model="gpt-4o", messages=ASK, extra_headers={"x-test-id": f"w {encoding}"}
        )
    assert whole.choices[0].message.content
    assert sdk_proxy.wait_for_record(f"w {encoding}")["findings"] == []


def test_anthropic(sdk_proxy: Proxy) -> None:
    with anthropic.Anthropic(base_url=sdk_proxy.url, api_key="k", max_retries=0) as client:
        for number in range(ROUNDS):
            headers = {"x-test-id": f"anthropic {number}"}
            with client.messages.stream(
                model="claude-sonnet-4-5", max_tokens=64, messages=ASK, extra_headers=headers
            ) as stream:
                assert "".join(stream.text_stream)
            record = sdk_proxy.wait_for_record(headers["x-test-id"])
            assert (record["api"], record["end"], record["findings"]) == ("anthropic.messages", "complete", [])
    assert not sdk_proxy.wait_for(".") or "rror" not in sdk_proxy.log
