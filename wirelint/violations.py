"""What a stream may do that its grammar does not allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FaultKind = Literal[
    "missing-blank-line",  # several JSON documents in one event, a line each
    "leading-space",  # white space before a field name
    "unknown-field",  # a line that is no field of the SSE grammar
    "broken-json",  # data that is no JSON document
    "doubled-field",  # the field's name twice: `data: data: {…}`
    "split-json",  # one JSON document, over several events
    "event-mismatch",  # the event name contradicts the `type` inside
    "parted-name",  # the event name stands before a blank line, and the data behind it
    "event-missing",  # an API that names its events, and an event without a name
    "undeclared-part",  # a delta for a part that was never started
    "restarted-part",  # a part that is started twice
    "unfinished-part",  # a part that was never stopped before the message ended
    "after-end",  # events after the terminator
    "late-usage",  # the token counts after the terminator, and not before it
    "missing-end",  # finished, and no terminator
    "cut-event",  # the last event lacks its blank line
    "bad-utf8",
    "empty-call",  # a legacy `function_call` without a name and arguments, which is none
    "repeated-start",  # deltas of arguments behind a start that carried arguments itself
    "said-again",  # an id or a name of a call in a later delta, where clients join what deltas say
    "other-item",  # an event for an output item under another id than that which it began with
]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fact that the grammar of the stream does not allow. `detail` quotes the evidence, shortened."""

    kind: FaultKind
    event: int
    detail: str
