"""Replies that are shown while they stream: mitmproxy has no body of them before their end.

Theory of operation. Where flows are shown at all (mitmweb, the console), a timer goes round the open exchanges, a few at a
time, and lends each flow a copy of what has passed so far; before the exchange ends the copy is taken away again, so that
nothing else ever takes it for the reply. The last byte stays out of it: the body at the end is then always another one, and
mitmweb, which asks for a view anew only when the body is another, does ask.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable

from mitmproxy import ctx, http

from wirelint.addon.failures import Failures
from wirelint.addon.looking import passed_body
from wirelint.addon.timeouts import Open

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
    """Whether there is somebody to look at flows: mitmdump has no view of them."""
    master = getattr(ctx, "master", None)
    return master is not None and "view" in master.addons.lookup


def forget_drawn() -> None:
    """mitmproxy's console draws a body anew only when the body is another; what is known of it may be another, too."""
    flowview = sys.modules.get("mitmproxy.tools.console.flowview")
    clear = getattr(getattr(getattr(flowview, "FlowDetails", None), "_get_content_view", None), "cache_clear", None)
    if clear is not None:
        clear()
