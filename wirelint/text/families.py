"""Which family a model belongs to, by the name that the wire gives it.

Served names differ by host (`moonshotai/kimi-k2.5`, `accounts/fireworks/models/kimi-k2p6`), so only the part that no host
changes is looked for. None for names that tell nothing: fine-tunes, aliases, deployments.
"""

from __future__ import annotations

import re
from functools import lru_cache

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
