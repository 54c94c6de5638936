"""What can be done about tool results that answer no call: dropped, or kept as the user's words where they hold a place.

Theory of operation. In OpenAI's chat and in Responses a result is a message or an item of its own and can go. With
Anthropic, Converse and Gemini it is a block of a user message, and a message must hold something. One that is left empty
goes as a whole, unless the history would then begin with the assistant, end with it, or let it speak twice in a row: APIs
and chat templates refuse that, or take an answer at the end for one that is to be continued. There the result stays, as
plain text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import orjson

from wirelint.apis.traits import History, history_of, traits
from wirelint.fix import Edit
from wirelint.history.pairing import Answer, pair
from wirelint.model import Json, Request
from wirelint.text.pointers import at

_CONTENT = frozenset({"text", "image", "document"})
"""Blocks of a result that may stand in a user message too."""
_CONVERSE = ("text", "image", "document", "video")
_ASSISTANT = (None, "assistant", "model")


def orphans(request: Request) -> tuple[Answer, ...]:
    """The results of a history that answer no call, as far as can be known."""
    found = pair(request).orphans
    if not found or request.is_partial:
        return ()
    needed = traits(request.api).call_ids
    return tuple(one for one in found if _told(one.result.call_id, needed=needed))


def _told(id_: str | None, *, needed: bool) -> bool:
    return not needed if id_ is None else "[redacted:" not in id_


def removals(request: Request, found: Sequence[Answer]) -> dict[str, tuple[Edit, ...]]:
    """The edits that take results out of a history, by the results' pointers; nothing for those that must stay."""
    history = history_of(request.api)
    if history.blocks:
        return _blocks(request, history, found)
    gone = {answer.position for answer in found}
    spoken = any(message.role != "system" for n, message in enumerate(request.messages) if n not in gone)
    return {answer.result.pointer: (Edit("remove", answer.result.pointer),) for answer in found if spoken}


def keeps_words(edits: Sequence[Edit]) -> bool:
    """Whether the edits of a result keep what it says as text."""
    return any(edit.op == "replace" for edit in edits)


def _blocks(request: Request, history: History, found: Sequence[Answer]) -> dict[str, tuple[Edit, ...]]:
    by_message: dict[int, dict[str, str]] = {}
    for answer in found:
        place = answer.result.pointer.split("/")
        if (
            len(place) > 4 and place[2].isdecimal() and place[4].isdecimal()
        ):  # not in a message that stands alone where a row should
            by_message.setdefault(int(place[2]), {})[answer.result.pointer] = "/".join(place[:5])
    body = at(request.body, history.place)
    messages = body if isinstance(body, list) else []
    edits: dict[str, tuple[Edit, ...]] = {}
    gone: dict[int, str | None] = {}
    for number, blocks in sorted(by_message.items()):
        edits |= _taken_out(messages, number, blocks, gone, history)
    return edits


def _taken_out(
    messages: Sequence[Json], number: int, blocks: Mapping[str, str], gone: dict[int, str | None], history: History
) -> dict[str, tuple[Edit, ...]]:
    """The edits for the results of one message, which joins `gone` when nothing is left of it.

    `blocks`: the pointers of the results' blocks, by those of the results. `gone` holds, for each message before it that
    is taken out, who speaks in the last one before that which stays.
    """
    message = messages[number]
    content = message.get(history.content or "") if isinstance(message, dict) else None
    if not isinstance(content, list) or len(blocks) < len(content):
        return {pointer: (Edit("remove", block),) for pointer, block in blocks.items()}
    place = f"{history.place}/{number}"
    last = number - 1
    before = gone[last] if last in gone else _role(messages[last]) if number else None
    after = _role(messages[number + 1]) if number + 1 < len(messages) else None
    if not (before in _ASSISTANT and after in _ASSISTANT):
        gone[number] = before
        return {pointer: (Edit("remove", place),) for pointer in blocks}
    words = [block for result in content if isinstance(result, dict) for block in _words(result)]
    if not words:
        return {}
    edits = [Edit("replace", f"{place}/{history.content}", words)]
    if _role(message) in ("function", "tool"):
        edits.append(Edit("replace", f"{place}/role", "user"))
    return {pointer: tuple(edits) for pointer in blocks}


def _role(message: Json) -> str | None:
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) else "user"


def _words(block: Mapping[str, Json]) -> Iterator[Json]:
    """What a result says, as blocks that a user message may hold. The vendors refuse blank text."""
    told = block.get("toolResult")
    if isinstance(told, dict):
        yield from _of_converse(told.get("content"))
        return
    response = block.get("functionResponse", block.get("function_response"))
    if isinstance(response, dict):
        words = _of_gemini(response.get("response"))
        if words.strip():
            yield {"text": words}
        return
    content = block.get("content")
    blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else []
    blocks += content if isinstance(content, list) else []
    yield from (one for one in blocks if isinstance(one, dict) and one.get("type") in _CONTENT and _speaks(one))


def _of_converse(content: Json) -> Iterator[Json]:
    parts: list[Json] = content if isinstance(content, list) else [{"text": content}]
    for one in parts:
        if not isinstance(one, dict):
            continue
        if "json" in one:
            yield {"text": orjson.dumps(one["json"]).decode()}
        elif any(one.get(name) for name in _CONVERSE) and _speaks(one):
            yield one


def _of_gemini(response: Json) -> str:
    if isinstance(response, dict) and len(response) == 1:
        (value,) = response.values()
        if isinstance(value, str):
            return value
    return "" if response in (None, {}) else orjson.dumps(response).decode()


def _speaks(block: Mapping[str, Json]) -> bool:
    """Whether a block is something else than blank text."""
    if block.get("type") != "text" and "text" not in block:
        return True
    text = block.get("text")
    return isinstance(text, str) and bool(text.strip())
