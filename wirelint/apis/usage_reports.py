"""Which services tell a stream's token counts: always, when they are asked, or not at all.

Sources: the vendors' API references (streaming), and recordings of their streams.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal
from urllib.parse import parse_qs, urlsplit

Report = Literal["always", "asked", "unknown"]

ALWAYS = frozenset({
    "anthropic.messages",
    "openai.responses",
    "google.generate_content",
    "cohere.chat",
    "mistral.chat",
    "ollama.chat",
    "ollama.generate",
    "bedrock.converse",
})  # fmt: skip
"""APIs whose streams end with the counts, whatever the request says."""

_UNASKED = (
    *("openrouter.ai", "deepseek.com", "groq.com", "x.ai", "mistral.ai", "perplexity.ai", "fireworks.ai"),
    *("together.xyz", "together.ai", "cerebras.ai", "moonshot.ai", "moonshot.cn", "huggingface.co"),
)
"""Hosts that speak OpenAI's API and tell the counts unasked."""
_OTHERWISE = (
    *("databricks.com", "azuredatabricks.net", "writer.com", "ai21.com", "services.ai.azure.com"),
    *("models.ai.azure.com", "inference.ml.azure.com", "watsonx.ai", "cloud.ibm.com"),
)
"""Hosts that speak it and are not known to take the option: some refuse what they do not know."""
_AZURE = "openai.azure.com"
_AZURE_SINCE = "2024-09-01"
"""The first version of Azure's API that takes the option; before it, it is refused as an unknown argument."""


@lru_cache(maxsize=64)
def openai_streams(url: str) -> Report:
    """How a service that speaks OpenAI Chat Completions at this URL reports the counts of a stream."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if _is(host, _UNASKED):
        return "always"
    if _is(host, _OTHERWISE):
        return "unknown"
    if _is(host, (_AZURE,)) and "/openai/v1/" not in parts.path:
        version = parse_qs(parts.query).get("api-version", [""])[0]
        return "asked" if version >= _AZURE_SINCE else "unknown"
    return "asked"


def _is(host: str, domains: tuple[str, ...]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)
