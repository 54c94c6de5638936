from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from wirelint.conversation import Issued, Ledger
from wirelint.knowledge.id_demands import demand_of, is_kimi_k2, is_kimi_k3
from wirelint.knowledge.ids import Origin, form_of, is_placeholder, key, match, restore, restore_counted
from wirelint.knowledge.pairing import Pair, pair
from wirelint.model import Exchange, Json, ToolCall
from wirelint.rule import Finding, Fix, Rule, excerpt

_COMPARED = 64
_BARE_UUID = 36
_TELLING = 12


class MangledId(Rule):
    """The client changed a tool call's id before sending it back.

    ## What it does
    Compares every id in the history with the ids that really passed on this wire: first the same id, then the same letters
    and digits, then the same call (function and arguments) under another id. Where nothing passed, the form of the id is
    evidence enough in a few cases: `functionsread0` on a call of `read` was `functions.read:0`; `call_…|fc_…` was two ids;
    `undefined` was none. A result whose id is its call's id, altered, is reported too. There is one finding per id.

    ## Why is this bad?
    Ids are opaque: what comes with a call has to go back with it. When the two sides differ, the API rejects the request or
    answers the wrong call. When both are altered alike it may still hurt: Kimi K2 is trained on its own ids, and with
    altered ones in the history it announces calls in words and stops.

    ## Example
    The reply carried `"id": "functions.read:0"`; the next request says `"id": "functionsread0"` on the call and
    `"tool_call_id": "functionsread0"` on its result.

    ## False positives
    Silent on ids that came back unchanged, on well-formed ids of other vendors (clients switch models), on ids of the
    client's own making that agree on both sides, and where the target could not take the original (Mistral's nine
    characters, Anthropic's character set): that change was necessary.

    ## Fix safety
    Safe: the id that the wire carried, or the only one that the form allows, is put back on the call and its result
    together. Where the original is not known nothing is offered.

    ## References
    - OpenAI, Function calling: `tool_call_id`; Anthropic, Tool use: `tool_use_id`
    - Moonshot AI, Kimi K2 tool call guidance: `functions.{name}:{index}`
    """

    code = "ID301"
    name = "mangled-id"
    severity = "warning"
    layer = "client"
    fires: ClassVar[dict[str, Json]] = {
        "request": {
            "url": "https://llm.example/v1/chat/completions",
            "body": {
                "model": "kimi-k2-instruct",
                "messages": [
                    {"role": "user", "content": "What does the map say?"},
                    {
                        "role": "assistant",
                        "tool_calls": [
                            {
                                "id": "functionsopenmap0",
                                "type": "function",
                                "function": {"name": "open_map", "arguments": "{}"},
                            }
                        ],
                    },
                    {"role": "tool", "tool_call_id": "functionsopenmap0", "content": "Here be dragons."},
                ],
            },
        },
        "response": {
            "headers": {"content-type": "application/json"},
            "body": '{"choices":[{"index":0,"message":{"content":"Dragons."},"finish_reason":"stop"}]}',
        },
    }
    silent: ClassVar[dict[str, Json]] = {
        "request": {
            "url": "https://llm.example/v1/chat/completions",
            "body": {
                "model": "kimi-k2-instruct",
                "messages": [
                    {"role": "user", "content": "What does the map say?"},
                    {
                        "role": "assistant",
                        "tool_calls": [
                            {
                                "id": "functions.open_map:0",
                                "type": "function",
                                "function": {"name": "open_map", "arguments": "{}"},
                            }
                        ],
                    },
                    {"role": "tool", "tool_call_id": "functions.open_map:0", "content": "Here be dragons."},
                ],
            },
        },
        "response": {
            "headers": {"content-type": "application/json"},
            "body": '{"choices":[{"index":0,"message":{"content":"Dragons."},"finish_reason":"stop"}]}',
        },
    }

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None:
            return
        pairs = pair(request).pairs
        history = {each.call.id for each in pairs if each.call.id}
        told: set[str] = set()
        for each in pairs:
            if each.call.form == "legacy" or any(id_ is not None and "[redacted:" in id_ for id_ in each.ids):
                continue
            found = self._judge(each, exchange, ledger, history)
            if found is not None and found.message not in told:
                told.add(found.message)
                yield found

    def _judge(self, each: Pair, exchange: Exchange, ledger: Ledger, history: set[str]) -> Finding | None:
        given, answered = each.ids
        alteration = each.answer.match if each.answer is not None else None
        origin = _origin(each, exchange, ledger, history)
        if origin is not None and origin.id == given:
            origin = None
        if alteration is None:
            if origin is None or (origin.id is not None and _forced(exchange, each.call, origin.id)):
                return None
            return self._tell(each, exchange, origin, "call and its result" if each.answer is not None else "call")
        if origin is None:  # the call's id is the good one, as far as can be known
            return self._tell(each, exchange, Origin(given or None, alteration.how, alteration.certainty), "result")
        return self._tell(each, exchange, origin, "call" if answered == origin.id else "call and its result")

    def _tell(self, each: Pair, exchange: Exchange, origin: Origin, place: str) -> Finding:
        call, answer = each.call, each.answer
        part = answer.result if place == "result" and answer is not None else call
        id_ = excerpt((part.id if isinstance(part, ToolCall) else part.call_id) or "") or "(empty)"
        before = f"`{excerpt(origin.id)}` with {origin.how}" if origin.id else f"no id: {origin.how}"
        torn = answer is not None and answer.match is not None
        refused = exchange.status is not None and 400 <= exchange.status < 500
        return self.finding(
            "request",
            f"id `{id_}` of the `{excerpt(call.name or '')}` {place} is {before}",
            part.pointer,
            severity="error" if torn or refused else None,
            confidence=origin.certainty,
            fix=Fix("safe", f"restore `{excerpt(origin.id)}` on the {place}") if origin.id else None,
        )


def _origin(each: Pair, exchange: Exchange, ledger: Ledger, history: set[str]) -> Origin | None:
    """What the id of a call was when it passed, or must have been; None when there is no sign of a change."""
    id_, name = each.call.id or "", each.call.name
    if id_ and ledger.issued(id_, exchange.conversation) is not None:
        return None
    passed = _passed(each.call, exchange.conversation, ledger, history)
    if passed is not None:
        return passed
    own = restore(id_, name)
    if own is None and (is_kimi_k2(exchange.model) or is_kimi_k3(exchange.model)):
        own = restore_counted(id_, name, "functions." if is_kimi_k2(exchange.model) else "")
    if (own is not None and own.id is not None) or each.answer is None or each.answer.match is None:
        return own
    other = each.answer.result.call_id or ""
    if ledger.issued(other, exchange.conversation) is None and not _better(other, id_):
        return own
    found = match(other, id_, name) or each.answer.match
    return Origin(other, found.how, found.certainty)


def _better(other: str, id_: str) -> bool:
    """Whether, of two ids of which one is the other altered, the result's is the original and the call's is not."""
    if id_ == other.casefold() or not id_ or is_placeholder(id_):
        return True
    return form_of(other) is not None and form_of(id_) is None and len(key(other)) >= len(key(id_))


def _passed(call: ToolCall, conversation: str | None, ledger: Ledger, history: set[str]) -> Origin | None:
    id_, name = call.id or "", call.name or ""
    for issued in ledger.similar(id_, conversation) if id_ else ():
        telling = len(key(id_)) >= _TELLING
        near = issued.conversation in (conversation, None) and issued.name == name
        if (near or telling) and issued.id not in history:
            found = match(issued.id, id_)
            return Origin(issued.id, found.how if found else "other characters", "high")
    alike = [] if _foreign(id_, name) else _alike(call, conversation, ledger, history)
    if len(alike) == 1:
        found = match(alike[0].id, id_, name)
        how = found.how if found is not None else "another id in its place" if id_ else "nothing in its place"
        return Origin(alike[0].id, how, "high" if found is not None else "medium")
    for issued in ledger.calls(conversation)[-_COMPARED:] if id_ else ():
        if issued.name == name and issued.id not in history and (found := match(issued.id, id_, name)) is not None:
            return Origin(issued.id, found.how, found.certainty)
    return None


def _foreign(id_: str, name: str) -> bool:
    """Whether an id is well-formed as some vendor's own: one that another model gave, not one that a client made up.

    Nine letters and digits are too little to tell when they spell the function's name. A UUID says nothing of a vendor:
    clients that keep calls in a store of their own put one in the place of every id.
    """
    maker = form_of(id_)
    if maker == "a generator of UUIDs" and len(id_) == _BARE_UUID:
        return False
    return maker not in (None, "a counter") and not (maker == "Mistral" and key(name) in key(id_))


def _alike(call: ToolCall, conversation: str | None, ledger: Ledger, history: set[str]) -> list[Issued]:
    """Calls that passed with the same function and arguments, and whose ids were never heard of again.

    An id that did come back belongs to another run of the same prompt.
    """
    return [
        issued
        for issued in ledger.alike(call.name or "", call.arguments.text, conversation)
        if issued.id not in history
        and ledger.returned(issued.id, conversation) is None
        and ledger.returned(issued.id, issued.conversation) is None
    ]


def _forced(exchange: Exchange, call: ToolCall, original: str) -> bool:
    """Whether the target would refuse the original and takes what stands there now: the client had to change it."""
    demand = demand_of(exchange)
    if demand is None or not call.id:
        return False
    return demand.fault(original, call.name) is not None and demand.fault(call.id, call.name) is None
