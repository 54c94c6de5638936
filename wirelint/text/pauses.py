"""Context of a silence in a reply: the events on both sides, and whether the reply explains the silence.

Hidden reasoning and tools of the provider cause silences. The reply shows them by its token counts, opaque parts and calls
of hosted tools; a stalled stream has none of these. A count of tokens also gives the least time of their generation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wirelint.model import Choice, Exchange, Json, Reasoning, Refusal, Reply, Text, ToolCall
from wirelint.timing import Gap

_CHARACTERS = 4
"""Approximate number of characters per token."""
_SLOWEST = 15.0
"""Lowest speed of models in use, in tokens a second."""

_SAID = ("completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens", "eval_count", "tokens_generated")
_THOUGHT = ("reasoning_tokens", "thoughtsTokenCount", "thinking_tokens")
_ENDS = {"client-left": "then the client left", "upstream-died": "then the upstream broke off"}


def seconds(milliseconds: float) -> str:
    """Return a time as text: `45.2 s`."""
    return f"{milliseconds / 1000:.1f} s" if milliseconds < 600_000 else f"{milliseconds / 60_000:.0f} min"


def describe(exchange: Exchange, gap: Gap) -> str:
    """Return the place of a gap: `after event 6 (reasoning) and before event 7 (a call of bash)`."""
    reply = exchange.reply
    if not exchange.arrivals.framed or reply is None:
        return "in the middle of the body"
    where = f"after event {gap.before} ({_at(reply, gap.before)})" if gap.before is not None else "after the request"
    if gap.after is not None:
        return f"{where} and before event {gap.after} ({_at(reply, gap.after)})"
    return where if exchange.open else f"{where}, {_ENDS.get(exchange.end, 'then the connection ended')}"


def alive(exchange: Exchange, idle: int) -> str:
    """Return a noun for the bytes that arrived during a gap; empty without any. `idle`: events without content."""
    if not idle:
        return ""
    if not exchange.arrivals.framed:
        return "white space"
    return f"{idle} keep-alive{'s' if idle > 1 else ''}"


def unseen(reply: Reply, before: float) -> bool:
    """Return True if hidden work of the provider explains a silence of `before` milliseconds."""
    if any(choice.hosted for choice in reply.choices):
        return True
    thought = _count(reply.usage, _THOUGHT)
    shown = sum(len(part.text) for part in reply.parts if isinstance(part, Reasoning)) / _CHARACTERS
    if thought is None:
        return any(isinstance(part, Reasoning) and part.opaque for part in reply.parts)
    return (thought - shown) / _SLOWEST * 1000 >= before


def written(reply: Reply, within: float) -> bool:
    """Return True if the generation of a reply's tokens takes as long as `within` milliseconds."""
    said, thought = _count(reply.usage, _SAID), _count(reply.usage, _THOUGHT)
    tokens = (said or 0) + (thought or 0)
    if said is None:
        texts = [part.text for part in reply.parts if isinstance(part, Text | Reasoning | Refusal)]
        texts += [part.arguments.text for part in reply.parts if isinstance(part, ToolCall)]
        tokens += sum(map(len, texts)) // _CHARACTERS
    return tokens / _SLOWEST * 1000 >= within


def shown(choice: Choice) -> Iterator[Text | Reasoning]:
    """Return the parts that a client can show while they arrive."""
    return (part for part in choice.parts if isinstance(part, Text | Reasoning) and part.text)


def _at(reply: Reply, event: int) -> str:
    for choice in reply.choices:
        for part in choice.parts:
            numbers = [number for _, number in part.events] if isinstance(part, Text | Reasoning | ToolCall) else []
            numbers += [piece.event for piece in part.pieces] if isinstance(part, ToolCall) else []
            if event in numbers and isinstance(part, ToolCall):
                return f"a call of {part.name}" if part.name else "a call"
            if event in numbers:
                return "text" if isinstance(part, Text) else "reasoning"
        if choice.finish_event == event:
            return "the finish reason"
    said = [part.events for part in reply.parts if isinstance(part, Text | Reasoning | ToolCall)]
    first = min((first for events in said for _, first in events), default=None)
    return "the head of the message" if first is None or event < first else "an event without text"


def _count(usage: Mapping[str, Json] | None, names: tuple[str, ...]) -> int | None:
    """Return a count of a usage object, at any depth."""
    for name, value in (usage or {}).items():
        if name in names and isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, dict) and (found := _count(value, names)) is not None:
            return found
    return None
