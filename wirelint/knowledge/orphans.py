"""What can be done about tool results that answer no call: dropped, or kept as the user's words where they hold a place.

Theory of operation. In OpenAI's chat a result is a message and can go. With Anthropic it is a block of a user message,
and a message must hold something. One that is left empty goes as a whole, unless the history would then begin with the
assistant, end with it, or let it speak twice in a row: APIs and chat templates refuse that, or take an answer at the end
for one that is to be continued. There the result stays, as plain text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wirelint.knowledge.pairing import Answer, pair
from wirelint.model import Json, Request
from wirelint.repair import Edit

_CONTENT = frozenset({"text", "image", "document"})
"""Blocks of a result that may stand in a user message too."""


def orphans(request: Request) -> tuple[Answer, ...]:
    """The results of a history that answer no call, as far as can be known."""
    found = pair(request).orphans
    return tuple(one for one in found if one.result.call_id is not None and "[redacted:" not in one.result.call_id)


def removals(request: Request, found: Sequence[Answer]) -> dict[str, tuple[Edit, ...]]:
    """The edits that take results out of a history, by the results' pointers; nothing for those that must stay."""
    if request.api == "anthropic.messages":
        return _blocks(request, found)
    gone = {answer.position for answer in found}
    spoken = any(message.role != "system" for n, message in enumerate(request.messages) if n not in gone)
    return {answer.result.pointer: (Edit("remove", answer.result.pointer),) for answer in found if spoken}


def keeps_words(edits: Sequence[Edit]) -> bool:
    """Whether the edits of a result keep what it says as text."""
    return any(edit.op == "replace" for edit in edits)


def _blocks(request: Request, found: Sequence[Answer]) -> dict[str, tuple[Edit, ...]]:
    by_message: dict[int, list[str]] = {}
    for answer in found:
        by_message.setdefault(int(answer.result.pointer.split("/")[2]), []).append(answer.result.pointer)
    body = request.body.get("messages")
    messages = body if isinstance(body, list) else []
    edits: dict[str, tuple[Edit, ...]] = {}
    gone: dict[int, str | None] = {}
    for number, pointers in sorted(by_message.items()):
        edits |= _taken_out(messages, number, pointers, gone)
    return edits


def _taken_out(
    messages: Sequence[Json], number: int, pointers: Sequence[str], gone: dict[int, str | None]
) -> dict[str, tuple[Edit, ...]]:
    """The edits for the results of one message, which joins `gone` when nothing is left of it.

    `gone` holds, for each message before it that is taken out, who speaks in the last one before that which stays.
    """
    message = messages[number]
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list) or len(pointers) < len(content):
        return {pointer: (Edit("remove", pointer),) for pointer in pointers}
    place = f"/messages/{number}"
    last = number - 1
    before = gone[last] if last in gone else _role(messages[last]) if number else None
    after = _role(messages[number + 1]) if number + 1 < len(messages) else None
    speaks_before, speaks_after = before in (None, "assistant"), after in (None, "assistant")
    if not (speaks_before and speaks_after):
        gone[number] = before
        return {pointer: (Edit("remove", place),) for pointer in pointers}
    words = [block for result in content if isinstance(result, dict) for block in _words(result)]
    return {pointer: (Edit("replace", f"{place}/content", words),) for pointer in pointers} if words else {}


def _role(message: Json) -> str | None:
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) else None


def _words(result: Mapping[str, Json]) -> list[Json]:
    """What a result says, as blocks that a user message may hold. Anthropic refuses blank text."""
    content = result.get("content")
    blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else []
    blocks += content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, dict) and _may_stand(block)]


def _may_stand(block: Mapping[str, Json]) -> bool:
    text = block.get("text")
    return block.get("type") in _CONTENT and (
        block.get("type") != "text" or (isinstance(text, str) and bool(text.strip()))
    )
