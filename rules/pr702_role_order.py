from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from wirelint.apis.traits import RAW_APIS
from wirelint.history.pairing import pair
from wirelint.jsonvalues import mappings, strings
from wirelint.lexicon import Phrases
from wirelint.model import Exchange, Json, Message, Request, Text
from wirelint.rule import Finding, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text.pointers import at

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

_PHRASES = Phrases("role_order")
_CONTRACTS: dict[str, frozenset[Kind]] = {api: frozenset(kinds) for api, kinds in _PHRASES.table("contracts").items()}
"""Orders that each API forbids and refuses."""
_REFUSALS: tuple[tuple[re.Pattern[str], tuple[Kind, ...]], ...] = tuple(
    (re.compile(row["words"], re.IGNORECASE), tuple(row["kinds"])) for row in _PHRASES.table("refusals")
)
_LOOKED_AT = 32
_ITEM = re.compile(r"[Ii]tem '(\w{1,128})'")


class _Misplaced(NamedTuple):
    """A message or part in a forbidden place. `what` completes "this message …"."""

    kind: Kind
    pointer: str
    what: str


class RoleOrder(Rule):
    """The order of the messages violates the API's rules.

    ## What it does
    Checks the order of a request's messages against the API's rules and the fate of the request: a tool result before
    its call, or apart from it (OpenAI, Mistral, Cohere); text before the tool results of a message, a system message
    among the others, an assistant first (Anthropic); two messages of one role (Converse); a function call without a
    turn to answer, a function response without a call (Gemini); an assistant last (Mistral). If the upstream refused
    the request with an error about roles or order, restrictions of prompt templates count too: two messages of one
    role, a system message that is not first.

    ## Why is this bad?
    The API refuses the request and every later one, since the history is sent again.

    ## Example
    `[{"role": "user"}, {"role": "system"}, {"role": "user"}]` for a model whose template wants user and assistant to
    alternate: the server answers 500, "Conversation roles must alternate user/assistant".

    ## False positives
    An accepted order is allowed: then only a result before its own call is reported, as a warning. A result without a
    call is `orphan-result`; a call whose result is missing, or late for Anthropic, is `missing-result`. Most APIs
    accept two user messages in a row, and an assistant's message at the end as a prefix to continue.

    ## Fix safety
    Reported only: the intended order is unknown.

    ## References
    - OpenAI, Chat API: messages of role `tool` follow the `tool_calls` that they answer
    - Anthropic, Tool use: tool results come first in the content, and right after the calls
    - Google, Gemini API: function call and function response turns
    - Mistral, API errors: `invalid_request_message_order`
    """

    severity = "error"
    layer = "client"

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, accepted = exchange.request, exchange.succeeded
        if request is None or exchange.api in RAW_APIS:
            return
        error = exchange.reply.error if exchange.reply is not None else None
        kinds = _CONTRACTS.get(exchange.api, frozenset())
        if accepted:
            kinds &= {"result-before-call"}  # this order misleads the model even if the server accepts it
        words = " ".join(text[:2000] for _, text in strings(error) if text)
        named = {kind for pattern, some in _REFUSALS if words and pattern.search(words) for kind in some}
        for one in _find_misplaced(request, kinds | named, words):
            why = f"; the request was refused: {excerpt(_error_text(error), 120)!r}" if one.kind in named else ""
            yield self.finding(
                "request",
                f"this message {one.what}{why}",
                one.pointer,
                severity="warning" if accepted else None,
                confidence="high" if accepted or one.kind in named else "medium",
            )


def _find_misplaced(request: Request, kinds: frozenset[Kind], words: str) -> Iterator[_Misplaced]:
    """Yield the first misplaced message or part of each of these kinds. `words`: those of the error."""
    found: dict[Kind, _Misplaced] = {}
    for find, some in _FINDERS:
        for one in find(request) if not kinds.isdisjoint(some) else ():
            if one.kind in kinds:
                found.setdefault(one.kind, one)
    if not found.keys().isdisjoint({"same-role", "system-late", "assistant-first"}):
        found.pop("user-after-tool", None)  # few APIs forbid it
    yield from found.values()
    # The item that an error of Responses names: reasoning without its call, or a call without its reasoning.
    if "item-apart" in kinds and (item := _ITEM.search(words)) is not None:
        places = [place for place, one in mappings(request.body.get("input")) if one.get("id") == item[1]]
        for place in places[:1]:
            yield _Misplaced("item-apart", f"/input/{place}", "lacks the item that it belongs to")


def _turns(request: Request) -> Iterator[_Misplaced]:
    before: Message | None = None
    begun = False
    for message in request.messages:
        role = message.role
        if role == "system":
            if begun or (request.api == "anthropic.messages" and message.pointer != "/system"):
                yield _Misplaced("system-late", message.pointer, "is a system message in the midst of the conversation")
        elif role == "assistant" and not begun and not request.is_partial:
            yield _Misplaced("assistant-first", message.pointer, "is the first, and the assistant's")
        elif before is not None and role == before.role and role != "tool":
            yield _Misplaced("same-role", message.pointer, f"is the {role}'s, as the one before it")
        elif before is not None and before.role == "tool" and role == "user":
            yield _Misplaced("user-after-tool", message.pointer, "is the user's, right after a tool result")
        before, begun = message, begun or role != "system"
    last = at(request.body, before.pointer) if before is not None else None
    is_prefix = isinstance(last, dict) and (last.get("prefix") is True or last.get("partial") is True)
    if before is not None and before.role == "assistant" and not is_prefix:
        yield _Misplaced("assistant-last", before.pointer, "is the last, and the assistant's")


def _parts(request: Request) -> Iterator[_Misplaced]:
    """Yield misplaced parts of single messages, compared with the message before."""
    gemini = request.api == "google.generate_content"
    before: Message | None = None
    for message in request.messages:
        if message.role == "system":
            continue
        if gemini:
            begins = before is None and not request.is_partial
            if message.calls and (begins or (before is not None and before.role == "assistant")):
                after = "begins the conversation" if begins else "follows a turn of the model"
                yield _Misplaced("call-turn", message.pointer, f"calls `{message.calls[0].name}` and {after}")
        elif message.results and isinstance(message.parts[0], Text) and before is not None and before.calls:
            pointer = message.parts[0].pointer
            yield _Misplaced("result-not-first", pointer, "has words before the tool results that it brings")
        before = message


def _results(request: Request) -> Iterator[_Misplaced]:
    if not request.has_history or not any(message.results for message in request.messages):
        return
    # By message: the last one before it without results.
    others = (-1 if message.results else position for position, message in enumerate(request.messages))
    leads = list(itertools.accumulate(others, max, initial=-1))
    for each in pair(request).pairs:
        answer = each.answer
        if answer is None:
            continue
        result, message = answer.result, request.messages[answer.position]
        what = f"is the result `{result.call_id or result.name or ''}`,"
        if answer.position < each.position:
            yield _Misplaced("result-before-call", result.pointer, f"{what} which comes before its call")
        elif leads[answer.position] != each.position:
            between = request.messages[leads[answer.position]].role
            near = request.messages[each.position + 1 : min(answer.position, each.position + 1 + _LOOKED_AT)]
            if message.role != "tool" and any(one.role == "assistant" for one in near):
                continue  # `missing-result` reports a result in a user message after the assistant's next message
            words = f"{what} and the {between}'s message is between its call and it"
            yield _Misplaced("result-apart", result.pointer, words)


_FINDERS: tuple[tuple[Callable[[Request], Iterator[_Misplaced]], frozenset[Kind]], ...] = (
    (_turns, frozenset({"assistant-first", "assistant-last", "same-role", "system-late", "user-after-tool"})),
    (_parts, frozenset({"call-turn", "result-not-first"})),
    (_results, frozenset({"result-before-call", "result-apart"})),
)


def _error_text(error: Json) -> str:
    while isinstance(error, dict):
        inner = error.get("error")
        if not isinstance(inner, dict | str):
            break
        error = inner
    return str(error.get("message") or error.get("detail") or error) if isinstance(error, dict) else str(error)
