from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirelint.arguments.argument_faults import Concatenated, concatenated, has_ended
from wirelint.arguments.argument_repairs import separate_values
from wirelint.events import Delta, Start
from wirelint.fixes.arguments import SeparateValues, fix_history, report_history
from wirelint.fixes.call_index import EmptyStarts, GrowingDeltas
from wirelint.model import Exchange, Reply, ToolCall
from wirelint.rule import Finding, Fix, FixPolicy, RequestFix, RewriteContext, Rewriter, Rule, excerpt, fix_of
from wirelint.state.ledger import Ledger


class ConcatenatedJson(Rule):
    """The arguments of one call hold two or more JSON values.

    ## What it does
    Reports a tool call whose joined arguments are several JSON values in a row. Three ways of streaming lead there: an
    Anthropic `content_block_start` carries a whole input that `input_json_delta` events repeat or continue; an item of
    OpenAI's Responses is added with arguments, to which clients append the deltas; each delta repeats all arguments so
    far (`{"ci`, `{"city":"O`, `{"city":"Oslo"}`). Calls in the history of a request count too.

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
    ignored_fields = frozenset({"stream_options"})
    requires_in_request = frozenset({"history"})
    requires_in_reply = frozenset({"calls"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        yield from report_history(self, exchange, None, concatenated=True)

    def fix_request(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[RequestFix]:
        yield from fix_history(self, exchange, None, permit, concatenated=True)

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.reply is None or not exchange.ok:
            return
        for choice in exchange.reply.choices:
            for call in choice.calls:
                found = concatenated(call)
                if found is None:
                    continue
                where = call.event_at(0 if found.start else found.offset)
                message = f"{call.name or 'a call without a name'}: {_evidence(call, found)}"
                fix = fix_of(separate_values(call, exchange.request)) if has_ended(exchange, choice, call) else None
                yield self.finding("response", message, call, event=where, fix=fix)
        yield from self._announced(exchange.reply)

    def _announced(self, reply: Reply) -> Iterator[Finding]:
        """Yield findings on calls of OpenAI's Responses that were added with arguments before their deltas."""
        calls = {call.pointer: call for call in reply.calls}
        for fault in reply.faults:
            place, _, given = fault.detail.partition(" ")
            if fault.kind == "repeated-start" and (call := calls.get(place)) is not None:
                name = call.name or "a call without a name"
                said = f"the item is added with the arguments {excerpt(given, 60)}, and the deltas repeat them"
                fix = Fix("safe", "add the item with empty arguments")
                yield self.finding("response", f"{name}: {said}", place, event=fault.event, fix=fix)

    def rewriter(self, context: RewriteContext) -> Sequence[Rewriter]:
        separate = SeparateValues(self, context)
        if not context.streamed or not context.permit.allows(self.code, "safe"):
            return (separate,)

        def emptied(start: Start) -> None:
            title = f"{start.name or 'a call without a name'}: emptied the arguments that the item was added with"
            self.record(context, "safe", title, start.pointer, at=start, before=start.given)

        def reduced(start: Start, second: Delta) -> None:
            title = f"{start.name or 'a call'}: reduced each delta to what it adds"
            self.record(context, "safe", title, start.pointer, at=second, before=second.text)

        starts = (EmptyStarts(emptied),) if context.exchange.api == "openai.responses" else ()
        return *starts, GrowingDeltas(context, reduced), separate


def _evidence(call: ToolCall, found: Concatenated) -> str:
    if found.start:
        start = excerpt(call.start_input.text if call.start_input is not None else "", 60)
        deltas = excerpt(call.deltas, 60)
        match found.shape:
            case "equal":
                return f"the start carries the whole input {start}, and the deltas repeat it"
            case "differ":
                return f"the start carries the input {start}, and the deltas another one: {deltas}"
            case _:
                return f"the start carries the whole input {start}, and the deltas continue with {deltas}"
    shown = excerpt(call.arguments.text, 90)
    match found.shape:
        case "equal" if len(found.values) > 1 and all(value == found.values[0] for value in found.values):
            return f"equal arguments {len(found.values)} times: {shown}"
        case "continues":
            return f"the arguments continue after a complete object: {shown}"
        case "cut":
            return f"the arguments are complete and start again: {shown}"
        case "grow":
            return f"each delta repeats all arguments before it: {shown}"
        case _:
            return f"the arguments hold {len(found.values)} JSON values: {shown}"
