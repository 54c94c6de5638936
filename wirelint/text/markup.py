"""Leaked native tool-call markup in a reply, with a certainty for each leak.

Theory of operation. `wirelint.dialects` finds everything that reads like a call, `quoting` excludes quotations. The rest
may still be an answer about markup, a protocol that the prompt defines, or a draft in the model's reasoning. The tool's
name decides most: markup that calls a declared tool is a lost call. Without a declared name the certainty depends on the
markup (special tokens are never written by accident, plain tags are) and on the request: whether it declares tools, and
whether its texts hold such markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from wirelint import lexicon
from wirelint.apis.traits import ending, is_raw
from wirelint.dialects.openers import THOUGHT_ENDS
from wirelint.dialects.reader import CONTROL, Block, NativeCall
from wirelint.dialects.scan import SPEAKERS, find, is_damaged, look, may_hold_markup
from wirelint.fix import MOST_HELD
from wirelint.model import (
    Choice,
    Confidence,
    Exchange,
    Offsets,
    Part,
    Reasoning,
    Refusal,
    Request,
    Text,
    Tool,
    ToolCall,
)
from wirelint.text.asking import asks_about_calls, demands_json, instructions_hold, last_user_text, request_holds
from wirelint.text.families import family
from wirelint.text.quoting import fence_is_whole_message, is_mention, is_quoted

_PHRASES = lexicon.Phrases("markup")

Said: TypeAlias = Text | Reasoning | Refusal

_SERVED_BY_VENDOR = frozenset({"claude", "gpt", "gemini"})
_TAG_HEAD = re.compile(r"<[|｜]{0,2}[\w:▁]{2,40}")
_HEADS_WANTED = 4
_SHAPE_REACH = 2048
OWN_FENCE = re.compile(r"\s{0,8}(?:`{3,}|~{3,}|>>>)")
"""The start of a block in a notation that is itself a fence or a block quote."""
_FENCE_BEGIN = re.compile(r"\s*(?:[`~]{3,}[^\n`]*\n\s*)?")
_FENCE_END = re.compile(rf"\s*(?:[`~]{{3,}})?{CONTROL.pattern}")
_MEMBERS = r'"(?:type|text|role|content|message|assistant|output_text|output|response)"'
_JSON_BEGIN = re.compile(rf'(?:[\[{{:,\s]|{_MEMBERS})*"\s*')
_JSON_END = re.compile(rf'"[\]}}\s]*{CONTROL.pattern}')
"""A message in JSON, or its text alone, around markup: `{"role": "assistant", "content": "…"}`."""
MOST_MASKED = 16
"""Upper bound for the masked leaks of one text, and for its leaks that are fences: each costs a copy of the text, which is
parsed as Markdown."""
_WORDS = re.compile(r"[^\n]")
_NEAR = 8
_QUOTES = {'"': '"', "“": "”", "«": "»", "'": "'"}


@dataclass(frozen=True, slots=True)
class Leak:
    """A run of sibling blocks in one part of a reply.

    `names` are the called tools, in order. `declared`: the request declares one of them. `duplicate`: the reply makes every
    call structurally too. `draft`: it is part of reasoning, and the reply continues after it. `fenced`: it fills a code
    fence, or a message in JSON.
    """

    choice: Choice
    part: Said
    blocks: tuple[Block, ...]
    certainty: Confidence
    declared: bool
    promotable: bool
    duplicate: bool = False
    draft: bool = False
    fenced: bool = False

    @property
    def calls(self) -> tuple[NativeCall, ...]:
        return tuple(call for block in self.blocks for call in block.calls)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(call.name for call in self.calls))

    @property
    def span(self) -> tuple[int, int]:
        return self.blocks[0].start, self.blocks[-1].end

    @property
    def complete(self) -> bool:
        return all(block.complete for block in self.blocks)

    @property
    def dialect(self) -> str:
        return self.blocks[0].dialect


def leaks(exchange: Exchange) -> Iterator[Leak]:
    """Yield the leaked native markup of a reply."""
    request, reply = exchange.request, exchange.reply
    if request is None or reply is None or not exchange.ok or is_raw(exchange.api, request):
        return
    for choice in reply.choices:
        for part in _joined(choice.parts, request):
            if isinstance(part, Text | Reasoning | Refusal) and may_hold_markup(part.text, request.tools):
                shown, left, fences = part.text, MOST_MASKED, 0
                for blocks in siblings(part.text, find(part.text, request.tools)):
                    fences += OWN_FENCE.match(part.text, blocks[0].start) is not None
                    if fences > MOST_MASKED:
                        break  # each leak that is a fence costs a copy of the text
                    leak = judge(request, choice, part, blocks, shown)
                    if leak is not None and left:
                        masks = may_quote(shown, *leak.span)
                        shown, left = masked(shown, *leak.span) if masks else shown, left - masks
                    if leak is not None and (leak.complete or exchange.end != "client-left"):
                        yield leak


def _joined(parts: Sequence[Part], request: Request) -> Iterator[Part]:
    """Yield parts. A text joins the text before it, if it completes a call of a declared tool that is cut off there."""
    before: Part | None = None
    for part in parts:
        if isinstance(before, Text) and isinstance(part, Text):
            place, text = _cut_call(before.text, request), before.text + part.text
            if place is not None and complete_at(text, place, request.tools) is not None:
                moved = ((len(before.text) + start, event) for start, event in part.events)
                before = Text(text, before.pointer, Offsets((*before.events, *moved)))
                continue
        if before is not None:
            yield before
        before = part
    if before is not None:
        yield before


def _cut_call(text: str, request: Request) -> int | None:
    """Return the place of a call of a declared tool within which a text ends; None without one."""
    if not may_hold_markup(text, request.tools):
        return None
    seen = look(text, request.tools)
    if seen.open is None or not seen.hopeful or (seen.begun is not None and seen.begun.complete):
        return None
    return seen.open if not is_quoted(text, seen.open, seen.open + 1) else None


def complete_at(text: str, place: int, tools: Sequence[Tool]) -> Block | None:
    """Return the markup at an offset, if it is complete."""
    found = find(text, tools, place)
    return found[0] if found and found[0].start == place and found[0].complete else None


def are_too_many(text: str, tools: Sequence[Tool]) -> bool:
    """Return True if a text has more calls in native markup with delimiters of quotations than are masked.

    All markup is found here, so that the rules find it in memory: a long reply is read in a thread, and judged on the loop.
    """
    blocks = find(text, tools) if may_hold_markup(text, tools) else ()
    if sum(map(text.count, ("`", "~~~", ">>>"))) <= MOST_MASKED:
        return False
    runs = [(run[0].start, run[-1].end) for run in siblings(text, blocks)]
    quoting = [OWN_FENCE.match(text, start) is not None or may_quote(text, start, end) for start, end in runs]
    return sum(quoting) > MOST_MASKED


def siblings(text: str, blocks: Sequence[Block]) -> Iterator[tuple[Block, ...]]:
    """Yield runs of blocks with only white space and control tokens between them."""
    run: list[Block] = []
    for block in blocks:
        if run and CONTROL.fullmatch(text, run[-1].end, block.start) is None:
            yield tuple(run)
            run = []
        run.append(block)
    if run:
        yield tuple(run)


def call_spans(text: str, request: Request) -> Iterator[tuple[int, int]]:
    """Yield the spans of all tool calls in native markup in a text."""
    if may_hold_markup(text, request.tools):
        yield from ((block.start, block.end) for block in find(text, request.tools) if block.calls)


def blame(leak: Leak, model: str) -> Literal["gateway", "model"]:
    """Return the party at fault: a server that did not convert its model's notation, or a model that wrote another one.

    Damaged markup of a model that its vendor serves is the model's fault: the vendor converts undamaged calls.
    """
    speaker, native = family(model), SPEAKERS.get(leak.dialect)
    if speaker is None or native is None:
        return "gateway"
    if speaker not in native:
        return "model"
    damaged = leak.complete and any(is_damaged(leak.part.text, block) for block in leak.blocks)
    return "model" if speaker in _SERVED_BY_VENDOR and damaged else "gateway"


def promises_call(choice: Choice) -> bool:
    """Return True if the finish reason announces a call that is missing."""
    return ending(choice.finish_reason) == "calls" and not choice.calls


def may_quote(text: str, start: int, end: int) -> bool:
    """Return True if a leak holds delimiters of quotations."""
    return text.find("`", start, end) >= 0 or text.find("~~~", start, end) >= 0


def masked(text: str, start: int, end: int) -> str:
    """Return the text with a leak replaced by as many letters, so that its delimiters quote nothing after it."""
    return text[:start] + _WORDS.sub("x", text[start:end]) + text[end:]


def judge(
    request: Request, choice: Choice, part: Said, blocks: tuple[Block, ...], shown: str | None = None
) -> Leak | None:
    """Return the leak of a run of sibling blocks in a part; None if it is none. The part may be incomplete.

    `shown` is the text with the leaks before this one `masked`, for the search for quotations.
    """
    calls = [call for block in blocks for call in block.calls]
    offered = {tool.name for tool in request.client_tools}
    declared = any(call.name in offered for call in calls)
    fenced = _is_quoted(part.text if shown is None else shown, blocks)
    if fenced and not (declared and _stands_for_call(request, choice, part, blocks)):
        return None
    certainty = _certainty(request, choice, part, blocks, declared=declared)
    if certainty is None:
        return None
    structured = [made for made in choice.calls if not made.is_empty]
    draft = isinstance(part, Reasoning) and bool(choice.text.strip() or structured)
    if draft and any(call.name == made.name for call in calls for made in structured):
        return None  # the call follows its draft
    duplicate = bool(calls) and are_among(calls, structured)
    whole = all(block.complete for block in blocks) and all(call.name in offered for call in calls)
    allowed = request.tool_choice.mode != "none" and not structured and not draft and not fenced
    # A stream holds back no longer run, so a whole body is not repaired either.
    held = blocks[-1].end - blocks[0].start <= MOST_HELD
    promotable = whole and allowed and bool(calls) and certainty != "low" and held
    return Leak(choice, part, blocks, "low" if fenced else certainty, declared, promotable, duplicate, draft, fenced)


def _certainty(
    request: Request, choice: Choice, part: Said, blocks: tuple[Block, ...], *, declared: bool
) -> Confidence | None:
    """Return the certainty that markup is a lost call; None if it is none or if that is unknown."""
    calls = [call for block in blocks for call in block.calls]
    text = part.text[blocks[0].start : blocks[-1].end]
    prompted, asked = instructions_hold(request, *_heads(text)), asks_about_calls(request)
    if all(block.tier == "weak" for block in blocks):
        wanted = asked or _sets_up(request, text) or request_holds(request, text) or demands_json(request)
        ends = CONTROL.fullmatch(part.text, blocks[-1].end) is not None
        before = part.text[: blocks[0].start].rstrip()
        first = not before or before.endswith(THOUGHT_ENDS)
        # Functionary's text to `all`, and then to a tool after `>>>`, is no block quote.
        addressed = part.text.lstrip().startswith("all\n") or "functionary" in request.model.lower()
        recipient = addressed and text.lstrip().startswith(">>>")
        alone = first or not OWN_FENCE.match(text) or recipient
        return "medium" if declared and isinstance(part, Text) and ends and alone and not wanted else None
    if not calls and is_mention(part.text, blocks[0].start, blocks[-1].end):
        return None
    if declared and asked and OWN_FENCE.match(text):
        return "low"  # a fence in an explanation
    if declared:
        # A client that defines a protocol in its prompt may read it itself; text that the request holds is a repetition.
        return "low" if prompted or request_holds(request, text) else "medium" if asked else "high"
    if prompted or asked or request_holds(request, text) or any(call.name in last_user_text(request) for call in calls):
        return None
    if {call.name for call in calls} & {made.name for made in request.calls}:
        return "medium"  # a tool that is no longer declared
    if any(block.tier == "sentinel" for block in blocks):
        return "medium"
    in_play = bool(request.client_tools) or promises_call(choice)
    return "medium" if in_play else None


def _sets_up(request: Request, text: str) -> bool:
    """Return True if the prompt defines the shape of a text: then the client reads it."""
    marks = list(dict.fromkeys(match[0] for match in _PHRASES["shape_marks"].finditer(text[:_SHAPE_REACH])))
    return bool(marks) and all(instructions_hold(request, mark) for mark in marks[:_HEADS_WANTED])


def _is_quoted(text: str, blocks: tuple[Block, ...]) -> bool:
    start, end = blocks[0].start, blocks[-1].end
    before = text[max(start - _NEAR, 0) : start].rstrip(" ")  # a notation may begin with a blank
    if before and _QUOTES.get(before[-1]) == text[end : end + 1] != "":
        return True
    # A fence of the notation itself quotes nothing; text around it may.
    fence = OWN_FENCE.match(text, start, end)
    return is_quoted(text if fence is None else masked(text, fence.start(), end), start, end)


def _stands_for_call(request: Request, choice: Choice, part: Said, blocks: tuple[Block, ...]) -> bool:
    """Return True if the reply is one call in a fence or in JSON, and the request wants no example of one.

    The fence must hold nothing else: a document with an example may be fenced as a whole too.
    """
    if not isinstance(part, Text) or choice.calls or asks_about_calls(request):
        return False
    text, start, end = part.text, blocks[0].start, blocks[-1].end
    if _FENCE_BEGIN.fullmatch(text, 0, start) and _FENCE_END.fullmatch(text, end):
        return fence_is_whole_message(text.strip()) and not instructions_hold(request, *_heads(text))
    in_json = _JSON_BEGIN.fullmatch(text, 0, start) is not None and _JSON_END.fullmatch(text, end) is not None
    return in_json and not (demands_json(request) or instructions_hold(request, *_heads(text)))


def _heads(text: str) -> tuple[str, ...]:
    plain = html.unescape(text) if "&" in text else text
    heads = dict.fromkeys(match[0] for match, _ in zip(_TAG_HEAD.finditer(plain), range(_HEADS_WANTED), strict=False))
    return tuple(heads) or (plain[:16],)


def are_among(calls: Iterable[NativeCall], made: Sequence[ToolCall]) -> bool:
    """Return True if each call equals a structured one, or one of several that were joined into one."""
    known = [(one.name, value) for one in made for value in one.arguments.values]
    return all(call.arguments is not None and (call.name, call.arguments) in known for call in calls)
