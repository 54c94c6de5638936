"""Markup of tool results in a text that the model wrote itself.

Each chat template has its own: tags (`<tool_response>`), control tokens (`<｜tool▁outputs▁begin｜>`), a header with the
tool's role, a label of a text protocol (`Observation:` after an `Action:`). The text after it is a result that the model
made up. Sources: the chat templates of the model families named beside the patterns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirelint import lexicon
from wirelint.dialects.openers import may_go_on
from wirelint.text.prose import Cues, unquoted

_PHRASES = lexicon.Phrases("fabricated_results")


@dataclass(frozen=True, slots=True)
class Invented:
    """A made-up result in a text: its opening markup, and the offsets of markup and body."""

    marker: str
    start: int
    end: int
    called: bool = False
    """True if markup of a call precedes the result, in tags with the same prefix."""


_MARKERS = _PHRASES.pattern("markers")
_TAG = re.compile(r"<(?P<prefix>(?:[a-zA-Z]\w{0,15}[:_])?)(?:tool|function)_(?:res|out|call_res)\w*")
_CALLS = r"(?:function_calls?|tool_calls?|tool_use|invoke)"
_HINTS = Cues(*_PHRASES.words("hints"))
# Text protocols are written in the language of their prompt.
_ACT = _PHRASES.text("act")
_OBSERVE = _PHRASES.text("observe")
_OBSERVED = rf"^[ \t]*\**{_OBSERVE}\**[:：]\**[ \t]*"
_OBSERVATION = re.compile(rf"{_OBSERVED}(?=\S)|{_OBSERVED}\n(?=[ \t]*\S)", re.MULTILINE)
_ACT_WORD, _OBSERVE_WORD = re.compile(_ACT), re.compile(_OBSERVE)
_NEGATED = re.compile(r"(?:\b(?:not|never|without)|n['’]t)\b[^.!?]{0,24}\Z", re.IGNORECASE)
_RUNAWAY = _PHRASES.pattern("runaway")
_QUOTES = "\"'“”‘’«»„「『"


def invented_result(text: str) -> Invented | None:
    """Return the first unquoted result with a body in a text; None without one."""
    if not _HINTS.occur_in(text):
        return None
    shown = unquoted(text)
    found = [match for match in _MARKERS.finditer(shown) if _has_body(shown, match)]
    action = _PHRASES["action"].search(shown)
    if action and (observation := _OBSERVATION.search(shown, action.end())):
        found.append(observation)
    if runaway := _RUNAWAY.search(shown, 1):
        found.append(runaway)
    if not found:
        return None
    first = min(found, key=re.Match.start)
    marker = first[0].strip()
    return Invented(marker, first.start(), len(text), _is_called(shown, marker, first.start()))


def _is_called(shown: str, marker: str, start: int) -> bool:
    """Return True if a call tag with the prefix of the result's tag precedes it: `<x_function_calls>`."""
    tag = _TAG.match(marker)
    return tag is not None and re.search(rf"<{re.escape(tag['prefix'])}{_CALLS}[ >\n]", shown[:start]) is not None


_MARKER = re.compile(rf"{_MARKERS.pattern}|{_OBSERVED}|{_RUNAWAY.pattern}", re.MULTILINE | re.IGNORECASE)
LINE_HEADS = _PHRASES.words("line_heads")
_CUT_HEADS = "|".join(sorted({head[:size] for head in LINE_HEADS for size in range(1, len(head) + 1)}))
_CUT_LINE = _PHRASES.pattern("cut_line", cut_heads=_CUT_HEADS)
_LONGEST_LINE = 80
_LONGEST_MARKER = 240
_MOST_BRACKETS = 8
"""Upper bound for the brackets of one kind in a marker: a cut marker begins at one of the last so many."""
_SPARK = re.compile(r"[<\[\]\n]")


_HINT = re.compile("|".join(re.escape(hint) for hint in _HINTS.words))


def next_marker(text: str, start: int) -> tuple[int, int] | None:
    """Return the offsets of the next marker of a result, quoted or not."""
    if not _HINT.search(text, start):
        return None
    found = _MARKER.search(text, start)
    return found.span() if found is not None else None


def may_lead_to_marker(text: str) -> bool:
    """Return True if a marker may begin in a text that continues a line; False for nearly all text."""
    return _SPARK.search(text) is not None


def cut_marker(text: str) -> int:
    """Return the length of the cut marker at the end of a text; 0 without one, which is usual."""
    size = len(text)
    line = text.rfind("\n", max(size - _LONGEST_LINE - 1, 0)) + 1
    if size - line <= _LONGEST_LINE and (line or size <= _LONGEST_LINE) and _CUT_LINE.match(text, line):
        return size - line
    longest = 0
    for mark in "<[]":
        place = text.rfind(mark, max(size - _LONGEST_MARKER, 0))
        for _ in range(_MOST_BRACKETS):
            if place < 0:
                break
            if may_go_on(_MARKERS, text, place):
                longest = max(longest, size - place)
            place = text.rfind(mark, max(size - _LONGEST_MARKER, 0), place)
    return longest


def may_become_marker(text: str) -> bool:
    """Return True if a text begins with a marker, whole or cut."""
    return _MARKERS.match(text) is not None or may_go_on(_MARKERS, text, 0)


def lays_down(prompt: str, marker: str) -> bool:
    """Return True if a prompt defines a text protocol in which the program writes results after `marker`."""
    played = (match.start() for match in _PHRASES["own_play"].finditer(prompt))
    if any(not _NEGATED.search(prompt, max(at - 32, 0), at) for at in played):
        return False
    if _OBSERVATION.match(f"{marker} x"):
        return _ACT_WORD.search(prompt) is not None and _OBSERVE_WORD.search(prompt) is not None
    name = marker.strip("<>[]|*:： \n").split(" ")[0]
    return len(name) > 4 and name in prompt


def _has_body(text: str, match: re.Match[str]) -> bool:
    """Return True if text follows the marker, and it is not a mention (in quotation marks, or inside a sentence)."""
    before = text[: match.start()].rstrip(" ")
    after = text[match.end() :]
    if before[-1:] and before[-1] in _QUOTES:
        return False
    if not after.strip():
        return False
    starts_line = not before or before.endswith(("\n", ">", "]", "|"))
    return starts_line or after[:1] in "\n{["
