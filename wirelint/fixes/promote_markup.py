"""Native markup in the text of a reply becomes the calls that it was meant to be.

Theory of operation. The text is watched for openers (`dialects`). While an opener may still become a call its text is held
back; a run of sibling blocks waits until something follows that cannot change it, or the text ends. Then the rule's own
judgement decides on the text so far. A run that is to be promoted leaves the text, and the prose goes on at once; the calls
follow at the end of the candidate, because a reply that has structured calls after all must get no others: then the markup
is given back as text, or dropped where it says the same. Markup in reasoning counts only if nothing follows the reasoning,
so there everything from the run on waits.

Each scan reads what is undecided once more. Scans come when something may have closed, and are otherwise so far apart that
together they stay linear in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from wirelint.apis.traits import Ending, ending, traits
from wirelint.events import Close, Delta, Event, Finish, Frame, Start
from wirelint.fix import MOST_HELD, RewriteContext
from wirelint.fixes.callids import make_call, write_arguments
from wirelint.fixes.markup import MarkupJudge, Promotion
from wirelint.fixes.text import Candidate, MakeRepair, TextBlock, TextRewriter
from wirelint.history.minting import mint_where_used
from wirelint.model import Arguments, Request, ToolCall

PUT_BACK = "markup beside structured calls was put back behind the text that had left"
_MOST_PENDING = 16 * MOST_HELD
_HONEST: frozenset[Ending] = frozenset({"length", "filtered", "refused", "paused", "failed"})
"""Endings that stay: they say something else than that the reply is complete."""


@dataclass(slots=True)
class _Structured:
    """A call that the reply has by itself, as far as it has come."""

    start: Start
    texts: list[str] = field(default_factory=list)

    def call(self) -> ToolCall:
        text = "".join(self.texts)
        given = Arguments.of(self.start.input) if self.start.input is not None and not text else Arguments(text)
        return ToolCall(self.start.id, self.start.name, given, self.start.pointer)


class Promoter(TextRewriter):
    """Repairs a reply under LK101."""

    phase: ClassVar[float] = 3.1

    def __init__(self, context: RewriteContext, request: Request, repair: MakeRepair) -> None:
        super().__init__(context, repair)
        self.request = request
        self.pending: dict[int, list[Promotion]] = {}
        self.spoken: set[int] = set()
        """Candidates that have begun to answer in text."""
        self._structured: dict[int, _Structured] = {}
        self._judges: list[MarkupJudge] = []
        self._looked_ahead = False
        self._pending_size = 0

    @property
    def patient(self) -> bool:
        """Not while something has begun of which all that comes decides what it is, though it has left."""
        return not any(judge.is_open for judge in self._judges)

    def judge(self, strand: TextBlock) -> MarkupJudge | None:
        if strand.start.kind not in ("text", "reasoning", "refusal") or strand.start.form == "opaque":
            return None
        judge = MarkupJudge(self, strand)
        self._judges.append(judge)
        return judge

    def forget(self) -> None:
        super().forget()
        self._judges.clear()

    def push(self, event: Event) -> Iterable[Event]:
        if not self._looked_ahead:
            self._look_ahead()
        if isinstance(event, Delta) and event.block in self._structured and self.context.streamed:
            self._structured[event.block].texts.append(event.text)
        return super().push(event)

    def _look_ahead(self) -> None:
        """In a whole body all calls are known from the beginning."""
        self._looked_ahead = True
        for event in () if self.context.streamed else self.context.frame_events:
            if isinstance(event, Start) and event.kind == "tool_call":
                self._structured[event.block] = _Structured(event)
            elif isinstance(event, Delta) and event.block in self._structured:
                self._structured[event.block].texts.append(event.text)

    def meet(self, start: Start) -> None:
        if start.kind == "tool_call":
            self._structured.setdefault(start.block, _Structured(start))

    def names(self, choice: int) -> set[str]:
        """The names of the structured calls of a candidate."""
        return {call.start.name or "" for call in self._structured.values() if call.start.choice == choice}

    def calls(self, choice: int) -> tuple[ToolCall, ...]:
        """The structured calls of a candidate, as far as they have come."""
        return tuple(call.call() for call in self._structured.values() if call.start.choice == choice)

    def promote(self, promotion: Promotion) -> bool:
        """Takes a run over; not behind the end of its candidate, nor when there is too much of them already."""
        if self._candidate(promotion.strand.choice).ended:
            return False
        self._pending_size += len(promotion.text)
        if self.context.streamed and self._pending_size > _MOST_PENDING:
            return False
        self.pending.setdefault(promotion.strand.choice, []).append(promotion)
        return True

    # --- the end of a candidate ---------------------------------------------------------------------------------------

    def ending(self, candidate: Candidate, event: Event) -> Iterable[Event]:
        promotions = self.pending.pop(candidate.number, [])
        structured = self.calls(candidate.number)
        if structured or not promotions:
            for promotion in promotions:
                yield from self._give_back(promotion, structured, event.frame)
            yield event
            return
        for promotion in promotions:
            yield from self._make_calls(promotion, event.frame)
        yield from self._finish(candidate.number, event)

    def dying(self, candidate: Candidate) -> Iterable[Event]:
        for promotion in self.pending.pop(candidate.number, []):
            yield from self._as_text(promotion, promotion.text, None)

    def _make_calls(self, promotion: Promotion, frame: Frame | None) -> Iterator[Event]:
        choice, lines = promotion.strand.choice, []
        for call in promotion.calls:
            id_ = mint_where_used(self.context, call.name)
            arguments = call.arguments or {}
            lines.append(f"{call.name}({write_arguments(arguments)}){f' as {id_}' if id_ is not None else ''}")
            yield from make_call(self.context, choice, call.name, id_, arguments, frame)
        self._record(promotion, "promoted", "\n".join(lines))

    def _give_back(self, promotion: Promotion, structured: Sequence[ToolCall], frame: Frame | None) -> Iterator[Event]:
        made = [(call.name, call.arguments.mapping) for call in structured]
        if all((call.name, call.arguments) in made for call in promotion.calls):
            self._record(promotion, "dropped the markup of", "")
        else:
            if self.context.streamed and PUT_BACK not in self.context.notes:
                self.context.notes.append(PUT_BACK)
            yield from self._as_text(promotion, promotion.text, frame)

    def _as_text(self, promotion: Promotion, text: str, frame: Frame | None) -> Iterator[Event]:
        strand, frame = promotion.strand, frame or promotion.strand.start.frame
        if strand.opened and not strand.closed:
            yield Delta(strand.block, text, frame)
            return
        block = self.context.new_block()
        yield strand.start._replace(block=block, frame=frame, wire_index=None, item=-1)
        yield Delta(block, text, frame)
        yield Close(block, frame)

    def _record(self, promotion: Promotion, what: str, after: str) -> None:
        count = len(promotion.calls)
        names = ", ".join(dict.fromkeys(call.name for call in promotion.calls))
        repair = self.repair(
            "response",
            "unsafe",
            f"{what} {'a call' if count == 1 else f'{count} calls'} of {names}",
            promotion.strand.start.pointer,
            event=promotion.event,
            before=promotion.text.strip(),
            after=after,
        )
        self.context.repairs.append(repair)

    def _finish(self, choice: int, event: Event) -> Iterator[Event]:
        """The finish reason of a reply that has calls now."""
        own = traits(self.request.api)
        if not isinstance(event, Finish):
            if own.tells_calls:
                yield Finish(choice, own.calls, own.finish_at.format(choice), event.frame)
            yield event
        elif not own.tells_calls or event.reason == own.calls or ending(event.reason) in _HONEST:
            yield event
        else:
            yield event._replace(reason=own.calls)
