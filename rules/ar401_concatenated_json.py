from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from wirelint.conversation import Ledger
from wirelint.knowledge.argument_faults import Glued, came_to_an_end, glued
from wirelint.knowledge.argument_repairs import unglued
from wirelint.model import Choice, Exchange, Json, ToolCall
from wirelint.rewriters.arguments import Unglue
from wirelint.rule import Finding, Fix, Rewriter, Rule, Situation, excerpt


class ConcatenatedJson(Rule):
    """The arguments of one call hold two JSON values or more.

    ## What it does
    Reports a tool call whose assembled arguments are several JSON values in a row, and an Anthropic stream whose
    `content_block_start` carries a whole input that `input_json_delta` events then repeat or continue.

    ## Why is this bad?
    A client that joins what it was sent gets `{"command":"ls"}{"command":"ls"}`, and its JSON parser stops at the second
    brace. The call fails, or, with a lenient parser, all but the first value is lost without a word.

    ## Example
    `{"index":0,"function":{"name":"get_weather","arguments":"{}{\\"city\\":\\"Oslo\\"}"}}`

    ## False positives
    Braces inside a string are data. A start with `"input": {}` and deltas after it is the vendor's normal shape; a start
    that carries everything and has no deltas is fine, too. Custom tools take free text and are left alone.

    ## Fix safety
    Safe when all values that say anything are equal (`{}` says nothing): one of them stays; and when the deltas say all
    that the start does. Unsafe when values that differ each fit the declared schema: they are parallel calls that lost
    their index, and are split into as many; and when members that follow a complete object make one object with it.

    ## References
    - RFC 8259: a JSON text is one value
    - Anthropic, Streaming messages: input JSON delta
    - OpenAI, Chat streaming: `delta.tool_calls[].index`
    """

    code = "AR401"
    name = "concatenated-json"
    severity = "error"
    layer = "gateway"
    of_reply = frozenset({"calls"})
    fires: ClassVar[dict[str, Json]] = {
        "request": {
            "url": "https://llm.example/v1/chat/completions",
            "body": {
                "model": "m",
                "messages": [{"role": "user", "content": "Weather in Oslo?"}],
                "tools": [{"type": "function", "function": {"name": "get_weather"}}],
            },
        },
        "response": {
            "body": {
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "tool_calls",
                        "message": {
                            "tool_calls": [
                                {"id": "call_1", "function": {"name": "get_weather", "arguments": '{}{"city":"Oslo"}'}}
                            ]
                        },
                    }
                ]
            }
        },
    }
    silent: ClassVar[dict[str, Json]] = {
        "request": fires["request"],
        "response": {
            "body": {
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "tool_calls",
                        "message": {
                            "tool_calls": [
                                {
                                    "id": "call_1",
                                    "function": {"name": "get_weather", "arguments": '{"city":"{}{Oslo}"}'},
                                }
                            ]
                        },
                    }
                ]
            }
        },
    }

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.reply is None or not exchange.ok:
            return
        for choice in exchange.reply.choices:
            for call in choice.calls:
                found = glued(call)
                if found is None:
                    continue
                where = call.event_at(0 if found.start else found.offset)
                yield self.finding(
                    "response",
                    f"{call.name or 'a call without a name'}: {_evidence(call, found)}",
                    call.pointer,
                    event=call.event if where is None else where,
                    fix=_fix(exchange, choice, call),
                )

    def rewriter(self, situation: Situation) -> Rewriter | None:
        return Unglue(self, situation)


def _evidence(call: ToolCall, found: Glued) -> str:
    if found.start:
        start = excerpt(call.start_input.text if call.start_input is not None else "", 60)
        deltas = excerpt(call.deltas, 60)
        match found.shape:
            case "equal":
                return f"the start carries the whole input {start}, and the deltas repeat it"
            case "differ":
                return f"the start carries the input {start}, and the deltas another one: {deltas}"
            case _:
                return f"the start carries the whole input {start}, and the deltas go on with {deltas}"
    shown = excerpt(call.arguments.text, 90)
    match found.shape:
        case "equal" if len(found.values) > 1 and _canonical_equal(found):
            return f"the same arguments {len(found.values)} times over: {shown}"
        case "continues":
            return f"the arguments go on after a complete object: {shown}"
        case "cut":
            return f"the arguments are complete and begin anew: {shown}"
        case _:
            return f"the arguments hold {len(found.values)} JSON values: {shown}"


def _canonical_equal(found: Glued) -> bool:
    return all(value == found.values[0] for value in found.values)


def _fix(exchange: Exchange, choice: Choice, call: ToolCall) -> Fix | None:
    request = exchange.request
    if not came_to_an_end(exchange, choice, call):
        return None
    change = unglued(
        call,
        request.tool if request is not None else lambda _: None,
        parallel=request is None or request.parallel_tool_calls is not False,
    )
    return Fix(change.safety, change.order) if change is not None else None
