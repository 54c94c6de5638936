"""Events as the bytes of a stream: server-sent events, JSON lines, a JSON array, or the messages of AWS."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from zlib import crc32

from wirelint.mock.answer import Answer, Event, Headers
from wirelint.mock.plan import Framing

_TYPES: dict[Framing, str] = {
    "events": "text/event-stream; charset=utf-8",
    "lines": "application/x-ndjson",
    "array": "application/json; charset=UTF-8",
    "messages": "application/vnd.amazon.eventstream",
}
_STRING = 7
"""The type of a header's value; the mock sends no other."""


def stream_answer(events: Sequence[Event], framing: Framing, headers: Headers = ()) -> Answer:
    """A stream, one part an event."""
    fixed = (("content-type", _TYPES[framing]), ("cache-control", "no-cache"))
    return Answer(200, (*fixed, *headers), tuple(_encode(events, framing)), streamed=True)


def _encode(events: Sequence[Event], framing: Framing) -> Iterator[bytes]:
    match framing:
        case "events":
            yield from (event.encode() for event in events)
        case "lines":
            yield from (f"{event.data}\n".encode() for event in events)
        case "array":
            for number, event in enumerate(events):
                yield f"{',' if number else '['}\n{event.data}".encode()
            yield b"\n]\n"
        case "messages":
            yield from map(encode_message, events)


def encode_message(event: Event) -> bytes:
    """A message of an AWS event stream: lengths, headers, payload, and a checksum after the lengths and at the end.

    The name of an error event is the type of an exception.
    """
    kind = "exception" if event.tag == "error" else "event"
    named = {f":{kind}-type": event.name or "", ":content-type": "application/json", ":message-type": kind}
    headers, payload = b"".join(_encode_header(*pair) for pair in named.items()), event.data.encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack("!I", crc32(prelude)) + headers + payload
    return message + struct.pack("!I", crc32(message))


def _encode_header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return struct.pack("!B", len(key)) + key + struct.pack("!BH", _STRING, len(text)) + text
