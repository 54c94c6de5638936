"""The rewriters of one reply, one behind the other.

Text in which nothing can begin (`rewriters.quiet`) does not go through them at once. While nothing is held, and the last
text came out as it went in, such text passes by; the rewriters get it in one piece before the next event that they have to
see. They decide on text the same way however it was cut, so all that comes out of that is the piece itself.

A text with more marks of markup than any reply has (`text.loops`) is a model's that is stuck in a loop. From the
character on that shows it, the rewriters leave all text as it comes, in this and in all other blocks.

Most replies are nothing but such text. A chain can sleep as long as that is so (`plain`): its rewriters are made when there
is something for them, and get what has passed by before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeAlias

from wirelint.apis import channel_of
from wirelint.dialects.openers import THOUGHT_ENDS
from wirelint.engine import internal
from wirelint.events import CallUpdate, Close, Delta, Event, Finish, Frame, ReplyMeta, Start
from wirelint.fix import RewriteContext, Rewriter
from wirelint.fixes.prefilter import CLEAR, LOUD, REACH, in_line, is_patient, quiet
from wirelint.model import Request
from wirelint.rewrite.plain import Plain
from wirelint.rule import Finding, Rule
from wirelint.text.loops import MOST_MARKS, MarkCount

_MOST_LATER = 1 << 14
"""Characters that may pass by before the rewriters get them."""
_ENDING = frozenset(end[-1] for end in THOUGHT_ENDS)
"""With what the markup ends behind which a text begins anew."""
_LEFT = f"more than {MOST_MARKS} tags and tokens in the text of one reply; the rest of it was left as it came"


class ChainError(Exception):
    """A rewriter raised. `rule` is the name of its rule.

    `sent` is the frame of text that had left when the rewriters got it: what is released of it must not leave again.
    `rescued` are the events that others had released before.
    """

    def __init__(self, rule: str, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.rule = rule
        self.error = error
        self.sent: Frame | None = None
        self.rescued: list[Event] = []


Stages: TypeAlias = "Sequence[tuple[str, Rewriter]]"
"""The names of rules with a rewriter of each, in the order of a chain."""
Seen: TypeAlias = "list[tuple[Frame | None, Sequence[Event]]]"
"""Frames that have left, with their events; None for text that has left in several."""


@dataclass(slots=True)
class Asleep:
    """What a chain knows as long as it sleeps. `make` gives the rewriters, and is told what has passed by."""

    plain: Plain | None
    """None: it is woken by the first frame."""
    make: Callable[[Seen], tuple[RewriteContext, Stages]]
    seen: Seen = field(default_factory=list)


class Chain:
    """What one rewriter hands on is pushed into the next, in the order of their phases, then of their rules' codes."""

    def __init__(self, stages: Stages, tools: Iterable[str] = ()) -> None:
        self._put(stages)
        self.asleep: Asleep | None = None
        """None from the moment on in which the rewriters are there."""
        self._texts: set[int] = set()
        self._homes: dict[int, int] = {}
        """Blocks and the candidates that they belong to."""
        self._ended: set[int] = set()
        """Candidates whose finish reason has come. What a server sends for them behind it passes as it came."""
        self._tools = frozenset(tools)
        self._counts: dict[int, MarkCount] = {}
        self._over: Literal["no", "now", "yes"] = "no"
        """Whether there have been too many marks: `now`, the rewriters are to be told with the next event."""
        self._situation: RewriteContext | None = None
        self._is_quiet = quiet(self._tools)
        self._may_begin = self._is_quiet.may_begin
        self._calm: int | None = None
        self._in_line = False
        self._tail = ""
        self._last: int | None = None
        self._later: list[Delta] = []
        self._later_size = 0

    @classmethod
    def sleeping(
        cls,
        request: Request | None,
        make: Callable[[Seen], tuple[RewriteContext, Stages]],
        *,
        late: bool,
        counts: bool = False,
    ) -> Chain:
        """One that sleeps. `late`: until something comes that is not plain, not only until something comes. `counts`: token
        counts are not plain."""
        chain = cls((), [tool.name for tool in request.tools] if request is not None else ())
        plain = Plain(request.model or "", chain._is_quiet, counts=counts) if late and request is not None else None
        chain.asleep = Asleep(plain, make)
        return chain

    def _put(self, stages: Stages) -> None:
        self._names = [name for name, _ in stages]
        self._stages = [rewriter for _, rewriter in stages]
        self._heed = [bool(getattr(rewriter, "heeds_text", True)) for rewriter in self._stages]
        self._notes = [getattr(rewriter, "note", None) for rewriter in self._stages]
        phases = [getattr(rewriter, "phase", 3) for rewriter in self._stages]
        self._structural = next((place for place, phase in enumerate(phases) if phase > 1), len(phases))
        """Rewriters of the framing and of ids, which come first. They see what comes behind a finish reason, too."""

    def __bool__(self) -> bool:
        return bool(self._stages) or self.asleep is not None

    # --- asleep -------------------------------------------------------------------------------------------------------

    def sleeps_through(self, frame: Frame, events: Sequence[Event], waiting: Sequence[Delta] = ()) -> bool:
        """Whether a frame may leave without being pushed. `waiting`: text before it that has waited for more, and leaves
        with it."""
        asleep = self.asleep
        if asleep is None or asleep.plain is None or (waiting and not self._ends_after(waiting, events[0])):
            return False
        if not asleep.plain.takes(events):
            return False
        if self._later:
            self._put_off()
        asleep.seen.append((frame, [*waiting, *events] if waiting else events))
        self.know(events)
        if type(events[-1]) is Delta:
            self.left(events, untouched=True)
        else:
            self._calm, self._tail = None, ""
            self._note_ended(events)
        return True

    def _note_ended(self, events: Sequence[Event]) -> None:
        """Note the candidates whose finish reason has come."""
        self._ended.update(event.choice for event in events if type(event) is Finish)

    def _ends_after(self, waiting: Sequence[Delta], end: Event) -> bool:
        return type(end) is Finish and self.ends_in_a_word(waiting[0].block, "".join(piece.text for piece in waiting))

    def ends_in_a_word(self, block: int, text: str) -> bool:
        """Whether what may begin something at the end of a text that waits are mere letters: nothing if the text ends."""
        place = self.glance(block, text)
        return place >= 0 and text[place:].isalpha()

    def wake(self) -> None:
        """Has the rewriters made, if the chain sleeps, and hands them what has passed by. Raises ChainError."""
        asleep = self.asleep
        if asleep is None:
            return
        self._put_off()
        self.asleep = None
        context, stages = asleep.make(asleep.seen)
        self._situation = context
        self._put(stages)
        try:
            for frame, events in asleep.seen:
                if frame is None:
                    self._hand_all(events[0])
                else:
                    context.frame_events = events
                    self._see(events)
        except ChainError:
            self._put(())  # nothing of theirs is of use: all that they have got has left
            raise

    def _put_off(self) -> None:
        """Puts text that has passed by down with the rest."""
        if self._later and self.asleep is not None:
            self.asleep.seen.append((None, [self._joined()]))

    def _see(self, events: Sequence[Event]) -> None:
        """Gives the rewriters a frame that has left. Raises ChainError, also if they would do anything with it."""
        out = self._run(events, 0)
        for event in events:
            self._count(event)
        if len(out) != len(events) or any(one is not other for one, other in zip(out, events, strict=True)):
            raise ChainError("plain text", ValueError("a rewriter acts on a frame that has left already"))
        if self.held is not None:
            raise ChainError("plain text", ValueError("a rewriter holds a frame that has left already"))

    # --- awake --------------------------------------------------------------------------------------------------------

    @property
    def held(self) -> int | None:
        """The number of the first frame of which any rewriter holds something back."""
        lowest: int | None = None
        for stage in self._stages:
            held = stage.held
            if held is not None and (lowest is None or held < lowest):
                lowest = held
        return lowest

    def glance(self, block: int, text: str) -> int:
        """Whether text may leave before the rewriters have seen it, as `rewriters.quiet` has it.

        To be asked while nothing is held. Text that leaves must be told to `advance_tail` and handed to `take_later`.
        """
        if block != self._calm or not text:
            return LOUD
        if self._over == "yes":
            return CLEAR  # whatever begins in it: it is left as it comes
        return self._is_quiet(text, self._in_line, self._tail if len(self._tail) == REACH else "")

    def try_fast_path(self, block: int, text: str) -> bool:
        """Return True if no rewriter can act on text in the middle of a line; the text then counts as forwarded.

        `glance` and `advance_tail` in one step. After False, and when this raises, nothing was changed.
        """
        tail = self._tail
        if block != self._calm or not self._in_line or len(tail) != REACH or not text.isprintable():
            return False
        whole = tail + text
        if self._may_begin(whole, REACH) is not None:
            return False
        self._tail = whole[-REACH:]
        return True

    def is_in_line(self, block: int) -> bool:
        """Whether text of a block has left last, as it came in, and its line goes on."""
        return block == self._calm and self._in_line

    def advance_tail(self, text: str) -> None:
        """Has it known that text has left which the rewriters have not seen."""
        if not self._in_line or "\n" in text:
            self._in_line = in_line(text, self._in_line)
        self._tail = (self._tail + text)[-REACH:]

    def take_later(self, event: Delta) -> None:
        """Has the rewriters get text later, which was let pass: one piece or several joined. Raises ChainError."""
        if self._homes.get(event.block) in self._ended:
            return  # it comes behind a finish reason, and no rewriter needs it
        self._later.append(event)
        self._later_size += len(event.text)
        if self._later_size > _MOST_LATER:
            self._catch_up()

    def left(self, events: Sequence[Event], *, untouched: bool) -> None:
        """Has it known how a frame left whose events were pushed; `untouched` only if nothing is held either."""
        event = _last_said(events)
        if not untouched or event is None or event.block not in self._texts or not self._is_patient():
            self._calm, self._tail = None, ""
            return
        if event.text.rstrip()[-1:] in _ENDING or (self._calm != event.block and event.text.isspace()):
            self._calm, self._tail = None, ""  # where a thought has ended the text begins anew, be it with white space
            return
        if self._last != event.block:
            self._in_line, self._tail = False, ""
        self._in_line = in_line(event.text, self._in_line)
        self._tail = (self._tail + event.text)[-REACH:]
        self._calm = self._last = event.block

    def _is_patient(self) -> bool:
        return all(map(is_patient, self._stages))

    def push(self, events: Sequence[Event]) -> Sequence[Event]:
        """What comes out for events that come in. Raises ChainError."""
        if self._later:
            self._catch_up()
        self.know(events)
        out = self._leave() if self._over == "now" else []
        if (
            self._ended
            and (late := next((n for n, event in enumerate(events) if self._is_late(event)), None)) is not None
        ):
            out = [*out, *self._push(events[:late])]
            out += self._run((events[late],), 0, self._structural)
            return [*out, *self.push(events[late + 1 :])]
        made = self._push(events)
        if type(events[-1] if events else None) is not Delta:
            self._note_ended(events)
        return [*out, *made] if out else made

    def _is_late(self, event: Event) -> bool:
        """Return True if an event belongs to a candidate whose finish reason has come."""
        match event:
            case Start(choice=choice):
                return choice in self._ended
            case Delta(block=block) | CallUpdate(block=block) | Close(block=block):
                return self._homes.get(block) in self._ended
            case _:
                return False

    def _push(self, events: Sequence[Event]) -> Sequence[Event]:
        if self._over == "yes":
            return self._run(events, 0)
        for place, event in enumerate(events):
            at = self._count(event)
            if at is not None:
                before, behind = self._run(events[:place], 0), events[place + 1 :]
                assert isinstance(event, Delta)
                return [*before, *self._leave_within(event, at), *self._run(behind, 0)]
        return self._run(events, 0)

    def _count(self, event: Event) -> int | None:
        """Counts the marks of an event that says text; the offset in its text from which on there are too many."""
        if type(event) is not Delta or self._over != "no" or event.block not in self._texts:
            return None
        count = self._counts.get(event.block)
        if count is None:
            count = self._counts[event.block] = MarkCount(self._tools)
        before = count.length
        plain_from = count.add(event.text)
        if plain_from is None:
            return None
        self._over = "now"
        return plain_from - before

    def _leave_within(self, event: Delta, at: int) -> Sequence[Event]:
        """Has the rewriters leave all text from an offset on. A text that leaves as it came is not cut."""
        first, rest = event._replace(text=event.text[:at]), event._replace(text=event.text[at:])
        out = [*self._run((first,), 0), *self._leave(), *(self._run((rest,), 0) if rest.text else ())]
        for place, one in enumerate(out):
            if one is first and (not rest.text or out[place + 1 : place + 2] == [rest]):
                out[place : place + 2] = [event]
                break
        return out

    def _leave(self) -> list[Event]:
        """Has the rewriters leave all text from now on. Raises ChainError."""
        self._over = "yes"
        self._counts.clear()
        if self._situation is not None and _LEFT not in self._situation.notes:
            self._situation.notes.append(_LEFT)
        out: list[Event] = []
        for place, stage in reversed(list(enumerate(self._stages))):  # the last first: what the others held is plain
            if (leave := getattr(stage, "leave", None)) is None:
                continue
            try:
                left = list(leave())
            except Exception as error:
                raise ChainError(self._names[place], error) from error
            out = [*self._run(left, place + 1), *out]
        return out

    def know(self, events: Sequence[Event]) -> None:
        """Note which blocks are text, and the candidates of all blocks."""
        for event in events:
            if type(event) is Start:
                self._homes[event.block] = event.choice
                if event.kind in ("text", "reasoning", "refusal"):
                    self._texts.add(event.block)

    def _joined(self) -> Delta:
        """The text that has passed by, which is no longer kept here."""
        later, self._later, self._later_size = self._later, [], 0
        last = later[-1]
        return last if len(later) == 1 else last._replace(text="".join(event.text for event in later))

    def _catch_up(self) -> None:
        """Hands the text that has passed by to the rewriters; as long as they sleep, it is put down for them."""
        if self.asleep is not None:
            self._put_off()
        else:
            self._hand_all(self._joined())

    def _hand_all(self, piece: Event) -> None:
        assert isinstance(piece, Delta)
        self._count(piece)
        try:
            for number, stage in enumerate(self._stages):
                self._hand(piece, number, stage)
        except ChainError as failure:
            failure.sent = piece.frame
            raise

    def _hand(self, piece: Delta, number: int, stage: Rewriter) -> None:
        """Gives a rewriter text that has left. Raises ChainError, also if the rewriter would do anything with it."""
        if not self._heed[number] and stage.held is None:
            return
        note = self._notes[number]
        try:
            out = [piece] if note is not None and note(piece) else list(stage.push(piece))
        except Exception as error:
            raise ChainError(self._names[number], error) from error
        if len(out) != 1 or out[0] is not piece or stage.held is not None:
            raise ChainError("quiet text", ValueError("a rewriter acts on text that has left already"))

    def release(self) -> list[Event]:
        """All that is held back, as far as the rewriters can still give it. Raises ChainError for the first that cannot."""
        if self._later:
            self._catch_up()
        self._calm, self._tail = None, ""
        out: list[Event] = []
        failed: ChainError | None = None
        for place, stage in enumerate(self._stages):
            try:
                out += self._run(list(stage.release()), place + 1)
            except Exception as error:  # fail open: what the others hold must come out all the same
                failed = failed or (error if isinstance(error, ChainError) else ChainError(self._names[place], error))
        if failed is not None:
            failed.rescued = out
            raise failed
        return out

    def forget(self) -> None:
        """The reply is over: what the rewriters have kept goes at once, and is not left to the garbage collector."""
        for stage in self._stages:
            if (forget := getattr(stage, "forget", None)) is not None:
                forget()
        self._put(())

    def _run(self, events: Sequence[Event], place: int, end: int | None = None) -> Sequence[Event]:
        first = events[0] if len(events) == 1 else None
        only_text = type(first) is Delta and first.block in self._texts
        for number in range(place, len(self._stages) if end is None else end):
            stage = self._stages[number]
            if only_text and not self._heed[number] and stage.held is None:
                continue
            push = stage.push
            out: Sequence[Event]
            try:
                if len(events) == 1:
                    made = push(events[0])
                    out = made if type(made) is tuple or type(made) is list else [*made]
                else:
                    out = [one for event in events for one in push(event)]
            except Exception as error:
                raise ChainError(self._names[number], error) from error
            if only_text and (len(out) != 1 or out[0] is not first):
                only_text = False
            events = out
            if not events:
                break
        return events


def stages_of(rules: Iterable[Rule], context: RewriteContext, faults: list[Finding]) -> Stages:
    """The rewriters that rules have for a reply; a rule that fails to make one goes without, and is told of."""
    made: list[tuple[int, str, str, Rewriter]] = []
    channel = channel_of(context.exchange.api)
    for rule in _able(tuple(rules)):
        if channel not in rule.channels:
            continue
        try:
            rewriter = rule.rewriter(context)
        except Exception as error:  # fail open: the other rules repair what they can
            faults.append(internal(f"the repair of {rule.name}", error))
            continue
        if rewriter is not None:
            made.append((getattr(rewriter, "phase", 3), rule.code, rule.name, rewriter))
    made.sort(key=lambda stage: stage[:2])
    return [(name, part) for _, _, name, rewriter in made for part in getattr(rewriter, "parts", (rewriter,))]


@lru_cache(maxsize=32)
def _able(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules that may have a rewriter at all."""
    return tuple(rule for rule in rules if type(rule).rewriter is not Rule.rewriter)


def _last_said(events: Sequence[Event]) -> Delta | None:
    """The piece of text of a frame that says no more than it, beside what begins with it; None for any other."""
    last = events[-1] if events else None
    if type(last) is not Delta or [event for event in events[:-1] if type(event) not in (Start, ReplyMeta)]:
        return None
    return last
