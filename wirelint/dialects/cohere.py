"""Cohere's action lists.

Lineage: Command-R and R+ (2024) write a plan and then a fenced list after `Action:`; Command-R7B, Command-A and North put
the list between tokens of its own, with an id per call.

    Action: ```json
    [
        {"tool_name": "lookup", "parameters": {"city": "Graz"}}
    ]```

    <|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "lookup", "parameters": {"city": "Graz"}}
    ]<|END_ACTION|>

Types come from the JSON; ids count from "0" in each message. `directly_answer` is what Command-R calls when it wants no
tool. A server that drops special tokens leaves the bare list right behind the plan; its three keys tell it from an answer.
"""

from __future__ import annotations

import re

from wirelint.dialects import coercion, marked_json
from wirelint.dialects.family import Family, Found, Reading
from wirelint.dialects.jsoncalls import Keys, calls_of
from wirelint.dialects.marked_json import Grammar, compiled, compiled_cut, token
from wirelint.dialects.openers import WORD_START, Opener, Run, either, maybe, word_start
from wirelint.dialects.reader import Reader
from wirelint.dialects.values import NativeCall
from wirelint.model import Json

_KEYS = Keys("tool_name", "parameters")
_IDLE = frozenset({"directly_answer", "directly-answer"})
_START, _END = token("START", "ACTION"), token("END", "ACTION")
_CLOSED = (either(_END, ("<", maybe(" "), "/", "START_ACTION", ">")),)
_BLANKS = Run(r" \t", 0, 8)
_FENCE: Opener = (
    WORD_START, "Action", _BLANKS, ":", Run(r"\s", 0, 4), "```", either("json", "JSON", ""), Run(r"\s", 0, 8),
    either("[", "{"),
)  # fmt: skip
_BARE: Opener = (either(("[\n", _BLANKS, "{"), "[{"), Run(r"\s", 0, 16), '"tool_call_id"')

_ACTION = Grammar(
    dialect="cohere_action",
    opener=compiled(_START),
    canonical=frozenset({"<|START_ACTION|>"}),
    closer=compiled(_CLOSED),
    closing="<|END_ACTION|>",
    cut_closer=compiled_cut(_END),
    keys=_KEYS,
    on_sight=True,
    idle=_IDLE,
)
_FENCED = Grammar(
    dialect="cohere_action_fence",
    opener=re.compile(word_start() + r"Action[ \t]{0,8}:\s{0,4}```(?:json|JSON)?(?=\s{0,8}[\[{])"),
    canonical=frozenset({"Action: ```json"}),
    closer=re.compile(r"`{3,}"),
    cut_closer=re.compile(r"`{1,2}\Z"),
    keys=_KEYS,
    tier="generic",
    idle=_IDLE,
)
# LangChain's structured chat puts one `{"action": …}` into the same fence.
_REACT = re.compile(r"\s{0,8}\{\s{0,16}[\"'](?!tool_name|parameters|name|arguments)")
_BARE_LIST = re.compile(r"\[\s{0,9}\{\s{0,16}\"tool_call_id\"")
_ROW = frozenset({"tool_call_id", "tool_name", "parameters"})


def _read(reader: Reader, position: int) -> Reading:
    if opener := reader.match(_FENCED.opener, position):
        return None if reader.match(_REACT, opener.end()) else marked_json.read(reader, position, _FENCED)
    if reader.match(_BARE_LIST, position):
        return _read_bare(reader, position)
    return marked_json.read(reader, position, _ACTION)


def _read_bare(reader: Reader, position: int) -> Reading:
    """The list alone: of declared tools only, and whole."""
    decoded = reader.json(position)
    if decoded.failed or not isinstance(decoded.value, list):
        return None
    rows = [row for row in decoded.value if isinstance(row, dict) and row.keys() >= _ROW]
    calls, _ = calls_of(reader, decoded.value, _KEYS)
    if not calls or not len(calls) == len(rows) == len(decoded.value):
        return None
    if not all(_fits(reader, call) for call in calls):
        return None
    closer = reader.match(compiled(_END), reader.space(decoded.end))
    end = closer.end() if closer is not None else decoded.end
    return Found(_ACTION.dialect, position, end, tuple(calls), "generic", malformed=True)


def _fits(reader: Reader, call: NativeCall) -> bool:
    tool = reader.tool(call.name)
    if tool is None or call.arguments is None:
        return False
    declared: Json = tool.schema
    return call.arguments.keys() <= coercion.properties_of(declared).keys() or declared is None


FAMILY = Family(
    "cohere",
    rank=1,
    openers=(_START, _FENCE, _BARE),
    read=_read,
    speakers={"cohere_action": frozenset({"cohere"}), "cohere_action_fence": frozenset({"cohere"})},
)
