"""The view of a conversation that the terminal, the HTML page and mitmproxy's content view render.

Theory of operation. Each side of an exchange, request and response, is a list of turns: one turn per part of a message, in
order, except that a tool's result follows its call. A turn keeps the JSON Pointer of its part. Where a side was rewritten,
the turns received and the turns sent on are aligned, and each row has a sign:

    =  received and sent on unchanged      -  received, then replaced or removed      +  sent on instead

A finding belongs to the turn at its pointer, else to the nearest turn around or inside that place (`nearest`). Findings
that belong to no turn are returned apart. Renderers decide only about lengths, colours and columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias, assert_never

from wirelint.capture.offline import Checked
from wirelint.capture.record import Record
from wirelint.capture.replay import mended, replay
from wirelint.fix import AppliedFix
from wirelint.model import (
    Exchange,
    HostedCall,
    HostedResult,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Rpc,
    Side,
    Text,
    ToolCall,
    ToolResult,
)
from wirelint.rule import Finding
from wirelint.text.escaping import counted
from wirelint.view.findings import worst_first

Look = Literal["text", "thinking", "call", "result", "failed", "remark"]
"""The kind of a turn for styling. `failed`: a tool result that is an error."""
Sign = Literal["=", "-", "+"]
Later: TypeAlias = "Callable[[str], str | None]"
"""The result of a call, by call id, if a later request carried it."""

SIDES: tuple[Side, Side] = ("request", "response")
LATEST = 12
"""Messages at the end of a history that are shown; of earlier ones only instructions and those a finding points at."""
FINISH = "finish reason:"


@dataclass(frozen=True, slots=True)
class Turn:
    """Displayed part of a message: label, text, tail (an id). `text` is complete; renderers shorten it.

    `message` is the pointer of the message or the number of the choice. `is_paired`: a result below its call.
    """

    speaker: str
    look: Look
    text: str
    side: Side
    pointer: str = ""
    label: str = ""
    tail: str = ""
    message: str = ""
    is_paired: bool = False

    @property
    def key(self) -> str:
        """Text by which turns are compared. All remarks without a place are equal."""
        return "\0".join((self.look, self.label, self.text, self.tail)) if self.pointer else ""


class Row(NamedTuple):
    """A turn, whether it was sent on, and the findings that belong to it, errors first."""

    sign: Sign
    turn: Turn
    findings: Sequence[Finding] = ()


class ConversationView:
    """The turns of one exchange. `full`: all messages of the history. `later`: results that later requests carried."""

    def __init__(self, checked: Checked, exchange: Exchange, *, full: bool = False, later: Later | None = None) -> None:
        self._checked, self._exchange, self._full, self._later = checked, exchange, full, later

    def side(self, side: Side) -> tuple[list[Row], list[Finding]]:
        """Return the rows of a side, and its findings that belong to no row."""
        findings = [finding for finding in self._checked.findings if finding.side == side]
        turns = self._turns(self._exchange, side)
        places = [turn.pointer for turn in turns]
        placed: dict[int | None, list[Finding]] = {}
        for finding in findings:
            placed.setdefault(nearest(finding.pointer, places), []).append(finding)
        record = self._checked.record
        changed = (record.forwarded if side == "request" else record.delivered) is not None
        sent = self._turns(self._sent, side) if changed and self._sent is not None else None
        rows = []
        for sign, number in aligned([turn.key for turn in turns], sent and [turn.key for turn in sent]):
            if number is None:
                rows.append(Row(sign, Turn("", "remark", "(left out)", side)))
            elif sign == "+" and sent is not None:
                rows.append(Row(sign, sent[number]))
            else:
                rows.append(Row(sign, turns[number], worst_first(placed.get(number, ()))))
        return rows, placed.get(None, [])

    @cached_property
    def _sent(self) -> Exchange | None:
        return sent_on(self._checked.record)

    def _turns(self, exchange: Exchange, side: Side) -> list[Turn]:
        return list(self._request(exchange) if side == "request" else response_turns(exchange, self._later))

    def _request(self, exchange: Exchange) -> Iterator[Turn]:
        request = exchange.request
        if request is None:
            return
        if request.tools:
            yield Turn("tools", "remark", ", ".join(tool.name for tool in request.tools), "request", "/tools")
        items: list[Finding | AppliedFix] = [*self._checked.findings, *self._checked.record.fixes]
        pointed = [item.pointer for item in items if item.side == "request"]
        messages = request.messages
        first = 0 if self._full else max(len(messages) - LATEST, 0)
        kept = [
            message
            for message in messages[:first]
            if message.role == "system" or any(is_within(pointer, message.pointer) for pointer in pointed)
        ]
        speaker = "client" if exchange.api == "mcp" else None
        if hidden := first - len(kept):
            yield from message_turns(kept, speaker)
            yield Turn("", "remark", f"… {counted(hidden, 'earlier message')}", "request")
            kept = []
        yield from message_turns([*kept, *messages[first:]], speaker)


def message_turns(messages: Sequence[Message], speaker: str | None = None) -> Iterator[Turn]:
    """Yield the turns of messages, each result below its call; results without a call keep their place."""
    waiting: dict[str, list[ToolCall]] = {}
    results: dict[str, ToolResult] = {}  # by the pointer of their call: the first result after the call that has its id
    for message in messages:
        for call in message.calls:
            waiting.setdefault(call.id or "", []).append(call)
        for result in message.results:
            if result.call_id and (calls := waiting.get(result.call_id)):
                results[calls.pop(0).pointer] = result
    taken = {result.pointer for result in results.values()}
    for message in messages:
        for part in message.parts:
            if part.pointer in taken and isinstance(part, ToolResult):
                continue
            name = speaker or ("tool" if isinstance(part, ToolResult) else message.role)
            yield turn_of(part, name, "request", message.pointer)
            if isinstance(part, ToolCall) and (answer := results.get(part.pointer)) is not None:
                yield replace(turn_of(answer, "tool", "request", message.pointer), is_paired=True)
        if not message.parts:
            yield Turn(message.role, "remark", "(empty)", "request", message.pointer, message=message.pointer)


def response_turns(exchange: Exchange, later: Later | None = None) -> Iterator[Turn]:
    """Yield the turns of a reply. `later` returns results that later requests carried."""
    choices = exchange.reply.choices if exchange.reply is not None else ()
    for choice in choices:
        speaker = "server" if exchange.api == "mcp" else "reply"
        speaker = f"{speaker} {choice.index}" if len(choices) > 1 else speaker
        for part in choice.parts:
            yield turn_of(part, speaker, "response", speaker)
            if isinstance(part, ToolCall) and part.id and later is not None and (text := later(part.id)) is not None:
                result = turn_of(ToolResult(part.id, text, ""), "tool", "response", speaker)
                yield replace(result, tail="in a later request", is_paired=True)
        if choice.finish_reason:
            pointer = choice.finish_pointer
            yield Turn(speaker, "remark", choice.finish_reason, "response", pointer, FINISH, message=speaker)


def context_turns(exchange: Exchange) -> Iterator[Turn]:
    """Yield the last parts of the request, which the reply answers; a result with its call before it."""
    request = exchange.request
    if request is None or not request.messages:
        return
    calls = {call.id: call for message in request.messages for call in message.calls}
    for part in request.messages[-1].parts[-3:]:
        call = calls.get(part.call_id) if isinstance(part, ToolResult) else None
        if call is not None:
            yield turn_of(call, "context", "request")
        yield replace(turn_of(part, "context", "request"), is_paired=call is not None)


def turn_of(part: Part, speaker: str, side: Side, message: str = "") -> Turn:
    def turn(look: Look, text: str, label: str = "", tail: str = "") -> Turn:
        return Turn(speaker, look, text, side, part.pointer, label, tail, message)

    match part:
        case Text(text):
            return turn("text", text)
        case Refusal(text):
            return turn("text", text, "refusal:")
        case Reasoning(text, _, opaque):
            return turn("thinking", "", "(encrypted thinking)") if opaque else turn("thinking", text)
        case ToolCall(id_, name, arguments):
            return turn("call", arguments.text, f"→ {name or '(no name)'}", id_ or "(no id)")
        case ToolResult(call_id, text, _, _, True):
            return turn("failed", text, "← error:", call_id or "(no id)")
        case ToolResult(call_id, text):
            return turn("result", text, "←", call_id or "(no id)")
        case HostedCall(_, name):
            return turn("call", "(run by the provider)", f"⇢ {name or 'tool'}")
        case HostedResult(_, _, kind):
            return turn("result", "(from the provider)", f"⇠ {kind or 'result'}")
        case Rpc(form, id_, method, value):
            looks: dict[str, Look] = {"error": "failed", "result": "result"}
            label = f"{'→' if form in ('request', 'notification') else '←'} {method or form}"
            text = "" if value is None else json.dumps(value, ensure_ascii=False)
            return turn(looks.get(form, "call"), text, label, id_ or "")
        case Opaque(kind):
            return turn("remark", f"({kind or 'unknown part'})")
        case _:
            assert_never(part)


def sent_on(record: Record) -> Exchange | None:
    """Return the exchange as both ends had it after fixes; None if nothing was rewritten."""
    return replay(mended(record)) if record.forwarded is not None or record.delivered is not None else None


def aligned(before: Sequence[Hashable], after: Sequence[Hashable] | None) -> Iterator[tuple[Sign, int | None]]:
    """Signs with positions, in reading order: `=` and `-` in `before`, `+` in `after`.

    None after `+`: the items before it were removed and nothing replaces them. `after` None: nothing was rewritten.
    """
    if after is None:
        after = before
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, end, sent_start, sent_end in matcher.get_opcodes():
        for number in range(start, end):
            yield "=" if kind == "equal" else "-", number
        if kind != "equal":
            yield from (("+", number) for number in range(sent_start, sent_end))
        if kind == "delete":
            yield "+", None


def is_within(pointer: str | None, place: str) -> bool:
    """Return True if a pointer is a place or leads into it."""
    return pointer is not None and (pointer == place or pointer.startswith(f"{place}/"))


def nearest(pointer: str | None, places: Iterable[str]) -> int | None:
    """Return the position of the place that a pointer belongs to; None if there is none.

    The place itself is nearest, then the innermost place around the pointer, then the outermost inside it.
    """
    best, found = (0, 0), None
    for number, place in enumerate(places if pointer else ()):
        rank = (0, 0)
        if place and is_within(pointer, place):
            rank = (2, len(place))
        elif place and pointer and is_within(place, pointer):
            rank = (1, -len(place))
        if rank > best:
            best, found = rank, number
    return found
