"""Qwen3-Coder's tags, with the names after an equals sign.

Lineage: the custom tool tag of Llama 3.1 → OpenHands' prompt format → Qwen3-Coder, Qwen3.5 and later → Step 3.5, Nemotron
3, K-EXAONE 2, Nanbeige. MiMo-V2 writes the same without line ends and keeps values verbatim; Seed-OSS writes it in
`<seed:tool_call>`.

    <tool_call>
    <function=lookup>
    <parameter=city>
    Graz
    </parameter>
    </function>
    </tool_call>

Values are text, typed by the declared schema; one line end on either side is framing. No ids. In the wild the wrapper's
opener is often missing, closers are, names are quoted or written as an attribute, as the element's text or bare.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import BLANKS, LINE_START, Opener, Run, either, maybe
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.tagged import Body, Tags, read_body
from wirelint.dialects.values import NativeCall

_DIALECT = "qwen3_coder_xml"
_COMPACT = "mimo_xml"
_SEED = "seed_oss_xml"
_WRAPPERS = {"tool_call": _DIALECT, "seed:tool_call": _SEED}
_GAP = Run(r"\s", 0, 3)
_S = r"\s{0,3}"
_NAME = r"[\w.:/-]{1,128}"
_KEY = r"[^\s\"'<>=\\]{1,128}"
_ATTRIBUTE = r"(?:\s{0,3}=\s{0,3}|\s{1,3}name\s{0,2}=\s{0,2}|name\s{0,2}=\s{0,2})"

_FUNCTION = re.compile(
    rf"(?:<{_S}|(?m:^)[ \t]{{0,8}}(?=function=))function"
    rf"(?:{_ATTRIBUTE}(?P<quote>[\"']?)(?P<name>{_NAME})(?P=quote)(?:{_S}>|(?=\s{{0,3}}\n\s{{0,8}}<{_S}parameter))"
    rf"|{_S}>\s{{0,8}}(?P<text>{_NAME})\s{{0,8}}(?:<{_S}/{_S}function{_S}>)?)"
)
_BARE_NAME = re.compile(rf"(?P<name>{_NAME})\s{{0,3}}>?(?=\s{{0,8}}<{_S}parameter)")
_WRAPPER = re.compile(rf"<(?:{_S}(?=tool_call\s*>))?(?P<tag>[\w:.-]{{0,16}}tool_?calls?){_S}>")
_WRAPPER_END = re.compile(rf"<{_S}/{_S}[\w:.-]{{0,16}}tool_?calls?{_S}>")
_CUT_CLOSER = re.compile(r"<\s{0,3}/?\s{0,3}[\w:]{0,32}\Z")
_PARAMETER = re.compile(rf"<{_S}parameter{_ATTRIBUTE}(?P<quote>[\"']?)(?P<key>{_KEY})(?P=quote)(?:{_S}>|(?=\n))")


def _tags(framing: str) -> Tags:
    return Tags(
        call=_FUNCTION,
        parameter=_PARAMETER,
        parameter_end=re.compile(rf"<{_S}/{_S}parameter{_S}>"),
        call_end=re.compile(rf"<{_S}/{_S}function{_S}>"),
        wrapper_end=_WRAPPER_END,
        framing="lines" if framing == "lines" else "none",
    )


_LINES, _VERBATIM = _tags("lines"), _tags("none")


@dataclass(slots=True)
class _Run:
    """The functions of one wrapper, as far as they have been read."""

    end: int
    calls: list[NativeCall]
    malformed: bool
    dialect: str
    compact: bool = False


def _read(reader: Reader, position: int) -> Reading:
    wrapper = reader.match(_WRAPPER, position)
    at = reader.space(wrapper.end()) if wrapper is not None else position
    tag = wrapper["tag"] if wrapper is not None else ""
    run = _Run(at, [], malformed=tag not in _WRAPPERS, dialect=_WRAPPERS.get(tag, _DIALECT))
    # Compact wrappers have nothing between the tags.
    run.compact = wrapper is not None and at == wrapper.end() and run.dialect != _SEED
    while opener := _next_function(reader, at, bare_allowed=wrapper is not None and not run.calls):
        read = _read_function(reader, opener, run, wrapped=wrapper is not None)
        if read is None:
            break
        call, body = read
        run.calls.append(call)
        run.end = body.end
        run.malformed |= body.malformed
        if not call.complete:
            break
        at = reader.space(body.end)
    if not run.calls:
        return None
    _close(reader, run, wrapped=wrapper is not None)
    if reader.stand_ins(run.calls):
        return Skip(run.end)
    dialect = _COMPACT if run.compact else run.dialect
    return Found(dialect, position, run.end, tuple(run.calls), "generic", run.malformed)


def _next_function(reader: Reader, at: int, *, bare_allowed: bool) -> Match | None:
    opener = reader.match(_FUNCTION, at)
    if opener is None and bare_allowed:
        return reader.match(_BARE_NAME, at)
    return opener


def _read_function(reader: Reader, opener: Match, run: _Run, *, wrapped: bool) -> tuple[NativeCall, Body] | None:
    if reader.ended(opener.end()):  # the name may go on
        return None
    groups = opener.groupdict()
    written = groups["name"] or groups.get("text") or ""
    tool = reader.tool(written)
    canonical = opener[0].startswith("<function=") and opener[0].endswith(">") and not groups.get("quote")
    run.malformed |= not canonical
    run.compact &= canonical and reader.char(opener.end()) == "<"
    tags = _VERBATIM if run.compact else _LINES
    if not wrapped and reader.char(reader.space(opener.end())) == "{":
        return None  # <function=NAME>{…}</function> belongs to Llama 3.1 and Functionary
    # An unknown tool counts only when its call is closed; what was read in vain is not read again.
    if tool is None and (reader.next(tags.call_end, opener.end()) is None or opener.start() < reader.dead.get(tags, 0)):
        return None
    body = read_body(reader, opener.end(), tags, tool)
    ended = body.closed or (wrapped and reader.match(_WRAPPER_END, reader.space(body.end)) is not None)
    if tool is None and (body.cut or not ended or (body.empty and not wrapped)):
        reader.dead[tags] = body.end
        return None
    if body.empty and not body.cut and not (ended and (wrapped or canonical)):
        return None
    return reader.call(written, body.arguments(tool), complete=not body.cut), body


def _close(reader: Reader, run: _Run, *, wrapped: bool) -> None:
    at = reader.space(run.end)
    closer = reader.match(_WRAPPER_END, at)
    if closer is not None:
        run.end = closer.end()
        return
    run.malformed = True
    if wrapped and not reader.ended(at) and reader.match(_CUT_CLOSER, at):
        run.end = reader.size


_NAMED: Opener = ("function", either((_GAP, "="), (Run(r"\s", 0, 3), "name", _GAP, "="), (_GAP, ">")))

FAMILY = Family(
    "qwen",
    rank=2,
    openers=(
        ("<", _GAP, "tool_call", _GAP, ">"),
        ("<", Run(r"\w:.-", 0, 16), "tool", maybe("_"), "call", maybe("s"), _GAP, ">"),
        ("<", _GAP, *_NAMED),
        (LINE_START, BLANKS, "function="),
    ),
    read=_read,
    speakers={
        _DIALECT: frozenset({"qwen", "step", "nemotron", "exaone", "nanbeige", "iquest", "ui-tars"}),
        _COMPACT: frozenset({"mimo"}),
        _SEED: frozenset({"seed"}),
    },
    closers={"parameter": None, "function": _DIALECT, "seed:tool_call": _SEED},
    lone=frozenset({"seed:tool_call"}),
)
