from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from wirelint.claims import evidence
from wirelint.claims.contradictions import contradictions, mcp_errors, misreported_errors
from wirelint.claims.evidence import facts
from wirelint.claims.pretended import pretended_output
from wirelint.fixes.cut_fabricated import FabricationCutter
from wirelint.history.handed_back import confirmed
from wirelint.model import Choice, Exchange, Reasoning, Request, Text
from wirelint.rule import REDACTED, Finding, Fix, RewriteContext, Rewriter, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text import prose
from wirelint.text.asking import asks_about_calls
from wirelint.text.fabricated_results import Invented, invented_result, lays_down

_AS_SERVED = ", as the MCP server answered"
_LONGEST_WORD = 3
_CUT = Fix("unsafe", "cut the fabricated result and the text after it")


class FabricatedResult(Rule):
    """A tool result is fabricated, or the text contradicts the real one.

    ## What it does
    Reports a reply in which the model wrote a tool result itself, in the notation of results (`<tool_response>`,
    `[TOOL_RESULTS]`, `Observation:` after an action, a message in the tool's name) or after a call in its own markup
    (`<x_function_calls>`, `<x_function_result>`; JSON of a call in tags of any name, and the tags of a result right
    after it), whatever tools are declared. The arguments of a declared tool are a call too; if only the form shows a
    result (`<do>{"room": 4}</do><done>yes</done>` and an answer), the finding is an info without a fix. A code block
    counts if it shows what a command printed that nobody ran, or an object with a value of the conversation and
    others that no text has, which the reply then tells as facts. Also reports a text that contradicts the results of
    its turn: a value that equals, rounds, converts or adds up none of theirs and takes the place of one (`13 °C` for
    `{"temp_c": -3}`), another date, time of day, id, version or URL, "nothing found" against hits or an error, "no
    errors" against `errors: 4`, "unlocked" against `{"locked": true}`, "on time" against `delay_min: 17`, "all in
    range" against a value outside its own bounds, a value, name, date, time or state of another row in a clause that
    names one row of a list (by a name, also one that another result gives, or by its date, also in a list below the
    name or in the sentences behind it), one of several objects by name, or one of several calls of a tool, one value
    of another row among several of a row, a line of a table or a list that alone gives another value than its row
    has, a row called the cheapest or the longest that is neither the first nor the last of its column, "seven of the
    eight are open" and "four dirty rooms" against five, a total, a mean or a number under the name of a column that
    is that of no rows, a report that tells nothing of a failure (every result is an error; the last result of an
    action has an error, a state such as `rejected`, a list or number of failures or a failed line) or tells its
    action as done, values of the one thing whose look-up failed, another test outcome or argument.

    ## Why is this bad?
    Conclusions from a fabricated result look exactly like those from a real one. An error retold as "nothing found"
    hides the fault from the user and the operator.

    ## Example
    The result of `search` is `{"total": 14, "hits": […]}`. The reply is `The search returned no results.`

    ## False positives
    Silent on markup in code or block quotes or that the user asked about, on code blocks if the user asks for JSON,
    an example or code, on values that follow from the results or are anywhere in the conversation, on ranges and on
    what is usual, on new values where the results have more than three numbers, unless two digits of one of them have
    changed places or one of five or more is another, on flags and states that a later result changed, on arguments
    that a result repeats, on counts other than of rows in a state or with a word in common, on the cheapest of a part
    ("with breakfast", "before noon"), on totals with another number of the conversation added or taken off, on
    narrowed denials ("no urgent mails"), on dates and times relative to today, in another time zone or beside a
    duration, on states that an action of the turn may have changed or that are expected, when one of several results
    supports the text, when the text admits the error, repeats its words or its reason, or tells of a part only, when
    another action succeeded after the failed one, and beside images and files. Results of more than 20,000 characters
    or 240 numbers and replies of more than 8,000 characters are not compared. Errors that an MCP server returned on
    this wire are `mcp-error-swallowed`.

    ## Fix safety
    Unsafe: a fabricated result is cut, with the text after it. Contradictions are reported only.

    ## References
    - The chat templates of the model families, for the notation of results
    - Yao et al., ReAct: Synergizing Reasoning and Acting in Language Models (2022)
    """

    severity = "error"
    layer = "model"

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not exchange.ok:
            return
        for choice in reply.choices:
            written = list(self._written(request, choice)) or list(self._shown(request, choice))
            yield from written or self._contradicted(request, choice, ledger)

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        request = context.exchange.request
        if request is None or not context.permit.allows(self.code, "unsafe"):
            return None

        return FabricationCutter(context, self.repair, partial(_fabricated, request))

    def _written(self, request: Request, choice: Choice) -> Iterator[Finding]:
        """Yield a finding on a result that the model wrote, in its text or else in its reasoning."""
        for kind in (Text, Reasoning):
            for part in choice.parts:
                if not isinstance(part, kind) or REDACTED in part.text:
                    continue
                found = _fabricated(request, part.text)
                if found is None:
                    continue
                visible, prose_marker = kind is Text and found.sure, found.marker.startswith("Observation")
                yield self.text_finding(
                    part,
                    (found.start, found.end),
                    f"the model fabricated a tool result: {excerpt(part.text[found.start : found.end], 90)!r}",
                    fix=_CUT if visible else None,
                    severity="error" if visible else "info" if prose_marker or not found.sure else "warning",
                    confidence="high" if visible else "medium" if found.sure and not prose_marker else "low",
                )
                return

    def _shown(self, request: Request, choice: Choice) -> Iterator[Finding]:
        """Yield a finding on a code block with the output of a tool that gave none."""
        if not request.shows_turn or choice.calls or choice.hosted or request.hosted:
            return
        for part in choice.parts:
            made = pretended_output(request, prose.read(part.text)) if isinstance(part, Text) else None
            if made is not None and isinstance(part, Text) and REDACTED not in part.text:
                yield self.text_finding(
                    part,
                    (made.start, made.end),
                    f"shows {excerpt(part.text[made.start : made.end], 80)!r}, but {made.against}",
                    severity=made.severity,
                    confidence=made.confidence,
                )
                return

    def _contradicted(self, request: Request, choice: Choice, ledger: Ledger) -> Iterator[Finding]:
        """Yield a finding on a statement that the results of this turn contradict."""
        if not request.has_history or not request.shows_turn or choice.calls or choice.hosted or request.hosted:
            return
        ran = evidence.ran(request.turn)
        known = facts(request, ran)
        if not known or any(REDACTED in fact.result.text for fact in known):
            return
        served = mcp_errors(request, ran, ledger)
        for part in choice.parts:
            if not isinstance(part, Text) or REDACTED in part.text:
                continue
            read = prose.read(part.text)
            # mcp-error-swallowed reports errors of MCP servers.
            reported = {(found.start, found.end) for found in misreported_errors(read, served, ran, request)}
            for found in contradictions(read, known, ran, request):
                if (found.start, found.end) in reported:
                    continue
                sure = {fact.result.pointer for fact in known} <= confirmed(request, ledger)
                against = f"{found.against}{_AS_SERVED if sure else ''}"
                yield self.text_finding(
                    part,
                    (found.start, found.end),
                    f"says {excerpt(part.text[found.start : found.end], 80)!r}, but {against}",
                    severity=found.severity,
                    confidence="high" if sure else found.confidence,
                )
                return


def _fabricated(request: Request, text: str) -> Invented | None:
    found = invented_result(text, tuple(tool for tool in request.tools if not tool.hosted))
    return found if found is not None and _is_fabrication(request, found) else None


def _is_fabrication(request: Request, found: Invented) -> bool:
    """Return True if a result of this form is fabricated: the request asks for none, and only the program would write
    it."""
    if _mentions(found.marker, evidence.last_words(request)):
        return False
    if found.pair is None:
        return found.called or _has_results(request, found.marker)
    texts = [message.text for message in request.messages if message.role != "assistant"]
    texts = [text for text in texts if any(_names(text, name) for name in found.pair)]
    return not asks_about_calls(request) and all(lays_down(text, found.marker) for text in texts)


def _names(text: str, name: str) -> bool:
    """Return True if a text holds the name of a tag: a short one, which is an ordinary word, in brackets or quotes."""
    return name in text if len(name) > _LONGEST_WORD else re.search(rf"[<\[/`\"']{re.escape(name)}\b", text) is not None


def _has_results(request: Request, marker: str) -> bool:
    """Return True if the model gets tool results: from the API, or by a protocol that the prompt defines."""
    if request.tools or any(message.calls or message.results for message in request.messages):
        return True
    return any(lays_down(message.text, marker) for message in request.messages if message.role != "assistant")


def _mentions(marker: str, words: str) -> bool:
    """Return True if the user mentions the marker outside a definition of its protocol."""
    name = marker.strip("<>[]|: \n").split(" ")[0]
    if name.startswith("Observation"):
        return "Observation" in words and "Action Input" not in words
    return name in words
