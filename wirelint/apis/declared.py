"""Tools that a request declares, read once: an agent sends the same ones with each of its requests."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from wirelint.model import Json, Tool

_MOST = 8
_LONGEST = 1 << 18
"""Bytes of declarations that are remembered."""


class Declared:
    """Reads declarations by `read`, unless the very same ones were read before: the same names in the same order, and no
    number for another that is equal to it. The schemas of the tools are then those objects that were read first."""

    def __init__(self, read: Callable[[Json], tuple[Tool, ...]]) -> None:
        self._read = read
        self._known: dict[bytes, tuple[Tool, ...]] = {}

    def __call__(self, declared: Json) -> tuple[Tool, ...]:
        if not declared:
            return ()
        try:
            written = orjson.dumps(declared)
        except orjson.JSONEncodeError:  # not from JSON, or what JSON cannot say
            return self._read(declared)
        known = self._known.get(written)
        if known is None:
            known = self._read(declared)
            if len(written) <= _LONGEST:
                if len(self._known) >= _MOST:
                    self._known.clear()
                self._known[written] = known
        return known
