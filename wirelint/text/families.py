"""The family of a model, by its name on the wire.

Served names differ by host (`moonshotai/kimi-k2.5`, `accounts/fireworks/models/kimi-k2p6`), so only the part that no host
changes is looked for. None for names that tell nothing: fine-tunes, aliases, deployments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from wirelint import lexicon
from wirelint.model import Json

# Providers at hosts, by the names that people use.

_HOSTS: dict[str, str] = lexicon.load("models")["providers"]
_LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
_MOST_ASKED = 16


def provider_of(host: str) -> str:
    """Return the provider at a host: its name, `local` for this machine, else the host itself."""
    host = host.lower().rstrip(".")
    if host in _LOCAL:
        return "local"
    labels = host.split(".")
    tails = (".".join(labels[start:]) for start in range(len(labels)))
    return next((_HOSTS[tail] for tail in tails if tail in _HOSTS), host)


def providers_of(url: str, body: Mapping[str, Json] | None = None) -> tuple[str, ...]:
    """Return the provider at a URL, by name and by host, and those that a router is asked for (`provider.only` and
    `order`).
    """
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


_FAMILIES: tuple[tuple[str, str], ...] = tuple((name, pattern) for name, pattern in lexicon.load("models")["families"])
_PATTERN = re.compile("|".join(f"(?P<f{n}>{pattern})" for n, (_, pattern) in enumerate(_FAMILIES)))
_THINKERS = re.compile("|".join(lexicon.load("models")["thinkers"]))


@lru_cache(maxsize=256)
def family(model: str) -> str | None:
    """Return the family of a model by its name on the wire, in our own short word for it."""
    name = model.lower()
    found = [match.lastgroup or "" for match in _PATTERN.finditer(name)]
    return _FAMILIES[min(int(group[1:]) for group in found)][0] if found else None


@lru_cache(maxsize=256)
def thinks(model: str) -> bool:
    """Return True if the name is that of a model with a reasoning channel."""
    return _THINKERS.search(model.lower()) is not None
