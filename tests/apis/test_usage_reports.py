"""Which services can be asked for the token counts of a stream."""

from __future__ import annotations

import pytest

from wirelint.apis.openai_chat import usage_report

URLS = {
    "https://api.openai.com/v1/chat/completions": "asked",
    "http://127.0.0.1:8000/v1/chat/completions": "asked",
    "https://api.deepinfra.com/v1/openai/chat/completions": "asked",
    "https://openrouter.ai/api/v1/chat/completions": "always",
    "https://api.deepseek.com/chat/completions": "always",
    "https://notopenrouter.ai/v1/chat/completions": "asked",
    "https://adb-1.azuredatabricks.net/serving-endpoints/x/invocations": "unknown",
    "https://a.openai.azure.com/openai/deployments/m/chat/completions?api-version=2024-10-21": "asked",
    "https://a.openai.azure.com/openai/deployments/m/chat/completions?api-version=2024-02-01": "unknown",
    "https://a.openai.azure.com/openai/deployments/m/chat/completions": "unknown",
    "https://a.openai.azure.com/openai/v1/chat/completions": "asked",
    "/v1/chat/completions": "asked",
}


@pytest.mark.parametrize("url", URLS)
def test_streams(url: str) -> None:
    assert usage_report(url) == URLS[url]
