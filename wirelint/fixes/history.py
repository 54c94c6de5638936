"""Fix for `xml-leak` in requests: native markup in earlier messages of the assistant.

Theory of operation. A model imitates markup in its history. A fix must not invent anything, so only two cases qualify.
The message has equal structured calls: then the markup is a duplicate, and is removed. Or the message has no call, and
as many results follow it as its markup has calls, and answer no other call: then the calls did run, and the markup
becomes the calls of these results, with their ids. In every other case the call was never run, and the text is true.

Messages of a model that was stuck in a loop (`text.loops`) stay, and so do all messages after `_MOST_MARKS` marks of
markup: agents send their history with each request, and each mark takes some 40 microseconds. Leaks are judged like
those of a reply (`text.markup`), given the messages before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from wirelint.apis.histories import history_of
from wirelint.apis.traits import is_raw, traits
from wirelint.dialects import NativeCall, find, may_hold_markup
from wirelint.fix import Edit
from wirelint.fixes.messages import can_hold_calls, with_calls, without
from wirelint.history.id_demands import Demand, demand_of
from wirelint.history.ids import restore
from wirelint.history.pairing import Answer, orphans, pair
from wirelint.model import Choice, Exchange, Message, Request, Text, ToolChoice, ToolResult
from wirelint.text.loops import MOST_MARKS, MarkCount, plain_from
from wirelint.text.markup import Leak, judge, siblings
from wirelint.text.pointers import at

_MOST_JUDGED = 64
"""Messages that are judged, the first ones, so that the judgement does not change as the history grows."""
_MOST_MARKS = 4 * MOST_MARKS


@dataclass(frozen=True, slots=True)
class Cleaning:
    """The change of one message. `answers`: the results whose calls the markup becomes; none for duplicates."""

    pointer: str
    edits: tuple[Edit, ...]
    leaks: tuple[Leak, ...]
    answers: tuple[ToolResult, ...] = ()

    @property
    def markup(self) -> str:
        return "\n".join(leak.part.text[slice(*leak.span)] for leak in self.leaks)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for leak in self.leaks for name in leak.names))


def cleanings(exchange: Exchange) -> Iterator[Cleaning]:
    """Yield the changes that remove markup from the history of a request, message by message."""
    for _, cleaning in leaky(exchange):
        if cleaning is not None:
            yield cleaning


def leaky(exchange: Exchange) -> Iterator[tuple[tuple[Leak, ...], Cleaning | None]]:
    """Yield the leaks of each message that has any, and the change that removes them."""
    request = exchange.request
    if request is None or is_raw(exchange.api, request):
        return
    judged, names = 0, frozenset([tool.name for tool in request.tools])
    marks = MarkCount(names, _MOST_MARKS)
    for position, message in enumerate(request.messages):
        texts = [part for part in message.parts if isinstance(part, Text)] if message.role == "assistant" else []
        if not any(may_hold_markup(part.text, request.tools) for part in texts):
            continue
        judged += 1
        if judged > _MOST_JUDGED:
            return
        if any(plain_from(part.text, names) is not None for part in texts):
            continue
        if any(marks.add(f"{part.text}\n") is not None for part in texts):
            return
        leaks = tuple(_leaks(request, position, message))
        if not leaks or any(at(request.body, leak.part.pointer) != leak.part.text for leak in leaks):
            continue  # a text joined from several places
        if message.calls:
            copies = tuple(leak for leak in leaks if leak.duplicate and leak.declared)
            edits = tuple(without(request, message, copies)) if copies else ()
            yield leaks, Cleaning(message.pointer, edits, copies) if copies else None
        else:
            yield leaks, _promote(exchange, request, position, leaks)


def claimed(exchange: Exchange) -> frozenset[str]:
    """Return the pointers of results that are no orphans once markup has become calls."""
    return frozenset(result.pointer for cleaning in cleanings(exchange) for result in cleaning.answers)


def _leaks(request: Request, position: int, message: Message) -> Iterator[Leak]:
    # The tool choice of this request did not apply when the message was written.
    past = replace(request, messages=request.messages[:position], tool_choice=ToolChoice())
    for part in message.parts:
        if not isinstance(part, Text) or "[redacted:" in part.text:
            continue
        for blocks in siblings(part.text, find(part.text, request.tools)):
            leak = judge(past, Choice(0, message.parts, None, ""), part, blocks)
            if leak is not None:
                yield leak


def _promote(exchange: Exchange, request: Request, position: int, leaks: tuple[Leak, ...]) -> Cleaning | None:
    calls = [call for leak in leaks for call in leak.calls]
    if not all(leak.promotable for leak in leaks) or not can_hold_calls(request) or request.is_partial:
        return None
    answers = _answers(request, position)
    if not answers or len(answers) != len(calls):
        return None
    used = {each.call.id for each in pair(request).pairs if each.call.id}
    demand, needed = demand_of(exchange), traits(request.api).call_ids
    for call, answer in zip(calls, answers, strict=True):
        id_ = answer.result.call_id
        if id_ in used or not (id_ or not needed) or not _answers_call(call, answer.result, demand):
            return None
        used |= {id_} if id_ else set()
    message = request.messages[position]
    results = tuple(answer.result for answer in answers)
    return Cleaning(message.pointer, tuple(with_calls(request, message, leaks, results)), leaks, results)


def _answers(request: Request, position: int) -> list[Answer]:
    """Return the results right after a message, if none of them answers another call."""
    end = position + 1
    while end < len(request.messages) and request.messages[end].results:
        end += 1
        if history_of(request.api).next_message:
            break
    here = [answer for answer in orphans(request) if position < answer.position < end] if end > position + 1 else []
    count = sum(len(message.results) for message in request.messages[position + 1 : end])
    return here if len(here) == count else []


def _answers_call(call: NativeCall, result: ToolResult, demand: Demand | None) -> bool:
    """Return True if a result may belong to a call, under an id that can stay."""
    id_ = result.call_id or ""
    if result.name not in (None, "", call.name) or restore(id_, call.name) is not None:
        return False
    return not id_ or demand is None or demand.fault(id_, call.name) is None
