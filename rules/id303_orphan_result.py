from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence

from wirelint.fixes.history import claimed
from wirelint.history.pairing import Answer, Pair, keeps_words, orphans, pair, removals
from wirelint.model import Exchange, Request
from wirelint.rule import Fix, Fixable, FixPolicy, RequestRule, excerpt
from wirelint.state.ledger import Ledger


class OrphanResult(RequestRule):
    """A tool result answers no call before it.

    ## What it does
    Pairs the results of the history with its calls and reports every result that remains: its id matches neither a call
    before it nor one whose id was altered. Calls without ids (Gemini, Ollama) pair by name and order.

    ## Why is this bad?
    The vendors' APIs reject the request and every later one, since the history stays. Servers that accept it show the
    model an answer to a question that it never asked.

    ## Example
    The client trims old messages and cuts between a call and its result: the history now begins with
    `{"role": "tool", "tool_call_id": "call_7", "content": "42"}`.

    ## False positives
    Silent on results that pair after an id is restored (`mangled-id`), on a second result for an answered call
    (`duplicate-id`), on results of the provider's tools, on results without an id where the API has ids, and where the
    server keeps a part of the conversation (`previous_response_id`, a conversation, a message thread, cached content).
    A result before its call, or apart from it, is `role-order`.

    ## Fix safety
    Unsafe: the result is removed, and the model no longer sees its content. It stays as text where the history needs
    its message (Anthropic, Converse, Gemini): else the assistant would speak first, last or twice in a row.

    ## References
    - OpenAI, Chat API: "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
    - Anthropic, Tool use: each `tool_result` needs its `tool_use` in the message before
    """

    severity = "error"
    layer = "client"
    requires_in_request = frozenset({"history"})
    request_safety = "unsafe"

    def faults(self, request: Request, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[Fixable]:
        paired, found = pair(request), orphans(request)
        if found and permit.allows("LK101", "unsafe"):
            answered = claimed(exchange)  # by calls that are still text and will become calls
            found = tuple(answer for answer in found if answer.result.pointer not in answered)
        edits = removals(request, found) if found else {}
        for answer in found:
            result, which = answer.result, _short(answer)
            made = edits.get(result.pointer, ())
            kept = keeps_words(made)
            what = f"the result{which} as plain text" if kept else f"the result{which}"
            finding = self.finding(
                "request",
                f"tool result {_identity(answer)} answers no call{_among(answer, paired.pairs)}: "
                f"{excerpt(result.text) or '(empty)'}",
                result,
                severity="warning" if exchange.succeeded else None,
                fix=Fix("unsafe", f"{'keep' if kept else 'drop'} {what}") if made else None,
            )
            title, before, after = f"{'kept' if kept else 'dropped'} {what}", result.text, result.text if kept else ""
            record = self.repair("request", "unsafe", title, result.pointer, before=before, after=after)
            yield finding, (made, record) if made else None


def _identity(answer: Answer) -> str:
    """Return what identifies a result in a message: its id, or its function's name."""
    if answer.result.call_id is None:
        return f"of `{excerpt(answer.result.name)}`" if answer.result.name else "without an id"
    return f"with id `{excerpt(answer.result.call_id) or '(empty)'}`"


def _short(answer: Answer) -> str:
    id_ = answer.result.name if answer.result.call_id is None else answer.result.call_id or "(empty)"
    return f" `{excerpt(id_)}`" if id_ else ""


def _among(answer: Answer, pairs: Sequence[Pair]) -> str:
    """Return which calls precede the result: none, or those of the last turn."""
    end = bisect.bisect_left(pairs, answer.position, key=lambda each: each.position)
    if end == 0:
        return "; there is none before it"
    turn = [each for each in pairs[max(end - 4, 0) : end] if each.position == pairs[end - 1].position]
    named = answer.result.call_id is not None and all(each.call.id for each in turn)
    known = ((each.call.id if named else each.call.name) or "" for each in turn[-3:])
    shown = ", ".join(f"`{excerpt(one, 40)}`" for one in known)
    return f"; the last before it {'are' if len(turn) > 1 else 'is'} {shown}"
