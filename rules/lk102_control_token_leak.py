from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from wirelint.arguments.argument_faults import REDACTED, came_whole
from wirelint.arguments.argument_markup import may_be_polluted, polluted
from wirelint.arguments.argument_members import strings
from wirelint.arguments.tool_names import match
from wirelint.events import Start
from wirelint.fix import SAFETIES
from wirelint.fixes.arguments import Unmark, unmarked
from wirelint.fixes.chained import Chained
from wirelint.fixes.names import Names, Rename
from wirelint.fixes.tokens import Stripper
from wirelint.model import Choice, Exchange, Reasoning, Refusal, Request, Text, ToolCall
from wirelint.rule import Confidence, Finding, Fix, Layer, RewriteContext, Rewriter, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text import runaways
from wirelint.text.control_tokens import Framing, Occurrence, find, frame, in_name, may_hold_token, native
from wirelint.text.framing import Framer, remedy
from wirelint.text.markup import Said
from wirelint.text.runaways import Runaway

_SHOWN = 4


class ControlTokenLeak(Rule):
    """Tokens of a chat template stand in a reply.

    ## What it does
    Looks for the tokens that chat templates put around turns (`<|im_end|>`, `<|eot_id|>`, `<end_of_turn>`, harmony's
    channels and many more, in any spelling of their bars) in the text, the reasoning, the refusal, and in the names and
    arguments of tool calls; also for the role's name that is left where such tokens were taken out, and for an answer that
    goes on as the user after them (`\\n\\nHuman: …`).

    ## Why is this bad?
    The server runs with the wrong stop tokens or template. Readers see the tokens, clients send them back in the history
    where they cut the prompt in two, and after the end of its turn a model talks on as the user.

    ## Example
    `"content": "Done.<|im_end|>\\n<|im_start|>user\\nThanks"`; `"name": "search<|channel|>commentary"`

    ## False positives
    Silent when the token is quoted or spoken of, stands in the request too (a document about templates), when the user
    asks about tokens, and inside of native tool calls, which `xml-leak` reports. Tokens that people write as well (`<s>`,
    `[INST]`, `</s>`) count only at the edges of a text and in unmistakable rows. In arguments only what hangs on their end
    counts: a call that writes a template writes tokens. Tags of native calls count in a key that is declared without them,
    and at the end of a value that does not open them, unless the request holds them too.

    ## Fix safety
    Safe: tokens at the edges of a text are taken off, and a tool's name is cut to the declared one. Unsafe: tags go from
    the keys and values of arguments, and where a text runs on past its end, what follows is cut. In a stream the beginning
    has gone out before the rest is known, so there only tokens that nothing else can be are taken off it.

    ## References
    - the tokenizer configurations and chat templates that vendors publish with their models
    - OpenAI, Harmony response format
    """

    code = "LK102"
    name = "control-token-leak"
    severity = "warning"
    layer = "gateway"

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not exchange.ok:
            return
        for choice in reply.choices:
            for part in choice.parts:
                match part:
                    case ToolCall():
                        yield from self._name(exchange, request, part)
                        yield from self._markup(exchange, request, choice, part)
                        yield from self._arguments(exchange, request, part)
                    case Text() | Reasoning() | Refusal():
                        yield from self._said(exchange, request, choice, part)

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        request, names = context.exchange.request, self._names(context)
        safe, unsafe = (context.permit.allows(self.code, safety) for safety in SAFETIES)
        if request is None or not (safe or unsafe):
            return names
        texts = Stripper(context, request, self.repair, safe=safe, unsafe=unsafe)
        parts = [texts, *([names] if names is not None else ()), *([Unmark(self, context)] if unsafe else ())]
        return Chained(texts.phase, *parts) if len(parts) > 1 else texts

    def _said(self, exchange: Exchange, request: Request, choice: Choice, part: Said) -> Iterator[Finding]:
        framer = Framer(exchange, request)
        word = framer.residue(part.text) if isinstance(part, Text) else 0
        if isinstance(part, Text) and word:
            yield self.finding(
                "response",
                f"the text begins with what is left of a turn's header: {excerpt(part.text[: word + 20])!r}",
                part.pointer,
                event=part.event_at(0),
                span=(0, word),
                fix=Fix("safe", f"strip {part.text[:word].strip()!r} at the beginning"),
                confidence="medium",
            )
        if isinstance(part, Text) and (next_speaker := runaways.find(part.text)) and framer.labels:
            yield self._runaway(part, next_speaker)
        text = "\n" * word + part.text[word:]
        framing = framer.framing(text)
        for one in framer.split(framing) if framing is not None else ():
            if one is not None:
                yield self._framed(exchange, choice, part, one)
        if framing is None and (marks := framer.framing(text, thoughts=True)):
            yield dataclasses.replace(self._framed(exchange, choice, part, marks), fix=None)

    def _runaway(self, part: Text, found: Runaway) -> Finding:
        return self.finding(
            "response",
            f"the text goes on as the user, the tokens between the turns are lost: {excerpt(part.text[found.start :])!r}",
            part.pointer,
            event=part.event_at(found.start),
            span=(found.start, found.start + len(found.label)),
            confidence="medium",
        )

    def _framed(self, exchange: Exchange, choice: Choice, part: Said, framing: Framing) -> Finding:
        first = framing.overrun or framing.tokens[0]
        return self.finding(
            "response",
            _message(part, framing),
            part.pointer,
            event=None if isinstance(part, Refusal) else part.event_at(first.start),
            span=(first.start, first.end),
            fix=_fix(part, framing, exchange.reply is not None and exchange.reply.streamed, bool(choice.calls)),
            confidence=_confidence(framing),
            layer=_blame(framing.tokens[0], exchange.model),
        )

    def _name(self, exchange: Exchange, request: Request, call: ToolCall) -> Iterator[Finding]:
        name = call.name or ""
        start = in_name(name)
        if start is None or request.tool(name) is not None:
            return
        declared = _meant(name, start, request)
        yield self.finding(
            "response",
            f"the name of a call holds markup: {excerpt(name)!r}",
            f"{call.pointer}",
            event=call.event,
            fix=Fix("safe", f"cut the name to {declared}") if declared else None,
        )

    def _names(self, context: RewriteContext) -> Names | None:
        """What cuts names of calls to those of declared tools."""
        request = context.exchange.request
        if request is None or not context.permit.allows(self.code, "safe"):
            return None

        def judge(start: Start, name: str, joined: str) -> Rename | None:
            mark = in_name(name)
            if mark is None or request.tool(name) is not None:
                return None
            declared = _meant(name, mark, request)
            if declared is None:
                return None
            number = start.frame.number if start.frame is not None and context.streamed else None
            title = f"cut the name of a call to {declared}"
            made = self.repair("response", "safe", title, start.pointer, event=number, before=name, after=declared)
            return Rename(declared, made)

        return Names(context, judge, lambda name: in_name(name) is None, phase=3)

    def _markup(self, exchange: Exchange, request: Request, choice: Choice, call: ToolCall) -> Iterator[Finding]:
        if call.form == "custom" or not may_be_polluted(call.arguments.text):
            return
        tool = request.tool(call.name)
        found = polluted(call.arguments.mapping, tool, request)
        if found is None or REDACTED in call.arguments.text or not came_whole(exchange, choice, call):
            return
        change = unmarked(call, found, tool)
        yield self.finding(
            "response",
            f"native markup ({excerpt(found.markup)}) stuck to {found.where} of a call of {call.name}",
            call.pointer,
            event=call.event,
            fix=Fix(change.safety, change.order) if change is not None else None,
        )

    def _arguments(self, exchange: Exchange, request: Request, call: ToolCall) -> Iterator[Finding]:
        if call.form == "custom" or not may_hold_token(call.arguments.text):
            return
        after = find(call.arguments.rest)
        values = [("", call.arguments.rest)] if after else strings(call.arguments.value)
        framer = Framer(exchange, request)
        for path, value in values:
            tokens = find(value)
            framing = frame(value, framer.unheard(value, tokens)) if tokens else None
            if framing is None or not (after or _hangs_on(value, framing)):
                continue
            token = framing.tokens[0]
            where = f"the value of {path}" if path else "the arguments of"
            of = "" if path else f" {call.name}"
            yield self.finding(
                "response",
                f"{token.token} ends {where}{of}: {excerpt(value[-60:])!r}",
                call.pointer,
                event=call.event,
                confidence="medium",
                layer=_blame(token, exchange.model),
            )
            return


def _meant(name: str, mark: int, request: Request) -> str | None:
    """The declared tool whose name this is when what begins at the mark is taken off."""
    meant = match(name, [tool.name for tool in request.tools])
    if meant is not None and meant.certain:
        return meant.name
    cut = name[:mark].strip()
    return cut if request.tool(cut) is not None else None


def _hangs_on(value: str, framing: Framing) -> bool:
    """Whether ends of turns hang on the last word of a value: one that has more tokens in it is about tokens."""
    kept = value[: framing.trailing]
    ends = all(token.ends_turn and token.start >= framing.trailing for token in framing.tokens)
    return ends and bool(kept.strip()) and not kept[-1].isspace() and not value.endswith("\n")


def _confidence(framing: Framing) -> Confidence:
    if any(token.strength == "sure" for token in framing.tokens):
        return "high" if framing.at_edges or framing.overrun else "medium"
    return "medium"


def _blame(token: Occurrence, model: str) -> Layer:
    return "model" if native(token.token, model) is False else "gateway"


def _fix(part: Said, framing: Framing, streamed: bool, calls: bool) -> Fix | None:
    done = remedy(part.text, framing, streamed=streamed, calls=calls)
    if done is None:
        return None
    if done.kind == "cut" and framing.overrun is not None:
        return Fix("unsafe", f"cut the text at {framing.overrun.token}")
    edges = (("the beginning", done.leading > 0), ("the end", done.trailing < len(part.text)))
    return Fix("safe", f"strip {_listed(framing)} at {' and '.join(edge for edge, there in edges if there)}")


def _message(part: Said, framing: Framing) -> str:
    where = {"Text": "text", "Reasoning": "reasoning", "Refusal": "refusal"}[type(part).__name__]
    overrun = framing.overrun
    if overrun is None:
        place = "at the edge of" if framing.at_edges else "in"
        token = framing.tokens[0]
        shown = part.text[max(token.start - 24, 0) : token.end + 24]
        return f"{_listed(framing)} {place} the {where}: {excerpt(shown)!r}"
    if overrun.other_speaker:
        role = f" as the {overrun.role}" if overrun.role else ""
        return f"the {where} goes on{role} after {overrun.token}: {excerpt(part.text[overrun.start :])!r}"
    return f"the {where} runs on past {overrun.token}: {excerpt(part.text[overrun.end :])!r}"


def _listed(framing: Framing) -> str:
    different = list(dict.fromkeys(token.token for token in framing.tokens))
    more = f" and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
    return ", ".join(different[:_SHOWN]) + more
