"""Tools that a request declares, read once: an agent sends the same ones with each of its requests.

Theory of operation. What is declared is known again by its bytes. Tools that have come twice are looked for in the bodies
to come, as they were written: where they stand there, something short is decoded in their place. What the body then says
of its tools is that very thing, or else they stood elsewhere in it and the body is decoded as any other.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable

import orjson

from wirelint.apis.reading import document_of
from wirelint.model import Json, Tool

_MOST = 8
_SHORTEST, _LONGEST = 1 << 9, 1 << 18
"""Bytes of declarations that are remembered. Below, nothing is gained by it; above, it takes much memory."""

_NAME = "tools"
_STAND_IN = secrets.token_hex(16)
"""What is decoded in the place of tools that are known. Nobody can write it on purpose."""
_WRITTEN = f'"{_NAME}":"{_STAND_IN}"'.encode()
_TRIES = 4
"""Searches in vain after which tools are looked for where they stood last, and nowhere else."""


class _Known:
    """Tools that have come twice. `written` is the member of a body that declares them, `value` what it says."""

    __slots__ = ("_ahead", "_behind", "_tries", "value", "written")

    def __init__(self, written: bytes, value: Json) -> None:
        self.written, self.value = written, value
        self._ahead = self._behind = -1
        self._tries = _TRIES

    def place(self, body: bytes) -> int:
        """Where the member stands in a body; -1 where it is not found.

        Mostly it is as far from the beginning as in the body before, or from the end. A search is made some times in vain.
        """
        for at in (self._ahead, len(body) - self._behind):
            if self._behind >= 0 <= at and body.startswith(self.written, at):
                return at
        if not self._tries:
            return -1
        at = body.find(self.written)
        if at < 0:
            self._tries -= 1
        else:
            self._ahead, self._behind, self._tries = at, len(body) - at, _TRIES
        return at


class Repeated:
    """Decodes the bodies of requests. Tools of one that are written as some that are known are then the same objects."""

    def __init__(self) -> None:
        self._known: tuple[_Known, ...] = ()

    def learn(self, compact: bytes) -> None:
        """Looks for these tools from now on, in the two ways in which JSON is written for sending."""
        way = b'"%b":%b' % (_NAME.encode(), compact)
        if not _SHORTEST <= len(compact) <= _LONGEST or any(one.written == way for one in self._known):
            return
        value: Json = orjson.loads(compact)
        spaced = b'"%b": %b' % (_NAME.encode(), json.dumps(value).encode())
        self._known = (_Known(way, value), _Known(spaced, value), *self._known)[: 2 * _MOST]

    def document_of(self, body: bytes) -> Json:
        """What a body says as JSON; None for one that says nothing."""
        for known in self._known:
            at = known.place(body)
            if at >= 0:
                short = document_of(b"".join((body[:at], _WRITTEN, body[at + len(known.written) :])))
                if isinstance(short, dict) and short.get(_NAME) == _STAND_IN:
                    short[_NAME] = known.value
                    return short
        return document_of(body)


repeated = Repeated()
"""The one of this process."""


class Declared:
    """Reads declarations by `read`, unless the very same ones were read before: the same names in the same order, and no
    number for another that is equal to it. The schemas of the tools are then those objects that were read first."""

    def __init__(self, read: Callable[[Json], tuple[Tool, ...]]) -> None:
        self._read = read
        self._known: dict[bytes, tuple[Tool, ...]] = {}
        self._last: tuple[Json, tuple[Tool, ...]] = (None, ())

    def __call__(self, declared: Json) -> tuple[Tool, ...]:
        if not declared:
            return ()
        if declared is self._last[0]:
            return self._last[1]
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
        else:
            repeated.learn(written)
            self._last = declared, known
        return known
