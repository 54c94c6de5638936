from __future__ import annotations

from collections.abc import Iterator

from wirelint.claims import evidence
from wirelint.claims.contradictions import contradictions
from wirelint.claims.facts import facts
from wirelint.claims.mcp_errors import retold, served_errors
from wirelint.fixes.cut_fabricated import Editor
from wirelint.history.handed_back import confirmed
from wirelint.model import Choice, Exchange, Reasoning, Request, Text
from wirelint.rule import Finding, Fix, RewriteContext, Rewriter, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text import prose
from wirelint.text.fabricated_results import Invented, invented_result, lays_down

_REDACTED = "[redacted:"
_AS_SERVED = ", as the MCP server answered"
_CUT = Fix("unsafe", "cut the invented result and what follows it")


class FabricatedResult(Rule):
    """A tool result is made up, or the text contradicts the real one.

    ## What it does
    Reports a reply in which the model wrote a tool's result itself, in the notation in which results are handed to
    models (`<tool_response>`, `[TOOL_RESULTS]`, `Observation:` after an action, a message in the tool's name) or behind a
    call in markup of its own (`<x_function_calls>`, `<x_function_result>`), whatever is declared, and a
    reply whose text contradicts the results of its turn: nothing found against hits or against an error, a success
    against an error, a count, a test outcome or an argument that differs.

    ## Why is this bad?
    What follows from an invented result is invented too, and looks exactly like what follows from a real one. An
    error that is retold as "nothing found" hides the fault from everybody.

    ## Example
    The result of `search` is `{"total": 14, "hits": […]}`. The reply is `The search returned no results.`

    ## False positives
    Silent on markup in code or block quotes and on markup that the user has asked about, on counts that agree with
    any number of the results, on narrowed counts ("2 relevant articles", "none of them mentions it"), when one result
    of several supports the text, and when the text admits the error. The error of an MCP server, where the traffic
    shows it to be one, is left to the rule that follows it from the server to the model.

    ## Fix safety
    Cutting an invented result is unsafe: the text after it goes too. Contradictions are reported only.

    ## References
    - The chat templates of the model families, for the notation of results
    - Yao et al., ReAct: Synergizing Reasoning and Acting in Language Models (2022)
    """

    code = "FB202"
    name = "fabricated-result"
    severity = "error"
    layer = "model"

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not exchange.ok:
            return
        for choice in reply.choices:
            written = list(self._written(request, choice))
            yield from written or self._contradicted(request, choice, ledger)

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        request = context.exchange.request
        if request is None or not context.permit.allows(self.code, "unsafe"):
            return None

        def counts(found: Invented) -> bool:
            asked = _was_asked_about(found.marker, evidence.last_words(request))
            return not asked and (found.called or _has_results(request, found.marker))

        return Editor(context, self.repair, counts)

    def _written(self, request: Request, choice: Choice) -> Iterator[Finding]:
        """A result that the model wrote itself: in its text first, else in its reasoning."""
        for kind in (Text, Reasoning):
            for part in choice.parts:
                if not isinstance(part, kind) or _REDACTED in part.text:
                    continue
                found = invented_result(part.text)
                if found is None or _was_asked_about(found.marker, evidence.last_words(request)):
                    continue
                if not found.called and not _has_results(request, found.marker):
                    return
                spoken = kind is Reasoning and found.marker.startswith("Observation")
                yield self.finding(
                    "response",
                    f"the model wrote a tool result itself: {excerpt(part.text[found.start : found.end], 90)!r}",
                    part.pointer,
                    event=part.event_at(found.start),
                    span=(found.start, found.end),
                    fix=_CUT if kind is Text else None,
                    severity="error" if kind is Text else "info" if spoken else "warning",
                    confidence="high" if kind is Text else "low" if spoken else "medium",
                )
                return

    def _contradicted(self, request: Request, choice: Choice, ledger: Ledger) -> Iterator[Finding]:
        """A statement that the results of this turn contradict."""
        if not request.has_history or not request.shows_turn or choice.calls or choice.hosted or request.hosted:
            return
        ran = evidence.ran(request.turn)
        known = facts(request, ran)
        if not known or any(_REDACTED in fact.result.text for fact in known):
            return
        served = served_errors(request, ran, ledger)
        for part in choice.parts:
            if not isinstance(part, Text) or _REDACTED in part.text:
                continue
            read = prose.read(part.text)
            # An error of an MCP server that is retold has a rule of its own.
            told = {(found.start, found.end) for found in retold(read, served, ran, request)}
            for found in contradictions(read, known, ran, request):
                if (found.start, found.end) in told:
                    continue
                sure = {fact.result.pointer for fact in known} <= confirmed(request, ledger)
                against = f"{found.against}{_AS_SERVED if sure else ''}"
                yield self.finding(
                    "response",
                    f"says {excerpt(part.text[found.start : found.end], 80)!r}, but {against}",
                    part.pointer,
                    event=part.event_at(found.start),
                    span=(found.start, found.end),
                    severity=found.severity,
                    confidence="high" if sure else found.confidence,
                )
                return


def _has_results(request: Request, marker: str) -> bool:
    """Whether results are handed to the model at all: by the API, or by a protocol that the prompt lays down."""
    if request.tools or any(message.calls or message.results for message in request.messages):
        return True
    return any(lays_down(message.text, marker) for message in request.messages if message.role != "assistant")


def _was_asked_about(marker: str, words: str) -> bool:
    """Whether the user speaks of the marker, other than by laying down the protocol that it belongs to."""
    name = marker.strip("<>[]|: \n").split(" ")[0]
    if name.startswith("Observation"):
        return "Observation" in words and "Action Input" not in words
    return name in words
