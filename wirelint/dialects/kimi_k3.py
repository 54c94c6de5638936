"""Kimi K3's tags of three tokens, in which a call stands as one of the channels of a message.

Lineage: Moonshot's K3 template; K2's tokens are gone. A reply is a `think`, a `response` and a `tools` channel:

    <|open|>tools<|sep|>
    <|open|>call tool="lookup" index="1"<|sep|>
    <|open|>argument key="city" type="string"<|sep|>Graz<|close|>argument<|sep|>
    <|close|>call<|sep|>
    <|close|>tools<|sep|><|close|>message<|sep|>

(without the line ends). Each argument tells its JSON type; strings stand as they are, the rest is JSON. Attributes escape
`"` and `&`, values nothing. No ids: `index` counts from 1 in each message. In the wild single tokens are dropped, so that
names run together: `<|open|>toolscall tool=…`, `Grazargument<|sep|>`, `<|close|>toolsmessage<|sep|>`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from wirelint.dialects import jsontext
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import Opener, Piece, Run, either, full_pattern
from wirelint.dialects.reader import Match, Pattern, Reader
from wirelint.dialects.values import NativeCall
from wirelint.model import Json

_DIALECT = "kimi_k3_xtml"


def _token(word: str) -> tuple[Piece, ...]:
    gap, bars = Run(r"\s", 0, 1), Run("|", 1, 2)
    return ("<", gap, bars, gap, word, gap, bars, gap, ">")


_OPENER: Opener = (
    *_token("open"), Run(r"\s", 0, 4),
    either("tools", ("call", Run(r"\s", 1, 4), Run("a-z", 0, 8), Run(" ", 0, 1), "=")),
)  # fmt: skip

_S = r"\s{0,4}"
_OPEN, _CLOSE, _SEP = (full_pattern((_token(word),)) for word in ("open", "close", "sep"))
_ATTRIBUTES = r"(?P<attributes>(?:\s{1,4}[a-z]{1,16}\s?=\s?(?:\"[^\"<>\n]{0,512}\"|'[^'<>\n]{0,512}')){1,6})"
_ATTRIBUTE = re.compile(r"(?P<key>[a-z]+)\s?=\s?(?P<quote>[\"'])(?P<value>.*?)(?P=quote)")
_TOOLS = re.compile(rf"{_OPEN}{_S}tools(?:{_S}{_SEP})?")
_CALL = re.compile(rf"(?:{_OPEN}{_S})?call{_ATTRIBUTES}{_S}(?:{_SEP}|(?={_OPEN}|{_CLOSE}))")
_ARGUMENT = re.compile(rf"(?:{_OPEN}{_S})?argument{_ATTRIBUTES}(?:{_S}{_SEP})?")


def _end_of(name: str) -> Pattern:
    """The closing tag, one of its tokens lost at most."""
    return re.compile(rf"{_CLOSE}{_S}{name}(?:{_S}{_SEP})?|{name}{_S}{_SEP}")


_ARGUMENT_END, _CALL_END, _TOOLS_END, _MESSAGE_END = (
    _end_of(name) for name in ("argument", "call", "tools", "message")
)
_TAG = re.compile(rf"{_OPEN}|{_CLOSE}")
_CANONICAL = re.compile(r"<\|open\|>[a-z]+(?: [a-z]+=\"[^\"]*\")*<\|sep\|>|<\|close\|>[a-z]+<\|sep\|>")


@dataclass(slots=True)
class _Section:
    """What has been read of a `tools` channel."""

    end: int
    malformed: bool
    calls: list[NativeCall] = field(default_factory=list)

    def take(self, reader: Reader, tag: Match) -> None:
        """Goes on after a tag."""
        self.end = tag.end()
        self.malformed |= _CANONICAL.fullmatch(reader.value(tag.start(), tag.end())) is None


def _read(reader: Reader, position: int) -> Reading:
    tools = reader.match(_TOOLS, position)
    section = _Section(position, malformed=tools is None)
    if tools is not None:
        section.take(reader, tools)
    while call := reader.match(_CALL, reader.space(section.end)):
        section.take(reader, call)
        _read_call(reader, call, section)
        if not section.calls[-1].complete:
            break
    if tools is None and not section.calls:
        return None
    for closer in (_TOOLS_END, _MESSAGE_END):
        if end := reader.match(closer, reader.space(section.end)):
            section.take(reader, end)
        else:
            section.malformed |= closer is _TOOLS_END
    if reader.stand_ins(section.calls):
        return Skip(section.end)
    calls = tuple(section.calls)
    return Found(_DIALECT, position, section.end, calls, "sentinel", section.malformed or not calls)


def _read_call(reader: Reader, call: Match, section: _Section) -> None:
    attributes = _attributes(call)
    name = attributes.get("tool") or attributes.get("name") or ""
    arguments: dict[str, Json] = {}
    whole = bool(name)
    while whole and (argument := reader.match(_ARGUMENT, reader.space(section.end))):
        section.take(reader, argument)
        stop = reader.first((_ARGUMENT_END, _TAG), argument.end())
        if stop is None:
            section.end, whole = reader.size, False
            break
        described = _attributes(argument)
        text = reader.value(argument.end(), stop.start())
        arguments[described.get("key") or described.get("name") or ""] = _typed(text, described.get("type"))
        section.end = stop.start()
        if end := reader.match(_ARGUMENT_END, stop.start()):
            section.take(reader, end)
        else:
            section.malformed = True
    if whole and not arguments:
        arguments = _read_object(reader, section)
    closer = reader.match(_CALL_END, reader.space(section.end)) if whole else None
    if closer is not None:
        section.take(reader, closer)
    else:
        section.malformed = True
        whole = whole and _goes_on(reader, section, arguments)
    section.calls.append(reader.call(name, arguments, complete=whole and "" not in arguments))


def _read_object(reader: Reader, section: _Section) -> dict[str, Json]:
    """The arguments as one object in the place of the tags."""
    at = reader.space(section.end)
    decoded = reader.json(at) if reader.char(at) == "{" else None
    if decoded is None or not isinstance(decoded.value, dict):
        return {}
    section.end, section.malformed = decoded.end, True
    return decoded.value


def _goes_on(reader: Reader, section: _Section, arguments: dict[str, Json]) -> bool:
    """Whether a call without a closer is whole all the same: its arguments are closed, or the next tag follows."""
    at = reader.space(section.end)
    if reader.ended(at):
        return bool(arguments)
    after = (_CALL, _TOOLS_END, _MESSAGE_END)
    return any(reader.match(pattern, at) for pattern in after) or (bool(arguments) and not reader.match(_TAG, at))


def _attributes(tag: Match) -> dict[str, str]:
    found = _ATTRIBUTE.finditer(tag["attributes"])
    return {one["key"]: one["value"].replace("&quot;", '"').replace("&amp;", "&") for one in found}


def _typed(text: str, kind: str | None) -> Json:
    """A value by the type that its tag tells; what is no JSON stays text."""
    if kind is None or kind == "string":
        return text
    try:
        return jsontext.loads(text.strip())
    except ValueError:
        repaired = jsontext.repair(text.strip()) if kind in ("object", "array") else None
        whole = repaired is not None and not repaired.missing and repaired.end == len(text.strip())
        return repaired.value if repaired is not None and whole else text


FAMILY = Family(
    "kimi_k3",
    rank=1,
    openers=(_OPENER,),
    read=_read,
    speakers={_DIALECT: frozenset({"kimi"})},
)
