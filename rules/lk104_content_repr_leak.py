from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import ClassVar, NamedTuple

from wirelint.apis.reading import MISSHAPEN
from wirelint.apis.traits import history_of, is_signed, is_text, traits
from wirelint.events import Delta, Event, Start
from wirelint.fix import PassingRewriter, RewriteContext, Rewriter
from wirelint.model import Exchange, Opaque, Request, Text
from wirelint.rule import REDACTED, Edit, Finding, Fix, Fixable, FixPolicy, RequestRule, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text import content_reprs
from wirelint.text.asking import demands_json
from wirelint.text.pointers import at

_WRITABLE = ("openai.chat", "mistral.chat", "ollama.chat", "anthropic.messages", "cohere.chat", "bedrock.converse")
_UNTYPED = ("bedrock.converse", "google.generate_content")
"""APIs whose content parts have no type."""


class ContentReprLeak(RequestRule):
    """A message contains a serialised list of content parts instead of its text.

    ## What it does
    Reads the texts of a request's messages for printed content parts: Python's (`[{'type': 'text', 'text': 'Hi'}]`,
    `[TextBlock(text='Hi', type='text')]`), JSON's, JavaScript's `[object Object]`, Go's (`[map[text:Hi type:text]]`),
    Ruby's; and printed messages (`content='Hi' additional_kwargs={} …`). Reports a text, a turn inside a prompt, or a
    last paragraph that consists only of them. At APIs whose parts have no type (Converse, Gemini) `[{'text': 'Hi'}]`
    counts too. In a reply it reports content of a JSON type that the API does not use there: an object, number or
    boolean instead of text, a string instead of Anthropic's blocks.

    ## Why is this bad?
    A program inserted a list instead of joining its texts. The model reads brackets and quotes as the user's words and
    answers in kind. An empty list text (`[{'type': 'text', 'text': ''}]`) has kept models from calling tools.

    ## Example
    `{"role": "user", "content": "[{'type': 'text', 'text': 'What is the time?'}]"}`

    ## False positives
    Silent on real content parts, on structures that are quoted or part of a sentence, on tool results and arguments, on
    other lists, and where another text of the conversation shows or discusses such structures. JSON in an assistant's
    text is allowed when the request demands JSON.

    ## Fix safety
    Safe: the structure is replaced by its text, unless it holds more than text (an image), the text is lost, or the API
    would refuse what remains. Unsafe: an object as the content of a reply becomes its text, or JSON as text.

    ## References
    - OpenAI, Chat API: `messages[].content` is a string or an array of content parts
    - Anthropic, Messages API: `messages[].content` is a string or an array of content blocks
    """

    severity = "warning"
    layer = "client"
    requires_in_reply = frozenset({"more"})

    def faults(self, request: Request, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[Fixable]:
        for leak in _leaks(request):
            first, part, edit = leak.found[0], leak.part, leak.edit
            shown = excerpt(part.text[first.start : first.end])
            if first.syntax == "JavaScript" and first.says is None:
                text = f"the {leak.role} message says {shown}: its content parts were lost in a conversion to text"
            else:
                printed = f"printed as {first.syntax}{f', {len(leak.found)} times' if len(leak.found) > 1 else ''}"
                text = f"the {leak.role} message holds content parts {printed}, not their text: {shown}"
            finding = self.finding(
                "request",
                text,
                part.pointer,
                span=(first.start, first.end),
                confidence="high" if first.whole and first.syntax != "JSON" else "medium",
                fix=Fix("safe", "replace the structure by its text") if edit is not None else None,
            )
            after = edit.value if edit is not None and isinstance(edit.value, str) else ""
            title = f"replaced a list of content parts by its text: {excerpt(after) or '(empty)'}"
            record = self.repair("request", "safe", title, part.pointer, before=part.text, after=after)
            yield finding, ((edit,), record) if edit is not None else None

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.reply is None or not exchange.ok:
            return
        for part in exchange.reply.parts:
            if isinstance(part, Opaque) and part.kind.startswith(MISSHAPEN):
                content = f"{excerpt(part.kind.removeprefix(MISSHAPEN))} as its content"
                effect = f"{exchange.api} does not have there; clients find no text in it, or raise"
                fix = Fix("unsafe", "write it as text") if _is_content(exchange.api, part.pointer) else None
                yield self.finding(
                    "response", f"the reply has {content}, which {effect}", part.pointer, layer="gateway", fix=fix
                )

    def rewriter(self, context: RewriteContext) -> Rewriter | None:
        if context.exchange.api not in _WRITABLE or not context.permit.allows(self.code, "unsafe"):
            return None
        return ContentAsText(self, context)


def _is_content(api: str, pointer: str) -> bool:
    """Return True for the content of a message as a whole; a text inside a block has no other form."""
    return api in _WRITABLE and pointer.endswith("/content")


class ContentAsText(PassingRewriter):
    """Turns content of another type into text."""

    phase: ClassVar[float] = 2
    patient: ClassVar[bool] = True

    def __init__(self, rule: Rule, context: RewriteContext) -> None:
        self._rule, self._context = rule, context
        self._joins = not traits(context.exchange.api).has_block_events
        self._texts: dict[int, int] = {}
        """The text block of each candidate, at APIs where a candidate has one text."""
        self._blocks: dict[int, int] = {}
        self._starts: list[Start] = []

    def push(self, event: Event) -> Iterable[Event]:
        match event:
            case Start(kind="opaque", name=str(name)) if name.startswith(MISSHAPEN):
                if _is_content(self._context.exchange.api, event.pointer):
                    self._starts.append(event)
                    return self._text(event._replace(kind="text", name=None), self._context.new_block())
            case Start(kind="text") if self._joins:
                return self._text(event, event.block)
            case Delta(block=block) if block in self._blocks:
                for start in self._starts:
                    title, place = "wrote the content as text", start.pointer
                    self._rule.record(self._context, "unsafe", title, place, at=start, after=event.text)
                self._starts.clear()
                return (event._replace(block=self._blocks[block]),)
        return (event,)

    def _text(self, start: Start, number: int) -> Iterable[Event]:
        """Begin a text block under a number, or continue the candidate's text block."""
        begun = self._texts.get(start.choice) if self._joins else None
        if begun is not None:
            self._blocks[start.block] = begun
            return ()
        self._texts[start.choice] = number
        if number == start.block:
            return (start,)
        self._blocks[start.block] = number
        return (start._replace(block=number),)


class _Leak(NamedTuple):
    """A text with printed structures. `edit` replaces them by their text; None if that is impossible."""

    role: str
    part: Text
    found: tuple[content_reprs.ContentRepr, ...]
    edit: Edit | None


def _leaks(request: Request) -> Iterator[_Leak]:
    texts = [(message.role, part) for message in request.messages for part in message.parts if isinstance(part, Text)]
    suspects: list[_Leak] = []
    for role, part in texts:
        if content_reprs.may_hold_repr(part.text) and REDACTED not in part.text:
            found = content_reprs.find_reprs(part.text)
            if found or (request.api in _UNTYPED and (found := content_reprs.find_untyped(part.text))):
                suspects.append(_Leak(role, part, found, None))
    places = {leak.part.pointer for leak in suspects}
    others = [part.text for role, part in texts if role != "tool" and part.pointer not in places]

    @cache
    def is_expected(syntax: content_reprs.Syntax) -> bool:
        return any(content_reprs.speaks_of_structures(text, syntax) for text in others)

    for leak in suspects:
        if not is_expected(leak.found[0].syntax) and not _is_intended(request, leak):
            yield leak._replace(edit=_edit(request, leak.part))


def _is_intended(request: Request, leak: _Leak) -> bool:
    """Return True if the structure is intended: the text around it discusses it, or the request demands JSON."""
    first, text = leak.found[0], leak.part.text
    beside = "".join((text[: first.start], text[leak.found[-1].end :]))
    if not first.framed and content_reprs.speaks_of_structures(beside, first.syntax):
        return True
    return demands_json(request) and leak.role == "assistant" and first.syntax == "JSON"


def _edit(request: Request, part: Text) -> Edit | None:
    says = content_reprs.unwrap(part.text)
    if says == part.text:
        says = next((one.says for one in content_reprs.find_untyped(part.text)), None)
    if says is None or at(request.body, part.pointer) != part.text:
        return None  # the text is joined from several places
    if says.strip() or not history_of(request.api).has_blocks:
        return Edit("replace", part.pointer, says)
    # APIs with blocks refuse blank text; the block is removed if its message has other blocks.
    block, _, field = part.pointer.rpartition("/")
    content = at(request.body, block.rpartition("/")[0])
    blocks = content if field == "text" and isinstance(content, list) else []
    others = any(isinstance(one, dict) and not is_text(one) for one in blocks)
    return Edit("remove", block) if others and not is_signed(at(request.body, block)) else None
