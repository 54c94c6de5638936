"""Beam's calls: messages addressed to the tool, with the arguments as tags in them.

Lineage: Harmony's message headers (gpt-oss), with `xml` in place of `json` and parameter tags in place of the object.

     to=lookup<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="city">
    Graz
    </rfl:parameter><|call|>

The name stands in the header. Values are text between two line ends, typed by the declared schema. No ids. A further call
is a further message, after `<|end|><|start|>assistant`. In the wild: the token that ends the message eaten as a stop
token, header tokens stripped.
"""

from __future__ import annotations

import re

from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import WORD_START, Opener, Run, maybe
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.tagged import Body, Tags, read_body
from wirelint.dialects.values import NativeCall

_DIALECT = "beam_rfl"
_BLANKS = Run(r"\s", 0, 2)
_PARAMETER: Opener = ("<", Run(r"\s", 0, 3), "rfl:parameter")
_TO: Opener = ("to=", Run(r"\w.:/-", 1, 128), _BLANKS)
_WHOLE: Opener = (
    *_TO, maybe("<|channel|>", Run("a-z", 0, 16), _BLANKS), maybe("<|constrain|>"), _BLANKS, "xml", _BLANKS, "<|message|>",
)  # fmt: skip
_STRIPPED: Opener = (
    *_TO, Run("a-z", 0, 16), _BLANKS, maybe("xml"), _BLANKS, maybe("<|message|>"), Run(r"\s", 0, 8), *_PARAMETER,
)  # fmt: skip
_START: Opener = ("<|start|>assistant", _BLANKS)

_HEADER = re.compile(
    r"(?:<\|start\|>assistant\s{0,2})?(?:<\|channel\|>[a-z]{0,16}\s{0,2})?to=(?P<name>[\w.:/-]{1,128})\s{0,2}(?:<\|channel\|>)?[a-z]{0,16}\s{0,2}"
    r"(?:<\|constrain\|>)?\s{0,2}(?:xml\s{0,2}<\|message\|>|(?:xml\s{0,2})?(?:<\|message\|>)?\s{0,8}(?=<\s{0,3}rfl:))"
)
_PROPER = re.compile(r"(?:<\|start\|>assistant )?to=[\w.:/-]+<\|channel\|>[a-z]+ <\|constrain\|>xml<\|message\|>")
_CHANNELS = ("analysis", "commentary", "final")
_LOST = re.compile(r"<\s{0,3}rfl:parameter\s{0,4}name\s{0,2}=")
_MESSAGE_END = re.compile(r"<\|(?:call|end|return)\|>")
_TAGS = Tags(
    call=re.compile(r"<\|start\|>"),
    parameter=re.compile(
        r"<\s{0,3}rfl:parameter\s{0,4}[a-z_]{0,8}name\s{0,2}=\s{0,2}"
        r"(?P<quote>[\"']?)(?P<key>[^\"'<>\n\\]{1,128}?)(?P=quote)\s{0,3}>"
    ),
    parameter_end=re.compile(r"<\s{0,3}/\s{0,3}rfl:parameter\s{0,3}>"),
    call_end=_MESSAGE_END,
    wrapper_end=_MESSAGE_END,
    framing="lines",
)


def _read(reader: Reader, position: int) -> Reading:
    calls: list[NativeCall] = []
    end, malformed = position, False
    header = reader.match(_HEADER, position)
    while header is not None:
        body = _read_message(reader, header, calls)
        end = body.end
        malformed |= body.malformed or _PROPER.fullmatch(header[0]) is None
        further = body.closed and reader.value(end - len("<|end|>"), end) == "<|end|>"
        header = reader.match(_HEADER, reader.space(end)) if further else None
    if not calls:
        return _read_lost(reader, position)
    if reader.stand_ins(calls):
        return Skip(end)
    return Found(_DIALECT, position, end, tuple(calls), "sentinel", malformed)


def _read_message(reader: Reader, header: Match, calls: list[NativeCall]) -> Body:
    name = header["name"]
    for channel in _CHANNELS:  # what is left of `lookup<|channel|>analysis`
        if name.removesuffix(channel) in reader.tools:
            name = name.removesuffix(channel)
    tool = reader.tool(name)
    body = read_body(reader, header.end(), _TAGS, tool)
    complete = not body.cut and (body.closed or not body.empty)
    calls.append(reader.call(name, body.arguments(tool), complete=complete))
    return body


def _read_lost(reader: Reader, position: int) -> Reading:
    """Arguments whose header is gone: nothing tells which tool was meant."""
    if reader.match(_LOST, position) is None:
        return None
    body = read_body(reader, position, _TAGS, None)
    return Found(_DIALECT, position, body.end, (), "generic", malformed=True) if body.raw else None


FAMILY = Family(
    "beam",
    rank=1,
    openers=(
        (WORD_START, *_WHOLE),
        (WORD_START, *_STRIPPED),
        (*_START, *_WHOLE),
        (*_START, *_STRIPPED),
        ("<|channel|>", Run("a-z", 0, 16), _BLANKS, *_WHOLE),
        (*_START, "<|channel|>", Run("a-z", 0, 16), _BLANKS, *_WHOLE),
        _PARAMETER,
    ),
    read=_read,
    speakers={_DIALECT: frozenset({"beam"})},
    closers={"rfl:parameter": _DIALECT},
    lone=frozenset({"rfl:parameter"}),
)
