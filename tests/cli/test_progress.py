"""The bar: on a terminal alone, away before anything else is printed, gone at the end."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.build import Talk
from tests.cli.test_check import write
from tests.fakes import Terminal
from wirelint.capture.readers import read
from wirelint.capture.record import Record
from wirelint.cli import jobs as progress
from wirelint.cli.jobs import Bar
from wirelint.view.screen import Screen

RECORD = Talk(text="Hi." * 400).record("openai.chat", False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(3):
        write(tmp_path / f"{number}.jsonl", RECORD, RECORD)
    return tmp_path


def _run(folder: Path, out: io.StringIO, results: io.StringIO) -> list[str]:
    """What the terminal was sent before each result."""
    console = Screen(out, width=80, color_system=None, force_terminal=out.isatty() or None)
    told = []
    with Bar([str(folder)], "checking", console) as bar:
        for item in bar.follow(read([folder])):
            assert isinstance(item, Record)
            bar.hide(results)
            told.append(out.getvalue())
    told.append(out.getvalue())
    return told


def test_the_bar_grows_and_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    told = _run(folder, Terminal(), Terminal())
    for number in (1, 6):
        assert "checking ━" in told[-1]
        assert f"{number} exchanges" in told[-1]
    # Before a result, and at the end, the last thing said is: cursor shown, line empty.
    assert all(text.endswith("\x1b[?25h\r\x1b[1A\x1b[2K") for text in told[1:])


@pytest.mark.parametrize(("made", "patience"), [(io.StringIO, 0.0), (Terminal, 1e9)], ids=["no terminal", "short work"])
def test_there_is_no_bar(
    folder: Path, monkeypatch: pytest.MonkeyPatch, made: type[io.StringIO], patience: float
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", patience)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    assert _run(folder, made(), made())[-1] == ""


def test_a_note_is_shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for out, shown in ((Terminal(), True), (io.StringIO(), False)):
        with Bar([], "checking", Screen(out, width=60, color_system=None, force_terminal=shown or None)) as bar:
            bar.note("judge 50/50")
            assert ("0 exchanges, 0 bytes, judge 50/50" in out.getvalue()) is shown
