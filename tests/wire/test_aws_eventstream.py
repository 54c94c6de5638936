"""Event streams of AWS: messages to frames, for any cut, and back."""

from __future__ import annotations

import base64
import json

import pytest

from tests.apis.talk_bedrock_converse import delta, messages, packed, said
from tests.selection import in_batches
from wirelint.wire import MessageStream
from wirelint.wire.aws_eventstream import carry, chunk

ONE = messages(delta(0, said("Grüße 🎉")))
TWO = ONE + messages(delta(0, said("!")))
EXCEPTION = packed(b'{"message":"busy"}', exception_type="throttlingException", message_type="exception")
ERROR = packed(b"", error_code="InternalFailure", error_message="no luck", message_type="error")
CARRIED = packed(
    json.dumps({"bytes": base64.b64encode(b'{"type":"ping"}').decode(), "p": "ab"}).encode(),
    event_type="chunk",
    message_type="event",
)


def frames(body: bytes, size: int = 1 << 20) -> list[tuple[str | None, str | None, list[str]]]:
    pytest.importorskip("botocore")
    stream = MessageStream()
    made = [frame for start in range(0, len(body), size) for frame in stream.feed(body[start : start + size])]
    made += stream.close()
    assert b"".join(frame.raw for frame in made) == body
    assert [frame.number for frame in made] == list(range(len(made)))
    return [(frame.event, frame.data, [kind for kind, _ in frame.faults]) for frame in made]


GRUSS = '{"contentBlockIndex": 0, "delta": {"text": "Grüße 🎉"}, "p": "a"}'
FRAMES = {
    "a message": (ONE, [("contentBlockDelta", GRUSS, [])]),
    "what it carries": (CARRIED, [("ping", '{"type":"ping"}', [])]),
    "nothing carried": (packed(b'{"bytes": 1}', event_type="chunk"), [("chunk", '{"bytes": 1}', [])]),
    "no base64": (packed(b'{"bytes": "?"}', event_type="chunk"), [("chunk", '{"bytes": "?"}', [])]),
    "an exception": (
        EXCEPTION,
        [("error", '{"type": "error", "error": {"message": "busy", "type": "throttlingException"}}', [])],
    ),
    "an error": (ERROR, [("error", '{"type": "error", "error": {"type": "InternalFailure", "message": "no luck"}}', [])]),
    "no payload": (packed(b"", event_type="keepAlive"), [("keepAlive", None, [])]),
    "no headers": (packed(b"{}"), [(None, "{}", [])]),
    "no UTF-8": (packed(b'"\xff"', event_type="x"), [("x", '"\ufffd"', ["bad-utf8"])]),
    "a wrong sum": (ONE[:-1] + b"\0", [(None, None, ["broken-json"])]),
    "a strange header": (packed(b"{}", a="1"), [(None, "{}", [])]),
    "cut": (ONE[:-1], [(None, None, ["cut-event"])]),
    "cut in its prelude": (ONE[:7], [(None, None, ["cut-event"])]),
    "lost": (
        ONE + b"\x00\x00\x00\x20 and so on, without end",
        [("contentBlockDelta", GRUSS, []), (None, None, ["broken-json"])],
    ),
}  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 5, 13, 1 << 20])
@in_batches(("body", "expected"), FRAMES.values(), ids=FRAMES)
def test_messages_become_frames_at_every_cut(
    body: bytes, expected: list[tuple[str | None, str | None, list[str]]], size: int
) -> None:
    assert frames(body, size) == expected


def test_events_are_carried() -> None:
    written = b'event: ping\ndata: {"type":"ping"}\n\ndata: {"type":"x"}\n\n'
    written += b'event: error\ndata: {"type":"error","error":{"type":"throttlingException","message":"busy"}}\n\n'
    assert frames(carry(written)) == [
        ("ping", '{"type":"ping"}', []),
        ("x", '{"type":"x"}', []),
        ("error", '{"type": "error", "error": {"message": "busy", "type": "throttlingException"}}', []),
    ]
    assert carry(b'data: {"type":"x"}\n\n') == chunk(b'{"type":"x"}')
    assert carry(b"") == b""
