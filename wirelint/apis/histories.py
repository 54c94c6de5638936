"""How each API writes what was said before: where calls and results have their ids, and what holds them.

Theory of operation. Readers give every call and result of a request a pointer, but what stands around one differs. In the
shape of OpenAI's chat a result is a message of its own; with Anthropic, Converse and Gemini it is a block of a message that
a user could have written; in Responses calls, results and texts are items of one row. Whoever edits a history asks here.

Sources: the vendors' API references, as named in the file of each API.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from wirelint.model import Json

__all__ = ["History", "history_of", "is_signed", "is_text"]


@dataclass(frozen=True, slots=True)
class History:
    """What is peculiar to the histories of an API."""

    place: str = "/messages"
    """Pointer of the array that holds what was said."""
    content: str | None = "content"
    """The member of a message that is a row of blocks, results and calls among them; None where an item is one thing."""
    call_id: str = "id"
    """Where a call has its id, below the call's pointer."""
    result_id: str = "tool_call_id"
    arguments: str = "function/arguments"
    """Where a call has its arguments, below the call's pointer."""
    blocks: bool = False
    """Whether calls and results are blocks of messages, and a message must hold something."""
    next_message: bool = False
    """Whether results must stand in the message right behind their calls."""
    counted: bool = False
    """Whether a history with more results than calls is refused, ids or none."""


_BLOCKS = History(result_id="tool_use_id", arguments="input", blocks=True, next_message=True)
_TABLE: dict[str, History] = {
    "anthropic.messages": _BLOCKS,
    "bedrock.converse": replace(
        _BLOCKS, call_id="toolUse/toolUseId", result_id="toolResult/toolUseId", arguments="toolUse/input"
    ),
    "google.generate_content": replace(
        _BLOCKS,
        place="/contents",
        content="parts",
        call_id="id",
        result_id="id",
        arguments="args",
        counted=True,
    ),
    "openai.responses": History("/input", None, "call_id", "call_id", "arguments"),
}
_OPENAI = History()


def history_of(api: str) -> History:
    """How an API writes a history; the way of OpenAI's chat for all that do not differ from it."""
    return _TABLE.get(api, _OPENAI)


def is_text(block: Mapping[str, Json]) -> bool:
    """Return True if a block of a message is text: by its type, or by its only member where the API has no types."""
    return block.get("type", "text") == "text" and ("type" in block or "text" in block)


def is_signed(block: Json) -> bool:
    """Return True if a block carries a signature (Gemini's), which must go back with it whatever else it says."""
    return isinstance(block, dict) and any(block.get(name) for name in ("thoughtSignature", "thought_signature"))
