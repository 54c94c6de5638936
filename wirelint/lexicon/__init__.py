"""Data of wirelint as TOML: words of languages, tokens, chat templates, models and hosts, forms of secrets.

Each file begins with the meaning of its keys and the source of its facts.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any

_FLAGS = re.compile(r"\(\?([imsa]+)\)")
_PART = re.compile(r"\{([a-z_]\w*)\}")


@cache
def load(name: str) -> dict[str, Any]:
    """Return the tables of `lexicon/<name>.toml`. They are shared: do not change them."""
    return tomllib.loads(resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


class Phrases:
    """Word lists and regular expressions of `lexicon/phrases/<name>.toml`.

    A string is a regular expression. Its line breaks are no part of it, and flags stand at its start: `(?i)`. In it,
    `{key}` stands for another string of the file, or for a part that the caller passes.
    """

    def __init__(self, name: str) -> None:
        self._table = load(f"phrases/{name}")

    def words(self, key: str) -> tuple[str, ...]:
        """Return the word list `key`."""
        return tuple(self._table[key])

    def text(self, key: str, **parts: str) -> str:
        """Return the source of the expression `key` with its parts filled in."""

        def fill(match: re.Match[str]) -> str:
            part = match[1]
            if part in parts:
                return parts[part]
            return self.text(part, **parts) if part in self._table else match[0]

        return _PART.sub(fill, self._table[key].replace("\n", ""))

    def pattern(self, key: str, **parts: str) -> re.Pattern[str]:
        """Return the compiled expression `key`. Its `pattern` has no flags, so that it can become a part of another one."""
        source = self.text(key, **parts)
        flags = _FLAGS.match(source)
        if flags is None:
            return re.compile(source)
        return re.compile(source[flags.end() :], sum(re.RegexFlag[letter.upper()] for letter in flags[1]))
