from __future__ import annotations

from collections.abc import Iterator, Sequence

from wirelint.apis.traits import ended_by_itself, has_stop_words
from wirelint.model import Choice, Exchange, HostedCall, HostedResult, Opaque, Refusal, Request, ToolCall
from wirelint.rule import Finding, Rule, excerpt, listed
from wirelint.state.ledger import Ledger
from wirelint.text.markup import call_spans

_UNREAD = frozenset({"broken-json", "split-json", "cut-event"})


class ToolChoiceViolation(Rule):
    """The reply violates the request's settings for tool calls.

    ## What it does
    Reports a candidate without a call where one was required or named, with another tool than the named or allowed
    ones, with any call where calls were forbidden, and with several where parallel calls were off. The settings of all
    APIs count: `tool_choice` with its `allowed_tools`, `function_call`, `parallel_tool_calls`, Anthropic's
    `disable_parallel_tool_use`, Gemini's `mode` and `allowedFunctionNames`, Converse's `toolChoice`.

    ## Why is this bad?
    Clients rely on these settings: they read structured output from the arguments of a forced call, cannot run calls
    that they forbade, and must not run some tools at once.

    ## Example
    The request says `"tool_choice": "required"`; the reply is `{"content": "It is sunny."}` and ends with `stop`.

    ## False positives
    A missing call is no violation when a token limit, a filter, a stop sequence or an error cut the reply, when it is a
    refusal, or when the call is in the text as native markup (`xml-leak`). A call of a provider's tool fulfils
    `required`. Silent where not all tools are known, and on calls without a name.

    ## Fix safety
    Reported only: a call cannot be invented, and the intended one of several is unknown.

    ## References
    - OpenAI, Function calling: `tool_choice`, `parallel_tool_calls`
    - Anthropic, Tool use: `tool_choice`, `disable_parallel_tool_use`
    - Google, Gemini API, Function calling modes
    - AWS, Converse: `ToolChoice`
    """

    severity = "warning"
    layer = "gateway"
    needs = frozenset({"request"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not exchange.succeeded:
            return
        asked = request.tool_choice
        if asked.mode == "auto" and not asked.names and request.parallel_tool_calls is not False:
            return
        for choice in reply.choices if not any(fault.kind in _UNREAD for fault in reply.faults) else ():
            yield from self._judge(exchange, request, choice)

    def _judge(self, exchange: Exchange, request: Request, choice: Choice) -> Iterator[Finding]:
        asked = request.tool_choice
        calls = [call for call in choice.calls if call.name]
        allowed = (asked.name,) if asked.mode == "named" and asked.name else asked.names
        others = [call for call in calls if allowed and call.name not in allowed]
        if asked.mode == "none":
            if calls:
                message = f"calls were forbidden, and the reply calls {_names(calls)}"
                yield self.finding("response", message, calls[0], severity="error")
            return
        if others:
            message = f"only {_quoted(allowed)} may be called, and the reply calls {_names(others)}"
            yield self.finding("response", message, others[0])
        if not choice.calls and asked.mode in ("required", "named") and _lacks_call(exchange, request, choice):
            wish = f"a call of `{excerpt(asked.name or '')}`" if asked.mode == "named" else "a call"
            shown = f"only text: {excerpt(choice.text)!r}" if choice.text.strip() else "no text either"
            message = f"{wish} was required, and the reply ends with {choice.finish_reason!r} and holds none; {shown}"
            yield self.finding("response", message, choice)
        if request.parallel_tool_calls is False and len(calls) > 1:
            message = f"parallel calls were turned off, and the reply holds {len(calls)}: {_names(calls)}"
            yield self.finding("response", message, calls[1])


def _lacks_call(exchange: Exchange, request: Request, choice: Choice) -> bool:
    """Return True if a candidate could have held a call and has none in any form."""
    if not ended_by_itself(choice) or has_stop_words(request) or exchange.end == "client-left" or not request.tools:
        return False
    if any(isinstance(part, HostedCall | HostedResult | Refusal | Opaque) for part in choice.parts):
        return False
    named = request.tool(request.tool_choice.name)
    if request.tool_choice.mode == "named" and (named is None or named.hosted):
        return False  # the named tool is not declared, or leaves no trace in the reply
    return not any(True for text in (choice.text, choice.reasoning) if text for _ in call_spans(text, request))


def _names(calls: Sequence[ToolCall]) -> str:
    return _quoted([call.name or "" for call in calls])


def _quoted(names: Sequence[str]) -> str:
    return listed([f"`{excerpt(name, 40)}`" for name in names], 4)
