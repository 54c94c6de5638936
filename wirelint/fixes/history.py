"""Fix for `xml-leak` in requests: native markup in earlier messages of the assistant.

Theory of operation. A model imitates markup in its history. A fix must not invent anything, so three cases qualify.
The message has equal structured calls: then the markup is a duplicate, and is removed. Or the message has no call, and
as many results follow it as its markup has calls, and answer no other call: then the calls did run, and the markup
becomes the calls of these results, with their ids. Or the user speaks next, and mentions no call, result or tag: then
the calls were never run, and the markup is removed. A message that held nothing else is removed too, except where roles
must alternate. In every other case the markup stays.

Messages of a model that was stuck in a loop (`text.loops`) stay, and so do all messages after `_TIMES` as much markup:
agents send their history with each request, and each mark takes some 40 microseconds. Leaks are checked like
those of a reply (`text.markup`), given the messages before them.

Edits have the form of each API. In a message of blocks, calls are blocks after the texts; in OpenAI's chat they are a
member (`tool_calls`); in Responses they are items before the first of their outputs. A block whose text becomes empty
is removed, since vendors refuse blank blocks, unless it carries a signature. An empty content is written as each API
writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wirelint.apis.traits import history_of, is_raw, is_signed, traits
from wirelint.dialects.reader import NativeCall
from wirelint.dialects.scan import find, may_hold_markup
from wirelint.fix import Edit
from wirelint.history.id_demands import Demand, demand_of
from wirelint.history.ids import restore
from wirelint.history.pairing import Answer, orphans, pair
from wirelint.jsonvalues import write
from wirelint.model import Choice, Exchange, Json, Message, Reasoning, Request, Text, ToolChoice, ToolResult
from wirelint.text.fabricated_results import next_marker
from wirelint.text.loops import MarkCount, plain_from
from wirelint.text.markup import Leak, judge, siblings
from wirelint.text.pointers import at

_MOST_JUDGED = 64
"""Number of messages that are checked: the first ones, so that the result does not change as the history grows."""
_TIMES = 4
_ALTERNATING = frozenset({"bedrock.converse", "google.generate_content"})
"""APIs that may refuse two messages of the user in a row."""
_STRICT = re.compile(r"gemma|mistral|mixtral|llama-?2|sonar", re.IGNORECASE)
"""Models whose chat templates, or whose vendor (Perplexity), refuse them too."""
_HEAD = 256
"""Characters of markup in which its tags are looked for."""
_OPENING = re.compile(r"[<\[][|\uff5c]?\w{4,}")
"""The beginning of a tag or of a token: `<tool_call`, `[TOOL_CALLS`."""
_SIGNING = re.compile(r"gemini-(?:[3-9]|\d\d)")
"""Models that refuse calls without a signature in the history."""


@dataclass(frozen=True, slots=True)
class Cleaning:
    """The change of one message. `answers`: the results whose calls the markup becomes; without, it is removed.

    `duplicate`: the message has the calls structurally, too.
    """

    pointer: str
    edits: tuple[Edit, ...]
    leaks: tuple[Leak, ...]
    answers: tuple[ToolResult, ...] = ()
    duplicate: bool = False

    @property
    def markup(self) -> str:
        return "\n".join(leak.part.text[slice(*leak.span)] for leak in self.leaks)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for leak in self.leaks for name in leak.names))


def leaky(exchange: Exchange) -> Iterator[tuple[tuple[Leak, ...], Cleaning | None]]:
    """Yield the leaks of each message that has any, and the change that removes them."""
    request = exchange.request
    if request is None or is_raw(exchange.api, request):
        return
    judged, names = 0, frozenset([tool.name for tool in request.tools])
    marks = MarkCount(names, _TIMES)
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
            yield leaks, Cleaning(message.pointer, edits, copies, duplicate=True) if copies else None
        else:
            yield leaks, _promote(exchange, request, position, leaks) or _forget(request, position, leaks)


def claimed(exchange: Exchange) -> frozenset[str]:
    """Return the pointers of results that are no orphans once markup has become calls."""
    made = [cleaning for _, cleaning in leaky(exchange) if cleaning is not None]
    return frozenset(result.pointer for cleaning in made for result in cleaning.answers)


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
    if not all(leak.promotable for leak in leaks) or request.is_partial:
        return None
    if request.api == "google.generate_content" and _SIGNING.search(request.model):
        return None
    answers = _answers(request, position)
    if not answers or len(answers) != len(calls):
        return None
    used = {each.call.id for each in pair(request).pairs if each.call.id}
    demand, needed = demand_of(exchange), traits(request.api).has_call_ids
    for call, answer in zip(calls, answers, strict=True):
        id_ = answer.result.call_id
        if id_ in used or not (id_ or not needed) or not _answers_call(call, answer.result, demand):
            return None
        used |= {id_} if id_ else set()
    message = request.messages[position]
    results = tuple(answer.result for answer in answers)
    return Cleaning(message.pointer, tuple(with_calls(request, message, leaks, results)), leaks, results)


def _forget(request: Request, position: int, leaks: tuple[Leak, ...]) -> Cleaning | None:
    """Return the removal of calls that were never run."""
    message, after = request.messages[position], request.messages[position + 1 : position + 2]
    if not after or after[0].role != "user" or after[0].results or not all(leak.promotable for leak in leaks):
        return None
    said, spans = after[0].text, [leak.part.text[slice(*leak.span)] for leak in leaks]
    names = {name for leak in leaks for name in leak.names}.union(*(_OPENING.findall(span[:_HEAD]) for span in spans))
    if next_marker(said, 0) is not None or any(name in said for name in names):
        return None  # a client that reads markup sends the result as a user message; or the user asks about the markup
    left = _remaining(message, leaks)
    others = (part for part in message.parts if not isinstance(part, Reasoning) and part.pointer not in left)
    if any(left.values()) or any(not isinstance(part, Text) or part.text.strip() for part in others):
        edits = tuple(without(request, message, leaks))
    elif request.api in _ALTERNATING or _STRICT.search(request.model):
        return None
    elif history_of(request.api).content is None:  # a reasoning item must not stay without the item after it
        items = dict.fromkeys("/".join(part.pointer.split("/")[:3]) for part in message.parts)
        edits = tuple(Edit("remove", item) for item in items)
    else:
        edits = (Edit("remove", message.pointer),)
    return Cleaning(message.pointer, edits, leaks)


def _answers(request: Request, position: int) -> list[Answer]:
    """Return the results right after a message, if none of them answers another call."""
    end = position + 1
    while end < len(request.messages) and request.messages[end].results:
        end += 1
        if history_of(request.api).has_results_next:
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


# --- edits of messages ------------------------------------------------------------------------------------------------


def without(request: Request, message: Message, leaks: Sequence[Leak]) -> Iterator[Edit]:
    """Yield the edits that remove markup from the texts of a message with calls.

    In Responses, a turn can be several message items. An item without text is removed.
    """
    contents: dict[str, dict[str, str]] = {}
    for pointer, text in _remaining(message, leaks).items():
        block = _block(pointer)
        contents.setdefault(block.rpartition("/")[0] if block is not None else pointer, {})[pointer] = text
    for place, texts in contents.items():
        content = at(request.body, place)
        gone = {pointer: _block(pointer) or pointer for pointer, text in texts.items() if not text}
        gone = {pointer: block for pointer, block in gone.items() if not is_signed(at(request.body, block))}
        if len(gone) < (len(content) if isinstance(content, list) else 1):
            for pointer, text in texts.items():
                yield Edit("remove", gone[pointer]) if pointer in gone else Edit("replace", pointer, text)
        elif history_of(request.api).content is None:
            yield Edit("remove", "/".join(place.split("/")[:3]))
        elif request.api == "cohere.chat":
            yield Edit("remove", place)
        else:
            yield Edit("replace", place, "" if request.api == "ollama.chat" else None)


def with_calls(
    request: Request, message: Message, leaks: Sequence[Leak], answers: Sequence[ToolResult]
) -> Iterator[Edit]:
    """Yield the edits that turn the markup of a message into the calls of some results, one for one."""
    calls = [call for leak in leaks for call in leak.calls]
    made = [_called(request.api, call, answer.call_id) for call, answer in zip(calls, answers, strict=True)]
    history = history_of(request.api)
    if history.has_blocks:
        place = f"{message.pointer}/{history.content}"
        yield Edit("replace", place, [*_rest(request, place, _remaining(message, leaks)), *made])
        return
    yield from without(request, message, leaks)
    if history.content is None:
        yield from (Edit("insert", answers[0].pointer, call) for call in made)
    else:
        yield Edit("replace", f"{message.pointer}/tool_calls", made)


def _remaining(message: Message, leaks: Sequence[Leak]) -> dict[str, str]:
    """Return the texts without leaks, by pointer. Blank text becomes empty."""
    texts: dict[str, str] = {}
    for part in message.parts:
        spans = [leak.span for leak in leaks if leak.part is part]
        if isinstance(part, Text) and spans:
            left = part.text
            for start, end in reversed(spans):
                left = left[:start] + left[end:]
            texts[part.pointer] = left if left.strip() else ""
    return texts


def _block(pointer: str) -> str | None:
    """Return the pointer of the block that a text belongs to; None for a content that is a text."""
    block, _, field = pointer.rpartition("/")
    return block if field == "text" and block.rpartition("/")[2].isdecimal() else None


def _rest(request: Request, place: str, left: Mapping[str, str]) -> Iterator[Json]:
    """Yield the blocks of a message with their remaining texts."""
    content = at(request.body, place)
    if isinstance(content, str):
        if text := left.get(place):
            yield {"type": "text", "text": text} if request.api == "anthropic.messages" else {"text": text}
        return
    for number, block in enumerate(content if isinstance(content, list) else ()):
        text = left.get(f"{place}/{number}/text")
        if text is None:
            yield block
        elif isinstance(block, dict) and (text or is_signed(block)):
            yield {**block, "text": text}


def _called(api: str, call: NativeCall, id_: str | None) -> Json:
    """Return a call in the form of an API. It has no id if its result has none."""
    name, arguments = call.name, call.arguments or {}
    known: dict[str, Json] = {"id": id_} if id_ else {}
    match api:
        case "anthropic.messages":
            return {"type": "tool_use", "id": id_, "name": name, "input": arguments}
        case "bedrock.converse":
            return {"toolUse": {"toolUseId": id_, "name": name, "input": arguments}}
        case "google.generate_content":
            return {"functionCall": {**known, "name": name, "args": arguments}}
        case "ollama.chat":
            return {**known, "function": {"name": name, "arguments": arguments}}
    written = write(arguments)
    if api == "openai.responses":
        return {"type": "function_call", "call_id": id_, "name": name, "arguments": written}
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": written}}
