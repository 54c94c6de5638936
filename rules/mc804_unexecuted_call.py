from __future__ import annotations

from collections.abc import Iterator

from wirelint.history.handed_back import handed_back
from wirelint.model import Exchange
from wirelint.rule import REDACTED, Finding, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.state.mcp_ledger import digest_of


class UnexecutedCall(Rule):
    """A call has a result but never reached the MCP server of its tool.

    ## What it does
    Looks at results that a request returns to the model for the first time. If an MCP server on this wire listed the
    tool, and no `tools/call` that could be this call passed, the client invented the result.

    ## Why is this bad?
    The model answers from a result that no tool returned. Ids, arguments and formats are correct, so nothing else shows it.

    ## Example
    The server at `/mcp` has listed `search_wiki`. The history holds a call of `mcp__wiki__search_wiki` with the result
    `2 pages`; on the channel to the server nothing passed.

    ## False positives
    Silent on servers outside this wire or with unread traffic, on tools of an equal name with other parameters, on
    calls of earlier turns, on results that report a failure, a refusal or a cancellation, and where a call with other
    arguments may be this one.

    ## Fix safety
    Reported only.

    ## References
    - Model Context Protocol, Tools: calling tools
    """

    severity = "error"
    layer = "client"
    requires_in_request = frozenset({"history"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.request is None or not ledger.tools:
            return
        wire = ledger.tools
        fresh = list(handed_back(exchange.request, ledger, exchange.conversation))
        for back in fresh:
            serving = wire.serving(back.name, back.declared)
            if back.passed(wire) or not serving or not all(wire.is_read(served) for served in serving):
                continue
            if back.result.is_error is True or REDACTED in back.call.arguments.text + back.result.text or back.admits:
                continue
            others = {digest_of(one.call.arguments) for one in fresh if one is not back and one.name == back.name}
            later = [one for one in wire.passed(back.name, back.declared) if one.number > wire.earlier(back.call.id)]
            if any(one.digest not in others for one in later):
                continue  # it may have passed with other arguments: no other call of the history explains that one
            listed = all(wire.was_listed_before(served, back.call.id) for served in serving)
            shown = f"the result {excerpt(back.result.text)!r}" if back.result.text.strip() else "an empty result"
            never = f"no call of {serving[0].name} ever reached the MCP server at {serving[0].server}"
            message, place = f"{back.name} has {shown}, but {never}", back.result.pointer
            yield self.finding("request", message, place, confidence="high" if listed else "medium")
