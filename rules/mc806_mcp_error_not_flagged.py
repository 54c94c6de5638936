from __future__ import annotations

from collections.abc import Iterator

from wirelint.model import Exchange, ToolResult
from wirelint.rule import REDACTED, Finding, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text.error_texts import breaks_data, is_own_error


class McpErrorNotFlagged(Rule):
    """An MCP tool returns an error as an ordinary result.

    ## What it does
    Reports results of `tools/call` whose whole text is an error of the tool (a message that begins as one, a stack
    trace, an object with nothing but an error) and that do not say `isError: true`. An error text counts for any tool
    that answered with objects of common keys before, unless its arguments name a file, a page or a command.

    ## Why is this bad?
    Without the flag a failure counts as success, is not retried, and is retold as "nothing found".

    ## Example
    `{"content": [{"type": "text", "text": "Workspace 'north' does not exist"}]}`

    ## False positives
    Silent on texts that continue after the error, on tools that return foreign texts (files, logs, pages, commands,
    tests), on searches without hits, and on counts of errors.

    ## Fix safety
    Reported only.

    ## References
    - Model Context Protocol, Tools: error handling
    """

    severity = "warning"
    layer = "tool"
    confidence = "medium"
    channels = frozenset({"mcp"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not exchange.ok:
            return
        calls = {call.id: call for call in request.calls}
        for part in reply.parts:
            if not isinstance(part, ToolResult) or part.is_error is True or REDACTED in part.text:
                continue
            call = calls.get(part.call_id)
            name = call.name if call is not None else ledger.tools.called(exchange, part.call_id)
            given = call.arguments.mapping if call is not None else None
            if name is None:
                continue
            earlier = ledger.tools.answers(exchange, name)
            if is_own_error(part.text, name, given) or breaks_data(part.text, earlier, given):
                message = f"{name} gives an error as a result, without isError: {excerpt(part.text, 90)!r}"
                yield self.finding("response", message, part)
