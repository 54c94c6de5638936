"""A JSON object in a `<tool_call>` tag, the most copied of all notations.

Lineage: Hermes 2 Pro (NousResearch, 2024) → Qwen2.5, QwQ and Qwen3 → Granite 4, EXAONE 4, SmolLM3, Ling 2, ERNIE 4.5 and
many more with the same bytes.

    <tool_call>
    {"name": "lookup", "arguments": {"city": "Graz"}}
    </tool_call>

Types come from the JSON. Some models repeat the opener, put several objects or a fence inside, use other keys, write a
Python dict, encode `arguments` twice, or choose another tag (`<function_call>`; the weaker `<tool>`, `<tools>`,
`<json>` … only count with a declared tool). When the opener is lost, an object in canonical key order directly before
`</tool_call>` is a call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirelint.dialects import coercion, jsontext
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import BLANKS, LINE_START, SPACES, Opener, Run, either
from wirelint.dialects.reader import Match, Reader, is_name
from wirelint.dialects.values import NativeCall
from wirelint.model import Json

_DIALECT = "hermes_json"
_GAP = Run(r"\s", 0, 3)
_OPENER = re.compile(
    r"<\s{0,3}(?P<tag>tool_call|function_call|tools?|response|json|JSON|xml)\s{0,3}>|<\|(?P<barred>tool_call)\|>"
)
_WEAK = frozenset({"tool", "tools", "response", "json", "JSON", "xml"})
_CLOSERS = {
    tag: re.compile(rf"<\s{{0,3}}/\s{{0,3}}{tag}\s{{0,3}}>") for tag in ("tool_call", "function_call", *sorted(_WEAK))
}
_BARRED_CLOSER = re.compile(r"<\|?/(?:\|)?tool_call(?:\|)?>|</tool_call>")
_FENCE = re.compile(r"`{3,}[a-zA-Z]{0,8}\s*")
_FENCE_END = re.compile(r"\s*`{3,}")
_SURPLUS = re.compile(r"[\s}\],]*")
_CUT_CLOSER = re.compile(r"<\s{0,3}/\s{0,3}[a-zA-Z_]{0,16}\Z")
_WRITTEN_NAME = re.compile(r"""["'](?:name|tool_name)["']\s{0,4}:\s{0,4}["']([\w.:/-]{1,128})["']""")

_ELLIPSIS = re.compile(r"[{\[:,]\s{0,4}(?:\.\.\.|…)")  # `{...}`: a description of a call

_NAME_KEYS = ("name", "tool_name", "tool", "function", "recipient_name", "action")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "params", "function_args", "tool_input")


@dataclass(slots=True)
class _Tag:
    """What has been read of one tag."""

    opener: Match
    end: int
    calls: list[NativeCall]
    malformed: bool = False
    closed: bool = False

    @property
    def name(self) -> str:
        return self.opener["tag"] or self.opener["barred"]

    @property
    def closer(self) -> re.Pattern[str]:
        return _BARRED_CLOSER if self.opener["barred"] else _CLOSERS[self.name]


def _read(reader: Reader, position: int) -> Reading:
    opener = _OPENER.match(reader.shadow, position)
    if opener is None:
        return _read_orphan(reader, position)
    tag = _Tag(opener, opener.end(), [], malformed=opener["tag"] != "tool_call")
    at = _skip_framing(reader, tag)
    first = reader.shadow[at : at + 1]
    if first != "{" and not (first == "[" and opener["tag"] == "tool_call" and reader.next(tag.closer, at)):
        return None
    if not _read_values(reader, at, tag):
        return None
    _close(reader, tag)
    if not _counts(reader, tag):
        return None
    if reader.stand_ins(tag.calls):
        return Skip(tag.end)
    return Found(_DIALECT, position, tag.end, tuple(tag.calls), "generic", tag.malformed)


def _skip_framing(reader: Reader, tag: _Tag) -> int:
    """To the body: past white space, a repeated opener, a fence."""
    at = reader.space(tag.end)
    for pattern in (_OPENER, _FENCE):
        if extra := pattern.match(reader.shadow, at):
            at, tag.malformed = reader.space(extra.end()), True
    return at


def _read_values(reader: Reader, at: int, tag: _Tag) -> bool:
    """One object after another; False when the first is nothing that could be a call."""
    while reader.shadow[at : at + 1] in ("{", "[") and at < reader.size:
        tag.malformed |= bool(tag.calls) or reader.shadow[at] == "["
        decoded = reader.json(at)
        if decoded.failed:
            return _read_damaged(reader, at, tag) or bool(tag.calls)
        calls, canonical = calls_of(reader, decoded.value)
        if not calls:
            return bool(tag.calls)
        tag.calls += calls
        tag.malformed |= not (canonical and decoded.healthy)
        tag.end = decoded.end
        at = reader.space(decoded.end)
        if reader.shadow[at : at + 1] == ",":
            at = reader.space(at + 1)
    return bool(tag.calls)


def _read_damaged(reader: Reader, at: int, tag: _Tag) -> bool:
    closer = reader.next(tag.closer, at)
    follower = reader.next(_OPENER, at)
    stop = min((match.start() for match in (closer, follower) if match is not None), default=reader.size)
    closed = closer is not None and closer.start() == stop
    tag.malformed = True
    repaired = reader.repair(at, stop)
    # Without a closing tag only the outermost bracket may be missing: then the arguments themselves are whole.
    if repaired is not None and (closed or repaired.missing <= 1):
        calls, _ = calls_of(reader, repaired.value)
        tag.calls += calls
        tag.end = repaired.end
        return bool(calls)
    written = _WRITTEN_NAME.search(reader.shadow, at, stop)
    if written is None or reader.tool(written[1]) is None or _ELLIPSIS.search(reader.shadow, at, stop):
        return False
    tag.calls.append(reader.call(written[1], None, complete=False))
    tag.end = stop
    return True


def _close(reader: Reader, tag: _Tag) -> None:
    surplus = _SURPLUS.match(reader.shadow, tag.end)
    at = surplus.end() if surplus is not None else tag.end
    reader.work += at - tag.end
    odd = bool(reader.shadow[tag.end : at].strip())
    if fence := _FENCE_END.match(reader.shadow, at):
        at, odd = reader.space(fence.end()), True
    if closer := tag.closer.match(reader.shadow, at):
        tag.end, tag.closed = closer.end(), True
        tag.malformed |= odd
    else:
        tag.malformed = True
        if _CUT_CLOSER.match(reader.shadow, at):
            tag.end = reader.size


def _counts(reader: Reader, tag: _Tag) -> bool:
    known = any(call.name in reader.tools for call in tag.calls)
    if tag.name in _WEAK:
        return known and tag.closed
    return known or tag.closed or tag.name == "tool_call"


def calls_of(reader: Reader, value: Json) -> tuple[list[NativeCall], bool]:
    """The calls that a JSON value describes, and whether it does so in the canonical way."""
    if isinstance(value, list):
        read = [_call_of(reader, item) for item in value]
        return [call for call, _ in read if call is not None], False
    call, canonical = _call_of(reader, value)
    return ([call] if call is not None else []), canonical


def _call_of(reader: Reader, value: Json) -> tuple[NativeCall | None, bool]:
    if not isinstance(value, dict):
        return None, False
    inner = value.get("function")
    if isinstance(inner, dict) and "name" in inner:  # OpenAI's own shape: {"type": "function", "function": {…}}
        call, _ = _call_of(reader, inner)
        return call, False
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    key = next((key for key in _ARGUMENT_KEYS if key in value), None)
    if not isinstance(name, str) or not is_name(name) or _declares(value):
        return None, False
    tool = reader.tool(name)
    if key is None:
        arguments: Json = {} if tool is not None else None
        if tool is None:
            return None, False
    else:
        arguments = value[key]
    canonical = key == "arguments" and "name" in value and isinstance(arguments, dict)
    arguments = _decoded(arguments)
    if isinstance(arguments, dict) and tool is not None:
        arguments = coercion.unwrap(arguments, coercion.properties_of(tool.schema))
    native_id = value.get("id")
    identifier = native_id if isinstance(native_id, str) else None
    return reader.call(name, arguments, complete=True, native_id=identifier), canonical


def _decoded(arguments: Json) -> Json:
    """Arguments that were encoded twice, or written as null for none."""
    if arguments is None:
        return {}
    if not isinstance(arguments, str):
        return arguments
    if not arguments.strip():
        return {}
    decoded = jsontext.decode_at(arguments.strip(), 0)
    return None if decoded.failed or decoded.end != len(arguments.strip()) else decoded.value


def _declares(value: dict[str, Json]) -> bool:
    """A tool's declaration, as system prompts list them in `<tools>`, is no call."""
    schema = value.get("parameters") or value.get("input_schema")
    return "description" in value or (isinstance(schema, dict) and isinstance(schema.get("properties"), dict))


_ORPHAN: Opener = (
    LINE_START, BLANKS, "{", SPACES, '"name"', _GAP, ":", _GAP, '"', Run(r"\w.:/-", 1, 64), '"', _GAP, ",", SPACES,
    either('"arguments"', '"parameters"'), _GAP, ":",
)  # fmt: skip


def _read_orphan(reader: Reader, position: int) -> Reading:
    """An object whose `<tool_call>` was lost: nothing but its closer tells it from a JSON answer."""
    start = reader.space(position)
    if reader.shadow[start : start + 1] != "{" or start < reader.dead.get(_DIALECT, 0):
        return None
    if reader.next(_CLOSERS["tool_call"], start) is None:
        return None
    decoded = reader.json(start)
    reader.dead[_DIALECT] = decoded.end
    closer = _CLOSERS["tool_call"].match(reader.shadow, reader.space(decoded.end))
    if decoded.failed or closer is None:
        return None
    calls, _ = calls_of(reader, decoded.value)
    if not calls:
        return None
    if reader.stand_ins(calls):
        return Skip(closer.end())
    return Found(_DIALECT, start, closer.end(), tuple(calls), "generic", malformed=True)


FAMILY = Family(
    "hermes",
    openers=(
        (
            "<",
            _GAP,
            either("tool_call", "function_call", "tool", "tools", "response", "json", "JSON", "xml"),
            _GAP,
            ">",
        ),
        ("<|tool_call|>",),
        _ORPHAN,
    ),
    read=_read,
    closers={"tool_call": _DIALECT},
    lone=frozenset({"tool_call"}),
)
