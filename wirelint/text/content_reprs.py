"""Content parts printed as a structure in a text: `[{'type': 'text', 'text': 'Hi'}]` instead of `Hi`.

Theory of operation. A program that should have joined the text of some content parts formatted their list instead: by
Python's `repr`, by a JSON encoder, or by JavaScript's `[object Object]`. Then the whole text, or the whole text between two
tokens of a chat template or after the label of a speaker, is one such structure; a text about structures has words
beside them. A reader of literals decides: it reads the notations of Python and JSON and the constructors of SDK
classes, and the value must be a list of parts as the APIs define them. It runs only if a cheap search finds an opener.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from wirelint import lexicon
from wirelint.dialects import jsontext, python_calls
from wirelint.model import Json

_PHRASES = lexicon.Phrases("content_reprs")

_STRING = r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
_MARK = re.compile(rf"(?P<string>{_STRING})|(?P<opens>[\[({{])|(?P<closes>[\])}}])|[\"']")


class Printed(NamedTuple):
    """A literal in a text: the items of a list, or the only value, and the offset after it.

    `pythonic`: the literal is no JSON.
    """

    items: list[Json]
    end: int
    pythonic: bool


def read_literal(text: str, start: int = 0) -> Printed | None:
    """Read the literal at an offset, as programs print it: JSON, Python's `repr`, and constructors with named arguments.

    Nothing is evaluated. `TextBlock(text='Hi', type='text')` reads as `{"text": "Hi", "type": "text"}`.
    """
    decoded = jsontext.decode_at(text, start)
    value, end = decoded.value, decoded.end
    if decoded.failed:
        end = _literal_end(text, start)
        try:
            value = python_calls.json_of(_Constructors().visit(python_calls.parse(text[start:end])))
        except (ValueError, RecursionError):
            return None
    elif not decoded.healthy:
        return None
    return Printed(value if isinstance(value, list) else [value], end, decoded.failed)


def _literal_end(text: str, start: int) -> int:
    """Return the end of the string or the brackets that come first; `start` if they have no end."""
    depth = 0
    for mark in _MARK.finditer(text, start):
        depth += (mark["opens"] is not None) - (mark["closes"] is not None)
        if not depth or not mark.lastgroup:
            return mark.end() if mark.lastgroup else start
    return start


class _Constructors(ast.NodeTransformer):
    """Constructors as dictionaries of their named arguments."""

    def visit_Call(self, call: ast.Call) -> ast.expr:
        if call.args:
            raise ValueError("no named argument")
        values = [self.visit(keyword.value) for keyword in call.keywords]
        return ast.Dict([ast.Constant(keyword.arg) for keyword in call.keywords], values)


# Content parts as other languages print them, and whole messages as Python SDKs print them.
#
# Go prints maps with their keys in order (`[map[text:Hi type:text]]`), Ruby hashes with rockets or without
# (`[{:type=>"text", :text=>"Hi"}]`, `[{type: "text", text: "Hi"}]`), JavaScript's inspection with single quotes.
# LangChain's messages give `content='Hi' additional_kwargs={} response_metadata={}` as a string and their constructor as a
# representation, as OpenAI's do (`ChatCompletionMessage(content='Hi', refusal=None, role='assistant', …)`).
#
# The whole text must be one such structure.

_KIND = _PHRASES.text("kind")
_GO_START = re.compile(r"\[map\[(?:cache_control:map\[[^\[\]]{0,60}\] )?text:")
_GO_SEAM = re.compile(rf" type:{_KIND}\] map\[(?:cache_control:map\[[^\[\]]{{0,60}}\] )?text:")
_GO_END = re.compile(rf" type:{_KIND}\]\]\Z")
_GO_OTHER = re.compile(r" type:(?:image_url|input_image|image|file|input_file|input_audio|document)\](?=\]?\Z| map\[)")
_GO_WORDS = re.compile(rf" type:{_KIND}\](?=\]\Z| map\[)")
_RUBY_START = re.compile(r"\[\s{0,4}(?=\{\s{0,4}(?::type|type:|[\"']type[\"']\s?=>))")
_RUBY_SEAM = re.compile(r",\s{0,8}")
_PRINTED_REST = re.compile(r"\s{1,2}(?:name=\S{1,80}\s)?additional_kwargs=\{")
_CONSTRUCTED = re.compile(r"\[?[A-Z][A-Za-z]{0,40}Message(?:Chunk|Param)?\(content=['\"]")
_FIELDS = frozenset({"role", "additional_kwargs", "response_metadata", "refusal"})

Foreign = Literal["Python", "JavaScript", "Go", "Ruby"]


def may_be_foreign(text: str) -> bool:
    """Return True if `read_foreign` can find anything; `text` begins with no blanks."""
    return text.startswith(("[map[", "content=", "[{:", "[{t", "[ {", '[{"type"=', '[{"type" =')) or (
        "Message" in text[:64] and _CONSTRUCTED.match(text) is not None
    )


def read_foreign(text: str) -> tuple[str | None, Foreign] | None:
    """Return the words of a text that is one such structure, and the language that printed it; else None.

    The words are None if the message holds more than words.
    """
    text = text.strip()
    if not may_be_foreign(text):
        return None
    if ruby := _RUBY_START.match(text):
        at = ruby.end()
        words: list[str] = []
        while part := _PHRASES["ruby_part"].match(text, at):
            said = read_literal(part[1])
            words.append(str(said.items[0]) if said else part[1][1:-1])
            at = part.end()
            if seam := _RUBY_SEAM.match(text, at):
                at = seam.end()
        if not words or text[at:] != "]":
            return None
        return "".join(words), "JavaScript" if "=>" not in text[:40] and "'" in text[:16] else "Ruby"
    if not text.startswith("[map["):
        return _read_printed(text) if text.startswith("content=") else _read_constructed(text)
    if _GO_OTHER.search(text):
        return (None, "Go") if text.endswith("]]") and _GO_WORDS.search(text) else None
    start, end = _GO_START.match(text), _GO_END.search(text, max(len(text) - 32, 0))
    if start is None or end is None or end.start() < start.end():
        return None
    return "".join(_GO_SEAM.split(text[start.end() : end.start()])), "Go"


def _read_printed(text: str) -> tuple[str | None, Foreign] | None:
    read = read_literal(text, len("content="))
    said = read.items[0] if read and read.items else None
    if read is None or not isinstance(said, str) or _PRINTED_REST.match(text, read.end) is None:
        return None
    return said if "tool_calls=[{" not in text[read.end :] else None, "Python"


def _read_constructed(text: str) -> tuple[str | None, Foreign] | None:
    read = read_literal(text)
    items = read.items if read is not None and not text[read.end :].strip() else []
    messages = [item for item in items if isinstance(item, dict) and isinstance(item.get("content"), str)]
    if not messages or len(messages) < len(items):
        return None
    if any(_FIELDS.isdisjoint(message) for message in messages):
        return None
    said = messages[0]["content"] if not messages[0].get("tool_calls") else None
    return said if isinstance(said, str) and len(messages) == 1 else None, "Python"


Syntax: TypeAlias = Literal["JSON"] | Foreign

_WORDS = frozenset({"text", "input_text", "output_text"})
_OTHERS = frozenset(_PHRASES.words("others"))
_BESIDE = frozenset(_PHRASES.words("beside"))
_PART = _PHRASES.text(
    "part", words_others="|".join(sorted(_WORDS | _OTHERS)), beside="|".join(sorted(_BESIDE - {"type"}))
)
_OPENER = re.compile(rf"\[?\s{{0,8}}{_PART}")
_UNTYPED = re.compile(r"\[\s{0,8}(?:\{\s{0,4}'text'\s?:\s?['\"]|Part\()")
_OBJECTS = re.compile(r"\s*\[object Object\](?:\s*,\s*\[object Object\])*\s*")
_TOKEN = _PHRASES.text("token")
_FIRST = re.compile(rf"\s*(?:{_TOKEN}|(?:user|human|assistant|ai|system)[ \t]?:)", re.IGNORECASE)
_FRAME_END = re.compile(rf"\s{{0,4}}(?:{_TOKEN}|\Z)|[ \t]*\n")
_APART = re.compile(r"\n\s{0,8}\n(?=\[\{'|\[[A-Z]\w{1,60}\()")
_INTRODUCES = re.compile(r"[:?`>]\s*\Z")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_MOST_READ = 1 << 20
_MOST_NESTED = 16


@dataclass(frozen=True, slots=True)
class ContentRepr:
    """A structure in a text: its place, its notation, and `says`, the joined text of its parts.

    `says` is None if it holds more than text, or if the text is lost. `whole`: it is the whole text. `framed`: it
    follows a token or the label of a speaker. Neither: it is a separate paragraph.
    """

    start: int
    end: int
    syntax: Syntax
    says: str | None
    whole: bool = False
    framed: bool = False


def may_hold_repr(text: str) -> bool:
    """Return True if `find_reprs` can find a structure. A cheap test, False for nearly every text."""
    first = text[:64].lstrip()[:1]
    if first and (first in "[{" or (first.isupper() and "type='" in text)):
        return True
    quoted = "'" in text and ("'type': '" in text or "type='text'" in text)
    return quoted or may_be_foreign(text[:128].lstrip())


def find_reprs(text: str) -> tuple[ContentRepr, ...]:
    """Return the structures that are in place of words: the whole text, one per speaker, or the last paragraph."""
    if len(text) > _MOST_READ or not may_hold_repr(text):
        return ()
    if _OBJECTS.fullmatch(text):
        return (ContentRepr(0, len(text), "JavaScript", None, whole=True),)
    if (foreign := read_foreign(text)) is not None:
        return (ContentRepr(0, len(text), foreign[1], foreign[0], whole=True),)
    start = len(text) - len(text.lstrip())
    if _OPENER.match(text, start):
        found = _read(text, start)
        if found is not None and not text[found.end :].strip():
            return (replace(found, whole=True),)
    return tuple(_framed(text)) or tuple(_apart(text))


def find_untyped(text: str) -> tuple[ContentRepr, ...]:
    """Return the structure of a text that is a list of parts without a type, as in Converse and Gemini: `[{'text': 'Hi'}]`.

    Only Python's notation is read. Call it only for APIs with such parts.
    """
    start = len(text) - len(text.lstrip())
    if len(text) > _MOST_READ or _UNTYPED.match(text, start) is None:
        return ()
    read = read_literal(text, start)
    if read is None or not (read.pythonic and read.items) or text[read.end :].strip():
        return ()
    words: list[str] = []
    for part in read.items:
        said = part.get("text") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(said, str):
            return ()
        if any(value is not None for name, value in part.items() if name != "text"):
            return ()
        words.append(said)
    return (ContentRepr(start, read.end, "Python", "".join(words), whole=True),)


def unwrap(text: str) -> str | None:
    """Return the text with every structure replaced by its words, at any depth; None if a structure has none."""
    for _ in range(_MOST_NESTED):
        found = find_reprs(text)
        if not found:
            return text
        pieces: list[str] = []
        position = 0
        for one in found:
            if one.says is None:
                return None
            pieces += (text[position : one.start], one.says)
            position = one.end
        text = "".join((*pieces, text[position:]))
    return None


def speaks_of_structures(text: str, syntax: Syntax) -> bool:
    """Return True if a text shows or discusses such structures: the next one may be intended."""
    return _PHRASES["about"].search(text) is not None or (
        syntax == "JSON" and _PHRASES["about_json"].search(text) is not None
    )


def _framed(text: str) -> Iterator[ContentRepr]:
    """Yield the structures in a text that is a prompt made of turns from its first character on, unlike a pasted log."""
    if _FIRST.match(text) is None:
        return
    position = 0
    while mark := _PHRASES["framed"].search(text, position):
        position = mark.end()
        found = _read(text, mark.end())
        if found is not None and found.syntax == "Python" and _FRAME_END.match(text, found.end):
            position = found.end
            yield replace(found, framed=True)


def _apart(text: str) -> Iterator[ContentRepr]:
    """Yield a last paragraph that is a structure with words, after a paragraph that does not introduce it."""
    *_, start = [None, *_APART.finditer(text)]
    if start is None or _INTRODUCES.search(text, max(start.start() - 16, 0), start.start()):
        return
    found = _read(text, start.end())
    if found is None or text[found.end :].strip() or found.syntax != "Python":
        return
    if found.says is None or _LETTERS.search(found.says):
        yield found


def _read(text: str, start: int) -> ContentRepr | None:
    read = read_literal(text, start)
    if read is None or not (read.pythonic or text.startswith("[", start)):
        return None  # one object of JSON alone is a message of many protocols
    words: list[str] = []
    only_words = True
    for part in read.items:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not (kind in _WORDS or (kind in _OTHERS and len(part) > 1)):
            return None
        only_words = only_words and kind in _WORDS
        if kind in _WORDS:
            said = part.get("text")
            if not isinstance(said, str) or not part.keys() <= _BESIDE:
                return None
            words.append(said)
    says = "".join(words) if only_words else None
    return ContentRepr(start, read.end, "Python" if read.pythonic else "JSON", says) if words else None
