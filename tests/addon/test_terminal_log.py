"""Lines of a run on a terminal: columns that stay in place, findings beneath, nothing wider than it is."""

from __future__ import annotations

import io
import logging
import sys
from dataclasses import replace

import pytest
from mitmproxy.addons.termlog import TermLogHandler
from rich.cells import cell_len

from tests.addon.build import result_of_record, with_model
from tests.addon.test_log import CLEAN, FIXES, MENDED, MIXED, WHOLE
from tests.build import Talk
from tests.fakes import Terminal
from tests.tables import tables
from wirelint.addon import log
from wirelint.capture.offline import Checked
from wirelint.registry import page_url
from wirelint.rule import Finding

FOUND = Finding(
    "LK101", "xml-leak", "error", "high", "model", "response", "tool call search_notes leaked into the text as markup",
    "/choices/0/message/content", 7,
)  # fmt: skip
LONG = result_of_record(
    Talk(text="Hi.", model="some-vendor/a-model-of-a-very-long-name-0905").record("openai.chat", False)
)
WIDE = result_of_record(Talk(text="Hi.", model="模型" * 12).record("openai.chat", False))
REFUSED = result_of_record(Talk(status=429).record("openai.chat", False), rules=("ST604",))
DIED = replace(CLEAN, record=replace(CLEAN.record, end="upstream-died"))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """mitmproxy's own handler of a terminal, at 80 columns, and the time 12:00:00."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(logging.Formatter, "formatTime", lambda self, record, datefmt=None: "12:00:00")
    out = Terminal()
    handler = TermLogHandler(out)
    handler._initiated_in_test = None  # it would be deaf in the call after this setup
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    monkeypatch.setattr(sys, "stdout", Terminal())
    logging.getLogger("wirelint").setLevel(logging.INFO)
    log.settle()
    return out


def plain(text: str) -> list[str]:
    from rich.text import Text

    return [line.rstrip() for line in Text.from_ansi(text).plain.splitlines()]


RESULTS: dict[str, Checked] = {
    "clean": CLEAN,
    "a whole body": WHOLE,
    "refused": REFUSED,
    "a long name": LONG,
    "wide characters": WIDE,
    "cut off": DIED,
    "findings and fixes": replace(
        MENDED, findings=(FOUND, MIXED.findings[0]), record=replace(MENDED.record, fixes=FIXES[:1])
    ),
    "many findings": replace(MIXED, findings=MIXED.findings[:1] * 30),
    "orders to the terminal": replace(
        with_model(CLEAN, "\x1b[2Jx"), findings=(replace(FOUND, message="a\x1b]0;t\x07\nb", pointer="/\x1b[1m"),)
    ),
}
SCREENS: dict[str, list[str]] = tables(__file__)["screens"]
"""The lines of each result on the terminal."""


@pytest.mark.parametrize("name", SCREENS)
def test_the_screen(name: str, terminal: Terminal) -> None:
    log.log_exchange(RESULTS[name])
    assert plain(terminal.getvalue()) == SCREENS[name]


@pytest.mark.parametrize("columns", [40, 60, 80, 104, 160])
def test_nothing_is_wider_than_the_terminal(columns: int, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for result in RESULTS.values():
        terminal.seek(0)
        terminal.truncate()
        log.log_exchange(result)
        first, *others = plain(terminal.getvalue())
        assert cell_len(first) <= max(columns, 70)
        assert all(cell_len(line) <= columns for line in others)
        assert ("first 0.42 s" in first) == (columns >= 104 and result.streamed)


def test_a_clean_exchange_is_dim_and_a_fault_is_red(terminal: Terminal) -> None:
    log.log_exchange(CLEAN)
    assert "\x1b[2m openai.chat" in terminal.getvalue()
    log.log_exchange(RESULTS["findings and fixes"])
    assert "\x1b[31m●" in terminal.getvalue()
    assert f";{page_url('xml-leak')}\x1b\\" in terminal.getvalue(), "a link to the page of the rule"


def test_no_color(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    log.log_exchange(RESULTS["findings and fixes"])
    assert "\x1b[3" not in terminal.getvalue()
    assert plain(terminal.getvalue()) == SCREENS["findings and fixes"]


def test_an_open_exchange(terminal: Terminal) -> None:
    assert CLEAN.exchange is not None
    record = replace(CLEAN.record, timing=replace(CLEAN.record.timing, duration=31_000.0))
    exchange = replace(CLEAN.exchange, open=True)
    log.log_exchange(Checked(record, exchange, (replace(FOUND, severity="warning"),)))
    line = "12:00:00 ▲ openai.chat        acme-1               200  31.0 s open     3f2a9c11"
    assert plain(terminal.getvalue())[0] == line


def test_other_lines_are_as_they_were(terminal: Terminal) -> None:
    logging.getLogger("other").warning("as it was")
    log.say("wirelint: a word")
    assert plain(terminal.getvalue()) == ["[12:00:00] as it was", "[12:00:00] wirelint: a word"]


def test_a_pipe_has_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(logging.getLogger(), "handlers", [TermLogHandler(out)])
    monkeypatch.setattr(logging.Formatter, "formatTime", lambda self, record, datefmt=None: "12:00:00")
    log.settle()
    log.log_exchange(CLEAN)
    assert out.getvalue() == f"[12:00:00] {log.exchange_line(CLEAN)}\n"


def test_settling_twice_changes_nothing(terminal: Terminal) -> None:
    log.settle()
    log.log_exchange(CLEAN)
    assert plain(terminal.getvalue()) == SCREENS["clean"]
