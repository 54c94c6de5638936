"""Calls of replies, what became of them when they were delivered, and what is found of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirelint.capture.offline import Checked
from wirelint.history.turns import content_of
from wirelint.model import Choice, Exchange, Layer, Reply, Side, ToolCall
from wirelint.rule import Finding
from wirelint.text.excerpts import excerpt


def calls_of_exchange(exchange: Exchange) -> Iterator[tuple[Choice, ToolCall]]:
    """The calls of a reply, and those that only the reply has which was delivered instead."""
    came = list(calls_of(exchange.reply))
    yield from came
    for choice, call in calls_of(exchange.delivered):
        if not any(_is_made_of(one, call) for origin, one in came if origin.index == choice.index):
            yield choice, call


def calls_of(reply: Reply | None) -> Iterator[tuple[Choice, ToolCall]]:
    for choice in reply.choices if reply is not None else ():
        for call in choice.calls:
            yield choice, call


def delivered_as(reply: Reply, choice: Choice, call: ToolCall) -> ToolCall | None:
    """What a delivered reply made of a call: its id, else its function, else its place."""
    calls = [one for other, one in calls_of(reply) if other.index == choice.index]
    same = [one for one in calls if one.id and one.id == call.id]
    alike = [one for one in calls if _is_made_of(call, one)]
    return next(iter(same or alike), None)


def _is_made_of(came: ToolCall, got: ToolCall) -> bool:
    if came.id and came.id == got.id:
        return True
    same = content_of("", came.arguments.text) == content_of("", got.arguments.text)
    return same or (came.name == got.name and came.pointer == got.pointer)


def changes_between(before: ToolCall, after: ToolCall) -> tuple[tuple[str, str, str], ...]:
    made = []
    if before.id != after.id:
        made.append(("id", before.id or "", after.id or ""))
    if before.name != after.name:
        made.append(("name", before.name or "", after.name or ""))
    one, other = before.arguments.text, after.arguments.text
    if content_of("", one or "{}") != content_of("", other or "{}"):
        made.append(("arguments", one, other))
    return tuple(made)


def findings_on(checked: Checked, side: Side, layers: Sequence[Layer], near: Sequence[str]) -> tuple[Finding, ...]:
    """Findings on one side of an exchange that point at some layers and, if given, at places."""
    return tuple(
        finding
        for finding in checked.findings
        if finding.side == side
        and finding.layer in layers
        and (not near or any(is_within(finding.pointer, place) for place in near))
    )


def is_within(pointer: str | None, place: str) -> bool:
    return pointer is not None and (pointer == place or pointer.startswith(f"{place}/"))


def came_at(exchange: Exchange, event: int | None) -> float | None:
    """When an event of a reply came, in milliseconds after the request; without one, when all of the reply was there."""
    return exchange.timing.duration if event is None else exchange.arrivals.at(event)


def plus(at: float | None, more: float | None) -> float | None:
    return at if at is None or more is None else round(at + more, 3)


def shown_id(id_: str | None) -> str:
    return f"`{excerpt(id_)}`" if id_ else "a call without an id"
