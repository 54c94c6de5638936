"""Typed access to TOML tables with a fixed set of keys. An error is one line: file, key, fault, cure."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
Word = TypeVar("Word", bound=str)


class ConfigError(ValueError):
    """A configuration or policy file that cannot be used. The text is one line: file, key, fault, cure."""


def read_toml(path: Path, shown: str, kind: str) -> dict[str, object]:
    """Return the document of a file. `shown`: its name, and `kind`: its noun in errors. Raises ConfigError."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{shown}: {error.strerror or error}; name a {kind} that can be read") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{shown}: not TOML: {error}; correct that line") from error


class Table:
    """A table of a file. `name` is its name there, empty for the whole document. `title` replaces the name in errors."""

    def __init__(self, value: object, source: str, name: str = "", title: str = "") -> None:
        self._source, self._name, self._title = source, name, title
        if not isinstance(value, dict):
            raise self.error("", f"{shown(value)} is not a table; write [{name}]")
        self.values: dict[str, object] = value

    def know(self, keys: Sequence[str]) -> None:
        """Raise an error if the table has a key that is not in `keys`."""
        for key in self.values:
            if key not in keys:
                near = hint(key.replace("_", "-"), keys) or f"the keys are {', '.join(keys)}"
                raise self.error(key, f"no such key; {near}")

    def names(self, key: str, example: str = '"one", "two"') -> tuple[str, ...] | None:
        """Return one or several names: a string or a list in the file; None without the key."""
        if key not in self.values:
            return None
        value = self.values[key]
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) and item.strip() for item in items):
            raise self.error(key, f"{shown(value)} must be a name or a list of names, as in {key} = [{example}]")
        return tuple(str(item).strip() for item in items)

    def text(self, key: str) -> str | None:
        return self._typed(key, str, "text in quotes")

    def switch(self, key: str) -> bool | None:
        return self._typed(key, bool, "true or false, without quotes")

    def scalar(self, key: str) -> str | int | None:
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, (str, int, type(None))):
            raise self.error(key, f'{shown(value)} must be a number of bytes, or text such as "32m"')
        return value

    def number(self, key: str, most: float) -> float | None:
        """Return a number of seconds above 0 and up to `most`; None without the key."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
            raise self.error(key, f"{shown(value)} must be a number of seconds, up to {most:.0f}")
        return float(value)

    def choice(self, key: str, words: tuple[Word, ...]) -> Word | None:
        return self._word(key, self.values[key], words) if key in self.values else None

    def choices(self, key: str, words: tuple[Word, ...]) -> tuple[tuple[str, Word], ...]:
        """Return a table whose values are among `words`, as (key, word)."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.error(key, f'{shown(value)} must be a table, as in {key} = {{ xml-leak = "{words[0]}" }}')
        return tuple((str(name), self._word(f"{key}.{name}", word, words)) for name, word in value.items())

    def tables(self, key: str) -> list[Table]:
        """Return an array of tables: `[[key]]`."""
        value = self.values.get(key, [])
        inner = f"{self._name}.{key}" if self._name else key
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.error(key, f"must be tables; write [[{inner}]], in two brackets")
        return [Table(item, self._source, f"{inner}[{number}]") for number, item in enumerate(value, 1)]

    def error(self, key: str, text: str) -> ConfigError:
        where = f"{self._title}: {key}" if self._title and key else self._title
        where = where or ".".join(part for part in (self._name, key) if part)
        return ConfigError(f"{self._source}: {where}: {text}" if where else f"{self._source}: {text}")

    def _typed(self, key: str, kind: type[T], words: str) -> T | None:
        value = self.values.get(key)
        if value is not None and not isinstance(value, kind):
            raise self.error(key, f"{shown(value)} must be {words}")
        return value

    def _word(self, key: str, value: object, words: tuple[Word, ...]) -> Word:
        for word in words:
            if value == word:
                return word
        near = hint(str(value), words) or f"write one of {', '.join(words)}"
        raise self.error(key, f"{shown(value)} is not allowed; {near}")


def hint(word: str, known: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> str:
    """Return `did you mean A or B?`, or an empty string if no known word is similar. `cutoff` as in `difflib`."""
    near = difflib.get_close_matches(word, list(known), most, cutoff)
    return f"did you mean {' or '.join(near)}?" if near else ""


def shown(value: object) -> str:
    return "true" if value is True else "false" if value is False else repr(value)
