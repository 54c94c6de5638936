"""The results that a request hands to the model for the first time, beside what servers of tools really answered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirelint.claims.evidence import outcome
from wirelint.history.retelling import retelling
from wirelint.model import Arguments, Message, Request, Tool, ToolCall, ToolResult
from wirelint.state.mcp_ledger import Passed, ToolWire, digest_of

if TYPE_CHECKING:
    from wirelint.state.ledger import Ledger

_LONGEST_REFUSAL = 800
_LONGEST_NOTE = 160
_FEW = 4
_WEIGHTY = re.compile(r"\w{3,}")
_FAILS = re.compile(
    r"\b(?:fail(?:ed|s|ure)?|errors?|went wrong|unable to|could ?n['’]t|could not|cannot|crash(?:ed|es)?|exception|offline|"
    r"unreachable|fehler|fehlgeschlagen|erreur|échoué|error|falló|erro|errore)\b|错误|失败|エラー|失敗",
    re.IGNORECASE,
)
_NO_FAULT = re.compile(
    r"\b(?:no|0|zero|without|any|keine?|aucune?|sin|sem|senza) (?:\w+ )?(?:errors?|fail\w+|fehler|erreurs?|"
    r"errore\w*|erro\w*)\b|"
    r"\b(?:errors?|failed|failures?)\W{1,3}(?:0|null|none|false)\b",
    re.IGNORECASE,
)
_NOT_RUN = re.compile(
    r"\b(?:reject|declin|den(?:y|ied)|cancel|abort|interrupt|skip|refus|disallow|block|permi|approv|forbid|timed? ?out|"
    r"expir|clear|compact|placeholder|dry.?run|cach|pending|queued|background|progress|invalid|validat|unavailab|"
    r"disconnect|unknown tool|no such|not (?:found|run|executed|connected|available|allowed)|"
    r"doesn['’]t (?:exist|want)|did(?: not|n['’]t) run|"
    r"abgelehnt|abgebrochen|refusé|annulé|rechazad|cancelad|annullat)|拒绝|取消|拒否|キャンセル",
    re.IGNORECASE,
)
"""Ways in which clients say that a call was not carried out."""


@dataclass(frozen=True, slots=True)
class Back:
    """A result with its call. `declared` is the tool as the request declares it."""

    call: ToolCall
    result: ToolResult
    declared: Tool | None

    @property
    def name(self) -> str:
        return self.call.name or ""

    def passed(self, wire: ToolWire) -> tuple[Passed, ...]:
        """The calls of this tool with these arguments that reached a server."""
        return wire.passed(self.name, self.declared, digest_of(self.call.arguments))

    @property
    def admits(self) -> bool:
        """Whether the result says that the call failed, or was not carried out."""
        if outcome(self.result).error or self._fails:
            return True
        return len(self.result.text) <= _LONGEST_REFUSAL and _NOT_RUN.search(self.result.text) is not None

    @property
    def _fails(self) -> bool:
        """Whether the result is a note, in whatever words, that something went wrong."""
        text = self.result.text
        return len(text) <= _LONGEST_NOTE and _FAILS.search(_NO_FAULT.sub(" ", text)) is not None

    def takes_up(self, truth: str) -> bool:
        """Whether a result speaks of what the server answered: then its words are of that, not of the call."""
        told, given = set(_WEIGHTY.findall(self.result.text.casefold())), set(_WEIGHTY.findall(truth.casefold()))
        return not outcome(self.result).error and len(told) >= _FEW and 2 * len(told & given) >= len(told)


def handed_back(request: Request, ledger: Ledger, conversation: str | None = None) -> Iterator[Back]:
    """The results behind the last message of the assistant; older ones were judged when they came.

    Where a request goes on from a reply that the provider keeps, the call is the one that passed on this wire.
    """
    fresh: list[ToolResult] = []
    messages = request.messages
    position = len(messages)
    while position and messages[position - 1].role != "assistant":
        position -= 1
        fresh[:0] = messages[position].results
    calls = _calls_before(messages, position) if fresh else []
    for result in fresh:
        call = _call_of(result, calls) or _passed_before(result, ledger, conversation)
        if call is not None and call.name:
            yield Back(call, result, request.tool(call.name))


def _calls_before(messages: tuple[Message, ...], position: int) -> list[ToolCall]:
    """The calls of the assistant's last messages, which some APIs split in several."""
    calls: list[ToolCall] = []
    while position and messages[position - 1].role == "assistant":
        position -= 1
        calls[:0] = messages[position].calls
    return calls


def _passed_before(result: ToolResult, ledger: Ledger, conversation: str | None) -> ToolCall | None:
    issued = ledger.named(result.call_id, conversation) if result.call_id else None
    return ToolCall(issued.id, issued.name, Arguments(issued.arguments), "") if issued is not None else None


def _call_of(result: ToolResult, calls: list[ToolCall]) -> ToolCall | None:
    if result.call_id is not None:
        return next((call for call in calls if call.id == result.call_id), None)
    named = [call for call in calls if call.name == result.name]
    return named[0] if len(named) == 1 else None


def never_ran(tool: Tool, wire: ToolWire) -> str:
    """What to say of a declared tool that a server on this wire serves, and of which no call has ever reached it."""
    serving = wire.serving(tool.name, tool) if wire else ()
    if not serving or not all(wire.is_read(served) for served in serving) or wire.passed(tool.name, tool):
        return ""
    return f", and no call of it ever reached the MCP server at {serving[0].server}"


def confirmed(request: Request, ledger: Ledger) -> frozenset[str]:
    """The pointers of results that are what a server on this wire has answered to their calls."""
    wire = ledger.tools
    if not wire:
        return frozenset()
    return frozenset(
        back.result.pointer
        for back in handed_back(request, ledger)
        if any(one.answered and retelling(back.result.text, one.text) == "same" for one in back.passed(wire))
    )
