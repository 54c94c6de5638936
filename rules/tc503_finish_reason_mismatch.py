from __future__ import annotations

from collections.abc import Iterator, Set

from wirelint.apis.traits import ending, is_foreign, own_word, traits
from wirelint.arguments.argument_faults import UNREAD, lacks_finish_reason
from wirelint.events import Finish, Frame
from wirelint.fixes.finish import MARKUP, Content, FinishReasons, without_calls
from wirelint.model import Choice, Exchange, Opaque, Reply, Request
from wirelint.rule import Finding, Fix, RewriteContext, Rewriter, Rule, Safety, Severity, amount, excerpt
from wirelint.state.ledger import Ledger


class FinishReasonMismatch(Rule):
    """The finish reason contradicts the reply.

    ## What it does
    Reports a reply with calls that says `stop`, `end_turn`, `COMPLETE` or nothing (null, an empty text), and one that
    says `tool_calls`, `tool_use` or `TOOL_CALL` without a call. A reason of other APIs (`eos`, or `end_turn` in
    OpenAI's shape) is an info; a foreign word for calls beside calls is a warning, since clients of this API do not
    know it. A `function_call` without name and arguments beside another end is an info: it is not a call.

    ## Why is this bad?
    Many clients go by the reason alone: they never run a call that ends with `stop`, and the agent halts without an
    error; a promised call that is missing makes them wait, loop or raise.

    ## Example
    `{"message":{"tool_calls":[…]},"finish_reason":"stop"}`

    ## False positives
    OpenAI answers `stop` when `tool_choice` names a function. Gemini, Ollama's own API and OpenAI's Responses end
    replies with calls like any other, so there only a promised call can be missing. Other reasons (`length`,
    `content_filter`, `pause_turn`, `refusal`, a server's own) are not reported, nor are replies with unknown parts,
    calls that the provider ran, and calls without a name, which no client can run. Without a reason, calls count only
    if their arguments are whole and the reply ended; a stream needs its terminator for that.

    ## Fix safety
    Safe: the reason follows from the content of the reply; the text "null" becomes null; an empty `function_call` is
    removed. Unsafe: the word of another API becomes the API's own word. Where a promised call is missing and the text
    is empty or holds markup, the call was lost upstream, and that is reported only.

    ## References
    - OpenAI, Chat: `finish_reason`, and Function calling: edge cases
    - Anthropic, Messages: `stop_reason`; Amazon Bedrock, Converse: `stopReason`; Cohere, Chat: `finish_reason`
    """

    severity = "warning"
    layer = "gateway"
    needs = frozenset({"finish"})

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not exchange.ok or reply.error is not None:
            return
        for choice in reply.choices:
            reason, forms = choice.finish_reason, {call.form for call in choice.calls}
            announce = Fix("safe", f"set the finish reason to {_with_calls(request, forms)}")
            if reason is None:
                if lacks_finish_reason(exchange, choice):
                    message = f"the reply holds {_calls(choice)} and ends without a finish reason"
                    place = traits(request.api).finish_at.format(choice.index)
                    yield self.finding("response", message, place, fix=announce)
            elif any(call.name for call in choice.calls) and _is_unknown_to_clients(request, reason, forms):
                message = f"the reply holds {_calls(choice)} and ends with {reason!r}"
                yield self.finding("response", message, choice, fix=announce)
            elif not choice.calls and (right := without_calls(request.api, reason)) is not None:
                unknown = choice.hosted or any(isinstance(part, Opaque) for part in choice.parts)
                if not unknown and not any(fault.kind in UNREAD for fault in reply.faults):
                    text = choice.text.strip()
                    lost = not text or any(mark in choice.text or mark in choice.reasoning for mark in MARKUP)
                    shown = f"only text: {excerpt(text)!r}" if text else "no text either"
                    message = f"the reply ends with {reason!r} and holds no call; {shown}"
                    fix = None if lost else Fix("safe", f"set the finish reason to {right}")
                    yield self.finding("response", message, choice, fix=fix)
            elif is_foreign(request.api, reason):
                word = _own_word(request, reason, forms)
                fix = Fix("unsafe", f"set the finish reason to {word}") if word is not None else None
                message = f"the reply ends with {excerpt(reason)!r}, which is not a finish reason of {request.api}"
                yield self.finding("response", message, choice, severity="info", fix=fix)
        yield from self._check_members(exchange, reply)

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        request = context.exchange.request
        if request is None or not context.permit.allows(self.code, "safe"):
            return None

        def correct(stop: Finish, content: Content) -> str | None:
            reason = None
            if content.forms:
                if content.named and _is_unknown_to_clients(request, stop.reason, content.forms):
                    reason = _with_calls(request, content.forms)
            elif content.text and not content.hidden and not content.markup:
                reason = without_calls(request.api, stop.reason)
            safety: Safety = "safe"
            if reason is None and context.permit.allows(self.code, "unsafe"):
                # A foreign word for calls beside no call is not understood: the call may be lost.
                calls = not content.forms and without_calls(request.api, stop.reason) is not None
                reason, safety = None if calls else _own_word(request, stop.reason, content.forms), "unsafe"
            if reason is not None:
                title = f"set the finish reason to {reason}, from {excerpt(stop.reason)}"
                self.record(context, safety, title, stop.pointer, at=stop, before=stop.reason, after=reason)
            return reason

        def add(choice: int, frame: Frame | None, content: Content) -> Finish:
            reason = _with_calls(request, content.forms)
            stop = Finish(choice, reason, traits(request.api).finish_at.format(choice), frame)
            self.record(context, "safe", f"set the finish reason to {reason}", stop.pointer, at=stop, after=reason)
            return stop

        return FinishReasons(self, context, correct, add)

    def _check_members(self, exchange: Exchange, reply: Reply) -> Iterator[Finding]:
        """Yield findings on members without content: empty calls, reasons like "null", an empty one that ends a body."""
        legacy = {call.pointer for call in reply.calls if call.form == "legacy"}
        choices = {f"/choices/{choice.index}/finish_reason": choice for choice in reply.choices}
        for fault in reply.faults:
            pointer, _, written = fault.detail.partition(" ")
            severity: Severity = "warning" if written else "info"
            if fault.kind == "empty-call" and fault.detail not in legacy:
                why = "but clients that test for the member treat it as one"
                message, fix = f"a `function_call` without name and arguments is not a call, {why}", "remove it"
            elif fault.kind == "written-null" and (choice := choices.get(pointer)) is not None:
                lacks = choice.finish_reason is None
                if (lacks and lacks_finish_reason(exchange, choice)) or not (written or (lacks and not reply.streamed)):
                    continue  # reported as a missing reason; or an empty text before the reason comes
                effect = (
                    "the reply does not say why it ended" if lacks else "clients end at the first event that has it"
                )
                message, fix = f"the finish reason is the text {written!r} instead of null; {effect}", "set it to null"
            else:
                continue
            event = fault.event if reply.streamed else None
            yield self.finding("response", message, pointer, event=event, severity=severity, fix=Fix("safe", fix))


def _calls(choice: Choice) -> str:
    names = ", ".join(call.name or "?" for call in choice.calls)
    return f"{amount(len(choice.calls), 'call')} ({excerpt(names)})"


def _with_calls(request: Request, forms: Set[str]) -> str:
    return "function_call" if forms == {"legacy"} else traits(request.api).calls


def _own_word(request: Request, reason: str, forms: Set[str]) -> str | None:
    """Return the API's own word for a reason of other APIs."""
    if forms and is_foreign(request.api, reason) and ending(reason) == "stopped" and _must_announce(request):
        return _with_calls(request, forms)
    return own_word(request.api, reason)


def _is_unknown_to_clients(request: Request, reason: str, forms: Set[str]) -> bool:
    """Return True if clients that go by the reason of a reply with calls take it for one without.

    `function_call` announces calls of the legacy form only.
    """
    if not _must_announce(request):
        return False
    other = is_foreign(request.api, reason) or (reason == "function_call" and "legacy" not in forms)
    return ending(reason) == "ended" or (ending(reason) == "calls" and other)


def _must_announce(request: Request) -> bool:
    """Return True if the finish reason must announce calls. For a forced function OpenAI documents `stop`."""
    own = traits(request.api)
    return own.has_reason_for_calls and not (own.has_plain_end_if_forced and request.tool_choice.mode == "named")
