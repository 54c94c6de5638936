"""Event streams of Bedrock: without the decoder, and on their way to a client."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apis.harness import understood
from tests.apis.shapes_bedrock import stream
from tests.apis.talk_bedrock_converse import delta, said, stop
from tests.apis.test_writers import check_bedrock
from tests.build import exchange, read, some
from tests.fixes.drive import run
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
    record = exchange("/model/acme/converse-stream", ASK, "", content_type=aws_eventstream.CONTENT_TYPE)
    record["response"]["body"] = body
    result = run(record, ["control-token-leak"], cuts=range(size, len(body), size))
    assert not result.faults
    check_bedrock(result.delivered)
    reply = some(understood("bedrock.converse", result.delivered)[2])
    assert reply.choices[0].text == "Hello, all is well."
