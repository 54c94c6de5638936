"""What every family reads with: one view, the declared tools, and searches that stay linear.

Theory of operation. Text may hold any number of openers that lead nowhere, so a reader must never look far ahead twice
over the same stretch. Three means ensure it: `next` remembers where the next occurrence of a pattern is (or that there
is none), JSON is read in growing windows, and a family that gives up after reading on marks what it has read as `dead`
for the same kind of attempt. `work` counts the characters looked at, so that tests can hold us to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from wirelint.dialects import jsontext, names
from wirelint.dialects.jsontext import Decoded
from wirelint.dialects.shadow import View
from wirelint.dialects.values import NativeCall
from wirelint.model import Json, Tool

Pattern: TypeAlias = re.Pattern[str]
Match: TypeAlias = re.Match[str]

_SPACE = re.compile(r"\s*")
_WRITTEN_NAME = re.compile(r"[\w.:/$<>{}-][\w.:/$<>{} -]{0,127}")


class Reader:
    """One pass over one view. `floor` is the end of the last block: nothing before it may be claimed again."""

    def __init__(self, view: View, tools: Sequence[Tool]) -> None:
        self.view = view
        self.shadow = view.shadow
        self.tools = {tool.name: tool for tool in tools}
        self.floor = 0
        self.work = 0
        self.dead: dict[object, int] = {}
        self._found: dict[Pattern, tuple[int, Match | None]] = {}

    @property
    def size(self) -> int:
        return len(self.shadow)

    def next(self, pattern: Pattern, position: int) -> Match | None:
        """The first match at or after a position."""
        known = self._found.get(pattern)
        if known is not None and known[0] <= position and (known[1] is None or known[1].start() >= position):
            return known[1]
        match = pattern.search(self.shadow, position)
        self.work += (match.start() if match else self.size) - position + 1
        self._found[pattern] = (position, match)
        return match

    def space(self, position: int) -> int:
        """The offset after white space."""
        match = _SPACE.match(self.shadow, position)
        end = match.end() if match else position
        self.work += end - position + 1
        return end

    def json(self, position: int) -> Decoded:
        decoded = jsontext.decode_at(self.view.text, position)
        self.work += decoded.end - position + 1
        if decoded.failed or not self.view.starts or self.view.decoded:
            return decoded
        # Zero-width characters inside strings belong to the values: decode the original bytes once more.
        again = jsontext.decode_at(self.view.cut(position, decoded.end), 0)
        return decoded if again.failed else Decoded(again.value, decoded.end, again.healthy)

    def repair(self, start: int, end: int) -> Decoded | None:
        """The damaged JSON value between two offsets."""
        self.work += end - start + 1
        repaired = jsontext.repair(self.view.text[start:end])
        if repaired is None:
            return None
        return Decoded(repaired.value, start + repaired.end, healthy=False, missing=repaired.missing)

    def value(self, start: int, end: int) -> str:
        """Text as the model wrote it."""
        return self.view.cut(start, end)

    def resolve(self, written: str) -> str:
        return names.resolve(written, self.tools)

    def tool(self, written: str) -> Tool | None:
        return self.tools.get(self.resolve(written))

    def call(self, written: str, arguments: Json, *, complete: bool, native_id: str | None = None) -> NativeCall:
        """A call as found; arguments that are no object, or that JSON cannot hold, count as unreadable."""
        name = self.resolve(written)
        if not isinstance(arguments, dict) or not jsontext.writable(arguments):
            return NativeCall(name, None, native_id, False)
        return NativeCall(name, arguments, native_id, complete)

    def stand_ins(self, calls: Sequence[NativeCall]) -> bool:
        """Whether all calls name placeholders, as documentation does."""
        return bool(calls) and all(call.name not in self.tools and names.is_stand_in(call.name) for call in calls)


def is_name(text: str) -> bool:
    """Whether a text can be the name of a tool at all."""
    return _WRITTEN_NAME.fullmatch(text) is not None
