from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import ClassVar

from wirelint.conversation import Ledger
from wirelint.knowledge.argument_strings import strings
from wirelint.knowledge.asking import asks_about_tokens, hears
from wirelint.knowledge.control_tokens import Framing, Occurrence, find, frame, in_name, may_hold_token, native, residue
from wirelint.knowledge.markup import RAW_APIS, Said, call_spans
from wirelint.knowledge.mentions import is_mention
from wirelint.knowledge.toolnames import match
from wirelint.model import Exchange, Json, Reasoning, Refusal, Request, Text, ToolCall
from wirelint.rule import Confidence, Finding, Fix, Layer, Rule, excerpt

_SHOWN = 4


class ControlTokenLeak(Rule):
    """Tokens of a chat template stand in a reply.

    ## What it does
    Looks for the tokens that chat templates put around turns (`<|im_end|>`, `<|eot_id|>`, `<end_of_turn>`, harmony's
    channels and many more, in any spelling of their bars) in the text, the reasoning, the refusal, and in the names and
    arguments of tool calls; also for the role's name that is left where such tokens were taken out.

    ## Why is this bad?
    The server runs with the wrong stop tokens or template. Readers see the tokens, clients send them back in the history
    where they cut the prompt in two, and after the end of its turn a model talks on as the user.

    ## Example
    `"content": "Done.<|im_end|>\\n<|im_start|>user\\nThanks"`; `"name": "search<|channel|>commentary"`

    ## False positives
    Silent when the token is quoted or spoken of, stands in the request too (a document about templates), when the user
    asks about tokens, and inside of native tool calls, which `xml-leak` reports. Tokens that people write as well (`<s>`,
    `[INST]`, `</s>`) count only at the edges of a text and in unmistakable rows. In arguments only what hangs on their end
    counts: a call that writes a template writes tokens.

    ## Fix safety
    Safe: tokens at the edges of a text are taken off, and a tool's name is cut to the declared one. Where a text runs on
    past its end, cutting what follows is unsafe.

    ## References
    - the tokenizer configurations and chat templates that vendors publish with their models
    - OpenAI, Harmony response format
    """

    code = "LK102"
    name = "control-token-leak"
    severity = "warning"
    layer = "gateway"
    fires: ClassVar[dict[str, Json]] = {
        "request": {
            "url": "https://llm.example/v1/chat/completions",
            "body": {"model": "m", "messages": [{"role": "user", "content": "Say hello."}]},
        },
        "response": {
            "body": {"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "Hello!<|im_end|>"}}]}
        },
    }
    silent: ClassVar[dict[str, Json]] = {
        "request": {
            "url": "https://llm.example/v1/chat/completions",
            "body": {"model": "m", "messages": [{"role": "user", "content": "What ends a turn?"}]},
        },
        "response": {
            "body": {
                "choices": [
                    {"index": 0, "finish_reason": "stop", "message": {"content": "Mostly `<|im_end|>` does."}},
                ]
            }
        },
    }

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request, reply = exchange.request, exchange.reply
        if request is None or reply is None or not exchange.ok:
            return
        for choice in reply.choices:
            for part in choice.parts:
                match part:
                    case ToolCall():
                        yield from self._name(exchange, request, part)
                        yield from self._arguments(exchange, request, part)
                    case Text() | Reasoning() | Refusal():
                        yield from self._said(exchange, request, part)

    def _said(self, exchange: Exchange, request: Request, part: Said) -> Iterator[Finding]:
        if isinstance(part, Text) and (word := residue(part.text, exchange.model)):
            yield self.finding(
                "response",
                f"the text begins with what is left of a turn's header: {excerpt(part.text[: word + 20])!r}",
                part.pointer,
                event=part.event_at(0),
                span=(0, word),
                fix=Fix("safe", f"strip {part.text[:word].strip()!r} at the beginning"),
                confidence="medium",
            )
        if not may_hold_token(part.text):
            return
        tokens = tuple(token for token in find(part.text) if not is_mention(part.text, token.start, token.end))
        if not tokens:
            return
        covered = call_spans(part.text, request)
        tokens = tuple(token for token in tokens if not _is_inside(token, covered))
        framing = frame(part.text, _unheard(part.text, tokens, request))
        if framing is None or (asks_about_tokens(request) and not _runs_on(framing)):
            return
        if exchange.api in RAW_APIS and not _runs_on(framing):
            return
        first = framing.overrun or framing.tokens[0]
        yield self.finding(
            "response",
            _message(part, framing),
            part.pointer,
            event=None if isinstance(part, Refusal) else part.event_at(first.start),
            span=(first.start, first.end),
            fix=_fix(part, framing),
            confidence=_confidence(framing),
            layer=_blame(framing.tokens[0], exchange.model),
        )

    def _name(self, exchange: Exchange, request: Request, call: ToolCall) -> Iterator[Finding]:
        name = call.name or ""
        start = in_name(name)
        if start is None or request.tool(name) is not None:
            return
        meant = match(name, [tool.name for tool in request.tools])
        cut = name[:start].strip()
        declared = meant.name if meant is not None and meant.certain else cut if request.tool(cut) else None
        yield self.finding(
            "response",
            f"the name of a call holds markup: {excerpt(name)!r}",
            f"{call.pointer}",
            event=call.event,
            fix=Fix("safe", f"cut the name to {declared}") if declared else None,
        )

    def _arguments(self, exchange: Exchange, request: Request, call: ToolCall) -> Iterator[Finding]:
        if call.form == "custom" or not may_hold_token(call.arguments.text):
            return
        after = find(call.arguments.rest)
        values = [("", call.arguments.rest)] if after else strings(call.arguments.value)
        for path, value in values:
            tokens = find(value)
            framing = frame(value, _unheard(value, tokens, request)) if tokens else None
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


def _unheard(text: str, tokens: tuple[Occurrence, ...], request: Request) -> tuple[Occurrence, ...]:
    """Tokens that the request does not hold; asked once for each spelling."""
    heard: dict[str, bool] = {}
    for token in tokens:
        if token.token not in heard:
            heard[token.token] = hears(request, token.token, text[token.start : token.end])
    return tuple(token for token in tokens if not heard[token.token])


def _is_inside(token: Occurrence, spans: tuple[tuple[int, int], ...]) -> bool:
    place = bisect.bisect_right(spans, token.start, key=lambda span: span[0]) - 1
    return place >= 0 and token.start < spans[place][1]


def _runs_on(framing: Framing) -> bool:
    """Whether somebody else begins to speak: nobody who explains tokens does that."""
    return any(token.other_speaker for token in framing.tokens)


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


def _fix(part: Said, framing: Framing) -> Fix | None:
    kept = part.text[framing.leading : framing.trailing].strip()
    if not kept or any(token.announces for token in framing.tokens):
        return None  # what follows is a call or a thought: without the token it would pass for the answer
    if framing.at_edges and framing.overrun is None:
        edges = (("the beginning", framing.leading > 0), ("the end", framing.trailing < len(part.text)))
        return Fix("safe", f"strip {_listed(framing)} at {' and '.join(edge for edge, there in edges if there)}")
    if framing.overrun is not None and part.text[: framing.overrun.start].strip():
        return Fix("unsafe", f"cut the text at {framing.overrun.token}")
    return None


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
