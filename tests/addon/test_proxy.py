"""`wirelint proxy`: what it makes of its arguments."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from wirelint.addon import proxy as runner
from wirelint.cli.proxy import proxy
from wirelint.registry import shipped

ORIGINS = {
    "https://api.openai.com": "https://api.openai.com",
    "https://api.openai.com/": "https://api.openai.com",
    "HTTP://Example.test:8000": "http://example.test:8000",
    "api.anthropic.com": "https://api.anthropic.com",
    "localhost:11434": "http://localhost:11434",
    "127.0.0.1:8000": "http://127.0.0.1:8000",
    "http://[::1]:8000": "http://[::1]:8000",
}


@pytest.mark.parametrize(("given", "origin"), ORIGINS.items())
def test_origins(given: str, origin: str) -> None:
    assert runner.origin(given) == origin


REFUSED = {
    "https://openrouter.ai/api/v1": "a reverse proxy has no path; give https://openrouter.ai, and /api/v1 to the client",
    "https://h.test/?key=1": "a reverse proxy has no path",
    "ftp://h.test": "not an HTTP address",
    "https://": "not an HTTP address",
    "https://u:p@h.test": "credentials belong to the client",
    "https://h.test:port": "give a URL such as",
    "http://[::1": "give a URL such as",
    "": "not an HTTP address",
}


@pytest.mark.parametrize(("given", "told"), REFUSED.items())
def test_what_cannot_be_an_upstream(given: str, told: str) -> None:
    result = CliRunner().invoke(proxy, ["--upstream", given], standalone_mode=False)
    assert told in str(result.exception)
    assert "\n" not in str(result.exception)


CALLS: dict[str, tuple[list[str], str, list[str]]] = {
    "plain": ([], "mitmdump", ["--listen-port", "8080"]),
    "port and web": (["--web", "--port", "9001"], "mitmweb", ["--listen-port", "9001"]),
    "console": (["--console"], "mitmproxy", ["--listen-port", "8080"]),
    "options of mitmproxy": (
        ["--set", "wirelint_ignore=ID", "-w", "out.mitm", "--ssl-insecure", "~u x"],
        "mitmdump",
        [
            "--listen-port",
            "8080",
            "-s",
            "SCRIPT",
            "--set",
            "wirelint_ignore=ID",
            "-w",
            "out.mitm",
            "--ssl-insecure",
            "~u x",
        ],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given, tool, expected = CALLS[name]
    seen: list[tuple[str, list[str]]] = []

    def run(tool: runner.Tool, upstream: str, port: int, extra: tuple[str, ...]) -> int:
        seen.append((tool, runner.arguments(upstream, port, extra)))
        return 3

    monkeypatch.setattr(runner, "run", run)
    result = CliRunner().invoke(proxy, [*given, "--upstream", "https://h.test"], standalone_mode=False)
    assert (result.exception, result.return_value) == (None, 3)
    script = str(shipped("addons") / "inspector.py")
    whole = ["--mode", "reverse:https://h.test", *expected]
    whole = [script if item == "SCRIPT" else item for item in whole]
    assert seen == [(tool, whole if script in whole else [*whole, "-s", script])]


def test_two_tools_at_once() -> None:
    result = CliRunner().invoke(proxy, ["--upstream", "https://h.test", "--web", "--console"], standalone_mode=False)
    assert "choose one" in str(result.exception)


def test_the_exit_status_is_that_of_mitmproxy(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.run("mitmdump", "https://h.test", 0, ["--no-such-option"]) == 1
    assert "--no-such-option" in capsys.readouterr().err
