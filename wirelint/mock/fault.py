"""The parts of a fault: a change of a reply's content, of its events, of the bytes that carry it, or of MCP answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from wirelint.mock.answer import Answer, Event
from wirelint.mock.api import Ability, Api
from wirelint.mock.plan import Ask, Mint, Options, Reply
from wirelint.mock.schema_values import Topic
from wirelint.model import Json


class NotApplicableError(Exception):
    """The fault cannot be applied to this request; the reply stays healthy, and its header has the reason."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request and the context of its answer."""

    api: Api
    ask: Ask
    options: Options
    rng: random.Random
    mint: Mint
    scripted: Reply | None = None
    """The reply of a scenario file."""

    @property
    def topic(self) -> Topic:
        return Topic.of(self.ask.user_text)


Message = dict[str, Json]
ReplyStage = Callable[[Reply, Turn], Reply]
EventStage = Callable[[list[Event], Turn], list[Event]]
AnswerStage = Callable[[Answer, Turn], Answer]
McpStage = Callable[[list[Message], list[Message], str], list[Message]]
"""(requests, answers, mode) -> answers"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault; `faults.toml` explains its facts. The stages run in the order of the fields; most faults have one."""

    doc: str
    text: str = ""
    reply: ReplyStage | None = None
    events: EventStage | None = None
    answer: AnswerStage | None = None
    tools: McpStage | None = None
    modes: tuple[str, ...] = ()
    takes: frozenset[str] = frozenset()
    calls: int = 0
    stream: bool = False
    needs: frozenset[Ability] = frozenset()
