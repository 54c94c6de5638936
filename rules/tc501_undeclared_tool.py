from __future__ import annotations

import json
from collections.abc import Iterator

from wirelint.arguments.tool_names import Match, match
from wirelint.events import Start
from wirelint.fix import AppliedFix
from wirelint.fixes.chained import Chained
from wirelint.fixes.names import Names, Rename, TakeOut, farewell, joined_name
from wirelint.fixes.split_parallel_calls import FanOut, Use, uses, wraps
from wirelint.model import Exchange, Request, ToolCall
from wirelint.rule import Finding, Fix, Layer, RewriteContext, Rewriter, Rule, Safety, excerpt
from wirelint.state.ledger import Ledger


class UndeclaredTool(Rule):
    """A call names a tool that the request does not declare.

    ## What it does
    Compares the name of every call with the tools that this very request offers. A name that differs by case, by a
    namespace that models are trained with (`functions.`, `default_api.`, `mcp__server__`), by markup that stuck to it, or
    that stands there twice, is matched to the tool it means.

    ## Why is this bad?
    The client has no such tool. It answers with an error, ends the turn, or raises; a model that sees tools from its
    history or its training goes on calling them.

    ## Example
    The request declares `bash`; the reply calls `functions.bash`.

    ## False positives
    Silent for tools that the provider runs, and where tools can come from elsewhere than the request (tool search, remote
    MCP servers, namespaces). Vendor-defined client tools (`bash_20250124`) count under the name they were given.

    ## Fix safety
    Safe: the right name, where it is certain. Unsafe: a name that only probably means a tool; in the place of a
    `multi_tool_use.parallel` the calls that it wraps, if all of them are of declared tools; and taking a call out that no
    client can run. A sentence in the text then says which call was taken out and which tools there are.

    ## References
    - OpenAI, Anthropic: tools are those of the request
    - Moonshot AI, K2 Vendor Verifier: calls of tools that are only in the history
    """

    code = "TC501"
    name = "undeclared-tool"
    severity = "error"
    layer = "model"
    needs = frozenset({"tools"})
    requires_in_reply = frozenset({"calls"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not exchange.ok or not _knows_all_tools(request):
            return
        for choice in reply.choices:
            for call in choice.calls:
                joined = joined_name([piece.name for piece in call.pieces]) or call.name or ""
                if call.name and not _is_known(call.name, joined, request):
                    yield self._finding(call, call.name, joined, request)

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        request = context.exchange.request
        if request is None or not context.permit.allows(self.code, "safe") or not _knows_all_tools(request):
            return None
        names = [tool.name for tool in request.client_tools]

        def judge(start: Start, name: str, joined: str) -> Rename | TakeOut | None:
            if not name or _is_known(name, joined, request):
                return None
            meant = match(name, names) or match(joined, names)
            safety: Safety = "safe" if meant is not None and meant.certain else "unsafe"
            if not context.permit.allows(self.code, safety):
                return None
            shown = excerpt(joined)
            text = "" if meant is not None else farewell(joined, request)
            repair = self.repair(
                "response",
                safety,
                f"took the call of {shown} out" if meant is None else f"called {meant.name} what was called {shown}",
                start.pointer,
                event=start.frame.number if start.frame is not None and context.streamed else None,
                before=joined,
                after=text if meant is None else meant.name,
            )
            return TakeOut(text, repair) if meant is None else Rename(meant.name, repair)

        rewriter = Names(context, judge, lambda name: request.tool(name) is not None)
        if not context.permit.allows(self.code, "unsafe"):
            return rewriter

        def fanned(start: Start, written: str, inside: tuple[Use, ...]) -> AppliedFix:
            return self.repair(
                "response",
                "unsafe",
                f"made {_calls(inside)} of what {excerpt(start.name or '')} wrapped",
                start.pointer,
                event=start.frame.number if start.frame is not None and context.streamed else None,
                before=written,
                after="\n".join(f"{use.name}({json.dumps(use.arguments, ensure_ascii=False)})" for use in inside),
            )

        return Chained(2, FanOut(context, request, fanned), rewriter)

    def _finding(self, call: ToolCall, name: str, joined: str, request: Request) -> Finding:
        names = [tool.name for tool in request.client_tools]
        meant = match(name, names) or match(joined, names)
        shown = excerpt(joined)
        if wraps(name) and (inside := uses(call.arguments.value, request)):
            return self.finding(
                "response",
                f"{shown} is not declared; it wraps {_calls(inside)}",
                call.pointer,
                event=call.event,
                layer="model",
                fix=Fix("unsafe", f"make {_calls(inside)} of it"),
            )
        if meant is not None:
            message = f"{shown} is not declared; {meant.name} is, and the name has {meant.why}"
        elif not names:
            message = f"{shown} is called, and the request declares no tools"
        else:
            past = ", though the history calls it" if _was_called(name, request) else ""
            listed = excerpt(", ".join(names))
            declared = (
                f"the declared tool is {listed}" if len(names) == 1 else f"the {len(names)} declared are {listed}"
            )
            message = f"{shown} is not declared; {declared}{past}"
        return self.finding(
            "response", message, call.pointer, event=call.event, layer=_layer(name, meant), fix=_fix(shown, meant)
        )


def _is_known(name: str, joined: str, request: Request) -> bool:
    """Whether there is a tool of this name; a name may come in pieces, which clients join."""
    return request.tool(name) is not None or request.tool(joined) is not None or _is_hosted(name, request)


def _knows_all_tools(request: Request) -> bool:
    """Whether the tools that were read are all there are; a declaration in a shape that was not understood hides some."""
    declared = any(request.body.get(name) for name in ("tools", "functions", "toolConfig", "tool_config"))
    return request.tools_known and (bool(request.tools) or not declared)


def _is_hosted(name: str, request: Request) -> bool:
    """Whether a name belongs to a tool of the provider: `web_search`, `bash_code_execution`, `browser.open`, `python`."""
    if request.hosted and not request.client_tools:
        return True  # whatever this is, the client did not ask for it
    hosted = [tool.name for tool in request.tools if tool.hosted]
    family, dot, _ = name.partition(".")
    return any(
        name == other
        or name.endswith(f"_{other}")
        or (dot and other.startswith(family))
        or (family == "python" and "code" in other)
        for other in hosted
    )


def _was_called(name: str, request: Request) -> bool:
    return any(call.name == name for message in request.messages for call in message.calls)


def _layer(name: str, meant: Match | None) -> Layer:
    """Markup and native namespaces are for the server's parser to take off; everything else the model wrote."""
    return (
        "gateway" if meant is not None and meant.why in ("markup in it", "a prefix", "itself twice in it") else "model"
    )


def _fix(shown: str, meant: Match | None) -> Fix:
    if meant is None:
        return Fix("unsafe", f"take the call of {shown} out")
    return Fix("safe" if meant.certain else "unsafe", f"call it {meant.name}")


def _calls(inside: tuple[Use, ...]) -> str:
    named = ", ".join(dict.fromkeys(use.name for use in inside))
    return f"a call of {named}" if len(inside) == 1 else f"{len(inside)} calls of {named}"
