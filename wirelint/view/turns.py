"""A side of an exchange as turns, for people: each call beside its result, long text shortened, thinking folded.

Everything keeps the pointer of its place, so that findings can stand where they belong.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from wirelint.model import (
    Exchange,
    HostedCall,
    HostedResult,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Request,
    Rpc,
    Side,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)

Look = Literal["text", "thinking", "call", "result", "failed", "remark"]
"""What a turn is to the eye. `failed`: a result that is an error."""

_LATEST = 12
"""Messages of a history that are shown; of those before it only what a finding points at."""
_LIMITS = {"system": 300, "user": 2000, "assistant": 2000, "tool": 600, "reply": 20_000, "server": 20_000}
_ARGUMENTS, _RESULT, _THINKING = 2000, 600, 160
_CONTEXT = 300

Later = Callable[[str], str | None]
"""What a call gave, by its id, as far as that passed later on."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A piece of the conversation. `text` is as it was on the wire, shortened; `label` stands before it, `tail` behind.

    `inner`: it belongs to the turn above, as a result does to its call. `full` is all of the text, for comparisons.
    `pointers` are the places of what was folded into it.
    """

    speaker: str
    look: Look
    text: str
    side: Side
    pointer: str = ""
    label: str = ""
    tail: str = ""
    inner: bool = False
    full: str = ""

    @property
    def key(self) -> str:
        """What makes it another turn than one in the same place."""
        return f"{self.look}\0{self.label}\0{self.full or self.text}" if self.pointer else ""


def asked(exchange: Exchange, pointed: Container[str] = ()) -> list[Turn]:
    """What the client said: its tools, and the history, the latest messages of it. `pointed`: messages that are shown."""
    request = exchange.request
    if request is None:
        return []
    turns = list(_tools(request.tools))
    messages = request.messages
    first = max(len(messages) - _LATEST, 0)
    beginning = [message for message in messages[:first] if message.role == "system" or message.pointer in pointed]
    if first > len(beginning):
        turns += _paired(beginning)
        folded = first - len(beginning)
        many = f"{folded} earlier messages" if folded > 1 else "1 earlier message"
        turns.append(Turn("", "remark", f"… {many}", "request"))
        beginning = []
    turns += _paired([*beginning, *messages[first:]])
    return [replace(turn, speaker="client") for turn in turns] if exchange.api == "mcp" else turns


def answered(exchange: Exchange, later: Later | None = None) -> list[Turn]:
    """What the upstream said. `later` knows results that came with requests after it."""
    reply = exchange.reply
    if reply is None:
        return []
    turns: list[Turn] = []
    for choice in reply.choices:
        speaker = "server" if exchange.api == "mcp" else "reply"
        speaker = f"{speaker} {choice.index}" if len(reply.choices) > 1 else speaker
        for part in choice.parts:
            turns.append(_turn(part, speaker, "response"))
            if isinstance(part, ToolCall) and part.id and later is not None and (text := later(part.id)) is not None:
                turns.append(_result(ToolResult(part.id, text, ""), "response", inner=True, tail="came back later"))
        if choice.finish_reason:
            finish = f"finish reason: {choice.finish_reason}"
            turns.append(Turn(speaker, "remark", finish, "response", choice.finish_pointer))
    return turns


def context(exchange: Exchange) -> list[Turn]:
    """What the reply answers, in short: the last thing that was said before it."""
    request = exchange.request
    if request is None or not request.messages:
        return []
    calls = {call.id: call for message in request.messages for call in message.calls}
    made: list[Turn] = []
    for part in request.messages[-1].parts[-3:]:
        if isinstance(part, ToolResult) and (call := calls.get(part.call_id)) is not None:
            made.append(_turn(call, "asked", "request"))
            made.append(_result(part, "request", inner=True))
        else:
            made.append(_turn(part, "asked", "request"))
    return [replace(turn, text=_cut(turn.full or turn.text, _CONTEXT), pointer="") for turn in made]


def _tools(tools: Sequence[Tool]) -> Iterator[Turn]:
    if tools:
        names = ", ".join(tool.name for tool in tools)
        yield Turn("tools", "remark", _cut(names, 600), "request", "/tools", full=names)


def _paired(messages: Iterable[Message]) -> list[Turn]:
    """Messages with each result below its call; results without one stay where they stood."""
    messages = list(messages)
    results: dict[str, deque[ToolResult]] = {}
    for message in messages:
        for result in message.results:
            if result.call_id:
                results.setdefault(result.call_id, deque()).append(result)
    taken: set[str] = set()
    turns: list[Turn] = []
    for message in messages:
        if not message.parts:
            turns.append(Turn(message.role, "remark", "(empty)", "request", message.pointer))
        for part in message.parts:
            if isinstance(part, ToolResult) and part.pointer in taken:
                continue
            speaker = "tool" if isinstance(part, ToolResult) else message.role
            turns.append(_turn(part, speaker, "request"))
            if isinstance(part, ToolCall) and (waiting := results.get(part.id or "")):
                result = waiting.popleft()
                taken.add(result.pointer)
                turns.append(_result(result, "request", inner=True))
    return turns


def _turn(part: Part, speaker: str, side: Side) -> Turn:
    limit = _LIMITS.get(speaker.partition(" ")[0], 2000)
    match part:
        case Text(text):
            return Turn(speaker, "text", _cut(text, limit), side, part.pointer, full=text)
        case Refusal(text):
            return Turn(speaker, "text", _cut(text, limit), side, part.pointer, "refusal:", full=text)
        case Reasoning(text):
            return _thinking(part, text, speaker, side)
        case ToolCall(id_, name, arguments):
            text = arguments.text
            label = f"→ {name or '(no name)'}"
            return Turn(speaker, "call", _cut(text, _ARGUMENTS), side, part.pointer, label, id_ or "(no id)", full=text)
        case ToolResult():
            return replace(_result(part, side), speaker=speaker)
        case HostedCall(_, name):
            return Turn(speaker, "call", "run by the provider", side, part.pointer, f"⇢ {name or 'tool'}")
        case HostedResult(_, _, kind):
            return Turn(speaker, "result", "from the provider", side, part.pointer, f"⇠ {kind or 'result'}")
        case Rpc(form, id_, method, value):
            said = "" if value is None else json.dumps(value, ensure_ascii=False)
            label = f"{'→' if form in ('request', 'notification') else '←'} {method or form}"
            look: Look = {"error": "failed", "result": "result"}.get(form, "call")  # type: ignore[assignment]
            return Turn(speaker, look, _cut(said, _ARGUMENTS), side, part.pointer, label, id_ or "", full=said)
        case Opaque(kind):
            return Turn(speaker, "remark", f"({kind or 'a part that is no text'})", side, part.pointer)
        case _:
            assert_never(part)


def _thinking(part: Reasoning, text: str, speaker: str, side: Side) -> Turn:
    if part.opaque:
        return Turn(speaker, "thinking", "", side, part.pointer, "thinking, encrypted by the provider")
    label = f"thinking, {len(text):,} characters:" if len(text) > _THINKING else "thinking:"
    shown = " ".join(text[: 2 * _THINKING].split())
    folded = f"{shown[:_THINKING]}…" if len(text) > _THINKING else shown
    return Turn(speaker, "thinking", folded, side, part.pointer, label, full=text)


def _result(part: ToolResult, side: Side, *, inner: bool = False, tail: str = "") -> Turn:
    failed = part.is_error is True
    shown = tail if inner else tail or part.call_id or "(no id)"
    return Turn(
        *("tool", "failed" if failed else "result", _cut(part.text, _RESULT), side, part.pointer),
        *("← error" if failed else "←", shown, inner, part.text),
    )


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… (+{len(text) - limit:,} characters)"


def pointed_messages(request: Request | None, pointers: Iterable[str]) -> set[str]:
    """The messages that these pointers lead into."""
    if request is None:
        return set()
    places = tuple(pointers)
    return {
        message.pointer
        for message in request.messages
        if any(place == message.pointer or place.startswith(f"{message.pointer}/") for place in places)
    }
