"""All that people see of flows in mitmweb and the console: the content view, replies while they stream, commands, and how
many flows are kept. This is what the inspector tells these parts, and nothing in here raises. None of them is an addon of
its own: mitmproxy asks every addon there is about every event, twice, and has no use for most of the answers.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable

from mitmproxy import ctx, flow, http
from mitmproxy.addonmanager import Loader

from wirelint.addon.commands import Commands, Papers
from wirelint.addon.contentview import Viewer, install
from wirelint.addon.failures import Failures
from wirelint.addon.looking import Insight, Looking, passed_body
from wirelint.addon.memory import Memory
from wirelint.addon.timeouts import Open
from wirelint.addon.verdict import CheckResult
from wirelint.capture.offline import Checked

# Replies that are shown while they stream: mitmproxy has no body of them before their end.
#
# Theory of operation. Where flows are shown at all (mitmweb, the console), a timer goes round the open exchanges, a
# few at a
# time, and lends each flow a copy of what has passed so far; before the exchange ends the copy is taken away again, so that
# nothing else ever takes it for the reply. The last byte stays out of it: the body at the end is then always another
# one, and
# mitmweb, which asks for a view anew only when the body is another, does ask.

_PAUSE = 0.7
"""Seconds between two looks at the open exchanges."""
_AT_ONCE = 16
"""Exchanges that are shown anew in one look; where more are open they take turns."""
_LARGEST = 8 << 20
"""Bytes of a body above which it is shown at its end."""


class Glimpses:
    """`found` gives the exchanges under way, `show` has a flow shown anew."""

    def __init__(
        self, found: Callable[[], Iterable[Open]], show: Callable[[http.HTTPFlow], None], failures: Failures
    ) -> None:
        self._found, self._show, self._failures = found, show, failures
        self._lent: dict[str, int] = {}
        self._turn = 0
        self._timer: asyncio.TimerHandle | None = None

    def done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def wake(self) -> None:
        """There is an exchange under way."""
        if self._timer is not None or not is_shown():
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer = loop.call_later(_PAUSE, self._step)

    def _step(self) -> None:
        self._timer = None
        found = [one for one in self._found() if one.visit.live]
        start = self._turn % len(found) if len(found) > _AT_ONCE else 0
        self._turn = start + _AT_ONCE
        for one in [*found[start:], *found[:start]][:_AT_ONCE]:
            try:
                self._lend(one)
            except Exception as error:  # fail open: it is shown at its end
                self._failures.tell("showing a reply that streams", error)
        if found:
            self.wake()

    def _lend(self, one: Open) -> None:
        flow, visit = one.flow, one.visit
        if flow.response is None or (flow.response.raw_content is not None and flow.id not in self._lent):
            return
        if visit.session is None or visit.session.terminated:
            return  # it is as good as over
        body = passed_body(visit)
        if body is None or not 2 <= len(body) <= _LARGEST or len(body) == self._lent.get(flow.id):
            return
        self._lent[flow.id] = len(body)
        flow.response.raw_content = body[:-1]
        self._show(flow)

    def take_back(self, flow: http.HTTPFlow) -> None:
        """The exchange has ended: from here on its body is what mitmproxy and the addon make it."""
        if self._lent.pop(flow.id, None) is not None and flow.response is not None:
            flow.response.raw_content = None


def is_shown() -> bool:
    """Return True if there is somebody to look at flows: mitmdump has no view of them."""
    master = getattr(ctx, "master", None)
    return master is not None and "view" in master.addons.lookup


def forget_drawn() -> None:
    """mitmproxy's console draws a body anew only when the body is another; what is known of it may be another, too."""
    flowview = sys.modules.get("mitmproxy.tools.console.flowview")
    clear = getattr(getattr(getattr(flowview, "FlowDetails", None), "_get_content_view", None), "cache_clear", None)
    if clear is not None:
        clear()


# How many flows a long run keeps. mitmweb and the console have no bound of their own; mitmdump lets go of every flow.
#
# Only what passed in this run is counted and dropped, the oldest first. Flows that were opened from a file stay, and
# so does
# whatever is still under way. What stands on disk is not touched.

_OPEN_AT_ONCE = 64
"""Flows that are still under way, and stay for now, that are passed over at a time."""


class Keeping:
    """`most` gives how many flows may stay, None for all of them; `dropped` is told the id of a flow that left."""

    def __init__(self, most: Callable[[], int | None], dropped: Callable[[str], None], failures: Failures) -> None:
        self._most, self._dropped, self._failures = most, dropped, failures
        self._passed: OrderedDict[str, None] = OrderedDict()

    def begins(self, flow: flow.Flow) -> None:
        """A flow begins, whatever it speaks."""
        if not flow.live or not is_shown():
            return
        self._passed[flow.id] = None
        most = self._most()
        if most is None or len(self._passed) <= most:
            return
        try:
            self._drop(len(self._passed) - most)
        except Exception as error:  # fail open: it stays
            self._failures.tell("dropping the oldest flows", error)

    def done(self) -> None:
        self._passed.clear()

    def _drop(self, count: int) -> None:
        view = ctx.master.addons.get("view")  # type: ignore[no-untyped-call]
        for _ in range(count + _OPEN_AT_ONCE):
            if count <= 0:
                return
            name, _ = self._passed.popitem(last=False)
            found = view.get_by_id(name)
            if found is not None and found.live:
                self._passed[name] = None
                continue
            count -= 1
            if found is not None:  # else somebody removed it
                view.remove([found])
                self._dropped(name)


class Desk:
    """`found` gives the exchanges under way."""

    def __init__(self, insight: Insight, found: Callable[[], Iterable[Open]], failures: Failures) -> None:
        self._failures, self._insight = failures, insight
        self._memory = Memory()
        looking = Looking(insight, self._memory)
        self._viewer = Viewer(looking, failures)
        self._glimpses = Glimpses(found, self.show, failures)
        self._keeping = Keeping(self._most, self._memory.forget, failures)
        self._commands = (Commands(insight, looking, self._memory), Papers(insight, looking))
        self._remove: Callable[[], None] = lambda: None

    def load(self, loader: Loader) -> None:
        try:
            self._remove = install(self._viewer)
        except Exception as error:  # fail open: bodies are shown by mitmproxy's own views
            self._failures.tell("adding the content view", error)
        for commands in self._commands:
            loader.master.commands.collect_commands(commands)

    def done(self) -> None:
        self._remove()
        self._memory.clear()
        self._glimpses.done()
        self._keeping.done()

    def begins(self, flow: flow.Flow) -> None:
        """A flow begins, whatever it speaks."""
        self._keeping.begins(flow)

    def began(self) -> None:
        """An exchange is under way."""
        self._glimpses.wake()

    def ending(self, flow: http.HTTPFlow) -> None:
        """An exchange ends, and its reply's body is about to be looked for."""
        self._glimpses.take_back(flow)

    def judged(self, flow: http.HTTPFlow, verdict: CheckResult) -> None:
        """There is a verdict on a flow."""
        if is_shown():
            checked = Checked(verdict.record, verdict.exchange, verdict.findings).folded
            self._memory.keep(flow, checked, verdict.notes, verdict.record.id)
            forget_drawn()

    def show(self, flow: http.HTTPFlow) -> None:
        """Has a flow shown anew."""
        try:
            view = ctx.master.addons.get("view")  # type: ignore[no-untyped-call]
            if view is not None:
                view.update([flow])
        except Exception as error:  # fail open
            self._failures.tell("showing the verdict", error)

    def _most(self) -> int | None:
        settings = self._insight.settings()
        return settings.keep_flows if settings is not None else None
