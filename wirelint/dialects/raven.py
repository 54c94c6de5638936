"""NexusRaven's and Gorilla's Python calls, each behind a prefix of its own.

Lineage: research models of function calling that answer with a line of Python: NexusRaven v2 (`Call:`), Gorilla
OpenFunctions v2.

    Call: lookup(city='Graz')<bot_end>
    <<function>>lookup(city='Graz')

Types come from the literals. No ids; several calls are joined by semicolons, or have a prefix each; Gorilla's prefix may
be a line of its own. Raven nests calls and
explains itself in a `Thought:` after them; a nested call cannot be read. `Call:` without its end token counts for a
declared tool with parameters of its own, when nothing else is on the line.
"""

from __future__ import annotations

import re

from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import BLANKS, LINE_START, Run
from wirelint.dialects.pythoncalls import fits, read_calls
from wirelint.dialects.reader import Match, Reader
from wirelint.dialects.values import NativeCall

_RAVEN, _GORILLA = "nexus_raven", "gorilla_openfunctions"
_CALL = re.compile(r"[ \t]{0,8}Call:[ \t]{0,2}(?=[A-Za-z_])")
_CALL_END = re.compile(r"\s{0,4}<bot_end>")
_FUNCTION = re.compile(r"<<function>>(?:[ \t]{0,2}|\s{1,4})(?=[A-Za-z_])")
_BLANKS = re.compile(r"[ \t]{0,8}")


def _read(reader: Reader, position: int) -> Reading:
    if prefix := reader.match(_FUNCTION, position):
        return _read_gorilla(reader, prefix)
    if prefix := reader.match(_CALL, position):
        return _read_raven(reader, position, prefix.end())
    return None


def _read_gorilla(reader: Reader, prefix: Match) -> Reading:
    position = prefix.start()
    if position < reader.dead.get(_GORILLA, 0):
        return None
    read = read_calls(reader, prefix.end(), _FUNCTION)
    if not read:
        return None
    calls = tuple(call.native(reader) for call in read)
    end = read[-1].end
    reader.dead[_GORILLA] = end
    if not read[-1].whole and not _declared(reader, calls):
        return None
    if reader.stand_ins(calls):
        return Skip(end)
    malformed = "\n" in prefix[0] or any(call.malformed for call in read)
    return Found(_GORILLA, position, end, calls, "generic", malformed)


def _read_raven(reader: Reader, position: int, at: int) -> Reading:
    if position < reader.dead.get(_RAVEN, 0):
        return None
    read = read_calls(reader, at, _CALL_END)
    if not read:
        return None
    calls = tuple(call.native(reader) for call in read)
    token = reader.match(_CALL_END, read[-1].end)
    end = token.end() if token is not None else read[-1].end
    reader.dead[_RAVEN] = end
    if token is None:
        blanks = reader.match(_BLANKS, end)
        alone = reader.char(blanks.end() if blanks is not None else end) in ("", "\n", "\r")
        if not (alone and all(fits(reader, call) for call in calls)):
            return None
    if reader.stand_ins(calls):
        return Skip(end)
    malformed = token is None or any(call.malformed for call in read)
    return Found(_RAVEN, position, end, calls, "generic" if token is not None else "weak", malformed)


def _declared(reader: Reader, calls: tuple[NativeCall, ...]) -> bool:
    return any(call.name in reader.tools for call in calls)


FAMILY = Family(
    "raven",
    rank=2,
    openers=(
        ("<<function>>",),
        (LINE_START, BLANKS, "Call:", Run(r" \t", 0, 2), Run("A-Za-z0-9_.-", 0, 64), "("),
    ),
    read=_read,
    speakers={_RAVEN: frozenset({"raven"}), _GORILLA: frozenset({"gorilla"})},
)
