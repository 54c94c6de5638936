"""All that the author of a rule imports: `Rule`, `Finding`, `Fix`, and the words they are made of."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal, Self, get_args

from wirelint.fix import Answer as Answer
from wirelint.fix import AppliedFix as AppliedFix
from wirelint.fix import Edit as Edit
from wirelint.fix import FixPolicy as FixPolicy
from wirelint.fix import RequestFix as RequestFix
from wirelint.fix import RewriteContext as RewriteContext
from wirelint.fix import Rewriter as Rewriter
from wirelint.fix import Safety as Safety
from wirelint.model import Confidence as Confidence
from wirelint.model import Exchange, Json
from wirelint.model import Layer as Layer
from wirelint.model import MissingInfo as MissingInfo
from wirelint.model import Severity as Severity
from wirelint.model import Side as Side
from wirelint.state.issues import Issue as Issue
from wirelint.text.escaping import printable
from wirelint.text.excerpts import excerpt as excerpt
from wirelint.timing import Arrivals

if TYPE_CHECKING:
    from wirelint.policy import Policies
    from wirelint.state.ledger import Ledger

_PATCH = 2000
"""Characters of a patch's side that are kept."""

Holding = Literal["calls", "history", "stream", "tools", "more"]
"""What an exchange may hold. `calls`: calls in the reply; `history`: calls or results in the request's messages, or items
with ids of their own (`Request.has_history`); `stream`: a reply that was streamed; `tools`: declared tools; `more`: a reply
that is anything more, or less, than words that end as they should (`Reply.is_plain`)."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True, slots=True)
class Fix:
    """What a repair would change. `title` is an order in plain words: `restore functions.read:0`."""

    safety: Safety
    title: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, with its place and evidence.

    `pointer` is a JSON Pointer into the body of `side` (for a stream: into the body that it amounts to), `event` the
    number of the stream event where the evidence begins, `span` its offsets in the text at `pointer`. `issue` is the fault
    behind it, which earlier exchanges may have had; None before the engine has compared it with those.
    """

    code: str
    name: str
    severity: Severity
    confidence: Confidence
    layer: Layer
    side: Side
    message: str
    pointer: str | None = None
    event: int | None = None
    fix: Fix | None = None
    span: tuple[int, int] | None = None
    issue: Issue | None = field(default=None, compare=False)

    @property
    def is_known(self) -> bool:
        """Return True if an earlier exchange of the conversation had the same fault."""
        return self.issue is not None and self.issue.known


@dataclass(frozen=True, slots=True)
class Limits:
    """Times that the user may set, in seconds. What takes as long or longer is reported."""

    stall: float = 30.0
    burst: float = 8.0
    hang: float = 60.0


class Rule:
    """One thing that can be wrong. A subclass in a file of `rules/` is registered by being there.

    The docstring of the subclass is its manual, in Markdown: a first line that says what is wrong, then the headings
    `## What it does`, `## Why is this bad?`, `## Example`, `## False positives`, `## Fix safety`, `## References`.
    `fires` and `silent` are hand-made records (`{"request": …, "response": …}`) that the manual shows and the tests run:
    the rule must fire on the first and be silent on the second. `prior` in a record are records that pass before it.

    A rule is a pure function of the exchange and of what the ledger saw pass before it. What it cannot know makes it
    skip: parts that are None, an exchange that is not `ok`, text that was redacted.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    layer: ClassVar[Layer]
    confidence: ClassVar[Confidence] = "high"
    channels: ClassVar[frozenset[str]] = frozenset({"model"})
    """Whose traffic it is asked about: that of models, or of servers of tools (`mcp`)."""
    needs: ClassVar[frozenset[MissingInfo]] = frozenset()
    """What must be known of an exchange. Of one that lacks any of it the rule is not asked."""
    requires_in_request: ClassVar[frozenset[Holding]] = frozenset()
    """What an exchange must hold for `check_request` to find, or `mend` to repair, anything. Of one that holds less it is
    not asked."""
    requires_in_reply: ClassVar[frozenset[Holding]] = frozenset()
    """The same for `check_reply`."""
    fires: ClassVar[Mapping[str, Json]]
    silent: ClassVar[Mapping[str, Json]]
    mends: ClassVar[frozenset[str] | None] = None
    """The APIs whose requests `mend` may repair, and `answer` may answer; None: all that it is asked about."""
    ignored_fields: ClassVar[frozenset[str]] = frozenset()
    """Outermost members of a request that `mend` does not look at; after a change of them alone it is not asked again."""
    limits: Limits = Limits()
    graded: Severity | None = None
    """The severity that the user wants all of its findings to have; None: as the rule says."""

    def as_severe_as(self, severity: Severity) -> Self:
        """This rule with another severity, whatever it finds."""
        made = copy.copy(self)
        made.graded = severity
        return made

    def within(self, limits: Limits) -> Self:
        """This rule with other limits."""
        made = copy.copy(self)
        made.limits = limits
        return made

    def under(self, policies: Policies) -> Rule:
        """The rule as it is where these argument policies are in force."""
        return self

    @property
    def is_timed(self) -> bool:
        """Whether it judges how an exchange goes in time."""
        return type(self).check_course is not Rule.check_course

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterable[Finding]:
        """Findings on what the client sent."""
        return ()

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterable[Finding]:
        """Findings on what the client got."""
        return ()

    def check_course(self, exchange: Exchange, ledger: Ledger) -> Iterable[Finding]:
        """Findings on how the exchange went in time, answered or not.

        Of one that is `open` they are told at once, and are provisional: when it has ended it is judged again.
        """
        return ()

    @property
    def takes(self) -> float:
        """Seconds below which an exchange, or what is known of it, is too short for `check_course` to find anything."""
        return 0.0

    def due(self, arrivals: Arrivals) -> float | None:
        """When `check_course` is to look at an open exchange, if nothing more comes (ms after the request); None: never.

        It gets no earlier as more arrives, and is `patience` at the least.
        """
        return None

    @property
    def patience(self) -> float:
        """Seconds in which no open exchange can be due."""
        return math.inf

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        """What repairs a reply while it passes; None when this rule has no repair for it, or none is permitted."""
        return None

    def mend(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterable[RequestFix]:
        """Repairs of the request, before it is sent: the exchange has neither status nor reply."""
        return ()

    def answer(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Answer | None:
        """A reply to a request that is not to be sent at all; None to send it."""
        return None

    def repair(
        self,
        side: Side,
        safety: Safety,
        title: str,
        pointer: str | None = None,
        *,
        event: int | None = None,
        before: str = "",
        after: str = "",
    ) -> AppliedFix:
        """A change made by this rule. Long texts are shortened; nothing in them can steer a terminal."""
        return AppliedFix(
            self.code,
            self.name,
            safety,
            side,
            one_line(title),
            pointer,
            event,
            excerpt(before, _PATCH) if len(before) > _PATCH else before,
            excerpt(after, _PATCH) if len(after) > _PATCH else after,
        )

    def finding(
        self,
        side: Side,
        message: str,
        pointer: str | None = None,
        *,
        event: int | None = None,
        span: tuple[int, int] | None = None,
        fix: Fix | None = None,
        severity: Severity | None = None,
        confidence: Confidence | None = None,
        layer: Layer | None = None,
    ) -> Finding:
        """A finding of this rule; what is not given is the rule's own."""
        return Finding(
            code=self.code,
            name=self.name,
            severity=self.graded or severity or self.severity,
            confidence=confidence or self.confidence,
            layer=layer or self.layer,
            side=side,
            message=one_line(message),
            pointer=pointer,
            event=event,
            fix=fix,
            span=span,
        )


@lru_cache(maxsize=512)  # many say what was said before
def one_line(text: str) -> str:
    """Text from the wire made fit for a line of a terminal: white space folded, control characters shown escaped."""
    return printable(" ".join(text.split()))
