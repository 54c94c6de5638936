"""The table of `wirelint proxy --live`: the totals of the run in the last lines of the terminal, below the log.

    3 conversations, 12 exchanges, 48,210 tokens in, 2,904 out, $0.12; 1 in progress
    totals         exchanges  tokens in    out  first token    time  issues
    kimi-k2.5             12     48,210  2,904       0.42 s  21.3 s  ● 3 ▲ 1
    ● xml-leak 3  ▲ missing-usage 1

The log is printed above the table. Without a terminal there is no table; a table by model then ends the log.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import IO, cast

from mitmproxy import ctx
from mitmproxy.addons.termlog import TermLogHandler
from rich.console import Group
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.text import Text

from wirelint.addon.addon import Inspector
from wirelint.text.escaping import counted
from wirelint.view.dashboard import Board, Totals
from wirelint.view.screen import Screen, hung

_PAUSE = 0.25
"""Seconds between two looks at the totals."""
_MOST_MODELS = 8


class LiveTable:
    """Addon that shows the totals of the addon `wirelint`."""

    name = "wirelint-live"

    def __init__(self) -> None:
        self._screen = Screen(sys.stdout)
        self._live: Live | None = None
        self._task: asyncio.Task[None] | None = None

    def running(self) -> None:
        if not self._screen.is_terminal or self._screen.is_dumb_terminal:
            return
        self._live = Live(
            console=self._screen, auto_refresh=False, redirect_stdout=False, redirect_stderr=False,
            get_renderable=self._table, vertical_overflow="crop",
        )  # fmt: skip
        for handler in logging.getLogger().handlers:
            if isinstance(handler, TermLogHandler):
                handler.file = cast("IO[str]", FileProxy(self._screen, handler.file))
        self._live.start()
        self._task = asyncio.get_running_loop().create_task(self._watch(self._live))

    def done(self) -> None:
        """Leave the last table on the terminal; elsewhere, log the totals."""
        if self._task is not None:
            self._task.cancel()
        if self._live is not None:
            self._live.refresh()
            self._live.stop()
        elif (inspector := _inspector()) is not None:
            inspector.log_totals()

    async def _watch(self, live: Live) -> None:
        shown: object = None
        while True:
            inspector = _inspector()
            seen = (inspector.counts()[0].all.exchanges, inspector.pending, self._screen.size) if inspector else None
            if seen != shown:
                live.refresh()
                shown = seen
            await asyncio.sleep(_PAUSE)

    def _table(self) -> Group:
        inspector = _inspector()
        if inspector is None:
            return Group()
        return Group(*lines(*inspector.counts(), inspector.pending, self._screen.width))


def _inspector() -> Inspector | None:
    found = ctx.master.addons.get("wirelint")  # type: ignore[no-untyped-call]
    return found if isinstance(found, Inspector) else None


def lines(totals: Totals, board: Board, pending: int, width: int) -> list[Text]:
    """Return the lines of the table. `pending`: exchanges in progress."""
    counts = board.totals
    facts = [
        counted(int(str(counts["conversations"])), "conversation"),
        counted(totals.all.exchanges, "exchange"),
        f"{totals.all.sent:,} tokens in",
        f"{totals.all.received:,} out",
        *([str(counts["cost"])] if counts["cost"] else []),
    ]
    first = Text(f"{', '.join(facts)}{f'; {pending} in progress' if pending else ''}", "bold")
    head, *models = totals.table(width)
    if (more := len(models) - _MOST_MODELS - 2) > 0:
        models[_MOST_MODELS:-1] = [Text(f"… {more + 1} more", "dim")]
    table = (head, *models) if totals.all.exchanges else ()
    return [*hung(first, width, 0), *table, *hung(totals.issues(), width, 0)]
