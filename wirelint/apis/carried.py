"""Replies whose events another API carries: Claude over Bedrock sends Anthropic's events in an AWS event stream.

The events are read through their carrier (`wire.eventstream`); what a writer makes of them is put back into it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from wirelint.events import Event, Frame
from wirelint.wire.aws_eventstream import carry, looks_like_messages


class _Writer(Protocol):
    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes: ...

    def close(self, out: Sequence[Event]) -> bytes: ...


class Carried:
    """A writer of server-sent events that also writes the events of a stream of messages."""

    def __init__(self, writer: _Writer) -> None:
        self._writer = writer
        self._carried = False

    def write(self, frame: Frame, events: Sequence[Event], out: Sequence[Event]) -> bytes:
        raw = frame.raw
        if raw[:1] not in (b"\0", b"\1") or not looks_like_messages(raw[:12]):
            return self._writer.write(frame, events, out)
        self._carried = True
        # The lines of the frame are none; the bytes that the writer gives back say whether it changed anything.
        bare = Frame(frame.number, b"\0", frame.event, frame.data, frame.faults)
        made = self._writer.write(bare, events, out)
        return raw if made is bare.raw else carry(made)

    def close(self, out: Sequence[Event]) -> bytes:
        made = self._writer.close(out)
        return carry(made) if self._carried else made
