from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

from wirelint.arguments.argument_faults import REDACTED, came_whole
from wirelint.arguments.argument_members import Gone
from wirelint.arguments.invented import Said
from wirelint.arguments.placeholders import refused
from wirelint.fixes.policy_fixes import Police, farewell
from wirelint.model import Exchange, Json, Part, Reply, Request, Rpc, Tool, ToolCall, ToolResult
from wirelint.policy import NO_POLICIES, Fault, Outcome, Policies, judge_arguments
from wirelint.rule import (
    Answer,
    Edit,
    Finding,
    Fix,
    FixPolicy,
    RequestFix,
    RewriteContext,
    Rewriter,
    Rule,
    Safety,
    Side,
    excerpt,
)
from wirelint.state.ledger import Ledger
from wirelint.text.error_texts import is_own_error
from wirelint.text.pointers import at, escaped


class PlaceholderArgument(Rule):
    """A value of a call stands in for one that the model did not know, or breaks an argument policy.

    ## What it does
    Looks at the arguments of every call for values that are inventions for their parameter: `default` for a workspace,
    `/path/to/config.json` for a file, `your_api_key`, `<project-id>`, `user@example.com`, the word `null` in quotes. Of a
    call to an MCP server it reports the argument that the server's own error refuses (`Unknown workspace: 'default'`): as
    a warning where the value is such an invention, else as info. It holds arguments to the policies of a `--policy` file
    too: what those who run a tool know of its arguments and nobody could tell from one exchange.

    ## Why is this bad?
    The model knows that there is such a parameter and not what its value is, so it writes one that looks right. The tool
    fails, or worse, finds nothing, and the answer says that there is nothing to be found.

    ## Example
    `{"name":"search_notes","arguments":"{\\"query\\":\\"invoices\\",\\"workspace\\":\\"default\\"}"}`

    ## False positives
    Silent where the value stands in the schema (default, enumeration, examples, description) or in what the user, a tool or
    the system said. Text, code, queries and patterns are not judged. What may be real after all is info of low confidence
    (`12345` for an id). Policies say what their file says.

    ## Fix safety
    Unsafe: the word for nothing becomes null where the schema takes it, or the argument goes where it need not be there.
    What argument policies do is as their file has it.

    ## References
    - OpenAI, Anthropic: guides to tool use, on models that guess parameters
    - README: Argument policies
    """

    code = "AR404"
    name = "placeholder-argument"
    severity = "warning"
    layer = "model"
    mends = frozenset({"mcp"})
    ignored_fields = frozenset({"stream_options"})
    requires_in_request = frozenset({"history"})
    requires_in_reply = frozenset({"more"})
    channels: ClassVar[frozenset[str]] = frozenset({"model", "mcp"})

    def __init__(self, policies: Policies = NO_POLICIES) -> None:
        self.policies = policies

    def under(self, policies: Policies) -> Rule:
        return PlaceholderArgument(policies)

    # --- replies of models ----------------------------------------------------------------------------------------------

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None:
            return
        if exchange.api == "mcp":
            yield from self._refused(request, reply)
            return
        said: Said | None = None
        for choice in reply.choices:
            for call in choice.calls:
                arguments = call.arguments.mapping if call.form != "custom" and call.name else None
                if not arguments or REDACTED in call.arguments.text or not came_whole(exchange, choice, call):
                    continue
                said = said or Said(request)
                for fault in self._hold(call, arguments, _declared(call, request), said).faults:
                    yield self._tell("response", fault, call, call.pointer)

    def _refused(self, request: Request, reply: Reply) -> Iterator[Finding]:
        """Arguments that a server of tools refuses by name."""
        calls = {call.id: call for message in request.messages for call in message.calls}
        for choice in reply.choices:
            for part in choice.parts:
                answered = _error(part, calls)
                if answered is None or REDACTED in answered[1]:
                    continue
                call, error = answered
                for found in refused(call.arguments.mapping or {}, error):
                    why = f", which is {found.sign.why}" if found.sign is not None else ""
                    yield self.finding(
                        "request",
                        f"{call.name}: the server refuses {found.name} {excerpt(found.value, 40)!r}{why}: "
                        f"{excerpt(error, 90)!r}",
                        f"{call.pointer}/arguments/{escaped(found.name)}",
                        severity=None if found.sign is not None else "info",
                        confidence=None if found.sign is not None else "low",
                    )

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        request = context.exchange.request
        if request is None:
            return None
        acting = [
            policy
            for policy in self.policies.policies
            if policy.action != "report" and context.permit.allows(self.code, policy.safety)
        ]
        may_void = context.permit.allows(self.code, "unsafe") and any(tool.schema for tool in request.client_tools)
        if not acting and not may_void:
            return None
        said = Said(request)

        def judge(
            call: ToolCall, arguments: dict[str, Json], tool: Tool | None, allowed: Callable[[Safety], bool]
        ) -> Outcome:
            return self._hold(call, arguments, tool if tool is not None and not tool.hosted else None, said, allowed)

        return Police(self, context, judge, lambda name: any(policy.covers(name) for policy in acting))

    def _hold(
        self,
        call: ToolCall,
        arguments: dict[str, Json],
        tool: Tool | None,
        said: Said | None,
        allowed: Callable[[Safety], bool] = lambda _: True,
    ) -> Outcome:
        return judge_arguments(call.name or "", arguments, tool, self.policies, said, allowed)

    # --- calls on their way to the servers of tools -------------------------------------------------------------------

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        for call, arguments in self._asked(exchange):
            for fault in self._hold(call, arguments, None, None).faults:
                # A request is sent or not; there is nothing that could be sent in its place.
                told = fault if not fault.blocks else None
                yield self._tell("request", fault, call, f"{call.pointer}/arguments", fixable=told is not None)

    def mend(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[RequestFix]:
        for call, arguments in self._asked(exchange):
            outcome = self._hold(call, arguments, None, None, lambda safety: permit.allows(self.code, safety))
            if outcome.blocked is not None or not outcome.changes:
                continue
            edits = list(_edits(exchange, f"{call.pointer}/arguments", arguments, outcome))
            for number, fault in enumerate(outcome.made):
                place = f"{call.pointer}/arguments"
                done = self.repair("request", fault.safety or "unsafe", f"{call.name}: {fault.done}", place)
                yield (edits if not number else [], done)

    def answer(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Answer | None:
        blocked = [
            (call, why)
            for call, arguments in self._asked(exchange)
            if (why := self._hold(call, arguments, None, None, lambda safety: permit.allows(self.code, safety)).blocked)
        ]
        if not blocked or exchange.request is None:
            return None
        answers = [_answer(exchange.request.body, call, farewell(call.name or "", why)) for call, why in blocked]
        first = blocked[0][0]
        names = ", ".join(dict.fromkeys(call.name or "" for call, _ in blocked))
        title = f"{names}: answered the call in the place of the server"
        repair = self.repair("request", "unsafe", title, first.pointer, before=first.arguments.text)
        if "jsonrpc" in exchange.request.body:
            return Answer(answers[0], repair)
        gone = {call.pointer.split("/")[1] for call, _ in blocked}
        edits = [Edit("remove", f"/{number}") for number in exchange.request.body if number in gone]
        return Answer(answers, repair, edits if len(gone) < len(exchange.request.body) else ())

    def _asked(self, exchange: Exchange) -> Iterator[tuple[ToolCall, dict[str, Json]]]:
        """The calls that a request hands to a server of tools, where policies are in force."""
        if not self.policies or exchange.api != "mcp" or exchange.request is None:
            return
        for message in exchange.request.messages:
            for call in message.calls:
                arguments = call.arguments.mapping
                if arguments is not None and call.name and REDACTED not in call.arguments.text:
                    yield call, arguments

    def _tell(self, side: Side, fault: Fault, call: ToolCall, pointer: str, *, fixable: bool = True) -> Finding:
        return self.finding(
            side,
            f"{call.name}: {fault.message}",
            pointer,
            event=call.event,
            severity=fault.severity,
            confidence=fault.confidence,
            fix=Fix(fault.safety, fault.order) if fault.safety is not None and fixable else None,
        )


def _error(part: Part, calls: Mapping[str | None, ToolCall]) -> tuple[ToolCall, str] | None:
    """The call that failed by this part of a reply, and the text of its error."""
    if isinstance(part, ToolResult):
        call = calls.get(part.call_id)
        failed = call is not None and (
            part.is_error is True or is_own_error(part.text, call.name or "", call.arguments.mapping)
        )
        return (call, part.text) if call is not None and failed else None
    if isinstance(part, Rpc) and part.form == "error" and isinstance(part.value, dict):
        call, message = calls.get(part.id), part.value.get("message")
        return (call, message) if call is not None and isinstance(message, str) else None
    return None


def _answer(body: Mapping[str, Json], call: ToolCall, said: str) -> Json:
    """The result of a call that is blocked. `body` is a message, or a batch of them by their numbers."""
    message = body if "jsonrpc" in body else body.get(call.pointer.split("/")[1])
    asked = message.get("id") if isinstance(message, dict) else None
    result: Json = {"content": [{"type": "text", "text": said}], "isError": True}
    return {"jsonrpc": "2.0", "id": asked, "result": result}


def _declared(call: ToolCall, request: Request) -> Tool | None:
    tool = request.tool(call.name)
    return tool if tool is not None and not tool.hosted else None


def _edits(exchange: Exchange, place: str, arguments: dict[str, Json], outcome: Outcome) -> Iterator[Edit]:
    changes = outcome.changes or {}
    body = exchange.request.body if exchange.request is not None else None
    if not isinstance(at(body, place), dict):  # a call may leave them out when it has none
        yield Edit("replace", place, {key: value for key, value in changes.items() if not isinstance(value, Gone)})
        return
    for key, value in changes.items():
        pointer = f"{place}/{escaped(key)}"
        if not isinstance(value, Gone):
            yield Edit("replace", pointer, value)
        elif key in arguments:
            yield Edit("remove", pointer)
