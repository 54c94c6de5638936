"""Views: the readings of a text in which markup is searched for.

Theory of operation. Gateways, detokenisers and models write the same markup in many ways: `｜`, `‖` or `|`; `▁` or
`_`; with zero-width characters inside; HTML-escaped; escaped once too often as a JSON string. Each *view* undoes one
kind of escaping and keeps a map back to the original. On a view, `shadow` is the view's text with look-alike characters
replaced one by one, so that an offset in the shadow is an offset in the view's text. Structure is found in the shadow;
values are cut from the text, where every character is unchanged.

The plain view is the original (without zero-width spaces, which come back in values). The decoded views exist only when
a probe finds escaped angle brackets or bars, and only markup whose own opener was escaped is read from them: their
values are decoded, because the escaping covered the markup and its values alike.

The joined view exists when a turn token or a whole turn header stands in the middle of a word or tag
(`[TOOL_<|im_end|>CALLS]`, `<tool_<|im_start|>assistant\\ncall>`). It is the text without them. Only markup whose own opener
was cut by one is read from it.
"""

from __future__ import annotations

import bisect
import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import regex

_LOOKALIKES = {ord("｜"): "|", ord("‖"): "|", ord("▁"): "_"}
ZERO_WIDTH = "\u200b\u2060\ufeff"
_ZERO_WIDTH = re.compile(f"[{ZERO_WIDTH}]+")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,6});")
_ENTITY_PROBE = re.compile(r"&(?:lt|#0{0,4}60|#[xX]0{0,4}3[cC]);")
_JSON_ESCAPE = re.compile(r'\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\["\\/bfnrt]')
# `<` or `|` as \\u003c / \\u007c; a tag whose attribute quotes are escaped; a tag, then a newline written as two
# characters, then more markup or a JSON body.
_JSON_PROBE = re.compile(
    r'\\u00(?:3[cC]|7[cC])|\\uff5[cC]|=\\"[\w.:/ -]{1,128}\\"\s{0,4}/?>'
    r'|>\s{0,4}\\n(?:\\n|\s){0,8}[{\[<"\\]|:\s?\\"[\w.:/-]{1,128}\\"'
)
_CUT_ESCAPE = re.compile(r"(?:&(?:#?[0-9a-zA-Z]{0,7})?|\\(?:u[0-9a-fA-F]{0,3})?)\Z")
_LONGEST_CUT = 9
_TURN_ENDS = (
    *(f"<|{name}|>" for name in ("im_end", "endoftext", "eot_id", "eom_id", "end_of_text", "end", "return")),
    *("</s>", "<end_of_turn>"),
)
_TURN_STARTS = "<|im_start|>", "<|start|>", "<|start_header_id|>", "<|im_assistant|>", "<start_of_turn>"
_ENDS, _STARTS = ("|".join(map(re.escape, tokens)) for tokens in (_TURN_ENDS, _TURN_STARTS))
_HEADER = rf"(?:{_STARTS})(?:(?:assistant|model)(?:<\|(?:im_middle|im_sep|end_header_id|message)\|>|(?=\s)))?\s{{0,4}}"
_TURN = rf"(?<=[\w<\[|:/▁])(?:(?:{_ENDS})(?:\s{{0,4}}{_HEADER})?|{_HEADER})"
_TURN_TOKEN = re.compile(_TURN)
"""The end of a turn, the beginning of one, or both: `<|im_end|>\\n<|im_start|>assistant\\n`."""
_GROWING_TURN = regex.compile(_TURN)
_LONGEST_TURN = 96
_SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class View:
    """One reading of `source`. `starts[i]` in the text stands at `places[i]` in the source, and so on to the next."""

    source: str
    text: str
    shadow: str
    starts: tuple[int, ...] = field(default=(), repr=False)
    places: tuple[int, ...] = field(default=(), repr=False)
    decoded: bool = False
    joined: bool = False

    def origin(self, offset: int) -> int:
        """Return the offset in the source of an offset in the text."""
        if not self.starts:
            return offset
        index = bisect.bisect_right(self.starts, offset) - 1
        return min(self.places[index] + offset - self.starts[index], len(self.source))

    def cut(self, start: int, end: int) -> str:
        """Return the value between two offsets: as it was written, or decoded if the markup itself was escaped."""
        if self.decoded or not self.starts:
            return self.text[start:end]
        # From right after the character before, so that zero-width characters at the value's edges stay in it.
        return self.source[self.origin(start - 1) + 1 if start else 0 : self.origin(end)]


def views(text: str, *, over: bool = True) -> Iterator[View]:
    """Yield the plain view, then the decoded views for which the text has a reason.

    In a text that is not `over`, they lack the escape that is cut off at its end.
    """
    yield plain_view(text)
    text = text if over else text[: len(text) - cut_escape(text)]
    if "&" in text and _ENTITY_PROBE.search(text):
        yield _rewritten(text, _ENTITY, lambda match: html.unescape(match[0]), decoded=True)
    if "\\" in text and _JSON_PROBE.search(text):
        yield _rewritten(text, _JSON_ESCAPE, _unescape, decoded=True)
    if "<" in text and _TURN_TOKEN.search(text):
        yield _rewritten(text, _TURN_TOKEN, lambda _: "", joined=True)


def plain_view(text: str) -> View:
    if any(character in text for character in "\u200b\u2060\ufeff"):
        return _rewritten(text, _ZERO_WIDTH, lambda _: "")
    return View(text, text, _shadow(text))


def tail_views(text: str) -> Iterator[View]:
    """Yield further views of the end of a text that is not over, without the escape or token that is cut off there."""
    kept = text[: len(text) - cut_escape(text)]
    if "&" in kept and _ENTITY_PROBE.search(kept):
        yield _rewritten(kept, _ENTITY, lambda match: html.unescape(match[0]), decoded=True)
    if "\\u" in kept:
        yield _rewritten(kept, _JSON_ESCAPE, _unescape, decoded=True)
    cut = _cut_turn(text)
    kept = text if cut is None else text[:cut]
    if cut is not None or _TURN_TOKEN.search(kept):
        yield _rewritten(kept, _TURN_TOKEN, lambda _: "", joined=True)


def cut_escape(text: str) -> int:
    """Return the length of an escape that the end of a text cuts off: `&l`, `\\u00`."""
    cut = _CUT_ESCAPE.search(text, max(0, len(text) - _LONGEST_CUT))
    return len(text) - cut.start() if cut else 0


def _cut_turn(text: str) -> int | None:
    """Return the start of a turn token or header that the end of a text cuts off, None without one."""
    place = text.rfind("<", max(0, len(text) - _LONGEST_TURN))
    cut = None
    while place >= 0:
        if _GROWING_TURN.fullmatch(text, place, partial=True) is not None:
            cut = place
        place = text.rfind("<", max(0, len(text) - _LONGEST_TURN), place)
    return cut


def _shadow(text: str) -> str:
    # str.translate is slow on non-ASCII text, and almost no text has these characters.
    if text.isascii() or not any(character in text for character in "｜‖▁"):
        return text
    return text.translate(_LOOKALIKES)


def _unescape(match: re.Match[str]) -> str:
    escape = match[0]
    if escape[1] != "u":
        return _SHORT_ESCAPES.get(escape[1], escape[1])
    units = bytes.fromhex(escape.replace("\\u", ""))
    return units.decode("utf-16-be", errors="replace")


def _rewritten(
    text: str,
    pattern: re.Pattern[str],
    replace: Callable[[re.Match[str]], str],
    *,
    decoded: bool = False,
    joined: bool = False,
) -> View:
    parts: list[str] = []
    starts, places = [0], [0]
    place, size = 0, 0
    for match in pattern.finditer(text):
        replacement = replace(match)
        parts += (text[place : match.start()], replacement)
        size += match.start() - place
        if replacement:
            starts.append(size)
            places.append(match.start())
        size += len(replacement)
        place = match.end()
        starts.append(size)
        places.append(place)
    parts.append(text[place:])
    rewritten = "".join(parts)
    return View(text, rewritten, _shadow(rewritten), tuple(starts), tuple(places), decoded, joined)
