from __future__ import annotations

from collections.abc import Iterator

from wirelint.apis.traits import history_of, traits
from wirelint.history.pairing import Pair, pair
from wirelint.model import Exchange, Request
from wirelint.rule import Finding, Rule, excerpt
from wirelint.state.ledger import Ledger


class MissingResult(Rule):
    """A tool call in the history has no result, and the conversation goes on.

    ## What it does
    Pairs the calls of the history with its results and reports every call that nothing answers although messages follow
    it. For Anthropic Messages, Converse and Gemini the result has to stand in the very next user message; one that comes
    later counts as missing. Where calls have no ids (Gemini, Ollama) results pair by name and order.

    ## Why is this bad?
    The vendors' APIs reject the whole request, and every one after it. Where it passes, the model sees that it asked and
    was never answered: it asks again, or makes the answer up.

    ## Example
    The user interrupts while a tool runs. The client sends the assistant's message with its `tool_calls`, then the user's
    next words, and no message with `"role": "tool"` between them.

    ## False positives
    Silent on calls in the last message of the request, on tools that the provider runs, on results whose id was altered
    (`mangled-id`), on calls without an id where the API has ids, on a call that is in the history twice and answered once,
    and where items stand for others that the server keeps (`item_reference`).

    ## Fix safety
    Reported only: a result cannot be made up.

    ## References
    - OpenAI, Chat API: "an assistant message with 'tool_calls' must be followed by tool messages"
    - Anthropic, Tool use: `tool_use` ids without `tool_result` blocks immediately after
    """

    code = "ID304"
    name = "missing-result"
    severity = "error"
    layer = "client"
    requires_in_request = frozenset({"history"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None:
            return
        pairs, history = pair(request).pairs, history_of(request.api)
        if not pairs or request.on_server == "anywhere":
            return
        answered = {_known_by(each, each.position) for each in pairs if each.answer is not None}
        last = len(request.messages) - 1
        for each in pairs:
            known = bool(each.call.id) or not traits(request.api).call_ids
            if not known or each.position == last or "[redacted:" in (each.call.id or ""):
                continue
            if each.answer is None and _known_by(each, each.position + 1) not in answered:
                yield self._tell(exchange, each, f"has no result, and {_next(request, each.position)} follows")
            elif each.answer is not None and history.next_message and _late(request, each):
                place = each.answer.result.pointer
                yield self._tell(exchange, each, f"has no result in the next message; it comes later, at {place}")

    def _tell(self, exchange: Exchange, each: Pair, what: str) -> Finding:
        id_ = f"`{excerpt(each.call.id)}` " if each.call.id else ""
        accepted = exchange.ok and exchange.reply is not None and exchange.reply.error is None
        return self.finding(
            "request",
            f"call {id_}of `{excerpt(each.call.name or '')}` {what}",
            each.call.pointer,
            severity="warning" if accepted else None,
        )


def _known_by(each: Pair, position: int) -> tuple[int, str, str] | str:
    """What a call has in common with itself, sent again: its id or, where it has none, its place and all that it says."""
    return each.call.id or (position, each.call.name or "", each.call.arguments.text)


def _next(request: Request, position: int) -> str:
    """What the conversation goes on with."""
    message = request.messages[position + 1]
    if message.results:
        return "the result of another call"
    words = {"user": "the user's next message", "assistant": "the assistant's next message"}
    return words.get(message.role, f"a {message.role} message")


def _late(request: Request, each: Pair) -> bool:
    """Whether an assistant's message lies between a call and its result, once neighbours of one role are merged."""
    if each.answer is None or each.answer.position < each.position:
        return False
    between = request.messages[each.position + 1 : each.answer.position]
    roles = [message.role for message in between if message.role != "system"]
    return "assistant" in roles[roles.index("user") :] if "user" in roles else False
