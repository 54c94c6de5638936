"""Native markup in earlier turns of the assistant: taken out where the history also has the call that it stands for.

Theory of operation. Once markup stands in the history, the model writes it again. What may be done about it must be true:
nothing is made up that did not happen. Two cases are certain enough. The message makes the same calls structurally: then
the markup says them twice, and goes. Or the message makes no call, and the results right behind it answer none, as many as
there are calls in the markup: then those were run, and the markup becomes the calls that they answer, under the ids of the
results. In every other case a call that stands as text was never run, and the text is the truth.

A message of a model that was stuck in a loop (`text.loops`) is left as it is. So are all messages behind
`_MOST_MARKS` marks of markup: agents send their history with each request, and each mark takes some 40 microseconds.

Which markup is a call that went astray is judged as for a reply (`text.markup`), by what had been said before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from wirelint.apis.traits import history_of, is_raw, traits
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
"""Messages that are judged, each by all that was said before it. Counted from the first: a history stays what it was."""
_MOST_MARKS = 4 * MOST_MARKS


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What is to be done to one message. `answers`: the results whose calls the markup becomes; none for duplicates."""

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
    """What can be done about markup in the history of a request, message by message."""
    for _, cleaning in leaky(exchange):
        if cleaning is not None:
            yield cleaning


def leaky(exchange: Exchange) -> Iterator[tuple[tuple[Leak, ...], Cleaning | None]]:
    """The leaks in each message of a history that has any, and what can be done about them."""
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
            continue  # a text that is put together from several places
        if message.calls:
            copies = tuple(leak for leak in leaks if leak.duplicate and leak.declared)
            edits = tuple(without(request, message, copies)) if copies else ()
            yield leaks, Cleaning(message.pointer, edits, copies) if copies else None
        else:
            yield leaks, _promote(exchange, request, position, leaks)


def claimed(exchange: Exchange) -> frozenset[str]:
    """The pointers of results that are no orphans once the markup before them is what it was meant to be."""
    return frozenset(result.pointer for cleaning in cleanings(exchange) for result in cleaning.answers)


def _leaks(request: Request, position: int, message: Message) -> Iterator[Leak]:
    # The choice that this request makes is not the one under which the message was written.
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
    """The results right behind a message, if none of them answers another call."""
    end = position + 1
    while end < len(request.messages) and request.messages[end].results:
        end += 1
        if history_of(request.api).next_message:
            break
    here = [answer for answer in orphans(request) if position < answer.position < end] if end > position + 1 else []
    count = sum(len(message.results) for message in request.messages[position + 1 : end])
    return here if len(here) == count else []


def _answers_call(call: NativeCall, result: ToolResult, demand: Demand | None) -> bool:
    """Whether a result may be that of a call, under an id that can stay."""
    id_ = result.call_id or ""
    if result.name not in (None, "", call.name) or restore(id_, call.name) is not None:
        return False
    return not id_ or demand is None or demand.fault(id_, call.name) is None
