"""Parsers from bytes to frames: server-sent events, JSON lines and arrays, AWS event streams, whole bodies; content
codings.

They do no I/O, give the same frames for any cut of the input, and lose no byte.
"""

from __future__ import annotations

from collections.abc import Mapping

import regex

from wirelint.events import Frame
from wirelint.jsonvalues import decode_json
from wirelint.wire.aws_eventstream import CONTENT_TYPE, looks_like_messages
from wirelint.wire.aws_eventstream import MessageStream as MessageStream
from wirelint.wire.json_bodies import BLANKS, BOM, TYPES, looks_like_array
from wirelint.wire.json_bodies import ArrayStream as ArrayStream
from wirelint.wire.json_bodies import Framer as Framer
from wirelint.wire.json_bodies import Framing as Framing
from wirelint.wire.json_bodies import JsonLines as JsonLines
from wirelint.wire.json_bodies import WholeBody as WholeBody
from wirelint.wire.sse import EventStream as EventStream

_EVENT = regex.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*+(?:data|event|id|retry)?:")
_STREAMED = TYPES | {CONTENT_TYPE}


def looks_like_events(head: bytes) -> bool | None:
    """Return True if the first bytes of a body begin a stream of server-sent events; None if more bytes are needed.

    The content type is not enough: some gateways send streams as `text/plain`, or without a type.
    """
    if _EVENT.match(head):
        return True
    return None if _EVENT.fullmatch(head, partial=True) else False


class Sniffer:
    """Framer that chooses the framing by the first bytes of a body. The content type decides only where the bytes do
    not.

    An undeclared body that begins with `{` consists of JSON lines if its first line is a document and another one
    follows. A whole body has at most a line feed at its end.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._type = headers.get("content-type", "").split(";")[0].strip().lower()
        self._declared = self._type == "text/event-stream"
        self.streamed = self._declared or self._type in _STREAMED
        self.framing: Framing = "whole"
        """Form of the body; `whole` until its first bytes show another form."""
        self.unreadable: str | None = None
        """Reason why the body cannot be read (a missing optional dependency)."""
        self._head = bytearray()
        self._framer: Framer | None = None
        self._may_be_lines = self._has_document = False
        self._searched = 0
        """Offset up to which the head was searched for the end of the first line, or for the second line."""

    def feed(self, data: bytes) -> list[Frame]:
        if self._framer is not None:
            return self._framer.feed(data)
        self._head += data
        framer = self._lines_or_whole() if self._may_be_lines else self._choose(bytes(self._head))
        return self._begin(framer) if framer is not None else []

    def close(self) -> list[Frame]:
        if self._framer is not None:
            return self._framer.close()
        framer = None if self._may_be_lines else self._decide(self._declared)
        return self._begin(framer or WholeBody()) + self.close()

    def _begin(self, framer: Framer) -> list[Frame]:
        self._framer, self.streamed, self.framing = framer, framer.streamed, framer.framing
        self.unreadable = framer.unreadable
        head, self._head = bytes(self._head), bytearray()
        return framer.feed(head)

    def _choose(self, head: bytes) -> Framer | None:
        """Return the framer of a body; None if more bytes are needed."""
        if head[:1] == b"{":  # nearly all whole bodies; no AWS message begins with such a length
            return self._decide(False)
        if (messages := looks_like_messages(head)) is not False:
            return None if messages is None else MessageStream()
        verdict = looks_like_events(head)
        if verdict is False and (array := looks_like_array(head)) is not False:
            return None if array is None else ArrayStream()
        return None if verdict is None else self._decide(verdict)

    def _decide(self, events: bool) -> Framer | None:
        # A declared stream whose first bytes are a JSON document is an error body under the wrong type.
        # A byte order mark counts only at the very beginning. Elsewhere only a part of it may have arrived by now.
        start = bytes(self._head).removeprefix(BOM).lstrip(BLANKS)[:1]
        looks_whole = start in (b"{", b"[")
        if events or (self._declared and not looks_whole):
            return EventStream()
        if self._type == CONTENT_TYPE and self._head[:1] == b"\0":
            return MessageStream()  # cut within its first twelve bytes
        if start in (b"{", b"") and self._type in TYPES:
            return JsonLines()
        if start == b"{" and not self._declared and self._type != "application/json":
            self._may_be_lines = True
            return self._lines_or_whole()
        return WholeBody()

    def _lines_or_whole(self) -> Framer | None:
        head = self._head
        while not self._has_document:
            end = head.find(b"\n", self._searched)
            if end < 0:
                self._searched = len(head)
                return None
            self._searched = end + 1
            line = bytes(head[:end]).removeprefix(BOM).strip(BLANKS)
            if line and not isinstance(decode_json(line), dict):
                return WholeBody()
            self._has_document = bool(line)
        rest = head[self._searched :].lstrip(BLANKS)
        self._searched = len(head)
        return None if not rest else JsonLines() if rest.startswith(b"{") else WholeBody()
