"""Replies that go as those before them went, in a real process: each event at once, repairs where they are due."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import openai
import pytest

from tests.live.harness import PATIENCE, SCRIPT, Client, Peer, Proxy, Upstream, replying, running
from tests.live.leaks import CALL, CALLED, EVENTS, LEAK, PATHS, calls_of
from tests.live.scenes import OPENAI
from tests.rewrite.test_following import PLAIN, events

pytestmark = [pytest.mark.live, pytest.mark.complete]

REQUEST = LEAK[OPENAI, True]["request"]
_TELLING = """
import logging
from wirelint.rewrite.following import Forms
real = Forms.followed
def followed(self, *given):
    logging.getLogger("telling").warning("followed to the end")
    real(self, *given)
Forms.followed = followed
"""
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def telling(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy that has seen two replies of a form, and logs which ones follow it."""
    folder = tmp_path_factory.mktemp("telling")
    script = folder / "telling.py"
    script.write_text(_TELLING)
    with running(folder, upstream.url, "wirelint_fix=unsafe", scripts=[script]) as proxy:
        for _ in range(2):
            made = events(number=next(_numbers), model="m")
            assert step_by_step(proxy, upstream, made) == b"".join(made)
        assert "followed" not in proxy.log
        yield proxy


def step_by_step(proxy: Proxy, upstream: Upstream, pieces: Sequence[bytes], name: str = "") -> bytes:
    """What the client gets of a reply whose events are sent when those before them have arrived."""
    name = name or f"steps {next(_numbers)}"
    seen = threading.Semaphore(0)

    def script(peer: Peer) -> None:
        peer.head(**EVENTS, transfer_encoding="chunked")
        for piece in pieces:
            peer.chunk(piece)
            assert seen.acquire(timeout=PATIENCE), "what is harmless must pass at once"
        peer.finish()

    upstream.scripts[name] = script
    with Client(proxy.port) as client:
        given = {**REQUEST["headers"], SCRIPT: name, "x-test-id": name}
        client.ask(PATHS[OPENAI], REQUEST["body"].encode(), given)
        client.head()
        got = b""
        for piece in pieces:
            got += client.read_at_least(len(piece))
            seen.release()
        rest, complete = client.rest()
        assert complete
        return got + rest


def test_each_event_leaves_at_once_and_all_is_captured(telling: Proxy, upstream: Upstream) -> None:
    for text in (PLAIN, ("So", " it is", ', he said: "☂\n', "\nand went.")):
        before = telling.log.count("followed to the end")
        name = f"follows {next(_numbers)}"
        made = events(text, number=next(_numbers))
        assert step_by_step(telling, upstream, made, name) == b"".join(made)
        record = telling.wait_for_record(name)
        assert telling.log.count("followed to the end") == before + 1
        assert record["response"]["body"].encode() == b"".join(made)
        assert "delivered" not in record
        assert len(record["response"]["chunks"]) == len(made)


def test_what_leaks_in_the_middle_is_repaired(telling: Proxy, upstream: Upstream) -> None:
    made = events((*PLAIN, " So: ", *[CALL[at : at + 7] for at in range(0, len(CALL), 7)]), number=next(_numbers))
    upstream.scripts["leaks"] = replying(made, **EVENTS)
    with Client(telling.port) as client:
        given = {**REQUEST["headers"], SCRIPT: "leaks", "x-test-id": "leaks"}
        client.ask(PATHS[OPENAI], REQUEST["body"].encode(), given)
        client.head()
        body, complete = client.rest()
    assert complete
    assert calls_of(OPENAI, True, body) == CALLED
    record = telling.wait_for_record("leaks")
    assert [fix["name"] for fix in record["fixes"]] == ["xml-leak"]
    assert record["response"]["body"].encode() == b"".join(made)


def test_one_that_breaks_off_leaves_as_far_as_it_came(telling: Proxy, upstream: Upstream) -> None:
    made = events(number=next(_numbers))[:4]

    def script(peer: Peer) -> None:
        peer.head(**EVENTS, transfer_encoding="chunked")
        for piece in made:
            peer.chunk(piece)
        peer.close()

    upstream.scripts["breaks"] = script
    with Client(telling.port) as client:
        client.ask(
            PATHS[OPENAI], REQUEST["body"].encode(), {**REQUEST["headers"], SCRIPT: "breaks", "x-test-id": "breaks"}
        )
        client.head()
        body, complete = client.rest()
    assert (body, complete) == (b"".join(made), False)
    record = telling.wait_for_record("breaks")
    assert record["response"]["body"].encode() == body
    assert "truncated-stream" in [finding["name"] for finding in record["findings"]]


def test_the_sdk_reads_each_of_them(telling: Proxy, upstream: Upstream) -> None:
    asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "When does the ferry leave?"}]}
    for _ in range(4):
        name = f"sdk {next(_numbers)}"
        upstream.scripts[name] = replying(events(number=next(_numbers)), **EVENTS)
        with (
            openai.OpenAI(base_url=f"{telling.url}/v1", api_key="k", max_retries=0) as client,
            client.chat.completions.stream(**asked, extra_headers={SCRIPT: name}) as stream,
        ):
            choice = stream.get_final_completion().choices[0]
        assert (choice.message.content, choice.finish_reason) == ("".join(PLAIN), "stop")


def test_nothing_failed(telling: Proxy) -> None:
    assert "internal-error" not in telling.log
    assert "failed" not in telling.log
