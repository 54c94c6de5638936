"""The data of a page, in blocks: each is JSON, compressed, in Base64, in an element that browsers do not run.

Base64 has no character that HTML gives a meaning, so nothing of the wire can end the element. A block is unpacked when
somebody looks at what is in it. Messages are kept once, however many histories repeat them: an agent sends its whole
conversation with every request, and a page over thousands of them holds each message a single time.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from typing import BinaryIO

from wirelint.model import Json
from wirelint.view.html.plain import Object, dump

_BLOCK = 512 << 10
"""Bytes of JSON after which a block is closed."""


class Blocks:
    """Takes exchanges with their messages and writes full blocks to `out`; holds one block, and the digests of messages."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._seen: dict[bytes, int] = {}
        self._messages: list[bytes] = []
        self._exchanges: list[bytes] = []
        self._size = self._count = self._first_exchange = self._first_message = 0
        self.firsts: list[Json] = []
        """Per block the numbers of the first message and of the first exchange in it."""

    def message(self, value: Object) -> int:
        """The number of a message; the same for one that is the same."""
        data = dump(value)
        digest = hashlib.blake2b(data, digest_size=16).digest()
        number = self._seen.setdefault(digest, len(self._seen))
        if number == self._first_message + len(self._messages):
            self._messages.append(data)
            self._size += len(data)
        return number

    def exchange(self, value: Object) -> int:
        """The number of an exchange, counted from 0. Its messages have been handed over before."""
        data = dump(value)
        self._exchanges.append(data)
        self._size += len(data)
        self._count += 1
        if self._size >= _BLOCK:
            self.close()
        return self._count - 1

    def close(self) -> None:
        """Writes what is left."""
        if not self._exchanges:
            return
        self.firsts.append([self._first_message, self._first_exchange])
        body = b'{"messages":[' + b",".join(self._messages) + b'],"exchanges":[' + b",".join(self._exchanges) + b"]}"
        self._out.write(element("block", body))
        self._first_message += len(self._messages)
        self._first_exchange += len(self._exchanges)
        self._messages, self._exchanges, self._size = [], [], 0


def element(kind: str, data: bytes) -> bytes:
    """An element that holds data. `kind` is its class."""
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0))
    return b'<script type="text/plain" class="%s">%s</script>\n' % (kind.encode(), packed)
