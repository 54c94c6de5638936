"""Mistral's `[TOOL_CALLS]`, of three generations of its tokenizer.

Lineage: up to v7 (7B v0.3, Mixtral, Nemo, Large 2407) an array follows the marker; v11 (Small 3.1, Magistral) has one
marker per call, with an id; v13 (Devstral, Ministral 3, Medium 3, Large 3) drops the id.

    [TOOL_CALLS] [{"name": "lookup", "arguments": {"city": "Graz"}, "id": "q7Zr2LmX9"}]
    [TOOL_CALLS]lookup[CALL_ID]q7Zr2LmX9[ARGS]{"city": "Graz"}
    [TOOL_CALLS]lookup[ARGS]{"city": "Graz"}

Types come from the JSON. An id has nine letters or digits, and is optional in the array. Nothing closes a call: it ends
with its JSON, and the next marker begins another. In the wild: `[ARGS]` lost, blanks around the name, the marker's bracket
or the whole marker lost, all special tokens dropped (`lookup{…}` is left), the marker repeated, one object for the array.
Results that a model invents after `[TOOL_RESULTS]` are no call. People write the marker too, to describe it, so it counts
with a call only, or where the text ends with it.
"""

from __future__ import annotations

import re

from wirelint.dialects import marked_json, weak
from wirelint.dialects.arguments import read_arguments
from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.marked_json import SPECIAL_END, Grammar
from wirelint.dialects.openers import NAME, SPACES, TEXT_START, Opener, Run, cut_pattern, either, full_pattern, maybe
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall

_WITH_ID, _WITHOUT_ID = "mistral_v11", "mistral_v13"
_U = either("_", " ", "\\_")
_MARKER: Opener = ("[TOOL", _U, "CALL", maybe("S"), Run(r"\s", 0, 1), either("]", (Run(r"A-Za-z\s[{", 1, 1),)))
_INNER: Opener = ("[", either("ARGS", ("CALL", _U, "ID")), "]")
_BARE: Opener = (TEXT_START, SPACES, NAME, Run(" ", 0, 1), "{")
_CUT: Opener = (Run("A-Za-z_$", 1, 1), Run(r"\w.:/-", 0, 127), maybe("[CALL_ID]", Run(r"\w-", 0, 64)), "[ARGS]")

_START = re.compile(r"\[TOOL(?:_| |\\_)CALLS?(?P<closed>\s?\])?")
_MORE = re.compile(r"(?:\s{0,4}\[TOOL(?:_| |\\_)CALLS?\s?\]){1,4}")
_ARRAY = re.compile(r"\s*(?:`{3,}[a-zA-Z]{0,8}\s*)?(?:\[\s*[{\]]|\{)")
_HEADER = re.compile(
    r"\s*(?P<name>[A-Za-z_$][\w.:/-]{0,127})\s{0,4}"
    r"(?:\[CALL(?:_| |\\_)ID\]\s{0,4}(?P<id>[\w-]{0,64})\s{0,4})?(?P<args>\[ARGS\]\s*|(?=\{))"
)
_NAME = re.compile(r"[A-Za-z_$][\w.:/-]{0,127}")
_CUT_HEADER = re.compile(cut_pattern((_CUT,)))
_ID = re.compile(r"[A-Za-z0-9]{9}")
_NAME_BEFORE = re.compile(
    r"(?m:^)[ \t]*(?P<name>[A-Za-z_$][\w.:/-]{0,127})(?:\[CALL(?:_| |\\_)ID\](?P<id>[\w-]{1,64}))?\Z"
)
_BODY = re.compile(r"\[(?:ARGS\]|CALL(?:_| |\\_)ID\](?P<id>[\w-]{1,64})\[ARGS\])\s*(?=\{)")
_HEADER_LIMIT = 240
_INNER_TOKEN = re.compile(full_pattern((_INNER,)))
_STOP = re.compile(rf"\[/?(?:TOOL_CALLS|TOOL_RESULTS|INST)\b|{SPECIAL_END.pattern}")

_SLASHED = re.compile(r"\s*\[/TOOL(?:_| |\\_)CALLS?\]")
_PLAUSIBLE = re.compile(r"\{\s*(?:[\"'}]|\Z)")
_ELLIPSIS = re.compile(r"[{\[:,]\s{0,4}(?:\.\.\.|…)")
_BARE_NAME = r"\s*(?P<name>NAMES) ?(?=\{)"

_GRAMMAR = Grammar(dialect="mistral_array", opener=_START, canonical=frozenset({"[TOOL_CALLS]"}), stop=_STOP)


def _read(reader: Reader, position: int) -> Reading:
    start = reader.match(_START, position)
    if start is None:
        return _read_stripped(reader, position) or _read_bare(reader, position)
    reading = _read_marked(reader, position, start)
    if isinstance(reading, Found) and reading.calls and (slashed := reader.match(_SLASHED, reading.end)):
        return reading._replace(end=slashed.end(), malformed=True)
    return reading


def _read_marked(reader: Reader, position: int, start: Match) -> Reading:
    end, malformed = start.end(), reader.value(start.start(), start.end()) != "[TOOL_CALLS]"
    if start["closed"] and (more := reader.match(_MORE, end)):
        end, malformed = more.end(), True
    if reader.match(_ARRAY, end):
        return marked_json.read_body(reader, position, end, _GRAMMAR, malformed=malformed)
    if header := reader.match(_HEADER, end):
        return _read_named(reader, position, header, malformed=malformed)
    return _read_cut(reader, position, end) if start["closed"] else None


def _read_named(reader: Reader, start: int, header: Match, *, malformed: bool) -> Reading:
    """A name, perhaps an id, and the arguments."""
    written = header["id"]
    arguments = read_arguments(reader, header.end(), _STOP)
    # Undoing escapes breaks arguments that were encoded twice; the marker has nothing to escape.
    if not arguments.complete and (reader.view.decoded or _described(reader, header, arguments.end)):
        return None
    call = reader.call(header["name"], arguments.value, complete=arguments.complete, native_id=written or None)
    if reader.stand_ins([call]):
        return Skip(arguments.end)
    malformed |= not arguments.canonical or (written is not None and _ID.fullmatch(written) is None)
    dialect = _WITH_ID if written is not None else _WITHOUT_ID
    return Found(dialect, start, arguments.end, (call,), "sentinel", malformed)


def _described(reader: Reader, header: Match, end: int) -> bool:
    """Whether arguments that cannot be read stand for arguments: `{...}`, `{json}`."""
    if _ELLIPSIS.search(reader.view.text, header.end(), end):
        return True
    return reader.tool(header["name"]) is None and not (
        reader.ended(end) and (reader.ended(header.end()) or reader.match(_PLAUSIBLE, header.end()))
    )


def _read_cut(reader: Reader, start: int, position: int) -> Reading:
    """A marker that the text ends with, or ends soon after; a declared name after it without what makes it a call."""
    at = reader.space(position)
    if reader.ended(at):
        return Found(_GRAMMAR.dialect, start, position, (), "sentinel", malformed=True)
    name = reader.match(_NAME, at)
    cut = reader.over and name is not None and reader.match(_CUT_HEADER, at) is not None
    if name is None or not (cut or at == position):
        return None
    if reader.open:
        return None  # the name may go on
    calls: tuple[NativeCall, ...] = ()
    if reader.tool(name[0]) is not None:
        calls = (reader.call(name[0], None, complete=False),)
    if not calls and not (cut and at == position):
        return None
    return Found(_WITHOUT_ID, start, reader.size if cut else name.end(), calls, "sentinel", malformed=True)


def _read_stripped(reader: Reader, position: int) -> Reading:
    """`lookup[ARGS]{…}` at the beginning of a line, of a declared tool: the marker was lost."""
    if reader.match(_INNER_TOKEN, position) is None:
        return None
    floor = max(reader.floor - 1, position - _HEADER_LIMIT, 0)
    before = _NAME_BEFORE.search(reader.view.text[floor:position])
    if (
        before is None
        or floor + before.start() < reader.floor
        or (floor and not before.start())
        or reader.tool(before["name"]) is None
    ):
        return None
    body = reader.match(_BODY, position)
    if body is None:
        # The block begins at the name, also while it is still open what follows.
        begun = (reader.call(before["name"], None, complete=False),)
        start = floor + before.start("name")
        return Found(_WITHOUT_ID, start, position, begun, "generic", malformed=True) if reader.open else None
    arguments = read_arguments(reader, body.end(), _STOP)
    native_id = body["id"] or before["id"]
    call = reader.call(before["name"], arguments.value, complete=arguments.complete, native_id=native_id)
    dialect = _WITH_ID if native_id is not None else _WITHOUT_ID
    return Found(dialect, floor + before.start("name"), arguments.end, (call,), "generic", malformed=True)


def _read_bare(reader: Reader, position: int) -> Reading:
    """`lookup{…}` and nothing else: a server has dropped the special tokens."""
    if not reader.tools or not reader.begins(position):
        return None
    pattern = weak.compiled(reader, _BARE_NAME)
    calls: list[NativeCall] = []
    end = position
    while name := reader.match(pattern, end):
        decoded = reader.json(name.end())
        if decoded.failed or not weak.fits(reader.tool(name["name"]), decoded.value):
            return None
        calls.append(reader.call(name["name"], decoded.value, complete=True))
        end = decoded.end
    if not calls or not weak.is_whole(reader, position, end):
        return None
    return Found(_WITHOUT_ID, position, end, tuple(calls), "weak", malformed=True)


_SPEAKERS = frozenset({"mistral", "magistral"})

FAMILY = Family(
    "mistral",
    rank=1,
    openers=(_MARKER, _INNER, _BARE),
    read=_read,
    speakers={_GRAMMAR.dialect: _SPEAKERS, _WITH_ID: _SPEAKERS, _WITHOUT_ID: _SPEAKERS},
    after_name=(_INNER,),
)
