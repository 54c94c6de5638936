"""The commands that write files: `wirelint.view` for a page of exchanges, `wirelint.case` for a reproducer of one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from mitmproxy import command, flow, http, types

from wirelint.addon.commands import flows_before, wrong
from wirelint.addon.log import say
from wirelint.addon.looking import Insight, Looking
from wirelint.addon.words import one_line
from wirelint.capture.cases import NoFindingError, encode_case, reproduce
from wirelint.capture.readers.flows import record_of
from wirelint.view.html import write_report


class Papers:
    def __init__(self, insight: Insight, looking: Looking) -> None:
        self._insight, self._looking = insight, looking

    @command.command("wirelint.view")  # type: ignore[untyped-decorator]
    def report(self, flows: Sequence[flow.Flow], path: types.Path) -> str:
        """Write a report of these flows to an HTML file."""
        out = _file(path, "report.html")
        known = [one for one in flows if isinstance(one, http.HTTPFlow) and self._looking.knows(one)]
        if not known:
            raise wrong("none of these flows is an exchange that wirelint understands; nothing was written")
        items = (self._looking.look(one).checked for one in known)
        try:
            written = write_report(items, out, rules=self._insight.engine().rules, title="mitmproxy")
        except OSError as error:
            raise wrong(_unwritable(path, error)) from error
        many = "1 exchange" if written.exchanges == 1 else f"{written.exchanges} exchanges"
        return one_line(f"{many} written to {out.absolute()}")

    @command.command("wirelint.case")  # type: ignore[untyped-decorator]
    def case(self, flow: flow.Flow, path: types.Path) -> str:
        """Write a minimal redacted reproducer of this flow's findings to a file, fit to be given away."""
        out = _file(path, "case.jsonl")
        if not isinstance(flow, http.HTTPFlow) or not self._looking.knows(flow):
            raise wrong("this flow is no exchange that wirelint understands; nothing was written")
        if self._insight.open(flow.id) is not None:
            raise wrong("this exchange is still under way; make a case of it when it has ended")
        if not self._looking.look(flow).checked.findings:
            raise wrong("nothing was found in this exchange; there is nothing to reproduce")
        record, before = record_of(flow), [record_of(one) for one in flows_before(flow)]
        rules = self._insight.engine().rules

        def make() -> str:
            return _write(out, lambda: encode_case(reproduce(record, rules, prior=before)))

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return make()
        # It takes seconds, in which the traffic has to go on.
        loop.run_in_executor(None, lambda: say(f"wirelint: {make()}", logging.WARNING))
        return one_line(f"the case of {flow.id[:8]} is being made; the event log tells when it is at {out.absolute()}")


def _write(out: Path, make: Callable[[], bytes]) -> str:
    """Writes a file; what there is to say about it."""
    try:
        out.write_bytes(make())
    except NoFindingError as error:
        return one_line(f"no case was made: {error}")
    except OSError as error:
        return one_line(_unwritable(str(out), error))
    except Exception as error:  # fail open: in a thread nobody would hear of it
        return one_line(f"no case was made: {type(error).__name__}: {error}")
    return one_line(f"the case is written to {out.absolute()}; see it with: wirelint show {out}")


def _file(path: str, usual: str) -> Path:
    out = Path(path).expanduser()
    if not path or out.is_dir():
        raise wrong(f"{path or '(no path)'}: this is no file; name one, such as {out / usual}")
    if not out.parent.is_dir():
        raise wrong(f"{path}: there is no folder {out.parent}; name a file in one that is there")
    return out


def _unwritable(path: str, error: OSError) -> str:
    return f"{path}: {error.strerror or error}; name a file that can be written"
