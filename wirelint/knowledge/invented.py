"""Markup in which tool results are handed to models, found where a model wrote it itself.

Every chat template has its own: tags (`<tool_response>`), control tokens (`<｜tool▁outputs▁begin｜>`), a header for the
tool's role, a label of a text protocol (`Observation:` after an `Action:`). A model that writes one goes on with what
it imagines. Sources: the chat templates of the model families named beside the patterns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirelint.knowledge.prose import unquoted


@dataclass(frozen=True, slots=True)
class Invented:
    """A result that stands in a text: its opening markup and what follows it. Offsets are those of the text."""

    marker: str
    start: int
    end: int


_MARKERS = re.compile(
    # Hermes, Qwen, GLM; Anthropic's legacy markup; what models make of both
    r"<(?:\w{1,10}:)?(?:tool_response|tool_responses|tool_result|tool_results|function_results?|"
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
_HINTS = (
    "tool",
    "function_res",
    "TOOL_RES",
    "<|start",
    "Return of",
    "<|observation",
    "START_TOOL",
    "]~b]",
    "Observation:",
    "Human:",
    "User:",
)
_ACTION = re.compile(r"^[ \t>*]*\**Action\**(?: Input)?\**:", re.MULTILINE | re.IGNORECASE)
_OBSERVATION = re.compile(
    r"^[ \t]*\**Observation\**:\**[ \t]*(?=\S)|^[ \t]*\**Observation\**:\**[ \t]*\n(?=[ \t]*\S)", re.MULTILINE
)
_RUNAWAY = re.compile(
    r"^(?:Human|User|H): ?\s*(?:\[?(?:Tool|Function) (?:result|output|response)|<|\{)", re.MULTILINE | re.IGNORECASE
)
_QUOTES = "\"'“”‘’«»„「『"


def invented_result(text: str) -> Invented | None:
    """The first result that a text makes up, unquoted and with a body; None when there is none."""
    if not any(hint in text for hint in _HINTS):
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
    return Invented(first[0].strip(), first.start(), len(text))


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
