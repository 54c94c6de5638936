"""`wirelint replay` against the mock server, and against servers that hang, refuse and break off."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.build import Call, Talk, User, schema
from tests.cli.test_check import write
from tests.command import Wirelint
from tests.live.harness import Upstream, replying, scripted
from tests.tables import rows, tables
from wirelint.capture.format import read_lines
from wirelint.capture.record import Record
from wirelint.cli import replay as replaying
from wirelint.mock import MockServer
from wirelint.model import Timing

pytestmark = pytest.mark.live

TABLES = tables(__file__)
KEY = "sk-replay-0123456789abcdefABCDEF"
TOOLS = {"tide": schema(["port"], port="string")}


def asked(number: int, api: str = "openai.chat", *, stream: bool = True) -> dict[str, Any]:
    talk = Talk((User(f"Port {number}?"),), tools=TOOLS, calls=(Call("tide", {"port": "Hove"}),), model="acme-1")
    return {**talk.record(api, stream), "id": f"e{number}"}


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with MockServer(pace=5) as server:
        yield server.url


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


def lines(folder: Path) -> list[dict[str, Any]]:
    return [line for file in sorted(folder.glob("*/exchanges.jsonl")) for line in read_lines(file)]


def test_requests_are_sent_again_and_compared(
    wirelint: Wirelint, tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    redacted = asked(3)
    redacted["request"]["body"] = redacted["request"]["body"].replace("Port 3", "[redacted:0123abcd]")
    cut = asked(4)
    cut["request"]["body"] = cut["request"]["body"][:-20]
    anthropic = asked(5, "anthropic.messages")
    capture = write(tmp_path / "run.jsonl", asked(1), asked(2, stream=False), redacted, cut, anthropic)
    out = tmp_path / "new"
    args = capture, "--to", target, "--model", "acme-2", "-o", out, "--key-env", "MY_KEY"
    ran = wirelint("replay", *args, "--output-format", "json", "--samples", "2")
    assert ran.status == 0, ran.err
    assert "1 request skipped: with redacted parts" in ran.err
    assert "6 requests answered" in ran.err
    (compared,) = json.loads(ran.out)
    assert (compared["model"], compared["pairs"], compared["unmatched"]) == ("acme-2", 6, 0)
    made = {line["id"]: line for line in lines(out)}
    assert sorted(made) == ["e1", "e1.2", "e2", "e2.2", "e5", "e5.2"]
    first = made["e1"]
    before = json.loads(asked(1)["request"]["body"])
    assert json.loads(first["request"]["body"]) == {**before, "model": "acme-2"}
    assert first["replay"] == {"job": first["replay"]["job"], "of": "e1", "sample": 1}
    assert len(first["response"]["chunks"]) > 3, "a stream is recorded as it arrives"
    assert first["timing"]["first_token_ms"] > 0
    assert first["api"] == "openai.chat"
    assert made["e5"]["request"]["url"] == f"{target}/v1/messages"
    assert KEY not in "".join(file.read_text() for file in out.glob("*/*"))

    again = wirelint("replay", *args, "--samples", "2")
    assert again.status == 0
    assert "6 requests answered by an earlier run" in again.err
    assert len(lines(out)) == 6, "a second run sends nothing again"


def test_a_budget_is_kept_and_continued(wirelint: Wirelint, tmp_path: Path, target: str) -> None:
    capture, out = write(tmp_path / "run.jsonl", *map(asked, range(5))), tmp_path / "new"
    args = capture, "--to", target, "-o", out, "--budget", "3"
    ran = wirelint("replay", *args)
    assert "the budget of 3 requests is used up: 2 requests left" in ran.err
    assert len(lines(out)) == 3
    assert "3 requests answered by an earlier run" in wirelint("replay", *args).err
    assert len(lines(out)) == 5


def test_an_interrupted_run_leaves_a_valid_capture(wirelint: Wirelint, tmp_path: Path, target: str) -> None:
    capture, out = write(tmp_path / "run.jsonl", *map(asked, range(40))), tmp_path / "new"
    args = "replay", str(capture), "--to", target, "-o", str(out), "--concurrency", "1", "--rate", "240"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "wirelint", *args], stderr=subprocess.PIPE, env=environment
    ) as process:
        while process.poll() is None and not any(file.stat().st_size for file in out.glob("*/exchanges.jsonl")):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1].decode()
    assert process.returncode == 130, said
    assert "the same command continues" in said
    count = len(lines(out))
    assert 0 < count < 40
    assert wirelint("check", out, "--exit-zero").status == 0
    assert (
        f"{count} request{'s' * (count > 1)} answered by an earlier run"
        in wirelint("replay", capture, "--to", target, "-o", out, "--budget", "1").err
    )


def test_servers_that_fail(wirelint: Wirelint, tmp_path: Path, upstream: Upstream) -> None:
    capture, out = write(tmp_path / "run.jsonl", *map(asked, range(3))), tmp_path / "new"
    args = "replay", capture, "--to", upstream.url, "-o", out, "--concurrency", "1"
    busy = b'{"error": {"message": "slow down\\u001b[31m"}}'
    upstream.default = replying([busy], status=429, content_type="application/json")
    ran = wirelint(*args)
    assert ran.status == 1
    assert "failed: 3 × status 429 (slow down\\u001b[31m)" in ran.err
    upstream.default = scripted(
        lambda peer: peer.head(content_type="text/event-stream"), lambda peer: peer.wait_for_close()
    )
    ran = wirelint(*args, "--timeout", "0.5")
    assert "3 × no byte for 0.5 s" in ran.err, "those of a busy server are sent again"
    upstream.default = replying([b'{"error": {"message": "bad key"}}'], status=401)
    ran = wirelint(*args)
    ran.refuses("status 401 (bad key); set the variable of its key")
    ends = sorted(line["end"] for line in lines(out))  # two runs of one second are in any order
    assert ends == ["complete"] * 3 + ["upstream-died"] * 3


CUT = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
BROKEN = {
    "length": (CUT + b"content-length: 90\r\n\r\ndata: {}\n\n", "80 bytes of the reply are missing"),
    "chunks": (CUT + b"transfer-encoding: chunked\r\n\r\na\r\ndata: {}\n\n\r\nff\r\nda", "IncompleteRead"),
    "coding": (CUT + b"content-encoding: gzip\r\ncontent-length: 5\r\n\r\nplain", "decompressing"),
    "no head": (b"", "closed"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_replies_that_break_off(upstream: Upstream, name: str) -> None:
    sent, why = BROKEN[name]
    upstream.default = scripted(lambda peer: peer.send(sent), lambda peer: peer.close())
    url = f"{upstream.url}/v1/chat/completions"
    job = replaying._Job("job", "a", 1, "openai.chat", "m", url, {"content-type": "application/json"}, b"{}")
    reply = replaying.send(job, 5.0)
    assert reply.end == "upstream-died"
    assert why in (reply.error or ""), reply.error
    kept = {"length": b"data: {}\n\n", "chunks": b"data: {}\n\nda"}
    assert (reply.response_body or b"") == kept.get(name, b"")


def test_a_redirect_is_not_followed(wirelint: Wirelint, tmp_path: Path, upstream: Upstream) -> None:
    upstream.default = replying([b""], status=308, location="https://elsewhere.test/v1")
    ran = wirelint("replay", write(tmp_path / "run.jsonl", asked(1)), "--to", upstream.url, "-o", tmp_path / "new")
    ran.refuses("it redirects to https://elsewhere.test/v1")


def test_money_is_counted(wirelint: Wirelint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = {"prompt_tokens": 100_000, "completion_tokens": 100_000}
    said = {"message": {"role": "assistant", "content": "Nine."}, "finish_reason": "stop"}
    body = json.dumps({"object": "chat.completion", "choices": [{"index": 0, **said}], "usage": usage}).encode()
    sent: list[str] = []

    def answer(job: replaying._Job, _timeout: float) -> Record:
        sent.append(job.headers["authorization"])
        made = Record(job.of, "POST", job.url, tuple(job.headers.items()), job.body, 200, end="complete")
        head, timing = (("content-type", "application/json"),), Timing(1_760_000_000.0, 1.0, None, 2.0)
        return replace(made, response_headers=head, response_body=body, chunks=((1.0, len(body)),), timing=timing)

    monkeypatch.setattr(replaying, "send", answer)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    capture = write(tmp_path / "run.jsonl", *(asked(number, stream=False) for number in range(20)))
    args = capture, "--to", "https://api.openai.com/v1", "--model", "gpt-4o", "-o", tmp_path / "new"
    ran = wirelint("replay", *args, "--budget", "$2", "--concurrency", "1")
    assert ran.status == 0, ran.err
    assert 1 < len(sent) < 20, "each costs more than a cent and less than two dollars"
    assert sent[0] == f"Bearer {KEY}"
    assert "the budget of $2.00 is used up: " in ran.err
    assert "; cost $2" in ran.err


@rows(TABLES["wrong"])
def test_what_cannot_be_sent_is_one_line(
    args: list[str], message: str, wirelint: Wirelint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("SOME", KEY)
    capture = write(tmp_path / "run.jsonl", asked(1, "anthropic.messages"))
    wirelint("replay", capture, *args, "-o", tmp_path / "new").refuses(message)
    assert not (tmp_path / "new").exists()


@rows(TABLES["urls"])
def test_the_path_of_the_api_below_the_base(api: str, captured: str, base: str, url: str, tmp_path: Path) -> None:
    record = asked(1, api)
    record["request"]["url"] = captured
    (job,) = replaying._Plan(base, None, 1, KEY).read([str(write(tmp_path / "run.jsonl", record))])
    assert job.url == url
    assert KEY in job.headers["x-api-key" if api.startswith("anthropic") else "authorization"]
    assert "cookie" not in job.headers


def test_the_model_may_be_in_the_path(tmp_path: Path) -> None:
    record = asked(1, "google.generate_content")
    (job,) = replaying._Plan("http://t", "new/er", 1, "").read([str(write(tmp_path / "run.jsonl", record))])
    assert "/models/new%2Fer:" in job.url
    assert job.body == record["request"]["body"].encode()
