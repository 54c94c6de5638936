"""Fix for `fabricated-result`: a tool result that the model made up is cut out of its text, with all text after it.

The text before the result is kept. The text after it depends on a result that never existed, and is cut to the end of
the block. The rule's own function decides, on the text so far. A marker (`<tool_response>`) waits for the first
character after it, since a marker without text after it is only a mention.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from wirelint.fix import MOST_HELD, RewriteContext
from wirelint.fixes.text import MakeRepair, Pause, TextBlock, TextBuffer, TextDecider, TextRewriter
from wirelint.text import fabricated_results
from wirelint.text.fabricated_results import Invented

_READ = 16
_SLACK = 1 << 18
_CONTEXT = 512


class FabricationDecider(TextDecider):
    """Decides on one block. `_tail` is the end of its text from offset `_base` on.

    `_quiet`: no marker can be complete, or begin, in the text so far.
    """

    def __init__(self, cutter: FabricationCutter, block: TextBlock) -> None:
        super().__init__(cutter, block)
        self._cutter = cutter
        self._text = TextBuffer()
        self._tail = ""
        self._base = self._read = self._judged = 0
        self._gone = self._quiet = False

    @property
    def is_open(self) -> bool:
        """Return True if the text so far ends on a call whose result, in tags of any name, may follow."""
        return not (self._gone or self.left) and fabricated_results.ends_call(self._tail)

    def add(self, text: str) -> None:
        block = self.block
        if self._gone:
            block.cut(block.length - len(text), block.length)
            self.let_go()
        else:
            self._text.add(text)
            self._tail += text
            if self._quiet and not fabricated_results.SPARK.search(text):  # the usual case
                self.let_go()
                self._trim()
                return
            self._decide(final=False)
            self._quiet = block.sure == block.length and not self._tail.endswith("\n")

    def pause(self, why: Pause) -> None:
        if why != "other":
            self._decide(final=True)
        self.let_go()

    def leave(self) -> None:
        if not self._gone:
            self._decide(final=False)
            self.left = not self._gone
            self.let_go()

    def _decide(self, *, final: bool) -> None:
        block = self.block
        place = max(block.sure - self._base, 0)
        while (found := fabricated_results.next_marker(self._tail, place)) is not None:
            start, end = found
            if not self._tail[end:].strip() and not final:
                block.sure = max(block.sure, self._base + start)
                if block.length - block.sure > MOST_HELD:
                    self.abandon(f"white space of more than {MOST_HELD} characters was released unchanged")
                self._trim()
                return
            if (invented := self._judge()) is not None:
                self._cut(invented)
                return
            if self.left:
                return
            place = end
        block.sure = block.length - (0 if final else fabricated_results.cut_marker(self._tail))
        self._trim()

    def _trim(self) -> None:
        # Keep the line in which undecided text begins: a marker depends on its place in the line, or on a call before it.
        sure = self.block.sure - self._base
        line = self._tail.rfind("\n", 0, max(sure, 0)) + 1
        keep = max(min(line - 1, sure - fabricated_results.PAIR_REACH), sure - _CONTEXT, 0)
        self._base += keep
        self._tail = self._tail[keep:]

    def _judge(self) -> Invented | None:
        """Return a fabricated result in the text so far. Reading stops when it becomes too much work."""
        text = self._text.text()
        self._read += len(text)
        if self._read > _READ * len(text) + _SLACK:
            self.abandon("text full of markers of results was left unchanged")
            return None
        if len(text) == self._judged:  # another marker of the text that was checked
            return None
        self._judged = len(text)
        found = self._cutter.find(text)
        return found if found is not None and found.sure else None

    def _cut(self, found: Invented) -> None:
        block, text = self.block, self._text.text()
        start = max(found.start, block.sure)
        event = self.event_at(start)
        block.cut(max(len(text[:start].rstrip()), block.sure), block.length)
        self.let_go()
        self._gone = True
        title = f"cut the fabricated result, from {found.marker} on"
        self._cutter.record(block, title, event=event, before=text[found.start :])


class FabricationCutter(TextRewriter):
    """Cuts fabricated results. `find` returns the first one of a text, sure or not; None without one."""

    phase: ClassVar[float] = 3.05
    decider = FabricationDecider

    def __init__(self, context: RewriteContext, repair: MakeRepair, find: Callable[[str], Invented | None]) -> None:
        super().__init__(context, repair)
        self.find = find
