"""Settings that follow their files while the proxy runs: the configuration, the argument policies, the user's own rules.

Theory of operation. A task compares sizes and times of the files once per second. After a change it waits until two looks
are equal, because an editor may write a file in several steps, and reads the settings again. Files are looked at and read
in a thread, so that a slow disk delays no traffic. With an unusable file the earlier settings stay in force; one line of
the log has file, place and cure, and the next change is read again. mitmproxy itself watches only the script of the addon,
and begins with a new addon when that changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from mitmproxy import ctx

from wirelint.addon import options
from wirelint.addon.log import Failures, say

_PAUSE = 1.0
"""Seconds between two looks: the interval of mitmproxy for its scripts."""
_REST = 0.2
"""Seconds without a further change after which a file counts as written."""
_MOST_NAMED = 3
_States = Mapping[str, tuple[int, int, int]]


class Reload:
    """Reader of the settings, at the start and after each change of a file. `apply` gets those of a change, and
    returns False if they are in force already.

    `complaint`: the error in the last change of the files; empty if that change is in force.
    """

    def __init__(self, apply: Callable[[options.Settings], bool], failures: Failures) -> None:
        self._apply, self._failures = apply, failures
        self._task: asyncio.Task[None] | None = None
        self._sources = options.Sources((), ())
        self._seen: _States = {}
        self.complaint = ""

    def read(self) -> options.Settings:
        """Read the settings, and note the state of their files before. Raises SettingError."""
        values, given = options.values_in(ctx.options)
        self._sources = options.find_sources(values, given)
        self._seen = self._sources.states()
        return options.read(values, given)

    def start(self) -> None:
        """Watch the files from now on. Without an event loop, nothing is watched."""
        try:
            self._task = asyncio.get_running_loop().create_task(self._watch())
        except RuntimeError:
            self._task = None

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_PAUSE)
            with self._failures.caught("watching the files of the settings"):
                before, now = self._seen, await self._look()
                if now != before:
                    while (later := await self._look(_REST)) != now:
                        now = later
                    await self._read_again(before, now)

    async def _look(self, pause: float = 0.0) -> _States:
        await asyncio.sleep(pause)
        return await asyncio.to_thread(self._sources.states)

    async def _read_again(self, before: _States, now: _States) -> None:
        asked = options.values_in(ctx.options)
        names = _changed(before, now)
        try:
            settings = await asyncio.to_thread(self.read)
        except options.SettingError as error:
            self.complaint = f"{error}; the settings from before this change stay in force"
            say(f"wirelint: {self.complaint}", logging.WARNING)
            return
        if options.values_in(ctx.options) != asked:  # options were set meanwhile, and read with the files
            return
        was_broken, self.complaint = bool(self.complaint), ""
        if self._apply(settings) or was_broken:
            say(f"wirelint: {names} changed; exchanges that begin now follow the change")


def _changed(before: _States, now: _States) -> str:
    """Return the names of the files that differ: `wirelint.toml, my-rules/xx901_my_rule.py`."""
    files = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    here = Path.cwd()
    names = [str(path.relative_to(here) if path.is_relative_to(here) else path) for path in map(Path, files)]
    return ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else "")
