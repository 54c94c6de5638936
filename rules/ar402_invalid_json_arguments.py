from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirelint.apis.traits import traits
from wirelint.arguments.argument_faults import claims_complete, concatenated, flaw
from wirelint.arguments.argument_repairs import repair_flaw, write_as_text
from wirelint.fixes.arguments import CompleteJson, history_faults
from wirelint.fixes.call_index import CallShapes
from wirelint.model import Choice, Exchange, Request, ToolCall
from wirelint.rule import REDACTED, Finding, Fix, Fixable, FixPolicy, RequestRule, RewriteContext, Rewriter
from wirelint.state.ledger import Ledger

_MISSHAPEN = {
    "outside": (
        "the name and the arguments of a call are outside of `function`, the only place where clients read them",
        "put the name and the arguments into `function`",
        "put the name and the arguments into `function`",
    ),
    "object": (
        "the arguments of a call arrive as JSON itself in a delta, and clients join text",
        "write the arguments as text",
        "wrote the arguments as text",
    ),
}
"""Per shape that the reader reports: the message, the fix, and the title of its record."""


class InvalidJsonArguments(RequestRule):
    """The arguments of a call are not a JSON object.

    ## What it does
    Reports a tool call whose arguments no JSON parser accepts (cut off, single quotes, trailing comma, raw line feed in
    a string), are JSON but not an object (encoded twice, array, null), are missing for a tool with required parameters
    or in a history, are an object where the API has text, or stand outside of `function` with the name.

    ## Why is this bad?
    Some clients raise and end the turn, some return the error to the model and pay for another attempt, some run the tool
    without arguments. Servers refuse a request with such a history.

    ## Example
    `{"name":"lookup","arguments":"{'city': 'Oslo', 'exact': True}"}`

    ## False positives
    Silent on an empty text in a reply, which several servers send for a tool without parameters (in a history it is an
    info), and on arguments that the finish reason (`length`, `max_tokens`, a content filter), a broken stream or an
    error explains. Several values in a row are `concatenated-json`.

    ## Fix safety
    Unsafe: the damage is undone. The result must fit the schema, and every key and value must be spelled in the
    original; nothing is left out but control tokens and tags of tool calls at the edges. Cut-off arguments stay. Safe:
    JSON where the API has text is written as text, and a name and arguments outside of `function` move there. In a
    history an empty value (`[]`, `null`, an empty text) becomes `{}`, an object encoded twice is unwrapped, and a call
    that passed here gets its own arguments back. Unsafe there: a bare value becomes that of the tool's only (required)
    parameter, and of an array of objects the first one stays.

    ## References
    - RFC 8259, The JavaScript Object Notation (JSON) Data Interchange Format
    - OpenAI, Function calling: the model does not always generate valid JSON
    """

    severity = "error"
    layer = "model"
    needs = frozenset({"arguments"})
    requires_in_request = frozenset({"history"})
    requires_in_reply = frozenset({"calls"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.reply is None:
            return
        for fault in exchange.reply.faults if exchange.ok else ():
            if fault.kind == "misshapen-call":
                pointer, _, how = fault.detail.partition(" ")
                event = fault.event if exchange.reply.streamed else None
                message, fix, _ = _MISSHAPEN[how]
                yield self.finding("response", message, pointer, event=event, layer="gateway", fix=Fix("safe", fix))
        for choice, call in exchange.calls:
            if claims_complete(exchange, choice, call):
                yield from self._check(exchange, choice, call)

    def faults(self, request: Request, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[Fixable]:
        return history_faults(self, exchange, ledger, concatenated=False)

    def rewriter(self, context: RewriteContext) -> Sequence[Rewriter]:
        if not context.permit.allows(self.code, "safe"):
            return (CompleteJson(self, context),)
        titles = {how: done for how, (_, _, done) in _MISSHAPEN.items()}
        return CallShapes(self, context, titles), CompleteJson(self, context)

    def _check(self, exchange: Exchange, choice: Choice, call: ToolCall) -> Iterator[Finding]:
        tool = exchange.request.tool(call.name) if exchange.request is not None else None
        found, name = flaw(call, tool), call.name or "a call without a name"
        if found is None:
            if call.start_input is not None and traits(exchange.api).has_only_strings and concatenated(call) is None:
                message = f"{name}: the arguments are JSON itself where the API has JSON as text"
                fix = write_as_text(call)
                yield self.finding("response", message, call, layer="gateway", severity="warning", fix=fix)
            return
        if REDACTED in call.arguments.text:
            return
        ending, size = (
            f", and the reply ends with {choice.finish_reason!r}" if found.cut else "",
            len(call.arguments.text),
        )
        yield self.finding(
            "response",
            f"{name}: the arguments are {found.words}{ending}",
            call,
            event=call.event_at(size - 1) if found.cut and size else None,
            layer=found.layer,
            severity="info" if found.harmless else None,
            fix=repair_flaw(call, found, tool),
        )
