"""Tables of TOML whose keys and types are known. What is wrong is told in a line: file, key, cure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TypeVar

Word = TypeVar("Word", bound=str)


class ConfigError(ValueError):
    """A configuration that cannot be used. The text is one line: file, key, what is wrong, the cure."""


class Table:
    """A table of a file. `name` is what it is called there, empty for the whole of it."""

    def __init__(self, value: object, source: str, name: str = "") -> None:
        self._source, self._name = source, name
        if not isinstance(value, dict):
            raise self.error("", f"{shown(value)} is no table; write [{name}]")
        self._table: dict[str, object] = value

    def know(self, keys: Sequence[str]) -> None:
        """Refuses every other key."""
        for key in self._table:
            if key not in keys:
                near = difflib.get_close_matches(key.replace("_", "-"), keys, 1, 0.6)
                hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(keys)}"
                raise self.error(key, f"no such key; {hint}")

    def names(self, key: str) -> tuple[str, ...] | None:
        """One text or several, in the file a text or a list."""
        if key not in self._table:
            return None
        value = self._table[key]
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) and item.strip() for item in items):
            raise self.error(key, f'{shown(value)} must be a list of names, as in {key} = ["one", "two"]')
        return tuple(str(item).strip() for item in items)

    def text(self, key: str) -> str | None:
        value = self._table.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error(key, f"{shown(value)} must be text in quotes")
        return value

    def scalar(self, key: str) -> str | int | None:
        value = self._table.get(key)
        if isinstance(value, bool) or not isinstance(value, (str, int, type(None))):
            raise self.error(key, f'{shown(value)} must be a number of bytes, or text such as "32m"')
        return value

    def switch(self, key: str) -> bool | None:
        value = self._table.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(key, f"{shown(value)} must be true or false, without quotes")
        return value

    def number(self, key: str, most: float) -> float | None:
        """Seconds, more than none."""
        value = self._table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
            raise self.error(key, f"{shown(value)} must be a number of seconds, up to {most:.0f}")
        return float(value)

    def choice(self, key: str, words: tuple[Word, ...]) -> Word | None:
        if key not in self._table:
            return None
        return self._word(key, self._table[key], words)

    def choices(self, key: str, words: tuple[Word, ...]) -> tuple[tuple[str, Word], ...]:
        """A table of words."""
        value = self._table.get(key, {})
        if not isinstance(value, dict):
            raise self.error(key, f'{shown(value)} must be a table, as in {key} = {{ xml-leak = "{words[0]}" }}')
        return tuple((str(name), self._word(f"{key}.{name}", word, words)) for name, word in value.items())

    def tables(self, key: str) -> list[Table]:
        """An array of tables: `[[key]]`."""
        value = self._table.get(key, [])
        inner = f"{self._name}.{key}" if self._name else key
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(key, f"must be tables; write [[{inner}]], in two brackets")
        return [Table(item, self._source, f"{inner}[{number}]") for number, item in enumerate(value, 1)]

    def error(self, key: str, said: str) -> ConfigError:
        where = ".".join(part for part in (self._name, key) if part)
        return ConfigError(f"{self._source}: {where}: {said}" if where else f"{self._source}: {said}")

    def _word(self, key: str, value: object, words: tuple[Word, ...]) -> Word:
        for word in words:
            if value == word:
                return word
        near = difflib.get_close_matches(str(value), words, 1, 0.6)
        hint = f"did you mean {near[0]}?" if near else f"write one of {', '.join(words)}"
        raise self.error(key, f"{shown(value)} is none of its words; {hint}")


def shown(value: object) -> str:
    return "true" if value is True else "false" if value is False else repr(value)
