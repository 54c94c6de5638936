"""What a reply is repaired with: its rewriters and its writer. They are made when something needs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from wirelint.apis import ReplyWriter
from wirelint.apis.traits import traits
from wirelint.engine import Session, internal
from wirelint.events import Event
from wirelint.fix import AppliedFix, FixPolicy, RewriteContext, asks_for_counts
from wirelint.fixes.prefilter import Quiet, quiet
from wirelint.model import Request
from wirelint.rewrite.frame_queue import Waiting
from wirelint.rewrite.pipeline import Chain, Seen, Stages, stages_of
from wirelint.rewrite.plain import are_known, are_late, begins_nothing, says_plainly
from wirelint.rewrite.unread import is_clean
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import HERE, Ledger, SeenFrom, completed
from wirelint.wire.websocket import is_socket


class PipelineFactory:
    """The parts of one repair, `notes`, `repairs` and `faults` among them, which the rewriters fill."""

    def __init__(
        self, session: Session, rules: Sequence[Rule], ledger: Ledger, permit: FixPolicy, request: Request | None
    ) -> None:
        """`request` is the one that the upstream answers, where that is not the client's own: new ids resemble its ids."""
        self.notes: list[str] = []
        self.repairs: list[AppliedFix] = []
        self.faults: list[Finding] = []
        self.writer: ReplyWriter | None = None
        self.idle = False
        """Whether it is known that there are no rewriters."""
        self.session, self._rules, self._ledger, self._permit = session, rules, ledger, permit
        self._forwarded = request
        self._chain: Chain | None = None

    def chain(self) -> Chain:
        """The rewriters, which are still to be made. To be asked for when it is known whether the reply is a stream."""
        late = self.session.streamed and self.may_sleep
        self._chain = Chain.sleeping(self.answered, self._make, late=late, counts=self.takes_counts_out)
        return self._chain

    @property
    def takes_counts_out(self) -> bool:
        """Return True if the event with the token counts, else plain, is to be taken out."""
        return asks_for_counts(self.session.request, self._forwarded)

    @cached_property
    def answered(self) -> Request | None:
        """The request that the upstream answers."""
        request = self._forwarded if self._forwarded is not None else self.session.request
        return completed(request, self.session.url, self._ledger) if request is not None else None

    @property
    def kind(self) -> tuple[str, str, str]:
        """What tells the replies of one server apart by their forms: API, URL and model."""
        request = self.answered
        return self.session.api.name, self.session.url, request.model if request is not None else ""

    @property
    def may_sleep(self) -> bool:
        """Whether all rewriters are nothing to plain frames, if the reply is a stream."""
        if self._ledger.knows_thoughts and self.context.ledger.begins_inside(self.context.exchange):
            return False  # text waits for the end of a thought from its first word on
        return are_late(self._rules, self.session.api.name)

    @property
    def slept(self) -> Seen | None:
        """What has left, if nothing of it has woken the rewriters; None otherwise."""
        asleep = self._chain.asleep if self._chain is not None else None
        return asleep.seen if asleep is not None else None

    def tell(self, culprit: str, error: Exception) -> None:
        """Takes down that something failed."""
        fault = internal(culprit, error)
        if fault not in self.faults and len(self.faults) < 8:
            self.faults.append(fault)

    def note(self, note: str) -> None:
        """Takes down what a person should know."""
        if note not in self.notes and len(self.notes) < 8:
            self.notes.append(note)

    def write(self, waiting: Waiting) -> bytes:
        """The bytes of a frame as it is handed on. Raises what writing raises."""
        assert self.writer is not None
        return self.writer.write(waiting.frame, waiting.events, waiting.out)

    def is_needless(self, events: Iterable[Event]) -> bool:
        """Whether nothing is to be repaired in a whole reply, which the session has read; these are all its events."""
        return self.says_plainly(events) or is_clean(self.session, self.context, self._rules)

    def says_plainly(self, events: Iterable[Event]) -> bool:
        """Whether a whole reply is seen by its events to be nothing to any rewriter."""
        request = self._answered_plainly
        return request is not None and says_plainly(events, request.model, _quiet(request))

    def leaves_alone(self, text: str) -> bool:
        """The same of one that is known to say a text and its end."""
        request = self._answered_plainly
        return request is not None and begins_nothing(text, request.model, _quiet(request))

    @property
    def _answered_plainly(self) -> Request | None:
        """The request, where it is known of all rewriters what they leave alone."""
        return self.answered if are_known(tuple(self._rules)) else None

    @cached_property
    def context(self) -> RewriteContext:
        """What the rewriters may know."""
        session, request, notes, repairs = self.session, self.answered, self.notes, self.repairs
        came = session.head()
        head = came.but(conversation=HERE, request=request)
        seen = SeenFrom(self._ledger, came)
        made = RewriteContext(
            head, seen, self._permit, streamed=session.streamed, own=session.request, notes=notes, repairs=repairs
        )
        asked = [one for one in (session.request, self._forwarded) if one is not None]
        made.taken.update(c.id for one in asked for m in one.messages for c in m.calls if c.id)
        if request is not None and request.is_partial:  # the server has calls that the body does not show
            made.taken.update(issued.id for issued in seen.calls(HERE))
        return made

    def _make(self, seen: Seen) -> tuple[RewriteContext, Stages]:
        """The rewriters, and the writer, which gets to know of what has left before it was there."""
        self.writer = self.session.api.reply_writer(streamed=self.session.streamed)
        for frame, events in seen:
            if frame is not None:
                self.writer.write(frame, events, events)
        stages = stages_of(self._rules, self.context, self.faults) if self._is_written() else ()
        self.idle = not stages
        return self.context, stages

    def _is_written(self) -> bool:
        """Return True if the reply is whole, or a stream in a form that the API has; a note is made if it is not.

        The messages of a WebSocket are read as lines.
        """
        framing, on_socket = self.session.framing, is_socket(self.session.url.partition(":")[0])
        if (
            framing == "whole"
            or framing in traits(self.session.api.name).framings
            or (on_socket and framing == "lines")
        ):
            return True
        self.note(f"the reply is a stream in a form that its API does not have ({framing}): it is passed on as it came")
        return False


def _quiet(request: Request) -> Quiet:
    return quiet(frozenset([tool.name for tool in request.tools]))
