from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar

from wirelint.arguments.argument_faults import Gone, claims_complete
from wirelint.arguments.placeholders import KnownText, named_parameters, refused
from wirelint.fix import Answer, Edit, FixPolicy, RequestFix, RewriteContext, Rewriter, Safety
from wirelint.fixes.arguments import PolicyRewriter, block_text
from wirelint.jsonvalues import mapping
from wirelint.model import Exchange, Json, Part, Reply, Request, Rpc, Tool, ToolCall, ToolResult
from wirelint.policy import NO_POLICIES, Fault, Outcome, Policies, judge_arguments
from wirelint.rule import REDACTED, Finding, Fix, Rule, Side, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text.error_texts import is_own_error
from wirelint.text.pointers import at, escaped


class PlaceholderArgument(Rule):
    """A call has a placeholder instead of a real value, or violates an argument policy.

    ## What it does
    Looks at the arguments of every call for placeholders: `default` for a workspace, `/path/to/config.json` for a
    file, `your_api_key`, `<project-id>`, `user@example.com`, the word `null` in quotes. For a call to an MCP server
    it reports the argument that the server's error names (`Unknown workspace: 'default'`): a warning for a
    placeholder, else an info; and a parameter that the error calls missing or unknown, as an info. It also applies
    the policies of a `--policy` file, which hold what operators know about the arguments of their tools.

    ## Why is this bad?
    The model knows that a parameter exists but not its value, and writes a plausible one. The tool fails or, worse,
    finds nothing, and the reply tells the user that nothing exists.

    ## Example
    `{"name":"search_notes","arguments":"{\\"query\\":\\"invoices\\",\\"workspace\\":\\"default\\"}"}`

    ## False positives
    Silent on values from the schema (default, enumeration, examples, description), from the user, a tool or the system
    prompt, and on text, code, queries and patterns. A value that may be real (`12345` for an id) is an info with low
    confidence. A breach of a policy is reported as the policy file defines it.

    ## Fix safety
    Unsafe: the word `null` becomes null where the schema allows it, or the argument is removed where it is optional.
    Argument policies apply the action in their file.

    ## References
    - OpenAI, Anthropic: guides to tool use, on models that guess parameters
    - README: Argument policies
    """

    severity = "warning"
    layer = "model"
    request_apis = frozenset({"mcp"})
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
        conversation: KnownText | None = None
        for choice, call in exchange.calls:
            arguments = call.arguments.mapping if call.form != "custom" and call.name else None
            if not arguments or REDACTED in call.arguments.text or not claims_complete(exchange, choice, call):
                continue
            conversation = conversation or KnownText(request)
            tool = _client_tool(request.tool(call.name))
            for fault in judge_arguments(call, arguments, tool, self.policies, conversation, lambda _: True).faults:
                yield self._report("response", fault, call, call.pointer)

    def _refused(self, request: Request, reply: Reply) -> Iterator[Finding]:
        """Yield findings on arguments that an MCP server refuses by name."""
        calls = {call.id: call for call in request.calls}
        for part in reply.parts:
            answered = _error(part, calls)
            if answered is None or REDACTED in answered[1]:
                continue
            call, error = answered
            arguments, place = call.arguments.mapping or {}, f"{call.pointer}/arguments"
            shown = repr(excerpt(error, 90))
            named = list(named_parameters(arguments, error))
            for name, is_given in named:
                message = f"{call.name}: the server {'does not know' if is_given else 'misses'} {name}: {shown}"
                at_name = f"{place}/{escaped(name)}" if is_given else place
                yield self.finding("request", message, at_name, severity="info", confidence="medium")
            for leaf, sign in refused({} if named else arguments, error):
                why = f", which is {sign.why}" if sign is not None else ""
                message = f"{call.name}: the server refuses {leaf.where} {excerpt(str(leaf.value), 40)!r}{why}: {shown}"
                at_name = "/".join([place, *(escaped(str(step)) for step in leaf.path)])
                if sign is not None:
                    yield self.finding("request", message, at_name)
                else:
                    yield self.finding("request", message, at_name, severity="info", confidence="low")

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        request = context.exchange.request
        if request is None:
            return None
        allows = partial(context.permit.allows, self.code)
        acting = [one for one in self.policies.policies if one.action != "report" and allows(one.safety)]
        may_void = allows("unsafe") and any(tool.schema for tool in request.client_tools)
        if not acting and not may_void:
            return None
        conversation = KnownText(request)

        def judge(
            call: ToolCall, arguments: dict[str, Json], tool: Tool | None, allowed: Callable[[Safety], bool]
        ) -> Outcome:
            return judge_arguments(call, arguments, _client_tool(tool), self.policies, conversation, allowed)

        return PolicyRewriter(self, context, judge, lambda name: any(policy.covers(name) for policy in acting))

    # --- calls on their way to MCP servers ------------------------------------------------------------------------------

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        for call, arguments in self._mcp_calls(exchange):
            for fault in self.policies.judge(call.name or "", arguments).faults:
                # A blocked request has no replacement.
                yield self._report("request", fault, call, f"{call.pointer}/arguments", fixable=not fault.blocks)

    def fix_request(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[RequestFix]:
        for call, arguments in self._mcp_calls(exchange):
            outcome = self.policies.judge(call.name or "", arguments, partial(permit.allows, self.code))
            if outcome.blocked is not None or not outcome.changes:
                continue
            place = f"{call.pointer}/arguments"
            edits = list(_edits(exchange, place, arguments, outcome.changes))
            for fault in outcome.made:
                yield edits, self.repair("request", fault.safety or "unsafe", f"{call.name}: {fault.done}", place)
                edits = []

    def answer(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Answer | None:
        allowed = partial(permit.allows, self.code)
        blocked: list[tuple[ToolCall, Fault]] = []
        for call, given in self._mcp_calls(exchange):
            if (why := self.policies.judge(call.name or "", given, allowed).blocked) is not None:
                blocked.append((call, why))
        if not blocked or exchange.request is None:
            return None
        answers = [_answer(exchange.request.body, call, block_text(call.name or "", why)) for call, why in blocked]
        first = blocked[0][0]
        names = ", ".join(dict.fromkeys(call.name or "" for call, _ in blocked))
        title = f"{names}: answered the call instead of the server"
        repair = self.repair("request", "unsafe", title, first.pointer, before=first.arguments.text)
        if "jsonrpc" in exchange.request.body:
            return Answer(answers[0], repair)
        gone = {call.pointer.split("/")[1] for call, _ in blocked}
        edits = [Edit("remove", f"/{number}") for number in exchange.request.body if number in gone]
        return Answer(answers, repair, edits if len(gone) < len(exchange.request.body) else ())

    def _mcp_calls(self, exchange: Exchange) -> Iterator[tuple[ToolCall, dict[str, Json]]]:
        """Yield the calls of a request to an MCP server, if policies apply."""
        for call in exchange.request.calls if self.policies and exchange.api == "mcp" and exchange.request else ():
            arguments = call.arguments.mapping
            if arguments is not None and call.name and REDACTED not in call.arguments.text:
                yield call, arguments

    def _report(self, side: Side, fault: Fault, call: ToolCall, pointer: str, *, fixable: bool = True) -> Finding:
        message, severity, confidence = f"{call.name}: {fault.message}", fault.severity, fault.confidence
        fix = Fix(fault.safety, fault.title) if fault.safety is not None and fixable else None
        return self.finding(side, message, pointer, event=call.event, severity=severity, confidence=confidence, fix=fix)


def _error(part: Part, calls: Mapping[str | None, ToolCall]) -> tuple[ToolCall, str] | None:
    """Return the call that failed according to this part of a reply, and the text of its error."""
    match part:
        case ToolResult(call_id=id_, text=error) if call := calls.get(id_):
            failed = part.is_error is True or is_own_error(error, call.name or "", call.arguments.mapping)
            return (call, error) if failed else None
        case Rpc(id=id_, error=str(error)) if call := calls.get(id_):
            return call, error
        case _:
            return None


def _answer(body: Mapping[str, Json], call: ToolCall, text: str) -> Json:
    """Return the JSON-RPC result of a blocked call. `body` is a message, or the messages of a batch by number."""
    message = body if "jsonrpc" in body else mapping(body.get(call.pointer.split("/")[1]))
    result: Json = {"content": [{"type": "text", "text": text}], "isError": True}
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}


def _client_tool(tool: Tool | None) -> Tool | None:
    return tool if tool is not None and not tool.hosted else None


def _edits(
    exchange: Exchange, place: str, arguments: Mapping[str, Json], changes: Mapping[str, Json | Gone]
) -> Iterator[Edit]:
    body = exchange.request.body if exchange.request is not None else None
    if not isinstance(at(body, place), dict):  # a call without arguments may omit them
        yield Edit("replace", place, {key: value for key, value in changes.items() if not isinstance(value, Gone)})
        return
    for key, value in changes.items():
        pointer = f"{place}/{escaped(key)}"
        if not isinstance(value, Gone):
            yield Edit("replace", pointer, value)
        elif key in arguments:
            yield Edit("remove", pointer)
