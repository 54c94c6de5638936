"""Captures of a fleet: runs in parts, runs of several proxies, and workers that share them out."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.build import Assistant, Talk, Turn, User, schema
from tests.cli.test_check import write
from tests.command import Ran, Wirelint, read_lines
from tests.selection import sampled
from tests.test_registry import draft
from wirelint.capture import offline
from wirelint.view import parquet

ROOT = Path(__file__).parents[2]
DAY = 1769852700.0
PORTS = ("Hove", "Rye", "Deal", "Bude", "Looe")
Line = dict[str, Any]


def _turns(name: str, started: float) -> list[Line]:
    """Return a conversation of four exchanges. The first reply leaks markup, which stays in the history."""
    leak = f'<tool_call>{{"name": "tide", "arguments": {{"port": "{name}"}}}}</tool_call>'
    history: list[Turn] = [User(f"When is the tide at {name}?")]
    made = []
    for number, text in enumerate((leak, f"High at nine in {name}.", f"Low at three in {name}.", "You are welcome.")):
        talk = Talk(tuple(history), text=text, tools={"tide": schema(["port"], port="string")})
        timing = {"started": started + 10 * number, "duration_ms": 1500.0}
        made.append({**talk.record("openai.chat", False), "id": f"{name}-{number}", "timing": timing})
        history += [Assistant(text), User(f"And then, number {number}?")]
    return made


@pytest.fixture
def lines(wirelint: Wirelint, tmp_path: Path) -> list[Line]:
    """The samples and some conversations, one after the other in time, with the roots that a proxy writes."""
    samples = [line for file in sampled(sorted(ROOT.glob("captures/*/*.jsonl")), 1) for line in read_lines(file)]
    talks = [_turns(name, DAY + number) for number, name in enumerate(PORTS)]
    mixed = [line for lines in zip(*talks, strict=True) for line in lines]
    write(tmp_path / "all.jsonl", *samples, *mixed)
    assert wirelint("export", tmp_path / "all.jsonl", "-o", tmp_path / "lines.jsonl").status == 0
    return read_lines(tmp_path / "lines.jsonl")


def _run(folder: Path, proxy: str, lines: Sequence[Line], parts: int) -> None:
    """Write a run in parts."""
    size = -(-len(lines) // parts)
    for number in range(parts):
        part = folder / f"20260131T09{number:02}00Z-{proxy}"
        part.mkdir(parents=True)
        write(part / "exchanges.jsonl", *lines[number * size : (number + 1) * size])


def _findings(ran: Ran) -> list[Line]:
    """Return the findings, without their files and the counts of the files, in the order of exchanges."""
    assert "failed" not in ran.err
    found = [json.loads(line) for line in ran.out.splitlines()]
    of_a_file = {"source": "", "count": 0, "last_seen": ""}
    return sorted(({**one, **of_a_file} for one in found), key=lambda one: (one["exchange"], json.dumps(one)))


@pytest.fixture
def check(wirelint: Wirelint, tmp_path: Path) -> Callable[..., Ran]:
    """Checks a folder below the test's own and returns all findings as lines of JSON."""
    options = ("--output-format", "jsonl", "--all-occurrences", "--exit-zero")
    return lambda place, *more: wirelint("check", tmp_path / place, *options, *more)


@pytest.mark.parametrize("slices", sampled([1, 4], 1))
def test_parts_of_a_run_are_checked_as_one(
    check: Callable[..., Ran], lines: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slices: int
) -> None:
    monkeypatch.setattr(offline, "_SLICE", sum(len(json.dumps(line)) for line in lines) // slices)
    _run(tmp_path / "captures", "3f2a9c11", lines, 5)
    one = check("captures", "--jobs", 1)
    assert _findings(one) == _findings(check("lines.jsonl"))
    several = check("captures", "--jobs", 2)
    assert (several.out, several.err) == (one.out, one.err)
    assert ("Deal-3", "Deal-0") in {(found["exchange"], found["first_seen"]) for found in _findings(one)}


def test_conversations_are_followed_from_proxy_to_proxy(
    check: Callable[..., Ran], lines: list[Line], tmp_path: Path
) -> None:
    talks = [line for line in lines if line["id"][:-2] in PORTS]
    for proxy, chosen in (("aaaaaaaa", talks[::2]), ("bbbbbbbb", talks[1::2])):
        _run(tmp_path / "captures", proxy, chosen, 2)
    write(tmp_path / "talks.jsonl", *talks)
    whole = _findings(check("talks.jsonl"))
    assert _findings(check("captures", "--interleave")) == whole
    known = [{one["exchange"] for one in found if one["exchange"] != one["first_seen"]}
             for found in (whole, _findings(check("captures")))]  # fmt: skip
    assert known[1] < known[0], "a proxy alone takes a known fault for a new one"


# --- Ray --------------------------------------------------------------------------------------------------------------

KILLS = """    def check_request(self, exchange, ledger):
        import os
        try:
            os.close(os.open("killed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return iter(())
        os.kill(os.getpid(), 9)

    def check_reply("""


@pytest.fixture
def on_ray(
    wirelint: Wirelint, lines: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Ran]]:
    """Checks the captures of two runs on a Ray cluster of this machine."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'wirelint[ray]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(offline, "_SLICE", 100_000)
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    _run(tmp_path / "captures", "3f2a9c11", lines[::2], 2)
    _run(tmp_path / "captures", "77b01c2d", lines[1::2], 2)
    yield lambda *more: wirelint("check", "captures", "--exit-zero", "--ray", "", "--jobs", 2, "-o", "tables", *more)
    ray.shutdown()


def _rows(folder: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of each table, in an order that the files do not decide."""
    made = {}
    for dataset in parquet.DATASETS:
        columns = "* EXCLUDE (number)" if dataset == "exchanges" else "*"
        found = duckdb.execute(f"SELECT {columns} FROM '{folder}/{dataset}/**/*.parquet'").fetchall()
        made[dataset] = sorted(found, key=repr)
    return made


def test_the_tables_of_a_cluster_are_those_of_one_process(on_ray: Callable[..., Ran], wirelint: Wirelint) -> None:
    assert wirelint("export", "captures", "--format", "parquet", "-o", "one", "--jobs", 1).status == 0
    ran = on_ray()
    assert (ran.status, ran.out) == (0, "")
    assert re.search(r"^wrote tables: \d+ tasks, 0 done before; at most \d+ MiB for a worker$", ran.err, re.MULTILINE)
    assert _rows("tables") == _rows("one")
    assert "0 tasks" in on_ray().err, "what is done is not done again"
    last = sorted(Path("captures").iterdir())[-1] / "exchanges.jsonl"
    write(last, *read_lines(last), {**_turns("Ryde", DAY)[0], "root": "0"})
    tasks = re.search(r"wrote tables: (\d+) tasks, (\d+) done before", on_ray().err)
    assert tasks is not None
    assert 0 < int(tasks[1]) <= int(tasks[2]), "only the run that has grown is checked again"
    wirelint("export", "captures", "--format", "parquet", "-o", "one", "--jobs", 1, "--force")
    assert _rows("tables") == _rows("one")


def test_a_killed_worker_changes_nothing(on_ray: Callable[..., Ran], wirelint: Wirelint, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    draft(tmp_path / "rules", old="    def check_reply(", new=KILLS)
    assert on_ray("--rules", "rules").status == 0
    assert (tmp_path / "killed").exists()
    wirelint("export", "captures", "--format", "parquet", "-o", "one", "--jobs", 1, "--rules", "rules")
    assert _rows("tables") == _rows("one")


def test_without_the_extra_one_line_names_it(wirelint: Wirelint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    ran = wirelint("check", ROOT / "captures" / "samples", "--ray", "-o", "tables")
    ran.refuses("pip install 'wirelint[ray]'")
    assert wirelint("check", ROOT / "captures" / "samples", "--ray", "").status == 2
