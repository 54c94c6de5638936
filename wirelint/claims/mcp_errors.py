"""Errors of servers of tools (MCP) among the results of a turn, and what a reply makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from wirelint.claims.contradictions import contradictions
from wirelint.claims.evidence import Outcome, Ran
from wirelint.claims.facts import Contradiction, Fact, facts
from wirelint.history.handed_back import handed_back
from wirelint.model import Request
from wirelint.state.mcp_ledger import Passed
from wirelint.text.prose import Prose

if TYPE_CHECKING:
    from wirelint.state.ledger import Ledger

_REDACTED = "[redacted:"
_HEAD = 4000
_LONGEST = 400
_FEWEST = 3
"""Words of an error that are its own: fewer may stand in any text."""
_LEADS = frozenset({"error", "mcp", "tool", "failed", "exception"})
_WORD = re.compile(r"\w+")


def error_of(passed: Sequence[Passed]) -> Passed | None:
    """The call that failed, where every call like it is known to have failed."""
    if not passed or not all(one.answered and one.error is True for one in passed):
        return None
    return passed[-1]


def served_errors(request: Request, ran: Sequence[Ran], ledger: Ledger) -> tuple[Fact, ...]:
    """The results of the turn, where one of them is an error of an MCP server; none otherwise.

    That it is one is told by what the server answered on this wire, or by the result itself: some clients hand on the
    envelope in which a server sends it.
    """
    results = [result for message in request.turn for result in message.results]
    failed = (
        {back.result.pointer for back in handed_back(request, ledger) if error_of(back.passed(ledger.tools))}
        if ledger.tools
        else set()
    )
    if not failed and not any(_is_envelope(result.text) for result in results):
        return ()
    known = facts(request, ran)
    if any(_REDACTED in fact.result.text for fact in known):
        return ()
    return tuple(
        Fact(fact.result, Outcome(True, frozenset()), fact.able, fact.arguments)
        if fact.result.pointer in failed
        else fact
        for fact in known
    )


def retold(prose: Prose, served: Sequence[Fact], ran: Sequence[Ran], request: Request) -> Iterator[Contradiction]:
    """The statements of a text that make something else of the errors among `served_errors`."""
    if served and not _passes_on(prose.text, served):
        yield from (found for found in contradictions(prose, served, ran, request) if "error" in found.against)


def _passes_on(text: str, served: Sequence[Fact]) -> bool:
    """Whether a reply says an error in the server's own words: "Shelf C is locked, so the item stays where it is"."""
    said = f" {' '.join(_WORD.findall(text[:_HEAD].casefold()))} "
    for fact in served:
        words = _WORD.findall(fact.result.text[:_LONGEST].casefold()) if fact.outcome.error else []
        while words and words[0] in _LEADS:
            words = words[1:]
        if len(words) >= _FEWEST and f" {' '.join(words)} " in said:
            return True
    return False


def _is_envelope(text: str) -> bool:
    """Return True if a result is what an MCP server sends when a tool fails, handed on as it is."""
    start = text[:_HEAD]
    return '"isError"' in start and '"content"' in text and "true" in start.partition('"isError"')[2][:6]
