"""The API for authors of rules: `Rule`, `Finding`, `Fix`, and the types of their members."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self, TypeAlias, TypedDict, Unpack, get_args

import orjson

from wirelint.events import Event
from wirelint.fix import NO_FIXES
from wirelint.fix import Answer as Answer
from wirelint.fix import AppliedFix as AppliedFix
from wirelint.fix import Edit as Edit
from wirelint.fix import FixPolicy as FixPolicy
from wirelint.fix import RequestFix as RequestFix
from wirelint.fix import RewriteContext as RewriteContext
from wirelint.fix import Rewriter as Rewriter
from wirelint.fix import Safety as Safety
from wirelint.model import Choice, Exchange, Json, Reasoning, Refusal, Request, Rpc, Text, ToolCall, ToolResult
from wirelint.model import Confidence as Confidence
from wirelint.model import Layer as Layer
from wirelint.model import MissingInfo as MissingInfo
from wirelint.model import Severity as Severity
from wirelint.model import Side as Side
from wirelint.state.issues import Issue as Issue
from wirelint.text.escaping import REDACTED as REDACTED
from wirelint.text.escaping import amount as amount
from wirelint.text.escaping import excerpt as excerpt
from wirelint.text.escaping import listed as listed
from wirelint.text.escaping import printable
from wirelint.timing import Arrivals

if TYPE_CHECKING:
    from wirelint.arguments.argument_repairs import Change
    from wirelint.policy import Policies
    from wirelint.state.ledger import Ledger

_PATCH = 2000
"""Characters of each side of a patch that a record keeps."""

Holding = Literal["calls", "history", "stream", "tools", "more"]
"""Content of an exchange that a rule may require. `calls`: tool calls in the reply; `history`: tool calls or results in the
messages of the request, or items with ids (`Request.has_history`); `stream`: a streamed reply; `tools`: declared tools;
`more`: a reply that is not plain text with an ordinary end (`Reply.is_plain`)."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that would repair a finding. `title` is an imperative: `restore functions.read:0`."""

    safety: Safety
    title: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, with its place and evidence.

    `pointer` is a JSON Pointer into the body of `side` (for a stream: into the body that its events add up to), `event` the
    number of the stream event where the evidence begins, `span` its offsets in the text at `pointer`. `issue` identifies
    the fault across exchanges; it is None until the engine has compared the finding with earlier ones. `source`: the rule
    itself, or a model that was asked about the rule (`--judge`).
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
    source: Literal["rule", "judge"] = "rule"

    @property
    def label(self) -> str:
        """The name of the rule, with the source if that is not the rule itself: `fabricated-result (judge)`."""
        return self.name if self.source == "rule" else f"{self.name} ({self.source})"

    @property
    def is_known(self) -> bool:
        """Return True if an earlier exchange of the conversation had the same fault."""
        return self.issue is not None and self.issue.known


@dataclass(frozen=True, slots=True)
class Limits:
    """Durations in seconds that the user may set. Rules report durations of this length or longer."""

    stall: float = 30.0
    burst: float = 8.0
    hang: float = 60.0


class Details(TypedDict, total=False):
    """Optional details of a finding. A change of arguments stands for the fix that makes it."""

    fix: Fix | Change | None
    severity: Severity | None
    confidence: Confidence | None
    layer: Layer | None


class RuleError(ValueError):
    """A rule folder, rule file or rule name that wirelint cannot use. The text is one line: place, fault, cure."""


class Example(NamedTuple):
    """Two hand-made records (`{"request": …, "response": …}`) that a rule's manual shows.

    The rule reports the first and not the second. `prior` in a record lists records that pass before it.
    """

    fires: Mapping[str, Json]
    silent: Mapping[str, Json]


def read_example(path: Path) -> Example:
    """Read the example from a rule's JSON file. Raises RuleError."""
    try:
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        raise RuleError(
            f"{path}: {error.strerror}; put the rule's example there, as `wirelint new-rule` does"
        ) from error
    except orjson.JSONDecodeError as error:
        raise RuleError(f"{path}:{error.lineno}:{error.colno}: {error.msg}; correct the JSON") from error
    match document:
        case {"example": {"fires": dict(fires), "silent": dict(silent)}}:
            return Example(fires, silent)
        case _:
            raise RuleError(
                f"{path}: no `example` with records `fires` and `silent`; add it as `wirelint new-rule` does"
            )


class Rule:
    """Base class of a rule, which reports one kind of fault. A subclass in a file of `rules/` is registered by its file.

    The docstring of the subclass is its manual, in Markdown: a first line that names the fault, then the headings
    `## What it does`, `## Why is this bad?`, `## Example`, `## False positives`, `## Fix safety`, `## References`.
    The JSON file of the same name holds the example of the manual and the cases for the tests.

    A rule is a pure function of the exchange and of the ledger, which holds what passed before. A rule skips all
    unknown parts: parts that are None, an exchange that is not `ok`, redacted text.
    """

    code: ClassVar[str]
    """The code, as in `LK101`. The registry sets it by the file's name, as it sets `name` and `case_file`."""
    name: ClassVar[str]
    """The name, as in `xml-leak`."""
    severity: ClassVar[Severity]
    layer: ClassVar[Layer]
    confidence: ClassVar[Confidence] = "high"
    channels: ClassVar[frozenset[str]] = frozenset({"model"})
    """Channels whose traffic the rule reads: `model` (LLM APIs) or `mcp` (MCP servers)."""
    needs: ClassVar[frozenset[MissingInfo]] = frozenset()
    """Information without which the engine skips the rule (`Exchange.missing`)."""
    requires_in_request: ClassVar[frozenset[Holding]] = frozenset()
    """Content without which the engine skips `check_request` and `fix_request`."""
    requires_in_reply: ClassVar[frozenset[Holding]] = frozenset()
    """Content without which the engine skips `check_reply`."""
    request_apis: ClassVar[frozenset[str] | None] = None
    """APIs whose requests `fix_request` may repair and `answer` may answer; None for all APIs of the rule's channels."""
    ignored_fields: ClassVar[frozenset[str]] = frozenset({"stream_options"})
    """Top-level members of a request that `fix_request` does not read; a change of these alone does not call it again."""
    case_file: ClassVar[Path]
    """The JSON file with the example and the cases, beside the Python file."""
    limits: Limits = Limits()
    graded: Severity | None = None
    """Severity that the user sets for all findings of the rule; None for the rule's own."""

    def as_severe_as(self, severity: Severity) -> Self:
        """Return a copy of this rule whose findings all have `severity`."""
        made = copy.copy(self)
        made.graded = severity
        return made

    def within(self, limits: Limits) -> Self:
        if limits == self.limits:
            return self
        made = copy.copy(self)
        made.limits = limits
        return made

    def under(self, policies: Policies) -> Rule:
        """Return the rule to use with these argument policies."""
        return self

    @property
    def example(self) -> Example:
        """Return the example of the manual, read from `case_file`. Raises RuleError."""
        return read_example(self.case_file)

    @property
    def is_timed(self) -> bool:
        """Return True if the rule checks the timing of an exchange (`check_course`)."""
        return type(self).check_course is not Rule.check_course

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterable[Finding]:
        """Yield findings on the request."""
        return ()

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterable[Finding]:
        """Yield findings on the reply."""
        return ()

    def check_course(self, exchange: Exchange, ledger: Ledger) -> Iterable[Finding]:
        """Yield findings on the timing of the exchange, with or without a reply.

        Findings on an exchange that is still `open` are shown at once and are provisional: the engine calls the method
        again at the end.
        """
        return ()

    def due(self, arrivals: Arrivals) -> float | None:
        """Return the time at which `check_course` should run on an open exchange if no more bytes arrive (ms after the
        request).

        None means never. The time never moves earlier when more bytes arrive, and is `patience` or later.
        """
        return None

    @property
    def patience(self) -> float:
        """Seconds during which no open exchange is due."""
        return math.inf

    def rewriter(self, context: RewriteContext) -> Rewriter | Sequence[Rewriter] | None:
        """Return what fixes a reply in transit: a rewriter, or several in order.

        Return None if the rule has no fix or the policy permits none.
        """
        return None

    def fix_request(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterable[RequestFix]:
        """Yield fixes of a request before wirelint forwards it. The exchange has neither status nor reply yet."""
        return ()

    def answer(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Answer | None:
        """Return a reply to send instead of forwarding the request; None to forward it."""
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
        """Return the record of a change made by this rule. Long texts are shortened, control characters are escaped."""
        before, after = (excerpt(text, _PATCH) if len(text) > _PATCH else text for text in (before, after))
        return AppliedFix(self.code, self.name, safety, side, one_line(title), pointer, event, before, after)

    def record(
        self,
        context: RewriteContext,
        safety: Safety,
        title: str,
        pointer: str | None = None,
        *,
        at: Event | None = None,
        before: str = "",
        after: str = "",
    ) -> None:
        """Record a change of a reply that this rule made at an event."""
        event = context.event_number(at) if at is not None else None
        context.repairs.append(self.repair("response", safety, title, pointer, event=event, before=before, after=after))

    def finding(
        self,
        side: Side,
        message: str,
        pointer: str | ToolCall | ToolResult | Rpc | Choice | None = None,
        *,
        event: int | None = None,
        span: tuple[int, int] | None = None,
        **more: Unpack[Details],
    ) -> Finding:
        """Return a finding of this rule. Severity, confidence and layer default to the rule's own.

        `pointer`: a JSON Pointer, or a part or a candidate, for the place and the event of the part or of the finish
        reason. `event` replaces that event.
        """
        place: str | None
        fix = more.get("fix")
        if isinstance(pointer, Choice):
            place, begun = pointer.finish_pointer, pointer.finish_event
        else:
            place, begun = (pointer, None) if isinstance(pointer, str | None) else (pointer.pointer, pointer.event)
        return Finding(
            code=self.code,
            name=self.name,
            severity=self.graded or more.get("severity") or self.severity,
            confidence=more.get("confidence") or self.confidence,
            layer=more.get("layer") or self.layer,
            side=side,
            message=one_line(message),
            pointer=place,
            event=begun if event is None else event,
            fix=Fix(fix.safety, fix.title) if fix is not None else None,
            span=span,
        )

    def text_finding(
        self, part: Text | Reasoning | Refusal, span: tuple[int, int], message: str, **more: Unpack[Details]
    ) -> Finding:
        """Return a finding on a span of a text in the reply."""
        event = None if isinstance(part, Refusal) else part.event_at(span[0])
        return self.finding("response", message, part.pointer, event=event, span=span, **more)


Fixable: TypeAlias = "tuple[Finding, RequestFix | None]"
"""A fault of a request, and its fix if it has one."""


class RequestRule(Rule):
    """Base class of a rule that finds the faults of a request and their fixes in one pass."""

    request_safety: ClassVar[Safety] = "safe"
    """The lowest safety of the fixes. Without permission for it none is made."""

    def faults(self, request: Request, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterable[Fixable]:
        """Yield the faults of the request of an exchange. `permit`: permits nothing if no fix will be made."""
        return ()

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterable[Finding]:
        if exchange.request is not None:
            for finding, _ in self.faults(exchange.request, exchange, ledger, NO_FIXES):
                yield finding

    def fix_request(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterable[RequestFix]:
        if exchange.request is not None and permit.allows(self.code, self.request_safety):
            for _, fix in self.faults(exchange.request, exchange, ledger, permit):
                if fix is not None:
                    yield fix


def one_line(text: str) -> str:
    """Fold white space and escape control characters, so that text from the wire fits one line of a terminal."""
    return printable(" ".join(text.split()))
