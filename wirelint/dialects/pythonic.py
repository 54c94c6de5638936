"""A list of Python calls as the whole message.

Lineage: the prompt format of the Berkeley function-calling leaderboard → ToolACE, Watt-tool → Llama 3.2 and Llama 4, which
may put its own tokens around the list. Gemma 3 is served with templates that ask for the same.

    [lookup(city='Graz', limit=3), ping()]
    <|python_start|>[lookup(city='Graz')]<|python_end|>

Types come from the literals. No ids. Without the tokens nothing tells such a list from code that was asked for, except that
it is all that was said and every call is of a declared tool with its own parameters. The brackets are sometimes missing.
"""

from __future__ import annotations

import re

from wirelint.dialects.family import Family, Found, Reading, Skip
from wirelint.dialects.openers import NAME, SPACES, TEXT_START, Run, either, maybe
from wirelint.dialects.pythoncalls import PREFIXES, around_names, fits, read_calls
from wirelint.dialects.reader import Reader

_DIALECT = "pythonic_list"
_START = re.compile(r"<\|python_start\|>")
_END = re.compile(r"<\|python_end\|>")
_OPENING = re.compile(r"\[\s{0,8}")
_CLOSING = re.compile(r"\s{0,8},?\s{0,8}\]")


def _read(reader: Reader, position: int) -> Reading:
    if start := reader.match(_START, position):
        return _read_wrapped(reader, position, start.end())
    if not reader.tools or not reader.begins(position) or position < reader.dead.get(_DIALECT, 0):
        return None
    return _read_message(reader, position)


def _read_message(reader: Reader, position: int) -> Reading:
    at = reader.space(position)
    head = around_names(tuple(sorted(reader.tools)), rf"(?P<bracket>\[\s{{0,8}})?{PREFIXES}", r"\s{0,3}\(")
    opening = reader.match(head, at)
    if opening is None:
        return None
    bracket = opening["bracket"]
    read = read_calls(reader, at + len(bracket or ""))
    calls = tuple(call.native(reader) for call in read)
    end = read[-1].end
    reader.dead[_DIALECT] = end
    cut = not read[-1].whole
    closing = reader.match(_CLOSING, end) if bracket and not cut else None
    end = closing.end() if closing is not None else end
    if not all(fits(reader, call) for call in calls) or not reader.concludes(end):
        return None
    if not all(call.complete for call in (calls[:-1] if cut else calls)) or (
        cut and not (bracket or calls[-1].arguments)
    ):
        return None
    malformed = closing is None or any(call.malformed for call in read)
    return Found(_DIALECT, position, end, calls, "weak", malformed)


def _read_wrapped(reader: Reader, position: int, start: int) -> Reading:
    """Between the tokens anything is a call that reads as one; the rest is code, of which nothing can be made."""
    at = reader.space(start)
    opening = reader.match(_OPENING, at)
    read = read_calls(reader, opening.end() if opening is not None else at, _END)
    if not read:
        return Found(_DIALECT, position, start, (), "sentinel", malformed=True)
    calls = tuple(call.native(reader) for call in read)
    end = read[-1].end
    closing = reader.match(_CLOSING, end) if opening is not None else None
    end = closing.end() if closing is not None else end
    token = reader.match(_END, reader.space(end))
    end = token.end() if token is not None else end
    if reader.stand_ins(calls):
        return Skip(end)
    malformed = closing is None or token is None or any(call.malformed for call in read)
    return Found(_DIALECT, position, end, calls, "sentinel", malformed)


_NAMESPACE = either("functions.", "function.", "tools.", "tool.", "default_api.", ())

FAMILY = Family(
    "pythonic",
    rank=4,
    openers=(
        ("<|python_start|>",),
        (TEXT_START, SPACES, maybe("[", SPACES), _NAMESPACE, NAME, Run(r"\s", 0, 3), "("),
    ),
    read=_read,
    speakers={_DIALECT: frozenset({"llama", "gemma", "toolace", "watt"})},
)
