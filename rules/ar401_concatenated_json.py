from __future__ import annotations

from collections.abc import Iterator

from wirelint.arguments.argument_faults import Glued, came_to_an_end, glued
from wirelint.arguments.argument_repairs import unglued
from wirelint.arguments.past_arguments import past_damage
from wirelint.events import Delta, Start
from wirelint.fixes.arguments import EmptyStarts, Increments, Unglue
from wirelint.fixes.chained import Chained
from wirelint.model import Choice, Exchange, Reply, ToolCall
from wirelint.rule import Finding, Fix, FixPolicy, RequestFix, RewriteContext, Rewriter, Rule, excerpt
from wirelint.state.ledger import Ledger


class ConcatenatedJson(Rule):
    """The arguments of one call hold two JSON values or more.

    ## What it does
    Reports a tool call whose assembled arguments are several JSON values in a row, and an Anthropic stream whose
    `content_block_start` carries a whole input that `input_json_delta` events then repeat or continue. So may an item of
    OpenAI's Responses be added with arguments, to which clients append the deltas. Deltas that each repeat all arguments
    so far (`{"ci`, `{"city":"O`, `{"city":"Oslo"}`) count too, and so do calls in the history of a request.

    ## Why is this bad?
    A client that joins what it was sent gets `{"command":"ls"}{"command":"ls"}`, and its JSON parser stops at the second
    brace. The call fails, or, with a lenient parser, all but the first value is lost without a word.

    ## Example
    `{"index":0,"function":{"name":"get_weather","arguments":"{}{\\"city\\":\\"Oslo\\"}"}}`

    ## False positives
    Braces inside a string are data. A start with `"input": {}` and deltas after it is the vendor's normal shape; a start
    that carries everything and has no deltas is fine, too. Custom tools take free text and are left alone.

    ## Fix safety
    Safe when all values that say anything are equal (`{}` says nothing): one of them stays; when the deltas say all that
    the start does; an item whose arguments come in deltas is added with empty ones; and when the deltas grow: what each
    adds is passed on. Unsafe when values that differ each fit the declared schema: they are parallel calls that lost their
    index, and are split into as many; and when members that follow a complete object make one object with it. In the
    history a call has one result, so of values that differ the first stays: unsafe.

    ## References
    - RFC 8259: a JSON text is one value
    - Anthropic, Streaming messages: input JSON delta
    - OpenAI, Chat streaming: `delta.tool_calls[].index`
    """

    code = "AR401"
    name = "concatenated-json"
    severity = "error"
    layer = "gateway"
    ignored_fields = frozenset({"stream_options"})
    requires_in_request = frozenset({"history"})
    requires_in_reply = frozenset({"calls"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        refused = exchange.status is not None and 400 <= exchange.status < 500
        for found in past_damage(exchange):
            if found.glued:
                yield self.finding(
                    "request",
                    f"{found.name}: in the history the arguments are {found.words}",
                    found.call.pointer,
                    severity="error" if refused else "warning",
                    fix=Fix(found.safety, f"write them as {excerpt(found.right)}") if found.right else None,
                )

    def mend(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[RequestFix]:
        for found in past_damage(exchange):
            if found.glued and found.right is not None and permit.allows(self.code, found.safety):
                where, before = found.call.pointer, found.call.arguments.text
                yield (
                    (found.edit,),
                    self.repair("request", found.safety, found.done, where, before=before, after=found.right),
                )

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

        yield from self._announced(exchange.reply)

    def _announced(self, reply: Reply) -> Iterator[Finding]:
        """Calls of OpenAI's Responses that were announced with arguments, to which clients append the deltas."""
        calls = {call.pointer: call for choice in reply.choices for call in choice.calls}
        for fault in reply.faults:
            place, _, given = fault.detail.partition(" ")
            if fault.kind == "repeated-start" and (call := calls.get(place)) is not None:
                yield self.finding(
                    "response",
                    f"{call.name or 'a call without a name'}: the item is added with the arguments {excerpt(given, 60)}, "
                    "and the deltas bring them again",
                    place,
                    event=fault.event,
                    fix=Fix("safe", "add the item with empty arguments"),
                )

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        unglue = Unglue(self, context)
        if not context.streamed or not context.permit.allows(self.code, "safe"):
            return unglue

        def emptied(start: Start) -> None:
            title = f"{start.name or 'a call without a name'}: emptied the arguments that the item was added with"
            number = start.frame.number if start.frame is not None else None
            context.repairs.append(
                self.repair("response", "safe", title, start.pointer, event=number, before=start.given)
            )

        def repaired(start: Start, second: Delta) -> None:
            title = f"{start.name or 'a call'}: passed on what each delta adds"
            event = second.frame.number if second.frame is not None else None
            made = self.repair("response", "safe", title, start.pointer, event=event, before=second.text)
            context.repairs.append(made)

        starts = (EmptyStarts(emptied),) if context.exchange.api == "openai.responses" else ()
        return Chained(unglue.phase, *starts, Increments(context, repaired), unglue)


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
        case "grow":
            return f"each delta repeats all arguments before it: {shown}"
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
