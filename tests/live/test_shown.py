"""The commands of the documentation that start processes: each is started as it stands, and stopped.

Nothing leaves this machine: no client is there, and no request is made of the vendors that the commands name. Ports are
those that are free, and the agents (`claude`, `codex`, …) are programs that do nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.build import some
from tests.docs.test_shown import FILES, LASTING, ROOT, WRITTEN, Shown, commands
from tests.live.harness import PATIENCE
from tests.selection import sampled

AGENTS = ("claude", "codex", "opencode", "pytest")
_LISTENS = re.compile(r"listening at|http://127\.0\.0\.1:")
WATCHED = ("proxy", "mock")
"""They go on until they are stopped; what they say when they are ready is waited for."""

SHOWN = {
    tuple(shown.words): shown
    for page in WRITTEN
    for shown in commands(page, ("wirelint", "mitmdump", "mitmweb"))
    if shown.words[0] != "wirelint" or shown.words[1] in LASTING - {"demo", "replay"}
}
"""The demo has tests of its own, and so has `replay`, which asks a vendor for replies to captures of the user."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("started")
    (here / "bin").mkdir()
    for name in AGENTS:
        (here / "bin" / name).write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
        (here / "bin" / name).chmod(0o755)
    (here / "bin" / "python").symlink_to(sys.executable)
    (here / "agent.py").write_text("", encoding="utf-8")
    shown = some(
        re.search(r"```toml\n(# agent\.toml.*?)```", (ROOT / "docs" / "mock.md").read_text(encoding="utf-8"), re.DOTALL)
    )
    (here / "agent.toml").write_text(shown[1], encoding="utf-8")
    (here / "captures" / "RUN").mkdir(parents=True)
    (here / "captures" / "RUN" / "flows.mitm").write_bytes(b"")
    shutil.copy(FILES / "traffic.har", here)
    (here / "addons").symlink_to(ROOT / "addons")
    shutil.copy(ROOT / "addons" / "policies.toml", here / "policies.toml")
    return here


def started(words: list[str], folder: Path) -> list[str]:
    """The words of a command for this machine: free ports, the settings of mitmproxy in a folder of their own."""
    made = [str(ROOT / "addons" / "inspector.py") if word == "$(wirelint where addon)" else word for word in words]
    settings = ["--set", f"confdir={folder / 'conf'}"]
    if made[0] != "wirelint":
        ports = ["--set", "web_port=0", "--set", "web_open_browser=false"] if made[0] == "mitmweb" else []
        run = f"from mitmproxy.tools.main import {made[0]}; {made[0]}()"
        return [sys.executable, "-u", "-c", run, *made[1:], *settings, *ports, "-p", "0"]
    made = [sys.executable, "-u", "-m", *made]
    if "--port" in made:
        made[made.index("--port") + 1] = "0"
    elif made[4] in WATCHED and "--list" not in made:
        made += ["--port", "0"]
    if made[4] == "proxy":
        made += settings
    if "--web" in made:
        made += ["--set", "web_port=0", "--set", "web_open_browser=false"]
    return made


@pytest.mark.parametrize("shown", sampled(list(SHOWN.values()), 1), ids=str)
def test_a_command_starts(shown: Shown, folder: Path) -> None:
    if "--console" in shown.words:
        pytest.skip("the console takes a terminal; its addon is the one of mitmweb")
    words = started(shown.words, folder)
    stays = shown.words[0] != "wirelint" or (shown.words[1] in WATCHED and "--list" not in shown.words)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    output = folder / "output.txt"
    with output.open("wb") as out:
        process = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        if not stays:
            assert process.wait(PATIENCE) in (0, 1), output.read_text("utf-8", "replace")
            return
        until = time.monotonic() + PATIENCE
        while not _LISTENS.search(output.read_text("utf-8", "replace")):
            assert process.poll() is None, output.read_text("utf-8", "replace")
            assert time.monotonic() < until, output.read_text("utf-8", "replace")
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) in (0, 130), output.read_text("utf-8", "replace")
        assert "Traceback" not in output.read_text("utf-8", "replace")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
