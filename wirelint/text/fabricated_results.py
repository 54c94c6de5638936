"""Markup in which tool results are handed to models, found where a model wrote it itself.

Every chat template has its own: tags (`<tool_response>`), control tokens (`<｜tool▁outputs▁begin｜>`), a header for the
tool's role, a label of a text protocol (`Observation:` after an `Action:`). A model that writes one goes on with what
it imagines. Sources: the chat templates of the model families named beside the patterns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirelint.dialects.openers import may_go_on
from wirelint.text.prose import Cues, unquoted


@dataclass(frozen=True, slots=True)
class Invented:
    """A result that stands in a text: its opening markup and what follows it. Offsets are those of the text."""

    marker: str
    start: int
    end: int
    called: bool = False
    """Whether markup of a call that nobody ran stands before the result, in tags of the same kind."""


_MARKERS = re.compile(
    # Hermes, Qwen, GLM; Anthropic's legacy markup; what models make of both
    r"<(?:[a-zA-Z]\w{0,15}[:_])?(?:tool_response|tool_responses|tool_result|tool_results|function_results?|"
    r"function_response|tool_outputs?|tool_call_result)\b[^<>\n]{0,200}>"
    # Mistral
    r"|\[TOOL_RESULTS?\]"
    # DeepSeek, with its own bars and with plain ones
    r"|<[|｜]tool[▁_]outputs?[▁_]begin[|｜]>"
    # Harmony: a message whose author is a function
    r"|<\|start\|>(?:functions|browser|python|container)[\w.]{0,64} to=assistant"
    # Llama 3, ChatML, Kimi
    r"|<\|start_header_id\|>(?:ipython|tool)<\|end_header_id\|>|<\|im_start\|>tool\b|"
    r"<\|im_system\|>[\w.:-]{0,64}<\|im_middle\|>\s*## Return of|^## Return of [\w.:-]{1,64}$"
    # GLM, Gemma, Cohere, MiniMax, Granite
    r"|<\|observation\|>(?=\s*\S)|<start_function_response>|<\|tool_response>|<\|START_TOOL_RESULT\|>|"
    r"\]~b\]tool\b|<\|start_of_role\|>tool_response<\|end_of_role\|>",
    re.MULTILINE,
)
_TAG = re.compile(r"<(?P<prefix>(?:[a-zA-Z]\w{0,15}[:_])?)(?:tool|function)_(?:res|out|call_res)\w*")
_CALLS = r"(?:function_calls?|tool_calls?|tool_use|invoke)"
_HINTS = Cues(
    "tool",
    "function_res",
    "TOOL_RES",
    "<|start",
    "Return of",
    "<|observation",
    "START_TOOL",
    "]~b]",
    "Obs",
    "Beob",
    "Oss",
    "观察",
    "観察",
    "Human:",
    "User:",
)
# Text protocols are written in the language of their prompt.
_ACT = r"(?:Action|Acción|Aktion|Ação|Azione|行动|动作|アクション)"
_OBSERVE = r"(?:Observation|Observación|Beobachtung|Observação|Osservazione|观察(?:结果)?|観察(?:結果)?)"
# What acts in a text protocol is the name of a tool, with its arguments beside or below it: a scene, a lab's notes and a
# worksheet have the same labels, and words behind them.
_INPUT = r"(?:Input|Args?|Arguments?|Entrada|Eingabe|输入|入力|参数)"
_ACTION = re.compile(
    rf"^[ \t>*]*\**(?i:{_ACT})\**[:：]\**[ \t]*[`\"']?"
    rf"(?:[\w/-]*[_./][\w./-]*[`\"']?\**[ \t]*(?:[\[({{]|$)|[a-z]+[A-Z]\w*[`\"']?[ \t]*(?:[\[({{]|$)|\w[\w.-]*[\[({{]"
    rf"|\w[\w.-]*[`\"']?\**[ \t]*\n[ \t>*]*\**(?i:(?:{_ACT})?[ -]?{_INPUT})\**[:：])",
    re.MULTILINE,
)
_OBSERVED = rf"^[ \t]*\**{_OBSERVE}\**[:：]\**[ \t]*"
_OBSERVATION = re.compile(rf"{_OBSERVED}(?=\S)|{_OBSERVED}\n(?=[ \t]*\S)", re.MULTILINE)
_ACT_WORD, _OBSERVE_WORD = re.compile(_ACT), re.compile(_OBSERVE)
_OWN_PLAY = re.compile(
    r"\b(?:simulat|imagin|invent|mak(?:e|ing) up|pretend|role-?play|fill(?:ing)? in|hypothetical|plausible|"
    r"fictional|fake|mock)",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"(?:\b(?:not|never|without)|n['’]t)\b[^.!?]{0,24}\Z", re.IGNORECASE)
_RUNAWAY = re.compile(
    r"^(?:Human|User|H): ?\s*(?:\[?(?:Tool|Function) (?:result|output|response)|<|\{)", re.MULTILINE | re.IGNORECASE
)
_QUOTES = "\"'“”‘’«»„「『"


def invented_result(text: str) -> Invented | None:
    """The first result that a text makes up, unquoted and with a body; None when there is none."""
    if not _HINTS.stand_in(text):
        return None
    shown = unquoted(text)
    found = [match for match in _MARKERS.finditer(shown) if _has_body(shown, match)]
    action = _ACTION.search(shown)
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
    """Return True if tags with the prefix of a result's tag call something before it: `<x_function_calls>`."""
    tag = _TAG.match(marker)
    return tag is not None and re.search(rf"<{re.escape(tag['prefix'])}{_CALLS}[ >\n]", shown[:start]) is not None


_MARKER = re.compile(rf"{_MARKERS.pattern}|{_OBSERVED}|{_RUNAWAY.pattern}", re.MULTILINE | re.IGNORECASE)
LINE_HEADS = (
    "## Return of", "Observation", "Observación", "Beobachtung", "Observação", "Osservazione", "观察", "観察",
    "Human:", "User:", "H:",
)  # fmt: skip
"""What the lines begin with that may be the beginning of a result, after blanks and marks of emphasis, in any case."""
_CUT_HEADS = "|".join(sorted({head[:size] for head in LINE_HEADS for size in range(1, len(head) + 1)}))
_CUT_LINE = re.compile(
    rf"[ \t>*]{{0,8}}(?:(?:{_CUT_HEADS})?|##? ?|## Return of [\w.:-]{{0,64}}"
    rf"|{_OBSERVE}\**[:：]?\**[ \t]*"
    r"|(?:Human|User|H):\s{0,8}(?:\[?\w{0,12} ?\w{0,8})?)\Z",
    re.IGNORECASE,
)
_LONGEST_LINE = 80
_LONGEST_MARKER = 240
_MOST_BRACKETS = 8
"""Brackets of one kind that a marker can have; what begins before the last so many is none that is cut off."""
_SPARK = re.compile(r"[<\[\]\n]")


_HINT = re.compile("|".join(re.escape(hint) for hint in _HINTS.words))


def next_marker(text: str, start: int) -> tuple[int, int] | None:
    """Where the next thing stands that looks like the beginning of a result, quoted or not: its offsets."""
    if not _HINT.search(text, start):
        return None
    found = _MARKER.search(text, start)
    return found.span() if found is not None else None


def may_lead_to_marker(text: str) -> bool:
    """Return True if text in the middle of a line may bring a marker nearer; False for nearly all of it."""
    return _SPARK.search(text) is not None


def cut_marker(text: str) -> int:
    """The length of the end of a text that may go on to be a marker; 0 for the end of nearly every text."""
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
    """Return True if what a result begins with stands at the beginning of a text, or may when more comes."""
    return _MARKERS.match(text) is not None or may_go_on(_MARKERS, text, 0)


def lays_down(prompt: str, marker: str) -> bool:
    """Whether a prompt lays down a text protocol in which the program, not the model, writes results after `marker`."""
    played = (match.start() for match in _OWN_PLAY.finditer(prompt))
    if any(not _NEGATED.search(prompt, max(at - 32, 0), at) for at in played):
        return False
    if _OBSERVATION.match(f"{marker} x"):
        return _ACT_WORD.search(prompt) is not None and _OBSERVE_WORD.search(prompt) is not None
    name = marker.strip("<>[]|*:： \n").split(" ")[0]
    return len(name) > 4 and name in prompt


def _has_body(text: str, match: re.Match[str]) -> bool:
    """Whether something follows, and the marker is not merely spoken of (in quotation marks, or inside a sentence)."""
    before = text[: match.start()].rstrip(" ")
    after = text[match.end() :]
    if before[-1:] and before[-1] in _QUOTES:
        return False
    if not after.strip():
        return False
    starts_line = not before or before.endswith(("\n", ">", "]", "|"))
    return starts_line or after[:1] in "\n{["
