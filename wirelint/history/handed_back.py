"""Results that a request returns to the model for the first time, compared with the answers of MCP servers."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from wirelint import lexicon
from wirelint.claims.evidence import outcome
from wirelint.jsonvalues import decode_json
from wirelint.model import Arguments, Json, Request, Tool, ToolCall, ToolResult
from wirelint.state.mcp_ledger import McpLedger, Passed, digest_of

if TYPE_CHECKING:
    from wirelint.state.ledger import Ledger

_PHRASES = lexicon.Phrases("handed_back")

# Changes of a tool's result on its way into a history: another format, shortened, or altered.
#
# Theory of operation. Clients wrap results, print them as JSON or extract them from it, join blocks, add notes. Words and
# numbers survive all of that. A result with all words of the answer is the same. A result that lacks words and has no
# new ones is shortened. A result with new words instead of the missing ones is altered.

Retelling = Literal["same", "marked", "shortened", "lost", "altered"]
"""`marked`: a part is missing, and the text mentions that. `lost`: no word of the answer is left."""

_WORD = re.compile(r"\w+")
_ESCAPED = re.compile(r"\\+(?:[nrt\"'/\\]|u([0-9a-fA-F]{4}))")
_DRESS = frozenset(_PHRASES.words("dress"))
_MOST = 200_000
"""Most characters of either text that are compared."""


def compare_result(told: str, truth: str) -> Retelling:
    """Compare a result in a history (`told`) with the server's answer (`truth`)."""
    told, truth = told[:_MOST], truth[:_MOST]
    if told.split() == truth.split():
        return "same"
    read = set(_words(told))
    said = read | set(_bare(told))
    # A number in JSON has several spellings: the written one, and the decoded one.
    given, spelled = set(_words(truth)), set(_bare(truth))
    if given <= said or spelled <= said:
        return "same"
    if _PHRASES["marked"].search(told) and not _PHRASES["marked"].search(truth):
        return "marked"
    if not said - _DRESS:
        return "lost"
    strange = read - given - spelled - _DRESS
    if len(strange) == 1 and told.rstrip().casefold().endswith(last := next(iter(strange))):
        return "shortened" if any(word.startswith(last) for word in given) else "altered"  # cut within a word
    return "altered" if strange else "shortened"


def _words(text: str, depth: int = 0) -> Iterator[str]:
    """Yield words and numbers without case. JSON yields those of its members, also inside of a string."""
    stripped = text.strip()
    value = decode_json(stripped) if depth < 4 and stripped[:1] in ("{", "[", '"') else None
    yield from _bare(text) if value is None else _of(value, depth)


def _bare(text: str) -> Iterator[str]:
    """Yield the words of a text as written, with escapes of JSON and HTML undone."""
    text = html.unescape(text) if "&" in text else text
    plain = _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else " ", text)
    for word in _WORD.findall(plain):
        yield "null" if word == "None" else word.casefold()


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


@dataclass(frozen=True, slots=True)
class Back:
    """A result with its call. `declared` is the tool as the request declares it."""

    call: ToolCall
    result: ToolResult
    declared: Tool | None

    @property
    def name(self) -> str:
        return self.call.name or ""

    def passed(self, wire: McpLedger) -> tuple[Passed, ...]:
        """Return the calls of this tool with these arguments that reached a server."""
        return wire.passed(self.name, self.declared, digest_of(self.call.arguments))

    @property
    def admits(self) -> bool:
        """Return True if the result reports that the call failed or did not run."""
        text = self.result.text
        if outcome(self.result).error:
            return True
        # A short note about a failure, in any words.
        if len(text) <= _LONGEST_NOTE and _PHRASES["fails"].search(_PHRASES["no_fault"].sub(" ", text)) is not None:
            return True
        return len(text) <= _LONGEST_REFUSAL and _PHRASES["not_run"].search(text) is not None

    def takes_up(self, truth: str) -> bool:
        """Return True if a result repeats the words of the server's answer, so that it is about the answer."""
        told, given = set(_WEIGHTY.findall(self.result.text.casefold())), set(_WEIGHTY.findall(truth.casefold()))
        return not outcome(self.result).error and len(told) >= _FEW and 2 * len(told & given) >= len(told)


def handed_back(request: Request, ledger: Ledger, conversation: str | None = None) -> Iterator[Back]:
    """Yield the results after the assistant's last message. A call that the provider keeps comes from the ledger."""
    # Some APIs split the assistant's last turn into several messages.
    turns = [
        [*turn] for _, turn in itertools.groupby(request.messages, key=lambda message: message.role == "assistant")
    ]
    last = turns.pop() if turns and turns[-1][0].role != "assistant" else []
    calls = [call for message in (turns[-1] if turns else ()) for call in message.calls]
    for result in (result for message in last for result in message.results):
        if result.call_id is not None:
            found = [call for call in calls if call.id == result.call_id][:1]
        else:
            found = [call for call in calls if call.name == result.name]
        call = found[0] if len(found) == 1 else None
        if call is None and result.call_id and (issued := ledger.named(result.call_id, conversation)) is not None:
            call = ToolCall(issued.id, issued.name, Arguments(issued.arguments), "")
        if call is not None and call.name:
            yield Back(call, result, request.tool(call.name))


def never_ran(tool: Tool, wire: McpLedger) -> str:
    """Return a message if a server on this wire offers a declared tool and no call has reached it; else an empty one."""
    serving = wire.serving(tool.name, tool) if wire else ()
    if not serving or not all(wire.is_read(served) for served in serving) or wire.passed(tool.name, tool):
        return ""
    return f", and no call of it ever reached the MCP server at {serving[0].server}"


def confirmed(request: Request, ledger: Ledger) -> frozenset[str]:
    """Return the pointers of results that equal the answers of servers on this wire."""
    wire = ledger.tools
    if not wire:
        return frozenset()
    return frozenset(
        back.result.pointer
        for back in handed_back(request, ledger)
        if any(one.answered and compare_result(back.result.text, one.text) == "same" for one in back.passed(wire))
    )
