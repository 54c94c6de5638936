"""The order of a request's messages: orders that APIs and prompt templates forbid, and the words of their refusals.

`pairing` finds the call of a result; this module compares their places. Results without a call are not its subject.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from wirelint import lexicon
from wirelint.history.pairing import pair
from wirelint.jsonvalues import strings
from wirelint.model import Json, Message, Request, Text, ToolResult

Kind = Literal[
    "assistant-first",  # no user message comes before it
    "assistant-last",  # there is no user message to answer
    "same-role",  # two messages in a row of the user, or of the assistant
    "system-late",  # instructions amid the conversation, or among the messages of an API with a field for them
    "user-after-tool",  # a user message directly after a tool result
    "result-before-call",
    "result-apart",  # other messages between a call and its result
    "result-not-first",  # text before the results of one message
    "call-turn",  # Gemini: a call that answers neither the user nor a result
    "item-apart",  # Responses: an item without its companion
]

_PHRASES = lexicon.Phrases("role_order")
CONTRACTS: dict[str, frozenset[Kind]] = {api: frozenset(kinds) for api, kinds in _PHRASES.table("contracts").items()}
"""Orders that each API forbids and refuses."""
_REFUSALS: tuple[tuple[re.Pattern[str], tuple[Kind, ...]], ...] = tuple(
    (re.compile(row["words"], re.IGNORECASE), tuple(row["kinds"])) for row in _PHRASES.table("refusals")
)
_TURNS: frozenset[Kind] = frozenset(
    {"assistant-first", "assistant-last", "same-role", "system-late", "user-after-tool"}
)
_RESULTS: frozenset[Kind] = frozenset({"result-before-call", "result-apart"})
_LOOKED_AT = 32
_ITEM = re.compile(r"[Ii]tem '(\w{1,128})'")


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A message or part in a forbidden place. `what` completes "this message …"."""

    kind: Kind
    pointer: str
    what: str


def refused(error: Json) -> frozenset[Kind]:
    """Return the kinds of order that an error refuses; none if it is about other things."""
    words = words_of(error)
    return frozenset(kind for pattern, kinds in _REFUSALS if words and pattern.search(words) for kind in kinds)


def words_of(error: Json) -> str:
    """Return all texts in an error."""
    return " ".join(text[:2000] for _, text in strings(error) if text)


def misplaced(request: Request, kinds: frozenset[Kind], error: Json = None) -> Iterator[Misplaced]:
    """Yield the first misplaced message or part of each of these kinds."""
    found: dict[Kind, Misplaced] = {}
    for find in (_turns, _parts, _results):
        for one in find(request, kinds):
            if one.kind in kinds:
                found.setdefault(one.kind, one)
    if not found.keys().isdisjoint({"same-role", "system-late", "assistant-first"}):
        found.pop("user-after-tool", None)  # few APIs forbid it
    yield from found.values()
    if "item-apart" in kinds:
        yield from _items(request, words_of(error))


def _turns(request: Request, kinds: frozenset[Kind]) -> Iterator[Misplaced]:
    if kinds.isdisjoint(_TURNS):
        return
    before: Message | None = None
    begun = False
    for message in request.messages:
        role = message.role
        if role == "system":
            if begun or (request.api == "anthropic.messages" and message.pointer != "/system"):
                yield Misplaced("system-late", message.pointer, "is a system message in the midst of the conversation")
        elif role == "assistant" and not begun and not request.is_partial:
            yield Misplaced("assistant-first", message.pointer, "is the first, and the assistant's")
        elif before is not None and role == before.role and role != "tool":
            yield Misplaced("same-role", message.pointer, f"is the {role}'s, as the one before it")
        elif before is not None and before.role == "tool" and role == "user":
            yield Misplaced("user-after-tool", message.pointer, "is the user's, right after a tool result")
        before, begun = message, begun or role != "system"
    if before is not None and before.role == "assistant" and not _is_prefix(request):
        yield Misplaced("assistant-last", before.pointer, "is the last, and the assistant's")


def _is_prefix(request: Request) -> bool:
    """Return True if the last message is a prefix for the assistant to continue."""
    messages = request.body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    return isinstance(last, dict) and (last.get("prefix") is True or last.get("partial") is True)


def _parts(request: Request, kinds: frozenset[Kind]) -> Iterator[Misplaced]:
    """Yield misplaced parts of single messages, compared with the message before."""
    gemini = request.api == "google.generate_content"
    if not gemini and "result-not-first" not in kinds:
        return
    before: Message | None = None
    for message in request.messages:
        if message.role == "system":
            continue
        if gemini:
            begins = before is None and not request.is_partial
            if message.calls and (begins or (before is not None and before.role == "assistant")):
                after = "begins the conversation" if begins else "follows a turn of the model"
                yield Misplaced("call-turn", message.pointer, f"calls `{message.calls[0].name}` and {after}")
        elif message.results and isinstance(message.parts[0], Text) and before is not None and before.calls:
            pointer = message.parts[0].pointer
            yield Misplaced("result-not-first", pointer, "has words before the tool results that it brings")
        before = message


def _results(request: Request, kinds: frozenset[Kind]) -> Iterator[Misplaced]:
    if kinds.isdisjoint(_RESULTS) or not request.has_history:
        return
    if not any(message.results for message in request.messages):
        return
    leads: list[int] = []
    lead = -1
    for position, message in enumerate(request.messages):
        leads.append(lead)  # the last message before it without results
        lead = lead if message.results else position
    for each in pair(request).pairs:
        answer = each.answer
        if answer is None:
            continue
        result, message = answer.result, request.messages[answer.position]
        if answer.position < each.position:
            yield _misplaced("result-before-call", result, "which comes before its call")
        elif leads[answer.position] != each.position:
            between = request.messages[leads[answer.position]].role
            near = request.messages[each.position + 1 : min(answer.position, each.position + 1 + _LOOKED_AT)]
            if message.role != "tool" and any(one.role == "assistant" for one in near):
                continue  # `missing-result` reports a result in a user message after the assistant's next message
            yield _misplaced("result-apart", result, f"and the {between}'s message is between its call and it")


def _misplaced(kind: Kind, result: ToolResult, what: str) -> Misplaced:
    return Misplaced(kind, result.pointer, f"is the result `{result.call_id or result.name or ''}`, {what}")


def _items(request: Request, words: str) -> Iterator[Misplaced]:
    """Yield the item that an error of Responses names: reasoning without its call, or a call without its reasoning."""
    named = _ITEM.search(words)
    items = request.body.get("input")
    if named is None or not isinstance(items, list):
        return
    for place, item in enumerate(items):
        if isinstance(item, dict) and item.get("id") == named[1]:
            yield Misplaced("item-apart", f"/input/{place}", "lacks the item that it belongs to")
            return
