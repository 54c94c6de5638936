"""`--jobs`: the results of several processes are those of one, byte for byte, and Ctrl-C ends all of them."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.test_check import CLEAN, CUT, write
from tests.command import Wirelint
from tests.test_registry import draft
from wirelint.cli import jobs
from wirelint.cli.jobs import Bar, Workers, size_of
from wirelint.cli.options import Selection

CHECK = "    def check_reply("
FAILS = "    def check_request(self, exchange, ledger):\n        raise SystemExit('gone')\n\n" + CHECK
HANGS = FAILS.replace("raise SystemExit('gone')", "import time; open('begun', 'w').close(); time.sleep(60)")
COMMANDS = {
    "check": ("check", "--output-format", "sarif"),
    "fix": ("fix", "-o", "out", "--unsafe-fixes", "--force"),
    "diff": ("fix", "--diff", "--unsafe-fixes"),
    "report": ("report", "-o", "out"),
    "stats": ("stats", "--output-format", "json"),
    "export": ("export", "-o", "out", "--format", "har", "--force"),
}


@pytest.fixture
def captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Captures of several kinds, some unreadable, and a rule that fails."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "captures"
    (folder / "empty").mkdir(parents=True)
    for sample in Path(__file__).parents[2].glob("captures/samples/*.jsonl"):
        shutil.copy(sample, folder)
    write(folder / "clean.jsonl", CLEAN, {**CUT, "id": "cut"})
    (folder / "torn.jsonl").write_text('{"request": {"method": "POST", "ur\n', encoding="utf-8")
    (tmp_path / "rules").mkdir()
    draft(tmp_path / "rules", old=CHECK, new=FAILS)
    return folder


def tree(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return {str(file.relative_to(path)): file.read_bytes() for file in files if file.is_file()}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "fix" else pytest.mark.complete) for name in COMMANDS]
)
def test_several_processes_give_the_results_of_one(
    captures: Path, wirelint: Wirelint, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The bar shows what the workers have done, and a process that somebody else has started goes on."""
    begun: list[Workers] = []

    def enter(workers: Workers) -> Workers:
        begun.append(workers)
        return workers

    monkeypatch.setattr(Workers, "__enter__", enter)
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,), daemon=True)
    other.start()
    command = COMMANDS[name]
    others = ("captures/empty", "captures/clean.jsonl", "captures/clean.jsonl", "nowhere.jsonl")
    paths = ("captures", *(others if command[0] != "fix" else ()))
    runs = []
    for number in (1, 2):
        ran = wirelint(*command, *paths, "--rules", "rules", "--jobs", number)
        runs.append((ran, tree(captures.parent / "out")))
    assert runs[0] == runs[1]
    assert "odd-reply failed" in runs[0][0].err
    assert "torn.jsonl" in runs[0][0].err
    assert other.is_alive()
    other.terminate()
    other.join()
    bar = begun[-1]._bar
    records = sum(len(path.read_text("utf-8").splitlines()) for path in captures.glob("*.jsonl")) - 1
    if name == "fix":
        assert (bar.counts[0], round(bar.counts[1])) == (records, bar.size - size_of("captures/torn.jsonl"))


def test_clean_exchanges_of_workers_keep_api_and_model(tmp_path: Path, wirelint: Wirelint) -> None:
    """JUnit has a case for every exchange, also for those without findings, of which workers return no messages."""
    path = write(tmp_path / "clean.jsonl", CLEAN)
    runs = [wirelint("check", path, path, "--isolated", "--output-format", "junit", "--jobs", n).out for n in (1, 2)]
    assert runs[0] == runs[1]
    assert f'classname="openai.chat.{json.loads(CLEAN["request"]["body"])["model"]}"' in runs[0]


def test_small_captures_and_standard_input_need_one_process(captures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: range(8), raising=False)

    def processes(number: int | None, *paths: str) -> int:
        return Workers(number, Bar(paths, "checking"), Selection().scopes).processes

    assert processes(None, "captures") == processes(2, "-", "captures") == processes(4, "captures/clean.jsonl") == 1
    assert processes(2, "captures") == 2
    monkeypatch.setattr(jobs, "_SMALL", 0)
    assert processes(None, "captures") == 4


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="the terminal sends Ctrl-C to a group of processes")
def test_an_interrupt_is_one_line_and_ends_every_process(captures: Path) -> None:
    draft(captures.parent / "rules", old=CHECK, new=HANGS)
    command = [sys.executable, "-m", "wirelint", "check", "captures", "--rules", "rules", "--jobs", "2"]
    environment = {**os.environ, "TMPDIR": str(captures.parent / "scratch")}
    (captures.parent / "scratch").mkdir()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True) as run:
        deadline = time.monotonic() + 60
        while not Path("begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(run.pid, signal.SIGINT)
        _, err = run.communicate(timeout=30)
    assert (run.returncode, err.strip()) == (130, "wirelint: interrupted")
    assert not list((captures.parent / "scratch").iterdir())
