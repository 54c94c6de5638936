from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from wirelint.arguments.argument_faults import claims_complete, may_be_polluted, polluted, strings
from wirelint.arguments.schemas import match
from wirelint.fix import SAFETIES
from wirelint.fixes.arguments import StripMarkup, unmarked
from wirelint.fixes.calls import CallHeads, Head, HeadChange
from wirelint.fixes.tokens import TokenStripper, named, named_edges
from wirelint.model import Choice, Exchange, Reasoning, Refusal, Request, Text, ToolCall
from wirelint.rule import REDACTED, Finding, Fix, Layer, RewriteContext, Rewriter, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text.control_tokens import Framing, Occurrence, find, frame, in_name, may_hold_token, native
from wirelint.text.framing import Framer, remedy
from wirelint.text.loops import find_runaway
from wirelint.text.markup import Said


class ControlTokenLeak(Rule):
    """Tokens of a chat template leaked into a reply.

    ## What it does
    Looks for the tokens that chat templates put around turns (`<|im_end|>`, `<|eot_id|>`, `<end_of_turn>`, harmony's
    channels and more, in any spelling of their bars) in text, reasoning, refusal, and names and arguments of tool
    calls, for the role name of a stripped header, and for a text that continues as the user (`\\n\\nHuman: …`).

    ## Why is this bad?
    The server runs with the wrong stop tokens or template. Readers see the tokens, clients send them back in the
    history where they split the prompt, and after the end of its turn a model writes the user's next message.

    ## Example
    `"content": "Done.<|im_end|>\\n<|im_start|>user\\nThanks"`; `"name": "search<|channel|>commentary"`

    ## False positives
    Silent on tokens that are quoted or discussed, that the request contains (a document about templates), that the user
    asks about, and inside native tool calls (`xml-leak`). Tokens that people write too (`<s>`, `[INST]`, `</s>`) count
    only at the edges of a text and in unmistakable rows. In arguments only tokens at their end count, since a call may
    write a template. Tags of native calls count in a key that is declared without them, and at the end of a value that
    does not open them, unless the request contains them too.

    ## Fix safety
    Safe: tokens at the edges of a text are stripped, and a tool's name is cut to the declared one. Unsafe: tags and
    tokens are removed from keys and values of arguments, and text after the end of a turn is cut. In a stream the
    beginning has left before the rest is known, so there only unmistakable tokens are stripped.

    ## References
    - the tokenizer configurations and chat templates that vendors publish with their models
    - OpenAI, Harmony response format
    """

    severity = "warning"
    layer = "gateway"

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None or not exchange.ok:
            return
        for choice in exchange.choices:
            for part in choice.parts:
                if isinstance(part, ToolCall):
                    yield from self._check_name(request, part)
                    found = [*self._check_markup(exchange, request, choice, part)]
                    yield from found or self._check_arguments(exchange, request, part)
                elif isinstance(part, Text | Reasoning | Refusal):
                    yield from self._check_text(exchange, request, choice, part)

    def rewriter(self, context: RewriteContext) -> Sequence[Rewriter]:
        request = context.exchange.request
        safe, unsafe = (context.permit.allows(self.code, safety) for safety in SAFETIES)
        if request is None or not (safe or unsafe):
            return ()
        made: list[Rewriter] = [TokenStripper(context, request, self.repair, safe=safe, unsafe=unsafe)]
        made += [self._names(context, request)] if safe else []
        return [*made, StripMarkup(self, context)] if unsafe else made

    def _check_text(self, exchange: Exchange, request: Request, choice: Choice, part: Said) -> Iterator[Finding]:
        framer = Framer(exchange, request)
        word = framer.residue(part.text) if isinstance(part, Text) else 0
        if word:
            message = f"the text begins with the remains of a turn header: {excerpt(part.text[: word + 20])!r}"
            fix = Fix("safe", f"strip {part.text[:word].strip()!r} at the beginning")
            yield self.text_finding(part, (0, word), message, fix=fix, confidence="medium")
        if isinstance(part, Text) and (speaker := find_runaway(part.text)) and framer.labels:
            shown, span = excerpt(part.text[speaker.start :]), (speaker.start, speaker.start + len(speaker.label))
            message = f"the text continues as the user; the tokens between the turns are lost: {shown!r}"
            yield self.text_finding(part, span, message, confidence="medium")
        text = "\n" * word + part.text[word:]
        framing = framer.framing(text)
        for one in framer.split(framing) if framing is not None else ():
            if one is not None:
                yield self._framed(exchange, choice, part, one)
        if framing is None and (marks := framer.framing(text, thoughts=True)):
            yield dataclasses.replace(self._framed(exchange, choice, part, marks), fix=None)

    def _framed(self, exchange: Exchange, choice: Choice, part: Said, framing: Framing) -> Finding:
        first = framing.overrun or framing.tokens[0]
        certain = any(token.strength == "sure" for token in framing.tokens) and (framing.at_edges or framing.overrun)
        streamed = exchange.reply is not None and exchange.reply.streamed
        done, fix = remedy(part.text, framing, streamed=streamed, calls=bool(choice.calls)), None
        if done is not None and done.kind == "cut" and framing.overrun is not None:
            fix = Fix("unsafe", f"cut the text at {framing.overrun.token}")
        elif done is not None:
            fix = Fix("safe", f"strip {named_edges(part.text, framing, done)}")
        return self.text_finding(
            part,
            (first.start, first.end),
            _message(part, framing),
            fix=fix,
            confidence="high" if certain else "medium",
            layer=_blame(framing.tokens[0], exchange.model),
        )

    def _check_name(self, request: Request, call: ToolCall) -> Iterator[Finding]:
        name = call.name or ""
        if in_name(name) is not None and request.tool(name) is None:
            declared = _declared_name(name, request)
            fix = Fix("safe", f"cut the name to {declared}") if declared else None
            yield self.finding("response", f"the name of a call contains markup: {excerpt(name)!r}", call, fix=fix)

    def _names(self, context: RewriteContext, request: Request) -> CallHeads:
        """Return the rewriter that cuts names of calls to those of declared tools."""

        def judge(head: Head) -> HeadChange | None:
            name = head.name or ""
            declared = _declared_name(name, request) if request.tool(name) is None else None
            if declared is None:
                return None
            title = f"cut the name of a call to {declared}"
            self.record(context, "safe", title, head.start.pointer, at=head.start, before=name, after=declared)
            return HeadChange("name", declared)

        return CallHeads(context, judge, lambda start: bool(start.name and in_name(start.name) is None) or None, 3.2)

    def _check_markup(self, exchange: Exchange, request: Request, choice: Choice, call: ToolCall) -> Iterator[Finding]:
        if call.form == "custom" or not may_be_polluted(call.arguments.text):
            return
        tool = request.tool(call.name)
        found = polluted(call.arguments.mapping, tool, request)
        if found is None or REDACTED in call.arguments.text or not claims_complete(exchange, choice, call):
            return
        if found.markup.startswith("<|"):
            return  # a control token
        message = f"native markup ({excerpt(found.markup)}) stuck to {found.where} of a call of {call.name}"
        yield self.finding("response", message, call, fix=unmarked(call, found, tool))

    def _check_arguments(self, exchange: Exchange, request: Request, call: ToolCall) -> Iterator[Finding]:
        text = call.arguments.text
        if call.form == "custom" or not ("\\u003" in text or may_hold_token(text)):
            return
        after = find(call.arguments.rest)
        values = [("", call.arguments.rest)] if after else strings(call.arguments.value)
        framer = Framer(exchange, request)
        for path, value in values:
            tokens = find(value)
            framing = frame(value, framer.not_in_request(value, tokens)) if tokens else None
            if framing is None or not (after or _ends_value(value, framing)):
                continue
            token, tool = framing.tokens[0], request.tool(call.name)
            where = f"the value of {path}" if path else f"the arguments of {call.name}"
            message, layer = f"{token.token} ends {where}: {excerpt(value[-60:])!r}", _blame(token, exchange.model)
            found = polluted(call.arguments.mapping, tool, request) if REDACTED not in text else None
            fix = unmarked(call, found, tool) if found is not None else None
            yield self.finding("response", message, call, confidence="medium", layer=layer, fix=fix)
            return


def _declared_name(name: str, request: Request) -> str | None:
    """Return the declared tool whose name remains without the markup in a name; None without markup."""
    if (mark := in_name(name)) is None:
        return None
    declared = match(name, [tool.name for tool in request.tools])
    if declared is not None and declared.certain:
        return declared.name
    cut = name[:mark].strip()
    return cut if request.tool(cut) is not None else None


def _ends_value(value: str, framing: Framing) -> bool:
    """Return True if tokens for the end of a turn follow the last word of a value that has no other tokens."""
    kept = value[: framing.trailing]
    ends = all(token.ends_turn and token.start >= framing.trailing for token in framing.tokens)
    return ends and bool(kept.strip()) and not kept[-1].isspace() and not value.endswith("\n")


def _blame(token: Occurrence, model: str) -> Layer:
    return "model" if native(token.token, model) is False else "gateway"


def _message(part: Said, framing: Framing) -> str:
    where = type(part).__name__.lower()
    overrun = framing.overrun
    if overrun is None:
        place = "at the edge of" if framing.at_edges else "in"
        token = framing.tokens[0]
        shown = part.text[max(token.start - 24, 0) : token.end + 24]
        return f"{named(framing.tokens)} {place} the {where}: {excerpt(shown)!r}"
    if overrun.other_speaker:
        role = f" as the {overrun.role}" if overrun.role else ""
        return f"the {where} continues{role} after {overrun.token}: {excerpt(part.text[overrun.start :])!r}"
    return f"the {where} continues past {overrun.token}: {excerpt(part.text[overrun.end :])!r}"
