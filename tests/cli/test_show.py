"""`wirelint show` as a list with filters, as a difference, in a pager; and `check --watch`."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.build import Assistant, Talk, User
from tests.cli.test_check import CUT, write
from tests.command import Wirelint
from tests.state.test_issues import mangled
from tests.tables import rows, tables


def turn(number: int, *, model: str = "acme-1", said: str = "Fine.") -> dict[str, Any]:
    history = [part for one in range(number) for part in (User(f"Ask {one}."), Assistant(text="Fine."))]
    record = Talk((*history, User(f"Ask {number}.")), text=said, model=model).record("openai.chat", False)
    body = json.loads(record["response"]["body"])
    record["response"]["body"] = json.dumps({**body, "usage": {"prompt_tokens": 1000, "completion_tokens": 7}})
    return {**record, "id": f"{model}-{number}", "timing": {"started": 1_760_000_000 + number}}


def test_conversations_are_listed(wirelint: Wirelint, tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", *map(turn, range(9)), {**CUT, "id": "cut"})
    lines = wirelint("show", path).out.splitlines()
    assert "Ask 0." in lines[0]
    assert "2025-10-" in lines[0]
    assert lines[0].endswith("9 exchanges, 9,000 tokens in, 63 out")
    assert lines[1].startswith("  ✓ acme-1-8"), "the last exchange has the whole conversation"
    assert lines[2] == "    … 8 clean exchanges (--full lists them)"
    assert lines[-1].startswith("  ● cut")
    assert len(wirelint("show", path, "--full").out.splitlines()) == len(lines) + 7


@rows(tables(__file__)["filters"])
def test_the_list_is_filtered(options: list[str], ids: list[str], wirelint: Wirelint, tmp_path: Path) -> None:
    two = turn(1, said="Lemons."), turn(0, model="acme-2")
    path = write(tmp_path / "run.jsonl", *two, *two, {**CUT, "id": "cut"}, {**CUT, "id": "cut"})
    ran = wirelint("show", path, *options)
    if not ids:
        ran.refuses("")
        return
    assert [id_ for id_ in ("acme-1-1", "acme-2-0", "cut") if f" {id_}" in ran.out] == ids


def test_two_exchanges_are_compared(wirelint: Wirelint, tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", turn(1), turn(1, model="acme-2", said="Bad.\x1b[31m"), turn(1, model="acme-3"))
    lines = wirelint("show", path, "acme-1-1", "--diff", "acme-2-1").out.splitlines()
    assert lines[:2] == ["--- acme-1-1", "+++ acme-2-1"]
    assert [line for line in lines if "reply: " in line][:2] == ["-reply: Fine.", "+reply: Bad.\\u001b[31m"]
    assert wirelint("show", path, "acme-1-1", "--diff", "none").status == 2
    wirelint("show", path, "acme", "--diff", "acme-2-1").refuses("3 exchanges; name two of them")


@pytest.mark.live
@pytest.mark.parametrize("count", [3, 40])
def test_a_long_list_goes_to_the_pager(tmp_path: Path, count: int) -> None:
    write(tmp_path / "run.jsonl", *(turn(0, model=f"m{number}") for number in range(count)))
    pid, descriptor = pty.fork()
    if not pid:
        os.environ.update(PAGER=f"{sys.executable} -c 'import sys; print(len(sys.stdin.readlines()), chr(0x2261))'")
        os.execv(sys.executable, [sys.executable, "-m", "wirelint", "show", str(tmp_path / "run.jsonl")])
    shown = b""
    try:
        while piece := os.read(descriptor, 1 << 16):
            shown += piece
    except OSError:  # the end of a terminal
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert ("≡" in shown.decode()) is (count == 40)


@pytest.mark.live
def test_a_file_that_grows_is_checked_again(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", *mangled(2))
    command = [sys.executable, "-m", "wirelint", "check", str(path), "--watch", "--output-format", "concise"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        first = process.stdout.readline()
        assert ":e1: ID301" in first
        assert "watching" in process.stderr.readline()
        write(path, *mangled(3))
        assert ":e2: ID301" in process.stdout.readline(), "what was printed is not printed again"
        assert "3 exchanges" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 1
