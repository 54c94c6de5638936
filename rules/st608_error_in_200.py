from __future__ import annotations

from collections.abc import Iterator

from wirelint.model import Exchange, Json
from wirelint.rule import Finding, Rule, excerpt
from wirelint.state.ledger import Ledger

_FAILED = frozenset({"error", "failed", "error_limit"})
"""Finish reasons for a failure of the provider (OpenRouter, Mistral, Responses, Cohere)."""
_SAID = (
    *("message", "msg", "detail", "error_message", "error_msg", "errorMessage", "errMsg", "status_msg", "Message"),
    *("error", "failure_reason"),
)
_CODES = ("type", "__type", "code", "status", "status_code", "error_code", "errorCode")


class ErrorIn200(Rule):
    """A response has status 200 and an error in its body or stream.

    ## What it does
    Reports a successful status with an error object: instead of the reply, beside it, in a candidate, or as an event of
    a stream. Known forms are `{"error": …}` as an object, a string or the whole document, Anthropic's `event: error`, a
    Responses reply that `failed`, an exception event of Bedrock, a failed `inference_status` of DeepInfra, the envelope
    `{"code": …, "msg": …, "success": false}`, and a finish reason that says only `error`.

    ## Why is this bad?
    Clients look at the status. Retries, fallbacks and alerts never start; the text before the error counts as the
    reply, and a body without text is empty or breaks the parser.

    ## Example
    The stream has sent `Let me th`, then comes `data: {"error":{"message":"Input length exceeds the maximum","code":400}}`.

    ## False positives
    Silent on failed statuses, on empty error members (`"error": null`), and on replies that explain their end in the
    API's own terms: a token limit, a content filter, a refusal, `incomplete`.

    ## Fix safety
    Reported only: the status has left.

    ## References
    - Anthropic, Streaming messages: error events
    - OpenRouter, Errors: mid-stream errors arrive with status 200
    - OpenAI, Responses: `response.failed`
    """

    severity = "error"
    layer = "gateway"
    requires_in_reply = frozenset({"more"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        reply = exchange.reply
        if reply is None or not exchange.ok:
            return
        if reply.error is not None:
            where = "in a stream" if reply.streamed else "in the body"
            begun = " that had begun to answer" if any(choice.parts for choice in reply.choices) else ""
            message = f"status {exchange.status}, and an error {where}{begun}: {_shown(reply.error)}"
            yield self.finding("response", message, event=reply.error_event)
            return
        for choice in reply.choices:
            if choice.finish_reason is not None and choice.finish_reason.lower() in _FAILED:
                ends = f"the reply ends with {choice.finish_reason!r}; nothing says what failed"
                yield self.finding("response", f"status {exchange.status}, and {ends}", choice)


def _shown(error: Json) -> str:
    """Return the message of an error, with its code if it has one."""
    if not isinstance(error, dict):
        return repr(excerpt(str(error)))
    inner: Json = error
    while isinstance(inner, dict):
        error = inner
        inner = next((value for name, value in error.items() if name == "error" or name.endswith("Exception")), None)
    text = next((error[name] for name in _SAID if isinstance(error.get(name), str) and error[name]), None)
    codes = [str(error[name]) for name in _CODES if isinstance(error.get(name), str | int) and error[name] != "error"]
    words = repr(excerpt(str(text), 120)) if text is not None else excerpt(str(dict(error)))
    return f"{words} ({excerpt(', '.join(dict.fromkeys(codes)), 60)})" if codes else words
