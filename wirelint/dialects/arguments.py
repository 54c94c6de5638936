"""The JSON object of one call whose name stands outside of it."""

from __future__ import annotations

from typing import NamedTuple

from wirelint.dialects import jsontext
from wirelint.dialects.reader import Pattern, Reader
from wirelint.model import Json


class Arguments(NamedTuple):
    """`value` is None when it cannot be read. `canonical`: an object, and valid JSON."""

    value: Json
    end: int
    complete: bool
    canonical: bool


def read_arguments(reader: Reader, position: int, stop: Pattern) -> Arguments:
    """The arguments at a position; `stop` is all that may come after them in the notation, and ends damaged ones.

    Nothing at all before a stop are no arguments. At the end of the text an object must be whole.
    """
    if reader.char(position) in ("{", '"'):
        decoded = reader.json(position)
        if not decoded.failed:
            value = _unquoted(decoded.value)
            canonical = decoded.healthy and isinstance(decoded.value, dict)
            return Arguments(value, decoded.end, complete=isinstance(value, dict), canonical=canonical)
    stopped = reader.next(stop, position)
    if stopped is not None and stopped.start() == position:
        return Arguments({}, position, complete=True, canonical=False)
    end = stopped.start() if stopped is not None else reader.size
    repaired = reader.repair(position, end)
    if repaired is None or (stopped is None and repaired.missing):
        return Arguments(None, end, complete=False, canonical=False)
    return Arguments(repaired.value, repaired.end, complete=True, canonical=False)


def _unquoted(value: Json) -> Json:
    """Arguments that were encoded twice."""
    if not isinstance(value, str):
        return value
    try:
        return jsontext.loads(value)
    except ValueError:
        return None
