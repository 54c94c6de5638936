"""Makes JSON smaller while a property of it stays: delta debugging, level by level (Zeller; Misherghi and Su).

Sans-I/O and deterministic: the same value and the same test give the same result. The test is what costs, so a `Budget`
counts how often it is asked; when that is used up, what was reached so far is the result.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from wirelint.model import Json

T = TypeVar("T")
Path: TypeAlias = tuple[str | int, ...]

_WORD = re.compile(r"\S+\s*|\s+")
_PART = re.compile(r"\s+|\w+|[^\w\s]")
_MARK = re.compile(r"\[redacted:[0-9a-f]{8}\]")


class Budget:
    """How often a test may be asked, and for how many seconds at the longest."""

    def __init__(self, steps: int = 2500, seconds: float = 30.0) -> None:
        self.steps = 0
        self._most = steps
        self._until = time.monotonic() + seconds

    @property
    def spent(self) -> bool:
        return self.steps >= self._most or time.monotonic() >= self._until

    def take(self) -> bool:
        """Whether one more test may be made."""
        if self.spent:
            return False
        self.steps += 1
        return True


class Shrinker:
    """Holds the smallest value so far that passes the test. `value` passes it."""

    def __init__(self, value: Json, test: Callable[[Json], bool], budget: Budget) -> None:
        self.value = value
        self.budget = budget
        self._test = test

    def offer(self, value: Json) -> bool:
        """Takes a value if it passes."""
        if value == self.value:
            return True
        if not self.budget.take() or not self._test(value):
            return False
        self.value = value
        return True

    def drop(self, path: Path = (), kept: frozenset[str] = frozenset()) -> None:
        """Takes out members and elements that the test does not need, from the top down. `kept`: names of members that
        stay, and whose lists stay filled."""
        if self.budget.spent:
            return
        node = at(self.value, path)
        if isinstance(node, list):
            self._drop_among(path, list(range(len(node))), empty=not path or path[-1] not in kept)
        elif isinstance(node, dict):
            self._drop_among(path, [name for name in node if name not in kept])
        node = at(self.value, path)
        inner: Sequence[str | int] = ()
        if isinstance(node, list):
            inner = range(len(node))
        elif isinstance(node, dict):
            inner = list(node)
        for key in inner:
            self.drop((*path, key), kept)

    def _drop_among(self, path: Path, keys: Sequence[str | int], *, empty: bool = True) -> None:
        def without(left: Sequence[str | int]) -> bool:
            gone = set(keys) - set(left)
            if self.budget.spent or not (left or empty):
                return False
            return self.offer(put(whole, path, _without(at(whole, path), gone)))

        whole = self.value
        if keys:
            minimise(keys, without)

    def plain(self, kept: Callable[[Path, str], bool]) -> list[Path]:
        """Makes texts say nothing, in their own shape; gives the places of those that the test needs as they are."""
        places = [path for path, text in texts(self.value) if not kept(path, text) and neutral(text) != text]
        whole = self.value

        def real(left: Sequence[Path]) -> bool:
            if self.budget.spent:
                return False
            made = whole
            for path in set(places) - set(left):
                made = put(made, path, neutral(str(at(whole, path))))
            return self.offer(made)

        return list(minimise(places, real)) if places else []

    def clip(self, longest: int = 48) -> None:
        """Makes long texts that say nothing short."""
        whole = self.value
        places = [path for path, text in texts(whole) if len(text) > longest and neutral(text) == text]

        def long(left: Sequence[Path]) -> bool:
            if self.budget.spent:
                return False
            made = whole
            for path in set(places) - set(left):
                made = put(made, path, str(at(whole, path))[:longest].rsplit(" ", 1)[0])
            return self.offer(made)

        if places:
            minimise(places, long)

    def shorten(self, path: Path) -> None:
        """Makes a text short, and all of it say nothing that the test does not need."""
        words = _split(str(at(self.value, path)), _WORD)

        def shorter(left: Sequence[int]) -> bool:
            return self.offer(put(self.value, path, "".join(words[number] for number in left)))

        minimise(range(len(words)), shorter)
        words = _split(str(at(self.value, path)), _PART)

        def real(left: Sequence[int]) -> bool:
            told = set(left)
            made = (word if number in told else neutral(word) for number, word in enumerate(words))
            return self.offer(put(self.value, path, "".join(made)))

        minimise([number for number, word in enumerate(words) if neutral(word) != word], real)


def minimise(items: Sequence[T], test: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """The fewest items that pass, one-minimal where the budget lasts. All of them pass."""
    if test([]):
        return []
    parts = 2
    while len(items) >= 2:
        size = -(-len(items) // parts)
        for start in range(0, len(items), size):
            left = [*items[:start], *items[start + size :]]
            if left and test(left):
                items, parts = left, max(parts - 1, 2)
                break
        else:
            if parts >= len(items):
                break
            parts = min(parts * 2, len(items))
    return items


def texts(value: Json, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """All texts of a value with their places."""
    match value:
        case str():
            yield path, value
        case dict():
            for name, item in value.items():
                yield from texts(item, (*path, name))
        case list():
            for number, item in enumerate(value):
                yield from texts(item, (*path, number))
        case _:
            pass


def neutral(text: str) -> str:
    """A text of the same shape that says nothing: letters become x, digits 0. Marks of redaction stay."""
    pieces = itertools.zip_longest(_MARK.split(text), _MARK.findall(text), fillvalue="")
    return "".join(_plain(between) + mark for between, mark in pieces)


def _plain(text: str) -> str:
    return "".join(("X" if one.isupper() else "x") if one.isalpha() else "0" if one.isdigit() else one for one in text)


def _split(text: str, form: re.Pattern[str]) -> list[str]:
    """The pieces of a text; a mark of redaction is one of them."""
    words: list[str] = []
    for between, mark in itertools.zip_longest(_MARK.split(text), _MARK.findall(text), fillvalue=""):
        words += form.findall(between)
        if mark:
            words.append(mark)
    return words


def at(value: Json, path: Path) -> Json:
    for key in path:
        match value, key:
            case dict(), str():
                value = value[key]
            case list(), int():
                value = value[key]
            case _:
                raise KeyError(key)
    return value


def put(value: Json, path: Path, new: Json) -> Json:
    """The value with another one at a place; nothing is changed in place."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    match value, key:
        case dict(), str():
            return {**value, key: put(value[key], rest, new)}
        case list(), int():
            return [*value[:key], put(value[key], rest, new), *value[key + 1 :]]
        case _:
            raise KeyError(key)


def _without(value: Json, keys: set[str | int]) -> Json:
    match value:
        case dict():
            return {name: item for name, item in value.items() if name not in keys}
        case list():
            return [item for number, item in enumerate(value) if number not in keys]
        case _:
            return value
