from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirelint.apis.openai_responses import BUILT_IN
from wirelint.arguments.argument_faults import claims_complete
from wirelint.arguments.schemas import match
from wirelint.fixes.calls import (
    CallHeads,
    EmptyCalls,
    Head,
    HeadChange,
    ParallelSplitter,
    joined_name,
    named_uses,
    removal_text,
    uses,
    wraps,
)
from wirelint.model import Choice, Exchange, Request, Text, ToolCall
from wirelint.rule import Finding, Fix, RewriteContext, Rewriter, Rule, Safety, excerpt
from wirelint.state.ledger import Ledger


class UndeclaredTool(Rule):
    """A call names a tool that the request does not declare, or none.

    ## What it does
    Compares the name of every call with the tools of this request. A name that differs in case, by a trained namespace
    (`functions.`, `default_api.`, `mcp__server__`), by attached markup, or by repetition is matched to the declared
    tool. Reports a call with neither a name nor arguments beside another call or after text, too.

    ## Why is this bad?
    The client returns an error, ends the turn, or raises; a model that remembers such a tool keeps calling it.

    ## Example
    The request declares `bash`; the reply calls `functions.bash`.

    ## False positives
    Silent on the provider's tools, and where tools may come from outside the request (tool search, remote MCP servers,
    namespaces, an agent or a preset on the server). Vendor-defined client tools (`bash_20250124`) count under their
    given name. A name may come in a later delta of a call.

    ## Fix safety
    Safe: the certain name. Unsafe: a probable name; the wrapped calls instead of `multi_tool_use.parallel`, if all
    their tools are declared; and the removal of a call that no client can run, with a sentence in the text that names
    the call and the declared tools. An empty call is removed without one, after text, or beside a call that has a name.

    ## References
    - OpenAI, Anthropic: tools are those of the request
    - Moonshot AI, K2 Vendor Verifier: calls of tools that are only in the history
    """

    severity = "error"
    layer = "model"
    needs = frozenset({"tools"})
    requires_in_reply = frozenset({"calls"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, remove = exchange.request, Fix("unsafe", "remove it")
        if request is None or not exchange.ok:
            return
        for choice, call in exchange.calls:
            if call.is_empty and _is_beside(choice, call) and claims_complete(exchange, choice, call):
                message = "a call without a name and arguments, which no client can run"
                yield self.finding("response", message, call, severity="warning", layer="gateway", fix=remove)
        for _, call in exchange.calls if _knows_all_tools(request) else ():
            joined = joined_name([piece.name for piece in call.pieces]) or call.name or ""
            if call.name and not _is_known(call.name, joined, request):
                yield self._finding(call, call.name, joined, request)

    def rewriter(self, context: RewriteContext) -> Sequence[Rewriter]:
        request = context.exchange.request
        if request is None or not context.permit.allows(self.code, "safe"):
            return ()
        heads = [self._heads(context, request)] if _knows_all_tools(request) else []
        if not context.permit.allows(self.code, "unsafe"):
            return heads
        splitters = [ParallelSplitter(self, context, request)] if heads else []
        return EmptyCalls(self, context), *splitters, *heads

    def _heads(self, context: RewriteContext, request: Request) -> CallHeads:
        """Return the rewriter that renames and removes calls of undeclared tools."""
        names = [tool.name for tool in request.client_tools]

        def judge(head: Head) -> HeadChange | None:
            start, name, joined = head.start, head.name, head.joined
            if not name or _is_known(name, joined, request) or _is_built_in(name, request):
                return None
            matched = match(name, names) or match(joined, names)
            safety: Safety = "safe" if matched is not None and matched.certain else "unsafe"
            if not context.permit.allows(self.code, safety):
                return None
            shown = excerpt(joined)
            if matched is None:
                title, text = f"removed the call of {shown}", removal_text(joined, request)
                self.record(context, safety, title, start.pointer, at=start, before=joined, after=text)
                return HeadChange("text", text)
            title = f"renamed the call of {shown} to {matched.name}"
            self.record(context, safety, title, start.pointer, at=start, before=joined, after=matched.name)
            return HeadChange("name", matched.name)

        def may_grow(name: str) -> bool:
            return bool(name) and any(tool.startswith(name) and tool != name for tool in names)

        return CallHeads(context, judge, lambda start: request.tool(start.name) is not None or None, 2, may_grow)

    def _finding(self, call: ToolCall, name: str, joined: str, request: Request) -> Finding:
        names = [tool.name for tool in request.client_tools]
        matched = match(name, names) or match(joined, names)
        shown = excerpt(joined)
        if wraps(name) and (inside := uses(call.arguments.value, request)):
            message, fix = f"{shown} is not declared; it wraps {named_uses(inside)}", f"unwrap {named_uses(inside)}"
            return self.finding("response", message, call, fix=Fix("unsafe", fix))
        fixed: Fix | None = Fix("unsafe", f"remove the call of {shown}")
        if matched is not None:
            message = f"{shown} is not declared; {matched.name} is, and the name has {matched.why}"
            fixed = Fix("safe" if matched.certain else "unsafe", f"rename the call to {matched.name}")
        elif not names:
            message = f"{shown} is called, and the request declares no tools"
        else:
            past = ", though the history calls it" if any(call.name == name for call in request.calls) else ""
            declared = "the declared tool is" if len(names) == 1 else f"the {len(names)} declared are"
            message = f"{shown} is not declared; {declared} {excerpt(', '.join(names))}{past}"
        # Markup and native namespaces are the server's to remove; the model wrote the rest.
        unparsed = matched is not None and matched.why in ("markup in it", "a prefix", "itself twice in it")
        fixed = None if _is_built_in(name, request) else fixed
        return self.finding("response", message, call, layer="gateway" if unparsed else None, fix=fixed)


def _is_beside(choice: Choice, call: ToolCall) -> bool:
    """Return True if text or a call with a name precedes an empty call, or such a call follows it at once."""
    place = choice.parts.index(call)
    if any(isinstance(part, Text) or (isinstance(part, ToolCall) and part.name) for part in choice.parts[:place]):
        return True
    after = choice.parts[place + 1] if place + 1 < len(choice.parts) else None
    return isinstance(after, ToolCall) and bool(after.pieces[0].name if after.pieces else after.name)


def _is_known(name: str, joined: str, request: Request) -> bool:
    """Return True if a tool of this name exists. A name may come in pieces, which clients join."""
    return request.tool(name) is not None or request.tool(joined) is not None or _is_hosted(name, request)


def _knows_all_tools(request: Request) -> bool:
    """Return True if all declared tools were read. A declaration of unknown shape may hide tools."""
    declared = any(request.body.get(name) for name in ("tools", "functions", "toolConfig", "tool_config"))
    return request.tools_known and (bool(request.tools) or not declared)


def _is_hosted(name: str, request: Request) -> bool:
    """Return True for a name of a provider's tool: `web_search`, `bash_code_execution`, `browser.open`, `python`."""
    if request.hosted and not request.client_tools:
        return True  # the client declared only the provider's tools
    hosted = [tool.name for tool in request.tools if tool.hosted]
    family, dot, _ = name.partition(".")
    return any(
        name == other
        or name.endswith(f"_{other}")
        or (dot and other.startswith(family))
        or (family == "python" and "code" in other)
        for other in hosted
    )


def _is_built_in(name: str, request: Request) -> bool:
    return request.api == "openai.responses" and name in BUILT_IN
