"""Mistral's `[TOOL_CALLS]` and what is left of it when tokens are lost."""

from __future__ import annotations

from wirelint.dialects import json_calls, marked_arrays, weak
from wirelint.dialects.json_calls import read_arguments
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Found, NativeCall, Reading

_MISTRAL = table(__name__, "mistral")


_ARRAY = marked_arrays.grammar(_MISTRAL)
_HEADER_LIMIT = 240


def read_mistral(reader: Reader, position: int) -> Reading:
    start = reader.match(_MISTRAL.start, position)
    if start is None:
        return _read_stripped(reader, position) or _read_bare(reader, position)
    reading = _read_marked(reader, position, start)
    if isinstance(reading, Found) and reading.calls and (slashed := reader.match(_MISTRAL.slashed, reading.end)):
        return reading._replace(end=slashed.end(), malformed=True)
    return reading


def _read_marked(reader: Reader, position: int, start: Match) -> Reading:
    end, malformed = start.end(), reader.value(start.start(), start.end()) != "[TOOL_CALLS]"
    if start["closed"] and (more := reader.match(_MISTRAL.more, end)):
        end, malformed = more.end(), True
    if reader.match(_MISTRAL.array_start, end):
        return marked_arrays.read_body(reader, position, end, _ARRAY, malformed=malformed)
    if header := reader.match(_MISTRAL.header, end):
        return _read_named(reader, position, header, malformed=malformed)
    return _read_cut(reader, position, end) if start["closed"] else None


def _read_named(reader: Reader, start: int, header: Match, *, malformed: bool) -> Reading:
    """Read a name, perhaps an id, and the arguments."""
    written = header["id"]
    arguments = read_arguments(reader, header.end(), _MISTRAL.stop)
    # Undoing escapes breaks arguments that were encoded twice; the marker has nothing to escape.
    if not arguments.complete and (reader.view.decoded or _is_description(reader, header, arguments.end)):
        return None
    call = reader.call(header["name"], arguments.value, complete=arguments.complete, native_id=written or None)
    malformed |= not arguments.canonical or (written is not None and _MISTRAL.id.fullmatch(written) is None)
    dialect = "mistral_v11" if written is not None else "mistral_v13"
    return reader.block(dialect, start, arguments.end, (call,), "sentinel", malformed)


def _is_description(reader: Reader, header: Match, end: int) -> bool:
    """Return True if unreadable arguments only describe arguments: `{...}`, `{json}`."""
    if json_calls.ELLIPSIS.search(reader.view.text, header.end(), end):
        return True
    return reader.tool(header["name"]) is None and not (
        reader.ended(end) and (reader.ended(header.end()) or reader.match(_MISTRAL.plausible, header.end()))
    )


def _read_cut(reader: Reader, start: int, position: int) -> Reading:
    """Read a marker at the end of the text or near it, maybe with a declared name after it."""
    at = reader.space(position)
    if reader.ended(at):
        return reader.block("mistral_array", start, position, (), "sentinel", malformed=True)
    name = reader.match(_MISTRAL.name, at)
    cut = reader.over and name is not None and reader.match(_MISTRAL.cut_header, at) is not None
    if name is None or not (cut or at == position):
        return None
    if reader.open:
        return None  # the name may go on
    calls: tuple[NativeCall, ...] = ()
    if reader.tool(name[0]) is not None:
        calls = (reader.call(name[0], None, complete=False),)
    if not calls and not (cut and at == position):
        return None
    return reader.block("mistral_v13", start, reader.size if cut else name.end(), calls, "sentinel", malformed=True)


def _read_stripped(reader: Reader, position: int) -> Reading:
    """Read `lookup[ARGS]{…}` at a line start, of a declared tool: the marker was lost."""
    if reader.match(_MISTRAL.inner_token, position) is None:
        return None
    floor = max(reader.floor - 1, position - _HEADER_LIMIT, 0)
    before = _MISTRAL.name_before.search(reader.view.text[floor:position])
    if (
        before is None
        or floor + before.start() < reader.floor
        or (floor and not before.start())
        or reader.tool(before["name"]) is None
    ):
        return None
    body = reader.match(_MISTRAL.body, position)
    if body is None:
        # The block begins at the name, also while the rest is still open.
        begun = (reader.call(before["name"], None, complete=False),)
        start = floor + before.start("name")
        return reader.block("mistral_v13", start, position, begun, "generic", malformed=True) if reader.open else None
    arguments = read_arguments(reader, body.end(), _MISTRAL.stop)
    native_id = body["id"] or before["id"]
    call = reader.call(before["name"], arguments.value, complete=arguments.complete, native_id=native_id)
    dialect = "mistral_v11" if native_id is not None else "mistral_v13"
    return reader.block(dialect, floor + before.start("name"), arguments.end, (call,), "generic", malformed=True)


def _read_bare(reader: Reader, position: int) -> Reading:
    """Read `lookup{…}` as the whole message: a server has dropped the special tokens."""
    if not reader.tools or not reader.begins(position):
        return None
    pattern = weak.compiled(reader, _MISTRAL.named["bare"])
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
    return reader.block("mistral_v13", position, end, calls, "weak", malformed=True)
