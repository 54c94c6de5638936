from __future__ import annotations

from collections.abc import Iterator

from wirelint.history.handed_back import compare_result, handed_back
from wirelint.model import Exchange
from wirelint.rule import REDACTED, Finding, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.state.mcp_ledger import Passed


class AlteredResult(Rule):
    """A result in the history differs from the MCP server's answer.

    ## What it does
    Compares each result that a request returns to the model for the first time with the MCP server's answer to the same
    call on this wire, by words and numbers. Reports results with other content, results with no content left, and
    results that lack a part without saying so.

    ## Why is this bad?
    The model reasons from the result that it sees. The server's log shows another answer, so people blame the model.

    ## Example
    The server answers `214 orders, 3 open`. The history says `14 orders, 3 open`.

    ## False positives
    Silent where all words of the answer are present in any wrapping (other JSON, XML, notes, line numbers), on
    truncation, redaction and clearing that the text mentions, on results that say that the call failed, on answers with
    images, and when any of several equal calls was answered so.

    ## Fix safety
    Reported only: the client may have changed the result on purpose.

    ## References
    - Model Context Protocol, Tools: tool result
    """

    severity = "error"
    layer = "client"
    requires_in_request = frozenset({"history"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.request is None or not ledger.tools:
            return
        for back in handed_back(exchange.request, ledger, exchange.conversation):
            passed = back.passed(ledger.tools)
            if not passed or not all(_is_known(one) for one in passed):
                continue
            if REDACTED in back.result.text or back.result.is_error is True:
                continue
            outcomes = [(compare_result(back.result.text, one.text), one) for one in passed]
            if any(how in ("same", "marked") for how, _ in outcomes):
                continue
            if back.admits and not any(back.takes_up(one.text) for one in passed):
                continue  # the history says that the call failed, in words that are not the server's
            how, answer = outcomes[-1]
            answered = f"the MCP server answered {back.name} with {excerpt(answer.text, 80)!r};"
            shown, place = repr(excerpt(back.result.text, 80)), back.result.pointer
            if how == "shortened":
                message = f"{answered} a part of it is missing, and nothing says so: {shown}"
                yield self.finding("request", message, place, severity="warning", confidence="medium")
            else:
                difference = "nothing is left of it:" if how == "lost" else "the history says"
                yield self.finding("request", f"{answered} {difference} {shown}", place)


def _is_known(one: Passed) -> bool:
    """Return True if the answer to a call is complete text and not an error."""
    return one.answered and one.whole and one.error is not True and bool(one.text.strip()) and REDACTED not in one.text
