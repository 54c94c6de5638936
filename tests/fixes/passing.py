"""A reply's text through rewriters, cut as a test wants it: without bytes, so that thousands of cuts cost little."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tests.build import REGISTRY, Talk, read
from wirelint.events import Close, Delta, Done, Event, Finish, Fold, Frame, Start
from wirelint.fix import FixPolicy, RewriteContext, Rewriter
from wirelint.model import Choice, Kind
from wirelint.rewrite.pipeline import Pipeline, stages_of
from wirelint.state.ledger import Ledger

OPENAI, ANTHROPIC = "openai.chat", "anthropic.messages"
POINTERS = {"text": "content", "reasoning": "reasoning_content", "refusal": "refusal"}


@dataclass(frozen=True)
class Passed:
    """`out` are the events that came out, `waits` the frames held after each frame that went in."""

    choice: Choice
    out: Sequence[Event]
    came: Sequence[Event]
    context: RewriteContext
    waits: Sequence[int | None]

    @property
    def untouched(self) -> bool:
        return len(self.out) == len(self.came) and all(a is b for a, b in zip(self.out, self.came, strict=True))

    @property
    def said(self) -> tuple[object, ...]:
        """What a client has in the end."""
        calls = [(call.name, call.arguments.value) for call in self.choice.calls]
        return self.choice.text, self.choice.reasoning, calls, self.choice.finish_reason


def context(talk: Talk, api: str, *, streamed: bool, permit: FixPolicy | None = None) -> RewriteContext:
    asked = replace(read(talk.record(api, streamed)), reply=None)
    return RewriteContext(asked, Ledger(), permit or FixPolicy("unsafe"), streamed=streamed)


def chain(here: RewriteContext, rules: Sequence[str]) -> Rewriter:
    request = here.exchange.request
    tools = [tool.name for tool in request.tools] if request is not None else []
    return Pipeline(stages_of(REGISTRY.select(list(rules)), here, []), tools)  # type: ignore[return-value]


def events_of(
    parts: Iterable[tuple[Kind, Sequence[str]]], api: str, *, streamed: bool, reason: str | None, ended: bool = True
) -> list[Event]:
    """The events of a reply as its reader gives them: a frame a delta, or one frame for all."""
    events: list[Event] = []
    number = 0

    def frame() -> Frame:
        nonlocal number
        number += streamed
        return Frame(number, b"", None, "{}")

    one = frame()
    for block, (kind, pieces) in enumerate(parts):
        place = f"/content/{block}" if api == ANTHROPIC else f"/choices/0/message/{POINTERS[kind]}"
        opened = False
        for piece in pieces if streamed else ["".join(pieces)]:
            if api == ANTHROPIC and not opened and streamed:
                events.append(Start(block, kind, place, 0, frame()))
                opened = True
            at = frame() if streamed else one
            if not opened:
                events.append(Start(block, kind, place, 0, at))
                opened = True
            if piece:
                events.append(Delta(block, piece, at))
        if api == ANTHROPIC and streamed:
            events.append(Close(block, frame()))
    if reason is not None:
        events.append(Finish(0, reason, "/finish", frame() if streamed else one))
    if streamed and ended:
        events.append(Done(frame()))
    return events


def send(
    talk: Talk,
    parts: Iterable[tuple[Kind, Sequence[str]]],
    rules: Sequence[str],
    *,
    api: str = OPENAI,
    streamed: bool = True,
    reason: str | None = "stop",
    permit: FixPolicy | None = None,
    ended: bool = True,
) -> Passed:
    """Sends parts, each cut into pieces, through the rewriters of some rules."""
    here = context(talk, api, streamed=streamed, permit=permit)
    came = events_of(parts, api, streamed=streamed, reason=reason, ended=ended)
    rewriter = chain(here, rules)
    out: list[Event] = []
    waits: list[int | None] = []
    for _, group in itertools.groupby(came, lambda event: event.frame.number if event.frame is not None else -1):
        here.frame_events = list(group)
        out += rewriter.push(here.frame_events)  # type: ignore[arg-type]
        waits.append(rewriter.held)
    out += rewriter.release()
    fold = Fold(streamed=streamed)
    for event in out:
        fold.push(event)
    choices = fold.reply().choices
    assert all(choice.index == 0 for choice in choices)
    return Passed(choices[0] if choices else Choice(0, (), None, ""), out, came, here, waits)
