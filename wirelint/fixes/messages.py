"""Messages of a history written anew: markup taken out of their texts, calls put in, in the form of each API.

Theory of operation. Where a message is a row of blocks, its calls are blocks behind the texts; in the shape of OpenAI's
chat they have a member of their own; in Responses they are items, put before the first of their outputs. What is left of a
text is the text itself; a block of which nothing is left goes, since vendors refuse blank ones, save for one that carries a
signature. A content that was a text and is none any more is what each API calls that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import orjson

from wirelint.apis.traits import history_of, is_signed
from wirelint.dialects import NativeCall
from wirelint.fix import Edit
from wirelint.model import Json, Message, Request, Text, ToolResult
from wirelint.text.markup import Leak
from wirelint.text.pointers import at

_SIGNING = re.compile(r"gemini-(?:[3-9]|\d\d)")


def can_hold_calls(request: Request) -> bool:
    """Whether calls can be put into the history of a request. Recent Geminis refuse those that they did not sign."""
    return request.api != "google.generate_content" or _SIGNING.search(request.model) is None


def without(request: Request, message: Message, leaks: Sequence[Leak]) -> Iterator[Edit]:
    """The edits that take markup out of the texts of a message that has calls."""
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
    """The edits that make the markup of a message the calls that some results answer, one for one."""
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
    """What is left of the texts that hold leaks, by their pointers; blank text is none."""
    texts: dict[str, str] = {}
    for part in message.parts:
        spans = [leak.span for leak in leaks if leak.part is part]
        if isinstance(part, Text) and spans:
            starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(part.text)]
            left = "".join(part.text[start:end] for start, end in zip(starts, ends, strict=True))
            texts[part.pointer] = left if left.strip() else ""
    return texts


def _block(pointer: str) -> str | None:
    """The pointer of the block that a text is the word of; None for a content that is a text."""
    block, _, field = pointer.rpartition("/")
    return block if field == "text" and block.rpartition("/")[2].isdecimal() else None


def _emptied(api: str, place: str) -> Edit:
    """A content without words, beside calls."""
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
    """A message item of which nothing is left goes; what the model said in one turn can be several of them."""
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
    """The blocks of a message with what is left of their texts."""
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
    """A call in the form of an API; without an id where its result has none."""
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
