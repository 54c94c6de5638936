from __future__ import annotations

from collections.abc import Iterator, Set

from wirelint.apis.traits import ending, is_foreign, traits
from wirelint.arguments.argument_faults import UNREAD, is_unstated
from wirelint.events import Finish, Frame
from wirelint.fixes.finish import MARKUP, FinishReasons, Held, without_calls
from wirelint.model import Choice, Exchange, Opaque, Reply, Request
from wirelint.rule import Finding, Fix, RewriteContext, Rewriter, Rule, excerpt
from wirelint.state.ledger import Ledger


class FinishReasonMismatch(Rule):
    """The finish reason contradicts the reply.

    ## What it does
    Reports a reply that holds calls and says `stop`, `end_turn`, `COMPLETE` or nothing at all (null, an empty text), and
    one that says `tool_calls`, `tool_use` or `TOOL_CALL` and holds no call. A reason that only other APIs have (`eos`, or
    `end_turn` in the shape of OpenAI) is mentioned as info; where it is the word for calls, beside calls, clients of this
    API do not know it, and it is a warning. Mentioned, too, is a `function_call` without name and arguments beside another
    end: it is no call.

    ## Why is this bad?
    Many clients decide by the reason alone: a call that ends with `stop` is never run and the agent halts without an error;
    a promised call that is not there makes it wait, loop or raise.

    ## Example
    `{"message":{"tool_calls":[…]},"finish_reason":"stop"}`

    ## False positives
    OpenAI answers `stop` when `tool_choice` names a function. Gemini, Ollama's own API and OpenAI's Responses end a reply
    with calls like any other, so there only a promised call can be missing. Any other reason (`length`, `content_filter`,
    `pause_turn`, `refusal`, values of a server's own) admits more than a call can tell and is left alone, as are replies
    with parts that are not understood, and calls that the provider ran itself. Without a reason, calls count only when
    their arguments are whole and the reply came to its end; a stream needs its terminator for that.

    ## Fix safety
    Safe: the reason is derived from what the reply holds. Where a promised call is missing and the text is empty or holds
    markup, the call was lost on the way; that is only reported, and so is what is mentioned as info.

    ## References
    - OpenAI, Chat: `finish_reason`, and Function calling: edge cases
    - Anthropic, Messages: `stop_reason`; Amazon Bedrock, Converse: `stopReason`; Cohere, Chat: `finish_reason`
    """

    code = "TC503"
    name = "finish-reason-mismatch"
    severity = "warning"
    layer = "gateway"
    needs = frozenset({"finish"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not exchange.ok or reply.error is not None:
            return
        for choice in reply.choices:
            reason = choice.finish_reason
            if reason is None:
                if is_unstated(exchange, choice):
                    yield self._missing(choice, request)
                continue
            if choice.calls and _unknown_to_clients(request, reason):
                yield self._unsaid(choice, reason, request)
            elif not choice.calls and (right := without_calls(request.api, reason)) is not None:
                if _is_understood(choice, reply):
                    yield self._unkept(choice, reason, right)
            elif is_foreign(request.api, reason):
                yield self.finding(
                    "response",
                    f"the reply ends with {excerpt(reason)!r}, which is no finish reason of {request.api}",
                    choice.finish_pointer,
                    event=choice.finish_event,
                    severity="info",
                )
        yield from self._empty(reply)

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        request = context.exchange.request
        if request is None or not context.permit.allows(self.code, "safe"):
            return None

        def right(stop: Finish, held: Held) -> str | None:
            reason = None
            if held.forms:
                if _unknown_to_clients(request, stop.reason):
                    reason = _with_calls(request, held.forms)
            elif held.text and not held.hidden and not held.markup:
                reason = without_calls(request.api, stop.reason)
            if reason is not None:
                number = stop.frame.number if stop.frame is not None and context.streamed else None
                made = f"said {reason} in the place of {excerpt(stop.reason)}"
                changed = {"before": stop.reason, "after": reason}
                context.repairs.append(self.repair("response", "safe", made, stop.pointer, event=number, **changed))
            return reason

        def unsaid(choice: int, frame: Frame | None, held: Held) -> Finish:
            reason = _with_calls(request, held.forms)
            stop = Finish(choice, reason, traits(request.api).finish_at.format(choice), frame)
            number = frame.number if frame is not None and context.streamed else None
            made = self.repair("response", "safe", f"said {reason}", stop.pointer, event=number, after=reason)
            context.repairs.append(made)
            return stop

        return FinishReasons(context, right, unsaid)

    def _missing(self, choice: Choice, request: Request) -> Finding:
        names = ", ".join(call.name or "?" for call in choice.calls)
        count = "a call" if len(choice.calls) == 1 else f"{len(choice.calls)} calls"
        return self.finding(
            "response",
            f"the reply holds {count} ({excerpt(names)}) and ends without a finish reason",
            traits(request.api).finish_at.format(choice.index),
            fix=Fix("safe", f"say {_with_calls(request, {call.form for call in choice.calls})}"),
        )

    def _unsaid(self, choice: Choice, reason: str, request: Request) -> Finding:
        names = ", ".join(call.name or "?" for call in choice.calls)
        count = "a call" if len(choice.calls) == 1 else f"{len(choice.calls)} calls"
        right = _with_calls(request, {call.form for call in choice.calls})
        return self.finding(
            "response",
            f"the reply holds {count} ({excerpt(names)}) and ends with {reason!r}",
            choice.finish_pointer,
            event=choice.finish_event,
            fix=Fix("safe", f"say {right}"),
        )

    def _empty(self, reply: Reply) -> Iterator[Finding]:
        legacy = {call.pointer for choice in reply.choices for call in choice.calls if call.form == "legacy"}
        for fault in reply.faults:
            if fault.kind == "empty-call" and fault.detail not in legacy:
                yield self.finding(
                    "response",
                    "a `function_call` without name and arguments, which is no call; clients that test for the member "
                    "take it for one",
                    fault.detail,
                    event=fault.event if reply.streamed else None,
                    severity="info",
                )

    def _unkept(self, choice: Choice, reason: str, right: str) -> Finding:
        text = choice.text.strip()
        said = f"only text: {excerpt(text)!r}" if text else "no text either"
        lost = not text or any(mark in choice.text or mark in choice.reasoning for mark in MARKUP)
        return self.finding(
            "response",
            f"the reply ends with {reason!r} and holds no call; {said}",
            choice.finish_pointer,
            event=choice.finish_event,
            fix=None if lost else Fix("safe", f"say {right}"),
        )


def _with_calls(request: Request, forms: Set[str]) -> str:
    return "function_call" if forms == {"legacy"} else traits(request.api).calls


def _unknown_to_clients(request: Request, reason: str) -> bool:
    """Return True if clients that go by the reason of a reply with calls take it for one without."""
    if not _tells(request):
        return False
    return ending(reason) == "ended" or (ending(reason) == "calls" and is_foreign(request.api, reason))


def _tells(request: Request) -> bool:
    """Whether the reason of a reply with calls has to say so. Where a function is forced, OpenAI documents `stop`."""
    own = traits(request.api)
    return own.tells_calls and not (own.choosing_ends and request.tool_choice.mode == "named")


def _is_understood(choice: Choice, reply: Reply) -> bool:
    """Whether a call can really not be there: nothing unread, unknown or run by the provider."""
    unread = any(fault.kind in UNREAD for fault in reply.faults)
    return not unread and not choice.hosted and not any(isinstance(part, Opaque) for part in choice.parts)
