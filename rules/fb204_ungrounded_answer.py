from __future__ import annotations

from collections.abc import Iterator

from wirelint.claims import evidence
from wirelint.claims.toolkinds import abilities
from wirelint.claims.ungrounded import ungrounded
from wirelint.model import Exchange, Text
from wirelint.rule import REDACTED, Finding, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text import prose
from wirelint.text.markup import leaks


class UngroundedAnswer(Rule):
    """An answer states values that only a tool could know, and no tool ran.

    ## What it does
    Reports a reply without a tool call that states a value with a unit (`22 °C`, `$150.00`) if the user asked for what a
    declared tool finds out or about a thing with a number ("train 48213"), nothing ran since the user's message, and the
    value is nowhere in the conversation and no sum or conversion of its numbers. Several new values or times count whatever
    the tools are for, if they are of the present or of a thing with a code (`VT-31`), and so do new names in code about
    a thing of the user ("how does my branch look?"). If the user's message tells the model to use a tool, any new value or
    name counts.

    ## Why is this bad?
    The model made the value up, or remembers an old one. The user takes it for the result of the tool.

    ## Example
    `What's the weather in Paris?`, with the tool `get_weather`. The reply is `It is sunny and 22 °C in Paris.`

    ## False positives
    Silent on values that the conversation holds or that follow from its numbers, on ranges, estimates and what is usual
    ("usually 5 days"), where the user gives two amounts or more, from which the model may compute, on conversations
    with images or files, on refusals, on replies of more than 8,000 characters, and if a part of the conversation is on
    a server, where a tool may have run.

    ## Fix safety
    No fix: the value is unknown.

    ## References
    - Ji et al., Survey of Hallucination in Natural Language Generation (2023)
    """

    severity = "warning"
    layer = "model"
    requires_in_reply = frozenset({"tools"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, answers = exchange.request, evidence.answers(exchange)
        if request is None or not answers or evidence.anything_ran(request) or evidence.was_summarised(request):
            return
        if next(leaks(exchange), None) is not None:
            return  # the call is there, as text
        for choice in answers:
            for part in choice.parts:
                if not isinstance(part, Text) or REDACTED in part.text:
                    continue
                found = ungrounded(prose.read(part.text), request, abilities(request.tools))
                if found is not None:
                    said, tool = found
                    yield self.text_finding(
                        part,
                        (said.start, said.end),
                        f"says {excerpt(part.text[said.start : said.end], 90)!r}, which nothing in this conversation gives:"
                        f" {tool.name} is declared, and nothing ran since the user's message",
                        confidence="medium",
                    )
                    return
