"""Finds, in an argument text that is still arriving, a member whose value is the word for nothing: `"dir": "null"`."""

from __future__ import annotations

from collections.abc import Collection

from wirelint.arguments.json_scanner import Scanner

_WORDS = ('"null"', '"undefined"', '"none"', '"nil"', '"nan"')
_BEGUN = frozenset(word[:size] for word in _WORDS for size in range(1, len(word)))
_LONGEST = max(map(len, _WORDS))


class VoidWatcher:
    """A watcher (`argument_watchers.Watcher`). A member of the object leaves once its value shows that it is another word.

    Members that do not have one of `names` leave as they come. What is kept begins at the comma before the member, since
    that would go with it.
    """

    __slots__ = ("_scanner", "_tail", "_tail_at", "suspicious")

    def __init__(self, names: Collection[str]) -> None:
        self._scanner = _Members(frozenset(names))
        self._tail = ""
        self._tail_at = 0
        self.suspicious = False

    @property
    def complete(self) -> bool:
        return self._scanner.closed is not None

    def feed(self, piece: str) -> int:
        scanner = self._scanner
        if self.suspicious:
            return self._tail_at
        text = self._tail + piece
        scanner.feed(piece)
        while scanner.begun:
            member, value = scanner.begun[0]
            word = text[value - self._tail_at :][:_LONGEST].lower()
            if word in _BEGUN or word.startswith(_WORDS):
                self.suspicious = word not in _BEGUN
                return self._keep(text, member)
            scanner.begun.pop(0)
        return self._keep(text, scanner.member if scanner.is_between else scanner.length)

    def _keep(self, text: str, start: int) -> int:
        self._tail, self._tail_at = text[start - self._tail_at :], start
        return start


class _Members(Scanner):
    """`begun`: where members of the object begin whose value is a string, and where that begins. `member`: the last one."""

    __slots__ = ("_depth", "_key", "_names", "_wanted", "begun", "is_between", "member")

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self._names = names
        self._key: list[str] = []
        self._depth = 0
        self._wanted = False
        self.begun: list[tuple[int, int]] = []
        self.member = 0
        self.is_between = False

    def _structure(self, character: str, place: int, base: int) -> int:
        before = self.comma
        end = super()._structure(character, place, base)
        if self.comma is not None and self.comma != before and self._depth == 1:
            self.member, self.is_between = self.comma, True
        return end

    def _value_begins(self, character: str, offset: int) -> None:
        if self._depth == 1:
            self.is_between = False
            if character == '"' and self._wanted:
                self.begun.append((self.member, offset))
        if character in "{[":
            self._depth += 1
            if self._depth == 1 and character == "{":
                self.member, self.is_between = offset + 1, True

    def _key_text(self, text: str) -> None:
        if self._depth == 1:
            self._key.append(text)

    def _key_ends(self) -> None:
        self._wanted = "".join(self._key) in self._names
        self.is_between = self.is_between and self._wanted
        self._key.clear()

    def _container_ends(self) -> None:
        self._depth -= 1
        if not self._depth:
            self.is_between = False
