"""`wirelint report`: what it writes, what it says, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran
from tests.cli.test_check import CLEAN, CUT, write

Wirelint = Callable[..., Ran]


def test_a_page_is_written_where_it_says(wirelint: Wirelint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = write(tmp_path / "run.jsonl", CLEAN, CUT)
    monkeypatch.chdir(tmp_path)
    ran = wirelint("report", capture)
    assert (ran.status, ran.out) == (0, "report.html\n")
    assert "2 exchanges, 1 with findings (" in ran.err
    assert "kB)" in ran.err
    assert 'data-manual="ST604"' in Path("report.html").read_text(encoding="utf-8")
    again = wirelint("report", capture, "-o", "report.html", "--ignore", "ST604", "--title", "Tuesday")
    assert "2 exchanges, 0 with findings" in again.err
    html = Path("report.html").read_text(encoding="utf-8")
    assert "<title>Tuesday · wirelint</title>" in html
    assert "data-manual=" not in html


def test_what_cannot_be_read_is_told_and_the_rest_is_written(wirelint: Wirelint, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    ran = wirelint("report", write(tmp_path / "run.jsonl", CLEAN), tmp_path / "none.jsonl", "-o", out)
    assert ran.status == 2
    assert "none.jsonl: no such file" in ran.err
    assert "none.jsonl: no such file" in out.read_text(encoding="utf-8")


REFUSED = {
    "a folder": ("folder", "a folder; name a file"),
    "in no folder": ("none/r.html", "make it first"),
    "the capture itself": ("run.jsonl", "would be overwritten"),
    "something that is no page": ("notes.txt", "not an HTML page"),
}


@pytest.mark.parametrize(("out", "said"), REFUSED.values(), ids=REFUSED)
def test_refuses(wirelint: Wirelint, tmp_path: Path, out: str, said: str) -> None:
    capture = write(tmp_path / "run.jsonl", CLEAN)
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    before = {path.name for path in tmp_path.iterdir()}
    ran = wirelint("report", capture, "-o", tmp_path / out)
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == before
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_the_page_is_no_output(wirelint: Wirelint, tmp_path: Path) -> None:
    ran = wirelint("report", write(tmp_path / "run.jsonl", CLEAN), "-o", "-")
    assert (ran.status, ran.out) == (2, "")
    assert "name one" in ran.err


def test_nothing_to_report(wirelint: Wirelint, tmp_path: Path) -> None:
    ran = wirelint("report", tmp_path / "none.jsonl", "-o", tmp_path / "r.html")
    assert ran.status == 2
    assert "no exchange to report" in ran.err
    assert not (tmp_path / "r.html").exists()
