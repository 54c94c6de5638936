from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirelint.history.handed_back import Back, Retelling, handed_back, retelling
from wirelint.model import Exchange
from wirelint.rule import Finding, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.state.mcp_ledger import Passed

_REDACTED = "[redacted:"


class AlteredResult(Rule):
    """A result in the history is not what the MCP server answered.

    ## What it does
    Compares the results that a request hands to the model for the first time with what the MCP server answered to the
    same call on this wire, by their words and numbers. Reports results in which others stand for them, results of which
    nothing is left, and results of which a part is missing without a word about it.

    ## Why is this bad?
    The model reasons from what it is shown. Whoever looks at the server's log sees another answer, and looks for the
    fault in the model.

    ## Example
    The server answers `214 orders, 3 open`. The history says `14 orders, 3 open`.

    ## False positives
    Silent where all words of the answer are there, whatever was put around them (other JSON, XML, notes, line numbers),
    on truncation, redaction and clearing that the text itself speaks of, on results that say that the call failed, on
    answers with images, and when any of several equal calls was answered so.

    ## Fix safety
    Reported only: what the server said was not meant for the model in that form, as far as anybody here knows.

    ## References
    - Model Context Protocol, Tools: tool result
    """

    code = "MC805"
    name = "altered-result"
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
            if _REDACTED in back.result.text or back.result.is_error is True:
                continue
            told = [(retelling(back.result.text, one.text), one) for one in passed]
            if any(how in ("same", "marked") for how, _ in told) or _admits(back, passed):
                continue
            yield self._differs(back, *told[-1])

    def _differs(self, back: Back, how: Retelling, passed: Passed) -> Finding:
        given, shown = excerpt(passed.text, 80), excerpt(back.result.text, 80)
        told = {
            "lost": f"nothing is left of it: {shown!r}",
            "shortened": f"a part of it is missing, and nothing says so: {shown!r}",
        }.get(how, f"the history says {shown!r}")
        return self.finding(
            "request",
            f"the MCP server answered {back.name} with {given!r}; {told}",
            back.result.pointer,
            severity="warning" if how == "shortened" else None,
            confidence="medium" if how == "shortened" else None,
        )


def _admits(back: Back, passed: Sequence[Passed]) -> bool:
    """Whether the history says that the call failed: of the call, not of what the server spoke of."""
    return back.admits and not any(back.takes_up(one.text) for one in passed)


def _is_known(one: Passed) -> bool:
    """Whether all that came of a call is text that can be compared, and no error."""
    return one.answered and one.whole and one.error is not True and bool(one.text.strip()) and _REDACTED not in one.text
