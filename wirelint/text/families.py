"""Which family a model belongs to, by the name that the wire gives it.

Served names differ by host (`moonshotai/kimi-k2.5`, `accounts/fireworks/models/kimi-k2p6`), so only the part that no host
changes is looked for. None for names that tell nothing: fine-tunes, aliases, deployments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from wirelint.model import Json

# Who answers at a host: the names that people call the providers of models by.

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


# In this order: a distilled or fine-tuned model carries the name of its base too, and speaks the notation of the first.
_FAMILIES: tuple[tuple[str, str], ...] = (
    ("hermes", r"hermes"),
    ("nemotron", r"nemotron"),
    ("deepseek", r"deepseek"),
    ("gpt-oss", r"gpt-?oss"),
    ("kimi", r"kimi|moonshot"),
    ("claude", r"claude"),
    ("magistral", r"magistral"),
    ("mistral", r"mistral|mixtral|devstral|codestral|pixtral"),
    ("minimax", r"minimax|abab"),
    ("glm", r"glm"),
    ("gemma", r"gemma"),
    ("gemini", r"gemini"),
    ("qwen", r"qwen|qwq|qvq"),
    ("granite", r"granite"),
    ("grok", r"grok"),
    ("cohere", r"command-?[ar]|cohere|aya"),
    ("phi", r"\bphi-?\d"),
    ("exaone", r"exaone"),
    ("ernie", r"ernie"),
    ("hunyuan", r"hunyuan|\bhy\d"),
    ("seed", r"seed-oss|doubao"),
    ("mimo", r"mimo"),
    ("step", r"\bstep-?\d"),
    ("ling", r"\b(?:ling|ring)-"),
    ("smollm", r"smollm"),
    ("internlm", r"internlm|intern-s"),
    ("yi", r"\byi-"),
    ("apertus", r"apertus"),
    ("firefunction", r"firefunction"),
    ("pangu", r"pangu"),
    ("plamo", r"plamo"),
    ("inkling", r"inkling"),
    ("apriel", r"apriel"),
    ("xlam", r"xlam"),
    ("hammer", r"\bhammer"),
    ("arctic", r"snowflake.arctic"),
    ("gigachat", r"gigachat"),
    ("llm-jp", r"llm-?jp"),
    ("cwm", r"\bcwm\b"),
    ("rwkv", r"rwkv"),
    ("minicpm", r"minicpm"),
    ("olmo", r"olmo"),
    ("lfm", r"\blfm"),
    ("functionary", r"functionary"),
    ("raven", r"raven"),
    ("gorilla", r"gorilla"),
    ("toolace", r"toolace"),
    ("watt", r"watt-tool"),
    ("llama", r"llama"),
    ("nova", r"\bnova-"),
    ("gpt", r"gpt|\bo[134]\b|codex|davinci"),
    ("muse", r"\bmuse-"),
    ("beam", r"\bbeam(?:-|\b(?!\.))"),
    ("dots", r"\bdots[.-]"),
    ("jamba", r"jamba"),
    ("solar", r"\bsolar-"),
    ("hyperclova", r"hyperclova"),
    ("laguna", r"laguna|poolside"),
    ("nanbeige", r"nanbeige"),
    ("iquest", r"iquest"),
    ("ui-tars", r"ui-tars"),
    ("k2-horizon", r"\bk2-(?:horizon|v3)"),
    ("spark", r"\bspark-?\d"),
    ("longcat", r"longcat"),
    ("glaive", r"glaive"),
    ("falcon", r"falcon"),
    ("trinity", r"\btrinity"),
    ("kolibri", r"kolibri"),
)
_PATTERN = re.compile("|".join(f"(?P<f{n}>{pattern})" for n, (_, pattern) in enumerate(_FAMILIES)))
# Models that think in a channel of their own. Families that mix are told apart by the rest of the name.
_THINKERS = re.compile(
    r"deepseek-?(?:r1|reasoner|v3[.-][1-9]|v4)|qwen-?3|qwq|qvq|glm-?(?:4[.-][5-9]|[5-9]|z1)|kimi|minimax-?m|magistral|gpt-?oss"
    r"|claude-(?:3-7|(?:sonnet|opus|haiku|fable)-[4-9])|claude-[4-9]|gemini-(?:2[.-]5|[3-9])|gemma-?4|apriel|exaone-?(?:deep|4)"
    r"|grok-(?:3-mini|[4-9])|\bo[134]\b|gpt-[5-9]|nemotron|hunyuan|ernie-?(?:x1|4)|seed|mimo|\bstep-?[3-9]|smollm3|phi-?4-reason"
    r"|granite-?(?:3[.-][2-9]|[4-9])|command-a-reason|apertus|cogito|olmo-?3|thinking|reason"
)


@lru_cache(maxsize=256)
def family(model: str) -> str | None:
    """The family of a model by its name on the wire, in our own short word for it."""
    name = model.lower()
    found = [match.lastgroup or "" for match in _PATTERN.finditer(name)]
    return _FAMILIES[min(int(group[1:]) for group in found)][0] if found else None


@lru_cache(maxsize=256)
def thinks(model: str) -> bool:
    """Whether the name is that of a model with a reasoning channel."""
    return _THINKERS.search(model.lower()) is not None
