"""Search for secrets in texts and in JSON documents. Results are spans of the raw characters.

Theory of operation. A document is not decoded as a whole. Each string literal is unescaped and searched as a text, and the
spans are mapped back to the raw characters. So a span never crosses a quotation mark, and a replacement keeps the
document as valid as before. A text that is JSON itself (the arguments of a tool call) is searched in this way, one level
down. The `Scope` of the whole document rules out shapes and names, and for most documents all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from wirelint.capture.secrets import (
    SHAPES,
    Shape,
    Span,
    find_shapes,
    harmless,
    holds_secret,
    is_secret_name,
    split_scheme,
)

_DEEPEST = 5
LITERAL = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+(?:\\\Z)?)(?:"|\Z)', re.DOTALL)
"""A JSON string; the last one of a truncated document may lack its end."""

_COLON = re.compile(r"\s*:\s*")
_PAIR = re.compile(r"""(["'])([\w.-]{2,64})\1\s{0,8}:\s{0,8}(["'])""")
_PAIR_HINT = re.compile(
    r"""(?:key|token|secret|word|passwd|pwd|phrase|ation|ntials?|cookie)["'\\]+\s{0,8}:\s{0,8}["'\\]"""
)
_HIDING = re.compile(r"\\(?:/|u00[2-7])")
"""An escape of a printable ASCII character, which may hide a shape from a search in the raw document."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|\Z)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Scope(NamedTuple):
    """The parts of a search: shapes, known secrets, and values under names of secrets (`api_key`)."""

    shapes: tuple[Shape, ...]
    known: tuple[str, ...]
    pairs: bool

    def __bool__(self) -> bool:
        return bool(self.shapes or self.known or self.pairs)

    @classmethod
    def everything(cls, known: tuple[str, ...]) -> Scope:
        return cls(SHAPES, known, True)

    @classmethod
    def of(cls, text: str, known: tuple[str, ...]) -> Scope:
        """Return the scope of a document, by quick searches in its raw text."""
        nothing = harmless(text)
        if not nothing and _HIDING.search(text):
            return cls.everything(known)
        nearby = tuple([secret for secret in known if is_near(secret, text)])
        if nothing:
            return cls((), nearby, False)
        shapes = tuple(shape for shape in SHAPES if shape.hint(text))
        return cls(shapes, nearby, _PAIR_HINT.search(text.lower()) is not None)


def find_in_text(text: str, scope: Scope, depth: int = 0) -> list[Span]:
    """Return secrets in a text: sorted spans that do not overlap."""
    spans = list(find_shapes(text, scope.shapes))
    for secret in scope.known:
        spans += _find_known(text, secret)
    if depth < _DEEPEST and text.lstrip()[:1] in ("{", "["):
        spans += _literal_spans(text, scope, depth + 1)
    if scope.pairs:
        spans += _find_pairs(text)
    return merge(spans)


def find_in_json(text: str, scope: Scope) -> list[Span]:
    """Return secrets in a JSON document, whole or cut off: sorted spans that do not overlap and stay inside of
    literals."""
    return merge(_literal_spans(text, scope, 0))


def merge(spans: list[Span]) -> list[Span]:
    """Return spans sorted and without overlaps: the first of two that overlap grows to cover both."""
    if len(spans) < 2:
        return spans
    spans.sort(key=lambda span: (span.start, -span.end))
    merged = [spans[0]]
    for span in spans[1:]:
        last = merged[-1]
        if span.start >= last.end:
            merged.append(span)
        elif span.end > last.end:
            merged[-1] = Span(last.start, span.end, last.secret + span.secret[last.end - span.end :])
    return merged


def _literal_spans(text: str, scope: Scope, depth: int) -> list[Span]:
    spans: list[Span] = []
    name, value_start = "", -1
    for literal in LITERAL.finditer(text):
        start, end = literal.span(1)
        named = name if start == value_start else ""
        colon = _COLON.match(text, literal.end()) if end < literal.end() else None
        if colon is not None:
            name, value_start = text[start:end], colon.end() + 1
        if named or end - start > 2:
            spans += _in_literal(text[start:end], start, named, scope, depth)
    return spans


def _in_literal(raw: str, offset: int, name: str, scope: Scope, depth: int) -> Iterator[Span]:
    plain = unescape(raw)
    found = _in_value(plain, name, scope, depth)
    if not found:
        return
    if plain is raw:
        for span in found:
            yield Span(offset + span.start, offset + span.end, span.secret)
        return
    mapped, places = unescape_mapped(raw)
    for span in found if mapped == plain else _in_value(mapped, name, scope, depth):
        yield Span(offset + places[span.start], offset + places[span.end], span.secret)


def _in_value(plain: str, name: str, scope: Scope, depth: int) -> list[Span]:
    if name and scope.pairs and (span := _secret_value(name, plain, 0)) is not None:
        return [span]
    return find_in_text(plain, scope, depth)


def _secret_value(name: str, value: str, offset: int) -> Span | None:
    """Return the secret in the value of the key `name`: the value without its scheme word."""
    scheme, secret = split_scheme(value)
    if not holds_secret(name, secret):
        return None
    return Span(offset + len(scheme), offset + len(value), secret)


def _find_pairs(text: str) -> Iterator[Span]:
    """Yield secrets in pairs like `"api_key": "…"`: in prose, in code, in the repr of a Python dictionary, and in
    broken JSON."""
    position = 0
    while (match := _PAIR.search(text, position)) is not None:
        # The quotation mark that opens the value may also open the next key of a broken document.
        position = match.end() - 1
        if not is_secret_name(match[2]) and match[2] != "token":
            continue
        start, end = match.end(), _end_of_value(text, match.end(), match[3])
        if (span := _secret_value(match[2], text[start:end], start)) is not None:
            yield span
        position = end


def _end_of_value(text: str, start: int, quote: str) -> int:
    position = start
    while position < len(text) and text[position] != quote and text[position] not in "\r\n":
        position += 2 if text[position] == "\\" else 1
    return min(position, len(text))


def _find_known(text: str, secret: str) -> Iterator[Span]:
    """Yield the places of a header's secret in a text. A secret without digits may be a word (`ollama-local`), so only
    separate occurrences count."""
    word = secret.replace("-", "").replace("_", "").isalpha()
    position = text.find(secret)
    while position >= 0:
        end = position + len(secret)
        if not word or not (text[position - 1 : position].isalnum() or text[end : end + 1].isalnum()):
            yield Span(position, end, secret)
        position = text.find(secret, end)


def is_near(secret: str, text: str) -> bool:
    """Return True if a known secret may be in a text or in its decoded JSON literals."""
    return secret in text or not secret.isascii() or '"' in secret or "\\" in secret


def unescape(raw: str) -> str:
    """Return the text of a JSON literal without its quotation marks; the same object if nothing is escaped."""
    if "\\" not in raw:
        return raw
    try:
        plain = orjson.loads(f'"{raw}"')
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return unescape_mapped(raw)[0]
    return plain if isinstance(plain, str) else raw


def unescape_mapped(raw: str) -> tuple[str, list[int]]:
    """Return the text of a JSON literal, and the offset in `raw` of each of its characters and of its end.

    An invalid escape is kept. Two halves of a surrogate pair are one character.
    """
    characters: list[str] = []
    places: list[int] = []
    position = 0
    for match in _ESCAPE.finditer(raw):
        characters += raw[position : match.start()]
        places += range(position, match.start())
        position = match.end()
        code, simple = match[1], match[2]
        character = chr(int(code, 16)) if code else _ESCAPED.get(simple, simple or "\\")
        if characters and code and "\udc00" <= character <= "\udfff" and "\ud800" <= characters[-1] <= "\udbff":
            characters[-1] = (characters[-1] + character).encode("utf-16", "surrogatepass").decode("utf-16")
            continue
        characters.append(character)
        places.append(match.start())
    characters += raw[position:]
    places += range(position, len(raw) + 1)
    return "".join(characters), places


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
