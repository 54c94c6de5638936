"""The results that a request hands to the model for the first time, beside what servers of tools really answered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wirelint.claims.evidence import outcome
from wirelint.model import Arguments, Message, Request, Tool, ToolCall, ToolResult
from wirelint.state.mcp_ledger import Passed, ToolWire, digest_of

if TYPE_CHECKING:
    from wirelint.state.ledger import Ledger
import html
from typing import Literal

import orjson

from wirelint.model import Json

# What has become of a tool's result on its way into a history: the same in another dress, shortened, or another.
#
# Theory of operation. Clients wrap results, print them as JSON or out of it, join blocks, add notes. What is left
# through all
# of that are the words and numbers. A result whose words are all there is the same, whatever stands around them. Where some
# are missing and nothing strange has come in, it was shortened. Where strange words stand for missing ones, it was altered.

Retelling = Literal["same", "marked", "shortened", "lost", "altered"]
"""`marked`: something was left out, and the text says so. `lost`: nothing of it is left."""

_WORD = re.compile(r"\w+")
_ESCAPED = re.compile(r"\\+(?:[nrt\"'/\\]|u([0-9a-fA-F]{4}))")
_MARKED = re.compile(
    r"…|\.\.\.|\[\+?\d+ |\*{3}|█|<persisted|"
    r"\b(?:truncat\w*|omitt\w*|elid\w*|shorten\w*|clipp\w*|cut off|trimm\w*|too (?:long|large|big)|exceed\w*|limit\w*|"
    r"(?:more|remaining) (?:lines?|char\w*|bytes|tokens?|items?|results?|rows?)|"
    r"saved to|stored (?:in|at|as)|clear\w*|compact\w*|"
    r"summar\w+|redact\w*|mask\w*|filter\w*|hidden|removed|unsupported|not shown|"
    r"gekürzt|tronqué|truncado|troncato)\b|截断|省略|已清除",
    re.IGNORECASE,
)
_DRESS = frozenset({
    "content", "type", "text", "result", "results", "output", "tool", "is", "error", "iserror", "is_error", "false", "true",
    "status", "success", "ok", "data", "structuredcontent", "_meta", "meta", "annotations", "null", "source", "response",
    "function", "name", "returned", "the", "of", "call", "from", "server", "mcp", "json", "value", "message",
})  # fmt: skip
_MOST = 200_000
"""Characters of either text that are compared."""


def retelling(told: str, truth: str) -> Retelling:
    """How a text in a history retells what a tool gave."""
    told, truth = told[:_MOST], truth[:_MOST]
    if told.split() == truth.split():
        return "same"
    read = set(_words(told))
    said = read | set(_bare(told))
    # A number in JSON may be spelled in several ways: as it stands, and as it is read.
    given, spelled = set(_words(truth)), set(_bare(truth))
    if given <= said or spelled <= said:
        return "same"
    if _MARKED.search(told) and not _MARKED.search(truth):
        return "marked"
    if not said - _DRESS:
        return "lost"
    strange = read - given - spelled - _DRESS
    if len(strange) == 1 and told.rstrip().casefold().endswith(last := next(iter(strange))):
        return "shortened" if any(word.startswith(last) for word in given) else "altered"  # cut within a word
    return "altered" if strange else "shortened"


def _words(text: str, depth: int = 0) -> Iterator[str]:
    """Words and numbers, case aside. JSON gives those of its members, also where it stands in a string of JSON."""
    stripped = text.strip()
    if depth < 4 and stripped[:1] in ("{", "[", '"'):
        try:
            yield from _of(orjson.loads(stripped), depth)
        except orjson.JSONDecodeError:
            pass
        else:
            return
    yield from _bare(text)


def _bare(text: str) -> Iterator[str]:
    """The words of a text as they stand, whatever it is; escapes of JSON and HTML undone."""
    plain = _ESCAPED.sub(_unescaped, html.unescape(text) if "&" in text else text)
    for word in _WORD.findall(plain):
        yield "null" if word == "None" else word.casefold()


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else " "


def _of(value: Json, depth: int) -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                yield from _words(name, 4)
                yield from _of(inner, depth)
        case list():
            for inner in value:
                yield from _of(inner, depth)
        case str():
            yield from _words(value, depth + 1)
        case float() if value.is_integer():
            yield str(int(value))
        case None:
            yield "null"
        case _:
            yield from _words(str(value), 4)


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
        """Return True if the result says that the call failed, or was not carried out."""
        if outcome(self.result).error or self._fails:
            return True
        return len(self.result.text) <= _LONGEST_REFUSAL and _NOT_RUN.search(self.result.text) is not None

    @property
    def _fails(self) -> bool:
        """Return True if the result is a note, in whatever words, that something went wrong."""
        text = self.result.text
        return len(text) <= _LONGEST_NOTE and _FAILS.search(_NO_FAULT.sub(" ", text)) is not None

    def takes_up(self, truth: str) -> bool:
        """Return True if a result speaks of what the server answered: then its words are of that, not of the call."""
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
