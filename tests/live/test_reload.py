"""Files of the settings that change while the proxy runs: exchanges that begin afterwards follow them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.build import Talk, chunk, sse
from tests.live.harness import CHUNKED, SCRIPT, SHIM, Client, Peer, Proxy, Upstream, post, replying, running, scripted
from tests.selection import sampled
from wirelint.mock import MockServer

CONFIG = 'rules = ["own"]\nselect = ["XX901"]\n'
BODY = Talk().record("openai.chat", True)["request"]["body"].encode()
REPLY = sse(chunk({"content": "evidence of shouting"}, "stop")).encode()
RULE = "xx901_shouting.py"
KEPT = "the settings from before this change stay in force"


def wirelint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that must succeed, in a folder."""
    command = (sys.executable, "-m", "wirelint", *arguments)
    environment = {**os.environ, "PYTHONPATH": str(SHIM.parents[1])}
    return subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True, timeout=60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a rule of its own, which reports the text of `REPLY`."""
    wirelint(tmp_path, "new-rule", "XX901", "shouting", "--folder", "own")
    (tmp_path / "wirelint.toml").write_text(CONFIG)
    return tmp_path


@pytest.fixture(params=sampled(["mitmdump", "mitmweb"], 1))
def proxy(request: pytest.FixtureRequest, folder: Path, upstream: Upstream) -> Iterator[Proxy]:
    upstream.scripts["shouting"] = replying([REPLY], content_type="text/event-stream")
    web = ("web_open_browser=false", "web_port=0") if request.param == "mitmweb" else ()
    with running(folder, upstream.url, *web, tool=request.param, probe=False) as proxy:
        yield proxy


def findings(proxy: Proxy, name: str) -> list[tuple[str, str]]:
    """The severities and messages that the exchange of this name has."""
    return [(one["severity"], one["message"]) for one in proxy.wait_for_record(name)["findings"]]


def ask(proxy: Proxy, name: str) -> list[tuple[str, str]]:
    """Those of a new exchange."""
    post(proxy.port, "/v1/chat/completions", BODY, {SCRIPT: "shouting", "x-test-id": name})
    return findings(proxy, name)


def test_a_change_applies_to_exchanges_that_begin_afterwards(proxy: Proxy, upstream: Upstream, folder: Path) -> None:
    go_on = threading.Event()
    upstream.scripts["slow"] = scripted(CHUNKED, REPLY[:9], go_on, REPLY[9:], Peer.finish)
    config, rule = folder / "wirelint.toml", folder / "own" / RULE
    says = "the text says 'evidence of shouting'"
    with Client(proxy.port) as client:
        client.ask("/v1/chat/completions", BODY, {SCRIPT: "slow", "x-test-id": "slow"})
        client.head()
        client.read_at_least(9)
        assert ask(proxy, "before") == [("warning", says)]

        config.write_text(f'{CONFIG}severity = {{ XX901 = "error" }}\n')
        proxy.wait_for(r"wirelint: wirelint\.toml changed")
        assert ask(proxy, "configured") == [("error", says)]

        config.write_text(f'{CONFIG}severity = {{ XX901 = "err" }}\n')
        proxy.wait_for(rf"wirelint\.toml: severity\.XX901: 'err' is not allowed; did you mean error\?; {KEPT}")
        assert ask(proxy, "misconfigured") == [("error", says)]

        config.write_text(CONFIG)
        proxy.wait_for(r"wirelint: wirelint\.toml changed", 2)
        text = rule.read_text()
        rule.write_text(text.replace("the text says", "it says"))
        proxy.wait_for(rf"wirelint: own/{RULE} changed")
        assert ask(proxy, "rewritten") == [("warning", says.replace("the text", "it"))]

        rule.write_text(text.replace("def check_reply", "def check_reply(", 1))
        proxy.wait_for(rf"own/{RULE}:\d+: SyntaxError: .*; correct the rule or remove the file; {KEPT}")
        assert ask(proxy, "broken") == [("warning", says.replace("the text", "it"))]

        rule.unlink()
        (folder / "own" / RULE.replace(".py", ".json")).unlink()
        config.write_text('ignore = ["ALL"]\n')
        proxy.wait_for(r"wirelint\.toml.* changed", 3)
        assert ask(proxy, "without") == []
        go_on.set()
        assert client.rest()[1]
    assert findings(proxy, "slow") == [("warning", says)], "it began under the first rules"
    assert " failed: " not in proxy.log
    assert "Traceback" not in proxy.log


@pytest.mark.complete
def test_a_command_is_told_at_its_end_that_a_change_was_not_used(folder: Path) -> None:
    """Its own proxy may print nothing while the command has the terminal."""
    program = (
        "import os, pathlib, time; pathlib.Path('wirelint.toml').write_text('select = [1]\\n')\n"
        "log = pathlib.Path('run.log')\n"
        f"while {KEPT!r} not in log.read_text(): time.sleep(0.05)"
    )
    with MockServer() as server:
        options = ("--captures", "", "--log", "run.log", "--set", f"confdir={folder / 'conf'}")
        done = wirelint(folder, "run", *options, "--base-url", f"ANY={server.url}", "--", sys.executable, "-c", program)
    assert len([line for line in done.stderr.splitlines() if KEPT in line and "wirelint.toml: select" in line]) == 1
