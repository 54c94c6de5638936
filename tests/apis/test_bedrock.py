"""Event streams of Bedrock: without the decoder, and on their way to a client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apis.harness import understood
from tests.apis.shapes_bedrock import stream
from tests.apis.talk_bedrock_converse import delta, said, stop
from tests.apis.test_writers import check_bedrock
from tests.build import REGISTRY, exchange, read, some
from wirelint.engine import Session
from wirelint.fix import FixPolicy
from wirelint.rewrite import ReplyStream
from wirelint.state.ledger import Ledger
from wirelint.wire import aws_eventstream

ASK: dict[str, Any] = {"messages": [{"role": "user", "content": [{"text": "Hello."}]}]}


def test_without_the_decoder_a_stream_passes_unread_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_eventstream, "_botocore", lambda: None)
    record = exchange("/model/acme/converse-stream", ASK, "", content_type="application/vnd.amazon.eventstream")
    record["response"]["body"] = stream(delta(0, said("Hello")), stop(0))
    found = read(record)
    assert found.request is not None
    assert found.reply is None
    assert found.end == "unread"
    assert found.notes == (aws_eventstream.NO_DECODER,)


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_a_token_is_removed_while_the_stream_passes(size: int) -> None:
    pytest.importorskip("botocore")
    body = stream(delta(0, said("Hello, all is ")), delta(0, said("well.<|im_")), delta(0, said("end|>")), stop(0))
    url = "http://llm.test/model/acme/converse-stream"
    session = some(Session.begin(id="1", method="POST", url=url, headers={}, body=json.dumps(ASK).encode()))
    session.respond(200, {"content-type": aws_eventstream.CONTENT_TYPE})
    fixing = some(ReplyStream.begin(session, REGISTRY.select(["control-token-leak"]), Ledger(), FixPolicy("unsafe")))
    made = b"".join(b"".join(fixing.feed(body[at : at + size], 1.0)) for at in range(0, len(body), size))
    made += b"".join(fixing.end())
    assert not fixing.faults
    check_bedrock(made)
    reply = some(understood("bedrock.converse", made)[2])
    assert reply.choices[0].text == "Hello, all is well."
