"""Whole replies that are written as those before them were, in a real process: untouched, captured, repaired where due."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator

import pytest

from tests.live.harness import SCRIPT, Client, Proxy, Upstream, replying, running
from tests.live.leaks import CALL, CALLED, LEAK, PATHS, calls_of
from tests.live.scenes import OPENAI
from tests.rewrite.test_pages import page

pytestmark = pytest.mark.live

REQUEST = LEAK[OPENAI, False]["request"]
_TELLING = """
import logging
from wirelint.rewrite.pages import Pages
real = Pages.say_plainly
def say_plainly(self, *given):
    plain = real(self, *given)
    logging.getLogger("telling").warning("fits: %s", plain)
    return plain
Pages.say_plainly = say_plainly
"""
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def telling(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy that has seen two replies of a form, and logs which ones fit it."""
    folder = tmp_path_factory.mktemp("pages")
    script = folder / "telling.py"
    script.write_text(_TELLING)
    with running(folder, upstream.url, "wirelint_fix=unsafe", scripts=[script]) as proxy:
        for _ in range(2):
            made = page(number=next(_numbers))
            assert told(proxy, upstream, made, f"first {next(_numbers)}") == made
        assert "fits: True" not in proxy.log
        yield proxy


def told(proxy: Proxy, upstream: Upstream, body: bytes, name: str) -> bytes:
    """What the client gets of a whole reply."""
    upstream.scripts[name] = replying([body[:99], body[99:]], content_type="application/json")
    with Client(proxy.port) as client:
        client.ask(PATHS[OPENAI], REQUEST["body"].encode(), {**REQUEST["headers"], SCRIPT: name, "x-test-id": name})
        client.head()
        got, complete = client.rest()
    assert complete
    return got


@pytest.mark.parametrize("text", ["Another text.", 'He said "☂",\n\nand went.', "And so on. " * 900])
def test_what_fits_passes_and_is_captured(telling: Proxy, upstream: Upstream, text: str) -> None:
    before, name = telling.log.count("fits: True"), f"page {next(_numbers)}"
    made = page(text, number=next(_numbers))
    assert told(telling, upstream, made, name) == made
    record = telling.wait_for_record(name)
    assert telling.log.count("fits: True") == before + 1
    assert record["response"]["body"].encode() == made
    assert "delivered" not in record
    assert "internal-error" not in [finding["name"] for finding in record["findings"]]


def test_what_leaks_is_repaired(telling: Proxy, upstream: Upstream) -> None:
    before = telling.log.count("fits: True")
    made = page(f"Let me see. {CALL}", number=next(_numbers))
    got = told(telling, upstream, made, "leaks")
    assert calls_of(OPENAI, False, got) == CALLED
    record = telling.wait_for_record("leaks")
    assert [fix["name"] for fix in record["fixes"]] == ["xml-leak"]
    assert record["response"]["body"].encode() == made
    assert telling.log.count("fits: True") == before


def test_many_at_once(telling: Proxy, upstream: Upstream) -> None:
    """Some that leak among those that fit, on connections of their own: each one gets its own reply."""
    texts = {f"many {number}": f"Note {number}." if number % 3 else f"Note. {CALL}" for number in range(24)}
    got: dict[str, bytes] = {}

    def ask(name: str, text: str) -> None:
        got[name] = told(telling, upstream, page(text, number=9), name)

    threads = [threading.Thread(target=ask, args=one) for one in texts.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, text in texts.items():
        if CALL in text:
            assert calls_of(OPENAI, False, got[name]) == CALLED
        else:
            assert got[name] == page(text, number=9)
        assert telling.wait_for_record(name)["response"]["body"].encode() == page(text, number=9)


def test_nothing_failed(telling: Proxy) -> None:
    assert "internal-error" not in telling.log
    assert "failed" not in telling.log
