"""`<invoke name="…">` calls, which several families write with parameter tags, prefixes and wrappers of their own.

    <function_calls>                        wrapper; may be missing, misspelt or replaced by a stray word
    <invoke name="lookup">
    <parameter name="city">Graz</parameter> or <param …>, <argument …>, <arg …>
    </invoke>
    </function_calls>

How the tags are spelt is a `Spelling`, what a family makes of them a `Grammar`; both come from the family's table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wirelint.dialects import json_calls, marked_arrays
from wirelint.dialects.reader import Match, Pattern, Reader, is_name
from wirelint.dialects.tables import Table, table
from wirelint.dialects.tagged import Body, Tags, read_body
from wirelint.dialects.values import Calls, Found, NativeCall, Reading, Skip, Tier
from wirelint.model import Tool

_STRAY = re.compile(r"(?m:^)[ \t]{0,8}(?P<word>count|court|call)[ \t\r:]{0,4}\n\s{0,8}(?=<)")
_CUT_CLOSER = re.compile(r"<\s{0,3}/?\s{0,3}[\w:|]{0,32}\Z")
_ANTHROPIC = table(__name__, "anthropic")
_PARAMETERS = ("parameter", "param", "argument", "arg")


@dataclass(frozen=True, slots=True)
class Spelling:
    """The compiled tags of a family.

    `call` has the groups `name` and `tag`, and may have `ns` (prefix), `id`, `empty`; `word` is the proper tag.
    `wrapper` has the group `name`; `wrappers` are the proper ones. `first_parameter` decides which `tags` follow.
    """

    word: str
    call: Pattern
    call_end: Pattern
    wrapper: Pattern
    wrapper_end: Pattern
    first_parameter: Pattern
    tags: Mapping[str, Tags]
    wrappers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Grammar:
    """The grammar of a family.

    `prefixed`: the dialect of calls whose tags carry a prefix. `parameters`: the tags of parameters, the proper one first.
    `other_bodies`: calls without parameter tags count too. `bare`: a wrapper is not part of the grammar. `empty_tags`: a
    call without arguments may be one self-closing tag. `tier`: in a `sentinel`, calls of unknown tools count however they
    end.
    """

    dialect: str
    prefixed: str
    spelling: Spelling
    parameters: tuple[str, ...] = _PARAMETERS
    other_bodies: bool = True
    bare: bool = False
    empty_tags: bool = False
    tier: Tier = "generic"


@dataclass(slots=True)
class _Run(Calls):
    """Sibling calls from `start` on."""

    start: int = 0
    prefixed: bool = False


def spelling(table: Table, row: str = "spelling") -> Spelling:
    """Compile the spelling in a family's table; `invoke.toml` describes its keys."""
    data: dict[str, Any] = {"parameters": _PARAMETERS, **_ANTHROPIC.templates["defaults"], **table.data[row]}
    parts = {key: table.source(value) for key, value in data.items() if isinstance(value, str)}
    parts["inner"] = parts.get("parameter_prefix", parts["prefix"])
    parts["closing"] = parts.get("closing_prefix", parts["prefix"])
    parts["any_parameter"] = "|".join(data["parameters"])
    made = _ANTHROPIC.expand("spelling", parts)

    def tags(parameter: str) -> Tags:
        one = _ANTHROPIC.expand("parameter", {**parts, "parameter": parameter})
        return Tags(
            call=made["call"],
            parameter=one["parameter"],
            parameter_end=one["parameter_end"],
            call_end=made["call_end"],
            wrapper_end=made["wrapper_end"],
            framing="none",
            json_body=data.get("json_body", False),
            cdata=data.get("cdata", False),
            other_end=one["other_end"] if "closing_prefix" in data else None,
        )

    by_tag = {parameter: tags(parameter) for parameter in data["parameters"]}
    return Spelling(word=data["word"], tags=by_tag, wrappers=frozenset(data.get("wrappers", ())), **made)


def grammar(table: Table, row: str = "invoke", *, spelt: str = "spelling") -> Grammar:
    """Return the grammar in a family's table, by default with the table's own spelling, or else that of plain tags."""
    data: dict[str, Any] = dict(table.data[row])
    data["parameters"] = tuple(data.get("parameters", _PARAMETERS))
    data.setdefault("prefixed", data["dialect"])
    return Grammar(spelling=spelling(table, spelt) if spelt in table.data else PLAIN, **data)


PLAIN = spelling(_ANTHROPIC)
"""Plain tags, which may carry the prefix `antml:` or `mm:`."""


def row_reader(table: Table) -> Callable[[Reader, int], Reading]:
    """Return the reader of a family that is a row of data."""
    row = grammar(table)
    return lambda reader, position: read(reader, position, row)


def read(reader: Reader, position: int, grammar: Grammar) -> Reading:
    """Read the block at an opener: a stray word, a wrapper or an invoke."""
    at, start, malformed = position, position, False
    stray = reader.match(_STRAY, position)
    if stray is not None:
        at, start, malformed = stray.end(), stray.start("word"), True
    wrapper = reader.match(grammar.spelling.wrapper, at)
    if wrapper is not None:
        at = reader.space(wrapper.end())
    run = _Run(at, start=start, malformed=malformed)
    _read_calls(reader, at, run, grammar, wrapped=wrapper is not None)
    if not run.calls:
        return None
    if reader.char(run.start) in " \t":
        run.start = reader.space(run.start)
    _close(reader, run, wrapper, grammar)
    dialect = grammar.prefixed if run.prefixed else grammar.dialect
    return reader.block(dialect, run.start, run.end, run.calls, grammar.tier, run.malformed)


def _read_calls(reader: Reader, at: int, run: _Run, grammar: Grammar, *, wrapped: bool) -> None:
    """Read the calls at an offset, one after another."""
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
    if not is_name(written) or (opener["tag"] != word and (tool is None or not _is_near(opener["tag"], word))):
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
    # A call of an unknown tool counts only if it is closed; a stretch that was read in vain is not read again.
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


def _close(reader: Reader, run: _Run, wrapper: Match | None, grammar: Grammar) -> None:
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


def _is_near(word: str, other: str) -> bool:
    """Return True if two words are at most two edits apart (a swap of neighbours is one)."""
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


# -- minicpm -----------------------------------------------------------------------------------------------------------

_MINICPM = grammar(table(__name__, "minicpm"))


def read_minicpm(reader: Reader, position: int) -> Reading:
    reading = read(reader, position, _MINICPM)
    if not isinstance(reading, Found) or reader.declares_any(reading.calls):
        return reading
    # Descriptions of interfaces have such elements too, indented or among others.
    line_start = position == 0 or reader.value(position - 1, position) == "\n"
    return reading if line_start else None


# -- dots --------------------------------------------------------------------------------------------------------------

_DOTS = table(__name__, "dots")
_DOTS_INVOKE = grammar(_DOTS)


def read_dots(reader: Reader, position: int) -> Reading:
    wrapper = reader.match(_DOTS.wrapper, position)
    if wrapper is None:
        return None
    fence = reader.match(_DOTS.fence, wrapper.end())
    reading = _read_dots_objects(reader, wrapper, wrapper.end() if fence is None else fence.end())
    if reading is None:
        reading = read(reader, position, _DOTS_INVOKE)
    if reading is not None:
        return reading
    # Only dots writes the tag, so it is a call even if its inside is unreadable, unless a sentence goes on after it.
    end = position + len(wrapper[0].rstrip())
    called = reader.char(end) in ("", "\n", "<", "{", "[")
    return Found("dots_function_call", position, end, (), "sentinel", True) if called else None


def _read_dots_objects(reader: Reader, wrapper: Match, at: int) -> Reading:
    found = json_calls.read_calls(reader, at, _DOTS.wrapper_end, (_DOTS.wrapper,))
    if found is None:
        return None
    closing = json_calls.close(reader, found.end, _DOTS.wrapper_end)
    proper = found.canonical and not found.array and found.values == 1 and at == wrapper.end()
    odd = not closing.closed or closing.odd or not proper
    return reader.block("dots_function_call", wrapper.start(), closing.end, found.calls, "sentinel", odd)


# -- dsml --------------------------------------------------------------------------------------------------------------

_DSML = table(__name__, "dsml")
_MARKED = grammar(_DSML)
_BLOCK_MARKED = replace(_MARKED, spelling=spelling(_DSML, "block_marked"))  # the invokes carry no marker
_DSML_OBJECTS = marked_arrays.grammar(_DSML)
_PROPER_MARKS = frozenset({"<｜DSML｜", "</｜DSML｜", "<｜GCML｜", "</｜GCML｜"})


def read_dsml(reader: Reader, position: int) -> Reading:
    unmarked = reader.match(_DSML.unmarked, position)
    first = reader.match(_DSML.first, position if unmarked is None else unmarked.end())
    if first is None:
        return None
    reading: Reading = None
    if not first["end"]:
        reading = read(reader, position, _MARKED) or read(reader, position, _BLOCK_MARKED)
        reading = reading or marked_arrays.read(reader, position, _DSML_OBJECTS)
    if reading is None and (remains := reader.match(_DSML.remains, position)):
        reading = Found(_MARKED.dialect, position, remains.end(), (), "sentinel", malformed=True)
    if not isinstance(reading, Found):
        return reading
    marks = list(_DSML.marks.finditer(reader.view.text, reading.start, reading.end))
    odd = len({mark["gap"] for mark in marks}) > 1 or any(mark[1] not in _PROPER_MARKS for mark in marks)
    return reading._replace(dialect=_dsml_dialect(marks, odd=odd), malformed=reading.malformed or odd)


def _dsml_dialect(marks: Sequence[Match], *, odd: bool) -> str:
    """Return the generation by the name of the block, or by the blank before a name if there is no block."""
    if "GCML" in marks[0][1]:
        return "gigachat35_gcml"
    words = {marks[0]["word"], marks[-1]["word"]}
    if "function_calls" in words:
        return "deepseek_v3_2_dsml"
    block = any(_DSML.block.fullmatch(word) for word in words)
    later = "calls" in words or (not block and marks[0]["gap"] and not odd)
    return "deepseek_v4_1_dsml" if later else "deepseek_v4_dsml"


# -- grok --------------------------------------------------------------------------------------------------------------

_GROK = table(__name__, "grok")
_GROK_PREFIXED = grammar(_GROK)
_GROK_PLAIN = grammar(_GROK, "plain", spelt="plain_spelling")
_GROK_OBJECTS = marked_arrays.grammar(_GROK)


def read_grok(reader: Reader, position: int) -> Reading:
    if card := reader.match(_GROK.card, position):
        end = reader.next(_GROK.card_end, card.end())
        return Found(
            _GROK_PREFIXED.dialect, position, reader.size if end is None else end.end(), (), "sentinel", malformed=True
        )
    if reader.match(_GROK_OBJECTS.opener, position):
        return marked_arrays.read(reader, position, _GROK_OBJECTS)
    last = reader.match(_GROK.last_closer, position)
    if last is not None and reader.ended(reader.space(last.end())):
        return Found(_GROK_PREFIXED.dialect, position, last.end(), (), "sentinel", malformed=True)
    return read(reader, position, _GROK_PREFIXED) or read(reader, position, _GROK_PLAIN)


# -- muse --------------------------------------------------------------------------------------------------------------

_MUSE = table(__name__, "muse")
_MUSE_PREFIXED = grammar(_MUSE)
_MUSE_PLAIN = replace(_MUSE_PREFIXED, spelling=spelling(_MUSE, "plain_spelling"))


def read_muse(reader: Reader, position: int) -> Reading:
    header = reader.match(_MUSE.header, position)
    at = position if header is None else header.end()
    opened = reader.match(_MUSE.opened, at)
    reading = read(reader, at, _MUSE_PREFIXED)
    if reading is None and opened is not None:  # inside of its message or wrapper a call counts without the prefix too
        reading = read(reader, at, _MUSE_PLAIN)
    if reading is None:
        if opened is None or reader.char(opened.end()) not in ("", "\n", "<"):
            return None
        reading = Found(_MUSE_PREFIXED.dialect, at, opened.end(), (), "sentinel", malformed=True)
    end = reader.after(_MUSE.end, reading.end)
    if isinstance(reading, Skip):
        return Skip(end)
    addressed = header is not None and header["message"] is not None
    return reading._replace(start=position, end=end, malformed=reading.malformed or not addressed)


# -- step --------------------------------------------------------------------------------------------------------------

_STEP = table(__name__, "step")
_STEP_PREFIXED = grammar(_STEP)
_STEP_PLAIN = replace(_STEP_PREFIXED, bare=False, spelling=PLAIN)  # between its tokens a call may lack the prefix
_STEP_CALL = "<｜tool_call_begin｜>function<｜tool_sep｜>"
_STEP_FIRST, _STEP_NEXT = "<｜tool_calls_begin｜>" + _STEP_CALL, "<｜tool_call_end｜>" + _STEP_CALL


def read_step(reader: Reader, position: int) -> Reading:
    run = Calls(position)
    at, proper = position, _STEP_FIRST
    reading: Reading = None
    while True:
        before = reader.match(_STEP.before, at)
        start = at if before is None else before.end()
        prefixed = reader.match(_STEP.prefixed, start) is not None
        if before is None and not prefixed:
            break
        reading = read(reader, start, _STEP_PREFIXED if prefixed else _STEP_PLAIN)
        if not isinstance(reading, Found):
            break
        run.calls += reading.calls
        run.malformed |= reading.malformed or len(reading.calls) > 1 or _written(reader, at, start) != proper
        run.end = reading.end
        at, proper = reader.space(run.end), _STEP_NEXT
        if not reading.calls[-1].complete:
            break
    if not run.calls:
        return Skip(reader.after(_STEP.after, reading.end)) if reading is not None else None
    end = reader.after(_STEP.after, run.end)
    malformed = run.malformed or _written(reader, run.end, end) != "<｜tool_call_end｜><｜tool_calls_end｜>"
    return Found("step3", position, end, tuple(run.calls), "sentinel", malformed)


def _written(reader: Reader, start: int, end: int) -> str:
    """Return the tokens between two offsets without white space."""
    return _STEP.space.sub("", reader.value(start, end))
