"""Completion, by the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.build import Talk
from tests.cli.test_check import write
from tests.tables import tables
from wirelint.cli import cli

ROOT = Path(__file__).resolve().parents[2]
ASKED: dict[str, tuple[str, list[str]]] = tables(__file__)["asked"]


def _asked(tmp_path: Path) -> dict[str, str]:
    record = Talk(text="Hi.").record("openai.chat", False)
    capture = write(tmp_path / "one.jsonl", {**record, "id": "first"}, {**record, "id": "second"})
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\x00\x01 no capture")
    return {name: line.format(capture=capture, garbage=garbage) for name, (line, _) in ASKED.items()}


def test_what_is_completed(tmp_path: Path) -> None:
    for name, line in _asked(tmp_path).items():
        words = line.split(" ")
        env = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_WIRELINT_COMPLETE": "bash_complete"}
        out = CliRunner().invoke(cli, [], prog_name="wirelint", env=env).output
        assert out.split() == [f"plain,{word}" for word in ASKED[name][1]], name


SHELLS = {
    "bash": 'eval "$(wirelint completion bash)"; COMP_WORDS=({words}); COMP_CWORD={last}; '
    '_wirelint_completion wirelint; printf "%s\\n" "${{COMPREPLY[@]}}"',
    "fish": 'wirelint completion fish | source; complete -C "{line}" | string replace -r "\\t.*" ""',
    "zsh": 'autoload -U compinit; compinit -u; eval "$(wirelint completion zsh)"; '
    "env COMP_WORDS='{line}' COMP_CWORD={last} _WIRELINT_COMPLETE=zsh_complete wirelint | sed -n 2~3p",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_completes(shell: str, tmp_path: Path) -> None:
    """A value, through the script that the shell was given."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    program = tmp_path / "wirelint"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m wirelint "$@"\n')
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    flags = {"bash": ["--norc"], "fish": ["--no-config"], "zsh": ["-f"]}[shell]
    line = "wirelint rule mangled"
    script = SHELLS[shell].format(line=line, words=line, last=line.count(" "))
    run = subprocess.run(
        [shell, *flags, "-c", script], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.stdout.split() == ["mangled-id"], run.stderr


def test_paths_are_the_shells_business() -> None:
    for line in ("wirelint check capt", "wirelint show capt", "wirelint fix x -o ou"):
        env = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_WIRELINT_COMPLETE": "bash_complete"}
        out = CliRunner().invoke(cli, [], prog_name="wirelint", env=env).output
        assert out.startswith("file,"), line
