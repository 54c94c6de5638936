"""Event streams of AWS in captures: what they hold as text, and the streams again when that text has been changed.

Secrets are looked for in the text of events. These streams have sums over every message, and some carry their events in
base64; so their events are written down as server-sent events, and what was changed there is put back into its message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wirelint.wire.aws_eventstream import content_of, looks_like_messages, split, with_content

_LINES = re.compile(rb"[\r\n]+")
_DATA, _END = b"data: ", b"\n\n"


def is_messages(body: bytes) -> bool:
    return bool(looks_like_messages(body[:12]))


def as_events(body: bytes) -> bytes:
    """A server-sent event for each message, and one for what stands behind the last of them."""
    messages, rest = split(body)
    contents = [*map(content_of, messages), rest]
    return b"".join(_DATA + _LINES.sub(b" ", content) + _END for content in contents)


def put_back(body: bytes, events: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Each message of the body as it was, and as it is with what its event says now; at last what stands behind them.

    Raises ValueError when the events are not those of the messages any more.
    """
    messages, rest = split(body)
    said = events.split(_END)
    for raw, event, before in zip([*messages, rest], said[:-1], as_events(body).split(_END), strict=False):
        if not event.startswith(_DATA) or len(said) != len(messages) + 2:
            raise ValueError("the events are not those of the messages")
        content = event.removeprefix(_DATA)
        if event == before:
            yield raw, raw
        else:
            yield raw, content if raw is rest else with_content(raw, content)
