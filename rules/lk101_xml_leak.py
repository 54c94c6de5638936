from __future__ import annotations

from collections.abc import Iterator

from wirelint.apis.traits import ending, is_raw
from wirelint.fixes.history import cleanings, leaky
from wirelint.fixes.promote_markup import Promoter
from wirelint.model import Exchange, Reasoning, Refusal, Request
from wirelint.rule import Finding, Fix, FixPolicy, RequestFix, RewriteContext, Rewriter, Rule, Severity, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text.markup import Leak, blame, leaks, promises_call


class XmlLeak(Rule):
    """A tool call stands in the text in a model's native markup.

    ## What it does
    Reads the text, the reasoning and the refusal of every candidate for tool calls in the notation that models were
    trained on (special tokens, XML-like tags, JSON in tags), whole, damaged or cut off. The texts of earlier turns in the
    history of a request are read likewise.

    ## Why is this bad?
    A server was to turn this markup into structured calls. Where that fails, the client takes it for prose: the call is
    never made, the user sees markup, and once it stands in the history the model writes it again.

    ## Example
    The text of a reply is `<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>`, it ends with
    `"finish_reason": "stop"`, and `get_weather` is declared.

    ## False positives
    Silent when the markup is quoted (code, block quotes), when it stands in arguments or tool results, when a prompt or a
    user asked for it and no such tool is declared, for plain tags where no tools are in play, and for a draft in the
    thinking that is followed by the same call. A reply that is one code fence around a call of a declared tool is reported
    with low confidence. Thinking that holds a call while the answer goes another way is a warning with low confidence.

    ## Fix safety
    Unsafe: the client will run a call that it would not have run. Offered when every call is complete and names a declared
    tool, `tool_choice` allows calls, and the reply has no structured ones; those make the markup a duplicate, which may
    only be dropped. Markup of more than 64 KiB stays: a stream is not held back longer. In a stream the calls follow at the
    end, when it is sure that no others come. In a history markup becomes calls only where as many results behind it answer
    no call; elsewhere nothing shows that it was run, and it stays.

    ## References
    - the chat templates that vendors publish with their models
    - Moonshot AI, Tool calling guidance for Kimi K2
    - vLLM and SGLang, tool-call parsers
    """

    code = "LK101"
    name = "xml-leak"
    severity = "error"
    layer = "gateway"
    ignored_fields = frozenset({"stream_options"})

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        request = context.exchange.request
        if request is None or not request.client_tools or is_raw(request.api, request):
            return None
        return Promoter(context, request, self.repair) if context.permit.allows(self.code, "unsafe") else None

    def mend(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[RequestFix]:
        if not permit.allows(self.code, "unsafe"):
            return
        for cleaning in cleanings(exchange):
            if not (cleaning.answers or permit.clean_history):
                continue  # servers take such a history, and its repair costs their prompt cache
            called = excerpt(", ".join(cleaning.names))
            title = (
                f"made calls of the markup that the results behind it answer: {called}"
                if cleaning.answers
                else f"dropped markup of calls that the message makes structurally: {called}"
            )
            yield cleaning.edits, self.repair("request", "unsafe", title, cleaning.pointer, before=cleaning.markup)

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        for found, cleaning in leaky(exchange):
            leak = found[0]
            names = excerpt(", ".join(dict.fromkeys(name for one in found for name in one.names))) or "a tool"
            promoted = cleaning is not None and bool(cleaning.answers)
            yield self.finding(
                "request",
                f"a call of {names} stands in the history as {leak.dialect} markup; models write it again",
                leak.part.pointer,
                span=leak.span,
                severity="warning",
                confidence="low" if leak.draft else leak.certainty,
                fix=Fix("unsafe", "make calls of it, which the results behind it answer") if promoted else None,
            )

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.request is None:
            return
        for leak in leaks(exchange):
            start, _ = leak.span
            yield self.finding(
                "response",
                _message(leak, exchange.request),
                leak.part.pointer,
                event=None if isinstance(leak.part, Refusal) else leak.part.event_at(start),
                span=leak.span,
                fix=_fix(leak),
                severity=_severity(leak),
                confidence="low" if leak.draft else leak.certainty,
                layer=blame(leak, exchange.model),
            )


def _severity(leak: Leak) -> Severity:
    if leak.draft and leak.choice.calls:
        return "info"
    certain = leak.declared and not (leak.draft or leak.duplicate or leak.fenced) and leak.certainty != "low"
    return "error" if certain else "warning"


def _fix(leak: Leak) -> Fix | None:
    if leak.promotable:
        call = "a call" if len(leak.calls) == 1 else f"{len(leak.calls)} calls"
        return Fix("unsafe", f"promote to {call} of {excerpt(', '.join(leak.names))}")
    if leak.duplicate and leak.declared and not isinstance(leak.part, Reasoning):
        return Fix("unsafe", "drop the markup")
    return None


def _message(leak: Leak, request: Request) -> str:
    where = {"Text": "text", "Reasoning": "reasoning", "Refusal": "refusal"}[type(leak.part).__name__]
    called = excerpt(", ".join(leak.names))
    if not leak.calls:
        start, end = leak.span
        said = (
            f"remains of tool-call markup ({leak.dialect}) stand in the {where}: {excerpt(leak.part.text[start:end])!r}"
        )
    else:
        stand = "stands" if len(leak.calls) == 1 else "stand"
        said = f"{_count(leak)} of {called} {stand} in the {where} as {leak.dialect} markup"
    return "; ".join((said, *_circumstances(leak, request)))


def _count(leak: Leak) -> str:
    return "a call" if len(leak.calls) == 1 else f"{len(leak.calls)} calls"


def _circumstances(leak: Leak, request: Request) -> Iterator[str]:
    if leak.fenced:
        yield "a code fence around it is all there is"
    if leak.calls and not leak.complete:
        length = ending(leak.choice.finish_reason) == "length"
        yield "cut off by the length limit" if length else "it is cut off or cannot be read"
    if leak.calls and not leak.declared:
        yield "no such tool is declared"
    if request.tool_choice.mode == "none":
        yield "tool_choice forbids calls"
    if leak.duplicate:
        yield "a duplicate: the same is also called structurally"
    elif leak.choice.calls:
        yield "structured calls stand beside it"
    elif leak.draft:
        yield "the answer goes on without it"
    elif promises_call(leak.choice):
        yield f"the finish reason promises a call ({leak.choice.finish_reason})"
