"""Reasoning in the visible text of a reply moves to the field that the API has for it.

Theory of operation. At the beginning of a text, past white space and the framing of a turn, a few characters tell whether
reasoning is opened there. If so it is passed on as reasoning while it comes, since a person waits for it; only what may
begin the closing tag is held back, and after it the text begins anew. A tag that opens in the middle counts only as a
pair, so there the thought waits for its end. Reasoning whose opening tag is missing can be told only at its end: it is
moved where all of it is still here, in a whole body or within one event. Where the last reply of the same model began so,
the text of a stream waits for that end; elsewhere it has left as text by then, and only the tag goes. Frames made of words
are treated like pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from wirelint.apis.traits import traits
from wirelint.events import Close, Delta, Event, Frame, Start
from wirelint.fix import RewriteContext
from wirelint.fixes.text import MakeRepair, TextBlock, TextRewriter
from wirelint.fixes.thought_decider import ThoughtJudge
from wirelint.model import Request
from wirelint.text.asking import asks_for
from wirelint.text.thinking import Thinking

Applies = Callable[[Thinking, bool], bool]
"""Whether the rule counts a thought, given whether the candidate has reasoning of its own."""


class Mover(TextRewriter):
    """Repairs a reply under LK103."""

    phase: ClassVar[float] = 3.0

    def __init__(
        self, context: RewriteContext, request: Request, repair: MakeRepair, applies: Applies, live: bool, inside: bool
    ) -> None:
        """`live`: a thought may be passed on before its end is seen. `inside`: replies of this model begin in a thought."""
        super().__init__(context, repair)
        self.request = request
        self.applies = applies
        self.live = live
        self.inside = inside
        self.own = traits(request.api)
        self._own: dict[int, int] = {}
        self._open: dict[int, int] = {}
        self._calling: set[int] = set()
        self._ends: dict[int, tuple[str, int]] = {}
        """Where in which text block the last thought in a reasoning block ended."""

    def judge(self, strand: TextBlock) -> ThoughtJudge | None:
        return ThoughtJudge(self, strand) if strand.start.kind == "text" else None

    def meet(self, start: Start) -> None:
        if start.kind == "reasoning" and start.form != "opaque":
            self._own.setdefault(start.choice, start.block)
        elif start.kind == "tool_call":
            self._calling.add(start.choice)

    def has_calls(self, choice: int) -> bool:
        """Return True if the candidate has structured calls, as far as is known."""
        return choice in self._calling or any(
            isinstance(event, Start) and event.kind == "tool_call" and event.choice == choice
            for event in (() if self.context.streamed else self.context.frame_events)
        )

    def has_reasoning(self, choice: int) -> bool:
        if choice in self._own:
            return True
        events = () if self.context.streamed else self.context.frame_events
        return any(
            isinstance(event, Start) and event.kind == "reasoning" and event.choice == choice for event in events
        )

    def moved(self, strand: TextBlock, text: str, offset: int, frame: Frame | None) -> Iterable[Event]:
        choice = strand.choice
        block = self._open.get(strand.start.block) if self.own.blocks else self._own.get(choice)
        if block is None:
            if self.own.blocks and strand.opened:
                yield Close(strand.block, frame)
                strand.opened = False
                strand.block = self.context.new_block()
                strand.start = strand.start._replace(block=strand.block, wire_index=None, item=-1)
            block = self.context.new_block()
            place = (self.own.reasoning_at or "").format(choice)
            yield Start(block, "reasoning", place, choice, frame)
            if not self.own.blocks:
                self._own[choice] = block
        elif self._ends.get(block) != (strand.start.pointer, offset):
            yield Delta(block, "\n\n", frame)  # another thought
        self._open[strand.start.block] = block
        self._ends[block] = strand.start.pointer, offset + len(text)
        yield Delta(block, text, frame)

    def landed(self, strand: TextBlock, frame: Frame | None) -> Iterable[Event]:
        block = self._open.pop(strand.start.block, None)
        if block is not None and self.own.blocks:
            yield Close(block, frame)

    def unwraps(self, opener: str) -> bool:
        """Return True if a tag around the answer is framing: nobody asked for it."""
        return not asks_for(self.request, opener, opener.replace("<", "</"))

    def unwrapped(self, strand: TextBlock, opener: str, event: int | None) -> None:
        self.context.repairs.append(
            self.repair(
                "response",
                "unsafe",
                f"took the {opener} tag off the answer",
                strand.start.pointer,
                event=event,
                before=opener,
            )
        )

    def dropped(self, strand: TextBlock, closer: str, event: int | None) -> None:
        title = f"dropped {closer}; the reasoning that it ends had left as text"
        self.context.repairs.append(
            self.repair("response", "unsafe", title, strand.start.pointer, event=event, before=closer)
        )

    def record(self, strand: TextBlock, tag: str, markup: str, thought: str, event: int | None) -> None:
        size = len(thought.strip())
        title = (
            f"moved {size} characters of reasoning to {self.own.reasoning}"
            if size
            else f"dropped the empty {tag} block"
        )
        place = strand.start.pointer
        self.context.repairs.append(
            self.repair("response", "unsafe", title, place, event=event, before=markup.strip(), after=thought.strip())
        )
