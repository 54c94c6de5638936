"""When an event of a recorded stream came."""

from __future__ import annotations

from wirelint.capture.record import Record
from wirelint.engine import lower
from wirelint.wire import Sniffer


def arrival(record: Record, event: int | None) -> float | None:
    """Milliseconds after the request until the last byte of a stream's event was there; None where it is not known.

    Without an event: until the whole body was there.
    """
    body = record.response_body
    if event is None or not body:
        return record.timing.duration
    if not record.chunks:
        return None
    sniffer = Sniffer(lower(record.response_headers))
    end = 0
    for frame in [*sniffer.feed(body), *sniffer.close()]:
        end += len(frame.raw)
        if frame.number == event:
            break
    received = 0
    for at, size in record.chunks:
        received += size
        if received >= end:
            return at
    return record.chunks[-1][0]
