"""What every family reads with: one view, the declared tools, and searches that stay linear.

Theory of operation. Text may hold any number of openers that lead nowhere, so a reader must never look far ahead twice
over the same stretch. Three means ensure it: `next` remembers where the next occurrence of a pattern is (or that there
is none), JSON is read in growing windows, and a family that gives up after reading on marks what it has read as `dead`
for the same kind of attempt. `work` counts the characters looked at, so that tests can hold us to it.

A stream is read with the same code before its text is over. Then `open` tells, after a family has read, whether what it
answered may change as more text comes: it is set by every look that came to the end of the text. So a family looks at
the text through the reader's methods alone, never at `shadow` by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from wirelint.dialects import jsontext, names
from wirelint.dialects.jsontext import Decoded
from wirelint.dialects.partial import may_go_on
from wirelint.dialects.shadow import View
from wirelint.dialects.values import NativeCall
from wirelint.model import Json, Tool

Pattern: TypeAlias = re.Pattern[str]
Match: TypeAlias = re.Match[str]

_NEAR = 64
_THOUGHT = ("</think>", "</thinking>", "[/THINK]", "</seed:think>", "</mm:think>")
_SPACE = re.compile(r"\s*")
_CONTROL = re.compile(r"(?:\s|<\|[^|<>\s]{1,40}\|>|</s>|<eos>|<end_of_turn>)*+")
_WRITTEN_NAME = re.compile(r"[\w.:/$<>{}-][\w.:/$<>{} -]{0,127}")


class Reader:
    """One pass over one view. `floor` is the end of the last block: nothing before it may be claimed again.

    `over`: no more text will come. `open`: what was read may change when more text comes (never set when `over`).
    `strangers`: a name has been read that no declared tool has.
    """

    def __init__(self, view: View, tools: Sequence[Tool], *, over: bool = True) -> None:
        self.view = view
        self.shadow = view.shadow
        self.size = len(view.shadow)
        self.tools = {tool.name: tool for tool in tools}
        self.over = over
        self.open = False
        self.strangers = False
        self.floor = 0
        self.work = 0
        self.dead: dict[object, int] = {}
        self._found: dict[Pattern, tuple[int, Match | None]] = {}

    def match(self, pattern: Pattern, position: int) -> Match | None:
        """The match of a pattern that begins at a position."""
        match = pattern.match(self.shadow, position)
        if not (self.over or self.open) and may_go_on(pattern, self.shadow, position):
            self.open = True
        return match

    def next(self, pattern: Pattern, position: int) -> Match | None:
        """The first match at or after a position. Where one is missing, it may still come."""
        match = self.seek(pattern, position)
        if match is None or match.end() == self.size:
            self.open = self.open or not self.over
        return match

    def first(self, patterns: Iterable[Pattern], position: int) -> Match | None:
        """The first match of any of the patterns; of several at one place that of the first in order."""
        found: Match | None = None
        for pattern in patterns:
            match = self.seek(pattern, position)
            if match is not None and (found is None or match.start() < found.start()):
                found = match
        if found is None or found.end() == self.size:
            self.open = self.open or not self.over
        return found

    def seek(self, pattern: Pattern, position: int) -> Match | None:
        """The first match at or after a position, where one that is missing says nothing."""
        known = self._found.get(pattern)
        if known is not None and known[0] <= position and (known[1] is None or known[1].start() >= position):
            return known[1]
        match = pattern.search(self.shadow, position)
        self.work += (match.start() if match else self.size) - position + 1
        self._found[pattern] = (position, match)
        return match

    def between(self, pattern: Pattern, start: int, end: int) -> Match | None:
        """The first match between two offsets, which have both come already."""
        match = self.seek(pattern, start)
        return match if match is not None and match.end() <= end else None

    def ended(self, position: int) -> bool:
        """Whether the text ends at a position."""
        if position < self.size:
            return False
        self.open = self.open or not self.over
        return True

    def char(self, position: int) -> str:
        """The character at a position, in the shadow; empty at the end of the text."""
        return "" if self.ended(position) else self.shadow[position]

    def begins(self, position: int) -> bool:
        """Whether nothing but white space stands before a position in the text, or in what follows its reasoning."""
        before = self.shadow[max(position - _NEAR, 0) : position].rstrip()
        return before.endswith(_THOUGHT) if before else position <= _NEAR

    def concludes(self, position: int) -> bool:
        """Whether nothing but white space and control tokens stands between a position and the end of the text."""
        rest = self.match(_CONTROL, position)
        end = rest.end() if rest is not None else position
        self.work += end - position + 1
        return self.ended(end)

    def space(self, position: int) -> int:
        """The offset after white space."""
        match = _SPACE.match(self.shadow, position)
        end = match.end() if match else position
        self.work += end - position + 1
        if end == self.size:
            self.open = self.open or not self.over
        return end

    def json(self, position: int) -> Decoded:
        """The JSON value at a position; `failed` when there is none, or none that is whole."""
        decoded = jsontext.decode_at(self.view.text, position)
        self.work += decoded.end - position + 1
        if not self.over and decoded.end >= self.size and (decoded.failed or self.shadow[-1:] not in '}]"'):
            self.open = True
        if decoded.failed or not self.view.starts or self.view.decoded:
            return decoded
        # Zero-width characters inside strings belong to the values: decode the original bytes once more.
        again = jsontext.decode_at(self.view.cut(position, decoded.end), 0)
        return decoded if again.failed else Decoded(again.value, decoded.end, again.healthy)

    def repair(self, start: int, end: int) -> Decoded | None:
        """The damaged JSON value between two offsets."""
        self.work += end - start + 1
        self.ended(end)
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
        """The declared tool that a written name means."""
        tool = self.tools.get(self.resolve(written))
        self.strangers = self.strangers or tool is None
        return tool

    def call(self, written: str, arguments: Json, *, complete: bool, native_id: str | None = None) -> NativeCall:
        """A call as found; arguments that are no object, or that JSON cannot hold, count as unreadable."""
        name = self.resolve(written)
        self.strangers = self.strangers or name not in self.tools
        if not isinstance(arguments, dict) or not jsontext.writable(arguments):
            return NativeCall(name, None, native_id, False)
        return NativeCall(name, arguments, native_id, complete)

    def stand_ins(self, calls: Sequence[NativeCall]) -> bool:
        """Whether all calls name placeholders, as documentation does."""
        return bool(calls) and all(call.name not in self.tools and names.is_stand_in(call.name) for call in calls)


def is_name(text: str) -> bool:
    """Whether a text can be the name of a tool at all."""
    return _WRITTEN_NAME.fullmatch(text) is not None
