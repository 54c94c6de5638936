from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wirelint.apis.reading import MISSHAPEN
from wirelint.apis.traits import history_of, is_signed, is_text
from wirelint.model import Exchange, Message, Opaque, Request, Text
from wirelint.rule import Confidence, Edit, Finding, Fix, FixPolicy, RequestFix, Rule, excerpt
from wirelint.state.ledger import Ledger
from wirelint.text.asking import demands_json
from wirelint.text.content_reprs import (
    ContentRepr,
    Syntax,
    find_reprs,
    find_untyped,
    may_hold_repr,
    speaks_of_structures,
    unwrap,
)
from wirelint.text.pointers import at

_UNTYPED = frozenset({"bedrock.converse", "google.generate_content"})
"""APIs whose content parts have no type."""


class ContentReprLeak(Rule):
    """A serialised list of content parts stands where its text should.

    ## What it does
    Reads the texts of the request's messages for the printed form of content parts: Python's
    (`[{'type': 'text', 'text': 'Hi'}]`, `[TextBlock(text='Hi', type='text')]`), JSON's, JavaScript's
    `[object Object]`, Go's (`[map[text:Hi type:text]]`), Ruby's; and for messages (`content='Hi' additional_kwargs={} …`).
    A text that is nothing else is reported, and so is a prompt made of turns in which one is, and a last paragraph that is.
    At APIs whose parts have no type (Converse, Gemini) `[{'text': 'Hi'}]` counts, too.
    Of a reply it reports content of a JSON type that the API does not have there: an object, a number or a truth value in
    the place of text, a string in the place of Anthropic's blocks.

    ## Why is this bad?
    A program put a list where it should have joined the texts in it. The model reads brackets and quotes as if the user had
    written them, and answers in kind. Where the list was an empty text, `[{'type': 'text', 'text': ''}]` in place of
    nothing has kept models from calling tools.

    ## Example
    `{"role": "user", "content": "[{'type': 'text', 'text': 'What is the time?'}]"}`

    ## False positives
    Silent on content parts as parts, on structures that are quoted or stand in a sentence, on tool results and arguments,
    on lists of anything else, and where another text of the conversation shows or speaks of such structures. JSON in an
    assistant's text is left alone when JSON was asked for.

    ## Fix safety
    Safe: the structure is replaced by the text in it. Nothing is offered when it holds more than text (an image), when the
    text is lost, or when the API would not take the empty text that is left.

    ## References
    - OpenAI, Chat API: `messages[].content` is a string or an array of content parts
    - Anthropic, Messages API: `messages[].content` is a string or an array of content blocks
    """

    code = "LK104"
    name = "content-repr-leak"
    severity = "warning"
    layer = "client"
    ignored_fields = frozenset({"stream_options"})
    requires_in_reply = frozenset({"more"})

    def check_request(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        for leak in _leaks(exchange):
            yield self._tell(leak)

    def check_reply(self, exchange: Exchange, ledger: Ledger) -> Iterator[Finding]:
        if exchange.reply is None or not exchange.ok:
            return
        for choice in exchange.reply.choices:
            for part in choice.parts:
                if isinstance(part, Opaque) and part.kind.startswith(MISSHAPEN):
                    kind = excerpt(part.kind.removeprefix(MISSHAPEN))
                    yield self.finding(
                        "response",
                        f"the reply has {kind} as its content, which {exchange.api} does not have there; "
                        "clients find no text in it, or raise",
                        part.pointer,
                        layer="gateway",
                    )

    def mend(self, exchange: Exchange, ledger: Ledger, permit: FixPolicy) -> Iterator[RequestFix]:
        if not permit.allows(self.code, "safe"):
            return
        for leak in _leaks(exchange):
            if leak.edit is not None:
                after = leak.edit.value if isinstance(leak.edit.value, str) else ""
                title = f"replaced a list of content parts by its text: {excerpt(after) or '(empty)'}"
                before = leak.part.text
                yield (leak.edit,), self.repair("request", "safe", title, leak.part.pointer, before=before, after=after)

    def _tell(self, leak: _Leak) -> Finding:
        first = leak.found[0]
        shown = excerpt(leak.part.text[first.start : first.end])
        if first.syntax == "JavaScript" and first.says is None:
            said = f"the {leak.role} message says {shown}: its content parts were lost when they were made text"
        else:
            more = f", {len(leak.found)} times" if len(leak.found) > 1 else ""
            said = (
                f"the {leak.role} message holds content parts printed as {first.syntax}{more}, not their text: {shown}"
            )
        return self.finding(
            "request",
            said,
            leak.part.pointer,
            span=(first.start, first.end),
            confidence=_confidence(first),
            fix=Fix("safe", "replace the structure by its text") if leak.edit is not None else None,
        )


@dataclass(frozen=True, slots=True)
class _Leak:
    """A text with structures in it. `edit`: what puts their text in their place, None when nothing does."""

    role: str
    part: Text
    found: tuple[ContentRepr, ...]
    edit: Edit | None


def _leaks(exchange: Exchange) -> Iterator[_Leak]:
    request = exchange.request
    if request is None:
        return
    suspects = [
        (message, part, found)
        for message in request.messages
        for part in message.parts
        if isinstance(part, Text)
        and may_hold_repr(part.text)
        and "[redacted:" not in part.text
        and (found := find_reprs(part.text) or (find_untyped(part.text) if request.api in _UNTYPED else ()))
    ]
    if not suspects:
        return
    places = {part.pointer for _, part, _ in suspects}
    others = [
        part.text
        for message in request.messages
        if message.role != "tool"
        for part in message.parts
        if isinstance(part, Text) and part.pointer not in places
    ]
    expected: dict[Syntax, bool] = {}
    for message, part, found in suspects:
        syntax = found[0].syntax
        if syntax not in expected:
            expected[syntax] = any(speaks_of_structures(text, syntax) for text in others)
        if not expected[syntax] and not _is_meant(request, message, part, found):
            yield _Leak(message.role, part, found, _edit(request, part))


def _is_meant(request: Request, message: Message, part: Text, found: tuple[ContentRepr, ...]) -> bool:
    """Whether the structure is to be there: the words beside it speak of it, or JSON was asked for."""
    beside = "".join((part.text[: found[0].start], part.text[found[-1].end :]))
    if not found[0].framed and speaks_of_structures(beside, found[0].syntax):
        return True
    return demands_json(request) and message.role == "assistant" and found[0].syntax == "JSON"


def _edit(request: Request, part: Text) -> Edit | None:
    says = unwrap(part.text)
    if says == part.text:
        says = next((one.says for one in find_untyped(part.text)), None)
    if says is None or at(request.body, part.pointer) != part.text:
        return None  # a text that is put together from several places
    if says.strip() or not history_of(request.api).blocks:
        return Edit("replace", part.pointer, says)
    # Where messages are blocks, blank text is refused; the block goes where something else is left in its message.
    block, _, field = part.pointer.rpartition("/")
    content = at(request.body, block.rpartition("/")[0])
    blocks = content if field == "text" and isinstance(content, list) else []
    others = any(isinstance(one, dict) and not is_text(one) for one in blocks)
    return Edit("remove", block) if others and not is_signed(at(request.body, block)) else None


def _confidence(found: ContentRepr) -> Confidence:
    return "high" if found.whole and found.syntax != "JSON" else "medium"
