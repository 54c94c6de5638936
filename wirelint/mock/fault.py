"""The kind of thing a fault is: a change of what a reply says, of its events, or of the bytes that carry it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from wirelint.mock.answer import Answer, Event
from wirelint.mock.api import Ability, Api
from wirelint.mock.plan import Ask, Mint, Reply
from wirelint.mock.scenario import Options
from wirelint.model import Json


class NotApplicableError(Exception):
    """This request gives the fault nothing to act on; the server stays healthy and says why in its response header."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request being answered, as a fault sees it."""

    api: Api
    ask: Ask
    options: Options
    rng: random.Random
    mint: Mint
    scripted: Reply | None = None
    """What a scenario file has the model say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault. The stages run in the order of the fields; most faults have one.

    `modes` are its variants, the first one is the default (unless the request decides). `takes` are the options of
    `scenario.FAULT_OPTIONS` that it reads besides `mode`. `calls` is the number of tool calls that the healthy reply must
    have, `stream` says that it exists in streams only, `needs` what the API must be able to say.
    """

    doc: str
    reply: Callable[[Reply, Turn], Reply] | None = None
    events: Callable[[list[Event], Turn], list[Event]] | None = None
    answer: Callable[[Answer, Turn], Answer] | None = None
    tools: Callable[[list[dict[str, Json]], list[dict[str, Json]], str], list[dict[str, Json]]] | None = None
    """Of a server of tools: (requests, answers, mode) -> answers."""
    modes: tuple[str, ...] = ()
    takes: frozenset[str] = frozenset()
    calls: int = 0
    stream: bool = False
    needs: frozenset[Ability] = frozenset()
