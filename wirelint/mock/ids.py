"""Ids as the vendors mint them, drawn from a seeded generator.

The family of the model decides the form of a tool-call id, so that a client which mangles native ids has some to
mangle: Kimi K2 `functions.NAME:IDX` with a counter over the whole conversation, Mistral nine alphanumerics, DeepSeek
`call_00_...`, Claude `toolu_01...`, everyone else `call_` and 24 alphanumerics.
"""

from __future__ import annotations

import random
import re
import string

_ALNUM = string.ascii_letters + string.digits


def random_text(rng: random.Random, length: int, alphabet: str = _ALNUM) -> str:
    return "".join(rng.choices(alphabet, k=length))


def mint_call_id(model: str, rng: random.Random, name: str, number: int, position: int) -> str:
    """A native id. `number` counts the calls of the conversation from 0, `position` those of this reply."""
    family = model.lower()
    if re.search(r"kimi[-_ ]?k3", family):
        return f"{name}:{number}"
    if "kimi" in family or "moonshot" in family:
        return f"functions.{name}:{number}"
    if re.search(r"mi[sx]tral|magistral|codestral|devstral", family):
        return random_text(rng, 9)
    if "deepseek" in family:
        return f"call_{position:02d}_{random_text(rng, 22)}"
    if "claude" in family or "anthropic" in family:
        return mint_anthropic_id(rng)
    return f"call_{random_text(rng, 24)}"


def mint_anthropic_id(rng: random.Random, prefix: str = "toolu") -> str:
    """`toolu_01...`, `msg_01...`, `req_01...`: the prefix, a version, 22 alphanumerics."""
    return f"{prefix}_01{random_text(rng, 22)}"
