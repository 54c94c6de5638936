"""Help that teaches: every example in it works, and no screen of it is wider than 80 columns."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.command import SAMPLES, Wirelint, few_samples
from wirelint.cli import COMMANDS, EXAMPLES, GROUPS, Guided, command

GUIDED = {name: made for name in COMMANDS if isinstance(made := command(name), Guided)}
STAYING = {"proxy", "mock", "demo", "docs", "run", "doctor", "replay"}
"""Commands that last, need a server or write into the checkout: their examples are only understood, not run."""


def test_the_commands_of_the_terminal_are_guided() -> None:
    mine = {"check", "show", "fix", "rules", "rule", "new-rule", "proxy", "mock", "demo", "where", "completion", "docs"}
    assert mine <= set(GUIDED)
    for name, made in GUIDED.items():
        assert made.examples, name
        assert made.exits, name
        for param in made.params:
            assert isinstance(param, click.Argument) or getattr(param, "help", None), f"{name} {param.name}"


def test_the_first_screen_has_every_command_in_its_place(wirelint: Wirelint) -> None:
    out = wirelint("--help", columns=80).out
    for name, entry in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(entry.about[:40])}", out, re.MULTILINE), name
    headings = [line for line in out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Examples:", *(f"{group}:" for group in GROUPS), "Options:", "Exit status:"]


@pytest.mark.parametrize("name", ["", *GUIDED])
def test_help_fits_80_columns(wirelint: Wirelint, name: str) -> None:
    out = wirelint(*filter(None, [name]), "--help", columns=80).out
    assert max(map(len, out.splitlines())) <= 80
    assert "Examples:" in out
    assert "Exit status:" in out
    assert "\x1b" not in out


def _words(example: str) -> list[str]:
    found = re.search(r'wirelint [^)|>"]*', example)
    assert found is not None, example
    return shlex.split(found[0])[1:]


SHOWN = [words for _, words in EXAMPLES] + [words for made in GUIDED.values() for _, words in made.examples]


def test_the_examples_work(wirelint: Wirelint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "captures").mkdir()
    few_samples(tmp_path / "captures" / "samples")
    monkeypatch.chdir(tmp_path)
    capture = (SAMPLES / "one-call.jsonl").read_bytes()
    for example in SHOWN:
        name, *args = _words(example)
        if (name in STAYING and "--list" not in args and "--check" not in args) or "--watch" in args:
            command(name).make_context(name, args)
            continue
        if "captures/" in args:
            args[args.index("captures/")] = "captures/samples"
        if name == "case":
            args += ["--seconds", "1"]
        ran = wirelint(name, *args, stdin=capture)
        exits = GUIDED[name].exits
        assert str(ran.status) in exits, example
        assert not exits[str(ran.status)].startswith("an input could not"), f"{example}: {ran.err}"
        assert ran.status != 2, f"{example}: {ran.err}"
        assert ran.out or ran.err or name == "docs", example


@pytest.mark.parametrize("module", ["signal", "click", "wirelint.cli.rules"])
def test_ctrl_c_during_the_imports_ends_a_command_without_a_traceback(module: str) -> None:
    program = f"""
import os, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), 2)
sys.meta_path.insert(0, Finder())
from wirelint.__main__ import main
sys.argv[1:] = ["rules"]
main()
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # the tests may ignore it
    )
    assert (done.returncode, done.stderr.strip()) in ((130, ""), (130, "wirelint: interrupted"))
