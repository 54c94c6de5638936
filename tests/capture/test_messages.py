"""Secrets in event streams of AWS: found in every form in which they are carried, and the stream stays one."""

from __future__ import annotations

import base64
import json

import pytest

from tests.apis.shapes_bedrock import CLAUDE_EVENTS, HELLO, carried, stream
from tests.apis.talk_bedrock_converse import delta, said, stop
from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.wire.aws_eventstream import content_of, split

KEY = "sk-proj-9fK2mQ7xR4tB1vN8cL5wZ3yH6jD0pS"


def spoken(body: bytes) -> str:
    messages, rest = split(body)
    assert rest == b""
    return "".join(content_of(raw).decode() for raw in messages)


def claude(words: str) -> bytes:
    told = json.loads(json.dumps(CLAUDE_EVENTS).replace('"Hel"', json.dumps(words)))
    return carried(*told)


STREAMS = {
    "in a message": stream(delta(0, said(f"The key is {KEY}, keep it.")), stop(0)),
    "over two messages": stream(
        delta(0, said(f"The key is {KEY[:15]}")), delta(0, said(f"{KEY[15:]}, keep it.")), stop(0)
    ),
    "carried in base64": claude(f"The key is {KEY}, keep it."),
}


@pytest.mark.parametrize("body", STREAMS.values(), ids=STREAMS)
def test_a_secret_goes_and_the_stream_stays(body: bytes) -> None:
    headers = (("authorization", f"Bearer {KEY}"),)
    record = Record(
        id="1", method="POST", url="http://llm.test/model/acme/converse-stream", request_headers=headers,
        request_body=b"{}", status=200, response_headers=(), response_body=body, chunks=((1.0, len(body)),),
    )  # fmt: skip
    clean = Redactor().record(record).response_body
    assert clean is not None
    assert clean != body
    text = spoken(clean)
    assert KEY not in text
    assert KEY[:15] not in text
    assert KEY[15:] not in text
    assert "[redacted:" in text
    assert base64.b64encode(KEY.encode())[:-4] not in clean
    assert len(split(clean)[0]) == len(split(body)[0])
    assert Redactor().record(record).chunks == ((1.0, len(clean)),)


@pytest.mark.parametrize(
    "body", [stream(*HELLO), carried(*CLAUDE_EVENTS), stream(*HELLO)[:-5]], ids=["plain", "carried", "cut"]
)
def test_without_a_secret_it_is_the_very_same(body: bytes) -> None:
    assert Redactor().body(body) is body
