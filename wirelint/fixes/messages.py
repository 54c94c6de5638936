"""Edits of messages in a history: markup is removed from texts, and calls are inserted, in the form of each API.

Theory of operation. In a message of blocks, calls are blocks after the texts; in OpenAI's chat they are a member
(`tool_calls`); in Responses they are items before the first of their outputs. A block whose text becomes empty is removed,
since vendors refuse blank blocks, unless it carries a signature. An empty content is written as each API writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import orjson

from wirelint.apis.histories import history_of, is_signed
from wirelint.dialects import NativeCall
from wirelint.fix import Edit
from wirelint.model import Json, Message, Request, Text, ToolResult
from wirelint.text.markup import Leak
from wirelint.text.pointers import at

_SIGNING = re.compile(r"gemini-(?:[3-9]|\d\d)")


def can_hold_calls(request: Request) -> bool:
    """Return True if calls can be put into the history of a request. Recent Gemini models refuse unsigned ones."""
    return request.api != "google.generate_content" or _SIGNING.search(request.model) is None


def without(request: Request, message: Message, leaks: Sequence[Leak]) -> Iterator[Edit]:
    """Yield the edits that remove markup from the texts of a message with calls."""
    left = _remaining(message, leaks)
    if history_of(request.api).content is None:
        yield from _without_items(request, left)
        return
    texts = {pointer: text for pointer, text in left.items() if _block(pointer) is not None}
    for pointer, text in left.items():
        if pointer not in texts:
            yield Edit("replace", pointer, text) if text else _emptied(request.api, pointer)
    if texts:
        yield from _without_blocks(request, texts)


def with_calls(
    request: Request, message: Message, leaks: Sequence[Leak], answers: Sequence[ToolResult]
) -> Iterator[Edit]:
    """Yield the edits that turn the markup of a message into the calls of some results, one for one."""
    calls = [call for leak in leaks for call in leak.calls]
    made = [_called(request.api, call, answer.call_id) for call, answer in zip(calls, answers, strict=True)]
    history = history_of(request.api)
    if history.blocks:
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
            starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(part.text)]
            left = "".join(part.text[start:end] for start, end in zip(starts, ends, strict=True))
            texts[part.pointer] = left if left.strip() else ""
    return texts


def _block(pointer: str) -> str | None:
    """Return the pointer of the block that a text belongs to; None for a content that is a text."""
    block, _, field = pointer.rpartition("/")
    return block if field == "text" and block.rpartition("/")[2].isdecimal() else None


def _emptied(api: str, place: str) -> Edit:
    """Return the edit that empties the content of a message with calls."""
    if api == "cohere.chat":
        return Edit("remove", place)
    return Edit("replace", place, "" if api == "ollama.chat" else None)


def _without_blocks(request: Request, texts: Mapping[str, str]) -> Iterator[Edit]:
    blocks = {pointer: _block(pointer) or "" for pointer in texts}
    row = next(iter(blocks.values())).rpartition("/")[0]
    content = at(request.body, row)
    signed = {pointer for pointer, block in blocks.items() if is_signed(at(request.body, block))}
    gone = [pointer for pointer, text in texts.items() if not text and pointer not in signed]
    if isinstance(content, list) and len(gone) == len(content):
        yield _emptied(request.api, row)
        return
    for pointer, text in texts.items():
        yield Edit("remove", blocks[pointer]) if pointer in gone else Edit("replace", pointer, text)


def _without_items(request: Request, left: Mapping[str, str]) -> Iterator[Edit]:
    """Yield the edits for Responses, where a turn can be several message items. An item without text is removed."""
    items: dict[str, dict[str, str]] = {}
    for pointer, text in left.items():
        items.setdefault("/".join(pointer.split("/")[:3]), {})[pointer] = text
    for item, texts in items.items():
        content = at(request.body, f"{item}/content")
        parts = len(content) if isinstance(content, list) else 1
        if sum(not text for text in texts.values()) == parts:
            yield Edit("remove", item)
            continue
        for pointer, text in texts.items():
            yield Edit("replace", pointer, text) if text else Edit("remove", _block(pointer) or pointer)


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
    arguments: Json = call.arguments or {}
    match api:
        case "anthropic.messages":
            return {"type": "tool_use", "id": id_, "name": call.name, "input": arguments}
        case "bedrock.converse":
            return {"toolUse": {"toolUseId": id_, "name": call.name, "input": arguments}}
        case "google.generate_content":
            named: dict[str, Json] = {"id": id_} if id_ else {}
            return {"functionCall": {**named, "name": call.name, "args": arguments}}
        case "ollama.chat":
            known: dict[str, Json] = {"id": id_} if id_ else {}
            return {**known, "function": {"name": call.name, "arguments": arguments}}
        case "openai.responses":
            written = orjson.dumps(arguments).decode()
            return {"type": "function_call", "call_id": id_, "name": call.name, "arguments": written}
        case _:
            written = orjson.dumps(arguments).decode()
            return {"id": id_, "type": "function", "function": {"name": call.name, "arguments": written}}
