"""OpenAI's models addressing a function in plain text.

Lineage: ChatGPT's internal recipients (`to=functions.lookup`) and the wrapper for parallel calls,
`multi_tool_use.parallel`, known since GPT-3.5 and still written by GPT-5 and Codex; with the tokens of Harmony it is
that family's.

    assistant to=functions.lookup commentary json
    {"city": "Graz"}

    multi_tool_use.parallel({"tool_uses": [{"recipient_name": "functions.lookup", "parameters": {"city": "Graz"}}]})

Types come from the JSON; no ids. Junk between the name and the arguments, or before the header, means that the model
has come off its tracks: such a call is told of but never complete. The payload of the wrapper may stand alone as the
whole message, and `functions.lookup({…})` on a line of its own is the notation of the first plugins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirelint.dialects import weak
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.jsoncalls import Keys, calls_of
from wirelint.dialects.openers import BLANKS, LINE_START, SPACES, TEXT_START, WORD_START, Run, either
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall, Tier
from wirelint.model import Json

_LEAK, _MULTI = "openai_functions_leak", "multi_tool_use"
_HEADER = re.compile(
    r"(?P<role>[Aa]ssistant[ \t]{1,2})?to=(?:functions?\.(?P<name>[\w-](?:[\w.-]{0,126}[\w-])?)|multi_tool_use\.parallel)"
    r"(?P<words>(?:[ \t]{1,4}(?:in|commentary|analysis|final|code|json)(?![\w-]))*)(?P<colon>[ \t]{0,2}:)?"
)
_GAP = re.compile(r"(?P<junk>)\s{0,4}")
_JUNK = re.compile(r"(?P<junk>[^\n{}<]{0,40})\s{0,4}")
_PARALLEL = re.compile(
    r"multi_tool_use\.parallel\s{0,4}(?P<paren>\()?\s{0,4}(?P<words>json|code)?\s{0,4}(?P<key>tool_uses\s{0,4}[=:]\s{0,4})?"
)
_PLUGIN = re.compile(r"[ \t]{0,8}functions?\.(?P<name>[\w.-]{1,128})\(\s{0,8}")
_PAYLOAD = re.compile(r"\{\s{0,32}\"tool_uses\"\s{0,8}:\s{0,8}\[")
_STARTS = re.compile(r"[{\[]\s*[\"'}{\]]")
_PAREN = re.compile(r"\s{0,8}\)")
_LINE_REST = re.compile(r"[ \t;]*(?P<end>\n)?")
_LINE_BEFORE = re.compile(r"(?:\A|\n)[ \t]{0,8}\Z")
_USES = Keys("recipient_name", "parameters")


@dataclass(slots=True)
class _Payload:
    """A JSON value, or as much as there is of it. `cut`: the text ends in it."""

    value: Json
    end: int
    healthy: bool
    cut: bool = False


def _read(reader: Reader, position: int) -> Reading:
    if header := reader.match(_HEADER, position):
        return _read_addressed(reader, header)
    if parallel := reader.match(_PARALLEL, position):
        return _read_parallel(reader, parallel)
    if plugin := reader.match(_PLUGIN, position):
        return _read_plugin(reader, plugin)
    return _read_payload(reader, position)


def _read_addressed(reader: Reader, header: Match) -> Reading:
    if reader.ended(header.end()) and not reader.over:
        return None  # the name may go on
    name = header["name"]
    known = name is None or reader.tool(name) is not None
    gap = reader.match(_JUNK if known else _GAP, header.end())
    start, at = header.start(), gap.end() if gap is not None else header.end()
    junk = gap is not None and bool(gap["junk"].strip())
    if reader.char(at) != "{":
        if junk or not (known and header["role"] and header["words"] and reader.ended(at)):
            return None
        calls = (reader.call(name, None, complete=False),) if name is not None else ()
        return Found(_LEAK if name else _MULTI, start, at, calls, "generic", malformed=True)
    payload = _read_json(reader, at)
    if payload is None or (payload.cut and not known):
        return None
    if junk and payload.cut:
        return None
    clean = not junk and _opens_line(reader, start)
    malformed = not (clean and payload.healthy and header["role"] == "assistant " and not header["colon"])
    if name is None:
        return _read_uses(reader, start, payload, complete=clean, canonical=False)
    call = reader.call(name, payload.value, complete=clean and not payload.cut)
    if reader.stand_ins((call,)):
        return Skip(payload.end)
    return Found(_LEAK, start, payload.end, (call,), "generic", malformed or payload.cut)


def _read_parallel(reader: Reader, parallel: Match) -> Reading:
    at = parallel.end()
    if reader.char(at) not in ("{", "[") or (reader.char(at) == "[") != (parallel["key"] is not None):
        return None
    payload = _read_json(reader, at)
    if payload is None:
        return None
    canonical = parallel["paren"] is not None and not parallel["key"] and not parallel["words"]
    if parallel["paren"]:
        if paren := reader.match(_PAREN, payload.end):
            payload.end = paren.end()
        else:
            canonical = False
    return _read_uses(reader, parallel.start(), payload, complete=True, canonical=canonical)


def _read_payload(reader: Reader, position: int) -> Reading:
    """`{"tool_uses": […]}` as all of the message."""
    start = reader.space(position)
    if not reader.tools or not reader.begins(start) or reader.match(_PAYLOAD, start) is None:
        return None
    payload = _read_json(reader, start)
    if payload is None or not (payload.cut or weak.is_whole(reader, start, payload.end)):
        return None
    found = _read_uses(reader, position, payload, complete=True, canonical=False, tier="weak")
    if not isinstance(found, Found) or any(call.name not in reader.tools for call in found.calls):
        return None
    fitting = payload.cut or all(weak.fits(reader.tools[call.name], call.arguments) for call in found.calls)
    return found if fitting else None


def _read_uses(
    reader: Reader, start: int, payload: _Payload, *, complete: bool, canonical: bool, tier: Tier = "generic"
) -> Reading:
    uses = payload.value.get("tool_uses") if isinstance(payload.value, dict) else payload.value
    calls, proper = calls_of(reader, uses, _USES)
    if payload.cut and not calls:
        return Found(_MULTI, start, payload.end, (), tier, malformed=True)
    if not calls or not isinstance(uses, list) or len(calls) != len(uses):
        return None
    if not complete or payload.cut:
        calls = [NativeCall(call.name, call.arguments, call.id, complete=False) for call in calls]
    if reader.stand_ins(calls):
        return Skip(payload.end)
    return Found(_MULTI, start, payload.end, tuple(calls), tier, not (canonical and proper and payload.healthy))


def _read_plugin(reader: Reader, plugin: Match) -> Reading:
    tool = reader.tool(plugin["name"])
    if tool is None or reader.char(plugin.end()) != "{" or not _opens_line(reader, plugin.start()):
        return None
    payload = _read_json(reader, plugin.end())
    if payload is None or not (payload.cut or weak.fits(tool, payload.value)):
        return None
    start = plugin.start()
    if payload.cut:
        return Found(
            _LEAK, start, payload.end, (reader.call(tool.name, None, complete=False),), "generic", malformed=True
        )
    paren = reader.match(_PAREN, payload.end)
    if paren is None:
        return None
    rest = reader.match(_LINE_REST, paren.end())
    if rest is None or not (rest["end"] or reader.ended(rest.end())):
        return None
    call = reader.call(tool.name, payload.value, complete=True)
    return Found(_LEAK, start, paren.end(), (call,), "generic", malformed=True)


def _read_json(reader: Reader, at: int) -> _Payload | None:
    if reader.match(_STARTS, at) is None and not reader.ended(reader.space(at + 1)):
        return None
    decoded = reader.json(at)
    if not decoded.failed:
        return _Payload(decoded.value, decoded.end, decoded.healthy)
    if at < reader.dead.get(_LEAK, 0):
        return None
    reader.dead[_LEAK] = reader.size
    repaired = reader.repair(at, reader.size)
    if repaired is not None and not repaired.missing:
        return _Payload(repaired.value, repaired.end, healthy=False)
    return _Payload(None, reader.size, healthy=False, cut=True) if decoded.end >= reader.size else None


def _opens_line(reader: Reader, position: int) -> bool:
    return _LINE_BEFORE.search(reader.shadow[max(position - 16, 0) : position]) is not None or position == 0


_HEADER_OPENER = either("to=functions.", "to=multi_tool_use.parallel")

FAMILY = Family(
    "functions_leak",
    rank=3,
    openers=(
        (LINE_START, either("assistant", "Assistant"), Run(r" \t", 1, 2), _HEADER_OPENER),
        (WORD_START, _HEADER_OPENER),
        (WORD_START, "multi_tool_use.parallel"),
        (LINE_START, BLANKS, "functions.", Run(r"\w.-", 1, 128), "(", SPACES, "{"),
        (TEXT_START, SPACES, "{", SPACES, '"tool_uses"'),
    ),
    read=_read,
    speakers={_LEAK: frozenset({"gpt"}), _MULTI: frozenset({"gpt"})},
)
