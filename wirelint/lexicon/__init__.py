"""Data of wirelint as TOML: words of languages, tokens, chat templates, models and hosts, forms of secrets.

Each file begins with the meaning of its keys and the source of its facts.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def load(name: str) -> dict[str, Any]:
    """Return the tables of `lexicon/<name>.toml`. They are shared: do not change them."""
    return tomllib.loads(resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
