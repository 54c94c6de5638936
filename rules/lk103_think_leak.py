from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from wirelint.apis.traits import is_raw, traits
from wirelint.arguments.argument_faults import is_data, strings, writes_file
from wirelint.arguments.argument_repairs import Change
from wirelint.fix import MOST_HELD
from wirelint.fixes.arguments import StripThoughts, unthought
from wirelint.fixes.move_reasoning import ReasoningMover
from wirelint.lexicon import Phrases
from wirelint.model import Choice, Exchange, Json, Reasoning, Request, Text, ToolCall
from wirelint.rule import Finding, Fix, RewriteContext, Rewriter, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text import thinking
from wirelint.text.asking import asks_about_thinking_tags, instructions_hold, prompts_for_thinking_tags, request_holds
from wirelint.text.families import thinks
from wirelint.text.markup import call_spans

_PHRASES = Phrases("think_leak")
_OFF = (None, False, 0, "none", "off", "disabled")


class ThinkLeak(Rule):
    """Reasoning leaked into the visible text.

    ## What it does
    Looks for the tags of reasoning (`<think>`, `[THINK]`, `◁think▷`, harmony's and Gemma's channels, …) where reasoning
    occurs: at the beginning of a text, after a tool block, as a closing tag whose opening tag was in the prompt, or as
    the remains of stripped tags (`analysis…assistantfinal…`). Arguments of tool calls count too.

    ## Why is this bad?
    The server's reasoning parser is off or broken. Users read internal text, structured output does not parse, and in
    the next turn the reasoning goes back as if it were the answer.

    ## Example
    `"content": "The user greets me, I greet back.\\n</think>\\n\\nHello!"`

    ## False positives
    Silent on the API's own reasoning field, on tags that are quoted, discussed or requested by the prompt, and where
    the request wants the raw text (`reasoning_format: raw`). `<thinking>`, `<scratchpad>` and similar tags are prose
    for a model without a reasoning channel.

    ## Fix safety
    Unsafe: a closed thought at an edge of a value of a call is removed, also inside objects, lists and JSON in a
    string. Without its opening tag it is removed only if sentences end before the closing tag, no message contains such
    tags, and the value has not left in a stream. In a text, the reasoning moves to the API's own field, which changes
    the text that the client keeps. In a stream, text after an opening tag at the beginning passes as reasoning at once,
    all of it if the tag is never closed. Reasoning without an opening tag moves in a whole body, or if one event holds
    it with the closing tag; otherwise only the tag or the name of the channel is removed.

    ## References
    - vLLM and SGLang, reasoning parsers
    - Groq, Reasoning: `reasoning_format`
    """

    severity = "warning"
    layer = "gateway"

    def rewriter(self, context: RewriteContext) -> Sequence[Rewriter]:
        exchange, request = context.exchange, context.exchange.request
        if request is None or _is_raw(request) or not context.permit.allows(self.code, "unsafe"):
            return ()

        def applies(found: thinking.Thinking, has_reasoning: bool) -> bool:
            return (found.leaks or has_reasoning or _may_think(exchange, request)) and not _is_wanted(request, found)

        live, ledger = not asks_about_thinking_tags(request), context.ledger
        inside = ledger.knows_thoughts and ledger.begins_inside(exchange)
        mover = ReasoningMover(context, request, self.repair, applies, live=live, inside=inside)
        return mover, StripThoughts(self, context, lambda call: _without_thoughts(request, call))

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        request = exchange.request
        if request is None or not exchange.ok or _is_raw(request):
            return
        for choice in exchange.choices:
            has_reasoning = any(isinstance(part, Reasoning) for part in choice.parts)
            for part in choice.parts:
                if isinstance(part, ToolCall):
                    for path, value, found in itertools.islice(_leaks(request, part), 1):
                        where = f"{f'the value of {path}' if path else 'the arguments'} of {part.name}"
                        message = f"reasoning ({found.tag}) leaked into {where}: {excerpt(value)!r}"
                        fix = _without_thoughts(request, part)
                        yield self.finding("response", message, part, confidence="medium", fix=fix)
                elif isinstance(part, Text) and (shown := _find(exchange, request, part, has_reasoning)) is not None:
                    yield self.text_finding(
                        part,
                        (shown.start, shown.end),
                        _message(part.text, shown),
                        fix=_fix(exchange, choice, shown, part, inside=ledger.begins_inside(exchange)),
                        confidence="high" if _is_certain(part.text, shown) else "medium",
                        layer="gateway" if shown.native else "model",
                    )


def _find(exchange: Exchange, request: Request, part: Text, has_reasoning: bool) -> thinking.Thinking | None:
    """Return the leaked reasoning in a text."""
    if not thinking.may_hold_thinking(part.text):
        return None
    # A model that continues after its native calls reasons again first.
    found = thinking.find(part.text, (end for _, end in call_spans(part.text, request)))
    if found is None or _is_wanted(request, found):
        return None
    return found if found.leaks or has_reasoning or _may_think(exchange, request) else None


def _leaks(request: Request, call: ToolCall) -> Iterator[tuple[str, str, thinking.Thinking]]:
    """Yield the values of a call with leaked reasoning: the path, the value, and the reasoning."""
    if not thinking.may_hold_thinking(call.arguments.text):
        return
    arguments = call.arguments.value
    inside = strings(arguments, documents=not writes_file(arguments))
    for path, value in [("", call.arguments.text)] if call.arguments.rest else inside:
        found = thinking.find_in_argument(value)
        if found is None or instructions_hold(request, *thinking.literals(found)):
            continue
        if not (is_data(path) or writes_file(arguments)) or _precedes_data(request, value, found):
            yield path, value, found


def _without_thoughts(request: Request, call: ToolCall) -> Change | None:
    """Return the arguments of a call without the leaked reasoning whose value is known."""
    if call.form != "function" or writes_file(call.arguments.value):
        return None  # a file may be about tags
    leaks = _leaks(request, call)
    evident = (leak for leak in leaks if not is_data(leak[0]) and _is_evident(request, leak[1], leak[2]))
    thoughts = {(path, value): found for path, value, found in evident}
    return unthought(call, thoughts, request.tool(call.name))


def _is_evident(request: Request, value: str, found: thinking.Thinking) -> bool:
    """Return True if a thought is not text about tags: a lone closing tag before a value needs more than its place."""
    if found.evidence != "closed" or not value[found.end :].strip():
        return True
    return thinking.ends_sentences(value, found) and not request_holds(request, *thinking.literals(found))


def _precedes_data(request: Request, value: str, found: thinking.Thinking) -> bool:
    """Return True if a whole pair of tags precedes data for a tool, and no message contains such tags.

    A file may be about tags: then a message, or a result that the model read, contains them too.
    """
    if not (found.evidence == "opened" and found.whole and found.native and found.tag == "<think>"):
        return False
    thought, rest = value[found.body[0] : found.body[1]].strip(" .…\n"), value[found.end :].strip()
    if " " not in thought or not rest or "think>" in rest:
        return False
    texts = (message.text for message in request.messages)
    shown = (result.text for result in request.results)
    return not any("think>" in text or "think tag" in text for text in (*texts, *shown))


def _is_raw(request: Request) -> bool:
    """Return True if the reply is unparsed text, by its API or by a switch of Groq, llama.cpp or SGLang."""
    wants_raw = request.body.get("reasoning_format") in ("raw", "none")
    return wants_raw or request.body.get("separate_reasoning") is False or is_raw(request.api, request)


def _may_think(exchange: Exchange, request: Request) -> bool:
    if thinks(exchange.model):
        return True
    inner = (request.body.get(name) for name in _PHRASES.words("holders"))
    bodies = [request.body, *(one for one in inner if isinstance(one, dict))]
    return any(_is_on(body.get(switch)) for body in bodies for switch in _PHRASES.words("switches"))


def _is_on(value: Json) -> bool:
    if not isinstance(value, dict):
        return value not in _OFF
    kept = value.get("type") != "disabled" and value.get("enabled") is not False
    return kept and all(value[name] not in _OFF for name in ("effort", "thinkingBudget") if name in value)


def _is_wanted(request: Request, found: thinking.Thinking) -> bool:
    names = thinking.CHANNEL_LINES.split(" … ")
    return (
        (found.tag == thinking.CHANNEL_LINES and all(instructions_hold(request, name) for name in names))
        or instructions_hold(request, *thinking.literals(found))
        or (not found.native and prompts_for_thinking_tags(request))
        # An answer about tags contains tags; only a reply that begins with a whole pair leaks.
        or (asks_about_thinking_tags(request) and not (found.evidence == "opened" and found.whole))
    )


def _is_certain(text: str, found: thinking.Thinking) -> bool:
    after_line_feed = found.evidence == "opened" and text[found.body[0] : found.body[0] + 1] == "\n"
    certain = found.evidence == "closed" or (found.evidence != "inner" and (found.whole or after_line_feed))
    return found.native and certain


def _message(text: str, found: thinking.Thinking) -> str:
    thought = text[found.body[0] : found.body[1]].strip()
    shown = f": {excerpt(thought)!r}" if thought else ""
    lack, article = "" if found.whole else ", never closed,", "an" if found.tag[:1] in "aeiou" else "a"
    opened = f"reasoning in {found.tag}{lack}" if thought else f"an empty {found.tag}"
    words = {
        "opened": f"{opened} leaked into the text",
        "closed": f"the text holds the end of {article} {found.tag} block whose beginning is missing",
        "inner": f"reasoning in {found.tag} leaked into the middle of the text",
        "residue": f"the text begins with reasoning, as the remains of {found.tag} show",
    }
    return f"{words[found.evidence]}{shown}"


def _fix(exchange: Exchange, choice: Choice, found: thinking.Thinking, part: Text, *, inside: bool) -> Fix | None:
    thought = part.text[found.body[0] : found.body[1]].strip()
    opened = found.evidence == "opened" and found.start == thinking.beginning(part.text)
    # Unclosed reasoning is the whole text; its tag or a later call shows it.
    if not found.whole and not (thought and (opened or (found.evidence == "residue" and choice.calls))):
        return None
    if not _is_in_reach(found, part, exchange.model):
        if found.evidence != "closed":
            return None
        waited = inside and found.end <= MOST_HELD and not any(isinstance(one, Reasoning) for one in choice.parts)
        if not waited:
            return Fix("unsafe", f"drop {part.text[found.body[1] : found.end].strip()}")
    if not thought:
        return Fix("unsafe", f"drop the empty {found.tag} block")
    return Fix("unsafe", f"move {len(thought)} characters of reasoning to {traits(exchange.api).reasoning}")


def _is_in_reach(found: thinking.Thinking, part: Text, model: str) -> bool:
    """Return True if the text was still held back when it became recognisable as reasoning. A whole body always is."""
    start, stop = found.body
    if not part.events or part.event_at(found.end - 1) == part.event_at(found.start):
        return True
    first = thinking.beginning(part.text)
    if found.evidence == "closed":
        return start >= stop
    if found.evidence == "opened" and found.start == first:
        return True
    awaited = found.evidence != "residue" or thinking.residue_head(part.text, first, model) is True
    return awaited and found.end - found.start <= MOST_HELD
