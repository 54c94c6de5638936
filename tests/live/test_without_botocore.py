"""AWS event streams where nothing is installed that decodes them: they pass as they came, and the exchange says why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apis.talk_bedrock_converse import events, messages
from tests.apis.talk_bedrock_converse import record as converse_record
from tests.build import Talk
from tests.live.harness import SCRIPT, Proxy, Upstream, post, replying, running

TALK = Talk(
    text='<invoke name="read_note"><arg name="path">a.md</arg></invoke>', tools={"read_note": {"type": "object"}}
)
BODY = messages(*events(TALK))
WITHOUT = "import sys\nsys.modules['botocore'] = sys.modules['botocore.eventstream'] = None\n"


@pytest.fixture(scope="module")
def bare(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder: Path = tmp_path_factory.mktemp("bare")
    script = folder / "without.py"
    script.write_text(WITHOUT)
    with running(folder, upstream.url, "wirelint_fix=unsafe", scripts=[script]) as proxy:
        yield proxy


@pytest.mark.parametrize("size", [len(BODY), 5], ids=["whole", "in pieces"])
def test_an_event_stream_passes_unread(upstream: Upstream, bare: Proxy, size: int) -> None:
    test = f"unread {size}"
    pieces = [BODY[at : at + size] for at in range(0, len(BODY), size)]
    upstream.scripts[test] = replying(pieces, content_type="application/vnd.amazon.eventstream")
    body = converse_record(TALK, stream=False)["request"]["body"].encode()
    reply = post(bare.port, "/model/acme-1/converse-stream", body, {"x-test-id": test, SCRIPT: test})
    assert (reply.body, reply.complete) == (BODY, True)
    record = bare.wait_for_record(test)
    assert (record["api"], record["end"], record["findings"]) == ("bedrock.converse", "unread", [])
    assert record["notes"] == ["the reply is an AWS event stream; reading it takes botocore, which is not installed"]
    assert "delivered" not in record
    assert "Traceback" not in bare.log
