from __future__ import annotations

from collections.abc import Iterator

from wirelint.apis.traits import ending, is_raw
from wirelint.fixes.history import leaky
from wirelint.fixes.promote_markup import MarkupPromoter
from wirelint.model import Exchange, Reasoning, Request
from wirelint.rule import Finding, Fix, Fixable, FixPolicy, RequestRule, RewriteContext, Rewriter, amount, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text.markup import Leak, blame, leaks, promises_call


class XmlLeak(RequestRule):
    """A tool call leaked into the text as native markup of the model.

    ## What it does
    Reads the text, the reasoning and the refusal of every candidate for tool calls in a notation that models are
    trained on (special tokens, XML-like tags, JSON in tags), whole, damaged or cut off, also over two adjacent texts.
    Reads the assistant's texts in the history too.

    ## Why is this bad?
    The server should have parsed this markup into structured calls. The client takes it for prose: the call never runs,
    the user sees markup, and the model imitates it from the history.

    ## Example
    The text of a reply is `<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>`, it ends with
    `"finish_reason": "stop"`, and `get_weather` is declared.

    ## False positives
    Silent on quoted markup (code, block quotes), in arguments and tool results, where a prompt or user asked for it and
    no such tool is declared, on plain tags without tools, and on a draft in the reasoning before an equal call. A reply
    that is one code fence, or one message in JSON, around a call of a declared tool has low confidence. Reasoning with
    a call that the answer does not make is a warning with low confidence.

    ## Fix safety
    Unsafe: the client will run a call that it would not have run. Offered when every call is complete and names a
    declared tool, `tool_choice` allows calls, and the reply has no structured calls; beside those the markup is a
    duplicate and is removed. Markup over 64 KiB stays, since a stream is not held back longer. In a stream the calls
    follow at the end. In a history, markup becomes calls where as many unmatched results follow it; beside equal calls,
    and before words of the user that say nothing of it, it is removed (`clean-history = false` keeps it).

    ## References
    - the chat templates that vendors publish with their models
    - Moonshot AI, Tool calling guidance for Kimi K2
    - vLLM and SGLang, tool-call parsers
    """

    severity = "error"
    layer = "gateway"
    request_safety = "unsafe"

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        request = context.exchange.request
        if request is None or not request.client_tools or is_raw(request.api, request):
            return None
        return MarkupPromoter(context, request, self.repair) if context.permit.allows(self.code, "unsafe") else None

    def faults(self, request: Request, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[Fixable]:
        for found, cleaning in leaky(exchange):
            leak, answers = found[0], cleaning is not None and cleaning.answers
            names = excerpt(", ".join(dict.fromkeys(name for one in found for name in one.names))) or "a tool"
            title = "turn it into calls, which later results answer" if answers else "drop the markup"
            finding = self.finding(
                "request",
                f"tool call {names} leaked into the history as {leak.dialect} markup; models imitate it",
                leak.part.pointer,
                span=leak.span,
                severity="warning",
                confidence="low" if leak.draft else leak.certainty,
                fix=Fix("unsafe", title) if cleaning is not None else None,
            )
            if cleaning is None or not (answers or permit.clean_history):
                yield finding, None
                continue
            done = "turned markup into calls, which later results answer"
            if not answers:
                how = "the message also holds structurally" if cleaning.duplicate else "never ran"
                done = f"dropped markup of calls that {how}"
            title = f"{done}: {excerpt(', '.join(cleaning.names))}"
            record = self.repair("request", "unsafe", title, cleaning.pointer, before=cleaning.markup)
            yield finding, (cleaning.edits, record)

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.request is None:
            return
        for leak in leaks(exchange):
            certain = leak.declared and not (leak.draft or leak.duplicate or leak.fenced) and leak.certainty != "low"
            yield self.text_finding(
                leak.part,
                leak.span,
                "; ".join(_words(leak, exchange.request)),
                fix=_fix(leak),
                severity="info" if leak.draft and leak.choice.calls else "error" if certain else "warning",
                confidence="low" if leak.draft else leak.certainty,
                layer=blame(leak, exchange.model),
            )


def _fix(leak: Leak) -> Fix | None:
    if leak.promotable:
        return Fix("unsafe", f"promote to {amount(len(leak.calls), 'call')} of {excerpt(', '.join(leak.names))}")
    if leak.duplicate and leak.declared and not isinstance(leak.part, Reasoning):
        return Fix("unsafe", "drop the markup")
    return None


def _words(leak: Leak, request: Request) -> Iterator[str]:
    """Yield the clauses of a message: the leak, and its circumstances."""
    where, called = type(leak.part).__name__.lower(), excerpt(", ".join(leak.names))
    if not leak.calls:
        shown = excerpt(leak.part.text[slice(*leak.span)])
        yield f"remains of tool-call markup ({leak.dialect}) in the {where}: {shown!r}"
    else:
        calls = f"tool call {called}" if len(leak.calls) == 1 else f"{len(leak.calls)} tool calls ({called})"
        yield f"{calls} leaked into the {where} as {leak.dialect} markup"
    if leak.fenced:
        in_json = leak.part.text.lstrip()[:1] in ("[", "{", '"')
        yield f"the reply is {'JSON' if in_json else 'one code fence'} around it"
    if leak.calls and not leak.complete:
        length = ending(leak.choice.finish_reason) == "length"
        yield "cut off by the length limit" if length else "it is cut off or cannot be read"
    if leak.calls and not leak.declared:
        yield "no such tool is declared"
    if request.tool_choice.mode == "none":
        yield "tool_choice forbids calls"
    if leak.duplicate:
        yield "a duplicate of a structured call"
    elif any(not call.is_empty for call in leak.choice.calls):
        yield "the reply has structured calls too"
    elif leak.draft:
        yield "the answer continues without it"
    elif promises_call(leak.choice):
        yield f"the finish reason promises a call ({leak.choice.finish_reason})"
