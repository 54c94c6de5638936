"""Data of wirelint as TOML: words of languages, tokens, chat templates, models and hosts, forms of secrets.

Each file begins with the meaning of its keys and the source of its facts.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any, cast

_FLAGS = re.compile(r"\(\?([imsa]+)\)")
_PART = re.compile(r"\{([a-z_]\w*)\}")


@cache
def load(name: str) -> dict[str, Any]:
    """Return the tables of `lexicon/<name>.toml`. They are shared: do not change them."""
    return tomllib.loads(resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


_UNCOMPILED: list[_LazyPattern] = []


class _LazyPattern:
    """Stand-in for a `re.Pattern`. `pattern` and `flags` need no compilation; any other attribute compiles the source.

    It equals the compiled pattern, which is another object: write `match.re == pattern` instead of `is`.
    """

    def __init__(self, source: str, flags: int) -> None:
        self.pattern, self.flags = source, int(flags | re.UNICODE)
        _UNCOMPILED.append(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = vars(self).get("_made") or re.compile(self.pattern, self.flags)
        # As an attribute of the object it is found without another call of this method.
        found = getattr(made, name)
        vars(self).update({"_made": made, name: found})
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _LazyPattern | re.Pattern) and (self.pattern, self.flags) == (
            other.pattern,
            other.flags,
        )

    def __hash__(self) -> int:
        return hash(self.pattern)


def lazy_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a regular expression that is compiled at its first use.

    For expressions of which most runs need few: compiling all of them takes 0.4 s of each start. `source` sets no flags.
    """
    return cast("re.Pattern[str]", _LazyPattern(source, flags))


def compile_patterns() -> None:
    """Compile all lazy patterns that exist now. Safe in a thread."""
    while _UNCOMPILED:
        _UNCOMPILED.pop().search  # noqa: B018


class Phrases:
    """Word lists and regular expressions of `lexicon/phrases/<name>.toml`.

    A string is a regular expression. Its line breaks are ignored, and its flags are at its start: `(?i)`. `{key}` is
    replaced by another string of the file, or by a part that the caller passes.
    """

    def __init__(self, name: str) -> None:
        self._table = load(f"phrases/{name}")
        self._patterns: dict[str, re.Pattern[str]] = {}

    def __getitem__(self, key: str) -> re.Pattern[str]:
        """Return the expression `key`, compiled at its first use, since few runs need all expressions."""
        if key not in self._patterns:
            self._patterns[key] = self.pattern(key)
        return self._patterns[key]

    def words(self, key: str) -> tuple[str, ...]:
        """Return the word list `key`: an array, or one string with blanks between the words."""
        words = self._table[key]
        return tuple(words.split() if isinstance(words, str) else words)

    def table(self, key: str) -> Any:
        """Return the value of `key` without changes: a table or an array."""
        return self._table[key]

    def text(self, key: str, **parts: str) -> str:
        """Return the source of the expression `key` with its parts filled in."""
        return self._filled(self._table[key], parts)

    def pattern(self, key: str, **parts: str) -> re.Pattern[str]:
        """Return the compiled expression `key`. Its `pattern` has no flags, so that it can be part of another
        expression."""
        return _compiled(self.text(key, **parts))

    def patterns(self, key: str, **parts: str) -> tuple[re.Pattern[str], ...]:
        """Return the compiled expressions of the array `key`."""
        return tuple(_compiled(self._filled(source, parts)) for source in self._table[key])

    def _filled(self, source: str, parts: dict[str, str]) -> str:
        def fill(match: re.Match[str]) -> str:
            part = match[1]
            if part in parts:
                return parts[part]
            return self.text(part, **parts) if part in self._table else match[0]

        return _PART.sub(fill, source.replace("\n", ""))


def compiled(source: str, **parts: str) -> re.Pattern[str]:
    """Return an expression of a table of a language, in the form of `Phrases`, with its parts filled in."""
    return _compiled(_PART.sub(lambda match: parts.get(match[1], match[0]), source.replace("\n", "")))


def _compiled(source: str) -> re.Pattern[str]:
    flags = _FLAGS.match(source)
    if flags is None:
        return lazy_pattern(source)
    return lazy_pattern(source[flags.end() :], sum(re.RegexFlag[letter.upper()] for letter in flags[1]))
