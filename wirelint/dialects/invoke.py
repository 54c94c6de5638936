"""`<invoke name="…">` calls, which several families write with parameter tags, prefixes and wrappers of their own.

    <function_calls>                        wrapper; may be missing, misspelt or replaced by a stray word
    <invoke name="lookup">
    <parameter name="city">Graz</parameter> or <param …>, <argument …>, <arg …>
    </invoke>
    </function_calls>

How the tags are spelt is a `Spelling`, what a family makes of them a `Grammar`. The spelling of this module is that of
plain tags, which may carry the prefix `antml:` or `mm:`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from wirelint.dialects.family import Found, Reading, Skip
from wirelint.dialects.openers import BLANKS, LINE_START, SPACES, Opener, Run, either, maybe
from wirelint.dialects.reader import Match, Pattern, Reader, is_name
from wirelint.dialects.tagged import Body, Tags, read_body
from wirelint.dialects.values import NativeCall, Tier
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
    ("<", Run(r"\s", 1, 3), "calls", _GAP, ">"),
)

_STRAY = re.compile(r"(?m:^)[ \t]{0,8}(?P<word>count|court|call)[ \t\r:]{0,4}\n\s{0,8}(?=<)")
_CUT_CLOSER = re.compile(r"<\s{0,3}/?\s{0,3}[\w:|]{0,32}\Z")
_ANY_INVOKE = r"(?:[a-z]{0,3}vok[a-z]{0,2}|in[a-z]{1,5})"
# Attributes besides the name. What `string` says is looked for ahead of all of them.
_ATTRIBUTES = r"(?:\s{1,4}[a-z_]{1,16}\s?=\s?(?:\"[^\"<>\n]{0,64}\"|'[^'<>\n]{0,64}'|[\w-]{1,32})){0,3}"
_HINT = r"(?:(?=[^<>]{1,256}?\sstring\s?=\s?[\"']?(?P<hint>[Tt]rue|[Ff]alse)\b)|)"
_PARAMETERS = ("parameter", "param", "argument", "arg")


@dataclass(frozen=True, slots=True)
class Spelling:
    """The tags of a family, compiled.

    `call` has the groups `name` and `tag`, and may have `ns` (prefix), `id`, `empty`; `word` is the proper tag.
    `wrapper` has the group `name`; `wrappers` are the proper ones. `first_parameter` tells which `tags` follow.
    """

    word: str
    call: Pattern
    call_end: Pattern
    wrapper: Pattern
    wrapper_end: Pattern
    first_parameter: Pattern
    tags: Mapping[str, Tags]
    wrappers: frozenset[str]


def spell(
    *,
    begin: str = r"<\s{0,3}",
    prefix: str = "",
    word: str = "invoke",
    any_word: str = _ANY_INVOKE,
    parameters: tuple[str, ...] = _PARAMETERS,
    parameter_prefix: str | None = None,
    wrapper: str,
    wrapper_end: str,
    wrappers: tuple[str, ...] = (),
    framing: Literal["none", "lines"] = "none",
    closing_prefix: str | None = None,
    json_body: bool = False,
    cdata: bool = False,
) -> Spelling:
    """A spelling from regular expressions: `begin` is how a tag opens, `any_word` also matches the misspelt word.

    `closing_prefix` is what closers may bear in place of the prefix, where the proper closer of a value is missing.
    """
    inner = prefix if parameter_prefix is None else parameter_prefix
    closing = prefix if closing_prefix is None else closing_prefix
    call = re.compile(
        rf"{begin}(?P<ns>{prefix})(?P<tag>{any_word})\s{{0,4}}[a-z_]{{0,5}}name\s{{0,2}}=\s{{0,2}}"
        r"(?P<quote>[\"']?)(?P<name>[^\"'<>\n\\]{1,128}?)(?P=quote)"
        r"(?:\s{1,4}id\s?=\s?[\"'](?P<id>[^\"'<>\n\\]{1,128})[\"'])?\s{0,4}(?P<empty>/?)\s{0,2}>"
    )
    call_end = re.compile(rf"<\s{{0,3}}/\s{{0,3}}(?:{closing}){any_word}\"?\s{{0,3}}>")
    end_of_wrapper = re.compile(rf"<\s{{0,3}}/\s{{0,3}}(?:{wrapper_end})\s{{0,3}}>")

    def tags(parameter: str) -> Tags:
        opener = (
            rf"{begin}{inner}{parameter}{_HINT}(?P<odd>{_ATTRIBUTES})\s{{0,4}}[a-z_]{{0,8}}name\s{{0,2}}=\s{{0,2}}"
            rf"(?P<quote>[\"']?)(?P<key>[^\"'<>\n\\]{{1,128}}?)(?P=quote){_ATTRIBUTES}\s{{0,3}}>"
        )
        return Tags(
            call=call,
            parameter=re.compile(opener),
            parameter_end=re.compile(rf"<\s{{0,3}}/\s{{0,3}}{inner}{parameter}\s{{0,3}}>"),
            call_end=call_end,
            wrapper_end=end_of_wrapper,
            framing=framing,
            json_body=json_body,
            cdata=cdata,
            other_end=None
            if closing_prefix is None
            else re.compile(rf"<\s{{0,3}}/\s{{0,3}}{closing}{parameter}\s{{0,3}}>"),
        )

    return Spelling(
        word=word,
        call=call,
        call_end=call_end,
        wrapper=re.compile(rf"{begin}(?P<name>{wrapper})\s{{0,3}}>"),
        wrapper_end=end_of_wrapper,
        first_parameter=re.compile(
            rf"{begin}{inner}(?P<tag>{'|'.join(parameters)}){_ATTRIBUTES}\s{{0,4}}[a-z_]{{0,8}}name\s{{0,2}}="
        ),
        tags={parameter: tags(parameter) for parameter in parameters},
        wrappers=frozenset(wrappers),
    )


PLAIN = spell(
    begin=r"(?:<\s{0,3}|(?m:^)[ \t]{0,8}(?=antml:|mm:))",
    prefix=r"(?:antml:|mm:)?",
    wrapper=r"[\w:.-]{0,24}calls?",
    wrapper_end=r"[\w:.-]{0,24}calls?|(?:antml:)?function_results",
    wrappers=("antml:function_calls", "function_calls", "tool_calls"),
)


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a family says of its invokes.

    `prefixed` names the dialect when a tag carries a prefix. `parameters` are the tags of its parameters, the proper one
    first. `other_bodies`: takes calls without parameter tags too. `bare`: a wrapper is not part of the grammar.
    `empty_tags`: a call without arguments may be one self-closing tag. Of the tier `sentinel`, calls of unknown tools
    count however they end.
    """

    dialect: str
    prefixed: str
    parameters: tuple[str, ...]
    other_bodies: bool
    bare: bool
    spelling: Spelling = PLAIN
    empty_tags: bool = False
    tier: Tier = "generic"


@dataclass(slots=True)
class Calls:
    """Sibling calls, as far as they have been read."""

    start: int
    end: int
    malformed: bool = False
    calls: list[NativeCall] = field(default_factory=list)
    prefixed: bool = False


def read(reader: Reader, position: int, grammar: Grammar) -> Reading:
    """The block at an opener: a stray word, a wrapper or an invoke."""
    at, start, malformed = position, position, False
    stray = reader.match(_STRAY, position)
    if stray is not None:
        at, start, malformed = stray.end(), stray.start("word"), True
    wrapper = reader.match(grammar.spelling.wrapper, at)
    if wrapper is not None:
        at = reader.space(wrapper.end())
    run = Calls(start, at, malformed)
    read_calls(reader, at, run, grammar, wrapped=wrapper is not None)
    if not run.calls:
        return None
    if reader.char(run.start) in " \t":
        run.start = reader.space(run.start)
    _close(reader, run, wrapper, grammar)
    if reader.stand_ins(run.calls):
        return Skip(run.end)
    dialect = grammar.prefixed if run.prefixed else grammar.dialect
    return Found(dialect, run.start, run.end, tuple(run.calls), grammar.tier, run.malformed)


def read_calls(reader: Reader, at: int, run: Calls, grammar: Grammar, *, wrapped: bool) -> None:
    """Adds the calls at an offset, one after another, to those that were read."""
    spelling = grammar.spelling
    while opener := reader.match(spelling.call, at):
        read = _read_call(reader, opener, grammar, wrapped=wrapped)
        if read is None:
            return
        call, body = read
        run.calls.append(call)
        run.end = body.end
        run.prefixed |= bool(opener["ns"])
        run.malformed |= body.malformed or opener["tag"] != spelling.word or opener[0][0] != "<"
        if not call.complete:
            return
        at = reader.space(body.end)


def _read_call(reader: Reader, opener: Match, grammar: Grammar, *, wrapped: bool) -> tuple[NativeCall, Body] | None:
    written = opener["name"].strip()
    tool = reader.tool(written)
    word = grammar.spelling.word
    if not is_name(written) or (opener["tag"] != word and (tool is None or not _near(opener["tag"], word))):
        return None
    body = _read_inside(reader, opener, tool, grammar, wrapped=wrapped)
    if body is None:
        return None
    complete = not body.cut and (body.closed or not body.empty)
    return reader.call(written, body.arguments(tool), complete=complete, native_id=opener["id"]), body


def _read_inside(reader: Reader, opener: Match, tool: Tool | None, grammar: Grammar, *, wrapped: bool) -> Body | None:
    known = tool is not None or grammar.tier == "sentinel"
    if opener["empty"]:
        allowed = grammar.other_bodies and (known or wrapped)
        return Body(opener.end(), closed=True, malformed=not grammar.empty_tags) if allowed else None
    at = reader.space(opener.end())
    parameter = reader.match(grammar.spelling.first_parameter, at)
    if parameter is None and not grammar.other_bodies:
        return None
    if parameter is not None and parameter["tag"] not in grammar.parameters:
        return None
    tags = grammar.spelling.tags[parameter["tag"] if parameter is not None else grammar.parameters[0]]
    # A call of an unknown tool counts only when it is closed; what was read in vain is not read again.
    if not known and (reader.next(tags.call_end, at) is None or opener.start() < reader.dead.get(tags, 0)):
        return None
    body = read_body(reader, opener.end(), tags, tool)
    body.malformed |= parameter is not None and parameter["tag"] != grammar.parameters[0]
    if not known and not body.closed:
        reader.dead[tags] = body.end
        return None
    if body.empty and not body.cut:
        cut_off = reader.ended(reader.space(body.end))
        if not (known or wrapped) or not (body.closed or ((wrapped or grammar.tier == "sentinel") and cut_off)):
            return None
    return body


def _close(reader: Reader, run: Calls, wrapper: Match | None, grammar: Grammar) -> None:
    at = reader.space(run.end)
    closer = reader.match(grammar.spelling.wrapper_end, at)
    if closer is not None:
        run.end = closer.end()
    elif not reader.ended(at) and reader.match(_CUT_CLOSER, at):
        run.end, run.malformed = reader.size, True
    if wrapper is None:
        run.malformed |= closer is not None or not grammar.bare
        return
    name = wrapper["name"]
    if grammar.prefixed != grammar.dialect:
        prefixed = name.startswith(("antml:", "mm:"))
        run.malformed |= prefixed != run.prefixed
        run.prefixed |= prefixed
    run.malformed |= closer is None or name not in grammar.spelling.wrappers
    run.malformed |= wrapper[0] != f"<{name}>" or (closer is not None and closer[0] != f"</{name}>")


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
