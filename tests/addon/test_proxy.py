"""`wirelint proxy`: what it makes of its arguments."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Sequence

import pytest
from click.testing import CliRunner
from mitmproxy.options import Options
from mitmproxy.tools import cmdline
from mitmproxy.tools.dump import DumpMaster
from mitmproxy.tools.main import process_options
from mitmproxy.tools.web.master import WebMaster

from tests.live.harness import free_port
from tests.tables import pairs, rows, tables
from wirelint.addon import proxy as runner
from wirelint.addon import proxy as starting
from wirelint.cli.run import proxy
from wirelint.registry import shipped

TABLES = tables(__file__)


@pairs(TABLES["origins"])
def test_origins(given: str, origin: str) -> None:
    assert runner.origin(given) == origin


EXPORTS: dict[str, list[str]] = TABLES["exports"]


@pytest.mark.parametrize("case", EXPORTS)
def test_exports_fit_the_upstream(case: str) -> None:
    upstream, host = case.split()
    assert runner.exports(upstream, host, 8080) == EXPORTS[case]


@pairs(TABLES["refused"])
def test_what_cannot_be_an_upstream(given: str, told: str) -> None:
    result = CliRunner().invoke(proxy, ["--upstream", given], standalone_mode=False)
    assert told in str(result.exception)
    assert "\n" not in str(result.exception)


@rows(TABLES["calls"])
def test_arguments(given: list[str], tool: str, expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, list[str]]] = []

    def run(tool: runner.Tool, upstream: str, host: str, port: int, extra: tuple[str, ...], *, live: bool) -> int:
        assert not live
        seen.append((tool, runner.arguments(upstream, host, port, extra)))
        return 3

    monkeypatch.setattr(runner, "run", run)
    result = CliRunner().invoke(proxy, [*given, "--upstream", "https://h.test"], standalone_mode=False)
    assert (result.exception, result.return_value) == (None, 3)
    script = str(shipped("addons") / "inspector.py")
    whole = ["--mode", "reverse:https://h.test", *expected]
    whole = [script if item == "SCRIPT" else item for item in whole]
    assert seen == [(tool, whole if script in whole else [*whole, "-s", script])]


@pytest.mark.parametrize("other", ["--web", "--live"])
def test_two_tools_at_once(other: str) -> None:
    result = CliRunner().invoke(proxy, ["--upstream", "https://h.test", other, "--console"], standalone_mode=False)
    assert "choose one" in str(result.exception)


@rows(TABLES["refused_starts"])
def test_a_start_that_fails_says_why_in_one_line(
    extra: tuple[str, ...], told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    argv, stderr = sys.argv[:], sys.stderr
    result = CliRunner().invoke(proxy, ["--upstream", "https://h.test", "--port", "0", *extra])
    assert (result.exit_code, result.exception.__class__) == (2, SystemExit)
    assert told in result.output
    assert "listening" not in result.output + "".join(capfd.readouterr())
    assert not result.output.endswith("\n\n")  # mitmproxy prints an empty line to stdout
    assert (sys.argv, sys.stderr) == (argv, stderr)


@pytest.mark.parametrize("web", [False, True])
def test_a_taken_port_is_told_before_anything_listens(web: bool, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        given = ("--web", "--set", f"web_port={port}", "--port", "0") if web else ("--port", str(port))
        result = CliRunner().invoke(proxy, ["--upstream", "https://h.test", *given])
    assert result.exit_code == 2
    assert f"port {port} is taken by another program; choose another with --" in result.output
    assert "listening" not in result.output + "".join(capfd.readouterr())


def test_mitmweb_needs_a_port_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    given = ("--web", "--set", f"web_port={port}", "--port", str(port))
    result = CliRunner().invoke(proxy, ["--upstream", "https://h.test", *given])
    assert result.exit_code == 2
    assert f"port {port} is the proxy's; choose another with --port or --set web_port=PORT" in result.output
    assert "listening" not in result.output + "".join(capfd.readouterr())


@pytest.mark.parametrize("web", [False, True])
@rows(TABLES["listens"])
def test_listens_on_this_machine_only(
    given: list[str], expected: str, web: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mitmproxy's own parser says where the proxy and the page of mitmweb listen."""
    opened: list[tuple[str, str]] = []

    def start(_: object, parser: object, arguments: Sequence[str], *__: object) -> None:
        async def parse() -> Options:
            opts = Options()
            (WebMaster if web else DumpMaster)(opts, with_termlog=False)  # its addons bring options along
            args = (cmdline.mitmweb if web else cmdline.mitmdump)(opts).parse_args([*arguments])
            opts.set(*args.setoptions, defer=True)
            process_options(None, opts, args)
            return opts

        opts = asyncio.run(parse())
        opened.append((opts.listen_host, opts.web_host if web else "127.0.0.1"))

    monkeypatch.setattr(starting, "run_mitmproxy", start)
    tool = ["--web"] if web else []
    result = CliRunner().invoke(proxy, ["--upstream", "https://h.test", *tool, *given], standalone_mode=False)
    assert (result.exception, opened) == (None, [(expected, "127.0.0.1")])
