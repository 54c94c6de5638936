r"""AWS event streams (`application/vnd.amazon.eventstream`): bytes in, frames out, for any cut; and back to bytes.

Theory of operation. A message is a prelude of 12 bytes (its length, the length of its headers, a CRC-32 of the two),
the headers, the payload, and a CRC-32 of all of these; numbers are big endian. The length alone cuts the bytes into
frames. botocore decodes the headers and the payload of a message and checks both CRCs. It is an optional dependency:
without it no message is decoded, and the framer gives the reason (`unreadable`).

A frame has the name of its event and the payload as its data, like a server-sent event. Two kinds of message are
unwrapped: Bedrock's `chunk` (`{"bytes": "<base64>"}` around an event of the model's own API, named by its `type`), and
exceptions, whose type is only in a header; they become an error object.

If the CRC or the lengths of a prelude are wrong, the start of the next message is unknown: the rest of the stream is
one frame. Source: Smithy 2.0, "Amazon event stream".
"""

from __future__ import annotations

import base64
import binascii
import importlib
import json
import re
import struct
import zlib
from collections.abc import Mapping
from types import ModuleType

import orjson

from wirelint.events import Frame
from wirelint.jsonvalues import decode_object
from wirelint.model import FaultKind
from wirelint.wire.json_bodies import Faults, Framer, decode

CONTENT_TYPE = "application/vnd.amazon.eventstream"
CHUNK = "chunk"
"""The event in which Bedrock carries the events of other APIs."""

NO_DECODER = "the reply is an AWS event stream; reading it takes botocore, which is not installed"

_PRELUDE = 12
_LEAST = 16
_MOST = (24 << 20) + (128 << 10) + _LEAST
_FIRST = (b"\x00", b"\x01")
"""First byte of the length of a message (at most 24 MiB)."""
_STRING = b"\x07"


def _botocore() -> ModuleType | None:
    """Return `botocore.eventstream`, which has no type annotations; None if it is not installed."""
    try:
        return importlib.import_module("botocore.eventstream")
    except ImportError:
        return None


def looks_like_messages(head: bytes) -> bool | None:
    """Return True if the first bytes of a body begin a stream of messages; None if more bytes are needed."""
    if not head.startswith(_FIRST):
        return False
    return None if len(head) < _PRELUDE else _length(head) is not None


def _length(buffer: bytes | bytearray) -> int | None:
    """Return the length of the message whose prelude begins the buffer; None if the bytes are no valid prelude."""
    total, headers = int.from_bytes(buffer[:4]), int.from_bytes(buffer[4:8])
    sound = len(buffer) >= _PRELUDE and zlib.crc32(buffer[:8]) == int.from_bytes(buffer[8:_PRELUDE])
    return total if sound and headers + _LEAST <= total <= _MOST else None


class MessageStream(Framer):
    """Incremental parser of one event stream."""

    framing = "messages"

    def __init__(self) -> None:
        super().__init__()
        self._lost = False
        self._botocore = _botocore()
        self.unreadable = None if self._botocore is not None else NO_DECODER

    def feed(self, data: bytes) -> list[Frame]:
        self._buffer += data
        if self._lost:
            return []
        messages, rest = split(self._buffer)
        self._buffer[:] = rest
        self._lost = len(rest) >= _PRELUDE and _length(rest) is None
        return [self._frame(raw) for raw in messages]

    def _last_frame(self, rest: bytes) -> Frame:
        kind: FaultKind = "broken-json" if self._lost else "cut-event"
        why = "no message begins here" if self._lost else f"a message of which {len(rest)} bytes came"
        return Frame(self._number, rest, None, None, ((kind, why),))

    def _frame(self, raw: bytes) -> Frame:
        number = self._number
        self._number += 1
        if self._botocore is None:
            return Frame(number, raw, None, None)
        decoder = self._botocore.EventStreamBuffer()
        decoder.add_data(raw)
        try:
            decoded = decoder.next()
        except (self._botocore.ParserError, StopIteration, ValueError, LookupError, TypeError, struct.error) as error:
            return Frame(number, raw, None, None, (("broken-json", f"{type(error).__name__}: {error}"[:80]),))
        return Frame(number, raw, *_content(decoded.headers, decoded.payload))


def _content(headers: Mapping[str, object], payload: bytes) -> tuple[str | None, str | None, Faults]:
    """Return the name of an event, its data, and its faults.

    An exception becomes an error object: `{"type": "error", "error": {"type": "throttlingException", "message": …}}`.
    """
    if headers.get(":message-type") in ("exception", "error"):
        kind = headers.get(":exception-type") or headers.get(":error-code") or "error"
        said = decode_object(payload)
        words = said.get("message") or said.get("Message") or headers.get(":error-message") or ""
        error = {**said, "type": str(kind), "message": words if isinstance(words, str) else str(words)}
        return "error", json.dumps({"type": "error", "error": error}, ensure_ascii=False), ()
    name = headers.get(":event-type")
    if name == CHUNK and (carried := _carried(payload)) is not None:
        payload, kind = carried, decode_object(carried).get("type")
        name = kind if kind and isinstance(kind, str) else CHUNK
    data, faults = decode(payload)
    return (name if isinstance(name, str) else None), data or None, faults


def _carried(payload: bytes) -> bytes | None:
    """Return the event within a `chunk`; None if the payload has no valid base64 in `bytes`."""
    carried = decode_object(payload).get("bytes")
    if not isinstance(carried, str):
        return None
    try:
        return base64.b64decode(carried, validate=True)
    except (binascii.Error, ValueError):
        return None


def split(body: bytes | bytearray) -> tuple[list[bytes], bytes]:
    """Return the messages of a body, and the bytes after the last one. Needs no decoder."""
    messages: list[bytes] = []
    end = 0
    while (length := _length(body[end : end + _PRELUDE])) is not None and end + length <= len(body):
        messages.append(bytes(body[end : end + length]))
        end += length
    return messages, bytes(body[end:])


def content_of(raw: bytes) -> bytes:
    """Return the payload of a message, or the event within a `chunk`."""
    payload = raw[_PRELUDE + int.from_bytes(raw[4:8]) : -4]
    carried = _carried(payload)
    return payload if carried is None else carried


def with_content(raw: bytes, content: bytes) -> bytes:
    """Return a message with its payload replaced by `content`; for a `chunk`, with the event within replaced."""
    end = _PRELUDE + int.from_bytes(raw[4:8])
    payload = raw[end:-4]
    if _carried(payload) is not None:
        content = orjson.dumps({**decode_object(payload), "bytes": base64.b64encode(content).decode()})
    return _framed(raw[_PRELUDE:end], content)


# --- written -----------------------------------------------------------------------------------------------------------


def message(payload: bytes, event: str, *, exception: bool = False) -> bytes:
    """Return one message with a JSON payload, as Bedrock sends it."""
    kind = "exception" if exception else "event"
    headers = ((f":{kind}-type", event), (":content-type", "application/json"), (":message-type", kind))
    head = b""
    for key, value in headers:
        words = value.encode()
        head += len(key).to_bytes(1) + key.encode() + _STRING + len(words).to_bytes(2) + words
    return _framed(head, payload)


def _framed(head: bytes, payload: bytes) -> bytes:
    lengths = (_LEAST + len(head) + len(payload)).to_bytes(4) + len(head).to_bytes(4)
    whole = lengths + zlib.crc32(lengths).to_bytes(4) + head + payload
    return whole + zlib.crc32(whole).to_bytes(4)


def chunk(payload: bytes) -> bytes:
    """Return a `chunk` message around an event of another API."""
    return message(orjson.dumps({"bytes": base64.b64encode(payload).decode()}), CHUNK)


_EVENT = re.compile(rb"(?:event: ([^\n]*+)\n)?+data: ([^\n]*+)\n\n")


def carry(events: bytes) -> bytes:
    """Return server-sent events of a writer (`event: …`, one line of data) as `chunk` and exception messages."""
    made: list[bytes] = []
    for event in _EVENT.finditer(events):
        name, data = event.groups()
        if name == b"error" and (error := decode_object(data).get("error")) and isinstance(error, dict):
            kind = error.get("type")
            rest = {key: value for key, value in error.items() if key != "type"}
            made.append(message(orjson.dumps(rest), kind if isinstance(kind, str) else "error", exception=True))
        else:
            made.append(chunk(data))
    return b"".join(made)
