"""Text of a model that is stuck in a loop, and bodies that carry it: what `adversarial` measures.

The units come from the knowledge of wirelint itself: openers and closers of all dialects, tokens of chat templates, tags of
reasoning, quotation marks, brackets, line ends. A new dialect or token is part of the shapes without any work here.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from tests.build import Assistant, Call, Result, Talk, User, as_record, schema
from tests.dialects.writers import SOUP
from wirelint.capture.record import Record
from wirelint.dialects import FAMILIES
from wirelint.dialects.openers import Either, LineStart, Name, Opener, Run, TextStart, WordStart
from wirelint.text.control_tokens import EDGES, SURE
from wirelint.text.thinking import REASONING_TAGS, SENTENCE_HEADS

Place: TypeAlias = Literal["text", "reasoning", "arguments", "string", "name", "id", "result", "history"]

PLACES: tuple[Place, ...] = get_args(Place)
TOOLS = {"look": ("Look things up.", schema(q="string")), "run": ("Run a command.", schema(command="string"))}
APIS = ("openai.chat", "anthropic.messages", "openai.responses", "google.generate_content")
STEPS = (1, 8, 64)

# fmt: off
_MARKS = (
    *"<>[]{}()\"'`~|#*-_=+:;,.&\\/@!?$%^ \t\n\r",
    *("\r\n", "\n\n", "\r\r", " \n", "\n ", "a\n", "a\r"),
    *("\\n", "\\\"", "\\\\", "\\u003c", "&lt;", "&gt;", "&amp;", "&#60;"),
    *("```", "```\n", "\n```\n", "```json\n", "~~~\n", "`a`", "`a"),
    *("> ", "\n> ", "\n    ", "\n\t", "* ", "\n- ", "\n1. ", "\n# "),
    *("**", "__", "![](", "[a](", "<a ", "</", "</a"),
    *("<!--", "<![CDATA[", "<?", "<br>", "<div>", "</div>", "<p", "<a b="),
    *("data: ", "\ndata: ", "\n\ndata: {}\n\n", "event: ", "id: ", ": ", "[DONE]"),
    *("\x00", "\u200b", "\ufeff", "\u2028", "é", "漢", "😀"),
    *("0", "1", "-", "1.", "1e", "1,", "20 results. ", "3 of 4 ", "null,"),
    *("true,", "{}", "[]", "{},", "[],", '{"a":', '{"a":"', '["', '[{"'),
    *('{"a":1}', "{'a':", "{'a': 'b'}, ", '"a",', "a, "),
    *("a. ", "a b ", "The file was read. ", "I will look it up. ", "I looked it up. "),
    *("Let me look. ", "look(", "look(q=", 'look(q="a") ', "look:0"),
    *("functions.look:0", "call_", "functions.", "Action: look\n", "Observation: "),
    *("Thought: ", "Action Input: {", "Final Answer: ", "User: "),
    *("Human: ", "\nassistant\n", "assistant", "analysis", "assistantfinal"),
    *("https://a.b/", "a@b.c ", "sk-", "sk-proj-aaaaaaaaaaaaaaaaaaaa ", "Bearer "),
    *("key=", "password: ", "-----BEGIN ", "eyJ", "eyJhbGciOiJIUzI1NiJ9."),
    *("[{'type': 'text', 'text': '", "[{'type': ", "{'type': 'text', 'text': 'a'}"),
    *('[{"type": "text", "text": "a"}] ', "content='", "None, "),
    *("<|", "|>", "<｜", "｜>", "[/", "]~b]"),
    *('"name":', '"name": "look", ', '"arguments": {'),
    *('"arguments": "{', '{"name": "look", "arguments": {"q": "a"}}\n', '{"tool_calls": [', '{"function": '),
)
# fmt: on


def _written(opener: Opener, most: bool) -> str:
    """An opener as text: the first options and as few characters of each class as can be, or the last and some more."""
    return "".join(_piece(piece, most) for piece in opener)


def _piece(piece: object, most: bool) -> str:
    match piece:
        case str():
            return piece
        case Run(chars, least, longest):
            return _one_of(chars) * min(longest, max(least, 3 if most else 0))
        case Either(options):
            return _written(options[-1 if most else 0], most)
        case Name():
            return "look"
        case LineStart():
            return "\n"
        case WordStart():
            return " "
        case TextStart():
            return ""
    raise TypeError(piece)


@functools.cache
def _one_of(chars: str) -> str:
    pattern = re.compile(f"[{chars}]")
    return next(one for one in 'a0 _-:/="|<>{[(\n\t' + "".join(map(chr, range(1, 0x10000))) if pattern.match(one))


def _plain(pattern: str) -> str:
    """A text that a simple regular expression of literals fits: groups, classes and repetitions are read off roughly."""
    text = re.sub(r"\(\?[=:!<]+[^()]*\)|\[\^[^]]*\](?:\{[\d,]+\})?|\\s\?|\\n\?|\?", "", pattern)
    text = re.sub(r"\([^()|]*\|?[^()]*\)", "", text).replace("\\s", " ").replace("\\n", "\n")
    return re.sub(r"\\(.)", r"\1", text).split("|<")[0]


@functools.cache
def units() -> tuple[str, ...]:
    """All that a text may repeat: openers, closers, tokens, brackets, and bodies that are begun."""
    found: dict[str, None] = dict.fromkeys(_MARKS)
    for family in FAMILIES:
        for opener in family.openers:
            for most in (False, True):
                begun = _written(opener, most)
                found.update(dict.fromkeys((begun, begun[: len(begun) // 2 + 1], begun + _BODY)))
        for closer in family.closers:
            found[f"</{_plain(closer)}>"] = None
        for ending in family.after_name:
            found["\nlook" + _written(ending, False)] = None
    for token in sorted(SURE | EDGES):
        found[token] = None
    for tag in REASONING_TAGS:
        begins = _plain(tag.opener) if tag.opener else tag.name
        ends = _plain(tag.closer) if tag.closer else f"</{tag.name[1:]}"
        found.update(dict.fromkeys((begins, ends, f"{begins}a{ends}", f"\n{begins}\n", f"{ends}\n\n")))
    found.update(dict.fromkeys(SENTENCE_HEADS))
    found.update(dict.fromkeys(SOUP.values()))
    found.pop("", None)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Shape:
    """What fills a text up to a size: `head` once, then `unit` again and again."""

    head: str
    unit: str

    @property
    def name(self) -> str:
        shown = repr(self.unit)[1:-1]
        shown = shown if len(shown) <= 56 else f"{shown[:55]}…"
        return f"{repr(self.head)[1:-1][:24]} + {shown}" if self.head else shown

    def text(self, size: int) -> str:
        if self.unit == NESTED:
            closer = "".join(reversed(self.head)).translate(str.maketrans("<>[](){}", "><][)(}{"))
            depth = max(size // len(self.head) // 2, 1)
            return self.head * depth + closer * depth
        return self.head + self.unit * max((size - len(self.head)) // len(self.unit), 1)


_BODY = '{"name": "look", "arguments": {"q": "a'
NESTED = "\0nested"
"""In the place of a unit: the beginning again and again, and then as often what closes it."""


def shapes() -> Iterator[Shape]:
    """Every unit repeated, then behind a beginning; then pairs of units in turn."""
    every = units()
    yield from (Shape("", unit) for unit in every)
    yield from (Shape(unit, NESTED) for unit in every)
    heads = (
        *("Here it is: ", "<think>", "```\n", "`", '"', "[", "{", "> ", "<tool_call>", "<tool_call>\n{"),
        '[TOOL_CALLS][{"name": "look", "arguments": {"q": "',
        '<function_calls>\n<invoke name="look">\n<parameter name="q">',
    )
    yield from (Shape(head, unit) for head in heads for unit in every)
    yield from (
        Shape("", f"{one}{sep}{other}") for one, other in itertools.permutations(every, 2) for sep in ("", "a ", "\n")
    )


def record(api: str, place: Place, text: str, *, stream: bool, step: int) -> Record | None:
    """An exchange that has a text at a place of its reply or of its history; None where the API cannot say it."""
    history: tuple[Assistant | User | Result, ...] = (User("Please go on."),)
    talk = Talk(
        history, tools=TOOLS, step=step, text="Well, here it is. " if place in ("arguments", "name", "id") else ""
    )
    parsed = api in ("anthropic.messages", "google.generate_content")
    match place:
        case "text":
            talk = Talk(history, text=text, tools=TOOLS, step=step)
        case "reasoning":
            talk = Talk(history, text="Well.", reasoning=text, tools=TOOLS, step=step)
        case "arguments":
            if parsed:
                return None
            talk = Talk(history, calls=[Call("look", text)], tools=TOOLS, step=step)
        case "string":
            talk = Talk(
                history, calls=[Call("look", json.dumps({"q": text}, ensure_ascii=False))], tools=TOOLS, step=step
            )
        case "name":
            talk = Talk(history, calls=[Call(text, {"q": "a"})], tools=TOOLS, step=step)
        case "id":
            talk = Talk(history, calls=[Call("look", {"q": "a"}, id=text)], tools=TOOLS, step=step)
        case "history":
            talk = Talk((User("Go."), Assistant(text), User("Please go on.")), text="Yes.", tools=TOOLS)
        case "result":
            made = Call("look", {"q": "a"})
            talk = Talk((User("Go."), Assistant("", (made,)), Result(made.id, text)), text="Yes.", tools=TOOLS)
    return as_record(talk.record(api, stream))
