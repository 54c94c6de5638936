"""Faults put into a real process: the client gets every byte, the culprit is named once, the exchange says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.build import Talk, chunk, sse
from tests.live.harness import SCRIPT, Proxy, Reply, Upstream, post, refused, replying, running
from tests.rules.case import write_example
from tests.selection import sampled

pytestmark = pytest.mark.live

_SABOTEUR = """
from wirelint.addon import addon, annotate, classify, recorder
from wirelint.apis import openai_chat
from wirelint.capture.redact import Redactor
from wirelint.capture.store import Store
from wirelint.state.ledger import Ledger
from wirelint.engine import Engine, Session

PLACES = {
    "begin": (Session, "begin"), "respond": (Session, "respond"), "feed": (Session, "feed"),
    "finish": (Session, "finish"), "check": (Engine, "check"), "ledger": (Ledger, "record"),
    "put": (Store, "put_all"), "redact": (Redactor, "record"), "annotate": (addon, "annotate"),
    "annotation": (annotate, "annotation"), "log": (addon, "log_exchange"),
    "take": (recorder.ExchangeRecorder, "store_for_later"),
    "decoder": (recorder, "decoder"), "visit": (classify, "ExchangeRecorder"), "tee": (addon, "Tee"),
    "ending": (addon, "end_reason_of"), "body": (recorder.ExchangeRecorder, "raw_body"),
    "request": (openai_chat, "read_request"),
}
current = None

def sabotage(name, owner, attribute):
    sound = getattr(owner, attribute)
    def faulty(*args, **kwargs):
        if current == name:
            raise RuntimeError("sabotage of " + name)
        return sound(*args, **kwargs)
    setattr(owner, attribute, staticmethod(faulty) if attribute == "begin" else faulty)

for name, (owner, attribute) in PLACES.items():
    sabotage(name, owner, attribute)

class Saboteur:
    def requestheaders(self, flow):
        global current
        current = flow.request.headers.get("x-fault")
addons = [Saboteur()]
"""

_RULE = '''
from __future__ import annotations
from wirelint.rule import Rule

class AlwaysRaises(Rule):
    """A rule with a mistake in it.

    ## What it does
    Raises.
    ## Why is this bad?
    It is.
    ## Example
    None.
    ## False positives
    None.
    ## Fix safety
    None.
    """

    code = "XX901"
    name = "always-raises"
    severity = "error"
    layer = "model"

    def check_reply(self, exchange, ledger):
        if exchange.request_headers.get("x-fault") == "rule":
            raise KeyError("a mistake\\nover two lines")
        return ()
'''

STREAM = sse(chunk({"role": "assistant", "content": "All is well, all the same."}), chunk({}, "stop")).encode()
REQUEST = Talk().record("openai.chat", True)["request"]["body"].encode()

CULPRITS = {
    "begin": "reading the request",
    "request": "reading the request",
    "respond": "reading the head of the reply",
    "feed": "reading the reply",
    "take": "reading the reply",
    "finish": "judging the exchange",
    "check": "judging the exchange",
    "ledger": "judging the exchange",
    "redact": "judging the exchange",
    "put": "writing the capture",
    "annotate": "the hook response",
    "annotation": "the hook response",
    "log": "logging the exchange",
    "visit": "the hook request",
    "ending": "the hook response",
    "body": "reading the reply",
    "rule": "rule always-raises",
}
"""Who is named for a fault in this place."""


@pytest.fixture(scope="module")
def faulty(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("faulty")
    saboteur, rules = folder / "saboteur.py", folder / "own"
    saboteur.write_text(_SABOTEUR)
    rules.mkdir()
    (rules / "xx901_always_raises.py").write_text(_RULE)
    write_example(rules / "xx901_always_raises.py")
    pieces = [STREAM[start : start + 37] for start in range(0, len(STREAM), 37)]
    upstream.scripts["well"] = replying(pieces, content_type="text/event-stream")
    with running(folder, upstream.url, f"wirelint_rules={rules}", scripts=[saboteur]) as proxy:
        yield proxy


def ask(proxy: Proxy, test: str, fault: str) -> Reply:
    headers = {SCRIPT: "well", "x-test-id": test, "x-fault": fault}
    return post(proxy.port, "/v1/chat/completions", REQUEST, headers)


@pytest.mark.parametrize("fault", sampled(list(CULPRITS), 6))
def test_a_fault_of_ours_leaves_the_traffic_alone(faulty: Proxy, fault: str) -> None:
    for number in (1, 2):
        reply = ask(faulty, f"{fault} {number}", fault)
        assert (reply.status, reply.body, reply.complete) == (200, STREAM, True)
        probe = faulty.wait_for_probe(f"{fault} {number}")
        assert "internal-error" in probe["metadata"]["wirelint.findings"]
        assert "internal-error" in probe["comment"]
    told = faulty.wait_for(rf"wirelint: {CULPRITS[fault]} failed: ")
    assert len(told) == 1, "a culprit is told of once"
    assert faulty.process.poll() is None

    assert ask(faulty, f"after {fault}", "none").body == STREAM
    assert faulty.wait_for_record(f"after {fault}")["findings"] == []
    assert faulty.wait_for_probe(f"after {fault}")["metadata"]["wirelint.findings"] == []


def test_everything_arrives_when_the_tee_cannot_be_made(faulty: Proxy) -> None:
    assert ask(faulty, "no tee", "tee").body == STREAM
    assert "internal-error" in faulty.wait_for_probe("no tee")["metadata"]["wirelint.findings"]


def test_a_coding_that_fails_in_an_unknown_way(faulty: Proxy, upstream: Upstream) -> None:
    upstream.scripts["coded"] = replying([STREAM], content_type="text/event-stream", content_encoding="gzip")
    headers = {SCRIPT: "coded", "x-test-id": "decoder", "x-fault": "decoder"}
    assert post(faulty.port, "/v1/chat/completions", REQUEST, headers).body == STREAM
    assert "internal-error" in faulty.wait_for_probe("decoder")["metadata"]["wirelint.findings"]


def test_a_rule_that_cannot_be_loaded_stops_the_start(upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "xx902_broken.py").write_text("def half(\n")
    status, lines = refused(tmp_path, "wirelint_rules=own")
    assert status == 1
    assert len([line for line in lines if "xx902_broken.py:1" in line]) == 1
    assert "Traceback" not in " ".join(lines)
