"""Watchers of faults in an argument text that is still arriving.

A watcher reads the text of one call. After each piece it returns the length of the text that may be sent for any text
after it. From the first suspicious place on nothing may be sent; a few characters are held until the next one decides
about them.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Protocol

from wirelint.arguments.argument_markup import TAGS
from wirelint.arguments.json_continuation import Scanner
from wirelint.arguments.schemas import element, kinds, member, plain
from wirelint.dialects.declared import properties_of
from wirelint.dialects.openers import any_of, cut_at
from wirelint.lexicon import lazy_pattern
from wirelint.model import Json, Tool
from wirelint.text.thinking import SPELT_OPENER, SPELT_TAG


class Watcher(Protocol):
    """Watcher of an argument text. `feed` returns the length of the text that may be sent.

    `is_suspicious`: there may be a fault, so the whole text must be checked. `complete`: a value has ended and nothing
    follows it.
    """

    @property
    def is_suspicious(self) -> bool: ...

    @property
    def complete(self) -> bool: ...

    def feed(self, piece: str) -> int: ...


class Everything:
    """Watcher that holds a whole call back."""

    is_suspicious = True
    complete = False

    def feed(self, piece: str) -> int:
        return -1


class _ScannerWatcher:
    """Base of watchers that scan the text as JSON. The value is complete when it has ended."""

    __slots__ = ("_scanner",)

    def __init__(self, scanner: Scanner | None = None) -> None:
        self._scanner = scanner or Scanner()

    @property
    def complete(self) -> bool:
        return self._scanner.closed is not None


class ValuesWatcher(_ScannerWatcher):
    """Watcher for a second value, or more members, after the first. An empty first value is held back."""

    __slots__ = ()

    @property
    def is_suspicious(self) -> bool:
        scanner = self._scanner
        return scanner.second is not None or (scanner.top not in ("", "{") and not self._is_prose)

    @property
    def complete(self) -> bool:
        return super().complete and self._scanner.second is None

    @property
    def _is_prose(self) -> bool:
        """Return True if the text begins no JSON value. A later error is different: `nullnull` is two values."""
        return self._scanner.broken is not None and self._scanner.broken == self._scanner.top_at

    def feed(self, piece: str) -> int:
        scanner = self._scanner
        scanner.feed(piece)
        if not scanner.filled:
            damaged = (scanner.broken is not None and scanner.top == "{") or scanner.lost
            return scanner.length if damaged or self._is_prose else 0
        # The bracket that closes an object is held until it is known that no more members follow.
        return scanner.length if scanner.closed is None else scanner.closed - 1


class SyntaxWatcher(_ScannerWatcher):
    """Watcher for the first character that is invalid in a JSON object; a comma is held until the next character."""

    __slots__ = ()

    @property
    def is_suspicious(self) -> bool:
        scanner = self._scanner
        return scanner.broken is not None or scanner.second is not None or scanner.top not in ("", "{")

    def feed(self, piece: str) -> int:
        scanner = self._scanner
        scanner.feed(piece)
        if scanner.top not in ("", "{"):
            return scanner.top_at
        if scanner.comma is not None:
            return scanner.comma
        if scanner.broken is not None:
            return scanner.broken
        return scanner.length if scanner.second is None else scanner.second


WRAPPERS = ("arguments", "input", "parameters", "params", "args", "kwargs")
"""Undeclared parameters in which models wrap all others."""
_FIRST_KEY = re.compile(r'\s*\{\s*(?:"(?P<key>[a-z]*)(?P<end>")?)?')


class KindWatcher(_ScannerWatcher):
    """Watcher for a value of a forbidden type that may spell a value of an allowed one.

    It also looks for an undeclared first key that may wrap the arguments.
    """

    __slots__ = ("_head", "_wrappers")
    _scanner: _KindScanner

    def __init__(self, tool: Tool) -> None:
        super().__init__(_KindScanner(plain(tool)))
        properties = properties_of(tool.schema)
        self._wrappers = [key for key in (*WRAPPERS, "name") if properties and key not in properties]
        self._head: str | None = ""

    @property
    def is_suspicious(self) -> bool:
        return self._scanner.wrong is not None

    def feed(self, piece: str) -> int:
        scanner = self._scanner
        if scanner.wrong is None:
            scanner.feed(piece)
        begun = self._wrapper_begins(piece) if self._head is not None else None
        return begun if begun is not None else scanner.length if scanner.wrong is None else scanner.wrong

    def _wrapper_begins(self, piece: str) -> int | None:
        """Return the offset of a first key that wraps the arguments, or may wrap them."""
        assert self._head is not None
        head = self._head + piece
        begun = _FIRST_KEY.match(head)
        key = begun["key"] if begun is not None else None
        if begun is not None and begun.end() == len(head) and not begun["end"]:
            self._head = head if key is None or any(name.startswith(key) for name in self._wrappers) else None
            return None if key is None or self._head is None else begun.start("key") - 1
        self._head = None if head.strip() else head
        if begun is None or key not in self._wrappers or not begun["end"]:
            return None
        self._scanner.wrong = begun.start("key") - 1
        return self._scanner.wrong


class _KindScanner(Scanner):
    """Scanner of values of a forbidden type. `wrong` is the offset of the first one."""

    __slots__ = ("_key", "_open", "_root", "wrong")

    def __init__(self, schema: Json) -> None:
        super().__init__()
        self.wrong: int | None = None
        self._root = schema
        self._open: list[tuple[Json, str | int]] = []
        """The schemas of the open containers, each with the key of its current member or the number of its next element."""
        self._key: list[str] = []

    def _value_begins(self, character: str, offset: int) -> None:
        place = self._place()
        if place is not None and self.wrong is None:
            kind = _KINDS.get(character, "number")
            allowed = kinds(place, self._root)
            readable = kind == "string" or (kind in ("number", "boolean") and "string" in allowed)
            if kind not in allowed and readable:
                self.wrong = offset
        if character in "{[":
            inner = place if isinstance(place, dict) and not _INSIDE[character].isdisjoint(place) else None
            self._open.append((inner, 0 if character == "[" else ""))

    def _may_skip(self) -> bool:
        return self._open[-1][0] is None

    def _place(self) -> Json:
        """Return the schema of the value that begins."""
        if not self._open:
            return self._root
        around, at = self._open[-1]
        if isinstance(at, int):
            self._open[-1] = (around, at + 1)
            return None if around is None else element(around, at, self._root)
        return None if around is None else member(around, at, self._root)

    def _key_text(self, text: str) -> None:
        self._key.append(text)

    def _key_ends(self) -> None:
        raw = "".join(self._key)
        self._key.clear()
        self._open[-1] = (self._open[-1][0], json.loads(f'"{raw}"') if "\\" in raw else raw)

    def _container_ends(self) -> None:
        self._open.pop()


_PARTS = ("allOf", "anyOf", "oneOf", "$ref")
_INSIDE = {
    "[": frozenset(("items", "prefixItems", "additionalItems", *_PARTS)),
    "{": frozenset(("properties", "patternProperties", "additionalProperties", *_PARTS)),
}
"""By bracket: the keywords of a schema that describe the contents of a container."""
_KINDS = {'"': "string", "{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}


class PatternWatcher:
    """Watcher of text that matches a pattern. Text that may begin a match is held back."""

    __slots__ = ("_firsts", "_length", "_pattern", "_tail", "_wrong")
    complete = False

    def __init__(self, pattern: re.Pattern[str], firsts: str) -> None:
        """`firsts`: the characters with which a match begins."""
        self._pattern, self._firsts = pattern, firsts
        self._length = 0
        self._tail = ""
        self._wrong: int | None = None

    @property
    def is_suspicious(self) -> bool:
        return self._wrong is not None

    def feed(self, piece: str) -> int:
        self._length += len(piece)
        if self._wrong is None and (self._tail or any(first in piece for first in self._firsts)):
            text = self._tail + piece
            found = self._pattern.search(text)
            if found is not None:
                self._wrong = self._length - len(text) + found.start()
            else:
                cut = cut_at(self._pattern, text, max(len(text) - _LONGEST_MATCH, 0))
                self._tail = "" if cut is None else text[cut:]
        return self._length - len(self._tail) if self._wrong is None else self._wrong


_LONGEST_MATCH = 512
_CLOSER = rf"(?:<|\\u003[cC])(?:(?:/|\\/)\s?(?:{any_of(TAGS)})\s?|\|[A-Za-z][\w-]{{0,39}}\|)(?:>|\\u003[eE])"
"""A closing tag or a control token in the spellings of JSON."""
_AT_END = lazy_pattern(rf'(?:{_CLOSER}(?:\s|\\[nrt])*){{1,16}}"')
_THOUGHT = lazy_pattern(
    lambda: rf'[:\[,]\s{{0,64}}"(?:\s|\\[nrt]){{0,64}}(?:{SPELT_OPENER.pattern})|{SPELT_TAG.pattern}', SPELT_TAG.flags
)


def markup_watcher() -> PatternWatcher:
    """Return a watcher of closing tags at the end of strings."""
    return PatternWatcher(_AT_END, "<\\")


def thought_watcher() -> PatternWatcher:
    """Return a watcher of native tags of reasoning. At the beginning of a string, the string is held back too."""
    return PatternWatcher(_THOUGHT, ":[,<&\\")


@lru_cache(maxsize=64)
def _voids(names: frozenset[str]) -> re.Pattern[str]:
    return re.compile(
        rf'[{{,]\s{{0,64}}"(?:{any_of(names)})"\s{{0,8}}:\s{{0,8}}"(?:null|undefined|none|nil|nan)"', re.IGNORECASE
    )


def void_watcher(names: frozenset[str]) -> PatternWatcher:
    """Return a watcher of members of these names whose value is a word for nothing: `"dir": "null"`.

    A repair removes the comma before the member too.
    """
    return PatternWatcher(_voids(names), "{,")
