"""Python calls in lists and lines: between tokens or tags, after a prefix, in a fence, or as the whole message."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wirelint.dialects import json_calls, python_calls, weak
from wirelint.dialects.gemma import read_body
from wirelint.dialects.python_calls import PythonCall, fits
from wirelint.dialects.reader import Match, Pattern, Reader
from wirelint.dialects.tables import table
from wirelint.dialects.values import Calls, Found, NativeCall, Reading, Tier

_OPENING = re.compile(r"\[\s{0,8}")
_CLOSING = re.compile(r"\s{0,8},?\s{0,8}\]")
_BLANKS = re.compile(r"[ \t]{0,8}")


@dataclass(slots=True)
class _List(Calls):
    """A list of calls. `opened`, `closed`: its brackets were there. `whole`: the last call is not cut off."""

    opened: bool = False
    closed: bool = False
    whole: bool = True


def _read_list(reader: Reader, at: int, end: Pattern, *, lone_closer: bool = False) -> _List | None:
    """Read the calls at a position, with or without brackets. `lone_closer`: a bracket may close what none has opened."""
    opening = reader.match(_OPENING, at)
    read = python_calls.read_calls(reader, opening.end() if opening is not None else at, end)
    if not read:
        return None
    found = _listed(reader, read)
    found.opened = opening is not None
    closing = reader.match(_CLOSING, found.end) if found.opened or lone_closer else None
    found.closed = closing is not None
    found.end = closing.end() if closing is not None else found.end
    return found


def _listed(reader: Reader, read: list[PythonCall]) -> _List:
    calls = [call.native(reader) for call in read]
    return _List(read[-1].end, calls, any(call.malformed for call in read), whole=read[-1].whole)


# -- lfm ---------------------------------------------------------------------------------------------------------------

_LFM = table(__name__, "lfm")


def read_lfm(reader: Reader, position: int) -> Reading:
    start = reader.match(_LFM.start, position)
    if start is None:
        return None
    at = reader.space(start.end())
    found: Calls | None
    if reader.match(_LFM.json, at):
        objects = json_calls.read_calls(reader, at, _LFM.end, (_LFM.start,))
        if objects is not None:
            objects.malformed = not (objects.array and objects.canonical and objects.values == 1)
        found = objects
    else:
        listed = _read_list(reader, at, _LFM.end, lone_closer=True)
        if listed is not None:
            listed.malformed |= not (listed.opened and listed.closed)
        found = listed
    if found is None:
        return Found("lfm2", position, start.end(), (), "sentinel", malformed=True)
    token = reader.match(_LFM.end, reader.space(found.end))
    end = token.end() if token is not None else found.end
    malformed = found.malformed or token is None or "||" in start[0] + token[0]
    return reader.block("lfm2", position, end, found.calls, "sentinel", malformed)


# -- olmo --------------------------------------------------------------------------------------------------------------

_OLMO = table(__name__, "olmo")


def read_olmo(reader: Reader, position: int) -> Reading:
    start = reader.match(_OLMO.start, position)
    if start is None or position < reader.dead.get("olmo3", 0):
        return None
    found = _read_list(reader, reader.space(start.end()), _OLMO.end)
    if found is None:
        return None
    tag = reader.match(_OLMO.end, reader.space(found.end))
    end = tag.end() if tag is not None else found.end
    # A tag that is not closed is an aside in prose, unless a declared tool is called after it.
    if tag is None and not reader.declares_any(found.calls):
        reader.dead["olmo3"] = end
        return None
    canonical = not found.opened and tag is not None and " " not in start[0] + tag[0]
    return reader.block("olmo3", position, end, found.calls, "generic", not canonical or found.malformed)


# -- pythonic ----------------------------------------------------------------------------------------------------------

_PYTHONIC = table(__name__, "pythonic")


def read_pythonic(reader: Reader, position: int) -> Reading:
    if start := reader.match(_PYTHONIC.start, position):
        return _read_wrapped(reader, position, start.end())
    if not reader.tools or not reader.begins(position) or position < reader.dead.get("pythonic_list", 0):
        return None
    at = reader.space(position)
    opening = reader.match(weak.compiled(reader, _PYTHONIC.named["head"]), at)
    if opening is None:
        return None
    bracket = opening["bracket"]
    found = _listed(reader, python_calls.read_calls(reader, at + len(bracket or "")))
    reader.dead["pythonic_list"] = found.end
    closing = reader.match(_CLOSING, found.end) if bracket and found.whole else None
    end = closing.end() if closing is not None else found.end
    if not all(fits(reader, call) for call in found.calls) or not reader.concludes(end):
        return None
    if not all(call.complete for call in (found.calls if found.whole else found.calls[:-1])):
        return None
    if not (found.whole or bracket or found.calls[-1].arguments):
        return None
    malformed = closing is None or found.malformed
    return Found("pythonic_list", position, end, tuple(found.calls), "weak", malformed)


def _read_wrapped(reader: Reader, position: int, start: int) -> Reading:
    """Read calls between the tokens, of any tool; other code is reported without a call."""
    found = _read_list(reader, reader.space(start), _PYTHONIC.end)
    if found is None:
        return Found("pythonic_list", position, start, (), "sentinel", malformed=True)
    token = reader.match(_PYTHONIC.end, reader.space(found.end))
    end = token.end() if token is not None else found.end
    malformed = not found.closed or token is None or found.malformed
    return reader.block("pythonic_list", position, end, found.calls, "sentinel", malformed)


# -- raven -------------------------------------------------------------------------------------------------------------

_RAVEN = table(__name__, "raven")


def read_raven(reader: Reader, position: int) -> Reading:
    if prefix := reader.match(_RAVEN.function, position):
        return _read_gorilla(reader, prefix)
    prefix = reader.match(_RAVEN.call, position)
    if prefix is None or position < reader.dead.get("nexus_raven", 0):
        return None
    read = python_calls.read_calls(reader, prefix.end(), _RAVEN.call_end)
    if not read:
        return None
    found = _listed(reader, read)
    token = reader.match(_RAVEN.call_end, found.end)
    end = token.end() if token is not None else found.end
    reader.dead["nexus_raven"] = end
    if token is None:
        alone = reader.char(reader.after(_BLANKS, end)) in ("", "\n", "\r")
        if not (alone and all(fits(reader, call) for call in found.calls)):
            return None
    tier: Tier = "generic" if token is not None else "weak"
    return reader.block("nexus_raven", position, end, found.calls, tier, token is None or found.malformed)


def _read_gorilla(reader: Reader, prefix: Match) -> Reading:
    position = prefix.start()
    if position < reader.dead.get("gorilla_openfunctions", 0):
        return None
    read = python_calls.read_calls(reader, prefix.end(), _RAVEN.function)
    if not read:
        return None
    found = _listed(reader, read)
    reader.dead["gorilla_openfunctions"] = found.end
    if not found.whole and not reader.declares_any(found.calls):
        return None
    malformed = "\n" in prefix[0] or found.malformed
    return reader.block("gorilla_openfunctions", position, found.end, found.calls, "generic", malformed)


# -- gemma_code --------------------------------------------------------------------------------------------------------

_CODE = table(__name__, "gemma_code")


@dataclass(slots=True)
class _Lines(Calls):
    """The calls of some lines. `api`: the namespace is named."""

    api: bool = False


def read_gemma_code(reader: Reader, position: int) -> Reading:
    if fence := reader.match(_CODE.fence, position):
        return _read_fence(reader, fence)
    at = reader.after(_CODE.control, reader.after(_BLANKS, position))
    if notation := reader.match(_CODE.notation, at):
        return _read_notation(reader, position, notation)
    word = reader.match(_CODE.word, position)
    start = word.end() if word is not None else at
    return _read_bare(reader, position, start) if reader.match(_CODE.namespace, start) else None


def _read_fence(reader: Reader, fence: Match) -> Reading:
    if fence.start() < reader.dead.get("gemma_tool_code", 0):
        return None
    at = reader.space(fence.end())
    opening = reader.match(_OPENING, at)
    lines = _read_lines(reader, opening.end() if opening is not None else at)
    if not lines.calls:
        return None
    if opening is not None:
        lines.end = reader.after(_CLOSING, lines.end)
    closer = reader.match(_CODE.fence_end, lines.end)
    reader.dead["gemma_tool_code"] = lines.end
    if closer is None and not reader.declares_any(lines.calls):
        return None
    end = closer.end() if closer is not None else lines.end
    dialect = "gemini_default_api" if lines.api else "gemma_tool_code"
    malformed = lines.malformed or closer is None or opening is not None
    return reader.block(dialect, fence.start(), end, lines.calls, "generic", malformed)


def _read_bare(reader: Reader, position: int, at: int) -> Reading:
    """Read lines without a fence: of declared tools, in the namespace, and with nothing else on the last line."""
    if position < reader.dead.get("gemini_default_api", 0):
        return None
    lines = _read_lines(reader, at)
    if not lines.calls:
        return None
    reader.dead["gemini_default_api"] = lines.end
    ends_line = reader.char(reader.after(_BLANKS, lines.end)) in ("", "\n", "\r", "`")
    if not (ends_line and all(call.name in reader.tools for call in lines.calls)):
        return None
    return Found("gemini_default_api", position, lines.end, tuple(lines.calls), "generic", malformed=True)


def _read_lines(reader: Reader, position: int) -> _Lines:
    lines = _Lines(position)
    at = position
    while True:
        while aside := reader.match(_CODE.aside, at):
            at = reader.space(aside.end())
        if lines.calls and (echo := reader.match(_CODE.echo, at)):
            lines.end, lines.malformed = echo.end(), True
            at = reader.space(echo.end())
            continue
        if not _read_line(reader, at, lines):
            return lines
        at = reader.space(reader.after(_CODE.separator, lines.end))


def _read_line(reader: Reader, at: int, lines: _Lines) -> bool:
    """Read one call; False if no other can follow."""
    lead = reader.match(_CODE.lead, at)
    call = python_calls.read_call(reader, lead.end()) if lead is not None else None
    if lead is None or call is None or call.name == "print":
        return False
    lines.calls.append(call.native(reader, call.name.removeprefix("default_api.")))
    lines.api |= lead["api"] is not None
    lines.end = call.end
    lines.malformed |= (
        call.malformed or lead["target"] is not None or (lead["print"] is None) == (lead["api"] is not None)
    )
    if call.closed and lead["print"] is not None:
        closing = reader.match(_CODE.lead_end, call.end)
        lines.malformed |= closing is None
        lines.end = closing.end() if closing is not None else call.end
    return call.closed


def _read_notation(reader: Reader, position: int, notation: Match) -> Reading:
    """Read `call:default_api:lookup{…}`; a `declaration:` repeats the tool instead of calling it."""
    tool = reader.tool(notation["name"])
    if tool is None or position < reader.dead.get(_CODE.notation, 0):
        return None
    body = read_body(reader, notation.end(), tool, (_CODE.notation,))
    reader.dead[_CODE.notation] = body.end
    arguments = body.arguments if notation["kind"] == "call" else None
    call: NativeCall = reader.call(notation["name"], arguments, complete=body.complete and arguments is not None)
    end = reader.after(_CODE.control, body.end)
    return Found("gemini_default_api", position, end, (call,), "generic", malformed=True)
