"""Declared tools that are decoded and read once, since an agent sends the same tools with each request.

Theory of operation. Tools that came twice are searched as bytes in later bodies. The search result is replaced by a short
token before decoding, and the decoded token by the known tools:

    {"model":"m","tools":[…50 kB…],"messages":[…]}   ->   {"model":"m","tools":"5f2c…","messages":[…]}

If the token is not the value of the outermost `tools` then, the bytes were something else: the body is decoded unchanged.
Without this a request with 25 tools (55 kB) takes 0.6 ms instead of 0.1 ms to decode and read.
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
"""Bytes of declarations that are remembered. Smaller ones gain nothing, larger ones take much memory."""
_TOKEN = secrets.token_hex(16)
"""Replacement of known tools. No client can send it on purpose."""
_REPLACEMENT = f'"tools":"{_TOKEN}"'.encode()
_TRIES = 4
"""Failed searches after which known tools are looked for at their last place only."""


class _Known:
    """Tools that came twice. `written`: the member of a body that declares them; `value`: its decoded value."""

    __slots__ = ("_after", "_before", "_tries", "value", "written")

    def __init__(self, written: bytes, value: Json) -> None:
        self.written, self.value = written, value
        self._before = self._after = -1
        """The last place of the member: bytes before it, and bytes from its start to the end of the body."""
        self._tries = _TRIES

    def place(self, body: bytes) -> int:
        """Return the offset of the member in a body; -1 if it is not found."""
        for at in (self._before, len(body) - self._after):
            if self._after >= 0 <= at and body.startswith(self.written, at):
                return at
        if not self._tries:
            return -1
        at = body.find(self.written)
        if at < 0:
            self._tries -= 1
        else:
            self._before, self._after, self._tries = at, len(body) - at, _TRIES
        return at


class Repeated:
    """Decoder of request bodies. Known tools decode to the same objects."""

    def __init__(self) -> None:
        self._known: tuple[_Known, ...] = ()

    def learn(self, compact: bytes) -> None:
        """Look for these tools from now on, in the two spellings in which clients send JSON."""
        written = b'"tools":' + compact
        if not _SHORTEST <= len(compact) <= _LONGEST or any(one.written == written for one in self._known):
            return
        value: Json = orjson.loads(compact)
        spaced = b'"tools": ' + json.dumps(value).encode()
        self._known = (_Known(written, value), _Known(spaced, value), *self._known)[: 2 * _MOST]

    def document_of(self, body: bytes) -> Json:
        """Return the JSON value of a body; None if it is not JSON."""
        for known in self._known:
            at = known.place(body)
            if at >= 0:
                short = document_of(b"".join((body[:at], _REPLACEMENT, body[at + len(known.written) :])))
                if isinstance(short, dict) and short.get("tools") == _TOKEN:
                    short["tools"] = known.value
                    return short
        return document_of(body)


repeated = Repeated()
"""The decoder of this process."""


class Declared:
    """Function from declarations to tools that returns the same tools for the same JSON text.

    Equal values with another text are read again: another order of names, `1.0` for `1`.
    """

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
        except orjson.JSONEncodeError:  # a lone surrogate, for example
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
