"""`<invoke name="…">` calls, which several families write with parameter tags, prefixes and wrappers of their own.

    <function_calls>                        wrapper; may be missing, misspelt or replaced by a stray word
    <invoke name="lookup">
    <parameter name="city">Graz</parameter> or <param …>, <argument …>, <arg …>
    </invoke>
    </function_calls>

Tags may carry the prefix `antml:` or `mm:`. Prefixes and bar markers of other families are not read here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirelint.dialects.family import Found, Reading, Skip
from wirelint.dialects.openers import BLANKS, LINE_START, SPACES, Opener, Run, either, maybe
from wirelint.dialects.reader import Match, Reader, is_name
from wirelint.dialects.tagged import Body, Tags, read_body
from wirelint.dialects.values import NativeCall
from wirelint.model import Tool

_PREFIX = either("antml:", "mm:")
_GAP = Run(r"\s", 0, 3)
# The tag word with up to two letters wrong (`rivoke`, `ivoke`, `invok`, `inovke`), told from other words by `_near`.
_WORD = either((Run("a-z", 0, 3), "vok", Run("a-z", 0, 2)), ("in", Run("a-z", 1, 5)))
_ATTRIBUTE: Opener = (Run(r"\s", 0, 4), Run("a-z_", 0, 5), "name", Run(r"\s", 0, 2), "=")
_CALL: Opener = ("<", either((_GAP, maybe(_PREFIX), "invoke"), (maybe(_PREFIX), _WORD)), *_ATTRIBUTE)

CALL_OPENERS: tuple[Opener, ...] = (
    _CALL,
    (LINE_START, BLANKS, _PREFIX, "invoke", *_ATTRIBUTE),
    (LINE_START, BLANKS, either("count", "court", "call"), Run(r" \t\r:", 0, 4), "\n", SPACES, *_CALL),
)
WRAPPER_OPENERS: tuple[Opener, ...] = (
    ("<", _GAP, maybe(_PREFIX), "function_calls", _GAP, ">"),
    ("<", Run(r"\w:.-", 0, 24), "call", maybe("s"), _GAP, ">"),
    (LINE_START, BLANKS, _PREFIX, "function_calls>"),
)

_BEGIN = r"(?:<\s{0,3}|(?m:^)[ \t]{0,8}(?=antml:|mm:))"
_NS = r"(?:antml:|mm:)?"
_TAG = r"(?:[a-z]{0,3}vok[a-z]{0,2}|in[a-z]{1,5})"
_STRAY = re.compile(r"(?m:^)[ \t]{0,8}(?P<word>count|court|call)[ \t\r:]{0,4}\n\s{0,8}(?=<)")
_WRAPPER = re.compile(rf"{_BEGIN}(?P<name>[\w:.-]{{0,24}}calls?)\s{{0,3}}>")
_WRAPPER_END = re.compile(r"<\s{0,3}/\s{0,3}(?:[\w:.-]{0,24}calls?|(?:antml:)?function_results)\s{0,3}>")
_CUT_CLOSER = re.compile(r"<\s{0,3}/?\s{0,3}[\w:]{0,32}\Z")
_INVOKE = re.compile(
    rf"{_BEGIN}(?P<ns>{_NS})(?P<tag>{_TAG})\s{{0,4}}[a-z_]{{0,5}}name\s{{0,2}}=\s{{0,2}}"
    r"(?P<quote>[\"']?)(?P<name>[^\"'<>\n\\]{1,128}?)(?P=quote)"
    r"(?:\s{1,4}id\s?=\s?[\"'](?P<id>[^\"'<>\n\\]{1,128})[\"'])?\s{0,4}(?P<empty>/?)\s{0,2}>"
)
_INVOKE_END = re.compile(rf"<\s{{0,3}}/\s{{0,3}}{_NS}{_TAG}\s{{0,3}}>")
_PARAMETER_TAGS = ("parameter", "param", "argument", "arg")
_FIRST_PARAMETER = re.compile(
    rf"{_BEGIN}{_NS}(?P<tag>parameter|param|argument|arg)\s{{0,4}}[a-z_]{{0,8}}name\s{{0,2}}="
)


def _tags(parameter: str) -> Tags:
    opener = (
        rf"{_BEGIN}{_NS}{parameter}\s{{0,4}}[a-z_]{{0,8}}name\s{{0,2}}=\s{{0,2}}"
        r"(?P<quote>[\"']?)(?P<key>[^\"'<>\n\\]{1,128}?)(?P=quote)"
        r"(?:\s{1,4}(?:string\s?=\s?[\"'](?P<hint>true|false)[\"']|type\s?=\s?[\"'][\w-]{1,32}[\"']))?\s{0,3}>"
    )
    return Tags(
        call=_INVOKE,
        parameter=re.compile(opener),
        parameter_end=re.compile(rf"<\s{{0,3}}/\s{{0,3}}{_NS}{parameter}\s{{0,3}}>"),
        call_end=_INVOKE_END,
        wrapper_end=_WRAPPER_END,
        framing="none",
    )


_TAGS = {parameter: _tags(parameter) for parameter in _PARAMETER_TAGS}


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a family says of its invokes.

    `prefixed` names the dialect when a tag carries a prefix. `parameters` are the tags of its parameters, the proper one
    first. `other_bodies`: takes calls without parameter tags too. `bare`: a wrapper is not part of the grammar.
    """

    dialect: str
    prefixed: str
    parameters: tuple[str, ...]
    other_bodies: bool
    bare: bool


@dataclass(slots=True)
class _Run:
    """Sibling calls, as far as they have been read."""

    start: int
    end: int
    malformed: bool
    calls: list[NativeCall]
    prefixed: bool = False


def read(reader: Reader, position: int, grammar: Grammar) -> Reading:
    """The block at an opener: a stray word, a wrapper or an invoke."""
    at, start, malformed = position, position, False
    stray = _STRAY.match(reader.shadow, position)
    if stray is not None:
        at, start, malformed = stray.end(), stray.start("word"), True
    wrapper = _WRAPPER.match(reader.shadow, at)
    if wrapper is not None:
        at = reader.space(wrapper.end())
    run = _Run(start, at, malformed, [])
    _read_calls(reader, at, run, grammar, wrapped=wrapper is not None)
    if not run.calls:
        return None
    if reader.shadow[run.start] in " \t":
        run.start = reader.space(run.start)
    _close(reader, run, wrapper, grammar)
    if reader.stand_ins(run.calls):
        return Skip(run.end)
    dialect = grammar.prefixed if run.prefixed else grammar.dialect
    return Found(dialect, run.start, run.end, tuple(run.calls), "generic", run.malformed)


def _read_calls(reader: Reader, at: int, run: _Run, grammar: Grammar, *, wrapped: bool) -> None:
    while opener := _INVOKE.match(reader.shadow, at):
        read = _read_call(reader, opener, grammar, wrapped=wrapped)
        if read is None:
            return
        call, body = read
        run.calls.append(call)
        run.end = body.end
        run.prefixed |= bool(opener["ns"])
        run.malformed |= body.malformed or opener["tag"] != "invoke" or reader.shadow[opener.start()] != "<"
        if not call.complete:
            return
        at = reader.space(body.end)


def _read_call(reader: Reader, opener: Match, grammar: Grammar, *, wrapped: bool) -> tuple[NativeCall, Body] | None:
    written = opener["name"].strip()
    tool = reader.tool(written)
    if not is_name(written) or (opener["tag"] != "invoke" and (tool is None or not _near(opener["tag"], "invoke"))):
        return None
    body = _read_inside(reader, opener, tool, grammar, wrapped=wrapped)
    if body is None:
        return None
    complete = not body.cut and (body.closed or not body.empty)
    return reader.call(written, body.arguments(tool), complete=complete, native_id=opener["id"]), body


def _read_inside(reader: Reader, opener: Match, tool: Tool | None, grammar: Grammar, *, wrapped: bool) -> Body | None:
    known = tool is not None
    if opener["empty"]:
        return Body(opener.end(), closed=True, malformed=True) if grammar.other_bodies and (known or wrapped) else None
    at = reader.space(opener.end())
    parameter = _FIRST_PARAMETER.match(reader.shadow, at)
    if parameter is None and not grammar.other_bodies:
        return None
    if parameter is not None and parameter["tag"] not in grammar.parameters:
        return None
    tags = _TAGS[parameter["tag"] if parameter is not None else "parameter"]
    # A call of an unknown tool counts only when it is closed; what was read in vain is not read again.
    if not known and (reader.next(tags.call_end, at) is None or opener.start() < reader.dead.get(tags, 0)):
        return None
    body = read_body(reader, opener.end(), tags, tool)
    body.malformed |= parameter is not None and parameter["tag"] != grammar.parameters[0]
    if not known and not body.closed:
        reader.dead[tags] = body.end
        return None
    if body.empty and not body.cut:
        cut_off = reader.space(body.end) >= reader.size
        if not (known or wrapped) or not (body.closed or (wrapped and cut_off)):
            return None
    return body


def _close(reader: Reader, run: _Run, wrapper: Match | None, grammar: Grammar) -> None:
    at = reader.space(run.end)
    closer = _WRAPPER_END.match(reader.shadow, at)
    if closer is not None:
        run.end = closer.end()
    elif at < reader.size and _CUT_CLOSER.match(reader.shadow, at):
        run.end, run.malformed = reader.size, True
    if wrapper is None:
        run.malformed |= closer is not None or not grammar.bare
        return
    name = wrapper["name"]
    prefixed = name.startswith(("antml:", "mm:"))
    run.malformed |= prefixed != run.prefixed
    run.prefixed |= prefixed
    run.malformed |= closer is None or name.removeprefix("antml:") not in ("function_calls", "tool_calls")
    run.malformed |= reader.shadow[wrapper.start()] != "<"


def _near(word: str, other: str) -> bool:
    """Whether two words are at most two edits apart (a swap of neighbours is one)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        previous, row, older = row, [i], before
        for j, counterpart in enumerate(other, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (letter != counterpart))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == counterpart:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        before = previous
    return row[-1] <= 2
