"""A JSON object in a `<tool_call>` tag, the most copied of all notations.

Lineage: Hermes 2 Pro (NousResearch, 2024) → Qwen2.5, QwQ and Qwen3 → Granite 4, EXAONE 4, SmolLM3, Ling 2, ERNIE 4.5 and
many more with the same bytes; LongCat with a tag of its own, `<longcat_tool_call>`.

    <tool_call>
    {"name": "lookup", "arguments": {"city": "Graz"}}
    </tool_call>

Types come from the JSON. Some models repeat the opener (or close with it), put several objects or a fence inside, use
other keys, write a Python dict, encode `arguments` twice, or choose another tag (`<function_call>`; the weaker `<tool>`,
`<tools>`, `<json>` … only count with a declared tool and a closer). ERNIE's line ends may come as `<0x0A>`. When the opener
is lost, an object in canonical key order directly before `</tool_call>` is a call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.jsoncalls import JsonCalls, calls_of, close, read_calls
from wirelint.dialects.openers import BLANKS, LINE_START, SPACES, Opener, Run, either, maybe
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import Tier

_DIALECT, _LONGCAT, _ERNIE = "hermes_json", "longcat", "ernie45"
_GAP = Run(r"\s", 0, 3)
_WEAK = ("tools?", "tool[-_]?use", "tool-?call", "functions?", "call", "response", "json", "JSON", "xml")
_OPENER = re.compile(
    rf"<\s{{0,3}}(?P<tag>tool_call|function_calls?|longcat_tool_call|(?P<weak>{'|'.join(_WEAK)}))\s{{0,3}}>"
    r"|<\|(?P<barred>tool_call)\|>|(?P<request>\[TOOL_REQUEST\])"
)
_CLOSER = re.compile(
    r"<\s{0,3}[/\\]\s{0,3}(?:longcat_)?(?:tool|function)_?calls?\s{0,3}>"
    r"|<\|?/\|?tool_call\|?>"
)
_WEAK_CLOSER = re.compile(rf"<\s{{0,3}}/\s{{0,3}}(?:tool_call|{'|'.join(_WEAK)})\s{{0,3}}>|\[END_TOOL_REQUEST\]")
_OTHERS = ("function_call", "function_calls")
_NEWLINE_TOKEN = re.compile(r"(?:\s*<0x0A>)+\s*")
_FENCE = re.compile(r"`{3,}[a-zA-Z]{0,8}\s*")
_CALL_KEYS = re.compile(  # of an object, or of the first in an array
    r"""(?:\[\s{0,16})?\{\s{0,16}["'](?:(?:tool_)?name|tool|function|action|id|type|arguments|parameters|args|input)["']"""
)
_CUT_CLOSER = re.compile(r"(?:<\s{0,3}/\s{0,3}[a-zA-Z_]{0,24}|<\|?/?[a-z_|]{0,12}|<0x?0?A?|<)\Z")


@dataclass(slots=True)
class _Tag:
    """What has been read of one tag, beside its calls."""

    opener: Match
    end: int
    malformed: bool = False
    closed: bool = False
    ernie: bool = False

    @property
    def weak(self) -> bool:
        return bool(self.opener["weak"] or self.opener["request"])

    @property
    def dialect(self) -> str:
        if self.opener["tag"] == "longcat_tool_call":
            return _LONGCAT
        return _ERNIE if self.ernie and not self.weak else _DIALECT


def _read(reader: Reader, position: int) -> Reading:
    opener = reader.match(_OPENER, position)
    if opener is None:
        return _read_orphan(reader, position)
    tag = _Tag(opener, opener.end(), malformed=opener["tag"] not in ("tool_call", "longcat_tool_call"))
    at = _skip_framing(reader, tag)
    if tag.weak and reader.match(_CALL_KEYS, at) is None:
        return None
    found = read_calls(reader, at, _WEAK_CLOSER if tag.weak else _CLOSER, (_OPENER,))
    if found is None:
        return None
    tag.malformed |= found.array or found.values > 1 or not found.canonical
    tag.end = found.end
    _close(reader, tag)
    if not _counts(reader, tag, found):
        return None
    if reader.stand_ins(found.calls):
        return Skip(tag.end)
    tier: Tier = "sentinel" if tag.dialect == _LONGCAT else "generic"
    return Found(tag.dialect, position, tag.end, tuple(found.calls), tier, tag.malformed)


def _skip_framing(reader: Reader, tag: _Tag) -> int:
    """To the body: past white space, a repeated opener, a fence."""
    at = _skip_space(reader, tag, tag.end)
    for pattern in (_OPENER, _FENCE):
        if extra := reader.match(pattern, at):
            at, tag.malformed = _skip_space(reader, tag, extra.end()), True
    return at


def _skip_space(reader: Reader, tag: _Tag, at: int) -> int:
    at = reader.space(at)
    if token := reader.match(_NEWLINE_TOKEN, at):
        at, tag.ernie, tag.malformed = token.end(), True, True
    return at


def _close(reader: Reader, tag: _Tag) -> None:
    end = _skip_space(reader, tag, tag.end)
    tag.end = end if tag.ernie else tag.end
    closing = close(reader, tag.end, _WEAK_CLOSER if tag.weak else _CLOSER)
    if closing.closer is not None:
        tag.end, tag.closed = closing.end, True
        tag.malformed |= closing.odd or closing.closer[0].strip("</> ") != tag.opener["tag"]
        while more := reader.match(_CLOSER, tag.end):
            tag.end, tag.malformed = more.end(), True
        return
    tag.malformed = True
    at = reader.space(tag.end)
    again = reader.match(_OPENER, at)
    # The opener once more in the place of the closer: nothing follows that it could open.
    if again is not None and again[0] == tag.opener[0] and reader.char(reader.space(again.end())) not in ("{", "["):
        tag.end, tag.closed = again.end(), True
    elif reader.over and reader.match(_CUT_CLOSER, at):
        tag.end = reader.size


def _counts(reader: Reader, tag: _Tag, found: JsonCalls) -> bool:
    known = any(call.name in reader.tools for call in found.calls)
    if tag.weak:
        return known and tag.closed
    whole = any(call.complete for call in found.calls) or tag.dialect == _LONGCAT
    return known or (whole and (tag.closed or tag.opener["tag"] not in _OTHERS) and _holds(tag, found))


def _holds(tag: _Tag, found: JsonCalls) -> bool:
    """Whether a tag of unknown tools is one at all: arrays and tokens of other notations need their closer."""
    return tag.closed or not (found.array or tag.opener["barred"])


_ORPHAN: Opener = (
    LINE_START, BLANKS, "{", SPACES, '"name"', _GAP, ":", _GAP, '"', Run(r"\w.:/-", 1, 64), '"', _GAP, ",", SPACES,
    either('"arguments"', '"parameters"'), _GAP, ":",
)  # fmt: skip


def _read_orphan(reader: Reader, position: int) -> Reading:
    """An object whose `<tool_call>` was lost: nothing but its closer tells it from a JSON answer."""
    start = reader.space(position)
    if reader.char(start) != "{" or start < reader.dead.get(_DIALECT, 0):
        return None
    decoded = reader.json(start)
    reader.dead[_DIALECT] = decoded.end
    closer = None if decoded.failed else reader.match(_CLOSER, reader.space(decoded.end))
    if closer is None:
        return None
    calls, _ = calls_of(reader, decoded.value)
    if not calls:
        return None
    if reader.stand_ins(calls):
        return Skip(closer.end())
    dialect = _LONGCAT if "longcat" in closer[0] else _DIALECT
    return Found(dialect, start, closer.end(), tuple(calls), "generic", malformed=True)


_TAGS = either(
    "tool_call", ("function_call", maybe("s")), "longcat_tool_call", ("tool", maybe("s")), ("tool", Run("_-", 0, 1), "use"),
    ("tool", maybe("-"), "call"), ("function", maybe("s")), "call", "response", "json", "JSON", "xml",
)  # fmt: skip
_SPEAKERS = frozenset({
    "qwen", "hermes", "granite", "exaone", "ling", "smollm", "mimo", "nemotron", "ernie", "hunyuan", "llama",
    "solar", "falcon", "trinity", "kolibri",
})  # fmt: skip

FAMILY = Family(
    "hermes",
    rank=3,
    openers=(("<", _GAP, _TAGS, _GAP, ">"), ("<|tool_call|>",), ("[TOOL_REQUEST]",), _ORPHAN),
    read=_read,
    speakers={_DIALECT: _SPEAKERS, _LONGCAT: frozenset({"longcat"}), _ERNIE: frozenset({"ernie"})},
    closers={"tool_call": _DIALECT, "longcat_tool_call": _LONGCAT},
    lone=frozenset({"tool_call", "longcat_tool_call"}),
)
