"""`<invoke name="…">` calls, which several families write with parameter tags, prefixes and wrappers of their own.

    <function_calls>                        wrapper; may be missing, misspelt or replaced by a stray word
    <invoke name="lookup">
    <parameter name="city">Graz</parameter> or <param …>, <argument …>, <arg …>
    </invoke>
    </function_calls>

The tags of a family are a `Spelling`, its rules a `Grammar`; both come from the family's table. MiniMax M3 puts a token
before every tag, and nests values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import regex

from wirelint.dialects import declared, json_blocks
from wirelint.dialects.json_blocks import read_calls, read_enclosed
from wirelint.dialects.reader import Calls, Match, NativeCall, Pattern, Reader, Reading, Tier, is_name
from wirelint.dialects.tables import Table, tables
from wirelint.dialects.tagged import Body, read_body
from wirelint.model import Json, Tool

_ANTHROPIC, _DOTS, _DSML, _GROK = tables(__name__, "anthropic", "dots", "dsml", "grok")
_MINICPM, _MUSE, _STEP, _MINIMAX = tables(__name__, "minicpm", "muse", "step", "minimax")
_STRAY = re.compile(r"(?m:^)[ \t]{0,8}(?P<word>count|court|call)[ \t\r:]{0,4}\n\s{0,8}(?=<)")
_CUT_CLOSER = re.compile(r"<\s{0,3}/?\s{0,3}[\w:|]{0,32}\Z")
_PARAMETERS = ("parameter", "param", "argument", "arg")


@dataclass(frozen=True, slots=True)
class Grammar:
    """The tags and rules of a family.

    `prefixed`: the dialect of calls whose tags carry a prefix. `call` has the groups `name` and `tag`, and may have `ns`
    (prefix), `id`, `empty`; `word` is the proper tag. `wrapper` has the group `name`. `first_parameter` decides which
    `tags` follow; `parameters` are those allowed. `other_bodies`: calls without parameter tags count too. `tier`: in a
    `sentinel`, calls of unknown tools count however they end.
    """

    dialect: str
    prefixed: str
    word: str
    call: Pattern
    call_end: Pattern
    wrapper: Pattern
    wrapper_end: Pattern
    first_parameter: Pattern
    tags: Mapping[str, Table]
    parameters: tuple[str, ...]
    other_bodies: bool = True
    tier: Tier = "generic"


def grammar(table: Table, row: str = "invoke", spelling: str = "spelling", of: Table | None = None) -> Grammar:
    """Return the grammar in a family's table; `invoke.toml` describes its keys.

    `of`: the table with the spelling, by default the family's own one, or that of plain tags.
    """
    rules, spelt = table.data[row], (of or table).data.get(spelling, _ANTHROPIC.data["spelling"])
    words = spelt.get("parameters", _PARAMETERS)
    made = table.filled("spelling", spelt | {"any_parameter": "|".join(words)})
    tags = {}
    for word in words:
        tags[word] = table.filled("parameter", spelt | {"parameter": word})
        tags[word].patterns |= made.patterns
    rules = {"prefixed": rules["dialect"], **rules, "parameters": tuple(rules.get("parameters", _PARAMETERS))}
    return Grammar(word=made.data["word"], tags=tags, **made.patterns, **rules)


def read(reader: Reader, position: int, grammar: Grammar) -> Reading:
    """Read the block at an opener: a stray word, a wrapper or an invoke."""
    at = start = position
    if stray := reader.match(_STRAY, position):
        at, start = stray.end(), stray.start("word")
    wrapper = reader.match(grammar.wrapper, at)
    prefixed = wrapper is not None and wrapper["name"].startswith(("antml:", "mm:"))
    at = end = reader.space(wrapper.end()) if wrapper is not None else at
    calls: list[NativeCall] = []
    while opener := reader.match(grammar.call, at):
        read = _read_call(reader, opener, grammar, wrapped=wrapper is not None)
        if read is None:
            break
        call, end = read
        calls.append(call)
        prefixed |= bool(opener["ns"])
        if not call.complete:
            break
        at = reader.space(end)
    if not calls:
        return None
    if reader.char(start) in " \t":
        start = reader.space(start)
    end = reader.past(end, grammar.wrapper_end, _CUT_CLOSER)
    return reader.block(grammar.prefixed if prefixed else grammar.dialect, start, end, calls, grammar.tier)


def _read_call(reader: Reader, opener: Match, grammar: Grammar, *, wrapped: bool) -> tuple[NativeCall, int] | None:
    written = opener["name"].strip()
    tool = reader.tool(written)
    is_proper = opener["tag"] == grammar.word
    if not is_proper and tool is not None:  # at most two wrong letters
        is_proper = regex.fullmatch(f"(?:{grammar.word}){{e<=2}}", opener["tag"]) is not None
    body = _read_inside(reader, opener, tool, grammar, wrapped=wrapped) if is_proper and is_name(written) else None
    if body is None:
        return None
    complete = not body.cut and (body.closed or not body.empty)
    return reader.call(written, body.arguments(tool), complete=complete, native_id=opener["id"]), body.end


def _read_inside(reader: Reader, opener: Match, tool: Tool | None, grammar: Grammar, *, wrapped: bool) -> Body | None:
    known = tool is not None or grammar.tier == "sentinel"
    if opener["empty"]:
        return Body(opener.end(), closed=True) if grammar.other_bodies and (known or wrapped) else None
    at = reader.space(opener.end())
    parameter = reader.match(grammar.first_parameter, at)
    if not (grammar.other_bodies if parameter is None else parameter["tag"] in grammar.parameters):
        return None
    tags = grammar.tags[parameter["tag"] if parameter is not None else grammar.parameters[0]]
    # A call of an unknown tool counts only if it is closed; a stretch that was read in vain is not read again.
    if not known and (reader.next(at, tags.call_end) is None or opener.start() < reader.dead[tags]):
        return None
    body = read_body(reader, opener.end(), tags, tool)
    if not known and not body.closed:
        reader.dead[tags] = body.end
        return None
    if body.empty and not body.cut:
        cut_off = reader.ended(reader.space(body.end))
        if not (known or wrapped) or not (body.closed or ((wrapped or grammar.tier == "sentinel") and cut_off)):
            return None
    return body


_MINICPM_CALLS = grammar(_MINICPM)


def read_minicpm(reader: Reader, position: int) -> Reading:
    reading = read(reader, position, _MINICPM_CALLS)
    # Descriptions of interfaces have such elements too, indented or among others.
    line_start = position == 0 or reader.value(position - 1, position) == "\n"
    if line_start or reading is None or not reading.dialect or reader.declares_any(reading.calls):
        return reading
    return None


_DOTS_INVOKE = grammar(_DOTS)


def read_dots(reader: Reader, position: int) -> Reading:
    wrapper = reader.match(_DOTS.wrapper, position)
    if wrapper is None:
        return None
    inside = reader.after(_DOTS.fence, wrapper.end())
    if found := read_enclosed(reader, inside, _DOTS.wrapper_end, (_DOTS.wrapper,)):
        return reader.block("dots_function_call", position, found.end, found.calls)
    if reading := read(reader, position, _DOTS_INVOKE):
        return reading
    # Only dots writes the tag, so it is a call even if its inside is unreadable, unless a sentence continues after it.
    end = position + len(wrapper[0].rstrip())
    called = reader.char(end) in ("", "\n", "<", "{", "[")
    return reader.block("dots_function_call", position, end) if called else None


_MARKED = grammar(_DSML)
_BLOCK_MARKED = grammar(_DSML, spelling="block_marked")  # the invokes carry no marker
_DSML_OBJECTS = json_blocks.grammar(_DSML)
_PROPER_MARKS = frozenset({"<｜DSML｜", "</｜DSML｜", "<｜GCML｜", "</｜GCML｜"})


def read_dsml(reader: Reader, position: int) -> Reading:
    unmarked = reader.match(_DSML.unmarked, position)
    first = reader.match(_DSML.first, position if unmarked is None else unmarked.end())
    if first is None:
        return None
    reading: Reading = None
    if not first["end"]:
        reading = read(reader, position, _MARKED) or read(reader, position, _BLOCK_MARKED)
        reading = reading or json_blocks.read(reader, position, _DSML_OBJECTS)
    if reading is None and (remains := reader.match(_DSML.remains, position)):
        reading = reader.block(_MARKED.dialect, position, remains.end())
    if reading is None or not reading.dialect:
        return reading
    marks = list(_DSML.marks.finditer(reader.view.text, reading.start, reading.end))
    if "GCML" in marks[0][1]:
        return reading._replace(dialect="gigachat35_gcml")
    # The name of the block tells the generation, or, without a block, the blank before a name.
    odd = len({mark["gap"] for mark in marks}) > 1 or any(mark[1] not in _PROPER_MARKS for mark in marks)
    words = {marks[0]["word"], marks[-1]["word"]}
    block = any(_DSML.block.fullmatch(word) for word in words)
    if "function_calls" in words:
        return reading._replace(dialect="deepseek_v3_2_dsml")
    later = "calls" in words or (not block and marks[0]["gap"] and not odd)
    return reading._replace(dialect="deepseek_v4_1_dsml" if later else "deepseek_v4_dsml")


_GROK_PREFIXED = grammar(_GROK)
_GROK_PLAIN = grammar(_GROK, "plain", "plain_spelling")
_GROK_OBJECTS = json_blocks.grammar(_GROK)


def read_grok(reader: Reader, position: int) -> Reading:
    if card := reader.match(_GROK.card, position):
        end = reader.next(card.end(), _GROK.card_end)
        return reader.block(_GROK_PREFIXED.dialect, position, reader.size if end is None else end.end())
    if reader.match(_GROK_OBJECTS.opener, position):
        return json_blocks.read(reader, position, _GROK_OBJECTS)
    last = reader.match(_GROK.last_closer, position)
    if last is not None and reader.ended(reader.space(last.end())):
        return reader.block(_GROK_PREFIXED.dialect, position, last.end())
    return read(reader, position, _GROK_PREFIXED) or read(reader, position, _GROK_PLAIN)


_MUSE_PREFIXED = grammar(_MUSE)
_MUSE_PLAIN = grammar(_MUSE, spelling="plain_spelling")


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
        reading = reader.block(_MUSE_PREFIXED.dialect, at, opened.end())
    end = reader.after(_MUSE.end, reading.end)
    return reading._replace(start=position, end=end)


_STEP_PREFIXED = grammar(_STEP)
_STEP_PLAIN = grammar(_STEP, of=_ANTHROPIC)  # between its tokens a call may lack the prefix


def read_step(reader: Reader, position: int) -> Reading:
    found: Reading = None
    at = position
    while True:
        start = reader.after(_STEP.before, at)
        prefixed = reader.match(_STEP.prefixed, start) is not None
        if start == at and not prefixed:
            break
        reading = read(reader, start, _STEP_PREFIXED if prefixed else _STEP_PLAIN)
        if reading is None or (found is not None and not reading.dialect):
            break
        found = reading if found is None else reading._replace(calls=found.calls + reading.calls)
        at = reader.space(found.end)
        if not reading.dialect or not reading.calls[-1].complete:
            break
    return found._replace(start=position, end=reader.after(_STEP.after, found.end)) if found is not None else None


_M2 = grammar(_MINIMAX)
_M2_BARE = replace(_M2, wrapper=_MINIMAX.bare_wrapper, tier="generic")
_CALLS = frozenset({"tool_call", "tool_calls"})
_DEEPEST = 32


def read_minimax(reader: Reader, position: int) -> Reading:
    here = reader.match(_MINIMAX.mark, position)
    if here is None:
        wrapper = reader.match(_M2.wrapper, position)
        if wrapper and (found := read_enclosed(reader, wrapper.end(), _MINIMAX.wrapper_end, (_M2.wrapper,))):
            return reader.block("minimax_m2", position, found.end, found.calls)
        if wrapper and (reading := read(reader, position, _M2)):
            return reading
        return read(reader, position, _M2_BARE) if reader.match(_MINIMAX.bare_wrapper, position) else None
    section, closed = Calls(here.end()), False
    while here is not None and not closed:
        section.end = here.end()
        if here["tag"] in _CALLS:
            closed = bool(here["close"])
            found = None if closed else read_calls(reader, reader.space(section.end), _MINIMAX.mark)
            if found is not None:  # objects in place of invokes
                section.calls += found.calls
                section.end = found.end
        elif here["tag"] == "invoke" and not here["close"] and here["name"]:
            tool = reader.tool(here["name"].strip())
            schema = tool.schema if tool is not None else None
            root = _Element("", "invoke")
            end, complete = _read_elements(reader, here.end(), root)
            arguments = declared.unwrap(_object(root, schema, schema), declared.properties_of(schema))
            if not section.add(reader.call(here["name"].strip(), arguments, complete=complete), end):
                break
        here = reader.follow(_MINIMAX.mark, section.end)
    return reader.block("minimax_m3", position, section.end, section.calls)


@dataclass(slots=True)
class _Element:
    """A tag with its content: text, tags, or both."""

    key: str
    tag: str
    text: str = ""
    children: list[_Element] = field(default_factory=list)


def _read_elements(reader: Reader, position: int, root: _Element) -> tuple[int, bool]:
    """Read all tags up to the end of the call; return its end, and False if the text ends in it."""
    stack = [root]
    at = position
    while (token := reader.next(at, _MINIMAX.token)) and (mark := reader.match(_MINIMAX.mark, token.start())):
        tag, open_tags = mark["tag"], [element.tag for element in stack]
        if tag is None or (not mark["close"] and (tag == "invoke" or tag in _CALLS or len(stack) > _DEEPEST)):
            return mark.start(), tag is not None and len(stack) == 1
        stack[-1].text += reader.value(at, mark.start())
        at = mark.end()
        if not mark["close"]:
            stack[-1].children.append(_Element(mark["name"] or tag, tag))
            stack.append(stack[-1].children[-1])
        elif tag in open_tags:  # all tags inside end too
            while stack.pop().tag != tag:
                pass
            if not stack:
                return at, True
        elif tag in _CALLS:
            return mark.start(), True
    if len(stack) == 1 and not reader.value(at, reader.size).strip():
        return reader.size, bool(root.children)  # the text ends between two arguments
    # Values of tags that are not closed are unknown.
    for above in stack[:-1]:
        above.children.pop()
    return reader.size, False


def _value(element: _Element, own: Json, schema: Json) -> Json:
    """Return an element as JSON, typed by its `own` schema. `schema`: the root that references point into."""
    for _ in range(4):
        reference = own.get("$ref") if isinstance(own, dict) else None
        own = declared.dereference(reference, schema) if isinstance(reference, str) else own
    types = declared.types_of(own, schema)
    if not element.children:
        if not element.text.strip() and "string" not in types and types & {"array", "object"}:
            return [] if "array" in types else {}
        return declared.coerce(element.text, own, schema)
    only_items = all(child.key == "item" for child in element.children)
    if "array" in types or (only_items and "object" not in types):
        items = own.get("items") if isinstance(own, dict) else None
        return [_value(child, items, schema) for child in element.children]
    return _object(element, own, schema)


def _object(element: _Element, own: Json, schema: Json) -> dict[str, Json]:
    properties = declared.properties_of(own)
    found: dict[str, Json] = {}
    repeated: set[str] = set()
    for child in element.children:
        value = _value(child, properties.get(child.key), schema)
        before = found.get(child.key)
        if child.key in repeated and isinstance(before, list):
            before.append(value)
        elif child.key in found:
            repeated.add(child.key)
            found[child.key] = [before, value]
        else:
            found[child.key] = value
    if element.text.strip() and element.tag != "invoke":
        found["$text"] = element.text.strip()
    return found
