"""A tool result that the model made up is cut out of its text, with all that follows from it.

The text up to the result is the model's own and stays. What comes after it is told from something that never happened,
and goes with it, up to the end of the block. The judgement is the rule's own, on the text so far; a marker waits for the
first character behind it, since one that nothing follows is only spoken of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from wirelint.fix import MOST_HELD, RewriteContext
from wirelint.fixes.text import MakeRepair, Pause, TextBlock, TextRewriter
from wirelint.text.fabricated_results import Invented, cut_marker, invented_result, may_lead_to_marker, next_marker

_READ = 16
_SLACK = 1 << 18


class Editor(TextRewriter):
    """Repairs a reply under FB202. `counts` says whether a result of this form is one that the reply could not have."""

    phase: ClassVar[float] = 3.05

    def __init__(self, context: RewriteContext, repair: MakeRepair, counts: Callable[[Invented], bool]) -> None:
        super().__init__(context, repair)
        self.counts = counts

    def judge(self, strand: TextBlock) -> InventionJudge | None:
        return InventionJudge(self, strand) if strand.start.kind == "text" else None


class InventionJudge:
    def __init__(self, editor: Editor, strand: TextBlock) -> None:
        self._editor = editor
        self._strand = strand
        self._text: list[str] = []
        self._tail = ""
        self._base = 0
        self._read = 0
        self._late: list[str] = []
        self._gone = self._left = self._quiet = False

    def add(self, text: str) -> None:
        strand = self._strand
        if self._gone:
            strand.cut(strand.length - len(text), strand.length)
            strand.sure = strand.length
        elif self._left:
            strand.sure = strand.length
        elif self._quiet and not may_lead_to_marker(text):  # nearly all of it
            self._late.append(text)
            strand.sure = strand.length
        else:
            self._join()
            self._text.append(text)
            self._tail += text
            self._decide(final=False)
            self._quiet = strand.sure == strand.length and not self._tail.endswith("\n")

    def note(self, text: str) -> bool:
        if self._left:
            return True
        if self._gone or not self._quiet:
            return False
        self._late.append(text)
        self._quiet = not may_lead_to_marker(text)  # a line that ends leads to one
        return True

    def _join(self) -> None:
        """Takes in the text that nothing was to be seen in."""
        if self._late:
            text = "".join(self._late)
            self._late.clear()
            self._text.append(text)
            self._tail += text
            self._trim()

    def pause(self, why: Pause) -> None:
        if why != "other":
            self._decide(final=True)
        self.give_up()

    def give_up(self) -> None:
        self._strand.sure = self._strand.length

    def leave(self) -> None:
        if not (self._gone or self._left):
            self._decide(final=False)
            self._left = not self._gone
            self.give_up()

    def _decide(self, *, final: bool) -> None:
        """Goes through the markers in what is undecided."""
        self._join()
        strand = self._strand
        place = max(strand.sure - self._base, 0)
        while (found := next_marker(self._tail, place)) is not None:
            start, end = found
            if not self._tail[end:].strip() and not final:
                self._wait(start)
                return
            if (invented := self._judge()) is not None:
                self._cut(invented)
                return
            if self._left:
                return
            place = end
        strand.sure = strand.length - (0 if final else cut_marker(self._tail))
        self._trim()

    def _wait(self, start: int) -> None:
        strand = self._strand
        strand.sure = max(strand.sure, self._base + start)
        if strand.length - strand.sure > MOST_HELD:
            self._left = True
            self.give_up()
        self._trim()

    def _trim(self) -> None:
        # The line in which the undecided begins is kept: markers are told by where in a line they stand.
        line = self._tail.rfind("\n", 0, max(self._strand.sure - self._base, 0)) + 1
        keep = max(line - 1, self._strand.sure - self._base - 512, 0)
        self._base += keep
        self._tail = self._tail[keep:]

    def _judge(self) -> Invented | None:
        if len(self._text) > 1:
            self._text = ["".join(self._text)]
        text = self._text[0]
        self._read += len(text)
        if self._read > _READ * len(text) + _SLACK:
            self._left = True
            self.give_up()
            return None
        found = invented_result(text)
        return found if found is not None and self._editor.counts(found) else None

    def _cut(self, found: Invented) -> None:
        strand, editor = self._strand, self._editor
        start = max(found.start, strand.sure)
        text = self._text[0]
        kept = text[:start].rstrip()
        event = strand.frame_at(start) if editor.context.streamed else None
        start = max(len(kept), strand.sure)
        strand.cut(start, strand.length)
        strand.sure = strand.length
        self._gone = True
        editor.context.repairs.append(
            editor.repair(
                "response",
                "unsafe",
                f"cut the result that the model made up, from {found.marker} on",
                strand.start.pointer,
                event=event,
                before=text[found.start :],
            )
        )
