"""Who answers at a host: the names that people call the providers of models by."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from wirelint.model import Json

_HOSTS = {
    "openai.com": "openai",
    "openai.azure.com": "azure",
    "services.ai.azure.com": "azure",
    "chatgpt.com": "openai",
    "anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "google",
    "aiplatform.googleapis.com": "vertex",
    "amazonaws.com": "bedrock",
    "openrouter.ai": "openrouter",
    "deepinfra.com": "deepinfra",
    "mistral.ai": "mistral",
    "cohere.com": "cohere",
    "cohere.ai": "cohere",
    "groq.com": "groq",
    "together.xyz": "together",
    "together.ai": "together",
    "fireworks.ai": "fireworks",
    "x.ai": "xai",
    "deepseek.com": "deepseek",
    "moonshot.ai": "moonshot",
    "moonshot.cn": "moonshot",
    "z.ai": "zai",
    "bigmodel.cn": "zai",
    "aliyuncs.com": "alibaba",
    "minimax.io": "minimax",
    "minimaxi.com": "minimax",
    "nvidia.com": "nvidia",
    "cerebras.ai": "cerebras",
    "sambanova.ai": "sambanova",
    "huggingface.co": "huggingface",
    "perplexity.ai": "perplexity",
    "siliconflow.com": "siliconflow",
    "siliconflow.cn": "siliconflow",
    "novita.ai": "novita",
    "hyperbolic.xyz": "hyperbolic",
    "nebius.com": "nebius",
    "nebius.ai": "nebius",
    "ollama.com": "ollama",
}
_LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
_MOST_ASKED = 16


def provider_of(host: str) -> str:
    """The provider at a host: its name, `local` for this machine, else the host itself."""
    host = host.lower().rstrip(".")
    if host in _LOCAL:
        return "local"
    labels = host.split(".")
    tails = (".".join(labels[start:]) for start in range(len(labels)))
    return next((_HOSTS[tail] for tail in tails if tail in _HOSTS), host)


def providers_of(url: str, body: Mapping[str, Json] | None = None) -> tuple[str, ...]:
    """The provider at a URL, by name and by host, and those that a router is asked for (`provider.only` and `order`)."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    asked = body.get("provider") if body is not None else None
    names: list[str] = []
    if isinstance(asked, dict):
        for key in ("only", "order"):
            listed = asked.get(key)
            names += [name for name in (listed if isinstance(listed, list) else []) if isinstance(name, str)]
    return tuple(dict.fromkeys((provider_of(host), host.lower(), *(name.lower() for name in names[:_MOST_ASKED]))))
