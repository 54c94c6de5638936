"""Native markup in earlier turns of the assistant: taken out where the history also has the call that it stands for.

Theory of operation. Once markup stands in the history, the model writes it again. What may be done about it must be true:
nothing is made up that did not happen. Two cases are certain enough. The message makes the same calls structurally: then
the markup says them twice, and goes. Or the message makes no call, and the results right behind it answer none, as many as
there are calls in the markup: then those were run, and the markup becomes the calls that they answer, under the ids of the
results. In every other case a call that stands as text was never run, and the text is the truth.

Which markup is a call that went astray is judged as for a reply (`knowledge.markup`), by what had been said before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import orjson

from wirelint.apis.traits import is_raw
from wirelint.dialects import NativeCall, find, may_hold_markup
from wirelint.knowledge.id_demands import Demand, demand_of
from wirelint.knowledge.ids import restore
from wirelint.knowledge.markup import Leak, judge, siblings
from wirelint.knowledge.orphans import orphans
from wirelint.knowledge.pairing import Answer, pair
from wirelint.knowledge.pointers import at
from wirelint.model import Choice, Exchange, Json, Message, Request, Text, ToolChoice, ToolResult
from wirelint.repair import Edit

_MOST_JUDGED = 64
"""Messages that are judged, each by all that was said before it. Counted from the first: a history stays what it was."""


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
    request = exchange.request
    if request is None or is_raw(exchange.api, request):
        return
    judged = 0
    for position, message in enumerate(request.messages):
        if message.role != "assistant" or not _may_leak(message, request):
            continue
        judged += 1
        if judged > _MOST_JUDGED:
            return
        leaks = tuple(_leaks(request, position, message))
        if not leaks:
            continue
        if message.calls:
            copies = tuple(leak for leak in leaks if leak.duplicate and leak.declared)
            if copies:
                yield Cleaning(message.pointer, tuple(_without(request, message, copies)), copies)
        else:
            made = _promote(exchange, request, position, leaks)
            if made is not None:
                yield made


def claimed(exchange: Exchange) -> frozenset[str]:
    """The pointers of results that are no orphans once the markup before them is what it was meant to be."""
    return frozenset(result.pointer for cleaning in cleanings(exchange) for result in cleaning.answers)


def _may_leak(message: Message, request: Request) -> bool:
    return any(isinstance(part, Text) and may_hold_markup(part.text, request.tools) for part in message.parts)


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
    answers = _answers(request, position) if all(leak.promotable for leak in leaks) else []
    if not answers or len(answers) != len(calls):
        return None
    used = {each.call.id for each in pair(request).pairs} | {None, ""}
    demand = demand_of(exchange)
    for call, answer in zip(calls, answers, strict=True):
        if answer.result.call_id in used or not _answers_call(call, answer.result, demand):
            return None
        used.add(answer.result.call_id)
    message = request.messages[position]
    results = tuple(answer.result for answer in answers)
    made = [(result.call_id or "", call) for call, result in zip(calls, results, strict=True)]
    return Cleaning(message.pointer, tuple(_with_calls(request, message, leaks, made)), leaks, results)


def _answers(request: Request, position: int) -> list[Answer]:
    """The results right behind a message, if none of them answers another call."""
    end = position + 1
    while end < len(request.messages) and request.messages[end].results:
        end += 1
        if request.api == "anthropic.messages":
            break  # results must stand in the very next message
    here = [answer for answer in orphans(request) if position < answer.position < end] if end > position + 1 else []
    count = sum(len(message.results) for message in request.messages[position + 1 : end])
    return here if len(here) == count else []


def _answers_call(call: NativeCall, result: ToolResult, demand: Demand | None) -> bool:
    """Whether a result may be that of a call, under an id that can stay."""
    id_ = result.call_id or ""
    if result.name not in (None, "", call.name) or restore(id_, call.name) is not None:
        return False
    return demand is None or demand.fault(id_, call.name) is None


def _remaining(message: Message, leaks: Sequence[Leak]) -> dict[str, str]:
    """What is left of the texts that hold leaks, by their pointers; blank text is none."""
    texts: dict[str, str] = {}
    for part in message.parts:
        spans = [leak.span for leak in leaks if leak.part is part]
        if isinstance(part, Text) and spans:
            starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(part.text)]
            left = "".join(part.text[start:end] for start, end in zip(starts, ends, strict=True))
            texts[part.pointer] = left if left.strip() else ""
    return texts


def _without(request: Request, message: Message, leaks: Sequence[Leak]) -> Iterator[Edit]:
    """The edits that take markup out of the texts of a message that has calls."""
    place = f"{message.pointer}/content"
    left = _remaining(message, leaks)
    content = at(request.body, place)
    if not isinstance(content, list):
        yield Edit("replace", place, left[place] or None)
        return
    empty = [pointer for pointer, text in left.items() if not text]
    if len(empty) == len(content):
        yield Edit("replace", place, None)  # OpenAI's chat: an Anthropic message has its calls there too
        return
    for pointer, text in left.items():
        yield Edit("replace", pointer, text) if text else Edit("remove", pointer.rpartition("/")[0])


def _with_calls(
    request: Request, message: Message, leaks: Sequence[Leak], calls: Sequence[tuple[str, NativeCall]]
) -> Iterator[Edit]:
    if request.api != "anthropic.messages":
        yield from _without(request, message, leaks)
        yield Edit("replace", f"{message.pointer}/tool_calls", [_openai_call(id_, call) for id_, call in calls])
        return
    place = f"{message.pointer}/content"
    left = _remaining(message, leaks)
    content = at(request.body, place)
    blocks: list[Json] = [{"type": "text", "text": left[place]}] if left.get(place) else []
    for number, block in enumerate(content if isinstance(content, list) else ()):
        text = left.get(f"{place}/{number}/text")
        if text is None:
            blocks.append(block)
        elif text and isinstance(block, dict):
            blocks.append({**block, "text": text})
    blocks += [{"type": "tool_use", "id": id_, "name": call.name, "input": call.arguments or {}} for id_, call in calls]
    yield Edit("replace", place, blocks)


def _openai_call(id_: str, call: NativeCall) -> Json:
    arguments = orjson.dumps(call.arguments or {}).decode()
    return {"id": id_, "type": "function", "function": {"name": call.name, "arguments": arguments}}
