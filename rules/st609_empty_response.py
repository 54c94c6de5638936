from __future__ import annotations

from collections.abc import Iterator

from wirelint.apis.traits import RAW_APIS, ended_by_itself, has_stop_words
from wirelint.model import Exchange, Request, Text
from wirelint.prices import tokens_of
from wirelint.rule import Finding, Rule
from wirelint.state.ledger import Ledger

_UNREAD = frozenset({"broken-json", "split-json", "cut-event", "after-end"})
_MIDDLES = ("<|fim", "<fim", "[SUFFIX]", "<PRE>", "<|repo_name|>", "<|file_sep|>")
"""Marks of prompts for infilling, whose answer may be empty."""
_SPOILED = frozenset({
    "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "malformed_model_output",
    "malformed_tool_use",
})  # fmt: skip
"""Finish reasons of a provider that could not parse the call and discarded it (Gemini, Converse)."""
_LOST = 3
"""Minimum number of counted tokens that prove lost content; some servers count the end token."""


class EmptyResponse(Rule):
    """A reply with status 200 is empty: no text, no reasoning, no call.

    ## What it does
    Reports a candidate that ended on its own, or whose call the provider could not parse, without text, reasoning, tool
    call, refusal or part of a provider's tool. White space counts as empty, and so does a reply without candidates. If
    the usage counts tokens that the reply does not contain, the message says so: then a parser of tool calls or of
    reasoning between model and client lost them.

    ## Why is this bad?
    The user sees nothing and the agent's loop ends as if all were done. Many clients add the empty message to the
    history, which some APIs then refuse.

    ## Example
    `{"choices":[{"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}`.

    ## False positives
    Silent when the request wanted nothing (`max_tokens` of 0 or 1, loading a model, infilling), when a token limit,
    content filter, refusal or stop sequence explains the end, when the stream was cut off (`truncated-stream`) or has
    an error (`error-in-200`), and on parts that are not text. Known habits are an info: Claude after a tool result that
    needs no comment, a reply that continues the assistant's own words, a request with stop words.

    ## Fix safety
    Reported only: a retry is the client's decision.

    ## References
    - Anthropic, Handling stop reasons: empty responses with `end_turn`
    - Google, Gemini API: candidates without content
    """

    severity = "warning"
    layer = "model"
    needs = frozenset({"reasoning"})
    requires_in_reply = frozenset({"more"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        """Yield a finding on a response without a body, which has no reply to check."""
        if exchange.status != 200 or exchange.reply is not None or exchange.request is None:
            return
        if exchange.response_headers.get("content-length") == "0" and not _may_be_empty(exchange.request):
            yield self.finding("response", "status 200, and an empty body", layer="gateway")

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if reply is None or request is None:
            return
        if not exchange.ok or reply.error is not None or not reply.finished or exchange.end == "client-left":
            return
        if any(fault.kind in _UNREAD for fault in reply.faults) or _may_be_empty(request):
            return
        counts = tokens_of(reply.usage)
        tokens = counts.output - counts.reasoning if counts is not None else 0
        counted = f"; the usage counts {tokens} tokens" if tokens >= _LOST else ""
        if not reply.choices:
            has_facts = reply.id or reply.model or (reply.streamed and reply.terminated)
            if has_facts and exchange.api != "openai.responses":
                last = max(reply.events - 1, 0) if reply.streamed else None
                yield self.finding("response", f"the reply holds no candidate at all{counted}", event=last)
        for choice in reply.choices:
            if not all(isinstance(part, Text) and part.text.isspace() for part in choice.parts):
                continue
            if ended_by_itself(choice) or choice.finish_reason in _SPOILED:
                habit = _habit(exchange.api, request)
                what = "nothing but white space" if choice.parts else "nothing: neither text nor reasoning nor a call"
                which = f"candidate {choice.index}" if len(reply.choices) > 1 else "the reply"
                yield self.finding(
                    "response",
                    f"{which} ends with {choice.finish_reason!r} and holds {what}{counted}{habit and f'; {habit}'}",
                    choice,
                    severity="info" if habit else None,
                    confidence="medium" if exchange.api in RAW_APIS else None,
                    layer="gateway" if counted and len(reply.choices) == 1 else None,
                )


def _may_be_empty(request: Request) -> bool:
    if request.max_tokens in (0, 1):
        return True
    if request.body.get("generate") is False or not request.parts:
        # A warm-up, a request to Ollama to load a model, or a conversation that the server keeps.
        return not request.is_partial
    prompt = request.messages[-1].text
    return request.api in RAW_APIS and (bool(request.body.get("suffix")) or any(mark in prompt for mark in _MIDDLES))


def _habit(api: str, request: Request) -> str:
    """Return a known reason for an empty reply, or an empty text."""
    last = request.messages[-1]
    if last.role == "assistant":
        return "it continues the assistant's own message"
    if last.results and (api == "anthropic.messages" or "claude" in request.model.lower()):
        return "Claude is known to have nothing to add to some tool results"
    if has_stop_words(request):
        return "the request has stop words, one of which may have come first"
    return ""
