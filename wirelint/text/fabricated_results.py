"""Markup of tool results in a text that the model wrote itself.

Each chat template has its own: tags (`<tool_response>`), control tokens (`<｜tool▁outputs▁begin｜>`), a header with the
tool's role, a label of a text protocol (`Observation:` after an `Action:`). The text after it is a result that the model
made up. Sources: the chat templates of the model families named beside the patterns.

A model may also make up the notation itself, both halves of it:

    <my_call>{"name": "open_door", "arguments": {"room": 4}}</my_call>
    <my_result>{"opened": true}</my_result>

Such a pair is recognised by its form: tags around JSON that is a call, and right after them the opening tag of a result,
whose name belongs to that of the call or means a result, or which holds an object. The arguments of a declared tool are
a call without its name if the tag around them means one. If neither name means a call or a result, a closed pair and an
answer after it are only a weak sign of a result: `<do>{"room": 4}</do><got>ok</got> It is open.`
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from wirelint import lexicon
from wirelint.dialects import declared, jsontext
from wirelint.dialects.json_blocks import calls_of
from wirelint.dialects.openers import cut_at
from wirelint.dialects.reader import Reader, plain_view
from wirelint.model import Tool
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
    pair: tuple[str, str] | None = None
    """The names of the tags of the call and the result, if the notation is made up."""
    sure: bool = True
    """False if only the form of the pair shows a result."""


MARKERS = _PHRASES.pattern("markers")
_TAG = re.compile(r"<(?P<prefix>(?:[a-zA-Z]\w{0,15}[:_])?)(?:tool|function)_(?:res|out|call_res)\w*")
_CALLS = r"(?:function_calls?|tool_calls?|tool_use|invoke)"
_HINTS = Cues(*_PHRASES.words("hints"))
# Text protocols are written in the language of their prompt.
_ACT = _PHRASES.text("act")
_OBSERVE = _PHRASES.text("observe")
_OBSERVED = rf"^[ \t]*\**{_OBSERVE}(?: \d{{1,2}})?\**[:：]\**[ \t]*"
_OBSERVATION = re.compile(rf"{_OBSERVED}(?=\S)|{_OBSERVED}\n(?=[ \t]*\S)", re.MULTILINE)
_ACT_WORD, _OBSERVE_WORD = re.compile(_ACT), re.compile(_OBSERVE)
_NEGATED = re.compile(r"(?:\b(?:not|never|without)|n['’]t)\b[^.!?]{0,24}\Z", re.IGNORECASE)
_RUNAWAY = _PHRASES.pattern("runaway")
_QUOTES = "\"'“”‘’«»„「『"
_NAME = r"[^\W\d_][\w:.-]{0,40}"
_CALL_END = rf"[}}\]]\s{{0,16}}(?P<close>[<\[]/(?P<call>{_NAME})[>\]])\s{{0,16}}"
_RESULT = rf"[<\[](?!(?P=call)[>\]\s])(?P<result>{_NAME})(?:[ \t][^<>\[\]\n]{{0,80}})?"
_WORD = re.compile(r"\S")
_OPENER = re.compile(rf"[<\[]{_NAME}(?:[ \t][^<>\[\]\n]{{0,80}})?[>\]]")
_PAIR = re.compile(rf"{_CALL_END}(?P<tag>{_RESULT}[>\]])")
_CUT_PAIR = re.compile(rf"{_CALL_END}(?P<tag>[<\[](?:{_NAME}(?:[ \t][^<>\[\]\n]{{0,80}})?)?)\Z")
_CUT_CALL = re.compile(rf"[}}\]]\s{{0,16}}(?:[<\[]/?(?:{_NAME})?|[<\[]/{_NAME}[>\]]\s{{0,16}})?\Z")
_INSIDE = re.compile(r"<(?![/!?])[^<>]{0,100}(?<!/)>\s*\Z")
"""The opening tag of another element, right before the tag of a call."""
PAIR_REACH = 104
"""Characters before the tag of a made-up result that show the end of its call."""
_ANSWERED = re.compile(r"[^<>\[\]]{1,4096}[<\[]/(?P<close>[^<>\[\]]{1,48})[>\]]\s*[^<\[\s]")


def invented_result(text: str, tools: Sequence[Tool] = ()) -> Invented | None:
    """Return the first unquoted result with a body in a text, if possible a sure one; None without one."""
    hinted = _HINTS.occur_in(text)
    if not hinted and _PAIR.search(text) is None:
        return None
    shown = unquoted(text)
    pair = _invented_pair(text, shown, tools)
    found: list[re.Match[str]] = []  # the first results in known notations
    if hinted:
        found += [match for match in MARKERS.finditer(shown) if _has_body(shown, match)]
        action = _PHRASES["action"].search(shown) or _PHRASES["fenced_action"].search(text)
        if action and (observation := _OBSERVATION.search(shown, action.end())):
            found.append(observation)
        if runaway := _RUNAWAY.search(shown, 1):
            found.append(runaway)
    if not found:
        return pair
    first = min(found, key=re.Match.start)
    marker = first[0].strip()
    if pair is not None and pair.sure and pair.start <= first.start():
        return pair
    # A call tag with the prefix of the result's tag: `<x_function_calls>`.
    tag, before = _TAG.match(marker), shown[: first.start()]
    called = tag is not None and re.search(rf"<{re.escape(tag['prefix'])}{_CALLS}[ >\n]", before) is not None
    return Invented(marker, first.start(), len(text), called)


def _invented_pair(text: str, shown: str, tools: Sequence[Tool]) -> Invented | None:
    """Return the first result in a notation that the model made up, after a call in it."""
    floor, unsure = 0, None
    for match in _PAIR.finditer(shown):
        start = shown.rfind(f"{match['close'][0]}{match['call']}", floor, match.start("close"))
        head = _OPENER.match(shown, start) if start >= 0 else None
        body, floor = _WORD.search(shown, match.end()), match.end("close")
        if head is None or body is None:
            continue
        names = match["call"], match["result"]
        is_named, is_declared = _is_call(text[head.end() : match.start("close")], tools)
        if not is_named and _INSIDE.search(shown, max(start - PAIR_REACH, 0), start):
            continue  # elements of a document, with JSON in them
        meant = is_named or (is_declared and _PHRASES["call_name"].search(names[0]) is not None)
        # The name of the tag of the result belongs to that of the call or means a result, or the body is an object.
        stems = [re.split(r"[_.-]", name.lower().rpartition(":")[2], maxsplit=1)[0] for name in names]
        belongs = stems[0] == stems[1] or body[0] == "{" or _PHRASES["result_name"].search(names[1]) is not None
        if meant and belongs:
            return Invented(match["tag"], match.start("tag"), len(text), called=True, pair=names)
        if not is_declared or unsure is not None or any(map(_PHRASES["page"].match, names)):
            continue
        answered = _ANSWERED.match(shown, match.end())
        if answered is not None and answered["close"] == names[1]:
            unsure = Invented(match["tag"], match.start("tag"), len(text), called=True, pair=names, sure=False)
    return unsure


def _is_call(text: str, tools: Sequence[Tool]) -> tuple[bool, bool]:
    """Return whether a text is the JSON of one call or several, and whether it has the name or arguments of a tool."""
    decoded = jsontext.decode_at(text.strip(), 0)
    if decoded.failed or decoded.end < len(text.strip()):
        return False, False
    calls, _ = calls_of(Reader(plain_view(""), ()), decoded.value)
    if calls and all(call.arguments is not None for call in calls):
        return True, any(call.name == tool.name for call in calls for tool in tools)
    value = decoded.value if isinstance(decoded.value, dict) else {}
    members = [(tool, {key: item for key, item in value.items() if item != tool.name}) for tool in tools]
    return False, any(declared.infer((tool,), arguments) is not None for tool, arguments in members)


_MARKER = re.compile(rf"{MARKERS.pattern}|{_OBSERVED}|{_RUNAWAY.pattern}", re.MULTILINE | re.IGNORECASE)
LINE_HEADS = _PHRASES.words("line_heads")
_CUT_HEADS = "|".join(sorted({head[:size] for head in LINE_HEADS for size in range(1, len(head) + 1)}))
_CUT_LINE = _PHRASES.pattern("cut_line", cut_heads=_CUT_HEADS)
_LONGEST_LINE = 80
_LONGEST_MARKER = 240
SPARK = re.compile(r"[<\[\]\n]")
"""Characters without which no marker begins in a text that continues a line."""
_HINT = re.compile("|".join(re.escape(hint) for hint in _HINTS.words))


def next_marker(text: str, start: int) -> tuple[int, int] | None:
    """Return the offsets of the next marker of a result, quoted or not."""
    found = _MARKER.search(text, start) if _HINT.search(text, start) else None
    pair = _PAIR.search(text, max(start - PAIR_REACH, 0)) if "/" in text else None
    while pair is not None and pair.start("tag") < start:
        pair = _PAIR.search(text, pair.end("close"))
    spans = [*([found.span()] if found is not None else []), *([pair.span("tag")] if pair is not None else [])]
    return min(spans, default=None)


def ends_call(text: str) -> bool:
    """Return True if a text ends on JSON in tags, whole or cut off, so that a made-up result may follow."""
    return _CUT_CALL.search(text, max(len(text) - PAIR_REACH, 0)) is not None


def cut_marker(text: str) -> int:
    """Return the length of the cut marker at the end of a text; 0 without one, which is usual."""
    size = len(text)
    line = text.rfind("\n", max(size - _LONGEST_LINE - 1, 0)) + 1
    if size - line <= _LONGEST_LINE and (line or size <= _LONGEST_LINE) and _CUT_LINE.match(text, line):
        return size - line
    start = max(size - _LONGEST_MARKER, 0)
    marker = cut_at(MARKERS, text, start, whole=True)
    pair = _CUT_PAIR.search(text, start) if "/" in text else None
    return size - min(size if marker is None else marker, size if pair is None else pair.start("tag"))


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
    if before.endswith(tuple(_QUOTES)) or not after.strip():
        return False
    return not before or before.endswith(("\n", ">", "]", "|")) or after[:1] in "\n{["
