"""Content parts printed as a structure in a text: `[{'type': 'text', 'text': 'Hi'}]` instead of `Hi`.

Theory of operation. A program that should have joined the text of some content parts formatted their list instead: by
Python's `repr`, by a JSON encoder, or by JavaScript's `[object Object]`. Then the whole text, or the whole text between two
tokens of a chat template or after the label of a speaker, is one such structure; a text about structures has words
beside them. A reader of literals decides: it reads the notations of Python and JSON and the constructors of SDK
classes, and the value must be a list of parts as the APIs define them. It runs only if a cheap search finds an opener.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

from wirelint import lexicon
from wirelint.dialects.jsontext import TolerantReader
from wirelint.model import Json

_PHRASES = lexicon.Phrases("content_reprs")

_NUMBER = re.compile(r"-?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,4})?(?![\w.])")
_NAME = re.compile(r"[A-Za-z_][\w.]{0,80}")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "0": "\0", "a": "\a", "v": "\v"}
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_PYTHON_WORDS = ("True", "False", "None")
_WORDS_READ: dict[str, Json] = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}


class LiteralReader(TolerantReader):
    """Reader of a literal as programs print it: Python's `repr`, JSON, and constructors with named arguments.

    Nothing is evaluated. `TextBlock(text='Hi', type='text')` reads as `{"text": "Hi", "type": "text"}`, numbers as floats,
    since no caller uses them. Afterwards, `position` is the offset after the literal and `failed` is True if there was
    none. `pythonic`: the literal has a notation that Python has and JSON has not.
    """

    strings: ClassVar = {
        "'": re.compile(r"'((?:[^'\\\n]|\\.)*)'"),
        '"': re.compile(r"\"((?:[^\"\\\n]|\\.)*)\""),
    }

    def __init__(self, text: str, position: int = 0) -> None:
        super().__init__(text, position)
        self.failed = False
        self.pythonic = False

    def read_items(self) -> Iterator[Json]:
        """Yield the items of the list that begins here, one by one, or the only value if there is no list.

        A caller that stops at an unwanted item saves reading the rest.
        """
        try:
            if not self.text.startswith("[", self.position):
                yield self.value()
            else:
                self.position += 1
                while not self._closes("]"):
                    yield self.value(1)
                    self._separator("]")
            self.failed = self.missing > 0
        except ValueError:
            self.failed = True

    def _separator(self, bracket: str) -> None:
        super()._separator(bracket)
        if self.text[self.position - 1 : self.position] == "," and self._peek() == bracket:
            raise ValueError("no item after a comma")

    def _string(self) -> str:
        self.pythonic = self.pythonic or self._peek() == "'"
        return super()._string()

    def _unescaped(self, raw: str) -> str:
        text = _ESCAPE.sub(_unescape, raw) if "\\" in raw else raw
        if text is raw or text.isascii() or not _SURROGATES.search(text):
            return text
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")

    def _scalar(self, depth: int) -> Json:
        if self._peek() == "(":
            return self._array(")", depth)
        if number := _NUMBER.match(self.text, self.position):
            self.position = number.end()
            return float(number[0])
        name = _NAME.match(self.text, self.position)
        if name is None:
            raise ValueError("no value")
        self.position = name.end()
        called = self.text.startswith("(", self.position)
        self.pythonic = self.pythonic or called or name[0] in _PYTHON_WORDS
        if not called and name[0] not in _WORDS_READ:
            raise ValueError("an unknown word")
        if not called:
            return _WORDS_READ[name[0]]
        arguments: dict[str, Json] = {}
        self.position += 1
        while not self._closes(")"):
            name = _NAME.match(self.text, self.position)
            if name is None or not self.text.startswith("=", name.end()):
                raise ValueError("no named argument")
            self.position = name.end() + 1
            arguments[name[0]] = self.value(depth + 1)
            self._separator(")")
        return arguments


def _unescape(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    if code is None:
        return _PLAIN.get(escape[4], escape[4])
    number = int(code, 16)
    return chr(number) if number < 0x110000 else escape[0]


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
            said = next(LiteralReader(part[1]).read_items(), None)
            words.append(said if isinstance(said, str) else part[1][1:-1])
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
    reader = LiteralReader(text, len("content="))
    said = next(reader.read_items(), None)
    if not isinstance(said, str) or _PRINTED_REST.match(text, reader.position) is None:
        return None
    return said if "tool_calls=[{" not in text[reader.position :] else None, "Python"


def _read_constructed(text: str) -> tuple[str | None, Foreign] | None:
    reader = LiteralReader(text)
    items = list(reader.read_items())
    messages = [item for item in items if isinstance(item, dict) and isinstance(item.get("content"), str)]
    if reader.failed or not messages or len(messages) < len(items) or text[reader.position :].strip():
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
    reader = LiteralReader(text, start)
    words: list[str] = []
    for part in reader.read_items():
        said = part.get("text") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(said, str):
            return ()
        if any(value is not None for name, value in part.items() if name != "text"):
            return ()
        words.append(said)
    if reader.failed or not reader.pythonic or not words or text[reader.position :].strip():
        return ()
    return (ContentRepr(start, reader.position, "Python", "".join(words), whole=True),)


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
    reader = LiteralReader(text, start)
    words: list[str] = []
    only_words = True
    for part in reader.read_items():
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not (kind in _WORDS or (kind in _OTHERS and len(part) > 1)):
            return None
        only_words = only_words and kind in _WORDS
        if kind in _WORDS:
            said = part.get("text")
            if not isinstance(said, str) or not part.keys() <= _BESIDE:
                return None
            words.append(said)
    if reader.failed or not words or not (reader.pythonic or text.startswith("[", start)):
        return None  # one object of JSON alone is a message of many protocols
    says = "".join(words) if only_words else None
    return ContentRepr(start, reader.position, "Python" if reader.pythonic else "JSON", says)
