"""The plugin for pytest: what passes, what fails and how it reads, and a proxy for a test. One run of pytest for it all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.build import Talk, User, some
from tests.cli.test_check import CUT, write
from wirelint.capture.format import decode
from wirelint.capture.replay import replay
from wirelint.mock import MockServer
from wirelint.pytest_plugin import assert_clean

ROOT = Path(__file__).resolve().parents[2]
CLEAN = Talk((User("Hello"),), text="Hello to you.").record("openai.chat", True)

TESTS = """
import http.client
import json
from urllib.parse import urlsplit

import pytest
from wirelint.pytest_plugin import assert_clean

def ask(proxy, model="mock/healthy", **headers):
    parts = urlsplit(proxy.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "Find the launch date."}],
        "tools": [{"type": "function", "function": {"name": "search_notes", "parameters": {"type": "object",
            "properties": {"query": {"type": "string"}}}}}]})
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json", **headers})
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return answer

class TestWithoutMarker:
    @pytest.fixture
    def wirelint_proxy_factory(self):
        return lambda upstream, **options: (upstream, options)

    def test_no_options(self, wirelint_proxy, wirelint_upstream):
        assert wirelint_proxy == (wirelint_upstream, {})

def test_a_failure_reads_like_the_terminal(wirelint_proxy_factory, wirelint_upstream):
    proxy = wirelint_proxy_factory(wirelint_upstream, fix="unsafe")
    assert proxy.exchanges == [] and proxy.upstream == wirelint_upstream
    ask(proxy, "mock/xml-leak")
    assert [exchange["model"] for exchange in proxy.exchanges] == ["mock/xml-leak"]
    assert_clean(proxy.exchanges)

@pytest.mark.wirelint_proxy(fix="unsafe")
def test_each_has_its_own(wirelint_proxy):
    ask(wirelint_proxy)
    assert wirelint_proxy.findings == []
    assert_clean(wirelint_proxy.exchanges)
    answer = ask(wirelint_proxy, "mock/xml-leak")
    assert answer["choices"][0]["message"]["tool_calls"]
    assert [finding.name for finding in wirelint_proxy.findings] == ["xml-leak"]
    assert len(wirelint_proxy.exchanges) == 2

@pytest.mark.wirelint_proxy(hold="never")
def test_wrong_option(wirelint_proxy):
    pass
"""


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    server = MockServer(seed=3)
    server.start()
    yield server.url
    server.close()


@pytest.mark.live
def test_a_run_of_pytest_passes_and_fails_as_it_should(tmp_path: Path, upstream: str) -> None:
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nwirelint_upstream = {upstream}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "wirelint.pytest_plugin", "-p", "no:cacheprovider", "-W",
               "error", "--strict-markers", "--strict-config", "-rA", str(tmp_path)]  # fmt: skip
    environment = {
        "PYTHONPATH": str(ROOT),
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    outcomes = {
        line.split("::")[-1].split(" ")[0]: line.split(" ")[0] for line in ran.stdout.splitlines() if "::" in line
    }
    assert outcomes == {
        "test_a_failure_reads_like_the_terminal": "FAILED",
        "test_each_has_its_own": "PASSED",
        "test_no_options": "PASSED",
        "test_wrong_option": "ERROR",
    }, ran.stdout + ran.stderr
    for said in (
        "1 exchange in 1 file: 1 error",
        "● LK101 xml-leak  error",
        "wirelint_hold=never: not a time",
    ):
        assert said in ran.stdout
    assert "def assert_clean" not in ran.stdout, "the failure shows the test, not the plugin"


def test_the_plugin_loads_next_to_nothing() -> None:
    code = "import sys, pytest; b = set(sys.modules); import wirelint.pytest_plugin; print(*(set(sys.modules) - b))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert set(ran.stdout.split()) == {"wirelint", "wirelint.pytest_plugin"}


def test_clean_in_every_form(tmp_path: Path) -> None:
    record = decode(CLEAN, "here", "record 1")
    exchange = some(replay(record))
    subjects: list[Any] = [CLEAN, record, exchange, [CLEAN, record], str(write(tmp_path / "a.jsonl", CLEAN)), tmp_path]
    for subject in subjects:
        assert_clean(subject)


def test_faults_in_every_form(tmp_path: Path) -> None:
    record = decode(CUT, "here", "record 1")
    exchange = some(replay(record))
    subjects: list[Any] = [CUT, record, exchange, [CLEAN, record], write(tmp_path / "cut.jsonl", CUT)]
    for subject in subjects:
        with pytest.raises(AssertionError, match=r"(?s)1 error\n\n.*ST604 truncated-stream.*Mercury, Ve"):
            assert_clean(subject)
        assert_clean(subject, ignore="truncated-stream")
        assert_clean(subject, select=["LK", "ID"])


@pytest.mark.parametrize(
    ("subject", "options", "says"),
    [
        ("no/such/file", {}, "no/such/file: no such file"),
        (CLEAN, {"select": "xml-leek"}, "did you mean xml-leak"),
        ({"id": "x"}, {}, "record 1: neither `request` nor `response`"),
        ([CLEAN, 7], {}, "record 2: int is neither"),
    ],
    ids=["no file", "no rule", "no record", "no dictionary"],
)
def test_what_cannot_be_judged(subject: object, options: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        assert_clean(subject, **options)  # type: ignore[arg-type]
