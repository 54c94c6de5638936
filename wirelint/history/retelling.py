"""What has become of a tool's result on its way into a history: the same in another dress, shortened, or another.

Theory of operation. Clients wrap results, print them as JSON or out of it, join blocks, add notes. What is left through all
of that are the words and numbers. A result whose words are all there is the same, whatever stands around them. Where some
are missing and nothing strange has come in, it was shortened. Where strange words stand for missing ones, it was altered.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Literal

import orjson

from wirelint.model import Json

Retelling = Literal["same", "marked", "shortened", "lost", "altered"]
"""`marked`: something was left out, and the text says so. `lost`: nothing of it is left."""

_WORD = re.compile(r"\w+")
_ESCAPED = re.compile(r"\\+(?:[nrt\"'/\\]|u([0-9a-fA-F]{4}))")
_MARKED = re.compile(
    r"…|\.\.\.|\[\+?\d+ |\*{3}|█|<persisted|"
    r"\b(?:truncat\w*|omitt\w*|elid\w*|shorten\w*|clipp\w*|cut off|trimm\w*|too (?:long|large|big)|exceed\w*|limit\w*|"
    r"(?:more|remaining) (?:lines?|char\w*|bytes|tokens?|items?|results?|rows?)|"
    r"saved to|stored (?:in|at|as)|clear\w*|compact\w*|"
    r"summar\w+|redact\w*|mask\w*|filter\w*|hidden|removed|unsupported|not shown|"
    r"gekürzt|tronqué|truncado|troncato)\b|截断|省略|已清除",
    re.IGNORECASE,
)
_DRESS = frozenset({
    "content", "type", "text", "result", "results", "output", "tool", "is", "error", "iserror", "is_error", "false", "true",
    "status", "success", "ok", "data", "structuredcontent", "_meta", "meta", "annotations", "null", "source", "response",
    "function", "name", "returned", "the", "of", "call", "from", "server", "mcp", "json", "value", "message",
})  # fmt: skip
_MOST = 200_000
"""Characters of either text that are compared."""


def retelling(told: str, truth: str) -> Retelling:
    """How a text in a history retells what a tool gave."""
    told, truth = told[:_MOST], truth[:_MOST]
    if told.split() == truth.split():
        return "same"
    read = set(_words(told))
    said = read | set(_bare(told))
    # A number in JSON may be spelled in several ways: as it stands, and as it is read.
    given, spelled = set(_words(truth)), set(_bare(truth))
    if given <= said or spelled <= said:
        return "same"
    if _MARKED.search(told) and not _MARKED.search(truth):
        return "marked"
    if not said - _DRESS:
        return "lost"
    strange = read - given - spelled - _DRESS
    if len(strange) == 1 and told.rstrip().casefold().endswith(last := next(iter(strange))):
        return "shortened" if any(word.startswith(last) for word in given) else "altered"  # cut within a word
    return "altered" if strange else "shortened"


def _words(text: str, depth: int = 0) -> Iterator[str]:
    """Words and numbers, case aside. JSON gives those of its members, also where it stands in a string of JSON."""
    stripped = text.strip()
    if depth < 4 and stripped[:1] in ("{", "[", '"'):
        try:
            yield from _of(orjson.loads(stripped), depth)
        except orjson.JSONDecodeError:
            pass
        else:
            return
    yield from _bare(text)


def _bare(text: str) -> Iterator[str]:
    """The words of a text as they stand, whatever it is; escapes of JSON and HTML undone."""
    plain = _ESCAPED.sub(_unescaped, html.unescape(text) if "&" in text else text)
    for word in _WORD.findall(plain):
        yield "null" if word == "None" else word.casefold()


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else " "


def _of(value: Json, depth: int) -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                yield from _words(name, 4)
                yield from _of(inner, depth)
        case list():
            for inner in value:
                yield from _of(inner, depth)
        case str():
            yield from _words(value, depth + 1)
        case float() if value.is_integer():
            yield str(int(value))
        case None:
            yield "null"
        case _:
            yield from _words(str(value), 4)
