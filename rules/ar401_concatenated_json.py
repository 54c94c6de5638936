from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirelint.arguments.argument_faults import Concatenated, concatenated, has_ended
from wirelint.arguments.argument_repairs import separate_values
from wirelint.fixes.arguments import SeparateValues, history_faults
from wirelint.fixes.call_index import EmptyStarts, GrowingDeltas
from wirelint.model import Exchange, Request, ToolCall
from wirelint.rule import Finding, Fix, Fixable, FixPolicy, RequestRule, RewriteContext, Rewriter, excerpt
from wirelint.state.ledger import Ledger

_SHAPES = {
    "continues": "the arguments continue after a complete object",
    "cut": "the arguments are complete and start again",
    "grow": "each delta repeats all arguments before it",
}


class ConcatenatedJson(RequestRule):
    """The arguments of one call hold two or more JSON values.

    ## What it does
    Reports a tool call, also in the history, whose joined arguments are several JSON values in a row. Three ways of
    streaming lead there: an Anthropic `content_block_start` carries a whole input that `input_json_delta` events repeat or
    continue; an item of OpenAI's Responses is added with arguments, to which clients append the deltas; each delta repeats
    all arguments so far (`{"ci`, `{"city":"O`, `{"city":"Oslo"}`).

    ## Why is this bad?
    A client that joins the deltas gets `{"command":"ls"}{"command":"ls"}`, and its JSON parser stops at the second
    brace. The call fails, or a lenient parser silently drops all but the first value.

    ## Example
    `{"index":0,"function":{"name":"get_weather","arguments":"{}{\\"city\\":\\"Oslo\\"}"}}`

    ## False positives
    Silent on braces inside a string, on a start with `"input": {}` before deltas (the vendor's normal shape), on a
    start with the whole input and no deltas, and on custom tools, which take free text.

    ## Fix safety
    Safe: equal values become one (`{}` counts as empty), deltas that repeat the start replace it, an item is added with
    empty arguments, growing deltas are reduced to what each adds. Unsafe: different values that each fit the schema
    become parallel calls, since their index was lost; members after a complete object join that object. In the history
    a call has one result, so the first of different values stays: unsafe.

    ## References
    - RFC 8259: a JSON text is one value
    - Anthropic, Streaming messages: input JSON delta
    - OpenAI, Chat streaming: `delta.tool_calls[].index`
    """

    severity = "error"
    layer = "gateway"
    requires_in_request = frozenset({"history"})
    requires_in_reply = frozenset({"calls"})

    def faults(self, request: Request, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[Fixable]:
        return history_faults(self, exchange, None, concatenated=True)

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.reply is None or not exchange.ok:
            return
        names = {call.pointer: call.name or "a call without a name" for call in exchange.reply.calls}
        for choice, call in exchange.calls:
            if (found := concatenated(call)) is not None:
                where = call.event_at(0 if found.start else found.offset)
                message = f"{names[call.pointer]}: {_evidence(call, found)}"
                fix = separate_values(call, exchange.request) if has_ended(exchange, choice, call) else None
                yield self.finding("response", message, call, event=where, fix=fix)
        for fault in exchange.reply.faults:
            place, _, given = fault.detail.partition(" ")
            if fault.kind == "repeated-start" and place in names:  # only in OpenAI's Responses
                said = f"the item is added with the arguments {excerpt(given, 60)}, and the deltas repeat them"
                empty = Fix("safe", "add the item with empty arguments")
                yield self.finding("response", f"{names[place]}: {said}", place, event=fault.event, fix=empty)

    def rewriter(self, context: RewriteContext) -> Sequence[Rewriter]:
        separate = SeparateValues(self, context)
        if not context.streamed or not context.permit.allows(self.code, "safe"):
            return (separate,)
        starts = (EmptyStarts(self, context),) if context.exchange.api == "openai.responses" else ()
        return *starts, GrowingDeltas(self, context), separate


def _evidence(call: ToolCall, found: Concatenated) -> str:
    count, shape = len(found.values), found.shape
    if found.start and call.start_input is not None:
        start, deltas = excerpt(call.start_input.text, 60), excerpt(call.deltas, 60)
        if shape == "differ":
            return f"the start carries the input {start}, and the deltas another one: {deltas}"
        how = "repeat it" if shape == "equal" else f"continue with {deltas}"
        return f"the start carries the whole input {start}, and the deltas {how}"
    if shape == "equal" and count > 1 and all(value == found.values[0] for value in found.values):
        words = f"equal arguments {count} times"
    else:
        words = _SHAPES.get(shape, f"the arguments hold {count} JSON values")
    return f"{words}: {excerpt(call.arguments.text, 90)}"
