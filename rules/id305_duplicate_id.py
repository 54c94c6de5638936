from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from wirelint.conversation import Ledger
from wirelint.knowledge.id_demands import is_kimi_k3
from wirelint.knowledge.pairing import Answer, Pair, pair
from wirelint.model import Exchange, Json, Opaque, Request, Text, ToolCall, ToolResult
from wirelint.rule import Finding, Fix, Rule, Severity, Side, excerpt


class DuplicateId(Rule):
    """Two tool calls, or two results, share one id.

    ## What it does
    Looks for ids that stand on more than one call, in one message or across the turns of a history, on more than one result
    of a single call, on parallel calls of a reply, and on a call of a reply that reuses the id of an earlier one. Parallel
    calls without any id count as sharing one: their results cannot be told apart either.

    ## Why is this bad?
    A result says by its id which call it answers. Where two calls share it, APIs reject the request, and clients that keep
    calls by id overwrite one with the other or give one call's result to the other.

    ## Example
    Every request of the same client numbers its calls from zero: `"id": "lookup_0"` in the first turn and again in the
    second.

    ## False positives
    Silent when the same message was sent twice (same call, same result), on the candidates of one reply (`n` > 1), on
    empty ids in different turns, and on Kimi K3, whose ids count from zero for every message of the user.

    ## Fix safety
    Unsafe: renumbering the later call and its result assumes that results stand in the order of their calls.

    ## References
    - Anthropic, Tool use: "each tool_use must have a single result"; ids are unique
    - OpenAI, Chat API: `tool_calls[].id`
    """

    code = "ID305"
    name = "duplicate-id"
    severity = "error"
    layer = "client"
    fires: ClassVar[dict[str, Json]] = {
        "request": {
            "url": "https://llm.example/v1/chat/completions",
            "body": {
                "model": "m",
                "messages": [
                    {"role": "user", "content": "Weigh both."},
                    {
                        "role": "assistant",
                        "tool_calls": [
                            {"id": "weigh", "type": "function", "function": {"name": "weigh", "arguments": '{"n":1}'}},
                            {"id": "weigh", "type": "function", "function": {"name": "weigh", "arguments": '{"n":2}'}},
                        ],
                    },
                    {"role": "tool", "tool_call_id": "weigh", "content": "3 kg"},
                    {"role": "tool", "tool_call_id": "weigh", "content": "5 kg"},
                ],
            },
        },
        "response": {
            "headers": {"content-type": "application/json"},
            "body": '{"choices":[{"index":0,"message":{"content":"3 and 5."},"finish_reason":"stop"}]}',
        },
    }
    silent: ClassVar[dict[str, Json]] = {
        "request": {
            "url": "https://llm.example/v1/chat/completions",
            "body": {
                "model": "m",
                "messages": [
                    {"role": "user", "content": "Weigh both."},
                    {
                        "role": "assistant",
                        "tool_calls": [
                            {
                                "id": "weigh_1",
                                "type": "function",
                                "function": {"name": "weigh", "arguments": '{"n":1}'},
                            },
                            {
                                "id": "weigh_2",
                                "type": "function",
                                "function": {"name": "weigh", "arguments": '{"n":2}'},
                            },
                        ],
                    },
                    {"role": "tool", "tool_call_id": "weigh_1", "content": "3 kg"},
                    {"role": "tool", "tool_call_id": "weigh_2", "content": "5 kg"},
                ],
            },
        },
        "response": {
            "headers": {"content-type": "application/json"},
            "body": '{"choices":[{"index":0,"message":{"content":"3 and 5."},"finish_reason":"stop"}]}',
        },
    }

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None:
            return
        paired = pair(request)
        groups: dict[str, list[Pair]] = {}
        for each in paired.pairs:
            if each.call.id is not None:
                groups.setdefault(each.call.id, []).append(each)
        turns = _turns(request) if is_kimi_k3(exchange.model) else None
        for id_, group in groups.items():
            twins = next(_twins(group, turns), None)
            if twins is not None:
                yield self._tell_calls(id_, *twins, len(group))
        lone = {id_: group[0].answer for id_, group in groups.items() if len(group) == 1}
        yield from self._check_repeats(exchange, lone, paired.repeats)

    def _check_repeats(
        self, exchange: Exchange, first: Mapping[str, Answer | None], repeats: Iterable[Answer]
    ) -> Iterator[Finding]:
        told: set[str] = set()
        for repeat in repeats:
            id_ = repeat.result.call_id or ""
            before = first.get(id_)
            if before is None or id_ in told:
                continue
            same = repeat.result.text == before.result.text
            if same and repeat.position != before.position:
                continue  # the same message, sent twice
            told.add(id_)
            yield self._tell(
                "request",
                f"{'the same' if same else 'another'} result for the call `{excerpt(id_)}`, which was answered before",
                repeat.result,
                severity="warning" if same else "error",
            )

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.reply is None or not exchange.ok:
            return
        request = exchange.request
        earlier = {each.call.id: each for each in pair(request).pairs if each.call.id} if request is not None else {}
        turns = _turns(request) if request is not None and is_kimi_k3(exchange.model) else None
        for choice in exchange.reply.choices:
            seen: dict[str | None, ToolCall] = {}
            for call in choice.calls:
                before = earlier.get(call.id or "")
                if call.id in seen and call.name:
                    share = f"share the id `{excerpt(call.id)}`" if call.id else "have no id"
                    names = _names(seen[call.id], call)
                    yield self._tell("response", f"parallel calls of {names} {share}", call, severity="error")
                elif before is not None and (turns is None or turns[before.position] == turns[-1]):
                    names = f"`{_name(call)}` and an earlier one of `{_name(before.call)}`"
                    told = f"a new call of {names} ({before.call.pointer}) share the id `{excerpt(call.id or '')}`"
                    yield self._tell("response", told, call, severity="warning")
                if call.id or call.name:
                    seen.setdefault(call.id, call)

    def _tell_calls(self, id_: str, one: Pair, two: Pair, count: int) -> Finding:
        together = one.position == two.position
        where = "in one message" if together else f"in two turns (the other is {one.call.pointer})"
        shared = f"the id `{excerpt(id_)}`" if id_ else "an empty id"
        more = f", {count} calls in all" if count > 2 else ""
        message = f"calls of {_names(one.call, two.call)} {where} share {shared}{more}"
        return self._tell("request", message, two.call, severity="error" if together else "warning")

    def _tell(self, side: Side, message: str, part: ToolCall | ToolResult, *, severity: Severity) -> Finding:
        call = part if isinstance(part, ToolCall) else None
        return self.finding(
            side,
            message,
            part.pointer,
            event=call.event if call is not None and side == "response" else None,
            severity=severity,
            layer="client" if side == "request" else "gateway",
            fix=Fix("unsafe", "give the later call and its result an id of their own") if call is not None else None,
        )


def _name(call: ToolCall) -> str:
    return excerpt(call.name or "")


def _names(one: ToolCall, two: ToolCall) -> str:
    return f"`{_name(one)}`" if one.name == two.name else f"`{_name(one)}` and `{_name(two)}`"


def _turns(request: Request) -> list[int]:
    """For each message, the number of the user's words that it follows; one more entry for the reply."""
    turns, turn = [], 0
    for message in request.messages:
        turn += message.role == "user" and any(isinstance(part, (Text, Opaque)) for part in message.parts)
        turns.append(turn)
    return [*turns, turn]


def _twins(group: Sequence[Pair], turns: Sequence[int] | None) -> Iterator[tuple[Pair, Pair]]:
    """Neighbours among calls of one id that cannot be told apart by it, and are not one call sent twice."""
    for one, two in itertools.pairwise(group):
        scoped = turns is not None and turns[one.position] != turns[two.position]
        if one.position == two.position or not (scoped or not two.call.id or _resent(one, two)):
            yield one, two


def _resent(one: Pair, two: Pair) -> bool:
    same = one.call.name == two.call.name and one.call.arguments == two.call.arguments
    if not same or one.answer is None or two.answer is None:
        return same
    return one.answer.result.text == two.answer.result.text
